/* SPDX-License-Identifier: Apache-2.0 */
/* b11_objects.h - trades as heap objects that a thread makes ahead of the strategy.
 *
 *      maker thread: decode a piece, malloc one object per trade --batches--> strategy: step, free
 *                                       (at most QUEUE_CAP batches ahead)
 *
 * What many back-testers do: it hides the decoding behind the strategy, at the cost of an
 * allocation per record.
 */
#ifndef STOUP_BENCH_B11_OBJECTS_H
#define STOUP_BENCH_B11_OBJECTS_H

#include "bench/b11_loop.h"
#include "bench/rig.h"

/* Run the strategy over all trades of the pieces. */
void bench_objects_run(struct bench_strategy *strategy, const struct bench_pieces *pieces);

#endif
