/* SPDX-License-Identifier: Apache-2.0 */
/* dbn_sink.h - a sink that remembers all that a DBN import puts, and what it tells the user. */
#ifndef STOUP_TESTS_DBN_SINK_H
#define STOUP_TESTS_DBN_SINK_H

#include "producer/ingest_dbn.h"
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERIES_MAX 64

struct put {
	uint32_t series_idx;
	int64_t key;
	uint64_t file_off;
	size_t at; /* into bytes */
};

struct sink {
	char names[SERIES_MAX][STOUP_SERIES_NAME_CAP];
	char schemas[SERIES_MAX][STOUP_SCHEMA_NAME_CAP];
	uint32_t strides[SERIES_MAX];
	uint32_t series_cnt;
	uint32_t series_calls;
	struct put *puts;
	size_t put_cnt;
	size_t put_cap;
	uint8_t *bytes;
	size_t bytes_len;
	size_t bytes_cap;
	size_t fail_at; /* the put with this number is refused; 0: none */
	char notes[4096];
};

static struct sink sink;

static inline int64_t sink_series(
	void *arg, const char *name, const struct stoup_schema *schema, struct stoup_error *err)
{
	(void)arg;
	(void)err;
	sink.series_calls++;
	for (uint32_t i = 0; i < sink.series_cnt; i++) {
		if (strcmp(sink.names[i], name) == 0) {
			ck_assert_str_eq(sink.schemas[i], schema->name);
			return i;
		}
	}
	ck_assert_uint_lt(sink.series_cnt, SERIES_MAX);
	snprintf(sink.names[sink.series_cnt], STOUP_SERIES_NAME_CAP, "%s", name);
	snprintf(sink.schemas[sink.series_cnt], STOUP_SCHEMA_NAME_CAP, "%s", schema->name);
	sink.strides[sink.series_cnt] = schema->stride;
	return sink.series_cnt++;
}

static inline int sink_put(void *arg, uint32_t series_idx, int64_t key, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	(void)arg;
	ck_assert_uint_lt(series_idx, sink.series_cnt);
	if (key <= 0 || sink.put_cnt + 1 == sink.fail_at)
		return stoup_error_set(err, -ERANGE, "%s: offset %llu refused", where->file,
			(unsigned long long)where->file_off);
	uint32_t len = sink.strides[series_idx];
	if (sink.put_cnt == sink.put_cap) {
		sink.put_cap = sink.put_cap ? sink.put_cap * 2 : 64;
		sink.puts = realloc(sink.puts, sink.put_cap * sizeof(*sink.puts));
	}
	if (sink.bytes_len + len > sink.bytes_cap) {
		sink.bytes_cap = (sink.bytes_len + len) * 2;
		sink.bytes = realloc(sink.bytes, sink.bytes_cap);
	}
	sink.puts[sink.put_cnt++] = (struct put){series_idx, key, where->file_off, sink.bytes_len};
	memcpy(sink.bytes + sink.bytes_len, record, len);
	sink.bytes_len += len;
	return 0;
}

static inline void sink_note(void *arg, const char *text)
{
	(void)arg;
	size_t len = strlen(sink.notes);
	snprintf(sink.notes + len, sizeof(sink.notes) - len, "%s\n", text);
}

static inline void sink_reset(void)
{
	free(sink.puts);
	free(sink.bytes);
	memset(&sink, 0, sizeof(sink));
}

static inline int ingest_path(
	const char *path, const struct stoup_dbn_options *options, struct stoup_error *err)
{
	static const struct stoup_sink callbacks = {
		.series = sink_series, .put = sink_put, .note = sink_note};
	struct stoup_dbn_options mine = options ? *options : (struct stoup_dbn_options){0};
	struct stoup_input *input;
	int rc = stoup_input_open(path, &input, err);
	if (rc < 0)
		return rc;
	rc = stoup_ingest_dbn(&callbacks, input, &mine, err);
	stoup_input_close(input);
	return rc;
}

#endif
