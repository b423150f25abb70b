/* SPDX-License-Identifier: Apache-2.0 */
/* bars.c - from trades to bars.
 *
 *                 +------------------- stoup_next <------------------+
 *                 v                                                  |  the span is used up
 *      span --gather--> batch --run--> pending bar                   |
 *                         |              |  full, or time passes its close
 *                         |              +--> yielded: one bar, and the place in the batch stays
 *                         +-- used up: time passes to its last record, trade or not
 *
 * Invariant: what is pending consists of trades that are before batch.at, all others are not looked at; so that a
 * call which fails, or yields, goes on at the same trade.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "consumer/bars.h"
#include "consumer/merge.h"

/* ---- sums ------------------------------------------------------------------------------------- */

/* What a run adds to a bar. */
struct sums {
	int64_t high, low;
	uint64_t volume, buy, sell;
	stoup_wide notional;
};

/* Of runs whose sums can not leave their types. */
static void sums_take(
	const struct stoup_bars_batch *batch, uint32_t from, uint32_t to, struct sums *s)
{
	for (uint32_t i = from; i < to; i++) {
		int64_t price = batch->prices[i];
		uint64_t size = batch->sizes[i];

		s->high = price > s->high ? price : s->high;
		s->low = price < s->low ? price : s->low;
		s->volume += size;
		s->buy += batch->sides[i] > 0 ? size : 0;
		s->sell += batch->sides[i] < 0 ? size : 0;
		s->notional += (stoup_wide)price * (stoup_wide)size;
	}
}

/* The same where they might: 0 or -EOVERFLOW. */
static int sums_take_checked(
	const struct stoup_bars_batch *batch, uint32_t from, uint32_t to, struct sums *s)
{
	for (uint32_t i = from; i < to; i++) {
		int64_t price = batch->prices[i];
		uint64_t size = batch->sizes[i];
		stoup_wide part;

		s->high = price > s->high ? price : s->high;
		s->low = price < s->low ? price : s->low;
		/* Sides are parts of the volume. */
		if (__builtin_add_overflow(s->volume, size, &s->volume) ||
			__builtin_mul_overflow((stoup_wide)price, (stoup_wide)size, &part) ||
			__builtin_add_overflow(s->notional, part, &s->notional))
			return -EOVERFLOW;
		s->buy += batch->sides[i] > 0 ? size : 0;
		s->sell += batch->sides[i] < 0 ? size : 0;
	}
	return 0;
}

static int bits(uint64_t value)
{
	return value ? 64 - __builtin_clzll(value) : 0;
}

/* Can a run of at most 2^9 trades not overflow? A sum below half of its type gains less than the other half. */
static int is_small(
	const struct stoup_bars_batch *batch, uint32_t from, uint32_t to, const struct sums *s)
{
	stoup_wide most = (stoup_wide)1 << 126;
	uint64_t prices = 0, sizes = 0;

	for (uint32_t i = from; i < to; i++) {
		int64_t price = batch->prices[i];

		prices |= (uint64_t)(price ^ (price >> 63));
		sizes |= batch->sizes[i];
	}
	return s->volume >> 63 == 0 && bits(sizes) + 9 <= 63 && s->notional < most &&
	       s->notional > -most && bits(prices) + 1 + bits(sizes) + 9 <= 126;
}

static int take_ints(struct stoup_bars *bars, uint32_t from, uint32_t to)
{
	const struct stoup_bars_batch *batch = &bars->batch;
	struct stoup_bars_bar *bar = &bars->bar;
	struct sums s = {.high = INT64_MIN, .low = INT64_MAX};

	if (bar->count > 0)
		s = (struct sums){
			bar->high, bar->low, bar->volume, bar->buy, bar->sell, bar->notional};
	if (is_small(batch, from, to, &s))
		sums_take(batch, from, to, &s);
	else if (sums_take_checked(batch, from, to, &s) < 0)
		return -EOVERFLOW;
	if (bar->count == 0)
		bar->open = batch->prices[from];
	bar->high = s.high;
	bar->low = s.low;
	bar->close = batch->prices[to - 1];
	bar->volume = s.volume;
	bar->buy = s.buy;
	bar->sell = s.sell;
	bar->notional = s.notional;
	return 0;
}

static void take_doubles(struct stoup_bars *bars, uint32_t from, uint32_t to)
{
	const struct stoup_bars_batch *batch = &bars->batch;
	struct stoup_bars_bar *bar = &bars->bar;

	if (bar->count == 0)
		bar->f_open = bar->f_high = bar->f_low = batch->f_prices[from];
	for (uint32_t i = from; i < to; i++) {
		double price = batch->f_prices[i], size = batch->f_sizes[i];

		bar->f_high = price > bar->f_high ? price : bar->f_high;
		bar->f_low = price < bar->f_low ? price : bar->f_low;
		bar->f_volume += size;
		bar->f_buy += batch->sides[i] > 0 ? size : 0;
		bar->f_sell += batch->sides[i] < 0 ? size : 0;
		bar->f_notional += price * size;
	}
	bar->f_close = batch->f_prices[to - 1];
}

/* ---- runs ------------------------------------------------------------------------------------- */

/* Where the pending bar's run from `from` on ends, and whether the bar is full then. */
struct run {
	uint32_t end;
	int full;
	stoup_uwide progress;
	double f_progress;
};

static uint32_t run_by_time(const struct stoup_bars *bars, uint32_t from)
{
	const struct stoup_bars_batch *batch = &bars->batch;
	int64_t close_ns = bars->bar.close_ns;
	uint32_t i = from + 1;

	if (batch->keys[batch->cnt - 1] < close_ns)
		return batch->cnt;
	while (i < batch->cnt && batch->keys[i] < close_ns)
		i++;
	return i;
}

static void run_by_sum(const struct stoup_bars *bars, uint32_t from, struct run *run)
{
	const struct stoup_bars_batch *batch = &bars->batch;
	int by_price = bars->wish.kind == STOUP_BARS_NOTIONAL;
	stoup_uwide sum = bars->bar.progress;
	uint32_t i = from;

	while (i < batch->cnt && sum < bars->step) {
		uint64_t price = 1;

		if (by_price)
			price = batch->prices[i] < 0 ? -(uint64_t)batch->prices[i]
			                             : (uint64_t)batch->prices[i];
		sum += (stoup_uwide)price * batch->sizes[i++];
	}
	run->end = i;
	run->full = sum >= bars->step;
	run->progress = sum;
}

static void run_by_sum_f64(const struct stoup_bars *bars, uint32_t from, struct run *run)
{
	const struct stoup_bars_batch *batch = &bars->batch;
	int by_price = bars->wish.kind == STOUP_BARS_NOTIONAL;
	double sum = bars->bar.f_progress;
	uint32_t i = from;

	while (i < batch->cnt && sum < bars->f_step) {
		double price = by_price ? fabs(batch->f_prices[i]) : 1;

		sum += price * batch->f_sizes[i++];
	}
	run->end = i;
	run->full = sum >= bars->f_step;
	run->f_progress = sum;
}

static struct run run_find(const struct stoup_bars *bars, uint32_t from)
{
	struct run run = {.end = bars->batch.cnt};
	uint64_t left;

	if (TIME(bars)) {
		run.end = run_by_time(bars, from);
	} else if (bars->wish.kind == STOUP_BARS_TICK) {
		left = bars->wish.step - bars->bar.count;
		run.full = left <= run.end - from;
		if (run.full)
			run.end = from + (uint32_t)left;
	} else if (bars->sources[bars->source_at].is_float) {
		run_by_sum_f64(bars, from, &run);
	} else {
		run_by_sum(bars, from, &run);
	}
	return run;
}

/* ---- bars ------------------------------------------------------------------------------------- */

static int64_t clamp(stoup_wide value)
{
	return value < INT64_MIN ? INT64_MIN : value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

/* A bar that has no trade yet, for one at `key`. */
static void bar_begin(struct stoup_bars *bars, int64_t key)
{
	struct stoup_bars_bar *bar = &bars->bar;
	stoup_wide step = (stoup_wide)bars->wish.step, rest, open;

	*bar = (struct stoup_bars_bar){.open_ns = key};
	bars->told_cnt = 0;
	if (!TIME(bars))
		return;
	rest = ((stoup_wide)key - bars->wish.offset_ns) % step;
	open = (stoup_wide)key - rest - (rest < 0 ? step : 0);
	bar->open_ns = clamp(open);
	bar->close_ns = clamp(open + step);
}

static int bar_end(struct stoup_bars *bars, struct stoup_bars_bar *ret)
{
	*ret = bars->last = bars->bar;
	bars->fill_next = bars->bar.close_ns;
	bars->bar.count = 0;
	return 1;
}

/* Time is `now`: the pending bar, or an interval without trades, that has ended by then: 1 or 0. */
static int pass_time(struct stoup_bars *bars, int64_t now, struct stoup_bars_bar *ret)
{
	const struct stoup_bars_bar *last = &bars->last;
	int64_t close_ns;

	if (!TIME(bars))
		return 0;
	if (bars->bar.count > 0)
		return now >= bars->bar.close_ns ? bar_end(bars, ret) : 0;
	if (!(bars->wish.flags & STOUP_BARS_FILL) || last->count == 0 ||
		__builtin_add_overflow(bars->fill_next, (int64_t)bars->wish.step, &close_ns) ||
		close_ns > now)
		return 0;
	*ret = (struct stoup_bars_bar){.open_ns = bars->fill_next,
		.close_ns = close_ns,
		.open = last->close,
		.high = last->close,
		.low = last->close,
		.close = last->close,
		.f_open = last->f_close,
		.f_high = last->f_close,
		.f_low = last->f_close,
		.f_close = last->f_close,
		.first_ordinal = last->last_ordinal,
		.last_ordinal = last->last_ordinal,
		.filled = 1};
	bars->fill_next = close_ns;
	return 1;
}

/* Put the batch's next run into the pending bar: 1 with a bar, 0, or -EOVERFLOW. */
static int consume(struct stoup_bars *bars, struct stoup_bars_bar *ret)
{
	struct stoup_bars_batch *batch = &bars->batch;
	struct stoup_bars_bar *bar = &bars->bar;
	uint32_t from = batch->at;
	struct run run;

	if (pass_time(bars, batch->keys[from], ret))
		return 1;
	if (bar->count == 0)
		bar_begin(bars, batch->keys[from]);
	run = run_find(bars, from);
	if (bars->sources[bars->source_at].is_float)
		take_doubles(bars, from, run.end);
	else if (take_ints(bars, from, run.end) < 0)
		return stoup_error_set(&bars->error, -EOVERFLOW,
			"the bar that begins at %lld is too large: its volume is above 64 bits, or price "
			"x size above 127; take a smaller step",
			(long long)bar->open_ns);
	if (bar->count == 0)
		bar->first_ordinal = batch->ordinal + batch->idx[from];
	bar->last_ordinal = batch->ordinal + batch->idx[run.end - 1];
	bar->last_ns = batch->keys[run.end - 1];
	if (!TIME(bars))
		bar->close_ns = bar->last_ns;
	bar->count += run.end - from;
	bar->progress = run.progress;
	bar->f_progress = run.f_progress;
	batch->at = run.end;
	return run.full ? bar_end(bars, ret) : 0;
}

/* ---- spans ------------------------------------------------------------------------------------ */

/* Find, or remember, what the span's schema means. */
static int source_choose(
	struct stoup_bars *bars, const struct stoup_schema *schema, struct stoup_error *err)
{
	struct stoup_bars_source found;
	const struct stoup_bars_source *first = &bars->sources[0];
	uint32_t i = 0;
	int rc;

	while (i < bars->source_cnt && bars->sources[i].schema != schema)
		i++;
	if (i == bars->source_cnt) {
		rc = stoup_bars_source_find(schema, &bars->wish, &found, err);
		if (rc < 0)
			return rc;
		if (i > 0 && (found.is_float != first->is_float ||
				     found.price.exp10 != first->price.exp10 ||
				     (found.has_size && first->has_size &&
					     found.size.exp10 != first->size.exp10)))
			return stoup_error_set(err, -EINVAL,
				"schema '%s' counts prices in 10^%d and sizes in 10^%d, schema '%s' before "
				"it in 10^%d and 10^%d: bars of both would mix units",
				schema->name, found.price.exp10, found.size.exp10,
				first->schema->name, first->price.exp10, first->size.exp10);
		/* Beyond the cap the last place changes hands; the first stays for comparison. */
		if (i == STOUP_BARS_SOURCE_CAP)
			i--;
		else
			bars->source_cnt++;
		bars->sources[i] = found;
		bars->has_side |= found.side.column_cnt > 0;
	}
	bars->source_at = i;
	return bars->schema.name[0] ? 0 : stoup_bars_scale(bars, err);
}

/* What comes where the data end, for now. */
static int at_end(struct stoup_bars *bars, struct stoup_bars_bar *ret)
{
	struct stoup_bars_bar *bar = &bars->bar;

	if (TIME(bars) && bars->wish.end_ns > bars->clock)
		bars->clock = bars->wish.end_ns;
	if (pass_time(bars, bars->clock, ret))
		return 1;
	if (!(bars->wish.flags & STOUP_BARS_LAST) || bar->count == bars->told_cnt ||
		bar->count == 0)
		return 0;
	bars->told_cnt = bar->count;
	*ret = *bar;
	ret->partial = 1;
	return 1;
}

int stoup_bars_span(struct stoup_bars *bars)
{
	int64_t place;
	int rc;

	bars->span.record_cnt = bars->pos = 0;
	rc = stoup_next(bars->cur, &bars->span);
	if (rc < 0) {
		bars->span.record_cnt = 0;
		bars->error = *stoup_cursor_error(bars->cur);
		return rc;
	}
	if (rc == 0) {
		bars->span.record_cnt = 0;
		return 0;
	}
	rc = source_choose(bars, bars->span.schema, &bars->error);
	if (rc < 0) {
		bars->failed = 1;
		return rc;
	}
	/* Where records kept their order, the range may have cut away those that had a later key than the first. */
	place = stoup_span_place(bars->cur, &bars->span);
	if (place > bars->clock)
		bars->clock = place;
	return 1;
}

int stoup_bars_step(struct stoup_bars *bars, struct stoup_bars_bar *ret)
{
	struct stoup_bars_batch *batch = &bars->batch;
	int rc;

	if (bars->failed)
		return bars->error.code;
	bars->error.code = 0;
	bars->error.text[0] = 0;
	for (;;) {
		if (batch->at < batch->cnt) {
			rc = consume(bars, ret);
			if (rc != 0)
				return rc;
			continue;
		}
		if (pass_time(bars, bars->clock, ret))
			return 1;
		if (batch->bad_size) {
			batch->bad_size = 0;
			return stoup_error_set(&bars->error, -EBADMSG,
				"record %llu of the series has a size below zero: the next call leaves it "
				"out",
				(unsigned long long)(batch->ordinal + batch->record_cnt - 1));
		}
		if (bars->pos < bars->span.record_cnt) {
			stoup_bars_gather(bars);
			continue;
		}
		rc = stoup_bars_span(bars);
		if (rc <= 0)
			return rc < 0 ? rc : at_end(bars, ret);
	}
}

/* ---- the calls -------------------------------------------------------------------------------- */

int stoup_bars_open(struct stoup_cursor *cur, const struct stoup_bars_spec *spec,
	struct stoup_bars **ret, struct stoup_error *err)
{
	struct stoup_bars *bars;
	int rc;

	if (!cur || !ret)
		return stoup_error_set(err, -EINVAL, "bars need a cursor");
	if (cur->step < 0)
		return stoup_error_set(err, -EINVAL,
			"bars are made forward in time, and the cursor runs backward: scan without "
			"STOUP_BACKWARD");
	bars = calloc(1, sizeof(*bars));
	if (!bars)
		return stoup_error_set(err, -ENOMEM, "no memory for bars");
	bars->cur = cur;
	bars->clock = INT64_MIN;
	rc = stoup_bars_wish_take(spec, &bars->wish, err);
	if (rc == 0 && cur->schema)
		rc = source_choose(bars, cur->schema, err);
	if (rc < 0) {
		free(bars);
		return rc;
	}
	*ret = bars;
	return 0;
}

void stoup_bars_close(struct stoup_bars *bars)
{
	free(bars);
}
