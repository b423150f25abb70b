/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_jsonl.c - files of JSON lines through the importer.
 *
 *      input   [options][a path's number][bytes of the file ...]
 *
 * Checked: what is put is a valid document, or a text that is JSON and stands in the file; a file that is taken
 * whole has a message for each line that is not empty; lines are told in their order; an error has its text, and
 * names file and line where it is one of a line.
 */
#include <errno.h>
#include "producer/intake.h"
#include "producer/ingest_jsonl.h"
#include "producer/json_doc.h"
#include "shm/stoup_doc.h"
#include "tests/fuzz/fuzz.h"

#define FILE_CAP (64u << 10)

struct sink {
	const uint8_t *file;
	size_t file_len;
	int as_text;
	uint64_t message_cnt, line;
	uint32_t series_cnt;
};

static int64_t sink_series(
	void *arg, const char *name, const struct stoup_schema *schema, struct stoup_error *err)
{
	struct sink *sink = arg;

	(void)err;
	MUST(name[0] && strlen(name) < STOUP_SERIES_NAME_CAP);
	MUST(strcmp(schema->name, sink->as_text ? "json" : "bipf") == 0);
	return sink->series_cnt++;
}

static int sink_message(void *arg, uint32_t series_idx, int64_t key, const void *bytes,
	uint32_t len, const struct stoup_where *where, struct stoup_error *err)
{
	struct sink *sink = arg;

	(void)key;
	MUST(series_idx < sink->series_cnt);
	MUST(where->file && where->line > sink->line && where->file_off < sink->file_len);
	sink->line = where->line;
	sink->message_cnt++;
	if (sink->as_text) {
		struct stoup_json_fault fault;
		uint8_t *doc = malloc(STOUP_JSON_DOC_CAP((size_t)len));

		MUST(doc && stoup_json_to_doc(bytes, len, doc, &fault) > 0);
		MUST(memmem(sink->file, sink->file_len, bytes, len) != NULL);
		free(doc);
	} else {
		MUST(stoup_doc_valid(bytes, len, err) == 0);
	}
	return 0;
}

static void sink_note(void *arg, const char *text)
{
	(void)arg;
	MUST(text[0]);
}

static uint64_t line_cnt(const uint8_t *bytes, size_t len)
{
	uint64_t cnt = 0;
	int more = 0;

	for (size_t i = 0; i < len; i++) {
		more |= !strchr("\n\r\t ", bytes[i]) || bytes[i] == 0;
		if (bytes[i] == '\n') {
			cnt += (uint64_t)more;
			more = 0;
		}
	}
	return cnt + (uint64_t)more;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char *const paths[] = {NULL, "T", "d.T", "[0]", "."};
	struct stoup_csv_options csv;
	struct stoup_intake filter = {0};
	struct sink sink = {0};
	const struct stoup_sink to = {
		.arg = &sink, .series = sink_series, .message = sink_message, .note = sink_note};
	struct stoup_jsonl_options options = {.series = "A/B", .csv = &csv, .filter = &filter};
	struct stoup_error err = {0};
	struct stoup_input *input;
	char name[64];
	int fd, rc;

	if (len < 3 || len > FILE_CAP)
		return 0;
	stoup_csv_options_init(&csv);
	sink.as_text = options.as_text = bytes[0] & 1;
	options.allow_partial = bytes[0] >> 1 & 1;
	options.series_path = bytes[0] & 4 ? "s" : NULL;
	filter.symbols = (bytes[0] & 12) == 12 ? "a*" : NULL;
	csv.time = paths[bytes[1] % 5];
	sink.file = bytes + 2;
	sink.file_len = len - 2;
	(void)stoup_jsonl_is(sink.file, sink.file_len);
	fd = fuzz_file(sink.file, sink.file_len);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	rc = stoup_input_open(name, &input, &err);
	close(fd);
	if (rc < 0)
		return 0;
	if (strcmp(stoup_input_packing(input), "plain") == 0) {
		rc = stoup_ingest_jsonl(&to, input, &options, &err);
		MUST(rc <= 0 && (rc == 0 || (err.code == rc && strstr(err.text, name))));
		if (rc == 0 && !filter.symbols && !options.allow_partial)
			MUST(sink.message_cnt == line_cnt(sink.file, sink.file_len) ||
				memcmp(sink.file, "\xef\xbb\xbf", 3) == 0);
	}
	stoup_input_close(input);
	return 0;
}
