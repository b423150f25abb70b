/* SPDX-License-Identifier: Apache-2.0 */
/* event64.c - hftbacktest's events (see event64.h). */
#include <errno.h>
#include "producer/event64.h"
#include "shm/format.h"

int stoup_event64_is(const struct stoup_schema *schema)
{
	return schema->hash == stoup_schema_by_name("event64")->hash;
}

static int step_back(const char *walk, int64_t now_ns, int64_t before_ns, struct stoup_error *err)
{
	char now[STOUP_FORMAT_CAP], before[STOUP_FORMAT_CAP];

	stoup_format_time(now_ns, now);
	stoup_format_time(before_ns, before);
	return stoup_error_set(err, -EILSEQ,
		"%s steps back from %s to %s, and hftbacktest needs it in order: give files in the order of time, "
		"correct an array with its correct_event_order; --order keep takes it as it is",
		walk, before, now);
}

int stoup_event64_order_check(struct stoup_event64_order *order, const struct stoup_event64 *event,
	struct stoup_error *err)
{
	if (event->ev & STOUP_EV_EXCH) {
		if (event->exch_ts < order->exch_ts)
			return step_back("exch_ts of events with the EXCH flag", event->exch_ts,
				order->exch_ts, err);
		order->exch_ts = event->exch_ts;
	}
	if (event->ev & STOUP_EV_LOCAL) {
		if (event->local_ts < order->local_ts)
			return step_back("local_ts of events with the LOCAL flag", event->local_ts,
				order->local_ts, err);
		order->local_ts = event->local_ts;
	}
	return 0;
}
