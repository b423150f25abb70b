/* SPDX-License-Identifier: Apache-2.0 */
/* importer_binary.c - see importer_binary.h. */
#include "producer/importer_binary.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "producer/bi5.h"
#include "producer/itch.h"

/* ---- ITCH 5.0 ---------------------------------------------------------------------------------- */

#define ITCH_SURE_CNT 8u /* consistent messages; a short file has fewer */

static int itch_is(const uint8_t *bytes, size_t len, const char *path)
{
	uint32_t cnt;
	enum stoup_itch_framing framing = stoup_itch_probe(bytes, len, &cnt);

	if (framing != STOUP_ITCH_NONE && cnt >= ITCH_SURE_CNT)
		return STOUP_FORMAT_SURE;
	if (stoup_itch_name_is(path))
		return STOUP_FORMAT_SURE;
	return framing == STOUP_ITCH_NONE ? STOUP_FORMAT_NO : STOUP_FORMAT_GUESS;
}

/* The day stands in the name alone. */
static int itch_meaning(
	const struct stoup_ingest_options *options, const char *path, char *dst, size_t cap)
{
	unsigned year, month, day;

	(void)options;
	if (!stoup_itch_name_is(path) || stoup_itch_name_date(path, &year, &month, &day) < 0)
		return 0;
	snprintf(dst, cap, "itch50 %u-%u-%u", year, month, day);
	return 1;
}

static int itch_flag(struct stoup_ingest_options *options, const char *name)
{
	if (strcmp(name, "raw") == 0)
		options->itch.raw = STOUP_ITCH_RAW_ALSO;
	else if (strcmp(name, "raw-only") == 0)
		options->itch.raw = STOUP_ITCH_RAW_ONLY;
	else if (strcmp(name, "no-raw") == 0)
		options->itch.raw = STOUP_ITCH_RAW_NO;
	else
		return 0;
	return 1;
}

static int itch_option(struct stoup_ingest_options *options, const char *name, const char *value,
	struct stoup_error *err)
{
	if (strcmp(name, "date") == 0)
		options->date = value;
	else if (strcmp(name, "time-zone") == 0) {
		/* CSV has the same option: it is read here and left to be taken there. */
		options->itch.has_zone =
			stoup_timestamp_zone_parse(value, &options->itch.zone_s, err) == 0;
		return -ENOENT;
	} else
		return -ENOENT;
	return 0;
}

static int itch_ingest(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_ingest_options *options, struct stoup_error *err)
{
	struct stoup_itch_options itch = options->itch;

	itch.series = options->series;
	itch.dataset = options->dbn.dataset; /* one option for all that name series by datasets */
	itch.date = options->date;
	itch.filter = &options->filter;
	itch.allow_partial = options->allow_partial;
	itch.allow_steps = options->allow_steps;
	return stoup_ingest_itch(sink, input, &itch, err);
}

static const char *itch_usage(void)
{
	return "ITCH 5.0 (itch50): order events, trades and imbalances of each stock, DATASET/STOCK/schema;\n"
	       "all other messages in DATASET/MARKET/schema:\n"
	       "  --date DATE         the day (default: by the name, as 01302019.NASDAQ_ITCH50.gz)\n"
	       "  --time-zone ZONE    offset of its midnight (default: New York's on that day)\n"
	       "  --dataset NAME      first part of the series' names (default NASDAQ.ITCH)\n"
	       "  --raw, --raw-only   the messages themselves as well, or alone: DATASET/MARKET/itch50\n"
	       "                      (--no-raw, the default: no)\n"
	       "  --allow-partial     of a file that begins or ends within the day take what is whole\n";
}

static const char *const itch_suffixes[] = {".NASDAQ_ITCH50", "-v50.txt", ".itch50", NULL};

static const char *const itch_takes[] = {
	"date", "time-zone", "dataset", "raw", "raw-only", "no-raw", NULL};

const struct stoup_importer stoup_importer_itch = {
	.name = "itch50",
	.what = "ITCH 5.0",
	.suffixes = itch_suffixes,
	.takes = itch_takes,
	.has_symbols = 1,
	.is = itch_is,
	.meaning = itch_meaning,
	.flag = itch_flag,
	.option = itch_option,
	.usage = itch_usage,
	.ingest = itch_ingest,
};

/* ---- Dukascopy bi5 ----------------------------------------------------------------------------- */

static int bi5_is(const uint8_t *bytes, size_t len, const char *path)
{
	size_t path_len = strlen(path);

	(void)bytes;
	(void)len;
	return path_len >= 4 && strcasecmp(path + path_len - 4, ".bi5") == 0 ? STOUP_FORMAT_SURE
	                                                                     : STOUP_FORMAT_NO;
}

/* Symbol, date and hour stand in the path alone. */
static int bi5_meaning(
	const struct stoup_ingest_options *options, const char *path, char *dst, size_t cap)
{
	struct stoup_bi5_path p;

	(void)options;
	if (bi5_is(NULL, 0, path) == STOUP_FORMAT_NO || stoup_bi5_path_parse(path, &p) < 0)
		return 0;
	snprintf(dst, cap, "bi5 %s %u-%u-%u %d", p.symbol, p.year, p.month, p.day, p.hour);
	return 1;
}

/* A small number, whole; or -1. */
static int small_number(const char *value, int max)
{
	int number = 0;

	if (*value == '\0' || strlen(value) > 2)
		return -1;
	for (const char *p = value; *p; p++) {
		if (*p < '0' || *p > '9')
			return -1;
		number = number * 10 + (*p - '0');
	}
	return number <= max ? number : -1;
}

static int bi5_option(struct stoup_ingest_options *options, const char *name, const char *value,
	struct stoup_error *err)
{
	if (strcmp(name, "symbol") == 0) {
		options->symbol = value;
		return 0;
	}
	/* Given ones are kept as one more: 0 is not given. */
	if (strcmp(name, "hour") == 0) {
		options->bi5_hour = small_number(value, 23) + 1;
		return options->bi5_hour > 0
		               ? 0
		               : stoup_error_set(err, -EINVAL, "--hour %.40s: 0 to 23, UTC", value);
	}
	if (strcmp(name, "point") == 0) {
		options->bi5_point = small_number(value, 9) + 1;
		return options->bi5_point > 0
		               ? 0
		               : stoup_error_set(err, -EINVAL,
					 "--point %.40s: decimals of a price, 0 to 9", value);
	}
	return -ENOENT;
}

static int bi5_ingest(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_ingest_options *options, struct stoup_error *err)
{
	const struct stoup_bi5_options bi5 = {
		.series = options->series,
		.dataset = options->dbn.dataset,
		.symbol = options->symbol,
		.date = options->date,
		.hour = options->bi5_hour - 1,
		.point = options->bi5_point - 1,
		.allow_partial = options->allow_partial,
		.allow_steps = options->allow_steps,
		.filter = &options->filter,
	};

	return stoup_ingest_bi5(sink, input, &bi5, err);
}

static const char *bi5_usage(void)
{
	return "Dukascopy (bi5): an hour of ticks, DUKASCOPY/SYMBOL/bi5; the path says symbol, date and hour,\n"
	       "as EURUSD/2020/00/15/10h_ticks.bi5 (month 00 is January), or:\n"
	       "  --symbol S, --date DATE, --hour H   (UTC; here January is 01)\n"
	       "  --point N           decimals of its prices (default: 3 for XAU, XAG and pairs with JPY, 5\n"
	       "                      for other pairs of AUD CAD CHF EUR GBP NZD USD; else refused)\n";
}

static const char *const bi5_suffixes[] = {".bi5", NULL};

static const char *const bi5_takes[] = {"symbol", "date", "hour", "point", "dataset", NULL};

const struct stoup_importer stoup_importer_bi5 = {
	.name = "bi5",
	.what = "Dukascopy ticks",
	.suffixes = bi5_suffixes,
	.takes = bi5_takes,
	.has_symbols = 1,
	.is = bi5_is,
	.meaning = bi5_meaning,
	.option = bi5_option,
	.usage = bi5_usage,
	.ingest = bi5_ingest,
};

/* ---- messages behind their lengths ------------------------------------------------------------- */

static int frames_option(struct stoup_ingest_options *options, const char *name, const char *value,
	struct stoup_error *err)
{
	return stoup_frames_option(&options->frames, name, value, err);
}

static int frames_ingest(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_ingest_options *options, struct stoup_error *err)
{
	struct stoup_frames_options frames = options->frames;

	frames.series = options->series;
	frames.allow_partial = options->allow_partial;
	return stoup_ingest_frames(sink, input, &frames, err);
}

static const char *frames_usage(void)
{
	return "Messages behind their lengths (--format frames; --series NAME), kept as they are:\n"
	       "  --frame-length TYPE u8, u16be, u16le, u32be, u32le, u64be, u64le: bytes of the message\n"
	       "  --frame-time OFFSET:TYPE:UNIT\n"
	       "                      the time inside the message, since 1970: 5:u64be:ns\n"
	       "  --frame-time-first TYPE:UNIT\n"
	       "                      the time before the length: u64le:us\n";
}

static const char *const frames_takes[] = {"frame-length", "frame-time", "frame-time-first", NULL};

const struct stoup_importer stoup_importer_frames = {
	.name = "frames",
	.what = "messages behind their lengths",
	.takes = frames_takes,
	.option = frames_option,
	.usage = frames_usage,
	.ingest = frames_ingest,
};
