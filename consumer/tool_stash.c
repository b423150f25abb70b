/* SPDX-License-Identifier: Apache-2.0 */
/* tool_stash.c - see tool_stash.h. */
#include "consumer/tool_stash.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/tool_docs.h"

struct stoup_stash_row {
	size_t source;
	struct stoup_span span; /* of one record; the bytes are at `bytes` */
	uint8_t *bytes;
};

/* The message as it lies in a block: head, bytes, a table of one entry. */
static uint8_t *copy_message(const struct stoup_span *span, uint64_t idx, const void **base)
{
	struct stoup_message message = stoup_message_at(span, idx);
	struct stoup_message_head head = {.key = message.key, .len = message.len};
	uint32_t entry = (uint32_t)(sizeof(head) + (message.len + 7u) / 8u * 8u);
	uint8_t *ret = calloc(1, (size_t)entry + sizeof(entry));

	if (!ret)
		return NULL;
	memcpy(ret, &head, sizeof(head));
	memcpy(ret + sizeof(head), message.bytes, message.len);
	memcpy(ret + entry, &entry, sizeof(entry));
	*base = ret + entry;
	return ret;
}

static uint8_t *copy_record(const struct stoup_span *span, uint64_t idx, const void **base)
{
	uint8_t *ret = malloc(span->stride);

	if (!ret)
		return NULL;
	memcpy(ret, (const uint8_t *)span->base + idx * span->stride, span->stride);
	*base = ret;
	return ret;
}

int stoup_stash_add(struct stoup_stash *stash, size_t source, const struct stoup_span *span,
	uint64_t idx, struct stoup_error *err)
{
	struct stoup_stash_row row = {.source = source, .span = *span}, *at;
	int is_full = stash->max > 0 && stash->cnt == stash->max;

	if (!is_full && stash->cnt == stash->cap) {
		size_t cap = stash->cap ? 2 * stash->cap : 64;
		struct stoup_stash_row *rows = reallocarray(stash->rows, cap, sizeof(*rows));

		if (!rows)
			return stoup_error_set(
				err, -ENOMEM, "no memory to keep %zu records", stash->cnt);
		stash->rows = rows;
		stash->cap = cap;
	}
	row.bytes = span->schema->flags & STOUP_SCHEMA_VARIABLE
	                    ? copy_message(span, idx, &row.span.base)
	                    : copy_record(span, idx, &row.span.base);
	if (!row.bytes)
		return stoup_error_set(err, -ENOMEM, "no memory to keep %zu records", stash->cnt);
	row.span.record_cnt = 1;
	row.span.ordinal += idx;
	at = &stash->rows[is_full ? stash->begin : stash->cnt];
	if (is_full) {
		free(at->bytes);
		stash->begin = (stash->begin + 1) % stash->cnt;
	} else {
		stash->cnt++;
	}
	*at = row;
	return 0;
}

int64_t stoup_stash_take(
	void *arg, const struct stoup_run *run, uint64_t *used, struct stoup_error *err)
{
	struct stoup_stash *stash = arg;
	int64_t rows = 0;

	for (uint64_t i = 0; i < run->cnt; i++) {
		uint64_t at = run->step > 0 ? run->from + i : run->from - i;
		int rc = stoup_tool_docs_broken(run->span, at);

		stash->broken_cnt += (uint64_t)rc;
		rows += rc == 0;
		if (rc == 0)
			rc = stoup_stash_add(stash, run->source, run->span, at, err);
		if (rc < 0)
			return rc;
	}
	*used = run->cnt;
	return rows;
}

struct stoup_run stoup_stash_at(
	const struct stoup_stash *stash, size_t idx, struct stoup_span *span)
{
	const struct stoup_stash_row *row = &stash->rows[(stash->begin + idx) % stash->cnt];

	*span = row->span;
	return (struct stoup_run){.source = row->source, .span = span, .cnt = 1, .step = 1};
}

void stoup_stash_fini(struct stoup_stash *stash)
{
	for (size_t i = 0; i < stash->cnt; i++)
		free(stash->rows[i].bytes);
	free(stash->rows);
	*stash = (struct stoup_stash){0};
}
