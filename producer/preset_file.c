/* SPDX-License-Identifier: Apache-2.0 */
/* preset_file.c - what a file is of: symbol, exchange and date, from options, path and columns. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "producer/new_york.h"
#include "producer/preset_plan.h"

#define SECOND_NS INT64_C(1000000000)
#define DAY_NS    (86400 * SECOND_NS)

#define WHOLE_PATH_CAP (2 * PATH_MAX)

/* ---- Binance ------------------------------------------------------------------------------------ */

static const char binance[] = "binance", binance_futures[] = "binance-futures",
		  binance_delivery[] = "binance-delivery";

/* The folders are said by the working directory where the path does not begin at the root. */
static void whole_path(const char *file, char dst[WHOLE_PATH_CAP])
{
	char directory[PATH_MAX];

	if (file[0] != '/' && getcwd(directory, sizeof(directory)))
		snprintf(dst, WHOLE_PATH_CAP, "%s/%s", directory, file);
	else
		snprintf(dst, WHOLE_PATH_CAP, "%s", file);
}

const char *stoup_preset_binance_folder(const char *file)
{
	char path[WHOLE_PATH_CAP];

	whole_path(file, path);
	if (strstr(path, "futures/cm/"))
		return binance_delivery;
	if (strstr(path, "futures/um/"))
		return binance_futures;
	return strstr(path, "spot/") ? binance : "";
}

const char *stoup_preset_binance_klines_kind(const char *file)
{
	static const char *const kinds[] = {
		"markPriceKlines", "indexPriceKlines", "premiumIndexKlines"};

	char path[WHOLE_PATH_CAP];

	whole_path(file, path);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const char *at = strstr(path, kinds[i]);

		if (at && at[strlen(kinds[i])] == '/')
			return kinds[i];
	}
	return stoup_preset_binance_klines.kind;
}

/* The archive's folders say the market; else: spot trades have is_best_match, files of futures a header
 * (since 2022), and coin margined ones are called BTCUSD_PERP. */
static const char *binance_exchange(const struct stoup_csv_plan *plan, const char *file, int header)
{
	const struct stoup_preset *preset = plan->use->preset;
	const char *folder = stoup_preset_binance_folder(file);
	int spot;

	if (folder[0])
		return folder;
	if (preset == &stoup_preset_binance_klines)
		spot = !header;
	else if (preset == &stoup_preset_binance_bookticker)
		spot = 0;
	else
		spot = plan->column_cnt == preset->bare_max;
	if (spot)
		return binance;
	return strstr(plan->use->path.symbol, "USD_PERP") ? binance_delivery : binance_futures;
}

static int is_binance(const struct stoup_preset *preset)
{
	return strncmp(preset->name, binance, strlen(binance)) == 0;
}

/* ---- what was taken ------------------------------------------------------------------------------ */

static void taken_note(const struct stoup_csv_plan *plan, const char *file, int header,
	const struct stoup_sink *sink)
{
	const struct stoup_preset *preset = plan->use->preset;
	const char *mark = strstr(preset->what, "%s");
	const char *market = strcmp(plan->use->exchange, binance) == 0 ? "spot" : "futures";

	if (!sink)
		return;
	if (!plan->options->format && mark)
		stoup_sink_note(sink, "%s: taken as %.*s%s%s (--format %s)", file,
			(int)(mark - preset->what), preset->what, market, mark + 2, preset->name);
	else if (!plan->options->format)
		stoup_sink_note(
			sink, "%s: taken as %s (--format %s)", file, preset->what, preset->name);
	if (preset == &stoup_preset_binance_klines && !header && !plan->options->exchange &&
		!plan->options->series && !stoup_preset_binance_folder(file)[0])
		stoup_sink_note(sink,
			"%s: taken as spot; old files of futures look the same (--exchange "
			"binance-futures)",
			file);
}

static void zone_note(
	const char *file, int32_t zone_s, const char *whose, const struct stoup_sink *sink)
{
	if (sink)
		stoup_sink_note(sink, "%s: times are taken as %s: UTC%c%02d:%02d (--time-zone)",
			file, whose, zone_s < 0 ? '-' : '+', (zone_s < 0 ? -zone_s : zone_s) / 3600,
			(zone_s < 0 ? -zone_s : zone_s) / 60 % 60);
}

/* ---- dates ---------------------------------------------------------------------------------------- */

/* Times of a day count from its midnight in New York, unless the user says of where. */
static int day_find(struct stoup_csv_plan *plan, const char *file, const struct stoup_sink *sink,
	struct stoup_error *err)
{
	struct stoup_preset_use *use = plan->use;
	int64_t day = plan->options->day >= 0 ? plan->options->day : use->path.day;
	int32_t zone_s = plan->options->time_format.zone_s;

	if (use->preset->clock != STOUP_PRESET_CLOCK_DAY)
		return 0;
	if (plan->options->day < 0 && !use->path.has_day)
		return stoup_error_set(err, -EINVAL,
			"line 1: %s has seconds of a day, and the file's name does not say which: say it "
			"(--date 2012-06-21)",
			use->preset->name);
	use->midnight_ns = day * DAY_NS - zone_s * SECOND_NS;
	if (plan->options->zone_given)
		return 0;
	if (stoup_new_york_midnight(day, &use->midnight_ns) < 0)
		return stoup_error_set(err, -EINVAL,
			"line 1: the date is before 1987, when New York had other rules of summer "
			"time: say the offset (--time-zone -04:00 or -05:00)");
	zone_s = (int32_t)((day * DAY_NS - use->midnight_ns) / SECOND_NS);
	zone_note(file, zone_s, "New York's of that day", sink);
	return 0;
}

/* ---- names ---------------------------------------------------------------------------------------- */

static void set(char *dst, const char *text)
{
	snprintf(dst, STOUP_PRESET_TEXT_CAP, "%s", text);
}

static int names_check(const struct stoup_csv_plan *plan, struct stoup_error *err)
{
	const struct stoup_preset_use *use = plan->use;

	if (plan->options->series)
		return 0;
	if (!use->symbol[0] && use->symbol_column == UINT32_MAX)
		return stoup_error_set(err, -EINVAL,
			"line 1: %s does not name its symbol, and the file's name is not of the form that "
			"does: say it (--symbol NAME, or --series NAME)",
			use->preset->name);
	if (!use->exchange[0] && use->exchange_column == UINT32_MAX)
		return stoup_error_set(err, -EINVAL,
			"line 1: %s does not say of which exchange it is: say it (--exchange NAME, or "
			"--series NAME)",
			use->preset->name);
	return 0;
}

static int too_long(const char *name, const char *text, struct stoup_error *err)
{
	if (!text || strlen(text) < STOUP_PRESET_TEXT_CAP)
		return 0;
	return stoup_error_set(err, -EINVAL, "--%s %.20s...: at most %d bytes", name, text,
		STOUP_PRESET_TEXT_CAP - 1);
}

int stoup_preset_file(struct stoup_csv_plan *plan, const char *file,
	const struct stoup_csv_row *first, int header, const struct stoup_sink *sink,
	struct stoup_error *err)
{
	struct stoup_preset_use *use = plan->use;
	const struct stoup_csv_options *options = plan->options;
	int rc = too_long("symbol", options->symbol, err);

	(void)first;
	if (rc == 0)
		rc = too_long("exchange", options->exchange, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; use->preset->paths[i]; i++)
		if (stoup_preset_path_match(use->preset->paths[i], file, &use->path))
			break;
	set(use->symbol, options->symbol ? options->symbol : use->path.symbol);
	if (options->exchange)
		set(use->exchange, options->exchange);
	else if (is_binance(use->preset))
		set(use->exchange, binance_exchange(plan, file, header));
	else if (use->preset->exchange)
		set(use->exchange, use->preset->exchange);
	taken_note(plan, file, header, sink);
	rc = names_check(plan, err);
	if (rc == 0)
		rc = day_find(plan, file, sink, err);
	if (rc == 0 && use->preset->zone_s && !options->zone_given)
		zone_note(file, use->preset->zone_s,
			"New York's without summer time, as HistData writes them", sink);
	return rc;
}
