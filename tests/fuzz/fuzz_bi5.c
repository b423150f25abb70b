/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_bi5.c - any bytes as an hour of Dukascopy's, or as messages behind their lengths, through a real
 * input.
 *
 *      bytes[0]   bit 0: frames; then bits 1 to 3 the length's type, bit 4 the time first; bit 5 to 7:
 *                 allow partial, allow steps, another type of time
 *      bytes[1..] the file, whatever it is packed with
 *
 * Checked beside the sanitizers: a row's record is the row, turned around; a message is what the file has
 * behind its head.
 */
#include "fuzz.h"
#include "producer/bi5.h"
#include "producer/frames.h"
#include "producer/itch_schema.h"

#define HOUR_NS  INT64_C(3600000000000)
#define BEGIN_NS (INT64_C(438298) * HOUR_NS) /* 2020-01-01T10:00Z */

struct target {
	const uint8_t *file;
	size_t file_len;
	int is_plain;
	uint32_t head_len; /* of frames */
	uint32_t stride;
	uint64_t message_end; /* offset behind the message before */
};

static int64_t take_series(
	void *arg, const char *name, const struct stoup_schema *schema, struct stoup_error *err)
{
	struct target *target = arg;

	MUST(strcmp(name, "DUKASCOPY/EURUSD/bi5") == 0 || strcmp(name, "a/b") == 0);
	if (schema->stride > 0)
		MUST(stoup_schema_valid(schema, err) == 0);
	target->stride = schema->stride;
	return 5;
}

static int take_record(void *arg, uint32_t series_idx, int64_t key, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	const struct target *target = arg;
	const uint8_t *row = target->file + where->file_off;
	uint32_t values[4];

	(void)err;
	MUST(series_idx == 5 && target->stride == 24);
	MUST(key >= BEGIN_NS && key < BEGIN_NS + HOUR_NS);
	if (!target->is_plain)
		return 0;
	MUST(where->file_off + STOUP_BI5_ROW_LEN <= target->file_len);
	memcpy(values, (const uint8_t *)record + 8, sizeof(values));
	MUST(key == BEGIN_NS + stoup_be32(row) * INT64_C(1000000));
	for (unsigned i = 0; i < 4; i++)
		MUST(values[i] == stoup_be32(row + 4 + 4 * i));
	return 0;
}

static int take_message(void *arg, uint32_t series_idx, int64_t key, const void *bytes,
	uint32_t len, const struct stoup_where *where, struct stoup_error *err)
{
	struct target *target = arg;

	(void)err;
	MUST(series_idx == 5 && key > 0 && len <= STOUP_MESSAGE_LEN_CAP);
	MUST(where->file_off == target->message_end);
	target->message_end += target->head_len + len;
	if (!target->is_plain)
		return 0;
	MUST(target->message_end <= target->file_len);
	MUST(memcmp(target->file + where->file_off + target->head_len, bytes, len) == 0);
	return 0;
}

static void drop_note(void *arg, const char *text)
{
	(void)arg;
	MUST(strlen(text) > 0);
}

static int ingest_frames(struct target *target, const struct stoup_sink *sink,
	struct stoup_input *input, uint8_t choice, struct stoup_error *err)
{
	static const char *const lengths[] = {
		"u8", "u16be", "u16le", "u32be", "u32le", "u64be", "u64le", "u16be"};
	static const char *const times[] = {"u64be:ns", "u32le:s"};
	struct stoup_frames_options options = {.series = "a/b"};
	char time[32];

	options.allow_partial = (choice & 32) != 0;
	MUST(stoup_frames_option(&options, "frame-length", lengths[choice >> 1 & 7], err) == 0);
	snprintf(time, sizeof(time), "%s%s", choice & 16 ? "" : "3:", times[choice >> 7]);
	MUST(stoup_frames_option(
		     &options, choice & 16 ? "frame-time-first" : "frame-time", time, err) == 0);
	target->head_len = options.length.len + (options.is_time_first ? options.time.len : 0u);
	return stoup_ingest_frames(sink, input, &options, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct target target = {.file = bytes + 1, .file_len = len - 1};
	const struct stoup_sink sink = {.arg = &target,
		.series = take_series,
		.put = take_record,
		.message = take_message,
		.note = drop_note};
	struct stoup_bi5_options bi5 = {
		.symbol = "EURUSD", .date = "2020-01-01", .hour = 10, .point = -1};
	struct stoup_input *input;
	struct stoup_error err = {0};
	char path[64];
	int fd, rc;

	if (len < 2)
		return 0;
	bi5.allow_partial = (bytes[0] & 32) != 0;
	bi5.allow_steps = (bytes[0] & 64) != 0;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, target.file, target.file_len) != (ssize_t)target.file_len)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = stoup_input_open(path, &input, &err);
	if (rc == 0) {
		target.is_plain = strcmp(stoup_input_packing(input), "plain") == 0;
		rc = bytes[0] & 1 ? ingest_frames(&target, &sink, input, bytes[0], &err)
		                  : stoup_ingest_bi5(&sink, input, &bi5, &err);
		stoup_input_close(input);
	}
	MUST(rc <= 0);
	MUST(rc == 0 || (err.code == rc && err.text[0]));
	close(fd);
	return 0;
}
