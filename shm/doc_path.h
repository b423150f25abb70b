/* SPDX-License-Identifier: Apache-2.0 */
/* doc_path.h - a compiled path, and how a key of a document is compared with one of its names.
 *
 *      steps    | "data" 4 bytes | "b" | [0] | ... and behind the steps the names' bytes
 *
 *      a member, as it mostly is:    [tag][key, 0 to 6 bytes][tag][value ...]
 *                                    |<------- eight bytes: word ------->|
 *
 * Most keys are so short that one load has the key's tag, the key, and the value's tag: a step's name is
 * compared with all of its tag and key at once, what is behind them masked out. As the tag of a string below
 * 16 bytes is its length times eight, it is the number of bits by which the value's tag is shifted, too. All
 * else is read tag by tag.
 *
 * Invariant: word == word & mask; both ways of reading a member see the same.
 */
#ifndef STOUP_SHM_DOC_PATH_H
#define STOUP_SHM_DOC_PATH_H

#include "shm/doc_read.h"

/* One step: a name, or (name NULL) an element. */
struct stoup_doc_step {
	uint64_t word, mask; /* of a name of up to SHORT_CAP bytes: its tag and it; else no key's */
	uint64_t first, first_mask; /* the name's first eight bytes */
	const char *name;
	uint32_t len;
	uint32_t idx;
};

struct stoup_doc_path {
	uint32_t step_cnt;
	uint32_t zero;
	struct stoup_doc_step steps[];
};

#define STOUP_DOC_SHORT_CAP 6u    /* bytes of a key that fits eight bytes with both tags */
#define STOUP_DOC_NO_KEY    0xffu /* is no tag of such a key */

/* The first eight bytes of at[0..len), zero where it is shorter. */
static inline uint64_t stoup_doc_word(const void *at, size_t len)
{
	uint64_t word = 0;

	memcpy(&word, at, len < sizeof(word) ? len : sizeof(word));
	return word;
}

static inline uint64_t stoup_doc_mask(size_t len)
{
	return len < 8 ? (UINT64_C(1) << (8 * len)) - 1 : UINT64_MAX;
}

static inline struct stoup_doc_step stoup_doc_step_of(const char *name, size_t len)
{
	struct stoup_doc_step step = {.word = STOUP_DOC_NO_KEY,
		.mask = STOUP_DOC_NO_KEY,
		.first = stoup_doc_word(name, len),
		.first_mask = stoup_doc_mask(len),
		.name = name,
		.len = (uint32_t)len};

	if (len <= STOUP_DOC_SHORT_CAP) {
		step.word = step.first << 8 | len << 3;
		step.mask = stoup_doc_mask(len + 1);
	}
	return step;
}

/* Are bytes[0..len) the text whose first eight bytes are `first`? `end` is the end of the memory that may be
 * read, not below bytes + len: eight bytes are loaded at once where it is that far away. */
static inline int stoup_doc_same(const uint8_t *bytes, const uint8_t *end, size_t len,
	uint64_t first, uint64_t mask, const char *text)
{
	uint64_t found = end - bytes >= 8 ? stoup_doc_load64(bytes) : stoup_doc_word(bytes, len);

	return ((found ^ first) & mask) == 0 &&
	       (len <= 8 || memcmp(bytes + 8, text + 8, len - 8) == 0);
}

/* A member of an object whose key is short, as far as it takes to pass over it. */
struct stoup_doc_short {
	uint64_t word;     /* its first eight bytes */
	uint32_t head_len; /* bytes in front of the value's payload */
	uint32_t tag;      /* the value's */
};

/* Read the member at `at` if its key is short: its length, which may reach beyond its object; 0 where it must
 * be read by stoup_doc_long. `limit` ends the memory that may be read. */
__attribute__((always_inline)) static inline size_t stoup_doc_short(
	const uint8_t *at, const uint8_t *limit, struct stoup_doc_short *ret)
{
	uint32_t key, tag, head_len;
	uint64_t word;

	if (limit - at <= 8)
		return 0;
	/* Loads that do not wait for each other: what decides is how long it takes from one member to the next. */
	word = stoup_doc_load64(at);
	key = at[0];
	tag = stoup_doc_load64(at + 1) >> (key & 63) & 0xff;
	head_len = 2 + (key >> 3);
	if (key > STOUP_DOC_SHORT_CAP << 3 || (key & 7) != STOUP_DOC_STRING)
		return 0;
	if (tag >= 0x80) { /* a value of 16 bytes or more: up to 2,047 */
		if (at[head_len] >= 0x80)
			return 0;
		tag = (tag & 0x7f) | (uint32_t)at[head_len++] << 7;
	}
	*ret = (struct stoup_doc_short){word, head_len, tag};
	return head_len + (tag >> 3);
}

/* A value on the way, in parts that stay in registers: struct stoup_doc is for those who keep it. */
struct stoup_doc_spot {
	const uint8_t *at; /* its tag */
	const uint8_t *payload;
	uint32_t len, type;
};

static inline struct stoup_doc_spot stoup_doc_spot_of(const struct stoup_doc *doc)
{
	return (struct stoup_doc_spot){
		doc->payload - doc->tag_len, doc->payload, doc->payload_len, doc->type};
}

static inline struct stoup_doc stoup_doc_of_spot(struct stoup_doc_spot spot)
{
	return (struct stoup_doc){.payload = spot.payload,
		.payload_len = spot.len,
		.type = (uint8_t)spot.type,
		.tag_len = (uint8_t)(spot.payload - spot.at)};
}

static inline struct stoup_doc_spot stoup_doc_short_value(
	struct stoup_doc_short member, const uint8_t *at)
{
	return (struct stoup_doc_spot){at + 1 + ((member.word & 0xff) >> 3), at + member.head_len,
		member.tag >> 3, member.tag & 7};
}

/* Read any member, tag by tag: its length, 0 where it does not lie inside its object. */
static inline size_t stoup_doc_long(
	const uint8_t *at, const uint8_t *end, struct stoup_doc *key, struct stoup_doc *value)
{
	if (stoup_doc_read(at, end, key) || key->type != STOUP_DOC_STRING ||
		stoup_doc_read(stoup_doc_end(key), end, value))
		return 0;
	return (size_t)(stoup_doc_end(value) - at);
}

/* Is a key the name of this step? */
static inline int stoup_doc_key_is(
	const struct stoup_doc *key, const struct stoup_doc_step *step, const uint8_t *limit)
{
	return key->payload_len == step->len && stoup_doc_same(key->payload, limit, step->len,
							step->first, step->first_mask, step->name);
}

/* The member of an object that a step names, where its key is not short, or `at` near the end of the memory:
 * its length, negated where it is another one; 0 where it does not lie inside its object. */
int64_t stoup_doc_member_long(const uint8_t *at, const uint8_t *end, const uint8_t *limit,
	const struct stoup_doc_step *step, struct stoup_doc *ret);

/* The member of an object that a step names: 1, 0 or -EBADMSG. `limit` ends the memory that may be read. */
__attribute__((always_inline)) static inline int stoup_doc_member(struct stoup_doc_spot object,
	const struct stoup_doc_step *step, const uint8_t *limit, struct stoup_doc_spot *ret)
{
	const uint8_t *at = object.payload, *end = at + object.len;
	uint64_t word = step->word, mask = step->mask;
	size_t len;

	for (; at < end; at += len) {
		struct stoup_doc_short brief;
		struct stoup_doc value = {0};
		int64_t found;

		len = stoup_doc_short(at, limit, &brief);
		if (len > 0) {
			if (len > (size_t)(end - at))
				return -EBADMSG;
			if ((brief.word & mask) != word)
				continue;
			*ret = stoup_doc_short_value(brief, at);
			return 1;
		}
		found = stoup_doc_member_long(at, end, limit, step, &value);
		if (found == 0)
			return -EBADMSG;
		if (found > 0) {
			*ret = stoup_doc_spot_of(&value);
			return 1;
		}
		len = (size_t)-found;
	}
	return 0;
}

/* One step on from a value: 1, 0 or -EBADMSG. */
__attribute__((always_inline)) static inline int stoup_doc_step_take(struct stoup_doc_spot from,
	const struct stoup_doc_step *step, const uint8_t *limit, struct stoup_doc_spot *ret)
{
	struct stoup_doc array, element;
	int rc;

	if (step->name)
		return from.type == STOUP_DOC_OBJECT ? stoup_doc_member(from, step, limit, ret) : 0;
	array = stoup_doc_of_spot(from);
	rc = stoup_doc_at(&array, step->idx, &element);
	if (rc == 1)
		*ret = stoup_doc_spot_of(&element);
	return rc;
}

#endif
