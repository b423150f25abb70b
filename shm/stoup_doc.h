/* SPDX-License-Identifier: Apache-2.0 */
/* stoup_doc.h - JSON documents in a tagged binary form (BIPF), read where they lie.
 *
 * A message of a series of schema `bipf` is one document: a value, that is a tag and a payload. The tag
 * is a varint of length << 3 | type, so any value is passed over without being looked into, and a path
 * such as data.p is found by skipping: nothing is parsed, copied or allocated.
 *
 *      {"e":"trade","p":"61800.30"}
 *
 *      B5 01 | 08 65 | 28 74 72 61 64 65 | 08 70 | 40 36 31 38 30 30 2E 33 30
 *      ^       ^key    ^value              ^key    ^value
 *      object of 22 bytes                          string of 8 bytes
 *
 *      struct stoup_doc doc, price;                        // views: pointer and length
 *      int64_t ticks;
 *
 *      stoup_doc_path_create("data.p", &path, &err);       // once
 *      for (each message) {
 *              if (stoup_doc_open(bytes, len, &doc) < 0)
 *                      ...                                 // not a document
 *              if (stoup_doc_seek(&doc, path, &price) == 1 &&
 *                  stoup_doc_decimal(&price, -2, &ticks) == 0)
 *                      sum += ticks;                       // "61800.30" is 6180030, exactly
 *      }
 *
 * Invariant: no call reads outside the bytes that stoup_doc_open was given, whatever they are; each
 * length is compared with what contains it. Bytes that are no document are -EBADMSG (or "not found"
 * where they were not looked at): a result, never a crash. stoup_doc_valid looks at all of them once.
 *
 * Numbers are exact: integers of 32 bits are an int, those of 64 bits an extended value, decimals a
 * double where that loses nothing, and else the text of the decimal. A number's value is the decimal
 * that its JSON had; calls below take all four forms alike. docs/document-format.md has every byte.
 *
 * Concurrency: pure functions of bytes that nobody changes; views hold nothing and need no release. A
 * path and a filter are immutable once made, and may be used by all threads.
 *
 * Limits: STOUP_DOC_DEPTH_CAP containers inside each other (validation, printing: they keep a stack),
 * STOUP_DOC_LEN_CAP bytes (the tag's varint then has at most five).
 */
#ifndef STOUP_DOC_H
#define STOUP_DOC_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Types of a value: the low three bits of its tag. */
#define STOUP_DOC_STRING   0u /* UTF-8 */
#define STOUP_DOC_BUFFER   1u /* bytes; never made of JSON */
#define STOUP_DOC_INT      2u /* i32 */
#define STOUP_DOC_DOUBLE   3u /* f64 */
#define STOUP_DOC_ARRAY    4u /* values, one after the other */
#define STOUP_DOC_OBJECT   5u /* key, value, key, value ...; a key is a string */
#define STOUP_DOC_ATOM     6u /* empty: null; one byte: 0 false, 1 true, 2 undefined */
#define STOUP_DOC_EXTENDED 7u /* one byte STOUP_DOC_EXTENDED_*, and what it says */

#define STOUP_DOC_EXTENDED_I64     1u /* an integer that is no i32 */
#define STOUP_DOC_EXTENDED_U64     2u /* an integer that is no i64 */
#define STOUP_DOC_EXTENDED_DECIMAL 3u /* the text of a JSON number that is none of the others */

#define STOUP_DOC_DEPTH_CAP 128
#define STOUP_DOC_LEN_CAP   (1u << 28) /* bytes of a document: length << 3 must fit 32 bits */

/* One value inside a document: a view that is valid as long as the bytes are. */
struct stoup_doc {
	const uint8_t *payload; /* behind the tag */
	uint32_t payload_len;
	uint8_t type;    /* STOUP_DOC_* */
	uint8_t tag_len; /* the value's bytes begin at payload - tag_len */
	uint8_t zero[2];
};

/* ---- opening and checking -------------------------------------------------------------------- */

/* See the document that fills bytes[0..len) exactly: only its tag is looked at. 0 or -EBADMSG. */
int stoup_doc_open(const void *bytes, size_t len, struct stoup_doc *ret);

/* Look at all of it: tags of the fewest bytes, lengths within what contains them, keys that are strings,
 * UTF-8, lengths that fit the types, finite doubles, numbers of JSON, depth. 0, or -EBADMSG with the offset and what is wrong there. */
int stoup_doc_valid(const void *bytes, size_t len, struct stoup_error *err);

/* ---- members and elements -------------------------------------------------------------------- */

/* The value of a key of an object, the first where the key is there twice: 1; 0 there is none, or
 * `object` is none; -EBADMSG. */
int stoup_doc_get(
	const struct stoup_doc *object, const char *key, size_t key_len, struct stoup_doc *ret);

/* The idx-th element of an array, from 0: 1; 0 there is none, or `array` is none; -EBADMSG. Skips those
 * before it. */
int stoup_doc_at(const struct stoup_doc *array, uint32_t idx, struct stoup_doc *ret);

/* A walk over the elements of an array or the members of an object; plain data, may be copied. */
struct stoup_doc_iter {
	const uint8_t *at, *end;
	uint32_t keyed; /* an object */
	uint32_t zero;
};

/* Begin a walk. 0; -EINVAL for a value that is no array and no object. */
int stoup_doc_iterate(const struct stoup_doc *container, struct stoup_doc_iter *ret);

/* The next one: 1; 0 at the end; -EBADMSG. `key` may be NULL; of an array it stays untouched. */
int stoup_doc_next(struct stoup_doc_iter *iter, struct stoup_doc *key, struct stoup_doc *value);

/* ---- paths ------------------------------------------------------------------------------------ */

struct stoup_doc_path;

/* Compile a path: names with dots between them and [N] for elements, such as data.b[0][1]; a backslash
 * takes the next character as it is (a\.b is one name); a dot alone is the document itself. 0, -EINVAL
 * with text, or -ENOMEM. Ended by stoup_doc_path_destroy (NULL is allowed). */
int stoup_doc_path_create(const char *text, struct stoup_doc_path **ret, struct stoup_error *err);
void stoup_doc_path_destroy(struct stoup_doc_path *path);

/* Follow a path: 1 found, 0 not there, -EBADMSG. */
int stoup_doc_seek(
	const struct stoup_doc *doc, const struct stoup_doc_path *path, struct stoup_doc *ret);

/* ---- values ----------------------------------------------------------------------------------- */

/* Text of a string, without a NUL at its end: 0, or -EINVAL for another type. */
int stoup_doc_string(const struct stoup_doc *value, const char **ret, size_t *ret_len);

/* 1 or 0 for true or false; -EINVAL for another value. */
int stoup_doc_bool(const struct stoup_doc *value);

/* Is it null (or undefined)? */
int stoup_doc_is_null(const struct stoup_doc *value);

/* The integer that a number is, in any of its forms (100, 1e2, 100.0): 0; -EINVAL for what is no number,
 * -EDOM for one with a fraction, -ERANGE beyond i64. */
int stoup_doc_int(const struct stoup_doc *value, int64_t *ret);

/* value = integer * 10^exp10 (-18 to 18), exactly, of a number or of a string that has a decimal
 * ("42010.50" at -2: 4201050). 0; -EINVAL for what is no decimal, -EDOM for digits below 10^exp10,
 * -ERANGE beyond i64. */
int stoup_doc_decimal(const struct stoup_doc *value, int exp10, int64_t *ret);

/* The double nearest to a number, or to a string that has a decimal. 0; -EINVAL for what is no decimal,
 * -ERANGE beyond double. */
int stoup_doc_double(const struct stoup_doc *value, double *ret);

/* The order of two values: < 0, 0 or > 0. NULL (a path that leads nowhere), then null, then by type
 * (string, buffer, number, array, object, false and true), then undefined. Numbers by value whatever
 * their form, all else by its bytes. */
int stoup_doc_compare(const struct stoup_doc *a, const struct stoup_doc *b);

/* ---- filters ----------------------------------------------------------------------------------- */

struct stoup_doc_filter;

/* Compile a question: tests joined by and, or, not and brackets, such as
 *
 *      data.e = "trade" and (data.p >= 61800 and data.p < 61900 or not data.m exists)
 *
 * A test is a path, one of = != < <= > >= and a value (a number, a text in double or single quotes, true,
 * false, null), or a path and `exists`. Words are taken in any case. In a text its quote is doubled or stands behind a
 * backslash, a backslash is doubled. Numbers are compared by value, also with strings that have a
 * decimal. A test whose path leads nowhere does not hold; of values of other kinds only != holds. At most 256
 * parts, paths of at most STOUP_DOC_DEPTH_CAP steps and 1023 names and elements in all of them, those that begin
 * alike once. 0, -EINVAL with text, or -ENOMEM. Ended by stoup_doc_filter_destroy (NULL is allowed). */
int stoup_doc_filter_create(
	const char *text, struct stoup_doc_filter **ret, struct stoup_error *err);
void stoup_doc_filter_destroy(struct stoup_doc_filter *filter);

/* Does it hold of a document? 1, 0, or -EBADMSG. The document is walked once for all tests, and no further than it
 * takes. For a whole series: stoup_doc_filter_span (stoup_docs.h). */
int stoup_doc_match(const struct stoup_doc_filter *filter, const struct stoup_doc *doc);

/* ---- JSON -------------------------------------------------------------------------------------- */

/* Write a value as JSON without blanks: the length of the text, of which at most `cap` bytes were
 * written to `dst` (may be NULL with cap 0), without a NUL; so a result above `cap` asks for that much
 * room. Every value comes back as it was; a buffer as {"type":"Buffer","data":[...]}, undefined as
 * null. -EBADMSG for what is no document; -EMSGSIZE too deep. */
int64_t stoup_doc_json(const struct stoup_doc *value, char *dst, size_t cap);

#ifdef __cplusplus
}
#endif

#ifndef __cplusplus
_Static_assert(sizeof(struct stoup_doc) == 16, "a view is two registers");
#endif

#endif
