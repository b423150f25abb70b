/* SPDX-License-Identifier: Apache-2.0 */
/* arrow.h - what the three parts of the Arrow export share: how a field becomes a column.
 *
 *      field, flags --stoup_arrow_form--> form --> format string (arrow_schema.c)
 *                                              --> buffers       (arrow_array.c)
 *
 * Invariant: schema and array of the same field and flags follow from the same form.
 *
 * Concurrency: pure functions.
 */
#ifndef STOUP_CONSUMER_ARROW_H
#define STOUP_CONSUMER_ARROW_H

#include "consumer/stoup_arrow.h"

enum stoup_arrow_form {
	STOUP_ARROW_SKIP,    /* hidden: no column */
	STOUP_ARROW_PLAIN,   /* the field's own bytes: integers, floats, fixed-size binary */
	STOUP_ARROW_I64,     /* plain, or an integer widened to i64: times and durations */
	STOUP_ARROW_DECIMAL, /* decimal128 */
	STOUP_ARROW_FLOAT,   /* float64 out of integer and scale */
	STOUP_ARROW_TEXT,    /* utf8 */
};

enum stoup_arrow_form stoup_arrow_form(const struct stoup_field *field, uint32_t flags);

/* Flags that fit together and a schema that has columns: 0, -EINVAL, -ENOTSUP with text. */
int stoup_arrow_check(const struct stoup_schema *schema, uint32_t flags, struct stoup_error *err);

/* Is the column of messages text (utf8 with 64-bit offsets), or binary? */
int stoup_arrow_message_text(const struct stoup_schema *schema, uint32_t flags);

/* arrow_messages.c: as stoup_arrow_array, for a span of messages. */
int stoup_arrow_messages(const struct stoup_span *span, uint32_t flags, struct ArrowArray *ret,
	struct stoup_error *err);

/* The one field of STOUP_ARROW_RECORDS. */
struct stoup_field stoup_arrow_record_field(const struct stoup_schema *schema);

/* Bytes that a field of a record has. */
static inline uint32_t stoup_arrow_width(const struct stoup_field *field)
{
	return stoup_type_len(field->type) * field->cnt;
}

#endif
