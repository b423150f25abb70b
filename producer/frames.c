/* SPDX-License-Identifier: Apache-2.0 */
/* frames.c - see frames.h. */
#include "producer/frames.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "producer/chunk.h"

#define HEAD_CAP  16u /* time and length of a frame */
#define CHUNK_LEN (2u * (STOUP_MESSAGE_LEN_CAP + HEAD_CAP))

static const char types_text[] = "u16be, u16le, u32be, u32le, u64be or u64le";

struct reader {
	const struct stoup_sink *sink;
	const struct stoup_frames_options *options;
	struct stoup_chunk chunk;
	const char *file;
	uint32_t series_idx;
	uint32_t head_len;
	uint64_t message_cnt;
};

/* ---- options ----------------------------------------------------------------------------------- */

/* "u32le" of `len` bytes. */
static int int_parse(const char *text, size_t len, struct stoup_frame_int *ret)
{
	static const struct {
		const char *name;
		struct stoup_frame_int value;
	} names[] = {{"u8", {1, 0}}, {"u16be", {2, 1}}, {"u16le", {2, 0}}, {"u32be", {4, 1}},
		{"u32le", {4, 0}}, {"u64be", {8, 1}}, {"u64le", {8, 0}}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strlen(names[i].name) == len && memcmp(names[i].name, text, len) == 0) {
			*ret = names[i].value;
			return 0;
		}
	}
	return -EINVAL;
}

static int unit_parse(const char *text, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(units[i].name, text) == 0) {
			*ret = units[i].ns;
			return 0;
		}
	}
	return -EINVAL;
}

/* "TYPE:UNIT" */
static int time_parse(struct stoup_frames_options *options, const char *text)
{
	const char *colon = strchr(text, ':');

	if (!colon || int_parse(text, (size_t)(colon - text), &options->time) < 0 ||
		options->time.len < 4)
		return -EINVAL;
	return unit_parse(colon + 1, &options->unit_ns);
}

static int offset_parse(const char *text, uint32_t *ret, const char **ret_rest)
{
	unsigned long off;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	off = strtoul(text, &end, 10);
	if (errno != 0 || *end != ':' || off > STOUP_MESSAGE_LEN_CAP)
		return -EINVAL;
	*ret = (uint32_t)off;
	*ret_rest = end + 1;
	return 0;
}

/* The time stands in one place: -EINVAL where the other one was said before. */
static int place_set(
	struct stoup_frames_options *options, int is_time_first, struct stoup_error *err)
{
	if (options->time.len > 0 && options->is_time_first != is_time_first)
		return stoup_error_set(err, -EINVAL,
			"--frame-time and --frame-time-first: the time is in the message or before it, not "
			"both");
	options->is_time_first = is_time_first;
	return 0;
}

int stoup_frames_option(struct stoup_frames_options *options, const char *name, const char *value,
	struct stoup_error *err)
{
	const char *rest;

	if (strcmp(name, "frame-length") == 0) {
		if (int_parse(value, strlen(value), &options->length) == 0)
			return 0;
		return stoup_error_set(
			err, -EINVAL, "--frame-length %.40s: u8, %s", value, types_text);
	}
	if (strcmp(name, "frame-time") == 0) {
		if (place_set(options, 0, err) < 0)
			return -EINVAL;
		if (offset_parse(value, &options->time_off, &rest) == 0 &&
			time_parse(options, rest) == 0)
			return 0;
		return stoup_error_set(err, -EINVAL,
			"--frame-time %.40s: OFFSET:TYPE:UNIT as 5:u64be:ns; types are u32 and u64 with be "
			"or le, units s, ms, us, ns",
			value);
	}
	if (strcmp(name, "frame-time-first") != 0)
		return -ENOENT;
	if (place_set(options, 1, err) < 0)
		return -EINVAL;
	if (time_parse(options, value) == 0)
		return 0;
	return stoup_error_set(err, -EINVAL,
		"--frame-time-first %.40s: TYPE:UNIT as u64le:us; types are u32 and u64 with be or le, "
		"units s, ms, us, ns",
		value);
}

/* ---- messages ---------------------------------------------------------------------------------- */

static uint64_t int_load(const uint8_t *p, struct stoup_frame_int type, int flip)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < type.len; i++)
		value |= (uint64_t)p[i] << 8 * ((type.is_big != 0) != flip ? type.len - 1 - i : i);
	return value;
}

static int too_long(
	const struct reader *r, const uint8_t *at, uint64_t len, struct stoup_error *err)
{
	uint64_t other = int_load(at, r->options->length, 1);

	return stoup_error_set(err, -EMSGSIZE,
		"%s: the message %" PRIu64 " at offset %" PRIu64 " claims %" PRIu64
		" bytes, at most %u are allowed: %s",
		r->file, r->message_cnt + 1, r->chunk.pos_off, len, STOUP_MESSAGE_LEN_CAP,
		other <= UINT16_MAX ? "in the other byte order it is short (--frame-length)"
				    : "damage, or another --frame-length");
}

/* The message's time in ns. 0 or an error. */
static int time_of(const struct reader *r, const uint8_t *frame, const uint8_t *message,
	uint64_t len, int64_t *ret, struct stoup_error *err)
{
	const struct stoup_frames_options *o = r->options;
	uint64_t value;

	if (!o->is_time_first && (uint64_t)o->time_off + o->time.len > len)
		return stoup_error_set(err, -EBADMSG,
			"%s: the message %" PRIu64 " at offset %" PRIu64 " has %" PRIu64
			" bytes, its time ends at %" PRIu32 ": damage, or another --frame-time",
			r->file, r->message_cnt + 1, r->chunk.pos_off, len,
			o->time_off + o->time.len);
	value = int_load(o->is_time_first ? frame : message + o->time_off, o->time, 0);
	if (value == 0 || value > (uint64_t)(INT64_MAX - 1) / o->unit_ns)
		return stoup_error_set(err, -ERANGE,
			"%s: the message %" PRIu64 " at offset %" PRIu64 " has the time %" PRIu64
			" (unit %" PRIu64
			" ns), which is none after 1970: damage, or another --frame-time%s",
			r->file, r->message_cnt + 1, r->chunk.pos_off, value, o->unit_ns,
			o->is_time_first ? "-first" : "");
	*ret = (int64_t)(value * o->unit_ns);
	return 0;
}

/* All whole messages in the buffer. */
static int take_whole(struct reader *r, struct stoup_error *err)
{
	uint32_t length_off = r->options->is_time_first ? r->options->time.len : 0;

	while (stoup_chunk_left(&r->chunk) >= r->head_len) {
		const uint8_t *frame = stoup_chunk_bytes(&r->chunk), *message = frame + r->head_len;
		const struct stoup_where where = {r->file, 0, r->chunk.pos_off};
		uint64_t len = int_load(frame + length_off, r->options->length, 0);
		int64_t key = 0;
		int rc;

		if (len > STOUP_MESSAGE_LEN_CAP)
			return too_long(r, frame + length_off, len, err);
		if (stoup_chunk_left(&r->chunk) < r->head_len + len)
			return 0;
		rc = time_of(r, frame, message, len, &key, err);
		if (rc == 0)
			rc = r->sink->message(r->sink->arg, r->series_idx, key, message,
				(uint32_t)len, &where, err);
		if (rc < 0)
			return rc;
		r->message_cnt++;
		stoup_chunk_take(&r->chunk, r->head_len + (size_t)len);
	}
	return 0;
}

static int messages_read(struct reader *r, struct stoup_error *err)
{
	for (;;) {
		int rc = stoup_chunk_more(&r->chunk, r->options->allow_partial, r->sink, err);

		if (rc == 0)
			rc = take_whole(r, err);
		if (rc < 0)
			return rc;
		if (!r->chunk.is_eof)
			continue;
		if (stoup_chunk_left(&r->chunk) == 0)
			return 0;
		if (!r->options->allow_partial)
			return stoup_error_set(err, -ENODATA,
				"%s: the message %" PRIu64 " at offset %" PRIu64
				" is cut short, or its length is not one (--frame-length); "
				"--allow-partial imports what is before it",
				r->file, r->message_cnt + 1, r->chunk.pos_off);
		stoup_sink_note(r->sink,
			"%s: the message %" PRIu64 " at offset %" PRIu64 " is cut short: left out",
			r->file, r->message_cnt + 1, r->chunk.pos_off);
		return 0;
	}
}

/* ---- entry ------------------------------------------------------------------------------------- */

static int options_check(const struct reader *r, struct stoup_error *err)
{
	const struct stoup_frames_options *o = r->options;

	if (!o->series || o->length.len == 0 || o->time.len == 0)
		return stoup_error_set(err, -EINVAL, "%s: frames need %s", r->file,
			!o->series ? "the name of their series (--series NAME)"
			: o->length.len == 0
				? "the type of their lengths (--frame-length u16be)"
				: "the place of their times (--frame-time OFFSET:TYPE:UNIT, or "
				  "--frame-time-first TYPE:UNIT)");
	if (!r->sink->message)
		return stoup_error_set(err, -ENOTSUP, "%s: messages can not be put there", r->file);
	return 0;
}

int stoup_ingest_frames(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_frames_options *options, struct stoup_error *err)
{
	struct reader r = {.sink = sink, .options = options, .file = stoup_input_name(input)};
	int64_t idx;
	int rc = options_check(&r, err);

	if (rc < 0)
		return rc;
	r.head_len = options->length.len + (options->is_time_first ? options->time.len : 0u);
	rc = stoup_chunk_init(&r.chunk, input, CHUNK_LEN, err);
	if (rc < 0)
		return rc;
	idx = sink->series(sink->arg, options->series, stoup_schema_by_name("frames"), err);
	r.series_idx = (uint32_t)idx;
	rc = idx < 0 ? (int)idx : messages_read(&r, err);
	if (rc == 0 && r.message_cnt == 0)
		stoup_sink_note(sink, "%s: holds no messages to import", r.file);
	stoup_chunk_fini(&r.chunk);
	return rc;
}
