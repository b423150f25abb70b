/* SPDX-License-Identifier: Apache-2.0 */
/* messages.cc - messages of variable length through stoup.hpp: usage: messages POOL SERIES COUNT RECORDS */
#include <stoup.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

static int failed_cnt;

#define CHECK(claim)                                                                               \
	do {                                                                                       \
		if (!(claim)) {                                                                    \
			std::printf("FAILED: %s:%d: %s\n", __FILE__, __LINE__, #claim);            \
			failed_cnt++;                                                              \
		}                                                                                  \
	} while (0)

struct copy {
	std::int64_t key;
	std::string text;
	bool operator==(const copy &) const = default;
};

/* By the calls of C, which another test compares with what went in. */
static std::vector<copy> all_by_c(const char *pool, const char *name)
{
	std::vector<copy> all;
	stoup_cursor *cur;
	stoup_series series;
	stoup_span span;
	struct stoup *st;

	if (stoup_attach(pool, nullptr, &st, nullptr) < 0 ||
		stoup_series_find(st, name, &series, nullptr) < 0 ||
		stoup_scan(st, &series, nullptr, &cur, nullptr) < 0)
		return all;
	while (stoup_next(cur, &span) > 0)
		for (std::uint64_t i = 0; i < span.record_cnt; i++) {
			stoup_message m = stoup_message_at(&span, i);
			all.push_back({m.key, std::string(static_cast<const char *>(m.bytes), m.len)});
		}
	stoup_cursor_close(cur);
	stoup_detach(st);
	return all;
}

static copy copy_of(const stoup::message &m)
{
	return {m.key(), std::string(m.text())};
}

static void check_scans(stoup::client &st, const stoup::series<stoup::message> &from, const std::vector<copy> &all)
{
	std::size_t i = 0;

	for (std::span<const stoup::message> span : st.scan(from)) {
		auto it = std::ranges::lower_bound(span, span.back().key(), {}, &stoup::message::key);
		CHECK(it->key() == span.back().key() && (it == span.begin() || std::prev(it)->key() < it->key()));
		for (const stoup::message &m : span) {
			CHECK(copy_of(m) == all[i++]);
			CHECK(m.bytes().size() == m.text().size() &&
				static_cast<const void *>(m.bytes().data()) == m.text().data());
		}
	}
	CHECK(i == all.size());
	for (const stoup::message &m : st.scan_backward(from).records())
		CHECK(copy_of(m) == all[--i]);
	CHECK(i == 0);
	stoup::lease<stoup::message> kept;
	{
		auto cur = st.scan(from);
		cur.next();
		kept = cur.hold();
	}
	for (const stoup::message &m : kept.records())
		CHECK(copy_of(m) == all[i++]);
	CHECK(i > 1);
	stoup::range part{.from = stoup::at(all[10].key), .to = stoup::at(all[40].key)};
	std::size_t cnt = 0;
	for (const stoup::message &m : st.scan(from, part).records())
		CHECK(m.key() >= all[10].key && m.key() < all[40].key && ++cnt > 0);
	CHECK(cnt == static_cast<std::size_t>(std::ranges::count_if(all, [&](const copy &one) {
		return one.key >= all[10].key && one.key < all[40].key;
	})));
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	try {
		stoup::client st(argv[1]);
		auto all = all_by_c(argv[1], argv[2]);
		auto from = st.find<stoup::message>(argv[2]);

		CHECK(all.size() == std::strtoull(argv[3], nullptr, 10));
		check_scans(st, from, all);
		auto array = st.try_array_of(from);
		CHECK(!array && array.error().code() == ENOTSUP);
		auto records = st.try_find<stoup::message>(argv[4]);
		CHECK(!records && records.error().code() == EINVAL);
		auto mbo = st.try_find<stoup_mbo>(argv[2]);
		CHECK(!mbo && mbo.error().code() == EINVAL);
	} catch (const std::exception &e) {
		std::printf("FAILED: thrown: %s\n", e.what());
		return 1;
	}
	return failed_cnt ? 1 : 0;
}
