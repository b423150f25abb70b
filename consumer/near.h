/* SPDX-License-Identifier: Apache-2.0 */
/* near.h - the names that come nearest to one that there is not, for error texts.
 *
 *      asked "esh4"    offered "GLBX.MDP3/ESH4/mbo", "GLBX.MDP3/NQH4/mbo" ...    -> "GLBX.MDP3/ESH4/mbo, ..."
 *
 * Invariant: `names` is in the order of `scores`, the highest first; a score of 0 is never kept.
 *
 * Concurrency: a struct belongs to one thread; names are kept by pointer.
 */
#ifndef STOUP_CONSUMER_NEAR_H
#define STOUP_CONSUMER_NEAR_H

#include <stddef.h>
#include <stdint.h>

#define STOUP_NEAR_CNT 3u

struct stoup_near {
	const char *asked;
	const char *names[STOUP_NEAR_CNT]; /* NULL: none */
	uint32_t scores[STOUP_NEAR_CNT];
};

/* Keep `name` if it is nearer than one that is kept. */
void stoup_near_offer(struct stoup_near *near, const char *name);

/* The names, separated by commas, whole ones as far as cap goes; the length of the text, which ends with a NUL. */
size_t stoup_near_text(const struct stoup_near *near, char *dst, size_t cap);

#endif
