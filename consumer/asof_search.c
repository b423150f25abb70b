/* SPDX-License-Identifier: Apache-2.0 */
/* asof_search.c - the last record of a segment whose key is at most a time.
 *
 *      near the last answer       k k k K - - - - - -      gallop: 1, 2, 4 ... records on, or back
 *      far from it                k . . . . ? . . . k      guess by the keys at both ends, twice, then
 *                                        |<-16->|          some records around the guess
 *      what is left               k . . . k                bisect, without branches
 *
 * Times of a market are even enough for a guess to fall near, and a guess costs one line of memory where a
 * bisection costs one for each step. Where they are not, the number of guesses is bounded, and galloping
 * and bisecting around the last one need no more than twice the steps of a bisection alone.
 *
 * Records that kept their order have no order to bisect. The first record that exceeds a time is the first that
 * raises the running maximum above it: maxima of each STOUP_MAXIMA_STEP records, made once in one walk over the
 * segment, are bisected, and the records of one step walked. Undefined times are no keys.
 *
 * Invariant: every key that is read is that of a record in [0, cnt), whatever the bytes are; comparisons
 * are made with the value that was read, once.
 */
#include <stdlib.h>
#include <string.h>
#include "consumer/asof.h"
#include "shm/message.h"

#define GUESS_CNT   3u   /* guesses before the rest is bisected */
#define GUESS_LEAST 32u  /* records that are bisected without a guess */
#define NEAR        16u  /* records around a guess: two lines of 8-byte keys */
#define GALLOP_CAP  64u  /* galloping ends there, a guess is better */
#define WALK_CAP    256u /* records that kept their order, walked from the last answer on */

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

/* Make the maxima of a segment: 0 without memory for them. */
static int maxima_make(const struct stoup_keys *keys, uint32_t border, struct stoup_maxima *ret)
{
	uint64_t cnt = (keys->cnt + STOUP_MAXIMA_STEP - 1) / STOUP_MAXIMA_STEP;
	struct stoup_spot spot = {.key = keys->first_key};
	int64_t *made = realloc(ret->keys, (size_t)cnt * sizeof(*made));

	if (!made)
		return 0;
	ret->keys = made;
	for (uint64_t i = 0; i < cnt; i++) {
		uint64_t begin = i * STOUP_MAXIMA_STEP, end = begin + STOUP_MAXIMA_STEP;

		walk(keys, INT64_MAX, begin, end < keys->cnt ? end : keys->cnt, &spot,
			(int)keys->messages);
		made[i] = spot.key;
	}
	ret->border = border;
	ret->cnt = (uint32_t)cnt;
	return 1;
}

void stoup_keys_search_kept(const struct stoup_keys *keys, int64_t key_ns, uint64_t hint,
	uint32_t border, struct stoup_maxima *maxima, struct stoup_spot *ret)
{
	int messages = (int)keys->messages;
	uint64_t low = 0, high, end;

	/* Of a segment that the range ends in, the greatest key up to there is not known. */
	if (keys->last_key != INT64_MAX && key_ns >= keys->last_key) {
		*ret = (struct stoup_spot){keys->cnt - 1, keys->last_key, INT64_MAX};
		return;
	}
	/* From the last answer on, as long as it is near. */
	if (hint < keys->cnt && ret->key <= key_ns) {
		end = keys->cnt - hint > WALK_CAP ? hint + WALK_CAP : keys->cnt;
		if (walk(keys, key_ns, hint + 1, end, ret, messages) || end == keys->cnt)
			return;
	}
	ret->key = keys->first_key;
	if ((maxima->cnt == 0 || maxima->border != border) && !maxima_make(keys, border, maxima)) {
		walk(keys, key_ns, 0, keys->cnt, ret, messages);
		return;
	}
	for (high = maxima->cnt; low < high;) {
		uint64_t mid = low + (high - low) / 2;

		if (maxima->keys[mid] <= key_ns)
			low = mid + 1;
		else
			high = mid;
	}
	if (low > 0)
		ret->key = maxima->keys[low - 1];
	end = (low + 1) * STOUP_MAXIMA_STEP;
	walk(keys, key_ns, low * STOUP_MAXIMA_STEP, end < keys->cnt ? end : keys->cnt, ret,
		messages);
}
