/* SPDX-License-Identifier: Apache-2.0 */
/* bars_out.c - a bar that is done in the forms in which it is handed out: exact, in doubles, as a span. */
#include <errno.h>
#include <math.h>
#include "consumer/bars.h"

/* ---- what comes out --------------------------------------------------------------------------- */

static int64_t vwap_round(stoup_wide notional, uint64_t volume)
{
	stoup_uwide size = notional < 0 ? -(stoup_uwide)notional : (stoup_uwide)notional;
	uint64_t up = (uint64_t)(size % volume) >= volume - volume / 2 ? 1 : 0;
	stoup_wide value = (stoup_wide)(size / volume) + up;

	return (int64_t)(notional < 0 ? -value : value);
}

static void record_make(const struct stoup_bars *bars, const struct stoup_bars_bar *bar,
	struct stoup_bar_record *ret)
{
	*ret = (struct stoup_bar_record){.open_ns = bar->open_ns,
		.close_ns = bar->close_ns,
		.available_ns = TIME(bars) && !bar->partial ? bar->close_ns : bar->last_ns,
		.open = bar->open,
		.high = bar->high,
		.low = bar->low,
		.close = bar->close,
		.volume = bar->volume,
		.buy_volume = bars->has_side ? bar->buy : UINT64_MAX,
		.sell_volume = bars->has_side ? bar->sell : UINT64_MAX,
		.count = bar->count,
		.notional_low = (uint64_t)bar->notional,
		.notional_high = (int64_t)(bar->notional >> 64),
		.vwap = bar->volume ? vwap_round(bar->notional, bar->volume) : INT64_MAX,
		.first_ordinal = bar->first_ordinal,
		.last_ordinal = bar->last_ordinal,
		.partial = bar->partial ? 1 : 0,
		.filled = bar->filled ? 1 : 0};
}

static double scaled(double value, const struct stoup_bars_column *column)
{
	return column->divisor > 0 ? value / column->divisor * column->factor : value;
}

/* The prices and sums of integers, as doubles. */
static void bar_to_doubles(const struct stoup_bars_source *source, struct stoup_bars_bar *bar)
{
	const struct stoup_bars_column *price = &source->price, *size = &source->size;

	bar->f_open = scaled((double)bar->open, price);
	bar->f_high = scaled((double)bar->high, price);
	bar->f_low = scaled((double)bar->low, price);
	bar->f_close = scaled((double)bar->close, price);
	bar->f_volume = scaled((double)bar->volume, size);
	bar->f_buy = scaled((double)bar->buy, size);
	bar->f_sell = scaled((double)bar->sell, size);
	bar->f_notional = scaled(scaled((double)bar->notional, price), size);
}

static void record_make_f64(const struct stoup_bars *bars, const struct stoup_bars_bar *made,
	struct stoup_bar_record_f64 *ret)
{
	struct stoup_bars_bar bar = *made;

	if (!bars->sources[0].is_float)
		bar_to_doubles(&bars->sources[0], &bar);
	*ret = (struct stoup_bar_record_f64){.open_ns = bar.open_ns,
		.close_ns = bar.close_ns,
		.available_ns = TIME(bars) && !bar.partial ? bar.close_ns : bar.last_ns,
		.open = bar.f_open,
		.high = bar.f_high,
		.low = bar.f_low,
		.close = bar.f_close,
		.volume = bar.f_volume,
		.buy_volume = bars->has_side ? bar.f_buy : (double)NAN,
		.sell_volume = bars->has_side ? bar.f_sell : (double)NAN,
		.count = bar.count,
		.notional = bar.f_notional,
		.vwap = bar.f_volume > 0 ? bar.f_notional / bar.f_volume : (double)NAN,
		.first_ordinal = bar.first_ordinal,
		.last_ordinal = bar.last_ordinal,
		.partial = bar.partial ? 1 : 0,
		.filled = bar.filled ? 1 : 0};
}

/* ---- the calls -------------------------------------------------------------------------------------- */

int stoup_bars_next(struct stoup_bars *bars, struct stoup_bar_record *ret)
{
	struct stoup_bars_bar bar;
	int rc;

	if (!bars || !ret)
		return -EINVAL;
	/* Of a merge the first span tells. */
	if (bars->source_cnt == 0 && !bars->failed && (rc = stoup_bars_span(bars)) <= 0)
		return rc;
	if (bars->source_cnt > 0 && bars->sources[0].is_float)
		return stoup_error_set(&bars->error, -EDOM,
			"prices or sizes of schema '%s' are floats: call stoup_bars_next_f64",
			bars->sources[0].schema->name);
	rc = stoup_bars_step(bars, &bar);
	if (rc > 0)
		record_make(bars, &bar, ret);
	return rc;
}

int stoup_bars_next_f64(struct stoup_bars *bars, struct stoup_bar_record_f64 *ret)
{
	struct stoup_bars_bar bar;
	int rc;

	if (!bars || !ret)
		return -EINVAL;
	rc = stoup_bars_step(bars, &bar);
	if (rc > 0)
		record_make_f64(bars, &bar, ret);
	return rc;
}

int stoup_bars_next_span(struct stoup_bars *bars, struct stoup_span *ret)
{
	struct stoup_bars_bar bar;
	int64_t key;
	int rc;

	if (!bars || !ret)
		return -EINVAL;
	rc = stoup_bars_step(bars, &bar);
	if (rc <= 0)
		return rc;
	if (bars->sources[0].is_float)
		record_make_f64(bars, &bar, &bars->out.record_f64);
	else
		record_make(bars, &bar, &bars->out.record);
	key = TIME(bars) ? bar.open_ns : bar.close_ns;
	*ret = (struct stoup_span){.base = &bars->out,
		.record_cnt = 1,
		.stride = bars->schema.stride,
		.ordinal = bars->bar_cnt++,
		.first_key = key,
		.last_key = key,
		.schema = &bars->schema};
	return 1;
}

const struct stoup_schema *stoup_bars_schema(const struct stoup_bars *bars)
{
	return bars && bars->schema.name[0] ? &bars->schema : NULL;
}

const struct stoup_error *stoup_bars_error(const struct stoup_bars *bars)
{
	static const struct stoup_error nobody = {
		-EINVAL, "no bars were given, or no room for one"};

	return bars ? &bars->error : &nobody;
}

double stoup_bar_vwap(const struct stoup_bar_record *bar)
{
	stoup_wide notional =
		(stoup_wide)((stoup_uwide)(uint64_t)bar->notional_high << 64 | bar->notional_low);

	return bar->volume ? (double)notional / (double)bar->volume : (double)NAN;
}
