/* SPDX-License-Identifier: Apache-2.0 */
/* doc_valid.c - a document looked at as a whole (see stoup_doc.h).
 *
 *      stack of ends:   |---- document ----------------------------|
 *                            |-- data ------------|
 *                                |- b -|            ^ at: the next value, within the innermost
 *
 * Invariant: what passes is read by every call of stoup_doc.h without -EBADMSG.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include "shm/doc_read.h"

struct level {
	const uint8_t *end;
	int keyed;
	int want_value; /* a key was read, its value comes */
};

/* The fewest bytes that a tag takes. */
static uint32_t tag_len(uint64_t tag)
{
	uint32_t len = 1;

	while (tag >= 0x80) {
		tag >>= 7;
		len++;
	}
	return len;
}

static int utf8_valid(const uint8_t *at, const uint8_t *end)
{
	while (at < end) {
		size_t len;

		if (end - at >= 8 && !(stoup_doc_load64(at) & UINT64_C(0x8080808080808080))) {
			at += 8;
			continue;
		}
		len = stoup_doc_utf8(at, end);
		if (len == 0)
			return 0;
		at += len;
	}
	return 1;
}

static const char *extended_fault(const struct stoup_doc *value)
{
	const uint8_t *payload = value->payload;
	uint32_t len = value->payload_len;
	struct stoup_doc_number number;

	if (len == 0)
		return "an extended value without its kind";
	stoup_doc_number(value, &number);
	switch (payload[0]) {
	case STOUP_DOC_EXTENDED_I64:
		if (len != 9)
			return "an integer of 64 bits that has not 8 bytes";
		return number.i64 >= INT32_MIN && number.i64 <= INT32_MAX
		               ? "an integer of 64 bits that fits 32"
		               : NULL;
	case STOUP_DOC_EXTENDED_U64:
		if (len != 9)
			return "an integer of 64 bits that has not 8 bytes";
		return number.form == STOUP_DOC_FORM_I64
		               ? "an unsigned integer that fits a signed one"
		               : NULL;
	case STOUP_DOC_EXTENDED_DECIMAL:
		return stoup_doc_number_is((const char *)payload + 1, len - 1)
		               ? NULL
		               : "a decimal that is no number of JSON";
	default:
		return "an extended value of an unknown kind";
	}
}

/* What is wrong with a value's payload, or NULL. Containers are looked into by the caller. */
static const char *payload_fault(const struct stoup_doc *value)
{
	uint32_t len = value->payload_len;
	double number;

	switch (value->type) {
	case STOUP_DOC_STRING:
		return utf8_valid(value->payload, stoup_doc_end(value))
		               ? NULL
		               : "a string that is not UTF-8";
	case STOUP_DOC_INT:
		return len == 4 ? NULL : "an int that has not 4 bytes";
	case STOUP_DOC_DOUBLE:
		if (len != 8)
			return "a double that has not 8 bytes";
		memcpy(&number, value->payload, sizeof(number));
		return isfinite(number) ? NULL : "a double that is no number";
	case STOUP_DOC_ATOM:
		if (len > 1)
			return "null, false or true of more than one byte";
		return len == 0 || value->payload[0] <= 2
		               ? NULL
		               : "an atom that is no null, false or true";
	case STOUP_DOC_EXTENDED:
		return extended_fault(value);
	default:
		return NULL;
	}
}

/* What is wrong with one value that stands in `level`, or NULL. */
static const char *value_fault(const uint8_t *at, struct level *level, struct stoup_doc *value)
{
	if (stoup_doc_read(at, level->end, value))
		return "a length that reaches beyond its container, or a tag that is none";
	if (value->tag_len != tag_len((uint64_t)value->payload_len << 3 | value->type))
		return "a tag of more bytes than it needs";
	if (level->keyed && !level->want_value) {
		if (value->type != STOUP_DOC_STRING)
			return "a key that is no string";
		if (stoup_doc_end(value) == level->end)
			return "a key without a value";
	}
	level->want_value = level->keyed && !level->want_value;
	return payload_fault(value);
}

int stoup_doc_valid(const void *bytes, size_t len, struct stoup_error *err)
{
	struct level levels[STOUP_DOC_DEPTH_CAP + 1];
	const uint8_t *start = bytes, *at = start;
	const char *fault = NULL;
	struct stoup_doc value;
	uint32_t depth = 0;

	if (len == 0 || len > STOUP_DOC_LEN_CAP)
		return stoup_error_set(err, -EBADMSG,
			len ? "the document has %zu bytes, at most %u are allowed"
			    : "the document is empty",
			len, STOUP_DOC_LEN_CAP);
	levels[0] = (struct level){.end = start + len};
	do {
		fault = value_fault(at, &levels[depth], &value);
		if (fault)
			break;
		if (value.type == STOUP_DOC_ARRAY || value.type == STOUP_DOC_OBJECT) {
			if (depth == STOUP_DOC_DEPTH_CAP) {
				fault = "a container too deep inside others";
				break;
			}
			at = value.payload;
			levels[++depth] = (struct level){.end = stoup_doc_end(&value),
				.keyed = value.type == STOUP_DOC_OBJECT};
		} else {
			at = stoup_doc_end(&value);
		}
		while (depth > 0 && at == levels[depth].end)
			depth--;
	} while (depth > 0);
	if (!fault && at != start + len)
		fault = "bytes behind the document";
	if (!fault)
		return 0;
	return stoup_error_set(
		err, -EBADMSG, "offset %zu of the document: %s", (size_t)(at - start), fault);
}
