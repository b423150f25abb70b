/* SPDX-License-Identifier: Apache-2.0 */
/* doc_path.h - a compiled path, and how a key of a document is compared with one of its names.
 *
 *      steps    | "data" 4 bytes, word, mask | "b" | [0] | ... and behind the steps the names' bytes
 *
 * A name's first eight bytes are kept as a word, so that a key of up to eight bytes is compared by its
 * length and one load; what the key has behind its end is masked out.
 *
 * Invariant: word == word & mask; mask has 0xff in the first min(len, 8) bytes.
 */
#ifndef STOUP_SHM_DOC_PATH_H
#define STOUP_SHM_DOC_PATH_H

#include "shm/doc_read.h"

/* One step: a name, or (name NULL) an element. */
struct stoup_doc_step {
	uint64_t word, mask;
	const char *name;
	uint32_t len;
	uint32_t idx;
};

struct stoup_doc_path {
	uint32_t step_cnt;
	uint32_t zero;
	struct stoup_doc_step steps[];
};

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

/* Are bytes[0..len) those that word, mask and text stand for? `end` is the end of the memory that may be
 * read, which is not below bytes + len: eight bytes are loaded at once where it is that far away. */
static inline int stoup_doc_same(const uint8_t *bytes, const uint8_t *end, size_t len,
	uint64_t word, uint64_t mask, const char *text)
{
	uint64_t found = end - bytes >= 8 ? stoup_doc_load64(bytes) : stoup_doc_word(bytes, len);

	return ((found ^ word) & mask) == 0 &&
	       (len <= 8 || memcmp(bytes + 8, text + 8, len - 8) == 0);
}

/* Is `key`, which lies before `end`, the name of this step? */
static inline int stoup_doc_step_is(
	const struct stoup_doc_step *step, const struct stoup_doc *key, const uint8_t *end)
{
	return key->payload_len == step->len &&
	       stoup_doc_same(key->payload, end, step->len, step->word, step->mask, step->name);
}

#endif
