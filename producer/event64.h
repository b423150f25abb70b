/* SPDX-License-Identifier: Apache-2.0 */
/* event64.h - hftbacktest's events: what the bits of `ev` mean, and what order an array has.
 *
 *      ev   |31 EXCH|30 LOCAL|29 BUY|28 SELL|27 ... 8 unused|7 ... 0 kind|
 *
 * An event happens twice: at the exchange at exch_ts, and here at local_ts. hftbacktest walks the
 * array once for each of the two, and each walk takes the events that have its flag:
 *
 *      right order   EXCH events by exch_ts, LOCAL events by local_ts; what lies between does not count
 *
 * So an array in which neither time ever steps back has both flags everywhere, and one where the feed
 * overtook itself has such events twice, once with each flag. Then local_ts of the records may step
 * back although the array is right: series of this schema keep their order (STOUP_ORDER_KEEP).
 *
 * Layout and constants are hftbacktest's (MIT, github.com/nkaz001/hftbacktest).
 *
 * Concurrency: an order is one thread's.
 */
#ifndef STOUP_PRODUCER_EVENT64_H
#define STOUP_PRODUCER_EVENT64_H

#include <stdint.h>
#include "shm/stoup_records.h"
#include "shm/stoup_types.h"

#define STOUP_EV_EXCH  (1u << 31)
#define STOUP_EV_LOCAL (1u << 30)
#define STOUP_EV_BUY   (1u << 29)
#define STOUP_EV_SELL  (1u << 28)

#define STOUP_EV_DEPTH    1u
#define STOUP_EV_TRADE    2u
#define STOUP_EV_CLEAR    3u
#define STOUP_EV_SNAPSHOT 4u
#define STOUP_EV_BBO      5u
#define STOUP_EV_ADD      10u
#define STOUP_EV_CANCEL   11u
#define STOUP_EV_MODIFY   12u
#define STOUP_EV_FILL     13u

/* Is this the built-in schema event64? */
int stoup_event64_is(const struct stoup_schema *schema);

/* How far the two walks came. */
struct stoup_event64_order {
	int64_t exch_ts, local_ts;
};

/* The next event of an array: 0, or -EILSEQ with text where its order is not right. Begin with a zeroed
 * order. */
int stoup_event64_order_check(struct stoup_event64_order *order, const struct stoup_event64 *event,
	struct stoup_error *err);

#endif
