/* SPDX-License-Identifier: Apache-2.0 */
/* loop.h - the scans that loop.c and loop.cc write in their languages; the test compares what they compile
 * to. */
#ifndef LOOP_H
#define LOOP_H

#include <stdint.h>
#include <stoup.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Price x size of the records; -1 where the scan fails. `sum_backward` goes from the last to the first. */
int64_t sum_mbo(struct stoup *st, const struct stoup_series *series);
int64_t sum_tick(struct stoup *st, const struct stoup_series *series);
int64_t sum_backward(struct stoup *st, const struct stoup_series *series);
/* A longer body, over the best level of a book. */
int64_t sum_spread(struct stoup *st, const struct stoup_series *series);

#ifdef __cplusplus
}
#endif

#endif
