/* SPDX-License-Identifier: Apache-2.0 */
/* event64_csv.c - market data as exchanges' archives have it, to hftbacktest's events.
 *
 *      first row --which feed?--> columns of time, local time, side, price, quantity
 *                                   |  a header: by its names
 *                                   +--none: by where its true or false stands
 *
 *      Tardis trades                  buy, sell: the side that took the other
 *      Tardis incremental_book_L2     rows of one snapshot: per side a clear down to its last level, then
 *                                     its levels, bids first; other rows are levels, 0 takes one away
 *      Binance trades, aggTrades      the buyer made the order: the seller took it
 *      Binance bookTicker             the best level of each side
 *
 * Binance's files have no local time: it is the exchange's and --feed-latency.
 *
 * Invariant: prices and quantities are the doubles nearest to their texts; a text that is none, or a
 * number of columns that differs, is an error with its line.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "producer/csv.h"
#include "producer/csv_value.h"
#include "producer/event64_build.h"
#include "producer/preset.h"
#include "shm/timestamp.h"

#define NO_COLUMN UINT32_MAX
#define SHOWN_CAP 40
#define ENDING    "/event64"

enum feed {
	TARDIS_TRADES,
	TARDIS_BOOK,
	BINANCE_TRADES,
	BINANCE_AGG_TRADES,
	BINANCE_BOOK_TICKER,
	FEED_CNT
};

/* What a column of a feed is. */
enum role {
	EXCHANGE,
	SYMBOL,
	EXCH_TIME,
	LOCAL_TIME,
	SNAPSHOT,
	SIDE,
	MAKER,
	PRICE,
	QTY,
	ASK_PRICE,
	ASK_QTY,
	ROLE_CNT
};

struct layout {
	const char *name;
	uint32_t tells;
	const struct stoup_preset *preset; /* whose columns these are */
	const char *columns[ROLE_CNT];     /* by role: the field, whose column has had some names */
};

static const struct layout layouts[FEED_CNT] = {
	[TARDIS_TRADES] = {"Tardis trades", STOUP_EVENT64_TRADES, &stoup_preset_tardis_trades,
		{[EXCHANGE] = "exchange",
			[SYMBOL] = "symbol",
			[EXCH_TIME] = "timestamp",
			[LOCAL_TIME] = "local_timestamp",
			[SIDE] = "side",
			[PRICE] = "price",
			[QTY] = "amount"}},
	[TARDIS_BOOK] = {"Tardis incremental_book_L2", STOUP_EVENT64_BOOK, &stoup_preset_tardis_l2,
		{[EXCHANGE] = "exchange",
			[SYMBOL] = "symbol",
			[EXCH_TIME] = "timestamp",
			[LOCAL_TIME] = "local_timestamp",
			[SNAPSHOT] = "is_snapshot",
			[SIDE] = "side",
			[PRICE] = "price",
			[QTY] = "amount"}},
	[BINANCE_TRADES] = {"Binance trades", STOUP_EVENT64_TRADES, &stoup_preset_binance_trades,
		{[EXCH_TIME] = "time",
			[MAKER] = "is_buyer_maker",
			[PRICE] = "price",
			[QTY] = "qty"}},
	[BINANCE_AGG_TRADES] = {"Binance aggTrades", STOUP_EVENT64_TRADES,
		&stoup_preset_binance_aggtrades,
		{[EXCH_TIME] = "transact_time",
			[MAKER] = "is_buyer_maker",
			[PRICE] = "price",
			[QTY] = "quantity"}},
	[BINANCE_BOOK_TICKER] = {"Binance bookTicker", STOUP_EVENT64_BOOK,
		&stoup_preset_binance_bookticker,
		{[EXCH_TIME] = "transaction_time",
			[PRICE] = "best_bid_price",
			[QTY] = "best_bid_qty",
			[ASK_PRICE] = "best_ask_price",
			[ASK_QTY] = "best_ask_qty"}},
};

/* Levels of a snapshot of one side, until all are there. */
struct levels {
	struct stoup_event64 *events;
	size_t cnt, cap;
};

struct reader {
	struct stoup_event64_build *build;
	const struct stoup_event64_options *options;
	const char *file;
	enum feed feed;
	uint32_t column_cnt;
	uint32_t columns[ROLE_CNT];
	uint32_t series_idx;
	char series[STOUP_SERIES_NAME_CAP]; /* of the row before; empty: none */
	char exchange[STOUP_SERIES_NAME_CAP], symbol[STOUP_SERIES_NAME_CAP]; /* likewise */
	struct levels bids, asks; /* of a snapshot that is not added yet */
	struct stoup_where snapshot_where;
};

/* ---- errors ----------------------------------------------------------------------------------- */

static int refuse(const struct reader *r, const struct stoup_csv_row *row, enum role role,
	const char *why, struct stoup_error *err)
{
	const struct stoup_csv_field *field = &row->fields[r->columns[role]];
	int len = field->len < SHOWN_CAP ? (int)field->len : SHOWN_CAP;

	return stoup_error_set(err, -EBADMSG, "%.120s: line %llu, column %u (%s): \"%.*s\" %s",
		r->file, (unsigned long long)row->line, r->columns[role] + 1,
		layouts[r->feed].columns[role], len, field->text, why);
}

/* ---- which feed ------------------------------------------------------------------------------- */

static int field_is(const struct stoup_csv_field *field, const char *text)
{
	return field->len == strlen(text) && memcmp(field->text, text, field->len) == 0;
}

/* The column of a role that a feed has; NO_COLUMN where the header has it not. */
static uint32_t column_of(const struct stoup_csv_row *row, enum feed feed, int role)
{
	return stoup_preset_find(
		row, stoup_preset_names(layouts[feed].preset, layouts[feed].columns[role]), 0);
}

/* Does the header have all columns of a feed? */
static int header_has(const struct stoup_csv_row *row, enum feed feed, uint32_t columns[ROLE_CNT])
{
	for (int role = 0; role < ROLE_CNT; role++) {
		columns[role] = NO_COLUMN;
		if (!layouts[feed].columns[role])
			continue;
		columns[role] = column_of(row, feed, role);
		if (columns[role] == NO_COLUMN)
			return 0;
	}
	return 1;
}

static int is_bool(const struct stoup_csv_field *field)
{
	return (field->len == 4 && strncasecmp(field->text, "true", 4) == 0) ||
	       (field->len == 5 && strncasecmp(field->text, "false", 5) == 0);
}

/* Files of Binance without a header: id, price, qty, quote_qty, time, maker[, best match], or
 * id, price, qty, first, last, time, maker[, best match]. */
static int positions(struct reader *r, const struct stoup_csv_row *row)
{
	uint32_t cnt = row->field_cnt;

	for (int role = 0; role < ROLE_CNT; role++)
		r->columns[role] = NO_COLUMN;
	if ((cnt == 6 || cnt == 7) && is_bool(&row->fields[5])) {
		r->feed = BINANCE_TRADES;
		r->columns[EXCH_TIME] = 4;
		r->columns[MAKER] = 5;
	} else if ((cnt == 7 || cnt == 8) && is_bool(&row->fields[6])) {
		r->feed = BINANCE_AGG_TRADES;
		r->columns[EXCH_TIME] = 5;
		r->columns[MAKER] = 6;
	} else {
		return -ENOTSUP;
	}
	r->columns[PRICE] = 1;
	r->columns[QTY] = 2;
	return 0;
}

static int needs(const struct reader *r, struct stoup_error *err)
{
	if (r->columns[LOCAL_TIME] == NO_COLUMN && r->options->feed_latency_ns < 0)
		return stoup_error_set(err, -EINVAL,
			"%s: %s has no local time: say how long its events take to you (--feed-latency 5ms), "
			"since with 0 a backtest sees them as they happen",
			r->file, layouts[r->feed].name);
	if (r->columns[SYMBOL] == NO_COLUMN && !r->options->series)
		return stoup_error_set(err, -EINVAL,
			"%s: %s does not name its symbol: say the name of the series (--series NAME)",
			r->file, layouts[r->feed].name);
	return 0;
}

/* A column that a header names twice could be either. */
static int header_check(
	const struct reader *r, const struct stoup_csv_row *row, struct stoup_error *err)
{
	for (int role = 0; role < ROLE_CNT; role++) {
		uint32_t column = r->columns[role];

		for (uint32_t i = 0; column != NO_COLUMN && i < row->field_cnt; i++)
			if (i != column && row->fields[i].len == row->fields[column].len &&
				memcmp(row->fields[i].text, row->fields[column].text,
					row->fields[i].len) == 0)
				return stoup_error_set(err, -EINVAL,
					"%s: columns %u and %u are both named %.*s: which one counts? "
					"rename the other",
					r->file, (column < i ? column : i) + 1,
					(column < i ? i : column) + 1, (int)row->fields[i].len,
					row->fields[i].text);
	}
	return 0;
}

/* Of a row that is no header of a feed: the feed of which all columns but one are there, and that one. */
static const char *nearest(const struct stoup_csv_row *row, enum feed *ret)
{
	for (int feed = 0; feed < FEED_CNT; feed++) {
		const char *missing = NULL;
		int missing_cnt = 0;

		for (int role = 0; role < ROLE_CNT; role++) {
			const char *name = layouts[feed].columns[role];

			if (!name || column_of(row, (enum feed)feed, role) != NO_COLUMN)
				continue;
			missing = name;
			missing_cnt++;
		}
		*ret = (enum feed)feed;
		if (missing_cnt == 1)
			return missing;
	}
	return NULL;
}

static int refuse_columns(
	const struct reader *r, const struct stoup_csv_row *row, struct stoup_error *err)
{
	enum feed feed;
	const char *missing = nearest(row, &feed);

	if (missing)
		return stoup_error_set(err, -ENOTSUP,
			"%s: the columns of %s, but without %s: events need it", r->file,
			layouts[feed].name, missing);
	return stoup_error_set(err, -ENOTSUP,
		"%s: not the columns of Tardis trades or incremental_book_L2, nor of Binance trades, "
		"aggTrades or bookTicker: these become events",
		r->file);
}

/* 1: the row is a header; 0: it is data. The book feed has all columns of the trade feed, and one more. */
static int feed_find(struct reader *r, const struct stoup_csv_row *row, struct stoup_error *err)
{
	static const enum feed order[] = {TARDIS_BOOK, TARDIS_TRADES, BINANCE_BOOK_TICKER,
		BINANCE_AGG_TRADES, BINANCE_TRADES};
	int header = 0, rc;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]) && !header; i++) {
		header = header_has(row, order[i], r->columns);
		r->feed = order[i];
	}
	if (!header && positions(r, row) < 0)
		return refuse_columns(r, row, err);
	r->column_cnt = row->field_cnt;
	rc = header ? header_check(r, row, err) : 0;
	if (rc == 0)
		rc = needs(r, err);
	return rc < 0 ? rc : header;
}

/* ---- values ----------------------------------------------------------------------------------- */

static int time_get(const struct reader *r, const struct stoup_csv_row *row, enum role role,
	int64_t *ret, struct stoup_error *err)
{
	const struct stoup_csv_field *field = &row->fields[r->columns[role]];
	/* Tardis writes us, Binance ms and us; a file that somebody converted may have others. */
	static const struct stoup_timestamp_format format = {.kind = STOUP_TIMESTAMP_EPOCH};
	const char *why = "";

	if (stoup_timestamp_parse(&format, field->text, field->len, ret, &why) < 0)
		return refuse(r, row, role,
			"is no time: a number of ms, us or ns (or s) since 1970 is, from 1973 on",
			err);
	return 0;
}

static int number_get(const struct reader *r, const struct stoup_csv_row *row, enum role role,
	double *ret, struct stoup_error *err)
{
	static const struct stoup_field as_double = {.cnt = 1, .type = STOUP_TYPE_F64};
	static const struct stoup_timestamp_format unused;
	const struct stoup_csv_field *field = &row->fields[r->columns[role]];
	const char *why = "";
	uint8_t bytes[8];

	if (stoup_csv_value_parse(&as_double, &unused, field->text, field->len, bytes, &why) < 0)
		return refuse(r, row, role, why, err);
	memcpy(ret, bytes, sizeof(*ret));
	if (*ret < 0 && (role == QTY || role == ASK_QTY))
		return refuse(r, row, role, "is a quantity below zero", err);
	return 0;
}

static int bool_get(const struct reader *r, const struct stoup_csv_row *row, enum role role,
	int *ret, struct stoup_error *err)
{
	const struct stoup_csv_field *field = &row->fields[r->columns[role]];

	if (!is_bool(field))
		return refuse(r, row, role, "is not true or false", err);
	*ret = field->len == 4;
	return 0;
}

/* ---- snapshots -------------------------------------------------------------------------------- */

static int level_keep(struct levels *levels, const struct stoup_event64 *event)
{
	size_t cap = levels->cap ? levels->cap * 2 : 64;
	struct stoup_event64 *grown;

	if (levels->cnt == levels->cap) {
		grown = realloc(levels->events, cap * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		levels->events = grown;
		levels->cap = cap;
	}
	levels->events[levels->cnt++] = *event;
	return 0;
}

/* The level of a snapshot's side that is farthest from the other side. */
static double farthest(const struct levels *levels)
{
	double px = levels->events[0].px;

	for (size_t i = 1; i < levels->cnt; i++) {
		double next = levels->events[i].px;

		if (levels->events[0].ev & STOUP_EV_BUY ? next < px : next > px)
			px = next;
	}
	return px;
}

/* A clear of one side down to the last of its levels, then the levels. */
static int side_flush(struct reader *r, struct levels *levels, struct stoup_error *err)
{
	struct stoup_event64 clear;
	int rc;

	if (levels->cnt == 0)
		return 0;
	clear = levels->events[0];
	clear.ev = STOUP_EV_CLEAR | (clear.ev & (STOUP_EV_BUY | STOUP_EV_SELL));
	clear.px = farthest(levels);
	clear.qty = 0;
	rc = stoup_event64_build_add(r->build, r->series_idx, &clear, &r->snapshot_where, err);
	for (size_t i = 0; i < levels->cnt && rc == 0; i++)
		rc = stoup_event64_build_add(
			r->build, r->series_idx, &levels->events[i], &r->snapshot_where, err);
	levels->cnt = 0;
	return rc;
}

static int snapshot_flush(struct reader *r, struct stoup_error *err)
{
	int rc = side_flush(r, &r->bids, err);

	return rc < 0 ? rc : side_flush(r, &r->asks, err);
}

/* A row of a snapshot: kept until all of it is there. Another local time is another snapshot. */
static int snapshot_row(struct reader *r, const struct stoup_event64 *event,
	const struct stoup_where *where, struct stoup_error *err)
{
	struct levels *levels = event->ev & STOUP_EV_BUY ? &r->bids : &r->asks;
	const struct levels *some = r->bids.cnt > 0 ? &r->bids : &r->asks;
	int rc = 0;

	if (some->cnt > 0 && some->events[0].local_ts != event->local_ts)
		rc = snapshot_flush(r, err);
	if (r->bids.cnt + r->asks.cnt == 0)
		r->snapshot_where = *where;
	if (rc == 0 && level_keep(levels, event) < 0)
		rc = stoup_error_set(err, -ENOMEM, "no memory for a snapshot of %s", r->file);
	return rc;
}

/* ---- series ----------------------------------------------------------------------------------- */

/* EXCHANGE/SYMBOL/event64 of a row, as the DBN importer names its own. */
static int series_name(const struct reader *r, char dst[STOUP_SERIES_NAME_CAP])
{
	int room = STOUP_SERIES_NAME_CAP - (int)sizeof("/") - (int)sizeof(ENDING), len, more;

	len = stoup_symbol_escape(r->exchange, dst, (size_t)room);
	if (len <= 0 || len >= room)
		return -EINVAL;
	dst[len++] = '/';
	more = stoup_symbol_escape(r->symbol, dst + len, (size_t)(room - len));
	if (more < 0)
		return -EINVAL;
	strcpy(dst + len + more, ENDING);
	return 0;
}

static int series_enter(struct reader *r, const char *name, struct stoup_error *err)
{
	int64_t idx = stoup_event64_build_series(r->build, name, err);

	if (idx < 0)
		return (int)idx;
	r->series_idx = (uint32_t)idx;
	snprintf(r->series, sizeof(r->series), "%s", name);
	return stoup_event64_build_claim(
		r->build, r->series_idx, layouts[r->feed].name, layouts[r->feed].tells, err);
}

/* The one series that the user named: of one symbol, over all files. */
static int series_named(struct reader *r, struct stoup_error *err)
{
	char source[2 * STOUP_SERIES_NAME_CAP];
	int rc = series_enter(r, r->options->series, err);

	if (rc < 0 || r->columns[SYMBOL] == NO_COLUMN)
		return rc;
	snprintf(source, sizeof(source), "%s/%s", r->exchange, r->symbol);
	return stoup_event64_build_source(r->build, r->series_idx, source, err);
}

/* Is the row of the series that the row before was of? */
static int same_series(const struct reader *r, const struct stoup_csv_row *row)
{
	if (!r->series[0])
		return 0;
	return r->columns[SYMBOL] == NO_COLUMN ||
	       (field_is(&row->fields[r->columns[SYMBOL]], r->symbol) &&
		       field_is(&row->fields[r->columns[EXCHANGE]], r->exchange));
}

static int series_of(struct reader *r, const struct stoup_csv_row *row, struct stoup_error *err)
{
	const struct stoup_csv_field *symbol, *exchange;
	char name[STOUP_SERIES_NAME_CAP];
	int rc;

	if (same_series(r, row))
		return 0;
	/* What is kept of a snapshot belongs to the series before. */
	rc = snapshot_flush(r, err);
	if (rc < 0)
		return rc;
	if (r->columns[SYMBOL] == NO_COLUMN)
		return series_named(r, err);
	symbol = &row->fields[r->columns[SYMBOL]];
	exchange = &row->fields[r->columns[EXCHANGE]];
	if (symbol->len == 0 || symbol->len >= sizeof(r->symbol) ||
		exchange->len >= sizeof(r->exchange))
		return refuse(r, row, SYMBOL, "is no symbol", err);
	if (r->series[0] && r->options->series)
		return refuse(r, row, SYMBOL,
			"is another symbol than in the rows before, and a book has one: leave --series out",
			err);
	memcpy(r->symbol, symbol->text, symbol->len);
	r->symbol[symbol->len] = 0;
	memcpy(r->exchange, exchange->text, exchange->len);
	r->exchange[exchange->len] = 0;
	if (r->options->series)
		return series_named(r, err);
	if (series_name(r, name) < 0)
		return refuse(r, row, EXCHANGE, "and the symbol make no name of a series", err);
	return series_enter(r, name, err);
}

/* ---- rows ------------------------------------------------------------------------------------- */

static int side_get(const struct reader *r, const struct stoup_csv_row *row, uint64_t *ev,
	struct stoup_error *err)
{
	const struct stoup_csv_field *field = &row->fields[r->columns[SIDE]];

	if (field_is(field, "buy") || field_is(field, "bid"))
		*ev |= STOUP_EV_BUY;
	else if (field_is(field, "sell") || field_is(field, "ask"))
		*ev |= STOUP_EV_SELL;
	else if (r->feed != TARDIS_TRADES || !field_is(field, "unknown"))
		return refuse(r, row, SIDE,
			r->feed == TARDIS_TRADES ? "is not buy, sell or unknown"
						 : "is not bid or ask",
			err);
	return 0;
}

/* Times, price and quantity, which all feeds have. */
static int row_common(const struct reader *r, const struct stoup_csv_row *row,
	struct stoup_event64 *event, struct stoup_error *err)
{
	int rc = time_get(r, row, EXCH_TIME, &event->exch_ts, err);

	if (rc == 0 && r->columns[LOCAL_TIME] != NO_COLUMN)
		rc = time_get(r, row, LOCAL_TIME, &event->local_ts, err);
	else if (rc == 0 && __builtin_add_overflow(
				    event->exch_ts, r->options->feed_latency_ns, &event->local_ts))
		rc = refuse(r, row, EXCH_TIME, "and --feed-latency end beyond the year 2262", err);
	if (rc == 0)
		rc = number_get(r, row, PRICE, &event->px, err);
	if (rc == 0)
		rc = number_get(r, row, QTY, &event->qty, err);
	return rc;
}

static int put_trade(struct reader *r, const struct stoup_csv_row *row, struct stoup_event64 *event,
	const struct stoup_where *where, struct stoup_error *err)
{
	int maker = 0, rc;

	event->ev = STOUP_EV_TRADE;
	if (r->feed == TARDIS_TRADES)
		rc = side_get(r, row, &event->ev, err);
	else
		rc = bool_get(r, row, MAKER, &maker, err);
	if (r->feed != TARDIS_TRADES)
		event->ev |= maker ? STOUP_EV_SELL : STOUP_EV_BUY;
	return rc < 0 ? rc : stoup_event64_build_add(r->build, r->series_idx, event, where, err);
}

static int put_depth(struct reader *r, const struct stoup_csv_row *row, struct stoup_event64 *event,
	const struct stoup_where *where, struct stoup_error *err)
{
	int snapshot = 0;
	int rc = bool_get(r, row, SNAPSHOT, &snapshot, err);

	event->ev = snapshot ? STOUP_EV_SNAPSHOT : STOUP_EV_DEPTH;
	if (rc == 0)
		rc = side_get(r, row, &event->ev, err);
	if (rc == 0 && snapshot)
		return snapshot_row(r, event, where, err);
	if (rc == 0)
		rc = snapshot_flush(r, err);
	return rc < 0 ? rc : stoup_event64_build_add(r->build, r->series_idx, event, where, err);
}

static int put_ticker(struct reader *r, const struct stoup_csv_row *row,
	struct stoup_event64 *event, const struct stoup_where *where, struct stoup_error *err)
{
	struct stoup_event64_side side = {
		.levels = {{event->px, event->qty}}, .cnt = event->qty > 0};
	int rc;

	event->ev = STOUP_EV_DEPTH | STOUP_EV_BUY;
	rc = stoup_event64_side_add(r->build, r->series_idx, event, &side, where, err);
	if (rc == 0)
		rc = number_get(r, row, ASK_PRICE, &side.levels[0].px, err);
	if (rc == 0)
		rc = number_get(r, row, ASK_QTY, &side.levels[0].qty, err);
	if (rc < 0)
		return rc;
	side.cnt = side.levels[0].qty > 0;
	event->ev = STOUP_EV_DEPTH | STOUP_EV_SELL;
	return stoup_event64_side_add(r->build, r->series_idx, event, &side, where, err);
}

static int put_row(struct reader *r, const struct stoup_csv_row *row, struct stoup_error *err)
{
	const struct stoup_where where = {r->file, row->line, row->file_off};
	struct stoup_event64 event = {0};
	int rc;

	if (row->field_cnt != r->column_cnt)
		return stoup_error_set(err, -EBADMSG,
			"%.120s: line %llu: %u columns, %u in the first row", r->file,
			(unsigned long long)row->line, row->field_cnt, r->column_cnt);
	rc = series_of(r, row, err);
	if (rc == 0)
		rc = row_common(r, row, &event, err);
	if (rc < 0)
		return rc;
	switch (r->feed) {
	case TARDIS_BOOK:
		return put_depth(r, row, &event, &where, err);
	case BINANCE_BOOK_TICKER:
		return put_ticker(r, row, &event, &where, err);
	case TARDIS_TRADES:
	case BINANCE_TRADES:
	case BINANCE_AGG_TRADES:
	case FEED_CNT:
		break;
	}
	return put_trade(r, row, &event, &where, err);
}

static int64_t read_csv(void *source, void *dst, size_t len, struct stoup_error *err)
{
	return stoup_input_read(source, dst, len, err);
}

static int put_all(struct reader *r, struct stoup_csv *csv, struct stoup_error *err)
{
	struct stoup_csv_row row;
	int rc = stoup_csv_next(csv, &row, err), header;

	if (rc == 0)
		stoup_event64_note(r->options, "%s: holds no rows", r->file);
	if (rc <= 0)
		return rc;
	header = feed_find(r, &row, err);
	if (header < 0)
		return header;
	rc = header ? 0 : put_row(r, &row, err);
	while (rc == 0 && (rc = stoup_csv_next(csv, &row, err)) > 0)
		rc = put_row(r, &row, err);
	return rc < 0 ? rc : snapshot_flush(r, err);
}

int stoup_event64_csv(struct stoup_event64_build *build, struct stoup_input *input,
	const struct stoup_event64_options *options, struct stoup_error *err)
{
	struct reader r = {.build = build, .options = options, .file = stoup_input_name(input)};
	struct stoup_csv *csv;
	int rc = stoup_csv_create(read_csv, input, ',', &csv, err);

	if (rc < 0)
		return rc;
	stoup_event64_build_file(build, r.file);
	rc = put_all(&r, csv, err);
	if (rc < 0 && err && strncmp(err->text, "line ", 5) == 0)
		stoup_error_prefix(err, "%s", r.file);
	stoup_csv_destroy(csv);
	free(r.bids.events);
	free(r.asks.events);
	return rc;
}
