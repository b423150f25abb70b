/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - see stoup_text.h.
 *
 * Words inside the bounds: a text of 8 bytes and more is read 8 at a time, and its end by one load that ends with the
 * text, so that some bytes are seen twice and none outside. Shorter ones are two loads of 4, or up to three bytes.
 *
 *      len 11   [0.......7]
 *                  [3.......10]
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include "shm/decimal.h"
#include "shm/doc_read.h"
#include "shm/stoup_text.h"
#include "shm/timestamp.h"

static uint64_t load64(const char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static uint32_t load32(const char *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* ---- views ------------------------------------------------------------------------------------- */

struct stoup_text_view stoup_text_make(const void *bytes, size_t len)
{
	return (struct stoup_text_view){bytes, len};
}

struct stoup_text_view stoup_text_cstr(const char *text)
{
	return (struct stoup_text_view){text, text ? strlen(text) : 0};
}

struct stoup_text_view stoup_text_padded(const char *bytes, size_t cap)
{
	const char *end = cap ? memchr(bytes, 0, cap) : NULL;

	return (struct stoup_text_view){bytes, end ? (size_t)(end - bytes) : cap};
}

struct stoup_text_view stoup_text_field(const struct stoup_field *field, const void *record)
{
	if (!field || !record || field->type != STOUP_TYPE_CHAR)
		return (struct stoup_text_view){NULL, 0};
	return stoup_text_padded((const char *)record + field->off, field->cnt);
}

struct stoup_text_view stoup_text_doc(const struct stoup_doc *value)
{
	if (!value || value->type != STOUP_DOC_STRING)
		return (struct stoup_text_view){NULL, 0};
	return (struct stoup_text_view){(const char *)value->payload, value->payload_len};
}

/* ---- comparing --------------------------------------------------------------------------------- */

static int bytes_equal(const char *a, const char *b, size_t len)
{
	uint64_t differ = 0;

	if (len >= 8) {
		for (size_t i = 0; i + 8 < len; i += 8)
			if (load64(a + i) != load64(b + i))
				return 0;
		return load64(a + len - 8) == load64(b + len - 8);
	}
	if (len >= 4)
		return ((load32(a) ^ load32(b)) | (load32(a + len - 4) ^ load32(b + len - 4))) == 0;
	for (size_t i = 0; i < len; i++)
		differ |= (uint64_t)(a[i] ^ b[i]);
	return differ == 0;
}

int stoup_text_equal(struct stoup_text_view a, struct stoup_text_view b)
{
	return a.len == b.len && bytes_equal(a.ptr, b.ptr, a.len);
}

static unsigned char lower(char c)
{
	unsigned char byte = (unsigned char)c;

	return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte + 32) : byte;
}

int stoup_text_equal_case(struct stoup_text_view a, struct stoup_text_view b)
{
	if (a.len != b.len)
		return 0;
	for (size_t i = 0; i < a.len; i++)
		if (lower(a.ptr[i]) != lower(b.ptr[i]))
			return 0;
	return 1;
}

int stoup_text_compare(struct stoup_text_view a, struct stoup_text_view b)
{
	size_t len = a.len < b.len ? a.len : b.len;
	int order = len ? memcmp(a.ptr, b.ptr, len) : 0;

	return order ? order : (a.len > b.len) - (a.len < b.len);
}

int stoup_text_starts(struct stoup_text_view text, struct stoup_text_view part)
{
	return part.len <= text.len && bytes_equal(text.ptr, part.ptr, part.len);
}

int stoup_text_ends(struct stoup_text_view text, struct stoup_text_view part)
{
	/* Nothing is added to a pointer that may be NULL. */
	return part.len == 0 ||
	       (part.len <= text.len &&
		       bytes_equal(text.ptr + (text.len - part.len), part.ptr, part.len));
}

/* An odd number whose bits look random: the golden ratio's. */
#define HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15)

static uint64_t hash_add(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * HASH_FACTOR;
	return hash ^ hash >> 29;
}

uint64_t stoup_text_hash(struct stoup_text_view text)
{
	uint64_t hash = (text.len + 1) * HASH_FACTOR, word = 0;

	if (text.len >= 8) {
		for (size_t i = 0; i + 8 < text.len; i += 8)
			hash = hash_add(hash, load64(text.ptr + i));
		word = load64(text.ptr + text.len - 8);
	} else if (text.len >= 4) {
		word = load32(text.ptr) | (uint64_t)load32(text.ptr + text.len - 4) << 32;
	} else {
		for (size_t i = 0; i < text.len; i++)
			word |= (uint64_t)(unsigned char)text.ptr[i] << (8 * i);
	}
	hash = hash_add(hash, word);
	return hash_add(hash, hash >> 32);
}

/* ---- parts ------------------------------------------------------------------------------------- */

int64_t stoup_text_find(struct stoup_text_view text, struct stoup_text_view part)
{
	const char *at;

	if (part.len == 0)
		return 0;
	at = part.len <= text.len ? memmem(text.ptr, text.len, part.ptr, part.len) : NULL;
	return at ? at - text.ptr : -1;
}

int64_t stoup_text_find_byte(struct stoup_text_view text, char byte)
{
	const char *at = text.len ? memchr(text.ptr, (unsigned char)byte, text.len) : NULL;

	return at ? at - text.ptr : -1;
}

struct stoup_text_view stoup_text_slice(struct stoup_text_view text, size_t from, size_t to)
{
	to = to < text.len ? to : text.len;
	from = from < to ? from : to;
	return (struct stoup_text_view){from ? text.ptr + from : text.ptr, to - from};
}

int stoup_text_split(struct stoup_text_view *rest, char byte, struct stoup_text_view *ret)
{
	struct stoup_text_view text = *rest;
	int64_t at = stoup_text_find_byte(text, byte);

	if (!text.ptr)
		return 0;
	if (at < 0) {
		*rest = (struct stoup_text_view){NULL, 0};
		*ret = text;
		return 1;
	}
	*rest = (struct stoup_text_view){text.ptr + at + 1, text.len - (size_t)at - 1};
	*ret = (struct stoup_text_view){text.ptr, (size_t)at};
	return 1;
}

static int is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct stoup_text_view stoup_text_trim(struct stoup_text_view text)
{
	size_t from = 0, to = text.len;

	while (from < to && is_blank(text.ptr[from]))
		from++;
	while (to > from && is_blank(text.ptr[to - 1]))
		to--;
	return stoup_text_slice(text, from, to);
}

size_t stoup_text_copy(struct stoup_text_view text, char *dst, size_t cap)
{
	size_t len = text.len < cap ? text.len : cap - 1;

	if (cap == 0)
		return text.len;
	if (len)
		memcpy(dst, text.ptr, len);
	dst[len] = 0;
	return text.len;
}

/* ---- values ------------------------------------------------------------------------------------ */

/* The digits of a text behind its sign: 0 and their value; -EINVAL, -ERANGE. */
static int digits(struct stoup_text_view text, int *is_negative, uint64_t *ret)
{
	size_t at = text.len > 0 && (text.ptr[0] == '+' || text.ptr[0] == '-') ? 1 : 0;
	uint64_t value = 0;
	int overflows = 0;

	*is_negative = at && text.ptr[0] == '-';
	if (at == text.len)
		return -EINVAL;
	for (; at < text.len; at++) {
		unsigned digit = (unsigned)(unsigned char)text.ptr[at] - '0';

		if (digit > 9)
			return -EINVAL;
		overflows |= __builtin_mul_overflow(value, 10, &value) ||
		             __builtin_add_overflow(value, digit, &value);
	}
	*ret = value;
	return overflows ? -ERANGE : 0;
}

/* -magnitude, which reaches to INT64_MIN. */
static int signed_of(uint64_t magnitude, int is_negative, int64_t *ret)
{
	if (magnitude > (uint64_t)INT64_MAX + (is_negative ? 1 : 0))
		return -ERANGE;
	*ret = is_negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
	return 0;
}

int stoup_text_i64(struct stoup_text_view text, int64_t *ret)
{
	uint64_t value = 0;
	int is_negative, rc = digits(text, &is_negative, &value);

	return rc ? rc : signed_of(value, is_negative, ret);
}

int stoup_text_u64(struct stoup_text_view text, uint64_t *ret)
{
	uint64_t value = 0;
	int is_negative, rc = digits(text, &is_negative, &value);

	if (rc == 0 && is_negative && value > 0)
		return -ERANGE;
	if (rc == 0)
		*ret = value;
	return rc;
}

int stoup_text_decimal(struct stoup_text_view text, int exp10, int64_t *ret)
{
	if (exp10 < -18 || exp10 > 18 || text.len == 0)
		return -EINVAL;
	return stoup_decimal_parse(text.ptr, text.len, exp10, ret);
}

/* The digits before an exponent, zeros at their end left to the exponent: 0 or -ERANGE. */
static int mantissa(const char *at, const char *end, uint64_t *ret, int64_t *ret_exp10)
{
	uint64_t value = 0, shift = 0;
	int64_t decimals = 0;
	int in_decimals = 0;

	for (; at < end; at++) {
		if (*at == '.') {
			in_decimals = 1;
			continue;
		}
		decimals += in_decimals;
		shift++;
		if (*at == '0')
			continue;
		/* Zeros in front of the first digit that counts shift nothing. */
		for (; shift > 0 && value > 0; shift--)
			if (__builtin_mul_overflow(value, 10, &value))
				return -ERANGE;
		shift = 0;
		if (__builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
			return -ERANGE;
	}
	*ret = value;
	*ret_exp10 = (int64_t)shift - decimals;
	return 0;
}

int stoup_text_decimal_any(struct stoup_text_view text, int64_t *ret, int *ret_exp10)
{
	const char *at = text.ptr, *end, *tail;
	int64_t exp10 = 0, written = 0, value;
	uint64_t magnitude;
	int is_negative;

	if (text.len == 0 || !stoup_doc_decimal_is(text.ptr, text.len))
		return -EINVAL;
	end = text.ptr + text.len;
	is_negative = *at == '-';
	at += *at == '-' || *at == '+';
	for (tail = at; tail < end && *tail != 'e' && *tail != 'E';)
		tail++;
	if (mantissa(at, tail, &magnitude, &exp10) < 0)
		return -ERANGE;
	if (magnitude == 0) {
		*ret = 0;
		*ret_exp10 = 0;
		return 0;
	}
	if (tail < end &&
		stoup_text_i64(stoup_text_make(tail + 1, (size_t)(end - tail - 1)), &written) < 0)
		return -ERANGE;
	if (__builtin_add_overflow(exp10, written, &exp10) || exp10 < INT_MIN || exp10 > INT_MAX ||
		signed_of(magnitude, is_negative, &value) < 0)
		return -ERANGE;
	*ret = value;
	*ret_exp10 = (int)exp10;
	return 0;
}

int stoup_text_double(struct stoup_text_view text, double *ret)
{
	double value;

	if (text.len == 0 || !stoup_doc_decimal_is(text.ptr, text.len))
		return -EINVAL;
	value = stoup_doc_nearest(text.ptr, text.len);
	if (isinf(value))
		return -ERANGE;
	*ret = value;
	return 0;
}

int stoup_text_time(struct stoup_text_view text, int64_t *ret_ns)
{
	const struct stoup_timestamp_format format = {.kind = STOUP_TIMESTAMP_AUTO};
	const char *why;

	if (text.len == 0)
		return -EINVAL;
	return stoup_timestamp_parse(&format, text.ptr, text.len, ret_ns, &why);
}
