/* SPDX-License-Identifier: Apache-2.0 */
/* rig_text.h - messages: texts in memory, stores of them, and processes that scan at the same time.
 *
 *      texts --+--> store of a schema of messages --stoupd--> pool
 *              +--> as they are: what a peer reads
 *
 *      crowd   parent  --go--> worker 0 .. worker n-1      each makes one pass over the same bytes,
 *                      <--result--                         of an attachment of its own
 *
 * Concurrency: as harness.h. Workers end with the process that made them.
 */
#ifndef STOUP_BENCH_RIG_TEXT_H
#define STOUP_BENCH_RIG_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "bench/harness.h"
#include "bench/rig.h"

/* Text i is bytes[off[i] .. off[i + 1]); behind the last one are BENCH_TEXT_PADDING zero bytes. */
struct bench_texts {
	char *bytes;
	uint64_t *off;
	uint64_t cnt;
	size_t cap; /* of bytes */
};
#define BENCH_TEXT_PADDING 256u

static inline size_t bench_texts_len(const struct bench_texts *texts)
{
	return texts->off[texts->cnt];
}

/* `cnt` texts of from_len to to_len printable bytes, every length as often. */
struct bench_texts bench_texts_make(uint64_t cnt, uint32_t from_len, uint32_t to_len);

/* The captured messages of $STOUP_DATA, over and over until there are `len` bytes; without them lines of the
 * same shape. *ret_real says which. */
struct bench_texts bench_texts_json(size_t len, int *ret_real);
void bench_texts_free(struct bench_texts *texts);

/* Write them into a store as messages of a schema, uncompressed, BENCH_KEY_STEP apart; of schema bipf as the
 * documents that they are. */
void bench_texts_store(
	const char *path, const char *series, const char *schema, const struct bench_texts *texts);

/* ---- a crowd ---------------------------------------------------------------------------------- */

#define BENCH_CROWD_CAP 16u

/* Makes what a pass needs, in the process that makes the pass. */
typedef void *(*bench_worker_make)(const void *arg);

struct bench_team {
	uint32_t cnt;
	pid_t pids[BENCH_CROWD_CAP];
	int go_fd, done_fd; /* one byte each; one result each */
};

void bench_team_start(struct bench_team *team, uint32_t cnt, bench_worker_make make,
	const void *arg, bench_pass pass);

/* One pass of each, at the same time; the sum of their results. A bench_pass. */
uint64_t bench_team_pass(void *team);
void bench_team_end(struct bench_team *team);

#endif
