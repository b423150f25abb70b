/* SPDX-License-Identifier: Apache-2.0 */
/* csv_options.c - the options of CSV import: names, values, help text (see ingest_csv.h). */
#include <errno.h>
#include <string.h>

#include "producer/cmd.h"
#include "shm/decimal.h"
#include "producer/ingest_csv.h"

void stoup_csv_options_init(struct stoup_csv_options *options)
{
	*options = (struct stoup_csv_options){
		.time_format = {.kind = STOUP_TIMESTAMP_AUTO},
		.interval_ns = -1,
		.scale = -1,
		.header = STOUP_CSV_HEADER_AUTO,
		.delimiter = ',',
		.day = -1,
		.size_scale = -1,
	};
}

static int scale_option(const char *name, const char *value, int *ret, struct stoup_error *err)
{
	int64_t scale;

	if (stoup_decimal_parse(value, strlen(value), 0, &scale) || scale < 0 || scale > 18)
		return stoup_error_set(err, -EINVAL, "--%s %s: decimals of %s, 0 to 18", name,
			value, strcmp(name, "scale") == 0 ? "price columns" : "sizes");
	*ret = (int)scale;
	return 0;
}

static int interval_option(
	struct stoup_csv_options *options, const char *value, struct stoup_error *err)
{
	int64_t interval_ns;

	if (stoup_duration_parse(value, &interval_ns) || interval_ns < 0)
		return stoup_error_set(err, -EINVAL,
			"--interval %s: the length of a bar, such as 1m, 60s or 1d (0: the time "
			"column has "
			"the bars' ends)",
			value);
	options->interval_ns = interval_ns;
	return 0;
}

static int header_option(
	struct stoup_csv_options *options, const char *value, struct stoup_error *err)
{
	static const char *const names[] = {"auto", "yes", "no"};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (strcmp(value, names[i]) == 0) {
			options->header = (enum stoup_csv_header)i;
			return 0;
		}
	}
	return stoup_error_set(err, -EINVAL, "--header %s: yes, no or auto", value);
}

static int delimiter_option(
	struct stoup_csv_options *options, const char *value, struct stoup_error *err)
{
	if (strcmp(value, "tab") == 0 || strcmp(value, "\\t") == 0)
		options->delimiter = '\t';
	else if (strlen(value) == 1)
		options->delimiter = value[0];
	else
		return stoup_error_set(
			err, -EINVAL, "--delimiter \"%s\": one character, or tab", value);
	options->delimiter_given = 1;
	return 0;
}

/* Those of presets. 0, -ENOENT, or -EINVAL with text. */
static int preset_option(struct stoup_csv_options *options, const char *name, const char *value,
	struct stoup_error *err)
{
	if (strcmp(name, "exchange") == 0)
		options->exchange = value;
	else if (strcmp(name, "size-scale") == 0)
		return scale_option(name, value, &options->size_scale, err);
	else
		return -ENOENT;
	return 0;
}

int stoup_csv_option(struct stoup_csv_options *options, const char *name, const char *value,
	struct stoup_error *err)
{
	int rc = 0;

	if (strcmp(name, "series") == 0)
		options->series = value;
	else if (strcmp(name, "schema") == 0)
		options->schema = value;
	else if (strcmp(name, "columns") == 0)
		options->columns = value;
	else if (strcmp(name, "time") == 0)
		options->time = value;
	else if (strcmp(name, "map") == 0)
		options->map = value;
	else if (strcmp(name, "time-format") == 0)
		rc = stoup_timestamp_format_parse(value, &options->time_format, err);
	else if (strcmp(name, "time-zone") == 0) {
		rc = stoup_timestamp_zone_parse(value, &options->time_format.zone_s, err);
		options->zone_given = 1;
	} else if (strcmp(name, "interval") == 0)
		rc = interval_option(options, value, err);
	else if (strcmp(name, "scale") == 0)
		rc = scale_option(name, value, &options->scale, err);
	else if (strcmp(name, "header") == 0)
		rc = header_option(options, value, err);
	else if (strcmp(name, "delimiter") == 0)
		rc = delimiter_option(options, value, err);
	else
		rc = preset_option(options, name, value, err);
	return rc;
}

const char *stoup_csv_usage(void)
{
	return "Feeds (--format; or found by the header or the file's name, which is then told):\n"
	       "  binance-trades, binance-aggtrades, binance-klines, binance-bookticker,\n"
	       "  tardis-trades, tardis-liquidations, tardis-l2, tardis-quotes, tardis-book,\n"
	       "  tardis-derivative, lobster, lobster-book, databento-csv, truefx, histdata,\n"
	       "  histdata-bars, fxcm-bars, bars, quotes; each symbol is a series, "
	       "EXCHANGE/SYMBOL/kind\n"
	       "  --symbol NAME, --exchange NAME\n"
	       "                      instead of those of the columns or the file's name\n"
	       "  --date DAY          of times that count from midnight (lobster)\n"
	       "  --size-scale N      decimals of sizes, 0 to 18 (default 8)\n"
	       "  --schema NAME       of databento-csv: mbp-1 or tbbo\n"
	       "\n"
	       "CSV (say what the columns are: --columns, or --map, or --schema with a header):\n"
	       "  --series NAME       name of the series, such as FX/GBPUSD/bars (required)\n"
	       "  --columns LIST      by position: name:type,...; - skips a column\n"
	       "                      types: time, price, u8 to u64, i8 to i64, f32, f64, char[N]\n"
	       "  --map LIST          by header: field:type=column,...; #3 is the third column\n"
	       "  --schema NAME|FILE  fields from a built-in schema or a schema file; --columns "
	       "and\n"
	       "                      --map then name fields without types (field=- leaves it "
	       "zero)\n"
	       "  --time COLUMN       the column that is the key\n"
	       "  --time-format F     auto (default), iso, epoch, s, ms, us, ns, or %Y %m %d %H %M "
	       "%S\n"
	       "                      %f %z in a pattern\n"
	       "  --time-zone OFFSET  of times without an offset: UTC (default), +01:00, -0530\n"
	       "  --interval LENGTH   the rows are bars of this length, named by their open times\n"
	       "  --scale N           decimals of price columns, 0 to 18 (default 9)\n"
	       "  --header yes|no|auto  is the first row a header (auto: it has no number or "
	       "time)\n"
	       "  --delimiter C       between columns: a character or tab (default: comma)\n";
}
