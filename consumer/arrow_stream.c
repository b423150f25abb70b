/* SPDX-License-Identifier: Apache-2.0 */
/* arrow_stream.c - a scan as an ArrowArrayStream (see stoup_arrow.h).
 *
 *      get_next:  span left? --no--> stoup_next --> span
 *                     | yes                          |
 *                     +--- its next rows <-----------+   at most batch_cap --> stoup_arrow_array
 *
 * A span of the pool is one batch. One of direct mode can be all of a volume: it is cut, so that a
 * reader's memory follows its batches and no text column reaches 2 GiB.
 *
 * Invariant: what is left of a span moves on only when its rows were handed out.
 */
#include <errno.h>
#include <stdlib.h>
#include "consumer/arrow.h"
#include "consumer/cursor.h"

struct stream {
	struct stoup_cursor *cur;
	uint32_t flags;
	uint64_t batch_cap;
	struct stoup_span span; /* what is left of it: 0 records, ask for the next */
	struct stoup_error error;
};

static int stream_schema(struct ArrowArrayStream *arrow, struct ArrowSchema *out)
{
	struct stream *stream = arrow->private_data;

	return -stoup_arrow_schema(stream->cur->schema, stream->flags, out, &stream->error);
}

static int stream_next(struct ArrowArrayStream *arrow, struct ArrowArray *out)
{
	struct stream *stream = arrow->private_data;
	struct stoup_span rows;
	int rc;

	if (stream->span.record_cnt == 0) {
		rc = stoup_next(stream->cur, &stream->span);
		if (rc <= 0)
			stream->span.record_cnt = 0;
		if (rc < 0) {
			stream->error = *stoup_cursor_error(stream->cur);
			return -rc;
		}
		if (rc == 0) {
			*out = (struct ArrowArray){0}; /* released: the end */
			return 0;
		}
	}
	rows = stream->span;
	if (rows.record_cnt > stream->batch_cap)
		rows.record_cnt = stream->batch_cap;
	rc = stoup_arrow_array(&rows, stream->flags, out, &stream->error);
	if (rc < 0)
		return -rc;
	stream->span.base = (const uint8_t *)rows.base + rows.record_cnt * rows.stride;
	stream->span.record_cnt -= rows.record_cnt;
	stream->span.ordinal += rows.record_cnt;
	return 0;
}

static const char *stream_error(struct ArrowArrayStream *arrow)
{
	const struct stream *stream = arrow->private_data;

	return stream->error.text[0] ? stream->error.text : NULL;
}

static void stream_release(struct ArrowArrayStream *arrow)
{
	struct stream *stream = arrow->private_data;

	stoup_cursor_close(stream->cur);
	free(stream);
	arrow->release = NULL;
}

/* Rows whose texts stay below 2 GiB whatever they are. */
static uint64_t batch_cap(const struct stoup_schema *schema, uint32_t flags)
{
	uint64_t cap = STOUP_ARROW_BATCH_CAP;

	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		const struct stoup_field *field = &schema->fields[i];

		if (stoup_arrow_form(field, flags) == STOUP_ARROW_TEXT &&
			INT32_MAX / field->cnt < (int64_t)cap)
			cap = INT32_MAX / field->cnt;
	}
	return cap;
}

int stoup_arrow_stream(struct stoup_cursor *cur, uint32_t flags, struct ArrowArrayStream *ret,
	struct stoup_error *err)
{
	struct stream *stream;
	int rc;

	if (!cur)
		return stoup_error_set(err, -EINVAL, "%s", stoup_cursor_error(cur)->text);
	if (!cur->schema)
		return stoup_error_set(err, -EINVAL,
			"a merge of series of different schemas has no columns: merge series of one schema");
	rc = stoup_arrow_check(cur->schema, flags, err);
	if (rc < 0)
		return rc;
	if (cur->step < 0)
		return stoup_error_set(err, -EINVAL,
			"a backward scan gives blocks in one order and their records in the other: a stream "
			"takes a forward one (range.flags without STOUP_BACKWARD)");
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return stoup_error_set(err, -ENOMEM, "no memory for an Arrow stream");
	stream->cur = cur;
	stream->flags = flags;
	stream->batch_cap = batch_cap(cur->schema, flags);
	*ret = (struct ArrowArrayStream){.get_schema = stream_schema,
		.get_next = stream_next,
		.get_last_error = stream_error,
		.release = stream_release,
		.private_data = stream};
	return 0;
}
