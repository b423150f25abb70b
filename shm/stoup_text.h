/* SPDX-License-Identifier: Apache-2.0 */
/* stoup_text.h - texts where they lie: a pointer and a length, no copy, and no zero byte that anybody counts on.
 *
 *      record    [....][ E S H 4 0 0 0 0 ][....]          char[8], padded with NUL bytes
 *                       ^ptr    len 4
 *      message   [head][{"e":"trade","p":"61800.30"}]     all of its bytes
 *      document  [40]["61800.30"]                         a string's payload
 *
 *      struct stoup_text_view symbol = stoup_text_field(field, record);
 *      struct stoup_text_view line = stoup_text_make(message.bytes, message.len), part;
 *
 *      if (stoup_text_starts(symbol, stoup_text_cstr("ES")))
 *              ...
 *      while (stoup_text_split(&line, ',', &part))
 *              if (stoup_text_decimal(part, -2, &cents) == 0)
 *                      sum += cents;
 *
 * Invariant: no call reads outside of ptr[0..len): a view may end at the last byte of a page. An empty view (len 0)
 * may have any pointer, NULL as well; NULL with len 0 is what calls return that find no text. Bytes are bytes: NUL and
 * what is no UTF-8 are as good as any; "ASCII" calls change or skip ASCII alone.
 *
 * Concurrency: pure functions of bytes that nobody changes. A view holds nothing and needs no release: it is valid as
 * long as the span, lease or document that it was taken from.
 */
#ifndef STOUP_TEXT_H
#define STOUP_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct stoup_doc;

struct stoup_text_view {
	const char *ptr;
	size_t len;
};

/* ---- views ------------------------------------------------------------------------------------- */

/* All of bytes[0..len): of a message, for instance. */
struct stoup_text_view stoup_text_make(const void *bytes, size_t len);

/* A C string, without its NUL; NULL becomes no text. The one call that looks for a NUL. */
struct stoup_text_view stoup_text_cstr(const char *text);

/* A field of a record, up to its first NUL byte or its end; no text (NULL, 0) where the field is no CHAR. */
struct stoup_text_view stoup_text_field(const struct stoup_field *field, const void *record);

/* bytes[0..cap) up to the first NUL: a member char[N] of a struct. */
struct stoup_text_view stoup_text_padded(const char *bytes, size_t cap);

/* The text of a document's string; no text (NULL, 0) for a value of another type. */
struct stoup_text_view stoup_text_doc(const struct stoup_doc *value);

/* ---- comparing --------------------------------------------------------------------------------- */

/* The same bytes? 1 or 0. Compares 8 bytes at a time. */
int stoup_text_equal(struct stoup_text_view a, struct stoup_text_view b);

/* The same but for the case of ASCII letters? 1 or 0. */
int stoup_text_equal_case(struct stoup_text_view a, struct stoup_text_view b);

/* Order by bytes (as unsigned), a text before those that it begins: < 0, 0 or > 0. */
int stoup_text_compare(struct stoup_text_view a, struct stoup_text_view b);

/* Does it begin, or end, with `part`? 1 or 0; every text does with the empty one. */
int stoup_text_starts(struct stoup_text_view text, struct stoup_text_view part);
int stoup_text_ends(struct stoup_text_view text, struct stoup_text_view part);

/* A number that is the same for equal bytes, on every machine and within a SOVERSION; 64 bits well mixed. It is no
 * defence against texts that were made to collide. */
uint64_t stoup_text_hash(struct stoup_text_view text);

/* ---- parts ------------------------------------------------------------------------------------- */

/* Offset of the first place of `part` (0 for the empty one), or of a byte; -1: there is none. */
int64_t stoup_text_find(struct stoup_text_view text, struct stoup_text_view part);
int64_t stoup_text_find_byte(struct stoup_text_view text, char byte);

/* Bytes [from, to) of it; both are cut to its length, to below from is empty. */
struct stoup_text_view stoup_text_slice(struct stoup_text_view text, size_t from, size_t to);

/* The next part of *rest up to `byte`, which is taken off with it: 1; 0 when the last one was taken before. A text with
 * n such bytes has n + 1 parts, empty ones as well. *rest is NULL, 0 after the last one; *ret is untouched at 0. */
int stoup_text_split(struct stoup_text_view *rest, char byte, struct stoup_text_view *ret);

/* Without blanks (space, tab, CR, LF, VT, FF) at both ends. */
struct stoup_text_view stoup_text_trim(struct stoup_text_view text);

/* Copy into dst[0..cap), cut to cap - 1 bytes, and a NUL behind it (nothing where cap is 0). Returns text.len: it was
 * cut where that is cap or more. */
size_t stoup_text_copy(struct stoup_text_view text, char *dst, size_t cap);

/* ---- values ------------------------------------------------------------------------------------ */

/* All of the text as an integer: an optional sign and digits. 0; -EINVAL it is none, -ERANGE it does not fit. */
int stoup_text_i64(struct stoup_text_view text, int64_t *ret);
int stoup_text_u64(struct stoup_text_view text, uint64_t *ret);

/* All of the text as a decimal, value = *ret * 10^exp10 (-18 to 18), exactly: "61800.30" at -2 is 6180030. 0; -EINVAL
 * it is none, -EDOM it has digits below 10^exp10 that are not 0, -ERANGE it does not fit. Grammar: sign, digits, point,
 * digits, e, sign, digits, of which one digit must be there. */
int stoup_text_decimal(struct stoup_text_view text, int exp10, int64_t *ret);

/* The same with the exponent that it has: value = *ret * 10^*ret_exp10, without zeros at the end of *ret ("1.50" is 15
 * and -1, "1200" 12 and 2, zero 0 and 0), so that equal values are equal pairs. -ERANGE where the digits do not fit. */
int stoup_text_decimal_any(struct stoup_text_view text, int64_t *ret, int *ret_exp10);

/* The double nearest to a decimal of that grammar. 0; -EINVAL, or -ERANGE beyond double. */
int stoup_text_double(struct stoup_text_view text, double *ret);

/* All of the text as a time, in ns since 1970 UTC: digits by magnitude (seconds to nanoseconds), a date, or ISO 8601
 * ("2024-01-02T03:04:05.123456789Z", UTC where it has no offset). 0; -EINVAL it is none or does not exist, -ERANGE outside
 * of i64, -EDOM more than nine decimals. */
int stoup_text_time(struct stoup_text_view text, int64_t *ret_ns);

#ifdef __cplusplus
}
#endif

#endif
