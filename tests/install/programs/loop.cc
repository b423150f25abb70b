/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"
#include <stoup.hpp>

/* Series and client as the C functions get them. */
template <class T> static stoup::series<T> typed(const ::stoup_series *series)
{
	return stoup::series_info(*series).as<T>();
}

template <class T, stoup::way W = stoup::way::forward>
static stoup::cursor<T, W> opened(::stoup *st, const ::stoup_series *series)
{
	::stoup_range part{};
	::stoup_cursor *cur;
	::stoup_error err;

	part.flags = W == stoup::way::backward ? STOUP_BACKWARD : 0;
	if (stoup_scan(st, &typed<T>(series).raw(), &part, &cur, &err) < 0)
		throw stoup::error(err);
	return stoup::cursor<T, W>(stoup::attachment(), cur);
}

std::int64_t sum_mbo(::stoup *st, const ::stoup_series *series)
{
	std::int64_t sum = 0;

	for (std::span<const stoup_mbo> span : opened<stoup_mbo>(st, series))
		for (const stoup_mbo &r : span)
			sum += r.price * r.size;
	return sum;
}

std::int64_t sum_tick(::stoup *st, const ::stoup_series *series)
{
	std::int64_t sum = 0;

	for (std::span<const stoup_tick> span : opened<stoup_tick>(st, series))
		for (const stoup_tick &r : span)
			sum += r.price * r.size;
	return sum;
}

std::int64_t sum_backward(::stoup *st, const ::stoup_series *series)
{
	std::int64_t sum = 0;

	for (auto span : opened<stoup_mbo, stoup::way::backward>(st, series))
		for (auto r = span.rbegin(); r != span.rend(); ++r)
			sum = sum * 3 + r->price * r->size;
	return sum;
}

std::int64_t sum_spread(::stoup *st, const ::stoup_series *series)
{
	std::int64_t sum = 0;

	for (auto span : opened<stoup_mbp1>(st, series))
		for (const stoup_mbp1 &r : span) {
			const stoup_level &l = r.levels[0];

			sum += (l.ask_px - l.bid_px) * static_cast<std::int64_t>(l.bid_sz ^ l.ask_sz) * r.depth;
		}
	return sum;
}
