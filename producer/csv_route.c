/* SPDX-License-Identifier: Apache-2.0 */
/* csv_route.c - see csv_route.h. */
#include "producer/csv_route.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/preset_plan.h"

#define NONE UINT32_MAX

struct slot {
	char exchange[STOUP_PRESET_TEXT_CAP], symbol[STOUP_PRESET_TEXT_CAP];
	char *series; /* NULL: not asked for */
	uint32_t idx; /* among those asked for */
};

struct stoup_csv_route {
	const struct stoup_csv_plan *plan;
	struct slot *slots;
	uint32_t cnt, cap, wanted_cnt;
	uint32_t *table; /* open addressing; slot + 1, 0: free */
	uint32_t table_len;
	uint32_t last; /* slot of the row before, or NONE */
};

int stoup_csv_route_create(
	const struct stoup_csv_plan *plan, struct stoup_csv_route **ret, struct stoup_error *err)
{
	struct stoup_csv_route *route = calloc(1, sizeof(*route));

	if (!route)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	route->plan = plan;
	route->last = NONE;
	*ret = route;
	return 0;
}

void stoup_csv_route_destroy(struct stoup_csv_route *route)
{
	if (!route)
		return;
	for (uint32_t i = 0; i < route->cnt; i++)
		free(route->slots[i].series);
	free(route->slots);
	free(route->table);
	free(route);
}

/* ---- slots ---------------------------------------------------------------------------------------- */

static uint64_t hash(const char *exchange, const char *symbol)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *exchange; exchange++)
		h = (h ^ (unsigned char)*exchange) * UINT64_C(0x100000001b3);
	h = (h ^ '/') * UINT64_C(0x100000001b3);
	for (; *symbol; symbol++)
		h = (h ^ (unsigned char)*symbol) * UINT64_C(0x100000001b3);
	return h ^ h >> 32;
}

/* The place of a slot in the table, or the free one where it belongs. */
static uint32_t *place(
	const struct stoup_csv_route *route, const char *exchange, const char *symbol)
{
	uint32_t at = (uint32_t)hash(exchange, symbol) & (route->table_len - 1);

	while (route->table[at]) {
		const struct slot *slot = &route->slots[route->table[at] - 1];

		if (strcmp(slot->symbol, symbol) == 0 && strcmp(slot->exchange, exchange) == 0)
			break;
		at = (at + 1) & (route->table_len - 1);
	}
	return &route->table[at];
}

static int grow(struct stoup_csv_route *route, struct stoup_error *err)
{
	uint32_t cap = route->cap ? route->cap * 2 : 16;
	struct slot *slots = realloc(route->slots, cap * sizeof(*slots));
	uint32_t *table = slots ? calloc(cap * 2, sizeof(*table)) : NULL;

	if (slots)
		route->slots = slots;
	if (!table)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	free(route->table);
	route->table = table;
	route->table_len = cap * 2;
	route->cap = cap;
	for (uint32_t i = 0; i < route->cnt; i++)
		*place(route, slots[i].exchange, slots[i].symbol) = i + 1;
	return 0;
}

/* EXCHANGE/SYMBOL/kind, or what of it the user named. */
static int series_name(const struct stoup_csv_route *route, struct slot *slot)
{
	const struct stoup_csv_options *options = route->plan->options;
	char name[2 * STOUP_SERIES_NAME_CAP], part[STOUP_SERIES_NAME_CAP];
	int len;

	if (options->series) {
		slot->series = strdup(options->series);
		return slot->series ? 0 : -ENOMEM;
	}
	if (stoup_symbol_escape(options->exchange ? options->exchange : slot->exchange, part,
		    sizeof(part)) <= 0)
		return -EINVAL;
	len = snprintf(name, sizeof(name), "%s/", part);
	if (stoup_symbol_escape(
		    options->symbol ? options->symbol : slot->symbol, part, sizeof(part)) <= 0)
		return -EINVAL;
	len += snprintf(
		name + len, sizeof(name) - (size_t)len, "%s/%s", part, route->plan->use->kind);
	if (len >= STOUP_SERIES_NAME_CAP)
		return -ENAMETOOLONG;
	slot->series = strdup(name);
	return slot->series ? 0 : -ENOMEM;
}

static int slot_make(struct stoup_csv_route *route, const char *exchange, const char *symbol,
	uint32_t *ret, struct stoup_error *err)
{
	struct slot *slot;
	int rc;

	if (route->cnt == route->cap) {
		rc = grow(route, err);
		if (rc < 0)
			return rc;
	}
	slot = &route->slots[route->cnt];
	*slot = (struct slot){.idx = route->wanted_cnt};
	snprintf(slot->exchange, sizeof(slot->exchange), "%s", exchange);
	snprintf(slot->symbol, sizeof(slot->symbol), "%s", symbol);
	if (stoup_intake_symbol(route->plan->options->filter, symbol)) {
		rc = series_name(route, slot);
		if (rc < 0)
			return rc;
		route->wanted_cnt++;
	}
	*place(route, exchange, symbol) = ++route->cnt;
	*ret = route->cnt - 1;
	return 0;
}

/* ---- rows ----------------------------------------------------------------------------------------- */

static int row_error(const struct stoup_csv_row *row, uint32_t column, const char *text,
	const char *why, struct stoup_error *err)
{
	return stoup_error_set(err, -EBADMSG, "line %llu, column %u: \"%.40s\" %s",
		(unsigned long long)row->line, column == NONE ? 1 : column + 1, text, why);
}

/* The text of one of the two columns, or that of the file; may it be empty, since the user named it? */
static int text_of(const struct stoup_csv_row *row, uint32_t column, const char *of_file,
	int may_be_empty, char dst[STOUP_PRESET_TEXT_CAP])
{
	const struct stoup_csv_field *cell;

	if (column == NONE) {
		snprintf(dst, STOUP_PRESET_TEXT_CAP, "%s", of_file);
		return 0;
	}
	cell = &row->fields[column];
	if (cell->len >= STOUP_PRESET_TEXT_CAP)
		return -ENAMETOOLONG;
	memcpy(dst, cell->text, cell->len);
	dst[cell->len] = '\0';
	return cell->len || may_be_empty ? 0 : -EINVAL;
}

/* 1, 0 or -ENOMEM. What the user named is one in all rows, also in those that other threads read. The text is
 * written before the exchange publishes it. */
static int is_one_symbol(
	const struct stoup_csv_route *route, const char *exchange, const char *symbol)
{
	const struct stoup_csv_options *options = route->plan->options;
	char name[2 * STOUP_PRESET_TEXT_CAP], *mine, *one = NULL;
	int same_one;

	if (!stoup_intake_symbol(route->plan->options->filter, symbol))
		return 1;
	snprintf(name, sizeof(name), "%s/%s", options->series || options->exchange ? exchange : "",
		options->series || options->symbol ? symbol : "");
	mine = strdup(name);
	if (!mine)
		return -ENOMEM;
	if (atomic_compare_exchange_strong_explicit(&route->plan->use->one_symbol, &one, mine,
		    memory_order_acq_rel, memory_order_acquire))
		return 1;
	same_one = strcmp(one, name) == 0;
	free(mine);
	return same_one;
}

/* Where a row says its symbol. */
static uint32_t symbol_column(const struct stoup_preset_use *use, const struct stoup_csv_row *row)
{
	return use->symbol_column != NONE && use->symbol_else_column != NONE &&
	                       row->fields[use->symbol_column].len == 0
	               ? use->symbol_else_column
	               : use->symbol_column;
}

static const char several_series[] =
	"is another symbol (or exchange) than before, and --series makes "
	"one series of all: leave it out, or choose one (--symbols)",
		  several_symbols[] =
			  "is another symbol (or exchange) than before, and --symbol names one: "
			  "leave it out, or choose one (--symbols)";

static int row_slot(struct stoup_csv_route *route, const struct stoup_csv_row *row, uint32_t *ret,
	struct stoup_error *err)
{
	const struct stoup_csv_options *options = route->plan->options;
	const struct stoup_preset_use *use = route->plan->use;
	char exchange[STOUP_PRESET_TEXT_CAP] = "", symbol[STOUP_PRESET_TEXT_CAP] = "";
	uint32_t at;
	int rc = 1;

	if (text_of(row, symbol_column(use, row), use->symbol, options->series || options->symbol,
		    symbol) < 0 ||
		text_of(row, use->exchange_column, use->exchange,
			options->series || options->exchange, exchange) < 0)
		return row_error(row, symbol[0] ? use->exchange_column : use->symbol_column, symbol,
			"is no name of a symbol or an exchange (1 to 127 bytes)", err);
	at = route->table_len ? *place(route, exchange, symbol) : 0;
	if (at) {
		*ret = at - 1;
		return 0;
	}
	if (options->series || options->symbol || options->exchange)
		rc = is_one_symbol(route, exchange, symbol);
	if (rc == 0 && !options->series && !options->symbol)
		return row_error(row, use->exchange_column, exchange,
			"is another exchange than before, and --exchange names one: leave it out",
			err);
	if (rc == 0)
		return row_error(row, use->symbol_column, symbol,
			options->series ? several_series : several_symbols, err);
	if (rc > 0)
		rc = slot_make(route, exchange, symbol, ret, err);
	if (rc == -ENOMEM)
		return stoup_error_set(err, rc, "out of memory");
	if (rc == -EINVAL || rc == -ENAMETOOLONG)
		return row_error(row, use->symbol_column, symbol,
			"and its exchange make no name of a series", err);
	return rc;
}

static int same(const struct stoup_csv_row *row, uint32_t column, const char *text)
{
	return column == NONE ||
	       (row->fields[column].len < STOUP_PRESET_TEXT_CAP &&
		       memcmp(row->fields[column].text, text, row->fields[column].len) == 0 &&
		       text[row->fields[column].len] == '\0');
}

int stoup_csv_route_row(struct stoup_csv_route *route, const struct stoup_csv_row *row,
	const char **ret_series, uint32_t *ret_slot, struct stoup_error *err)
{
	const struct stoup_preset_use *use = route->plan->use;
	const struct slot *slot;

	if (route->last == NONE ||
		!same(row, use->symbol_column, route->slots[route->last].symbol) ||
		!same(row, use->exchange_column, route->slots[route->last].exchange)) {
		int rc = row_slot(route, row, &route->last, err);

		if (rc < 0)
			return rc;
	}
	slot = &route->slots[route->last];
	*ret_series = slot->series;
	*ret_slot = slot->idx;
	return slot->series != NULL;
}
