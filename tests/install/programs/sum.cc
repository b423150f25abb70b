/* SPDX-License-Identifier: Apache-2.0 */
/* sum.cc - price x size of a series, without exceptions: sum POOL SERIES */
#include <stoup.hpp>

#include <cstdio>

static int fail(const stoup::error &error)
{
	std::fprintf(stderr, "sum: %d: %s\n", error.code(), error.what());
	return 1;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	auto st = stoup::client::try_attach(argv[1]);
	if (!st)
		return fail(st.error());
	auto series = st->try_find<stoup_mbo>(argv[2]);
	if (!series)
		return fail(series.error());
	auto cursor = st->try_scan(*series);
	if (!cursor)
		return fail(cursor.error());
	std::int64_t sum = 0;
	for (;;) {
		auto span = cursor->try_next();
		if (!span)
			return fail(span.error());
		if (span->empty())
			break;
		for (const stoup_mbo &r : *span)
			sum += r.price * r.size;
	}
	std::printf("%lld\n", static_cast<long long>(sum));
	return 0;
}
