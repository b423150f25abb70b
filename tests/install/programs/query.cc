/* SPDX-License-Identifier: Apache-2.0 */
/* query.cc - questions through stoup.hpp: usage: query POOL, prints answers that the test compares with its own. */
#include <stoup.hpp>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <vector>

struct trade {
	std::int64_t ts, price, size;
	char side;
};
struct quote {
	std::int64_t ts, bid, ask;
};
STOUP_RECORD(trade, ts, price, size, side);
STOUP_RECORD(quote, ts, bid, ask);

static int failed_cnt;

#define CHECK(claim)                                                                               \
	do {                                                                                       \
		if (!(claim)) {                                                                    \
			std::printf("FAILED: %s:%d: %s\n", __FILE__, __LINE__, #claim);            \
			failed_cnt++;                                                              \
		}                                                                                  \
	} while (0)

/* The keys of a range of records, as one number that depends on each and on their order. */
struct digest {
	std::uint64_t cnt = 0, mix = 0;
	void add(std::int64_t key)
	{
		cnt++;
		mix = mix * 31 + static_cast<std::uint64_t>(key);
	}
	void tell(const char *what) const { std::printf("%s %" PRIu64 " %" PRIu64 "\n", what, cnt, mix); }
};

template <class C> static void tell(const char *what, C &&scan)
{
	digest all;

	for (const auto &r : std::forward<C>(scan).records())
		all.add(r.ts);
	all.tell(what);
}

static void ranges(const stoup::client &st, const stoup::series<trade> &a)
{
	auto middle = stoup::at(std::int64_t{1'700'000'500'000'000'000});

	tell("ordinals", st.scan(a, stoup::ordinals(100, 1100)));
	tell("tail", st.scan(a, stoup::ordinals(5000)));
	tell("nothing", st.scan(a, stoup::ordinals(0, 0)));
	tell("first", st.scan(a, {.from = middle, .limit = 10}));
	tell("last", st.scan(a, {.to = middle, .flags = STOUP_LAST, .limit = 10}));
	tell("latest", st.scan_backward(a, {.to = middle, .flags = STOUP_TO_INCLUDED, .limit = 10}));
	std::printf("count %" PRIu64 "\n", st.count(a, {.from = middle}));
	CHECK(st.estimate(a).record_max == a.size() && st.estimate(a).exact == 1);
	CHECK(!st.try_count(a, {.flags = STOUP_LAST}));
	CHECK(!st.wait(std::chrono::nanoseconds(0)));
	auto cur = st.scan(a);
	cur.next();
	cur.seek(middle);
	tell("seek", std::move(cur));
	/* One that follows ends, and goes on when there is more. */
	auto on = st.scan(a, {.flags = STOUP_FOLLOW});
	std::uint64_t cnt = 0;
	for (std::span<const trade> span : on)
		cnt += span.size();
	CHECK(cnt == a.size() && on.begin() == on.end());
}

static void as_of(const stoup::client &st, const stoup::series<trade> &a, const stoup::series<trade> &b)
{
	digest mine, before, all;
	auto cur = st.scan(a);
	std::vector<stoup::series<trade>> both{a, b};
	auto many = st.lookup(both);
	stoup::lease<trade> kept;

	for (std::int64_t n = -5; n < 1200; n += 7) {
		auto when = stoup::at(1'700'000'000'000'000'000 + n * 1'000'000'000);
		auto one = cur.asof(when);
		mine.add(one ? one->ts : 0);
		if (n == 2)
			kept = cur.hold(one);
		auto earlier = cur.asof_before(when);
		before.add(earlier ? (*earlier).ts : 0);
		for (const auto &answer : many.asof(when))
			all.add(answer ? answer->ts : 0);
	}
	mine.tell("asof");
	before.tell("before");
	all.tell("lookup");
	std::printf("kept %" PRId64 "\n", kept.records().front().ts);
	auto none = st.scan(a, {.limit = 5});
	CHECK(none.try_asof(stoup::at(5)).error().code() == EINVAL);
	/* A lookup does not move the scan. */
	tell("all", std::move(cur));
}

static void merges(const stoup::client &st, const stoup::series<trade> &a, const stoup::series<trade> &b,
	const stoup::series<quote> &q)
{
	digest keys, sources, typed, generic;
	std::array<stoup::series<trade>, 2> both{a, b};
	auto cur = st.merge(both);

	for (std::span<const trade> span : cur)
		for (const trade &r : span) {
			keys.add(r.ts);
			sources.add(cur.source());
		}
	keys.tell("merge");
	sources.tell("sources");
	tell("merge_backward", st.merge_backward(both, {.limit = 500}));
	for (auto run : st.merge(a, q)) {
		run.visit(
			[&](std::span<const trade> some) {
				CHECK(run.source() == 0 && run.template get<0>().size() == some.size());
				CHECK(run.template get<1>().empty());
				for (const trade &r : some)
					typed.add(r.ts);
			},
			[&](std::span<const quote> some) {
				CHECK(run.source() == 1 && some.size() == run.size());
				for (const quote &r : some)
					typed.add(r.ts);
			});
		run.visit([&](const auto &some) {
			for (const auto &r : some)
				generic.add(r.ts);
		});
	}
	typed.tell("mixed");
	CHECK(generic.mix == typed.mix && generic.cnt == typed.cnt);
	auto mixed = st.merge({.limit = 1}, q, a);
	auto first = mixed.next();
	CHECK(first.size() == 1);
	if (first.source() == 0) {
		auto kept = mixed.hold<0>();
		CHECK(kept.records().front().ts == first.get<0>().front().ts);
		CHECK(mixed.try_hold<1>().error().code() == EINVAL);
	} else {
		auto kept = mixed.hold<1>();
		CHECK(kept.records().front().ts == first.get<1>().front().ts);
	}
	CHECK(mixed.next().empty());
	digest back;
	for (auto run : st.merge_backward({}, a, q))
		run.visit([&](const auto &some) {
			for (auto it = some.rbegin(); it != some.rend(); ++it)
				back.add(it->ts);
		});
	back.tell("mixed_backward");
}

static void filters(const stoup::client &st, const stoup::series<trade> &a)
{
	stoup::where<trade> dear(a, "price > 105 and side = 'B'");
	std::array<std::uint32_t, 3> few;
	std::vector<std::uint32_t> many(100'000);

	for (std::span<std::uint32_t> room : {std::span<std::uint32_t>(few), std::span<std::uint32_t>(many)}) {
		digest found;
		for (std::span<const trade> span : st.scan(a, dear))
			for (std::uint32_t i : dear.selected(span, room)) {
				CHECK(dear.holds(span[i]));
				found.add(span[i].ts);
			}
		found.tell("where");
	}
	stoup::where<trade> none(a, "price > 1000");
	auto cur = st.scan_backward(a, none);
	CHECK(cur.next().empty() && cur.left_out() > 1);
	auto bad = stoup::where<trade>::try_make(a, "prise > 5");
	CHECK(!bad && bad.error().code() == EINVAL);
}

static void made_bars(const stoup::client &st, const stoup::series<trade> &a, const stoup::series<trade> &b)
{
	std::vector<stoup::series<trade>> both{a, b};
	digest one, two;
	std::uint64_t volume = 0;
	double sum = 0;

	for (const stoup_bar_record &bar : st.bars(a, "1m")) {
		one.add(bar.open_ns);
		volume += bar.volume;
	}
	one.tell("bars");
	std::printf("volume %" PRIu64 "\n", volume);
	for (const stoup_bar_record_f64 &bar : st.bars<stoup_bar_record_f64>(a, "1m"))
		sum += bar.volume;
	std::printf("volume_f64 %.0f\n", sum);
	for (const stoup_bar_record &bar : stoup::bars<>(st.merge(both), "100t"))
		two.add(bar.close_ns);
	two.tell("ticks");
	CHECK(!stoup::bars_spec::try_make("1 fortnight"));
	stoup::bars_spec spec("1m");
	spec.price = "prise";
	CHECK(st.try_bars(a, spec).error().code() == EINVAL);
}

static void replays(const stoup::client &st, const stoup::series<trade> &a, const stoup::series<quote> &q)
{
	digest all, paced;
	std::int64_t last = 0;

	stoup::replay tape(st.merge(a, q), {.speed = INFINITY});
	for (const auto &run : tape)
		run.visit([&](const auto &some) {
			for (const auto &r : some)
				all.add(r.ts);
		});
	all.tell("replay");
	CHECK(tape.ended() && tape.stats().record_cnt == all.cnt);

	stoup::replay slow(st.scan(a, {.limit = 50}), {.speed = 1000, .paused = true});
	CHECK(slow.next(std::chrono::milliseconds(10)).empty() && !slow.ended());
	CHECK(slow.stats().paused == 1 && slow.fd() >= 0 && !slow.try_speed(0));
	slow.resume();
	for (std::span<const trade> span : slow)
		for (const trade &r : span) {
			CHECK(slow.stats().data_ns >= r.ts && r.ts >= last);
			last = r.ts;
			paced.add(r.ts);
		}
	paced.tell("paced");
	using backward = stoup::replay<stoup::cursor<trade, stoup::way::backward>>;
	CHECK(backward::try_make(st.scan_backward(a)).error().code() == EINVAL);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	try {
		stoup::client st(argv[1]);
		auto a = st.find<trade>("X/A/trade"), b = st.find<trade>("X/B/trade");
		auto q = st.find<quote>("X/A/quote");

		ranges(st, a);
		as_of(st, a, b);
		merges(st, a, b, q);
		filters(st, a);
		made_bars(st, a, b);
		replays(st, a, q);
		CHECK(st.stats().lease_cnt == 0);
	} catch (const std::exception &e) {
		std::printf("FAILED: thrown: %s\n", e.what());
		return 1;
	}
	return failed_cnt ? 1 : 0;
}
