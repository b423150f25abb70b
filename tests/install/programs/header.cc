/* SPDX-License-Identifier: Apache-2.0 */
/* header.cc - stoup.hpp against a real pool, each promise of it once.
 *
 *      header POOL COUNT SUM DAMAGED/
 *
 * POOL serves XTST.TEST/AAA/mbo (COUNT records, price x size sums to SUM), FX/QUOTES (ts, bid, ask, size,
 * venue char[4]) and FX/BARS (bars of a minute); DAMAGED/ is a store of the same mbo records with one block
 * destroyed. What is compared with is read through the C calls. Prints nothing where all holds. */
#include <stoup.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <ranges>
#include <string>
#include <sys/wait.h>
#include <vector>

namespace {

const char *const mbo_name = "XTST.TEST/AAA/mbo";
int failed_cnt;
__extension__ typedef __int128 wide; /* 64 bits overflow at a few days of ES */

#define CHECK(condition)                                                                           \
	((condition) ? void() : complain(__LINE__, #condition))

void complain(int line, const char *what)
{
	std::printf("FAILED: header.cc:%d: %s\n", line, what);
	failed_cnt++;
}

template <class F> void check_error(int line, int code, std::initializer_list<const char *> words, F &&call)
{
	try {
		call();
	} catch (const stoup::error &e) {
		if (e.code() != code)
			complain(line, (std::string("errno ") + std::to_string(e.code()) + ": " + e.what()).c_str());
		for (const char *word : words)
			if (!std::strstr(e.what(), word))
				complain(line, (std::string("'") + word + "' is not in: " + e.what()).c_str());
		return;
	}
	complain(line, "nothing was thrown");
}
#define CHECK_ERROR(code, words, call) check_error(__LINE__, code, std::initializer_list<const char *> words, [&] { call; })

} // namespace

/* ---- what the compiler can say ------------------------------------------------------------------- */

struct quote {
	std::int64_t ts, bid, ask;
	std::uint32_t size;
	char venue[4];
};
STOUP_RECORD(quote, ts, bid, ask, size, venue);

namespace mine {
struct renamed { /* a member with another name, and one left out */
	std::int64_t ts, buy, ask;
	std::uint32_t size;
	std::byte rest[4];
};
struct moved {
	std::int64_t ts, ask, bid;
	std::uint32_t size;
	char venue[4];
};
struct unsigned_bid {
	std::int64_t ts;
	std::uint64_t bid;
	std::int64_t ask;
	std::uint32_t size;
	char venue[4];
};
struct short_venue {
	std::int64_t ts, bid, ask;
	std::uint32_t size;
	char venue[3], pad;
};
struct unknown {
	std::int64_t ts, bid, price;
	std::uint32_t size;
	char venue[4];
};
struct longer {
	std::int64_t ts, bid, ask, more;
	std::uint32_t size;
	char venue[4];
};
struct alignas(32) aligned {
	std::int64_t ts, bid, ask;
	std::uint32_t size;
	char venue[4];
};
} // namespace mine
template <> struct stoup::record<mine::renamed> {
	static constexpr stoup::field fields[] = {STOUP_FIELD_AS(mine::renamed, buy, "bid"), STOUP_FIELD(mine::renamed, ask)};
};
STOUP_RECORD(mine::moved, ts, ask, bid, size, venue);
STOUP_RECORD(mine::unsigned_bid, ts, bid, ask, size, venue);
STOUP_RECORD(mine::short_venue, ts, bid, ask, size, venue);
STOUP_RECORD(mine::unknown, ts, bid, price, size, venue);
STOUP_RECORD(mine::longer, ts, bid, ask, more, size, venue);
STOUP_RECORD(mine::aligned, ts, bid, ask, size, venue);

static_assert(stoup::record<quote>::fields[4].off == 28 && stoup::record<quote>::fields[4].cnt == 4);
static_assert(stoup::record<quote>::fields[4].type == STOUP_TYPE_CHAR);
static_assert(stoup::type_code<std::int8_t>() == STOUP_TYPE_I8 && stoup::type_code<std::uint8_t>() == STOUP_TYPE_U8);
static_assert(stoup::type_code<short>() == STOUP_TYPE_I16 && stoup::type_code<std::uint16_t>() == STOUP_TYPE_U16);
static_assert(stoup::type_code<int>() == STOUP_TYPE_I32 && stoup::type_code<unsigned>() == STOUP_TYPE_U32);
static_assert(stoup::type_code<long>() == STOUP_TYPE_I64 && stoup::type_code<unsigned long long>() == STOUP_TYPE_U64);
static_assert(stoup::type_code<float>() == STOUP_TYPE_F32 && stoup::type_code<double>() == STOUP_TYPE_F64);
static_assert(stoup::type_code<char>() == STOUP_TYPE_CHAR && stoup::type_code<std::byte[7]>() == STOUP_TYPE_BYTES);

using spans = stoup::cursor<stoup_mbo>;
using spans_backward = stoup::cursor<stoup_mbo, stoup::way::backward>;
using records = stoup::record_view<stoup_mbo, stoup::way::forward>;
using reader = stoup::record_reader<stoup_mbo, stoup::way::backward>;
static_assert(std::ranges::input_range<spans> && std::ranges::input_range<spans_backward>);
static_assert(std::ranges::input_range<records> && std::ranges::input_range<reader>);
static_assert(std::ranges::view<records> && !std::ranges::view<spans>);
static_assert(!std::ranges::forward_range<spans> && !std::ranges::forward_range<records>);
static_assert(std::is_same_v<std::ranges::range_reference_t<spans>, std::span<const stoup_mbo>>);
static_assert(std::is_same_v<std::ranges::range_reference_t<records>, const stoup_mbo &>);
template <class T>
constexpr bool move_only = std::is_nothrow_move_constructible_v<T> && !std::is_copy_constructible_v<T> &&
			   !std::is_copy_assignable_v<T>;
static_assert(move_only<stoup::client> && move_only<spans> && move_only<stoup::lease<stoup_mbo>>);
static_assert(move_only<stoup::array<stoup_bar>> && move_only<reader> && move_only<stoup::forking> && move_only<stoup::expected<spans>>);
static_assert(noexcept(std::declval<spans &>().try_next()) && noexcept(stoup::client::try_attach("x")));
static_assert(std::is_base_of_v<std::exception, stoup::error> && std::is_nothrow_copy_constructible_v<stoup::error>);

/* ---- allocations ------------------------------------------------------------------------------------ */

static std::size_t malloc_cnt;
extern "C" void *malloc(std::size_t len)
{
	static auto real = reinterpret_cast<void *(*)(std::size_t)>(dlsym(RTLD_NEXT, "malloc"));

	malloc_cnt++;
	return real(len);
}

/* ---- the same through C ------------------------------------------------------------------------------ */

static std::vector<stoup_mbo> all_by_c(const char *pool)
{
	std::vector<stoup_mbo> all;
	::stoup *st;
	::stoup_cursor *cur;
	::stoup_series series;
	::stoup_span span;

	if (stoup_attach(pool, nullptr, &st, nullptr) < 0 || stoup_series_find(st, mbo_name, &series, nullptr) < 0 ||
		stoup_scan(st, &series, nullptr, &cur, nullptr) < 0)
		std::abort();
	while (stoup_next(cur, &span) > 0) {
		auto *first = static_cast<const stoup_mbo *>(span.base);
		all.insert(all.end(), first, first + span.record_cnt);
	}
	stoup_cursor_close(cur);
	stoup_detach(st);
	return all;
}

static bool same(const stoup_mbo &a, const stoup_mbo &b)
{
	return std::memcmp(&a, &b, sizeof(a)) == 0;
}

/* ---- scans -------------------------------------------------------------------------------------------- */

static void check_scans(stoup::client &st, const std::vector<stoup_mbo> &all, std::uint64_t cnt, const std::string &sum_text)
{
	auto es = st.find<stoup_mbo>(mbo_name);
	wide sum = 0;
	std::size_t i = 0, span_cnt = 0;

	CHECK(es.size() == cnt && all.size() == cnt && !es.empty() && es.name() == mbo_name);
	CHECK(std::string_view(es.schema().name) == "mbo");
	CHECK(es.first() == stoup::at(static_cast<std::int64_t>(all.front().ts_recv)));
	CHECK(es.last() == stoup::at(static_cast<std::int64_t>(all.back().ts_recv)));
	auto cur = st.scan(es);
	for (std::span<const stoup_mbo> span : cur) {
		CHECK(cur.raw().ordinal == i && cur.raw().base == span.data() && !span.empty());
		for (const stoup_mbo &r : span) {
			CHECK(i < cnt && same(r, all[i]));
			sum += static_cast<wide>(r.price) * r.size;
			i++;
		}
		span_cnt++;
	}
	CHECK(i == cnt && span_cnt > 8 && cur.next().empty());
	CHECK(std::to_string(static_cast<long long>(sum)) == sum_text);

	i = 0;
	for (const stoup_mbo &r : st.scan(es).records()) /* the cursor has no name */
		CHECK(i < cnt && same(r, all[i++]));
	CHECK(i == cnt);
	for (const stoup_mbo &r : st.scan_backward(es).records())
		CHECK(i > 0 && same(r, all[--i]));
	CHECK(i == 0);
	i = cnt;
	for (auto span : st.scan_backward(es)) { /* spans from the end, records inside as ever */
		i -= span.size();
		CHECK(std::equal(span.begin(), span.end(), all.begin() + static_cast<std::ptrdiff_t>(i), same));
	}
	CHECK(i == 0);

	auto moved_from = st.scan(es);
	auto first = moved_from.next();
	auto moved_to = std::move(moved_from);
	moved_from = st.scan(es);
	CHECK(same(first.front(), all[0]) && same(moved_to.next().front(), all[first.size()]));
	CHECK(same(moved_from.next().front(), all[0]));
	moved_to = std::move(moved_from); /* closes the one before */
	CHECK(same(moved_to.next().front(), all[first.size()]));
}

/* ---- ends of ranges ------------------------------------------------------------------------------------ */

using namespace std::chrono_literals;
static_assert(*stoup::bound(std::chrono::sys_days(9999y / 12 / 31)) == stoup::time::max());
static_assert(*stoup::bound(std::chrono::sys_days(1y / 1 / 1)) == stoup::time::min());
static_assert(*stoup::bound(std::chrono::sys_days(2262y / 4 / 12)) == stoup::time::max());
static_assert(*stoup::bound(std::chrono::sys_days(2262y / 4 / 11)) == stoup::at(9223286400000000000));
static_assert(*stoup::bound(std::chrono::sys_seconds(-9223372037s)) == stoup::time::min());
static_assert(*stoup::bound(std::chrono::sys_seconds(-9223372036s)) == stoup::at(-9223372036000000000));
static_assert(*stoup::bound(stoup::time::max()) == stoup::time::max() && !stoup::bound() && !stoup::bound(std::nullopt));
static_assert(*stoup::bound(std::optional(stoup::at(5))) == stoup::at(5));
static_assert(stoup::bound(stoup::at(5)) == stoup::bound(std::optional(stoup::at(5))) && stoup::bound() == stoup::bound());
static_assert(stoup::bound(stoup::at(5)) != stoup::bound(stoup::at(6)) && stoup::bound(stoup::at(5))->time_since_epoch().count() == 5);
static_assert(stoup::bound(stoup::at(5)) == stoup::at(5) && stoup::bound(stoup::at(5)) != std::nullopt);
static_assert(!std::is_constructible_v<stoup::bound, std::chrono::sys_time<std::chrono::duration<double>>>);

static void check_ranges(stoup::client &st, const std::vector<stoup_mbo> &all)
{
	using namespace std::chrono_literals;
	auto es = st.find<stoup_mbo>(mbo_name);
	auto key = [](const stoup_mbo &r) { return stoup::at(static_cast<std::int64_t>(r.ts_recv)); };
	stoup::time from = key(all[all.size() / 3]), to = from + 2ms;
	auto wanted = std::count_if(all.begin(), all.end(), [&](auto &r) { return key(r) >= from && key(r) < to; });
	auto count = [&](const stoup::range &part) {
		std::ptrdiff_t cnt = 0;
		for (auto &r : st.scan(es, part).records()) {
			CHECK((!part.from || key(r) >= *part.from) && (!part.to || key(r) < *part.to));
			cnt++;
		}
		return cnt;
	};

	CHECK(wanted > 100 && count({.from = from, .to = to}) == wanted);
	CHECK(count({.from = from}) + count({.to = from}) == std::ssize(all));
	auto day = std::chrono::floor<std::chrono::days>(from); /* a coarser clock converts */
	CHECK(count({.from = day, .to = day + std::chrono::days(1)}) == std::ssize(all));
	/* 2610 in nanoseconds wraps to 2025, 1500 to 2085, 2600 to 2015. */
	for (auto year : {2600y, 2610y, 3000y, 9999y})
		CHECK(count({.to = std::chrono::sys_days(year / 1 / 1)}) == std::ssize(all) &&
			count({.from = std::chrono::sys_days(year / 1 / 1)}) == 0);
	for (auto year : {1y, 1500y, 1600y})
		CHECK(count({.from = std::chrono::sys_days(year / 1 / 1)}) == std::ssize(all));
	std::ptrdiff_t backward = 0;
	for (auto span : st.scan_backward(es, {.from = from, .to = to}))
		backward += std::ssize(span);
	CHECK(backward == wanted);
	CHECK_ERROR(EINVAL, ({"1970-01-01", "open"}), st.scan(es, {.from = stoup::time()}));
	CHECK_ERROR(EINVAL, ({"1970-01-01"}), st.scan(es, {.to = stoup::time()}));
	CHECK_ERROR(EINVAL, ({""}), st.scan(es, {.from = to, .to = from}));
	CHECK_ERROR(EINVAL, ({"scan_backward"}), st.scan(es, {.flags = STOUP_BACKWARD}));
	CHECK_ERROR(ENOTSUP, ({mbo_name}), st.scan(es, {.flags = STOUP_DIRECT})); /* flags get there */

	auto found_in = st.scan(es);
	auto found = std::ranges::find_if(found_in.records(), [&](auto &r) { return same(r, all[all.size() / 2]); });
	CHECK(found != std::default_sentinel && same(*found, all[all.size() / 2]) && found->size == all[all.size() / 2].size);

	auto cur = st.scan(es);
	CHECK(std::ranges::count_if(cur.records(), [](auto &r) { return r.size > 0; }) == std::ssize(all));
#if !defined(__clang__) || __clang_major__ >= 16 /* clang before 16 fails on the views of libstdc++ */
	std::ptrdiff_t large = 0;
	for (auto &r : st.scan(es).records() | std::views::filter([](auto &r) { return r.size > 25; }) | std::views::take(9))
		large += r.size > 25;
	CHECK(large == 9);
	auto spans_cut = st.scan(es);
	std::ptrdiff_t taken = 0;
	for (auto span : spans_cut | std::views::take(2))
		taken += std::ssize(span);
	CHECK(taken > 0 && taken < std::ssize(all));
#endif
}

/* ---- layouts ------------------------------------------------------------------------------------------- */

static void check_layouts(stoup::client &st)
{
	const char *name = "FX/QUOTES";
	auto quotes = st.find<quote>(name);
	std::int64_t bids = 0, asks = 0;

	for (const quote &q : st.scan(quotes).records()) {
		bids += q.bid;
		CHECK(stoup::text(q.venue) == (q.size % 2 ? "AB" : "ABCD"));
	}
	for (const mine::renamed &q : st.scan(st.find<mine::renamed>(std::string(name))).records())
		asks += q.ask - q.buy;
	CHECK(bids == INT64_C(1000) * 1100000000 + INT64_C(1000) * 999 / 2 * 10000 && asks == INT64_C(1000) * 20000);
	CHECK_ERROR(EINVAL, ({name, "field ask is i64 at offset 16; the struct has i64 at 8"}), st.find<mine::moved>(name));
	CHECK_ERROR(EINVAL, ({"field bid is i64 at offset 8; the struct has u64 at 8"}), st.find<mine::unsigned_bid>(name));
	CHECK_ERROR(EINVAL, ({"field venue has 4 elements", "struct has 3"}), st.find<mine::short_venue>(name));
	CHECK_ERROR(EINVAL, ({"no field price"}), st.find<mine::unknown>(name));
	CHECK_ERROR(EINVAL, ({"records of 32 bytes", "struct has 40"}), st.find<mine::longer>(name));
	CHECK_ERROR(EINVAL, ({"aligned to 8", "needs 32"}), st.find<mine::aligned>(name));
	CHECK_ERROR(EINVAL, ({"schema mbo, not trades"}), st.find<stoup_trade>(mbo_name));
	CHECK_ERROR(EINVAL, ({"schema mbo, not mbp-1 or tbbo"}), st.find<stoup_mbp1>(mbo_name));
	CHECK_ERROR(EINVAL, ({"not ohlcv-1s, ohlcv-1m, ohlcv-1h, ohlcv-1d or ohlcv-eod"}), st.find<stoup_ohlcv>(mbo_name));
	CHECK_ERROR(ENOENT, ({"XTST.TEST/AAA/mbo"}), st.find("XTST.TEST/AAB/mbo"));

	std::int64_t closes = 0;
	for (const stoup_bar &bar : st.scan(st.find<stoup_bar>("FX/BARS")).records())
		closes += bar.close;
	CHECK(closes == 6000000000);
	CHECK(st.find("FX/BARS").schema().interval_ns == 60000000000);
}

/* Each built-in struct is accepted by the schemas that it names, and every built-in schema has a struct. */
template <class... T> static void check_builtins()
{
	std::vector<std::string> named;
	auto each = [&]<class One>(One *) {
		for (const char *name : stoup::record<One>::schemas) {
			::stoup_schema schema = *stoup_schema_by_name(name);
			::stoup_series raw{};

			if (schema.flags & STOUP_SCHEMA_BAR && schema.interval_ns == 0) {
				schema.interval_ns = 1;
				schema.hash = stoup_schema_hash(&schema);
			}
			raw.name = "X";
			raw.schema = &schema;
			auto typed = stoup::series_info(raw).try_as<One>();
			if (!typed)
				complain(__LINE__, typed.error().what());
			named.push_back(name);
		}
	};

	(each(static_cast<T *>(nullptr)), ...);
	for (std::size_t i = 0; stoup_schema_builtin(i); i++)
		/* Messages have no struct. */
		if (stoup_schema_builtin(i)->stride != 0 &&
			std::ranges::count(named, stoup_schema_builtin(i)->name) != 1)
			complain(__LINE__, stoup_schema_builtin(i)->name);
}

/* ---- leases, owners, forks --------------------------------------------------------------------------- */

static stoup::lease<stoup_mbo> kept(const char *pool)
{
	stoup::client st(pool);
	auto cur = st.scan(st.find<stoup_mbo>(mbo_name));

	cur.next();
	auto held = cur.hold();
	cur.next();
	return held; /* outlives cursor and client */
}

static void check_leases(const char *pool, const std::vector<stoup_mbo> &all)
{
	stoup::lease<stoup_mbo> held = kept(pool), none;
	stoup::client st(pool);
	auto cur = st.scan(st.find<stoup_mbo>(mbo_name));

	CHECK(held && !none && none.records().empty());
	CHECK(std::equal(held.records().begin(), held.records().end(), all.begin(), same) && held.records().size() > 100);
	CHECK_ERROR(EINVAL, ({"no longer held"}), cur.hold());
	cur.next();
	auto second = cur.hold(), third = cur.hold();
	while (!cur.next().empty())
		;
	CHECK(st.stats().lease_cnt == 1); /* one block */
	CHECK(same(second.records().front(), all[0]));
	second = std::move(third);
	CHECK(!third && st.stats().lease_cnt == 1);
	second.reset();
	CHECK(!second && second.records().empty() && st.stats().lease_cnt == 0);
	auto figures = st.stats();
	CHECK(figures.record_cnt == all.size() && figures.struct_len == sizeof(figures));
	/* A cursor alone keeps the attachment as well. */
	auto alone = [&] {
		stoup::client other(pool);
		return other.scan(other.find<stoup_mbo>(mbo_name));
	}();
	CHECK(same(alone.next().front(), all[0]));
	/* A series of another attachment is told from one of this. */
	CHECK_ERROR(ENOENT, ({"not of pool"}), stoup::client(pool).scan(st.find<stoup_mbo>(mbo_name)));
}

static void check_arrays(stoup::client &st)
{
	auto bars = st.find<stoup_bar>("FX/BARS");
	auto whole = st.array_of(bars);
	CHECK(whole.records().size() == 2 && !whole.direct() && whole.records()[1].close == 4000000000);
	auto later = st.array_of(bars, {.from = bars.last()});
	CHECK(later.records().size() == 1 && later.records()[0].close == 4000000000);
	CHECK(st.stats().lease_cnt == 1); /* of one block */
	whole = std::move(later);
	CHECK(later.records().empty() && whole.records().size() == 1 && st.stats().lease_cnt == 1);
	auto kept = [&] {
		stoup::client other(std::move(st));
		auto all = other.array_of(bars);
		st = std::move(other);
		return all;
	}();
	whole.reset();
	CHECK(whole.records().empty() && kept.records().size() == 2 && st.stats().lease_cnt == 1);
	kept.reset();
	CHECK(st.stats().lease_cnt == 0);
	CHECK_ERROR(EFBIG, ({mbo_name}), st.array_of(st.find<stoup_mbo>(mbo_name)));
	CHECK_ERROR(EINVAL, ({"scan_backward"}), st.array_of(bars, {.flags = STOUP_BACKWARD}));
	CHECK_ERROR(ENOTSUP, ({""}), st.array_of(bars, {.flags = STOUP_DIRECT}));
}

static void check_client(stoup::client &st, const char *pool)
{
	auto all = st.list();

	CHECK(all.size() == 3 && all[0].name() == "FX/BARS" && all[2].name() == mbo_name);
	CHECK(st.try_series_cnt().value() == 3);
	CHECK_ERROR(ENOENT, ({"no series of that number"}), st.try_series_at(3).value());
	CHECK(!st.refresh());
	st.health();
	CHECK(st.get() && stoup::version() == stoup_version());
	CHECK_ERROR(ENOENT, ({"no-such-pool"}), stoup::client("no-such-pool"));
	stoup::options opt;
	CHECK(opt.struct_len == sizeof(::stoup_options) && opt.wait == STOUP_WAIT_SLEEP);
	opt.wait = 77;
	CHECK_ERROR(EINVAL, ({"wait"}), stoup::client(pool, opt));
	opt.wait = STOUP_WAIT_BLOCK;
	stoup::client other(pool, opt);
	other = std::move(st);
	other.health();
	st = std::move(other);
	CHECK_ERROR(EINVAL, ({"not failed"}), st.scan(st.find<stoup_mbo>(mbo_name)).skip());
	for (auto span : *st.try_scan(st.find<stoup_mbo>(mbo_name))) { /* of what has no name itself */
		CHECK(!span.empty());
		break;
	}
	auto named = st.try_find<stoup_mbo>(mbo_name);
	CHECK(named.value().size() == std::as_const(named).value().size());
	auto got = stoup::client::try_attach("no-such-pool");
	CHECK_ERROR(ENOENT, ({"no-such-pool"}), got.value());
	CHECK_ERROR(ENOENT, ({"no-such-pool"}), std::as_const(got).value());
	CHECK(!got && got.error().code() == ENOENT);
	CHECK(got.error().error_code() == std::errc::no_such_file_or_directory);
#ifdef __cpp_lib_expected
	std::expected<stoup::client, stoup::error> standard = stoup::client::try_attach(pool);
	CHECK(standard.has_value() && standard->try_health());
	standard = stoup::client::try_attach("no-such-pool");
	CHECK(!standard && standard.error().code() == ENOENT);
#endif
}

/* What was moved from, and what never was: an error, no crash. */
static void check_nothing(const char *pool)
{
	stoup::client st(pool);
	auto es = st.find<stoup_mbo>(mbo_name);
	auto cur = st.scan(es);
	cur.next();
	auto held = cur.hold();
	auto st_now = std::move(st);
	auto cur_now = std::move(cur);
	auto held_now = std::move(held);

	CHECK_ERROR(EINVAL, ({"moved from"}), st.find(mbo_name));
	CHECK_ERROR(EINVAL, ({"moved from"}), st.scan(es));
	CHECK_ERROR(EINVAL, ({"moved from"}), st.array_of(es));
	CHECK_ERROR(EINVAL, ({"moved from"}), st.list());
	CHECK_ERROR(EINVAL, ({"moved from"}), st.try_series_at(0).value());
	CHECK_ERROR(EINVAL, ({"moved from"}), st.refresh());
	CHECK_ERROR(EINVAL, ({"moved from"}), st.health());
	CHECK_ERROR(EINVAL, ({"moved from"}), st.stats());
	CHECK_ERROR(EINVAL, ({"no attachment"}), st.prepare_fork());
	CHECK_ERROR(EINVAL, ({"moved from"}), cur.next());
	CHECK_ERROR(EINVAL, ({"moved from"}), cur.try_next().value());
	CHECK_ERROR(EINVAL, ({"moved from"}), cur.begin());
	CHECK_ERROR(EINVAL, ({"moved from"}), cur.records().begin());
	CHECK_ERROR(EINVAL, ({""}), cur.skip());
	CHECK_ERROR(EINVAL, ({"no longer held"}), cur.hold());
	CHECK_ERROR(EINVAL, ({"no name"}), st_now.find(nullptr));
	CHECK(!held && held.records().empty() && held_now && !held_now.records().empty());
	stoup::array<stoup_mbo> none;
	CHECK(!none && none.records().empty());
	auto &again = cur_now; /* to itself */
	cur_now = std::move(again);
	auto &twice = held_now;
	held_now = std::move(twice);
	CHECK(held_now && !cur_now.next().empty());
	/* The first series of each attachment has the same number there. */
	auto bars = stoup::client(pool).find<stoup_bar>("FX/BARS");
	CHECK_ERROR(ENOENT, ({"find it through"}), st_now.scan(bars));
}

static void check_forks(stoup::client &st, const std::vector<stoup_mbo> &all)
{
	auto cur = st.scan(st.find<stoup_mbo>(mbo_name));
	auto span = cur.next();
	int status = -1;
	{
		auto given_up = st.prepare_fork(); /* and nothing waits for it */
		CHECK_ERROR(EINVAL, ({"not called in a child"}), given_up.child());
	}
	auto forking = st.prepare_fork();
	pid_t pid = fork();
	if (pid == 0) {
		forking.child();
		std::size_t i = span.size();
		bool good = same(span.front(), all[0]);
		for (auto &r : cur.records())
			good = good && same(r, all[i++]);
		_exit(good && i == all.size() ? 0 : 1);
	}
	forking.parent(pid > 0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(same(cur.next().front(), all[span.size()]));
	pid = fork(); /* unprepared: an error, no crash, when all is destroyed as well */
	if (pid == 0) {
		auto got = cur.try_next();
		{
			auto take = std::move(cur);
			auto too = std::move(st);
		}
		_exit(!got && got.error().code() == ECHILD ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* ---- damage, and what is not allocated -------------------------------------------------------------- */

static void check_damage(const char *store, const std::vector<stoup_mbo> &all)
{
	stoup::client st(store);
	auto cur = st.scan(st.find<stoup_mbo>(mbo_name));
	std::uint64_t seen = 0, left_out = 0, thrown = 0;

	while (true) {
		try {
			for (auto span : cur) {
				CHECK(same(span.front(), all[cur.raw().ordinal]));
				seen += span.size();
			}
			break;
		} catch (const stoup::error &e) {
			CHECK(e.code() == EBADMSG && std::strstr(e.what(), "offset"));
			left_out += cur.skip();
			thrown++;
		}
	}
	CHECK(thrown == 1 && left_out > 0 && seen + left_out == all.size());
}

static void check_allocations(stoup::client &st)
{
	auto es = st.find<stoup_mbo>(mbo_name);
	auto cur = st.scan(es);
	std::size_t before, span_cnt = 0;
	std::uint64_t sizes = 0;

	cur.next();
	before = malloc_cnt;
	for (auto span : cur) {
		sizes += span.size();
		span_cnt++;
	}
	CHECK(span_cnt > 8 && malloc_cnt == before);
	cur = st.scan(es);
	cur.next();
	before = malloc_cnt;
	for (auto &r : cur.records())
		sizes += r.size;
	cur = st.scan(es);
	CHECK(before != malloc_cnt); /* opening a cursor is seen */
	before = malloc_cnt;
	for (auto span = cur.try_next(); span && !span->empty();) {
		auto more = cur.try_next();
		if (!more || more->empty())
			break;
		sizes += more->size();
	}
	CHECK(sizes > 0 && malloc_cnt == before);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	try {
		const char *pool = argv[1];
		stoup::client st(pool);
		auto all = all_by_c(pool);

		check_scans(st, all, std::strtoull(argv[2], nullptr, 10), argv[3]);
		check_ranges(st, all);
		check_layouts(st);
		check_builtins<stoup_mbo, stoup_trade, stoup_mbp1, stoup_mbp10, stoup_bbo, stoup_cmbp1, stoup_cbbo,
			stoup_ohlcv, stoup_status_msg, stoup_imbalance, stoup_definition_v1, stoup_definition_v2,
			stoup_definition, stoup_statistics_v1, stoup_statistics, stoup_error_msg_v1, stoup_error_msg,
			stoup_symbol_mapping_msg_v1, stoup_symbol_mapping_msg, stoup_system_msg_v1,
			stoup_system_msg, stoup_event64, stoup_tick, stoup_bar, stoup_itch_mbo,
			stoup_itch_trade>();
		check_leases(pool, all);
		check_arrays(st);
		check_client(st, pool);
		check_nothing(pool);
		check_forks(st, all);
		check_damage(argv[4], all);
		check_allocations(st);
	} catch (const std::exception &e) {
		std::printf("FAILED: thrown: %s\n", e.what());
		return 1;
	}
	return failed_cnt ? 1 : 0;
}
