/* SPDX-License-Identifier: Apache-2.0 */
/* asof_search.c - the last record of a segment whose key is at most a time.
 *
 *      near the last answer       k k k K - - - - - -      gallop: 1, 2, 4 ... records on, or back
 *      far from it                k . . . . ? . . . k      guess by the keys at both ends, twice, then
 *                                        |<-16->|          some records around the guess
 *      what is left               k . . . k                bisect, without branches
 *
 *      here and there, again      m . . m . . m . . m      bisect marks, copies of each 8th to 64th key that lie
 *                                       |<->|              together; fetch all between two of them at once.
 *                                                          A mark of the level above for each line of them
 *
 * Times of a market are even enough for a guess to fall near, and a guess costs one line of memory where a
 * bisection costs one for each step. Where they are not, the number of guesses is bounded, and galloping
 * and bisecting around the last one need no more than twice the steps of a bisection alone.
 *
 * Records that kept their order have no order to bisect. The first record that exceeds a time is the first that
 * raises the running maximum above it: there marks are running maxima, of all records in front of a mark.
 * Undefined times are no keys.
 *
 * Invariant: every key that is read is that of a record in [0, cnt), whatever the bytes are; comparisons
 * are made with the value that was read, once.
 */
#include <stdlib.h>
#include <string.h>
#include "consumer/asof.h"
#include "shm/message.h"

#define GUESS_CNT      3u  /* guesses before the rest is bisected */
#define GUESS_LEAST    32u /* records that are bisected without a guess */
#define NEAR           16u /* records around a guess: two lines of 8-byte keys */
#define GALLOP_CAP     64u /* galloping ends there, a guess is better */
#define MARK_STEP_MAX  64u /* records from mark to mark */
#define MARK_GROUP     8u  /* marks of a line of memory: one mark of the level above */
#define MARK_LEVEL_CAP 22u
#define MARK_STEP_MIN  8u
#define MARK_LEN                                                                                   \
	1024u /* bytes from mark to mark, where those are more than MARK_STEP_MIN records */
#define LINE_LEN 64u
#define WALK_CAP 256u /* records that kept their order, walked from the last answer on */

#define INLINE static inline __attribute__((always_inline))

INLINE int64_t key_of(const struct stoup_keys *keys, uint64_t idx, int messages)
{
	const uint8_t *at = keys->base + idx * keys->stride;
	int64_t key;

	if (messages)
		return stoup_message_head_of(at)->key;
	memcpy(&key, at + keys->key_off, sizeof(key));
	return key;
}

/* ---- marks ----------------------------------------------------------------------------------- */

uint32_t stoup_marks_step(uint32_t stride)
{
	uint32_t step = MARK_STEP_MAX;

	while (step > MARK_STEP_MIN && step * stride > MARK_LEN)
		step /= 2;
	return step;
}

static uint64_t group_up(uint64_t cnt)
{
	return (cnt + MARK_GROUP - 1) / MARK_GROUP;
}

/* Marks of all levels, the lowest one first: how many of the levels above, and keys in all. */
static uint32_t mark_levels(uint64_t cnt, uint64_t *ret_cnt)
{
	uint32_t levels = 0;
	uint64_t sum = group_up(cnt) * MARK_GROUP;

	while (cnt > MARK_GROUP) {
		cnt = group_up(cnt);
		sum += group_up(cnt) * MARK_GROUP;
		levels++;
	}
	*ret_cnt = sum;
	return levels;
}

uint64_t stoup_marks_cnt(uint64_t record_cnt, uint32_t step)
{
	uint64_t cnt;

	mark_levels((record_cnt + step - 1) / step, &cnt);
	return cnt;
}

/* How many of one group, which begins at a line of memory, are at most key_ns. */
INLINE uint64_t group_count(const int64_t *keys, int64_t key_ns)
{
	uint64_t cnt = 0;

	for (uint32_t i = 0; i < MARK_GROUP; i++)
		cnt += keys[i] <= key_ns;
	return cnt;
}

/* The last mark that is at most key_ns; 0 where none is. Levels follow each other from the top on. */
INLINE uint64_t mark_find(const struct stoup_keys *keys, int64_t key_ns)
{
	const int64_t *level = keys->marks;
	uint64_t cnts[MARK_LEVEL_CAP], cnt = (keys->cnt + keys->mark_step - 1) / keys->mark_step;
	uint64_t at = 0, found;
	uint32_t top = 0;

	for (cnts[0] = cnt; cnts[top] > MARK_GROUP; top++)
		cnts[top + 1] = group_up(cnts[top]);
	for (;; top--) {
		found = group_count(level + at * MARK_GROUP, key_ns);
		at = at * MARK_GROUP + (found > 0 ? found - 1 : 0);
		/* Behind the last one stands no time, which may be asked for. */
		at = at < cnts[top] ? at : cnts[top] - 1;
		if (top == 0)
			return at;
		level += group_up(cnts[top]) * MARK_GROUP;
	}
}

static int64_t mark_at(const struct stoup_keys *keys, uint64_t idx)
{
	uint64_t cnt = (keys->cnt + keys->mark_step - 1) / keys->mark_step, all;

	mark_levels(cnt, &all);
	return keys->marks[all - group_up(cnt) * MARK_GROUP + idx];
}

/* Make the levels above the lowest one, which stands at the end. */
static void levels_fill(int64_t *dst, uint64_t cnt)
{
	uint64_t all, above;
	int64_t *low, *high;

	mark_levels(cnt, &all);
	low = dst + all - group_up(cnt) * MARK_GROUP;
	for (;;) {
		for (uint64_t i = cnt; i < group_up(cnt) * MARK_GROUP; i++)
			low[i] = INT64_MAX;
		if (cnt <= MARK_GROUP)
			return;
		above = group_up(cnt);
		high = low - group_up(above) * MARK_GROUP;
		for (uint64_t i = 0; i < above; i++)
			high[i] = low[i * MARK_GROUP];
		low = high;
		cnt = above;
	}
}

/* ---- in order -------------------------------------------------------------------------------- */

/* The answer is one of the n records from `low` on. */
INLINE uint64_t bisect(
	const struct stoup_keys *keys, int64_t key_ns, uint64_t low, uint64_t n, int messages)
{
	while (n > 1) {
		uint64_t half = n / 2;

		/* Which way is even chances: no branch to be guessed. */
		low += half & -(uint64_t)(key_of(keys, low + half, messages) <= key_ns);
		n -= half;
	}
	return low;
}

/* The answer lies in [low, high), whose keys are low_key <= key_ns < high_key. */
INLINE uint64_t guess(const struct stoup_keys *keys, int64_t key_ns, uint64_t low, int64_t low_key,
	uint64_t high, int64_t high_key, int messages)
{
	for (uint32_t i = 0; i < GUESS_CNT && high - low > GUESS_LEAST; i++) {
		double part = (double)((uint64_t)key_ns - (uint64_t)low_key) /
		              (double)((uint64_t)high_key - (uint64_t)low_key);
		uint64_t at = low + (uint64_t)(part * (double)(high - low));
		int64_t key;

		at = at <= low ? low + 1 : at >= high ? high - 1 : at;
		key = key_of(keys, at, messages);
		if (key <= key_ns) {
			low = at;
			low_key = key;
			if (high - at <= NEAR)
				break;
			key = key_of(keys, at + NEAR, messages);
			if (key > key_ns)
				return bisect(keys, key_ns, low, NEAR, messages);
			low = at + NEAR;
			low_key = key;
		} else {
			high = at;
			high_key = key;
			if (at - low <= NEAR)
				break;
			key = key_of(keys, at - NEAR, messages);
			if (key <= key_ns)
				return bisect(keys, key_ns, at - NEAR, NEAR, messages);
			high = at - NEAR;
			high_key = key;
		}
	}
	return bisect(keys, key_ns, low, high - low, messages);
}

/* Between two marks: all lines are fetched at once, and then bisected. */
INLINE uint64_t marked(const struct stoup_keys *keys, int64_t key_ns, int messages)
{
	uint64_t low = mark_find(keys, key_ns) * keys->mark_step, n = keys->mark_step;
	const uint8_t *at = keys->base + low * keys->stride, *end;

	if (n > keys->cnt - low)
		n = keys->cnt - low;
	end = at + n * keys->stride;
	for (at += messages ? 0 : keys->key_off;
		at<end; at += keys->stride> LINE_LEN ? keys->stride : LINE_LEN)
		__builtin_prefetch(at);
	return bisect(keys, key_ns, low, n, messages);
}

/* Its key is at most key_ns, that of the last record is not. */
INLINE uint64_t gallop_on(
	const struct stoup_keys *keys, int64_t key_ns, uint64_t at, int64_t at_key, int messages)
{
	uint64_t high = keys->cnt - 1;
	int64_t key;

	for (uint64_t step = 1; step <= GALLOP_CAP && at + step < high; step *= 2) {
		key = key_of(keys, at + step, messages);
		if (key > key_ns)
			return bisect(keys, key_ns, at, step, messages);
		at += step;
		at_key = key;
	}
	if (keys->marks)
		return marked(keys, key_ns, messages);
	return guess(keys, key_ns, at, at_key, high, keys->last_key, messages);
}

/* Its key is greater than key_ns, that of the first record is not. */
INLINE uint64_t gallop_back(
	const struct stoup_keys *keys, int64_t key_ns, uint64_t at, int64_t at_key, int messages)
{
	int64_t key;

	for (uint64_t step = 1; step <= GALLOP_CAP && step < at; step *= 2) {
		key = key_of(keys, at - step, messages);
		if (key <= key_ns)
			return bisect(keys, key_ns, at - step, step, messages);
		at -= step;
		at_key = key;
	}
	if (keys->marks)
		return marked(keys, key_ns, messages);
	return guess(keys, key_ns, 0, keys->first_key, at, at_key, messages);
}

INLINE void search(const struct stoup_keys *keys, int64_t key_ns, uint64_t hint,
	struct stoup_spot *ret, int messages)
{
	uint64_t last = keys->cnt - 1, at;
	int64_t key;

	if (key_ns >= keys->last_key || last == 0) {
		at = last;
	} else if (hint < keys->cnt) {
		key = key_of(keys, hint, messages);
		if (key > key_ns)
			at = hint > 0 ? gallop_back(keys, key_ns, hint, key, messages) : 0;
		else if (hint < last)
			at = gallop_on(keys, key_ns, hint, key, messages);
		else
			at = last;
	} else if (keys->marks) {
		at = marked(keys, key_ns, messages);
	} else {
		at = guess(keys, key_ns, 0, keys->first_key, last, keys->last_key, messages);
	}
	ret->idx = at;
	ret->key = key_of(keys, at, messages);
	ret->next_key = at < last ? key_of(keys, at + 1, messages) : INT64_MAX;
}

void stoup_keys_search(
	const struct stoup_keys *keys, int64_t key_ns, uint64_t hint, struct stoup_spot *ret)
{
	if (keys->messages)
		search(keys, key_ns, hint, ret, 1);
	else
		search(keys, key_ns, hint, ret, 0);
}

/* ---- in the order in which they were kept ---------------------------------------------------- */

INLINE int is_key(const struct stoup_keys *keys, int64_t key)
{
	return key <= keys->key_max;
}

/* Records [at, end), the greatest key before them in ret->key: 1, one exceeds key_ns and ret has the one before
 * it; 0, none does and ret has the last of them. */
INLINE int walk(const struct stoup_keys *keys, int64_t key_ns, uint64_t at, uint64_t end,
	struct stoup_spot *ret, int messages)
{
	for (; at < end; at++) {
		int64_t key = key_of(keys, at, messages);

		if (key <= ret->key || !is_key(keys, key))
			continue;
		/* The first record has the key that the index says. */
		if (key > key_ns && at > 0) {
			ret->idx = at - 1;
			ret->next_key = key;
			return 1;
		}
		ret->key = key;
	}
	ret->idx = end - 1;
	ret->next_key = INT64_MAX;
	return 0;
}

void stoup_marks_fill(const struct stoup_keys *keys, uint32_t step, int64_t *dst)
{
	uint64_t cnt = (keys->cnt + step - 1) / step;
	struct stoup_spot spot = {.key = keys->first_key};
	int64_t *low;
	uint64_t all;

	mark_levels(cnt, &all);
	low = dst + all - group_up(cnt) * MARK_GROUP;
	for (uint64_t i = 0; i < cnt; i++) {
		low[i] = keys->kept ? spot.key : key_of(keys, i * step, (int)keys->messages);
		if (keys->kept)
			walk(keys, INT64_MAX, i * step,
				keys->cnt - i * step > step ? (i + 1) * step : keys->cnt, &spot,
				(int)keys->messages);
	}
	levels_fill(dst, cnt);
}

void stoup_keys_search_kept(
	const struct stoup_keys *keys, int64_t key_ns, uint64_t hint, struct stoup_spot *ret)
{
	int messages = (int)keys->messages;
	uint64_t low, end = keys->cnt;

	/* Of a segment that the range ends in, the greatest key up to there is not known. */
	if (keys->last_key != INT64_MAX && key_ns >= keys->last_key) {
		*ret = (struct stoup_spot){keys->cnt - 1, keys->last_key, INT64_MAX};
		return;
	}
	/* From the last answer on, as long as it is near. */
	if (hint < keys->cnt && ret->key <= key_ns) {
		if (keys->marks && keys->cnt - hint > WALK_CAP)
			end = hint + WALK_CAP;
		if (walk(keys, key_ns, hint + 1, end, ret, messages) || end == keys->cnt)
			return;
	}
	ret->key = keys->first_key;
	if (!keys->marks) {
		walk(keys, key_ns, 0, keys->cnt, ret, messages);
		return;
	}
	/* The first record that exceeds the time stands between this mark and the next one. */
	low = mark_find(keys, key_ns);
	ret->key = mark_at(keys, low);
	walk(keys, key_ns, low * keys->mark_step, keys->cnt, ret, messages);
}
