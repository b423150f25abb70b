/* SPDX-License-Identifier: Apache-2.0 */
/* stoup_filter.h - values of records without knowing their struct, and questions to them.
 *
 *      field, record --stoup_value_at--> struct stoup_value     any type, unaligned or not
 *      field, record --stoup_value_text--> "100.25"             the exact decimal, or a time, or a text
 *
 *      schema, "price > 100.25 and side = 'B'" --stoup_filter_create--> filter
 *      filter, span --stoup_filter_span--> numbers of the records that match
 *      series, filter --stoup_scan_where--> a cursor that leaves out what the index rules out
 *
 *      struct stoup_filter *filter;
 *      uint32_t idx[1024];
 *      int64_t cnt;
 *
 *      if (stoup_filter_create(series.schema, "price > 100.25 and side = 'B'", &filter, &err) < 0 ||
 *          stoup_scan_where(st, &series, NULL, filter, &cur, &err) < 0)
 *              die(err.text);
 *      while ((rc = stoup_next(cur, &span)) > 0)
 *              for (uint64_t from = 0; from < span.record_cnt;) {
 *                      const struct stoup_mbo *mbo = span.base;
 *                      cnt = stoup_filter_span(filter, &span, from, idx, 1024);
 *                      for (int64_t i = 0; i < cnt; i++)
 *                              look_at(&mbo[idx[i]]);
 *                      from = cnt == 1024 ? idx[1023] + UINT64_C(1) : span.record_cnt;
 *              }
 *
 * The language:
 *
 *      filter      = filter "or" filter | filter "and" filter | "not" filter | "(" filter ")" | comparison
 *      comparison  = FIELD ( "=" | "==" | "!=" | "<" | "<=" | ">" | ">=" ) VALUE
 *                  | FIELD "is" ["not"] "null"
 *                  | FIELD ["not"] "in" "(" VALUE { "," VALUE } ")"
 *                  | FIELD ["not"] "between" VALUE "and" VALUE        both ends are in
 *
 * `not` binds tighter than `and`, that tighter than `or`; words in any case. FIELD is a field's name, in double quotes if
 * it is one of the words. VALUE is a word up to a blank, comma or parenthesis, or a text in single or double quotes,
 * where a quote is doubled or stands behind a backslash, and a backslash is doubled. What a value must be, its field says:
 *
 *      an integer, a price   a decimal (-1.5, 2e6), compared exactly: with a price of nine decimals, > 0.1234567891 is
 *                            the same as >= 0.123456790, and = 0.1234567891 holds for none
 *      a time                ISO 8601 (2024-06-03, 2024-06-03T13:30:00.5Z; UTC unless it says otherwise), or an epoch in
 *                            s, ms, us or ns by its magnitude, as everywhere
 *      a duration            nanoseconds
 *      a float               a decimal, inf or -inf: taken as the nearest value of the field's own type
 *      a text                compared byte by byte, up to the field's first NUL; a prefix is less
 *
 * A field whose value is undefined (its null value, or NaN) compares false with everything, with != and between too, and
 * `not` does not change that: `not price > 5` is `price <= 5`, as in SQL. `is null` alone finds them.
 *
 * Not for messages and documents: those are asked by stoup_doc_filter_create. Opaque bytes are only looked at by `is
 * null`, which never holds for them.
 *
 * Concurrency: a filter is immutable; any number of threads may use it.
 * Limits: 512 comparisons, 64 parentheses and nots inside each other, 16384 bytes of text.
 */
#ifndef STOUP_FILTER_H
#define STOUP_FILTER_H

#include <stddef.h>
#include <stdint.h>
#include "stoup.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- values ---------------------------------------------------------------------------------- */

#define STOUP_VALUE_NULL  0u /* undefined: the field's null value, or NaN */
#define STOUP_VALUE_INT   1u /* i64 * 10^exp10; times and durations in ns */
#define STOUP_VALUE_UINT  2u /* u64 * 10^exp10; likewise */
#define STOUP_VALUE_FLOAT 3u /* f64, exactly what an f32 holds */
#define STOUP_VALUE_TEXT  4u /* text_len bytes at text, up to the first NUL; not NUL-terminated */
#define STOUP_VALUE_BYTES 5u /* likewise, all bytes of the field */

/* One value. Members that its kind does not name are 0. `text` points into the record. */
struct stoup_value {
	uint32_t kind;  /* STOUP_VALUE_* */
	uint32_t flags; /* of the field: STOUP_FIELD_TIME ... */
	int32_t exp10;
	uint32_t text_len;
	int64_t i64;
	uint64_t u64;
	double f64;
	const char *text;
};

/* The value of a field in the record at `record`, which may be unaligned. `field` is one of a schema that is valid
 * (those of stoup_series are). A NaN is STOUP_VALUE_NULL. Thread-safe. */
STOUP_API void stoup_value_at(
	const struct stoup_field *field, const void *record, struct stoup_value *ret);

/* Its text, with a NUL: the exact decimal ("100.25"), the shortest decimal of a float that reads back as the same,
 * ISO 8601 with nine digits of a time, a text with \xNN for bytes that are not printable ASCII, opaque bytes as
 * hexadecimal digits, nothing for the null value; NaN is "nan". Returns the length; -ENOSPC where cap is too small:
 * stoup_value_text_cap(field) bytes are always enough. Thread-safe. */
STOUP_API int64_t stoup_value_text(
	const struct stoup_field *field, const void *record, char *dst, size_t cap);
STOUP_API size_t stoup_value_text_cap(const struct stoup_field *field);

/* The field behind `field` that is to be shown, the first one for NULL; NULL behind the last. Reserved bytes
 * (STOUP_FIELD_HIDDEN) are left out; messages have no fields. Thread-safe.
 *
 *      for (f = stoup_field_next(schema, NULL); f; f = stoup_field_next(schema, f)) */
STOUP_API const struct stoup_field *stoup_field_next(
	const struct stoup_schema *schema, const struct stoup_field *field);

/* ---- filters --------------------------------------------------------------------------------- */

struct stoup_filter;

/* Compile a text for records of `schema`, which is not needed afterwards. 0; -EINVAL: the text says what is wrong
 * in which column (bytes, from 1), near names for an unknown field, and what the field's type takes; -ENOMEM. Freed by
 * stoup_filter_destroy. Thread-safe. */
STOUP_API int stoup_filter_create(const struct stoup_schema *schema, const char *text,
	struct stoup_filter **ret, struct stoup_error *err);

/* NULL is allowed. Cursors of stoup_scan_where keep what they need. */
STOUP_API void stoup_filter_destroy(struct stoup_filter *filter);

/* The numbers of the records of a span that match, from record `from` on, ascending, at most `cap`: the first `ret`
 * places of `idx` are filled. Record i is at base + idx[i] * stride. Where all `cap` places are filled, go on behind the
 * last one. -EINVAL for a span of another schema; -EFBIG for one of more than 2^32 records: cut it. Allocates nothing.
 * Thread-safe. */
STOUP_API int64_t stoup_filter_span(const struct stoup_filter *filter,
	const struct stoup_span *span, uint64_t from, uint32_t *idx, size_t cap);

/* Does the record at `record`, which may be unaligned, match? 1 or 0. It must be one of the filter's schema.
 * Thread-safe. */
STOUP_API int stoup_filter_match(const struct stoup_filter *filter, const void *record);

/* stoup_scan for the records that a filter wants: a cursor like any other, which steps over the segments whose zone map
 * (least and greatest value of each field, in the volume's index) says that none of their records match. They are not
 * asked for, not read, not decoded, forward and backward, ahead, in direct mode, and after a daemon's death. Spans still
 * hold whole segments, cut to the range: choose in them by stoup_filter_span. Segments without a zone map (of fewer than
 * 64 records, or of volumes that an older release wrote) are never left out.
 *
 * The filter may be destroyed while the cursor is open. -EINVAL for a filter of another schema, and for a range with a limit (count what stoup_filter_span finds), and as
 * stoup_scan.
 * Thread-safe. */
STOUP_API int stoup_scan_where(struct stoup *st, const struct stoup_series *series,
	const struct stoup_range *range, struct stoup_filter *filter, struct stoup_cursor **ret,
	struct stoup_error *err);

/* Segments that the cursor left out so far; 0 of cursors without a filter. What a scan passes twice, since a daemon ended
 * before the first span was handed out, counts twice. */
STOUP_API uint64_t stoup_cursor_left_out(const struct stoup_cursor *cur);

#ifdef __cplusplus
}
#endif

#endif
