/* SPDX-License-Identifier: Apache-2.0 */
/* bars.cc - bars and views of texts from C++, by the headers of C: usage: bars POOL SERIES SPEC, prints the number of bars,
 * of trades in them, and their volume. */
#include <stoup.hpp>
#include <stoup_bars.h>
#include <stoup_doc.h>
#include <stoup_text.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string_view>

static int die(const char *text)
{
	std::fprintf(stderr, "bars: %s\n", text);
	return 1;
}

int main(int argc, char **argv)
{
	stoup_bars_spec spec{};
	stoup_bar_record bar;
	stoup_series series;
	stoup_error err{};
	stoup_cursor *cur;
	stoup_bars *bars;
	struct stoup *st;
	std::uint64_t bar_cnt = 0, trade_cnt = 0, volume = 0;
	std::int64_t tick;
	int rc;

	/* DATASET/SYMBOL/schema */
	stoup_text_view rest = stoup_text_cstr(argc > 2 ? argv[2] : ""), part{};
	for (int i = 0; i < 3; i++)
		if (!stoup_text_split(&rest, '/', &part))
			return die("POOL SERIES SPEC");
	if (std::string_view(part.ptr, part.len) != "tick" || !stoup_text_equal_case(part, stoup_text_cstr("TICK")))
		return die("another schema");
	if (stoup_text_decimal(stoup_text_cstr("0.25"), -9, &tick) != 0 || tick != 250000000)
		return die("decimal");

	spec.struct_len = sizeof(spec);
	if (argc < 4 || stoup_bars_spec_parse(argv[3], &spec, &err) < 0)
		return die(err.text);
	spec.flags = STOUP_BARS_LAST;
	if (stoup_attach(argv[1], nullptr, &st, &err) < 0 || stoup_series_find(st, argv[2], &series, &err) < 0 ||
		stoup_scan(st, &series, nullptr, &cur, &err) < 0 || stoup_bars_open(cur, &spec, &bars, &err) < 0)
		return die(err.text);
	while ((rc = stoup_bars_next(bars, &bar)) > 0) {
		bar_cnt++;
		trade_cnt += bar.count;
		volume += bar.volume;
	}
	if (rc < 0)
		return die(stoup_bars_error(bars)->text);
	std::printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", bar_cnt, trade_cnt, volume);
	stoup_bars_close(bars);
	stoup_cursor_close(cur);
	return stoup_detach(st) < 0;
}
