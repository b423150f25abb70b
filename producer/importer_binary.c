/* SPDX-License-Identifier: Apache-2.0 */
/* importer_binary.c - see importer_binary.h. */
#include "producer/importer_binary.h"

#include <errno.h>
#include <string.h>
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
	if (strcmp(name, "dataset") == 0)
		options->itch.dataset = value;
	else if (strcmp(name, "date") == 0)
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

const struct stoup_importer stoup_importer_itch = {
	.name = "itch50",
	.what = "ITCH 5.0",
	.suffixes = itch_suffixes,
	.has_symbols = 1,
	.is = itch_is,
	.flag = itch_flag,
	.option = itch_option,
	.usage = itch_usage,
	.ingest = itch_ingest,
};
