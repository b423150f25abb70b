/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dbn.c - any bytes as a DBN file: parser, lookup, router and reader, through a real input.
 *
 *      bytes[0]   options: one stream, named series, allow partial, small feeds
 *      bytes[1..] the file, whatever it is packed with
 *
 * Checked beside the sanitizers: a record that reaches the sink has the length of its schema and
 * lies in the file at the offset that is told, byte for byte (plain files); feeding the metadata in
 * small pieces gives what feeding them at once gives.
 */
#include "producer/dbn.h"
#include "producer/ingest_dbn.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SERIES_MAX        256u
#define OPTION_ONE_STREAM 1u
#define OPTION_SERIES     2u
#define OPTION_PARTIAL    4u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct target {
	const uint8_t *file;
	size_t file_len;
	uint32_t strides[SERIES_MAX];
	uint32_t series_cnt;
	int is_plain;
};

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "violated: %s\n", what);
	abort();
}

static int64_t take_series(
	void *arg, const char *name, const struct stoup_schema *schema, struct stoup_error *err)
{
	struct target *target = arg;
	require(strlen(name) < STOUP_SERIES_NAME_CAP, "a series name fits");
	require(stoup_schema_valid(schema, err) == 0, "a schema is valid");
	target->strides[target->series_cnt % SERIES_MAX] = schema->stride;
	return target->series_cnt++ % SERIES_MAX;
}

static int take_record(void *arg, uint32_t series_idx, int64_t key, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	const struct target *target = arg;
	const uint8_t *bytes = record;
	require(series_idx < SERIES_MAX, "a series was opened before");
	if (!target->is_plain)
		return key > 0 ? 0 : stoup_error_set(err, -1, "key");
	uint32_t record_len = bytes[0] * 4u;
	require(where->file_off + record_len <= target->file_len, "a record lies inside the file");
	require(memcmp(target->file + where->file_off, bytes, record_len) == 0,
		"a record is what the file has at its offset");
	return key > 0 ? 0 : stoup_error_set(err, -1, "key");
}

static void drop_note(void *arg, const char *text)
{
	(void)arg;
	require(strlen(text) > 0, "a note says something");
}

static void ingest(struct target *target, unsigned options_bits)
{
	const struct stoup_sink sink = {
		.arg = target, .series = take_series, .put = take_record, .note = drop_note};
	struct stoup_dbn_options options = {
		.series = options_bits & OPTION_SERIES ? "a/b" : NULL,
		.one_stream = (options_bits & OPTION_ONE_STREAM) != 0,
		.allow_partial = (options_bits & OPTION_PARTIAL) != 0,
	};
	struct stoup_input *input;
	struct stoup_error err = {0};
	char path[64];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, target->file, target->file_len) != (ssize_t)target->file_len)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int rc = stoup_input_open(path, &input, &err);
	if (rc == 0) {
		target->is_plain = strcmp(stoup_input_packing(input), "plain") == 0;
		rc = stoup_ingest_dbn(&sink, input, &options, &err);
		stoup_input_close(input);
	}
	require(rc <= 0, "an import gives 0 or an error");
	require(rc == 0 || (err.code == rc && err.text[0]), "an error has a text");
	close(fd);
}

/* Feed the metadata in pieces of `piece_len`; the number of intervals, or -1. */
static int64_t intervals_of(const uint8_t *file, size_t len, size_t piece_len)
{
	struct stoup_dbn_prelude prelude;
	struct stoup_error err = {0};
	struct stoup_dbn_meta meta;
	if (stoup_dbn_prelude(file, len, &prelude, &err) < 0)
		return -1;
	struct stoup_dbn_parser *parser = stoup_dbn_parser_create(&prelude);
	size_t off = STOUP_DBN_PRELUDE_LEN;
	size_t have = piece_len;
	int64_t got = 0;
	while (got >= 0 && stoup_dbn_parser_left(parser) > 0) {
		size_t feed_len = have < len - off ? have : len - off;
		got = stoup_dbn_parser_feed(parser, file + off, feed_len, &err);
		off += got > 0 ? (size_t)got : 0;
		have = got > 0 ? piece_len : have * 2;
		if (got == 0 && feed_len == len - off)
			break;
	}
	int64_t ret = -1;
	if (got >= 0 && stoup_dbn_parser_left(parser) == 0) {
		size_t pos = 0;
		if (stoup_dbn_parser_take(parser, &meta, NULL) < 0)
			goto out_destroy;
		ret = (int64_t)meta.interval_cnt;
		while (stoup_dbn_symbol_next(&meta, 5482, 20201228, &pos))
			require(pos <= meta.interval_cnt, "a lookup stays inside");
		stoup_dbn_meta_fini(&meta);
	}
out_destroy:
	stoup_dbn_parser_destroy(parser);
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (len < 2)
		return 0;
	struct target target = {.file = bytes + 1, .file_len = len - 1};
	ingest(&target, bytes[0]);
	int64_t whole = intervals_of(bytes + 1, len - 1, len);
	int64_t pieces = intervals_of(bytes + 1, len - 1, 3);
	require(whole == pieces, "metadata fed in pieces are the same metadata");
	return 0;
}
