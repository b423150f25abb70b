/* SPDX-License-Identifier: Apache-2.0 */
/* tool_top_rows.c - the tables of `stoup top`: which rows, in which order. See tool_top.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/tool_top.h"

/* ---- order ------------------------------------------------------------------------------------ */

static const char *const sort_names[STOUP_TOP_VIEW_CNT][9] = {
	[STOUP_TOP_CONSUMERS] = {"held", "leases", "oldest", "misses", "waiting", "hits", "command",
		"pid", NULL},
	[STOUP_TOP_SERIES] = {"leased", "resident", "leases", "oldest", "holders", "series", NULL},
};

uint32_t stoup_top_sort_cnt(enum stoup_top_view view)
{
	uint32_t cnt = 0;

	while (sort_names[view][cnt])
		cnt++;
	return cnt;
}

const char *stoup_top_sort_name(enum stoup_top_view view, uint32_t column)
{
	return column < stoup_top_sort_cnt(view) ? sort_names[view][column] : "";
}

struct order {
	const struct stoup_watch *watch;
	uint32_t column;
	int reverse;
};

/* Largest first. */
static int by_number(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

static int consumers_compare(const void *x, const void *y, void *arg)
{
	const struct order *order = arg;
	const struct stoup_watch_consumer *a = &order->watch->consumers[*(const uint32_t *)x],
					  *b = &order->watch->consumers[*(const uint32_t *)y];
	const uint64_t of[][2] = {{a->leased_bytes, b->leased_bytes}, {a->lease_cnt, b->lease_cnt},
		{a->oldest_ns, b->oldest_ns}, {a->miss_cnt, b->miss_cnt},
		{a->waiting_cnt, b->waiting_cnt}, {a->hit_cnt, b->hit_cnt}};
	int rc;

	if (order->column < sizeof(of) / sizeof(of[0]))
		rc = by_number(of[order->column][0], of[order->column][1]);
	else
		rc = order->column == 6 ? strcmp(a->command, b->command)
		                        : -by_number(a->pid, b->pid);
	if (rc != 0)
		return order->reverse ? -rc : rc;
	/* Rows that are alike keep their places from look to look. */
	return a->pid != b->pid ? -by_number(a->pid, b->pid) : -by_number(a->idx, b->idx);
}

static int series_compare(const void *x, const void *y, void *arg)
{
	const struct order *order = arg;
	const struct stoup_top_series_row *a = x, *b = y;
	const uint64_t of[][2] = {{a->leased_bytes, b->leased_bytes},
		{a->resident_bytes, b->resident_bytes}, {a->lease_cnt, b->lease_cnt},
		{a->oldest_ns, b->oldest_ns}, {a->holder_cnt, b->holder_cnt}};
	int rc = 0;

	if (order->column < sizeof(of) / sizeof(of[0]))
		rc = by_number(of[order->column][0], of[order->column][1]);
	if (rc == 0 && order->column == 0)
		rc = by_number(a->resident_bytes, b->resident_bytes);
	if (rc != 0)
		return order->reverse ? -rc : rc;
	rc = strcmp(a->name, b->name);
	return order->reverse && order->column == 5 ? -rc : rc;
}

/* ---- consumers -------------------------------------------------------------------------------- */

static int holds_series(const struct stoup_watch *watch, uint32_t consumer_idx, const char *text)
{
	for (uint32_t i = 0; i < watch->holder_cnt; i++)
		if (watch->holders[i].consumer_idx == consumer_idx &&
			strstr(watch->holders[i].series, text))
			return 1;
	return 0;
}

int stoup_top_consumers(const struct stoup_top *top, uint32_t **ret, uint32_t *ret_cnt)
{
	const struct stoup_watch *watch = &top->looks[top->now];
	struct order order = {watch, top->sort[STOUP_TOP_CONSUMERS], top->reverse};
	uint32_t *rows = calloc(watch->consumer_cnt + 1, sizeof(*rows)), cnt = 0;

	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < watch->consumer_cnt; i++)
		if (!top->filter[0] || strstr(watch->consumers[i].command, top->filter) ||
			holds_series(watch, watch->consumers[i].idx, top->filter))
			rows[cnt++] = i;
	if (cnt > 1)
		qsort_r(rows, cnt, sizeof(*rows), consumers_compare, &order);
	*ret = rows;
	*ret_cnt = cnt;
	return 0;
}

/* ---- series ----------------------------------------------------------------------------------- */

struct series_table {
	struct stoup_top_series_row *rows;
	uint32_t *places; /* row + 1, by hash of its name; 0 = empty */
	uint32_t cnt, cap;
};

static uint64_t name_hash(const char *name)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
	return hash ^ hash >> 32;
}

static void places_fill(struct series_table *table)
{
	for (uint32_t i = 0; i < table->cnt; i++) {
		uint64_t at = name_hash(table->rows[i].name) % (2 * (uint64_t)table->cap);

		while (table->places[at])
			at = (at + 1) % (2 * (uint64_t)table->cap);
		table->places[at] = i + 1;
	}
}

static int table_grow(struct series_table *table)
{
	uint32_t cap = table->cap ? table->cap * 2 : 64;
	struct stoup_top_series_row *rows = realloc(table->rows, cap * sizeof(*rows));
	uint32_t *places;

	if (!rows)
		return -ENOMEM;
	table->rows = rows;
	places = calloc(2 * (size_t)cap, sizeof(*places));
	if (!places)
		return -ENOMEM;
	free(table->places);
	table->places = places;
	table->cap = cap;
	places_fill(table);
	return 0;
}

/* The row of a name, a new one at its first use; NULL: no memory. */
static struct stoup_top_series_row *row_of(struct series_table *table, const char *name)
{
	char cut[sizeof(table->rows->name)];
	uint64_t at;

	/* Of a longer one its end, as the daemon does. */
	if (strlen(name) >= sizeof(cut))
		name += strlen(name) - (sizeof(cut) - 1);
	if (table->cnt == table->cap && table_grow(table) < 0)
		return NULL;
	at = name_hash(name) % (2 * (uint64_t)table->cap);
	for (; table->places[at]; at = (at + 1) % (2 * (uint64_t)table->cap))
		if (strcmp(table->rows[table->places[at] - 1].name, name) == 0)
			return &table->rows[table->places[at] - 1];
	table->places[at] = ++table->cnt;
	memset(&table->rows[table->cnt - 1], 0, sizeof(table->rows[0]));
	memcpy(table->rows[table->cnt - 1].name, name, strlen(name) + 1);
	return &table->rows[table->cnt - 1];
}

static int holders_add(struct series_table *table, const struct stoup_watch *watch)
{
	for (uint32_t i = 0; i < watch->holder_cnt; i++) {
		const struct stoup_watch_holder *h = &watch->holders[i];
		struct stoup_top_series_row *row =
			row_of(table, h->series[0] ? h->series : "(several series)");

		if (!row)
			return -ENOMEM;
		row->leased_bytes += h->bytes;
		row->lease_cnt += h->lease_cnt;
		row->holder_cnt++;
		if (row->holder_cnt > 1 && h->oldest_ns <= row->oldest_ns)
			continue;
		row->oldest_ns = h->oldest_ns;
		row->pid = h->pid;
		memcpy(row->command, h->command, sizeof(row->command));
	}
	return 0;
}

static const struct stoup_watch_volume *volume_of(
	const struct stoup_watch *watch, uint32_t volume_idx)
{
	uint32_t low = 0, high = watch->volume_cnt;

	/* Volumes stand in the order of their numbers. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (watch->volumes[middle].idx < volume_idx)
			low = middle + 1;
		else
			high = middle;
	}
	return low < watch->volume_cnt && watch->volumes[low].idx == volume_idx
	               ? &watch->volumes[low]
	               : NULL;
}

#define KNOWN_CNT 512u

/* Rows by where their name lies: a volume gives the same text for each of a series' blocks. */
struct known {
	const char *name[KNOWN_CNT];
	uint32_t row[KNOWN_CNT];
};

static struct stoup_top_series_row *known_row(
	struct series_table *table, struct known *known, const char *name)
{
	uint32_t at = (uint32_t)(((uintptr_t)name >> 4) % KNOWN_CNT);
	struct stoup_top_series_row *row;

	if (known->name[at] == name)
		return &table->rows[known->row[at]];
	row = row_of(table, name);
	if (!row)
		return NULL;
	known->name[at] = name;
	known->row[at] = (uint32_t)(row - table->rows);
	return row;
}

/* What is in the pool, by series where the store can be read; *ret_named: by whichever could be. */
static int residents_add(struct series_table *table, const struct stoup_top *top, int *ret_named)
{
	const struct stoup_watch *watch = &top->looks[top->now];
	struct known known = {{0}, {0}};

	for (uint32_t i = 0; i < watch->extent_cnt && top->names.series; i++) {
		const struct stoup_watch_extent *e = &watch->extents[i];
		const struct stoup_watch_volume *volume = volume_of(watch, e->volume_idx);
		struct stoup_top_series_row *row;
		const char *name = NULL;
		uint32_t cnt = 0;

		if (e->state < STOUP_BUFFER_RESIDENT)
			continue;
		if (volume)
			name = top->names.series(top->names.arg, volume, e->block_idx, &cnt);
		*ret_named |= name != NULL;
		row = known_row(table, &known,
			!name     ? "(of volumes not read here)"
			: cnt > 1 ? "(blocks of several series)"
				  : name);
		if (!row)
			return -ENOMEM;
		row->resident_bytes += e->len;
		row->resident_blocks++;
	}
	return 0;
}

/* Does somebody whose command has the text hold it? */
static int held_by(const struct stoup_watch *watch, const char *series, const char *text)
{
	for (uint32_t i = 0; i < watch->holder_cnt; i++)
		if (strcmp(watch->holders[i].series, series) == 0 &&
			strstr(watch->holders[i].command, text))
			return 1;
	return 0;
}

int stoup_top_series(const struct stoup_top *top, struct stoup_top_series_row **ret,
	uint32_t *ret_cnt, int *ret_named)
{
	const struct stoup_watch *watch = &top->looks[top->now];
	struct order order = {watch, top->sort[STOUP_TOP_SERIES], top->reverse};
	struct series_table table = {0};
	uint32_t cnt = 0;
	int rc = holders_add(&table, watch);

	*ret_named = 0;
	if (rc == 0)
		rc = residents_add(&table, top, ret_named);
	free(table.places);
	if (rc < 0) {
		free(table.rows);
		return rc;
	}
	for (uint32_t i = 0; i < table.cnt; i++)
		if (!top->filter[0] || strstr(table.rows[i].name, top->filter) ||
			held_by(watch, table.rows[i].name, top->filter))
			table.rows[cnt++] = table.rows[i];
	if (cnt > 1)
		qsort_r(table.rows, cnt, sizeof(*table.rows), series_compare, &order);
	*ret = table.rows;
	*ret_cnt = cnt;
	return 0;
}

uint32_t stoup_top_scroll(struct stoup_top *top, uint32_t cnt, uint32_t page)
{
	top->page = page;
	top->scroll_max = cnt > page ? cnt - page : 0;
	if (top->scroll > top->scroll_max)
		top->scroll = top->scroll_max;
	return top->scroll;
}
