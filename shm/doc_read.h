/* SPDX-License-Identifier: Apache-2.0 */
/* doc_read.h - the step that every reader of documents is made of: one tag, within what is left.
 *
 *      at -> [varint: length << 3 | type][payload ...]        end
 *                                        ^payload  ^payload + length <= end, or -EBADMSG
 *
 * Invariant: a view that was filled lies inside at..end. A varint may be longer than it must be (as the
 * reference reads it; stoup_doc_valid refuses it), at most five bytes, its value below 2^32.
 */
#ifndef STOUP_SHM_DOC_READ_H
#define STOUP_SHM_DOC_READ_H

#include <errno.h>
#include <string.h>
#include "shm/stoup_doc.h"

#define STOUP_DOC_TAG_CAP 5 /* bytes of a varint below 2^32 */

/* A tag of any length: its bytes, 0 where there is none within `left`. */
static inline uint32_t stoup_doc_read_tag(const uint8_t *at, size_t left, uint32_t *ret)
{
	uint64_t wide = 0;
	uint32_t len = 0, byte;

	do {
		if (len == left || len == STOUP_DOC_TAG_CAP)
			return 0;
		byte = at[len];
		wide |= (uint64_t)(byte & 0x7f) << (7 * len);
		len++;
	} while (byte >= 0x80);
	*ret = (uint32_t)wide;
	return wide > UINT32_MAX ? 0 : len;
}

/* The value at `at`: 0, or -EBADMSG where it does not lie inside at..end. */
static inline int stoup_doc_read(const uint8_t *at, const uint8_t *end, struct stoup_doc *ret)
{
	size_t left = (size_t)(end - at);
	uint32_t tag, tag_len = 1;

	if (left == 0)
		return -EBADMSG;
	tag = at[0];
	if (tag >= 0x80) {
		if (left > 1 && at[1] < 0x80) { /* of 16 to 2,047 bytes */
			tag = (tag & 0x7f) | (uint32_t)at[1] << 7;
			tag_len = 2;
		} else {
			tag_len = stoup_doc_read_tag(at, left, &tag);
			if (tag_len == 0)
				return -EBADMSG;
		}
	}
	if (tag >> 3 > left - tag_len)
		return -EBADMSG;
	ret->payload = at + tag_len;
	ret->payload_len = tag >> 3;
	ret->type = tag & 7;
	ret->tag_len = (uint8_t)tag_len;
	ret->zero[0] = ret->zero[1] = 0;
	return 0;
}

static inline const uint8_t *stoup_doc_end(const struct stoup_doc *doc)
{
	return doc->payload + doc->payload_len;
}

static inline uint64_t stoup_doc_load64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline int32_t stoup_doc_load32(const uint8_t *at)
{
	int32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* ---- numbers (doc_number.c) ------------------------------------------------------------------- */

/* A number in the form that it is stored in. */
enum stoup_doc_form {
	STOUP_DOC_FORM_NONE, /* no number, or a malformed one */
	STOUP_DOC_FORM_I64,  /* i64 */
	STOUP_DOC_FORM_U64,  /* u64, above INT64_MAX */
	STOUP_DOC_FORM_F64,
	STOUP_DOC_FORM_TEXT, /* payload + 1, payload_len - 1 */
};

struct stoup_doc_number {
	enum stoup_doc_form form;
	int64_t i64;
	uint64_t u64;
	double f64;
	const char *text;
	size_t text_len;
};

/* The number that a value is; form NONE where it is none. The text is not looked at. */
void stoup_doc_number(const struct stoup_doc *value, struct stoup_doc_number *ret);

/* The decimal text of a number: `room` has STOUP_DOC_NUMBER_CAP bytes for those that are not text
 * already. Doubles have a point or an exponent, and are printed as the shortest that reads back. */
#define STOUP_DOC_NUMBER_CAP 64
void stoup_doc_number_text(struct stoup_doc_number *number, char *room);

/* Is text[0..len) a number by the grammar of JSON (RFC 8259)? */
int stoup_doc_number_is(const char *text, size_t len);

/* Is it a decimal, by the wider grammar of shm/decimal.h: also +1, .5, 007? */
int stoup_doc_decimal_is(const char *text, size_t len);

/* Compare two decimals of that grammar by value. */
int stoup_doc_decimal_compare(const char *a, size_t a_len, const char *b, size_t b_len);

/* The double nearest to a decimal of that grammar, ties to even; infinite beyond the range. Independent of
 * the locale. */
double stoup_doc_nearest(const char *text, size_t len);

/* The same for floats: rounded once, which by way of a double it would not be. */
float stoup_doc_nearest_f32(const char *text, size_t len);

/* Bytes of the UTF-8 sequence at `at`, 0 where there is none that is whole and allowed (no surrogates,
 * nothing overlong, nothing above U+10FFFF). */
static inline size_t stoup_doc_utf8(const uint8_t *at, const uint8_t *end)
{
	size_t left = (size_t)(end - at), len;

	if (at[0] < 0x80)
		return 1;
	len = at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
	if (len == 0 || len > left)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0) ||
		(at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90))
		return 0;
	return len;
}

#endif
