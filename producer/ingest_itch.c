/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_itch.c - see ingest_itch.h. */
#include "producer/ingest_itch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "producer/chunk.h"
#include "producer/itch.h"
#include "producer/itch_schema.h"
#include "producer/new_york.h"
#include "shm/timestamp.h"

#define CHUNK_LEN (1u << 20) /* holds the longest frame, 64 KiB, many times over */
#define PEEK_LEN  4096u
#define AHEAD_CNT 8u  /* messages: some 100 ns of work, the time of a cache miss */
#define AHEAD_LEN 19u /* bytes of a message that the look-ahead reads */
#define DAY_NS    INT64_C(86400000000000)
#define SECOND_NS INT64_C(1000000000)

struct reader {
	const struct stoup_sink *sink;
	const struct stoup_itch_options *options;
	struct stoup_chunk chunk;
	struct stoup_itch *itch;
	const char *file;
	size_t frame_len; /* bytes of the length: 2, or 0 where the types tell it */
	size_t ahead;     /* in the buffer: of the message to prefetch next */
	int is_ended;     /* the end of the session was read */
};

/* ---- the day ----------------------------------------------------------------------------------- */

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int stoup_itch_name_is(const char *path)
{
	const char *base = base_of(path);

	return strstr(base, "NASDAQ_ITCH50") != NULL || strstr(base, "-v50.txt") != NULL;
}

int stoup_itch_name_date(
	const char *path, unsigned *ret_year, unsigned *ret_month, unsigned *ret_day)
{
	const char *base = base_of(path);
	size_t digits = strspn(base, "0123456789");
	char text[9];

	if (digits == 0 && (*base == 'S' || *base == 's')) { /* SMMDDYY: the format began in 2013 */
		if (strspn(base + 1, "0123456789") != 6)
			return -EINVAL;
		snprintf(text, sizeof(text), "20%.2s%.4s", base + 5, base + 1);
		return stoup_date_parse(text, ret_year, ret_month, ret_day);
	}
	if (digits != 8)
		return -EINVAL;
	/* No month is 20, no year of the format begins with less: the two are never both dates. */
	snprintf(text, sizeof(text), "%.4s%.4s", base + 4, base);
	if (stoup_date_parse(text, ret_year, ret_month, ret_day) == 0)
		return 0;
	snprintf(text, sizeof(text), "%.8s", base);
	return stoup_date_parse(text, ret_year, ret_month, ret_day);
}

static int day_find(const struct reader *r, int64_t *ret_midnight_ns, int64_t *ret_len_ns,
	struct stoup_error *err)
{
	unsigned year, month, day;

	if (r->options->date && stoup_date_parse(r->options->date, &year, &month, &day) < 0)
		return stoup_error_set(err, -EINVAL,
			"--date %.40s: a date that exists, as 2019-01-30 or 20190130",
			r->options->date);
	if (!r->options->date && stoup_itch_name_date(r->file, &year, &month, &day) < 0)
		return stoup_error_set(err, -EINVAL,
			"%s: ITCH has times of day only, and this name no date as 01302019.NASDAQ_ITCH50: "
			"say it (--date 2019-01-30)",
			r->file);
	if (r->options->has_zone) {
		*ret_len_ns = DAY_NS;
		*ret_midnight_ns = stoup_timestamp_days(year, month, day) * DAY_NS -
		                   r->options->zone_s * SECOND_NS;
		return 0;
	}
	if (stoup_new_york_day(year, month, day, ret_midnight_ns, ret_len_ns) < 0)
		return stoup_error_set(err, -ERANGE,
			"%s: the offset of New York in %u is not known: say it (--time-zone -05:00)",
			r->file, year);
	return 0;
}

/* ---- frames ------------------------------------------------------------------------------------ */

/* Length of the message behind a frame's start at `p`. */
static uint32_t claimed_len(const struct reader *r, const uint8_t *p)
{
	return r->frame_len > 0 ? stoup_be16(p) : stoup_itch_len(*p);
}

/* Prefetch the order of one more message. */
static void look_ahead(struct reader *r)
{
	const uint8_t *p = r->chunk.buf + r->ahead;

	if (r->ahead + r->frame_len + AHEAD_LEN > r->chunk.end)
		return;
	stoup_itch_prefetch(r->itch, p + r->frame_len);
	r->ahead += r->frame_len + claimed_len(r, p);
}

/* All whole messages in the buffer. 1: the session ended, 0: more bytes are needed, or an error. */
static int take_whole(struct reader *r, struct stoup_error *err)
{
	r->ahead = r->chunk.pos;
	for (unsigned i = 0; i < AHEAD_CNT; i++)
		look_ahead(r);
	for (;;) {
		const uint8_t *p = stoup_chunk_bytes(&r->chunk);
		size_t left = stoup_chunk_left(&r->chunk);
		uint32_t len;
		int rc;

		if (left < r->frame_len || left == 0)
			return 0;
		len = claimed_len(r, p);
		if (len == 0 && r->frame_len == 0)
			return stoup_error_set(err, -EBADMSG,
				"%s: the message at offset %" PRIu64
				" is of type 0x%02x, which ITCH 5.0 "
				"does not have, and without lengths the next one can not be found",
				r->file, r->chunk.pos_off, *p);
		if (len > STOUP_ITCH_UNKNOWN_CAP)
			return stoup_error_set(err, -EBADMSG,
				"%s: the message at offset %" PRIu64 " claims %" PRIu32
				" bytes, and none of ITCH 5.0 has more than 50: no such file, or damaged",
				r->file, r->chunk.pos_off + r->frame_len, len);
		if (left < r->frame_len + len)
			return 0;
		if (len == 0) {
			stoup_chunk_take(&r->chunk, r->frame_len);
			return 1;
		}
		look_ahead(r);
		rc = stoup_itch_message(
			r->itch, p + r->frame_len, len, r->chunk.pos_off + r->frame_len, err);
		if (rc < 0)
			return rc;
		stoup_chunk_take(&r->chunk, r->frame_len + len);
	}
}

/* Nothing may follow the end of the session. */
static int end_check(struct reader *r, struct stoup_error *err)
{
	if (stoup_chunk_left(&r->chunk) == 0) {
		int rc = stoup_chunk_more(&r->chunk, r->options->allow_partial, r->sink, err);

		if (rc < 0)
			return rc;
	}
	if (stoup_chunk_left(&r->chunk) == 0)
		return 0;
	return stoup_error_set(err, -EBADMSG,
		"%s: the session ends (a length of 0) before offset %" PRIu64
		", where more bytes follow: two sessions in one file, or damage",
		r->file, r->chunk.pos_off);
}

/* The file ends: inside a message? */
static int cut_check(const struct reader *r, struct stoup_error *err)
{
	size_t left = stoup_chunk_left(&r->chunk);
	const uint8_t *p = stoup_chunk_bytes(&r->chunk);
	char what[64];

	if (left == 0)
		return 0;
	if (left < r->frame_len)
		snprintf(what, sizeof(what), "1 of the 2 bytes of its length is missing");
	else
		snprintf(what, sizeof(what), "%zu of its %" PRIu32 " bytes are missing",
			r->frame_len + claimed_len(r, p) - left, claimed_len(r, p));
	if (!r->options->allow_partial)
		return stoup_error_set(err, -ENODATA,
			"%s: the message at offset %" PRIu64
			" is cut short: %s; --allow-partial imports "
			"what is before it",
			r->file, r->chunk.pos_off + r->frame_len, what);
	stoup_sink_note(r->sink, "%s: the message at offset %" PRIu64 " is cut short: left out",
		r->file, r->chunk.pos_off + r->frame_len);
	return 0;
}

static int read_messages(struct reader *r, struct stoup_error *err)
{
	for (;;) {
		int rc = take_whole(r, err);

		if (rc < 0)
			return rc;
		if (rc == 1) {
			r->is_ended = 1;
			return end_check(r, err);
		}
		if (r->chunk.is_eof)
			return cut_check(r, err);
		rc = stoup_chunk_more(&r->chunk, r->options->allow_partial, r->sink, err);
		if (rc < 0)
			return rc;
	}
}

/* ---- entry ------------------------------------------------------------------------------------- */

static int framing_find(struct reader *r, struct stoup_input *input, struct stoup_error *err)
{
	const uint8_t *bytes;
	uint32_t cnt;
	int64_t n = stoup_input_peek(input, PEEK_LEN, &bytes, err);

	if (n < 0)
		return (int)n;
	r->frame_len = 2;
	switch (stoup_itch_probe(bytes, (size_t)n, &cnt)) {
	case STOUP_ITCH_BARE:
		r->frame_len = 0;
		return 0;
	case STOUP_ITCH_LITTLE:
		return stoup_error_set(err, -EBADMSG,
			"%s: the length of its first message (%u) is little-endian, those of ITCH files "
			"are big-endian: turn the two bytes of each length around",
			r->file, stoup_itch_len(bytes[2]));
	case STOUP_ITCH_SOUP:
		return stoup_error_set(err, -EBADMSG,
			"%s: SoupBinTCP packets: take the packets' headers off (length and type S) and put "
			"the length of the message, big-endian, before each",
			r->file);
	case STOUP_ITCH_NONE:
	case STOUP_ITCH_FRAMED:
		/* A damaged file as well: the first message that is wrong is told, with what is wrong. */
		return 0;
	}
	return 0;
}

static int options_check(const struct reader *r, struct stoup_error *err)
{
	if (r->options->series && r->options->raw != STOUP_ITCH_RAW_ONLY)
		return stoup_error_set(err, -EINVAL,
			"%s: --series names one series, and ITCH makes several of each stock: --dataset "
			"changes the first part of their names (--series goes with --raw-only)",
			r->file);
	if (r->options->raw != STOUP_ITCH_RAW_NO && !r->sink->message)
		return stoup_error_set(
			err, -ENOTSUP, "%s: raw messages can not be put there", r->file);
	return 0;
}

static int ingest(struct reader *r, struct stoup_input *input, struct stoup_error *err)
{
	struct stoup_itch_setup setup = {
		.file = r->file,
		.dataset = r->options->dataset ? r->options->dataset : STOUP_ITCH_DATASET,
		.series = r->options->series,
		.filter = r->options->filter,
		.raw = r->options->raw,
		.allow_steps = r->options->allow_steps,
		.allow_partial = r->options->allow_partial,
	};
	int rc = options_check(r, err);

	if (rc == 0)
		rc = framing_find(r, input, err);
	if (rc == 0)
		rc = day_find(r, &setup.midnight_ns, &setup.day_len_ns, err);
	if (rc == 0)
		rc = stoup_chunk_init(&r->chunk, input, CHUNK_LEN, err);
	if (rc == 0)
		rc = stoup_itch_create(r->sink, &setup, &r->itch, err);
	if (rc == 0)
		rc = read_messages(r, err);
	if (rc == 0)
		stoup_itch_finish(r->itch, r->is_ended);
	return rc;
}

int stoup_ingest_itch(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_itch_options *options, struct stoup_error *err)
{
	struct reader r = {.sink = sink, .options = options, .file = stoup_input_name(input)};
	int rc = ingest(&r, input, err);

	stoup_itch_destroy(r.itch);
	stoup_chunk_fini(&r.chunk);
	return rc;
}
