/* SPDX-License-Identifier: Apache-2.0 */
/* bars.c - bars of trades against a naive builder: one record after the other, plain 128-bit integers.
 *
 *      records of the range --is it a trade?--> pending bar --complete?--> list of bars
 *
 * Which records are trades is known here of the schemas that the generator writes: mbo, trades and the mbp kinds by their
 * action, all records of tick and of schemas of one's own.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/stoup_bars.h"
#include "query/query.h"

#define BAR_CAP 600

struct trade {
	query_wide key;
	int64_t price, size;
	int is, bought, sold; /* is it one; by whom it was begun */
};

/* What trades of a series are. */
struct source {
	const struct query_series *s;
	const struct stoup_field *price, *size, *side, *action;
	int tells; /* who began */
};

struct made {
	const struct source *src;
	const struct stoup_bars_spec *spec;
	query_wide step; /* of the raw sum */
	struct stoup_bar_record *bars;
	uint32_t cnt, cap;
	struct stoup_bar_record bar;
	query_wide sum, notional, close_ns, last_ns; /* of the bar at work */
	int open;
	int any; /* a bar was made */
};

/* ---- trades ---------------------------------------------------------------------------------- */

static int named(const struct query_series *s, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(s->series.schema->name, *names) == 0)
			return 1;
	return 0;
}

/* 0 where the series is none of trades. */
static int source_of(const struct query_series *s, struct source *ret)
{
	static const char *const dbn[] = {"mbo", "trades", "mbp-1", "mbp-10", "tbbo", NULL};
	static const char *const own[] = {"q1", "q16", "q64", NULL};
	static const char *const tick[] = {"tick", NULL};
	const struct stoup_schema *schema = s->series.schema;

	*ret = (struct source){.s = s};
	if (!named(s, dbn) && !named(s, own) && !named(s, tick))
		return 0;
	ret->price = stoup_schema_field(schema, "price");
	ret->size = stoup_schema_field(schema, "size");
	ret->side = stoup_schema_field(schema, "side");
	if (named(s, dbn))
		ret->action = stoup_schema_field(schema, "action");
	ret->tells = ret->side != NULL;
	return 1;
}

static int is_null(const struct stoup_field *f, uint64_t bits)
{
	return (f->flags & STOUP_FIELD_NULL) && bits == f->null_bits;
}

static struct trade trade_at(const struct source *src, uint64_t i)
{
	uint64_t len, price = 0, size = 0;
	const uint8_t *record = query_record(src->s, i, &len);
	struct trade ret = {.key = src->s->order[i]};
	char side;

	memcpy(&price, record + src->price->off, stoup_type_len(src->price->type));
	memcpy(&size, record + src->size->off, stoup_type_len(src->size->type));
	ret.is = !is_null(src->price, price) && (!src->action || record[src->action->off] == 'T');
	ret.price = (int64_t)price;
	ret.size = is_null(src->size, size) ? 0 : (int64_t)size;
	if (src->side) {
		side = (char)record[src->side->off];
		ret.bought = side == 'B';
		ret.sold = side == 'A' || side == 'S';
	}
	return ret;
}

/* ---- making ---------------------------------------------------------------------------------- */

static query_wide floor_to(query_wide key, query_wide step, query_wide offset)
{
	query_wide at = key - offset, rest = at % step;

	return at - (rest < 0 ? rest + step : rest) + offset;
}

/* notional / volume to the nearest, halves away from 0. */
static int64_t vwap_of(query_wide notional, uint64_t volume)
{
	query_wide v = (query_wide)volume, abs = notional < 0 ? -notional : notional, ret;

	if (volume == 0)
		return INT64_MAX;
	ret = abs / v + (abs % v * 2 >= v);
	return (int64_t)(notional < 0 ? -ret : ret);
}

static void yield(struct made *m, int partial)
{
	struct stoup_bar_record *bar = &m->bar;

	bar->partial = (uint8_t)partial;
	bar->notional_low = (uint64_t)m->notional;
	bar->notional_high = (int64_t)(m->notional >> 64);
	bar->vwap = vwap_of(m->notional, bar->volume);
	if (m->spec->kind == STOUP_BARS_TIME)
		bar->close_ns = (int64_t)m->close_ns;
	/* What is not complete was known with its last trade. */
	bar->available_ns = partial ? (int64_t)m->last_ns : bar->close_ns;
	if (m->cnt < m->cap)
		m->bars[m->cnt++] = *bar;
	m->open = 0;
	m->any = 1;
}

/* Intervals without trades from the last bar's close on that end by `until`. */
static void fill(struct made *m, query_wide until)
{
	struct stoup_bar_record last = m->bar;

	if (!(m->spec->flags & STOUP_BARS_FILL) || !m->any || m->open)
		return;
	while (m->close_ns + m->spec->step <= until && m->cnt < m->cap) {
		m->bar = (struct stoup_bar_record){.open = last.close,
			.high = last.close,
			.low = last.close,
			.close = last.close,
			.filled = 1,
			.buy_volume = m->src->tells ? 0 : UINT64_MAX,
			.sell_volume = m->src->tells ? 0 : UINT64_MAX,
			.first_ordinal = last.last_ordinal,
			.last_ordinal = last.last_ordinal};
		m->bar.open_ns = (int64_t)m->close_ns;
		m->close_ns += m->spec->step;
		m->notional = 0;
		yield(m, 0);
	}
	m->bar.close = last.close;
	m->bar.last_ordinal = last.last_ordinal;
}

/* Everything that closes by `now` is complete. */
static void pass(struct made *m, query_wide now)
{
	if (m->spec->kind != STOUP_BARS_TIME)
		return;
	if (m->open && now >= m->close_ns)
		yield(m, 0);
	fill(m, now);
}

static void begin(struct made *m, const struct trade *t, uint64_t ordinal)
{
	query_wide at = t->key;

	m->bar = (struct stoup_bar_record){.open = t->price,
		.high = t->price,
		.low = t->price,
		.first_ordinal = ordinal,
		.buy_volume = m->src->tells ? 0 : UINT64_MAX,
		.sell_volume = m->src->tells ? 0 : UINT64_MAX};
	if (m->spec->kind == STOUP_BARS_TIME) {
		at = floor_to(t->key, (query_wide)m->spec->step, m->spec->offset_ns);
		m->close_ns = at + m->spec->step;
	}
	m->bar.open_ns = (int64_t)at;
	m->sum = m->notional = 0;
	m->open = 1;
}

static void take(struct made *m, const struct trade *t, uint64_t ordinal)
{
	struct stoup_bar_record *bar = &m->bar;
	query_wide worth = (query_wide)t->price * t->size;

	if (!m->open)
		begin(m, t, ordinal);
	bar->high = t->price > bar->high ? t->price : bar->high;
	bar->low = t->price < bar->low ? t->price : bar->low;
	bar->close = t->price;
	bar->volume += (uint64_t)t->size;
	if (m->src->tells) {
		bar->buy_volume += t->bought ? (uint64_t)t->size : 0;
		bar->sell_volume += t->sold ? (uint64_t)t->size : 0;
	}
	bar->count++;
	bar->last_ordinal = ordinal;
	m->last_ns = t->key;
	m->notional += worth;
	if (m->spec->kind != STOUP_BARS_TIME)
		bar->close_ns = (int64_t)t->key;
	m->sum += m->spec->kind == STOUP_BARS_TICK     ? 1
	          : m->spec->kind == STOUP_BARS_VOLUME ? t->size
	          : worth < 0                          ? -worth
	                                               : worth;
	if (m->spec->kind != STOUP_BARS_TIME && m->sum >= m->step)
		yield(m, 0);
}

static void make(struct made *m, struct query_found found)
{
	query_wide end_ns = m->spec->end_ns;

	for (uint64_t i = found.low; i < found.high && m->cnt < m->cap; i++) {
		struct trade t = trade_at(m->src, i);

		pass(m, t.key);
		if (t.is)
			take(m, &t, i);
	}
	if (end_ns > 0)
		pass(m, end_ns);
	if ((m->spec->flags & STOUP_BARS_LAST) && m->open)
		yield(m, 1);
}

/* ---- the query ------------------------------------------------------------------------------- */

static query_wide power(int exp10)
{
	query_wide ret = 1;

	while (exp10-- > 0)
		ret *= 10;
	return ret;
}

static void spec_time(
	struct query_run *run, const struct query_series *s, struct stoup_bars_spec *spec)
{
	static const uint64_t steps[] = {1, 2, 7, 1000, 60000, 1000000, 1000000000,
		UINT64_C(60000000000), UINT64_C(86400000000000), UINT64_C(604800000000000)};
	int64_t last = s->order[s->cnt - 1];

	spec->kind = STOUP_BARS_TIME;
	spec->step = steps[query_below(run, sizeof(steps) / sizeof(steps[0]))];
	if (query_one_in(run, 3))
		spec->offset_ns = (int64_t)query_below(run, spec->step * 3);
	if (query_one_in(run, 4))
		spec->flags |= STOUP_BARS_FILL;
	if (query_one_in(run, 5))
		spec->end_ns = last + (int64_t)query_below(run, spec->step * 4);
}

/* `step`: of the raw sums. */
static void spec_pick(struct query_run *run, const struct source *src, struct stoup_bars_spec *spec,
	query_wide *step)
{
	*spec = (struct stoup_bars_spec){.struct_len = sizeof(*spec)};
	if (query_one_in(run, 3))
		spec->flags |= STOUP_BARS_LAST;
	if (query_one_in(run, 2)) {
		spec_time(run, src->s, spec);
	} else {
		spec->kind = STOUP_BARS_TICK + (uint32_t)query_below(run, 3);
		spec->step = 1 + query_below(run, query_one_in(run, 2) ? 5 : 500);
		*step = spec->step;
		if (spec->kind != STOUP_BARS_TICK && query_one_in(run, 3))
			spec->step_exp10 = (int32_t)query_below(run, 4);
		if (spec->kind == STOUP_BARS_NOTIONAL)
			spec->step_exp10 += 2;
		*step *= power(spec->step_exp10);
		if (spec->kind == STOUP_BARS_VOLUME)
			*step *= power(-src->size->exp10);
		if (spec->kind == STOUP_BARS_NOTIONAL)
			*step *= power(-src->size->exp10 - src->price->exp10);
	}
	query_say(run,
		"; bars of kind %u step %" PRIu64 "e%d flags %u offset %" PRId64 " end %" PRId64,
		spec->kind, spec->step, spec->step_exp10, spec->flags, spec->offset_ns,
		spec->end_ns);
}

static void same(
	struct query_run *run, const struct made *m, uint32_t i, const struct stoup_bar_record *bar)
{
	const struct stoup_bar_record *want = &m->bars[i];

#define SAME(member)                                                                               \
	if (bar->member != want->member)                                                           \
	query_fail(run, "bar %u: %s is %lld, expected %lld", i, #member, (long long)bar->member,   \
		(long long)want->member)
	SAME(open_ns);
	SAME(close_ns);
	SAME(first_ordinal);
	SAME(last_ordinal);
	SAME(count);
	SAME(open);
	SAME(high);
	SAME(low);
	SAME(close);
	SAME(volume);
	SAME(buy_volume);
	SAME(sell_volume);
	SAME(notional_low);
	SAME(notional_high);
	SAME(vwap);
	SAME(partial);
	SAME(filled);
	SAME(available_ns);
#undef SAME
}

static void bars_compare(struct query_run *run, const struct made *m, struct stoup_bars *bars)
{
	struct stoup_bar_record bar;
	uint32_t i = 0;
	int rc = 1;

	for (; i < m->cap && (rc = stoup_bars_next(bars, &bar)) > 0; i++) {
		if (i >= m->cnt)
			query_fail(run, "bar %u from %" PRId64 " to %" PRId64 ", expected only %u",
				i, bar.open_ns, bar.close_ns, m->cnt);
		same(run, m, i, &bar);
	}
	if (rc < 0)
		query_fail(run, "stoup_bars_next: %d %s", rc, stoup_bars_error(bars)->text);
	if (i < m->cnt)
		query_fail(run, "%u bars, expected %u: the next opens at %" PRId64, i, m->cnt,
			m->bars[i].open_ns);
	run->record_cnt += i;
	run->empty_cnt += i == 0;
}

/* Times that bars of any step fit. */
static int ordinary(const struct query_series *s)
{
	return s->cnt > 0 && s->order[0] > INT64_C(1000000000000000000) &&
	       s->order[s->cnt - 1] < INT64_C(3000000000000000000);
}

void query_bars(struct query_run *run)
{
	static struct stoup_bar_record room[BAR_CAP];
	struct source src;
	struct stoup_bars_spec spec;
	struct made m = {.src = &src, .spec = &spec, .bars = room, .cap = BAR_CAP};
	const struct query_series *s;
	struct stoup_error err = {0};
	struct stoup_cursor *cur;
	struct stoup_range range;
	struct stoup_bars *bars;

	do
		s = query_filled_pick(run);
	while (!source_of(s, &src) || !ordinary(s));
	query_range_pick(run, s, &range);
	range.flags &= ~(STOUP_BACKWARD | STOUP_FOLLOW);
	if (query_one_in(run, 2))
		range = (struct stoup_range){
			.flags = range.flags & (STOUP_DIRECT | STOUP_DIRECT_OR_POOL)};
	spec_pick(run, &src, &spec, &m.step);
	make(&m, query_limit(&range, query_bounds(run, s, &range)));
	if (stoup_scan(run->st, &s->series, &range, &cur, &err) < 0)
		query_fail(run, "stoup_scan: %s", err.text);
	if (stoup_bars_open(cur, &spec, &bars, &err) < 0)
		query_fail(run, "stoup_bars_open: %s", err.text);
	bars_compare(run, &m, bars);
	stoup_bars_close(bars);
	stoup_cursor_close(cur);
}
