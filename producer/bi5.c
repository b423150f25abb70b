/* SPDX-License-Identifier: Apache-2.0 */
/* bi5.c - see bi5.h. */
#include "producer/bi5.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/chunk.h"
#include "producer/itch_schema.h"
#include "producer/new_york.h"
#include "shm/timestamp.h"

#define CHUNK_LEN (STOUP_BI5_ROW_LEN * 3276u) /* 64 KiB of rows */
#define HOUR_MS   3600000u
#define HOUR_NS   INT64_C(3600000000000)
#define MS_NS     INT64_C(1000000)
#define PARTS     5u /* of a path: SYMBOL/YYYY/MM/DD/HHh_ticks.bi5 */
#define POINT_MAX 9

/* One record: 24 bytes. */
struct tick {
	int64_t ts;
	uint32_t ask, bid;
	uint32_t ask_vol, bid_vol; /* bits of the floats */
};

struct reader {
	const struct stoup_sink *sink;
	const struct stoup_bi5_options *options;
	struct stoup_chunk chunk;
	const char *file;
	struct stoup_bi5_path path; /* completed by the options */
	struct stoup_schema_draft *schema;
	int64_t hour_ns;
	uint32_t series_idx;
	uint32_t last_ms;
	uint64_t row_cnt, step_cnt;
};

/* ---- path and instrument ----------------------------------------------------------------------- */

/* The number of exactly `len` digits, or -1. */
static int digits(const char *text, size_t text_len, size_t len)
{
	int value = 0;

	if (text_len != len)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		value = value * 10 + (text[i] - '0');
	}
	return value;
}

static int symbol_valid(const char *text, size_t len)
{
	if (len == 0 || len >= sizeof(((struct stoup_bi5_path *)0)->symbol))
		return 0;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
			return 0;
	return 1;
}

int stoup_bi5_path_parse(const char *path, struct stoup_bi5_path *ret)
{
	const char *part[PARTS] = {0};
	size_t len[PARTS] = {0}, end = strlen(path);
	int year, month, day;

	*ret = (struct stoup_bi5_path){.hour = -1};
	for (unsigned i = 0; i < PARTS; i++) {
		size_t start = end;

		while (start > 0 && path[start - 1] != '/')
			start--;
		part[i] = path + start;
		len[i] = end - start;
		if (start == 0)
			break;
		end = start - 1;
	}
	if (len[0] > 3 && part[0][2] == 'h' && digits(part[0], 2, 2) >= 0)
		ret->hour = digits(part[0], 2, 2);
	day = part[1] ? digits(part[1], len[1], 2) : -1;
	month = part[2] ? digits(part[2], len[2], 2) : -1;
	year = part[3] ? digits(part[3], len[3], 4) : -1;
	if (year < 0 || month < 0 || day < 0)
		return 0;
	if (part[4] && symbol_valid(part[4], len[4]))
		memcpy(ret->symbol, part[4], len[4]);
	/* The path counts months from 0. */
	if (month > 11 || day < 1 ||
		(unsigned)day > stoup_month_days((unsigned)year, (unsigned)month + 1))
		return -EINVAL;
	ret->year = (unsigned)year;
	ret->month = (unsigned)month + 1;
	ret->day = (unsigned)day;
	return 0;
}

int stoup_bi5_point(const char *symbol)
{
	static const char known[] = "AUD CAD CHF EUR GBP JPY NZD USD";
	static const char *const metals[] = {"XAUUSD", "XAGUSD"};
	char base[4] = {0}, quote[4] = {0};

	for (size_t i = 0; i < 2; i++)
		if (strcmp(symbol, metals[i]) == 0)
			return 3;
	if (strlen(symbol) != 6)
		return -1;
	memcpy(base, symbol, 3);
	memcpy(quote, symbol + 3, 3);
	/* Three letters never match across the blanks between the names. */
	if (!strstr(known, base) || !strstr(known, quote) || strchr(base, ' ') ||
		strchr(quote, ' '))
		return -1;
	return strcmp(quote, "JPY") == 0 ? 3 : 5;
}

/* Path and options together: symbol, hour and decimals, each once. */
static int what_complete(struct reader *r, int *ret_point, struct stoup_error *err)
{
	const struct stoup_bi5_options *o = r->options;
	struct stoup_bi5_path *p = &r->path;

	if (stoup_bi5_path_parse(r->file, p) < 0 && !o->date)
		return stoup_error_set(err, -EINVAL,
			"%s: the path has a date that does not exist (months are 00 to 11 there): say it "
			"(--date 2020-01-15)",
			r->file);
	if (o->date && stoup_date_parse(o->date, &p->year, &p->month, &p->day) < 0)
		return stoup_error_set(err, -EINVAL,
			"--date %.40s: a date that exists, as 2020-01-15 or 20200115", o->date);
	if (o->symbol && !symbol_valid(o->symbol, strlen(o->symbol)))
		return stoup_error_set(err, -EINVAL,
			"--symbol %.40s: 1 to 31 letters, digits and . _ -, as EURUSD", o->symbol);
	if (o->symbol)
		snprintf(p->symbol, sizeof(p->symbol), "%s", o->symbol);
	if (o->hour >= 0)
		p->hour = o->hour;
	if (!p->symbol[0] || p->year == 0 || p->hour < 0 || p->hour > 23)
		return stoup_error_set(err, -EINVAL,
			"%s: the path does not say the %s, as EURUSD/2020/00/15/10h_ticks.bi5 does: say it "
			"(%s)",
			r->file,
			!p->symbol[0]  ? "symbol"
			: p->year == 0 ? "date"
				       : "hour",
			!p->symbol[0]  ? "--symbol EURUSD"
			: p->year == 0 ? "--date 2020-01-15"
				       : "--hour 10");
	*ret_point = o->point >= 0 ? o->point : stoup_bi5_point(p->symbol);
	if (*ret_point < 0)
		return stoup_error_set(err, -EINVAL,
			"%s: the decimals of the prices of %s are not known: say them (--point 5: a price "
			"of 123456 is 1.23456)",
			r->file, p->symbol);
	if (p->year < 1971 || p->year > 2261)
		return stoup_error_set(
			err, -EINVAL, "%s: %u is no year of ticks", r->file, p->year);
	r->hour_ns = (stoup_timestamp_days(p->year, p->month, p->day) * 24 + p->hour) * HOUR_NS;
	return 0;
}

/* ---- series ------------------------------------------------------------------------------------ */

static int schema_create(struct reader *r, int point, struct stoup_error *err)
{
	char text[160];
	int len = snprintf(text, sizeof(text),
		"schema bi5\nkey ts\nts i64 time\nask u32 scale=-%d\nbid u32 scale=-%d\n"
		"ask_vol f32\nbid_vol f32\n",
		point, point);

	return stoup_schema_text_parse(text, (size_t)len, "bi5", &r->schema, err);
}

static int series_open(struct reader *r, struct stoup_error *err)
{
	char name[STOUP_SERIES_NAME_CAP], symbol[3 * sizeof(r->path.symbol)];
	const char *dataset = r->options->dataset ? r->options->dataset : STOUP_BI5_DATASET;
	int64_t idx;

	stoup_symbol_escape(r->path.symbol, symbol, sizeof(symbol));
	if (snprintf(name, sizeof(name), "%s/%s/bi5", dataset, symbol) >= (int)sizeof(name))
		return stoup_error_set(err, -ENAMETOOLONG, "--dataset %.40s...: too long", dataset);
	idx = r->sink->series(r->sink->arg, r->options->series ? r->options->series : name,
		&r->schema->schema, err);
	if (idx < 0)
		return (int)idx;
	r->series_idx = (uint32_t)idx;
	return 0;
}

/* ---- rows -------------------------------------------------------------------------------------- */

/* Does it begin as a page or a message of a server does? */
static int is_text(const struct reader *r)
{
	const uint8_t *p = stoup_chunk_bytes(&r->chunk);

	return r->row_cnt == 0 && (*p == '<' || *p == '{');
}

static int text_bad(const struct reader *r, struct stoup_error *err)
{
	const uint8_t *p = stoup_chunk_bytes(&r->chunk);
	char start[9];
	size_t len = 0;

	while (len < sizeof(start) - 1 && len < stoup_chunk_left(&r->chunk) && isprint(p[len])) {
		start[len] = (char)p[len];
		len++;
	}
	start[len] = '\0';
	return stoup_error_set(err, -EBADMSG,
		"%s: begins with \"%s\": a text, as a server sends where it has no file, and no ticks: "
		"download it again",
		r->file, start);
}

static int row_bad(const struct reader *r, uint32_t ms, struct stoup_error *err)
{
	uint32_t other = __builtin_bswap32(ms);

	if (is_text(r))
		return text_bad(r, err);
	if (r->row_cnt == 0 && other < HOUR_MS)
		return stoup_error_set(err, -EBADMSG,
			"%s: its first row is little-endian (%" PRIu32
			" ms as such), rows of bi5 are big-endian: not a file of Dukascopy",
			r->file, other);
	return stoup_error_set(err, -EBADMSG,
		"%s: row %" PRIu64 " (offset %" PRIu64 " unpacked) is at %" PRIu32
		" ms, and an hour has 3600000: no bi5 file, or damaged",
		r->file, r->row_cnt + 1, r->chunk.pos_off, ms);
}

static int row_put(struct reader *r, const uint8_t *row, struct stoup_error *err)
{
	const struct stoup_where where = {r->file, 0, r->chunk.pos_off};
	uint32_t ms = stoup_be32(row);
	struct tick tick = {.ts = r->hour_ns + ms * MS_NS,
		.ask = stoup_be32(row + 4),
		.bid = stoup_be32(row + 8),
		.ask_vol = stoup_be32(row + 12),
		.bid_vol = stoup_be32(row + 16)};

	if (ms >= HOUR_MS)
		return row_bad(r, ms, err);
	if (ms < r->last_ms && !r->options->allow_steps)
		return stoup_error_set(err, -EILSEQ,
			"%s: row %" PRIu64 " (offset %" PRIu64 " unpacked) is at %" PRIu32
			" ms, before %" PRIu32
			" ms of the row before it; --sort sorts, --order=keep keeps the order",
			r->file, r->row_cnt + 1, r->chunk.pos_off, ms, r->last_ms);
	r->step_cnt += ms < r->last_ms;
	r->last_ms = ms;
	r->row_cnt++;
	return r->sink->put(r->sink->arg, r->series_idx, tick.ts, &tick, &where, err);
}

static int rows_read(struct reader *r, struct stoup_error *err)
{
	for (;;) {
		int rc = stoup_chunk_more(&r->chunk, r->options->allow_partial, r->sink, err);

		while (rc == 0 && stoup_chunk_left(&r->chunk) >= STOUP_BI5_ROW_LEN) {
			rc = row_put(r, stoup_chunk_bytes(&r->chunk), err);
			stoup_chunk_take(&r->chunk, STOUP_BI5_ROW_LEN);
		}
		if (rc < 0)
			return rc;
		if (!r->chunk.is_eof)
			continue;
		if (stoup_chunk_left(&r->chunk) == 0)
			return 0;
		/* A text is shorter than a row, perhaps. */
		if (is_text(r))
			return text_bad(r, err);
		if (!r->options->allow_partial)
			return stoup_error_set(err, -ENODATA,
				"%s: %zu bytes follow row %" PRIu64
				" at its end, and a row has 20: cut short, or no bi5; --allow-partial "
				"leaves them out",
				r->file, stoup_chunk_left(&r->chunk), r->row_cnt);
		stoup_sink_note(r->sink, "%s: %zu bytes behind row %" PRIu64 " are left out",
			r->file, stoup_chunk_left(&r->chunk), r->row_cnt);
		return 0;
	}
}

/* ---- entry ------------------------------------------------------------------------------------- */

static int ingest(struct reader *r, struct stoup_input *input, struct stoup_error *err)
{
	int point = -1, rc = what_complete(r, &point, err);

	if (rc < 0)
		return rc;
	if (!stoup_intake_symbol(r->options->filter, r->path.symbol))
		return 0;
	rc = schema_create(r, point, err);
	if (rc == 0)
		rc = stoup_chunk_init(&r->chunk, input, CHUNK_LEN, err);
	if (rc == 0)
		rc = series_open(r, err);
	if (rc == 0)
		rc = rows_read(r, err);
	if (rc == 0 && r->row_cnt == 0)
		stoup_sink_note(r->sink, "%s: an hour without ticks", r->file);
	if (rc == 0 && r->step_cnt > 0)
		stoup_sink_note(r->sink, "%s: rows that are before the one before them: %" PRIu64,
			r->file, r->step_cnt);
	return rc;
}

int stoup_ingest_bi5(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_bi5_options *options, struct stoup_error *err)
{
	struct reader r = {.sink = sink, .options = options, .file = stoup_input_name(input)};
	int rc = ingest(&r, input, err);

	stoup_schema_draft_destroy(r.schema);
	stoup_chunk_fini(&r.chunk);
	return rc;
}
