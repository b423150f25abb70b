/* SPDX-License-Identifier: Apache-2.0 */
/* reference.c - a pool's series, copied out once by plain scans, and compared with what the generator wrote.
 *
 * An expectation is a text: a line of field names, then a line of integers for each record ("key", "len" and "hash",
 * FNV-1a 64 of the bytes, of messages). Its file is called as the series, with + for /.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "query/query.h"

#define COLUMN_CAP 16

static void *grown(void *at, uint64_t len)
{
	void *ret = realloc(at, len ? len : 1);

	if (!ret)
		abort();
	return ret;
}

static void room(struct query_series *s, uint64_t cnt, uint64_t len)
{
	if (s->cnt + cnt + 1 > s->cap) {
		s->cap = (s->cnt + cnt + 1) * 2;
		s->keys = grown(s->keys, s->cap * sizeof(*s->keys));
		s->order = grown(s->order, s->cap * sizeof(*s->order));
		s->offs = grown(s->offs, s->cap * sizeof(*s->offs));
		s->begins = grown(s->begins, s->cap);
	}
	if (s->bytes_len + len > s->bytes_cap) {
		s->bytes_cap = (s->bytes_len + len) * 2;
		s->bytes = grown(s->bytes, s->bytes_cap);
	}
}

void query_add(struct query_series *s, int64_t key, const void *bytes, uint64_t len, int begins)
{
	room(s, 1, len);
	memcpy(s->bytes + s->bytes_len, bytes, len);
	s->offs[s->cnt] = s->bytes_len;
	s->bytes_len += len;
	s->keys[s->cnt] = key;
	s->order[s->cnt] = s->cnt > 0 && s->order[s->cnt - 1] > key ? s->order[s->cnt - 1] : key;
	s->begins[s->cnt++] = (uint8_t)begins;
	s->offs[s->cnt] = s->bytes_len;
}

static void add_span(struct query_series *s, const struct stoup_span *span, uint64_t from)
{
	for (uint64_t i = from; i < span->record_cnt; i++) {
		const uint8_t *at = (const uint8_t *)span->base + i * span->stride;
		struct stoup_message m;
		int64_t key;

		if (s->stride == 0) {
			m = stoup_message_at(span, i);
			query_add(s, m.key, m.bytes, m.len, i == 0);
		} else {
			memcpy(&key, at + span->schema->key_off, sizeof(key));
			query_add(s, key, at, s->stride, i == 0);
		}
	}
}

void query_copy_more(struct query_run *run, struct query_series *s, uint64_t from)
{
	struct stoup_cursor *cur;
	struct stoup_error err = {0};
	struct stoup_span span;
	uint64_t next = 0;
	int rc;

	if (stoup_scan(run->st, &s->series, NULL, &cur, &err) < 0)
		query_fail(run, "%s: %s", s->series.name, err.text);
	while ((rc = stoup_next(cur, &span)) > 0) {
		if (span.ordinal != next)
			query_fail(run, "%s: a span of ordinal %" PRIu64 ", expected %" PRIu64,
				s->series.name, span.ordinal, next);
		next += span.record_cnt;
		if (next > from)
			add_span(s, &span, from > span.ordinal ? from - span.ordinal : 0);
	}
	if (rc < 0)
		query_fail(run, "%s: %s", s->series.name, stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
}

const uint8_t *query_record(const struct query_series *s, uint64_t i, uint64_t *ret_len)
{
	*ret_len = s->offs[i + 1] - s->offs[i];
	return s->bytes + s->offs[i];
}

int query_same(
	const struct query_series *s, const struct stoup_span *span, uint64_t idx, uint64_t i)
{
	uint64_t len;
	const uint8_t *bytes = query_record(s, i, &len);
	struct stoup_message m;

	if (s->stride)
		return memcmp((const uint8_t *)span->base + idx * span->stride, bytes, len) == 0;
	m = stoup_message_at(span, idx);
	return m.key == s->keys[i] && m.len == len && memcmp(m.bytes, bytes, len) == 0;
}

void query_span_check(
	struct query_run *run, const struct query_series *s, const struct stoup_span *span)
{
	if (span->record_cnt == 0 || span->ordinal > s->cnt ||
		span->record_cnt > s->cnt - span->ordinal)
		query_fail(run,
			"%s: span of %" PRIu64 " records from %" PRIu64 ", the series has %" PRIu64,
			s->series.name, span->record_cnt, span->ordinal, s->cnt);
	if (span->schema != s->series.schema || span->stride != (s->stride ? s->stride : 4))
		query_fail(run, "%s: the span's schema or stride is another one", s->series.name);
	for (uint64_t i = 0; i < span->record_cnt; i++)
		if (!query_same(s, span, i, span->ordinal + i))
			query_fail(run,
				"%s: record %" PRIu64 " (%" PRIu64 " of its span) has other bytes",
				s->series.name, span->ordinal + i, i);
	run->record_cnt += span->record_cnt;
	run->span_cnt++;
}

/* ---- what the generator wrote ---------------------------------------------------------------- */

static uint64_t hash_of(const uint8_t *at, uint64_t len)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (uint64_t i = 0; i < len; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t value_of(
	struct query_run *run, const struct query_series *s, const char *name, uint64_t i)
{
	uint64_t len, ret = 0;
	const uint8_t *bytes = query_record(s, i, &len);
	const struct stoup_field *field;

	if (s->stride == 0)
		return strcmp(name, "key") == 0   ? (uint64_t)s->keys[i]
		       : strcmp(name, "len") == 0 ? len
		                                  : hash_of(bytes, len);
	field = stoup_schema_field(s->series.schema, name);
	if (!field)
		query_fail(run, "%s: no field %s", s->series.name, name);
	memcpy(&ret, bytes + field->off, stoup_type_len(field->type));
	return ret;
}

static uint32_t columns_of(char *line, char **names)
{
	uint32_t cnt = 0;

	for (char *at = strtok(line, " \n"); at && cnt < COLUMN_CAP; at = strtok(NULL, " \n"))
		names[cnt++] = at;
	return cnt;
}

static void compare(struct query_run *run, const struct query_series *s, FILE *in)
{
	char head[512], line[512], *names[COLUMN_CAP], *at;
	uint32_t name_cnt;
	uint64_t i = 0, value;

	if (!fgets(head, sizeof(head), in))
		query_fail(run, "%s: an expectation without a head", s->series.name);
	name_cnt = columns_of(head, names);
	for (; fgets(line, sizeof(line), in); i++) {
		if (i >= s->cnt)
			query_fail(run, "%s: only %" PRIu64 " records came out", s->series.name,
				s->cnt);
		at = line;
		for (uint32_t c = 0; c < name_cnt; c++) {
			value = strtoull(at, &at, 10);
			if (value_of(run, s, names[c], i) != value)
				query_fail(run,
					"%s: record %" PRIu64 ": %s is %" PRIu64 ", not %" PRIu64,
					s->series.name, i, names[c], value_of(run, s, names[c], i),
					value);
		}
	}
	if (i != s->cnt)
		query_fail(run, "%s: %" PRIu64 " records came out of %" PRIu64, s->series.name,
			s->cnt, i);
}

static int expected(struct query_run *run, const struct query_series *s, const char *dir)
{
	char path[4096];
	size_t len = (size_t)snprintf(path, sizeof(path), "%s/%s", dir, s->series.name);
	FILE *in;

	for (char *at = path + strlen(dir) + 1; len < sizeof(path) && *at; at++)
		if (*at == '/')
			*at = '+';
	in = fopen(path, "r");
	if (!in)
		return 0;
	compare(run, s, in);
	fclose(in);
	return 1;
}

static void facts(struct query_run *run, struct query_series *s)
{
	const struct stoup_schema *schema = s->series.schema;
	struct stoup_range range = {.flags = STOUP_DIRECT};
	struct stoup_error err;
	struct stoup_cursor *cur;

	s->stride = schema->flags & STOUP_SCHEMA_VARIABLE ? 0 : schema->stride;
	s->keep = (s->series.flags & STOUP_SERIES_KEEP_ORDER) != 0;
	if (schema->flags & STOUP_SCHEMA_BAR)
		s->later_ns = (int64_t)schema->interval_ns;
	s->direct = stoup_scan(run->st, &s->series, &range, &cur, &err) == 0;
	if (s->direct)
		stoup_cursor_close(cur);
}

static void one(struct query_run *run, struct query_series *s, const char *expect)
{
	facts(run, s);
	query_copy_more(run, s, 0);
	if (s->cnt != s->series.record_cnt)
		query_fail(run, "%s: %" PRIu64 " records came out, the series says %" PRIu64,
			s->series.name, s->cnt, s->series.record_cnt);
	if (s->series.first_key != (s->cnt ? s->order[0] : 0) ||
		s->series.last_key != (s->cnt ? s->order[s->cnt - 1] : 0))
		query_fail(
			run, "%s: first and last key are not those of its records", s->series.name);
	for (uint64_t r = 0; !s->keep && r < s->cnt; r++)
		if (s->order[r] != s->keys[r])
			query_fail(run, "%s: record %" PRIu64 " steps back", s->series.name, r);
	run->compared_cnt += expect ? (uint32_t)expected(run, s, expect) : 0;
}

void query_copy(struct query_run *run, const char *expect)
{
	int64_t cnt = stoup_series_cnt(run->st);
	uint64_t records = 0;

	run->form = "copy";
	for (int64_t i = 0; i < cnt && run->series_cnt < QUERY_SERIES_CAP; i++) {
		struct query_series *s = &run->all[run->series_cnt];

		if (stoup_series_at(run->st, (uint64_t)i, &s->series) < 0)
			query_fail(run, "series %" PRId64 " of %" PRId64, i, cnt);
		if (strncmp(s->series.name, "F/", 2) == 0) /* of another run's follow.c */
			continue;
		run->series_cnt++;
		one(run, s, expect);
		records += s->cnt;
	}
	if (run->series_cnt == 0)
		query_fail(run, "the pool has no series");
	printf("reference: %u series, %" PRIu64 " records; %u compared with what was written\n",
		run->series_cnt, records, run->compared_cnt);
	fflush(stdout);
}
