/* SPDX-License-Identifier: Apache-2.0 */
/* test_top.c - the screens of `stoup top`: golden ones, texts that would command a terminal, keys, the map, history, and
 * pools of no, one and very many extents and consumers.
 */
#include <check.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "consumer/tool_top.h"
#include "shm/histogram.h"

static struct stoup_top *top;
static struct stoup_top_screen screen;
static char printed[1 << 20];

/* ---- a pool that is made up ------------------------------------------------------------------- */

static const char *name_of(
	void *arg, const struct stoup_watch_volume *volume, uint32_t block_idx, uint32_t *ret_cnt)
{
	static const char *const names[] = {"XNAS/AAPL/mbo", "XNAS/MSFT/trades"};

	(void)arg;
	(void)volume;
	*ret_cnt = block_idx == 2 ? 2 : 1;
	return block_idx < 3 ? names[block_idx % 2] : NULL;
}

static void *rows(size_t cnt, size_t len)
{
	void *room = calloc(cnt + 1, len);

	ck_assert_ptr_nonnull(room);
	return room;
}

static void look_make(struct stoup_watch *w, uint64_t seconds, uint32_t consumers, uint32_t extents)
{
	*w = (struct stoup_watch){.taken_ns = seconds * 1000000000,
		.uptime_ns = 5400000000000,
		.daemon_pid = 4711,
		.pool_name = "prices",
		.store_path = "/srv/ticks",
		.version = "0.1.0",
		.backing = "posix",
		.reader_kind = "io_uring",
		.data_len = 16 << 20,
		.decode_threads = 4};
	w->counters = rows(STOUP_COUNTER_CNT, sizeof(*w->counters));
	w->counter_cnt = STOUP_COUNTER_CNT;
	w->consumers = rows(consumers, sizeof(*w->consumers));
	w->extents = rows(extents, sizeof(*w->extents));
	w->volumes = rows(1, sizeof(*w->volumes));
	w->volume_cnt = 1;
	w->errors = rows(1, sizeof(*w->errors));
	w->histograms = rows(STOUP_HISTOGRAM_CNT, sizeof(*w->histograms));
	w->histogram_cnt = STOUP_HISTOGRAM_CNT;
	w->holders = rows(2, sizeof(*w->holders));
	w->consumer_cnt = consumers;
	w->extent_cnt = extents;
	for (uint32_t i = 0; i < consumers; i++) {
		w->consumers[i] = (struct stoup_watch_consumer){.idx = i,
			.state = STOUP_CONSUMER_ATTACHED,
			.pid = 100 + i,
			.attach_no = i + 1,
			.lease_cnt = i,
			.leased_bytes = (uint64_t)i << 19,
			.oldest_ns = i * 1500000000ull,
			.hit_cnt = 1000 * (seconds - 99) + i,
			.miss_cnt = 10 * i};
		snprintf(w->consumers[i].command, 17, "worker%u", i);
	}
	for (uint32_t i = 0; i < extents; i++)
		w->extents[i] = (struct stoup_watch_extent){.off = (uint64_t)i * (1 << 20),
			.len = 1 << 20,
			.state = STOUP_BUFFER_RESIDENT,
			.used_cnt = 1,
			.block_idx = i};
}

static void counter(uint32_t look, enum stoup_counter id, uint64_t value)
{
	top->looks[look].counters[id].value = value;
}

/* Eight extents of 1 MiB in 16: one of each kind, then free. */
static void farm(void)
{
	struct stoup_watch *w;

	for (uint32_t i = 0; i < 2; i++) {
		look_make(&top->looks[i], 100 + i, 3, 8);
		w = &top->looks[i];
		w->extents[0].refs = 2;
		w->extents[1].state = STOUP_BUFFER_LOADING;
		w->extents[2].used_cnt = 0;
		w->extents[3].used_cnt = 3;
		w->extents[5].state = STOUP_BUFFER_DRAINING;
		w->extents[7].refs = 12;
		w->extents[7].len = 65536;
		w->sums = (struct stoup_watch_sums){.leases = 14,
			.leased_bytes = (1 << 20) + 65536,
			.resident_blocks = 7,
			.resident_bytes = (6 << 20) + 65536,
			.oldest_ns = 3000000000,
			.oldest_pid = 102,
			.waiting = 1};
		w->consumers[2].suspended = 1;
		w->holders[0] = (struct stoup_watch_holder){.consumer_idx = 2,
			.pid = 102,
			.lease_cnt = 2,
			.bytes = 1 << 20,
			.oldest_ns = 3000000000,
			.command = "worker2",
			.series = "XNAS/AAPL/mbo"};
		w->holder_cnt = 1;
		counter(i, STOUP_COUNTER_HITS, 3000 + 3000 * i);
		counter(i, STOUP_COUNTER_MISSES, 1000 + 1000 * i);
		counter(i, STOUP_COUNTER_LOADS, 1000 * i);
		counter(i, STOUP_COUNTER_LOAD_RAW_BYTES, (uint64_t)i * 200 << 20);
		counter(i, STOUP_COUNTER_READ_BYTES, (uint64_t)i * 50 << 20);
		counter(i, STOUP_COUNTER_DECODE_NS, 1500000000ull * i);
		counter(i, STOUP_COUNTER_STARVED, 2);
		w->histograms[STOUP_HISTOGRAM_MISS].buckets[stoup_histogram_bucket(1000)] =
			100 + 100 * i;
		w->histograms[STOUP_HISTOGRAM_MISS].count = 100 + 100 * i;
		w->histograms[STOUP_HISTOGRAM_MISS].max = 1000;
	}
	top->now = 0;
	stoup_top_looked(top);
	top->now = 1;
	strcpy(top->clock, "12:34:56");
	stoup_top_looked(top);
}

static void setup(void)
{
	top = calloc(1, sizeof(*top));
	ck_assert_ptr_nonnull(top);
	ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
	top->interval = 1;
	top->names.series = name_of;
}

static void teardown(void)
{
	stoup_watch_fini(&top->looks[0]);
	stoup_watch_fini(&top->looks[1]);
	stoup_top_screen_fini(&screen);
	free(top);
}

static const char *draw(uint32_t cols, uint32_t lines, int utf8)
{
	FILE *out = fmemopen(printed, sizeof(printed), "w");

	ck_assert_ptr_nonnull(out);
	stoup_top_screen_fini(&screen);
	ck_assert_int_eq(stoup_top_screen_init(&screen, lines, cols, utf8), 0);
	stoup_top_draw(top, &screen);
	stoup_top_screen_print(&screen, out);
	fclose(out);
	return printed;
}

static void press(const char *text)
{
	for (; *text; text++)
		stoup_top_key(top, (uint32_t)*text);
}

#define HAS(text)     ck_assert_msg(strstr(printed, text), "%s is not on\n%s", text, printed)
#define HAS_NOT(text) ck_assert_msg(!strstr(printed, text), "%s is on\n%s", text, printed)

/* ---- golden screens --------------------------------------------------------------------------- */

/* clang-format off */
static const char golden_80[] =
"prices: running (pid 4711)  16.0 MiB  up 1.5 h               12:34:56  every 1 s\n"
"store /srv/ticks                        posix, io_uring, 4 decode threads, 0.1.0\n"
"hits 75.00%   of all 75.00%   hits/s 3000     misses/s 1000    evictions/s 0\n"
"decode 200.0 MiB/s    read 50.0 MiB/s    loads/s 1000   decoding 1.50 threads\n"
"miss p50 1.0 us    p90 1.0 us    p99 1.0 us    p99.9 1.0 us    last 1 s\n"
"used 6.1 MiB (38%)    leased 1.1 MiB     leases 14      oldest 3.0 s (102)\n"
"waiting 1     starved 2       failed 0   timeouts 0     deaths 0    errors 0\n"
"hit ratio                             ▆ decode                                █\n"
"misses                                █ evictions                             ▁\n"
"by state (51.2 KiB): . free o loading u unread r resident l/L leased d draining\n"
"LLLLLLLLLLLLLLLLLLLLoooooooooooooooooooouuuuuuuuuuuuuuuuuuuurrrrrrrrrrrrrrrrrrrr\n"
"rrrrrrrrrrrrrrrrrrrrddddddddddddddddddddrrrrrrrrrrrrrrrrrrrlLl..................\n"
"................................................................................\n"
"................................................................................\n"
"[consumers] series  map  errors  3 attached, by held\n"
"    pid command       state     leases       held   oldest     hits  misses wait\n"
"    102 worker2       suspended      2    1.0 MiB    3.0 s     2002      20    0\n"
"    101 worker1       attached       1  512.0 KiB    1.5 s     2001      10    0\n"
"    100 worker0       attached       0        0 B        -     2000       0    0\n"
"\n"
"series                               resident     leased leases holders   oldest\n"
"XNAS/AAPL/mbo                         1.0 MiB    1.0 MiB      2       1    3.0 s\n"
"(of volumes not read here)            4.1 MiB        0 B      0       0        -\n"
"q quit  h help  Tab view  s/S sort  / filter  f freeze  c colour  +/- interval\n";

static const char golden_help[] =
"stoup top: help\n"
"\n"
"q, Ctrl-C  quit          h, ?  this page; any key goes back\n"
"Tab        next view: consumers, series, map, errors (Shift-Tab: the one before)\n"
"s, S       sort by the next column; the other way round\n"
"/          only what has this text in its command or series; empty: all\n"
"f, blank   freeze the screen, and go on    c  map by state, holders, heat\n"
"+, -       look less or more often         arrows, PgUp, PgDn, Home, End: scroll\n"
"\n"
"map, by state: . free   o loading   u read ahead, unused   r resident\n"
"               L leased   l leased in part   d draining: ends with its leases\n"
"  by holders: leases on a block; by heat: consumers that used a block\n"
"hits       part of the used blocks that was in the pool: now; since the start\n"
"decoding   threads busy with it on average (stoupd --threads: how many there ar~\n"
"starved    nothing could be evicted; failed: until the deadline (stoup holders)\n"
"oldest     age of the oldest lease, and whose; sort by it to find who forgets\n"
"lines      a mark is four seconds, or the interval if that is longer\n"
"\n"
"\n"
"\n"
"\n"
"\n"
"\n"
"any key goes back; the rest is in stoup(1)\n";
/* clang-format on */

START_TEST(a_screen_of_80_by_24_is_known_to_the_letter)
{
	farm();
	ck_assert_str_eq(draw(80, 24, 1), golden_80);
}
END_TEST

START_TEST(help_is_known_to_the_letter)
{
	farm();
	press("h");
	ck_assert_str_eq(draw(80, 24, 1), golden_help);
	press("q");
	ck_assert_int_eq(top->help + top->quit, 0);
}
END_TEST

START_TEST(larger_shows_more_and_smaller_says_so)
{
	farm();
	draw(120, 40, 1);
	HAS("longest ever 1.0 us");
	HAS("hits/s  miss/s   records timeouts");
	HAS("XNAS/AAPL/mbo");
	HAS("102 worker2");
	draw(60, 18, 1);
	HAS("[consumers]");
	HAS("102 worker2");
	draw(59, 18, 1);
	HAS("60 columns and 18 rows; this has 59 and");
	draw(60, 17, 1);
	HAS("60 columns and 18 rows");
	for (uint32_t cols = 1; cols < 130; cols += 7)
		for (uint32_t lines = 1; lines < 50; lines += 3)
			draw(cols, lines, 1);
}
END_TEST

START_TEST(all_is_ascii_where_the_terminal_is)
{
	farm();
	strcpy(top->looks[1].consumers[0].command, "caf\xc3\xa9");
	for (const char *at = draw(120, 40, 0); *at; at++)
		ck_assert((unsigned char)*at < 127);
	HAS("caf?");
}
END_TEST

/* ---- texts ------------------------------------------------------------------------------------ */

START_TEST(no_text_commands_a_terminal)
{
	const struct {
		const char *text, *shown;
	} known[] = {{"a\x1b[2Jb", "a?[2Jb"},
		{"a\xc2\x9b"
		 "31mb",
			"a?31mb"},
		{"a\x9b"
		 "b",
			"a?b"},
		{"\xe2\x80\xae"
		 "evil",
			"?evil"},
		{"\xc3", "?"}, {"\xff\xfe", "??"}, {"\xc0\xaf", "??"}, {"\xed\xa0\x80", "???"},
		{"\xf4\x90\x80\x80", "????"}, {"caf\xc3\xa9", "caf\xc3\xa9"},
		{"\xe4\xb8\xad\xe6\x96\x87", "\xe4\xb8\xad\xe6\x96\x87"}, {"e\xcc\x81", "e?"},
		{"\r\n\t\x7f", "????"}};

	farm();
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		FILE *out = fmemopen(printed, sizeof(printed), "w");

		stoup_top_screen_fini(&screen);
		ck_assert_int_eq(stoup_top_screen_init(&screen, 1, 20, 1), 0);
		stoup_top_put(&screen, 0, 0, 20, STOUP_TOP_PLAIN, known[i].text);
		stoup_top_screen_print(&screen, out);
		fclose(out);
		printed[strcspn(printed, "\n")] = 0;
		ck_assert_str_eq(printed, known[i].shown);
	}
}
END_TEST

START_TEST(what_does_not_fit_is_cut_and_marked)
{
	const struct {
		const char *text;
		uint32_t width;
		int middle;
		const char *shown;
	} known[] = {{"abcdef", 6, 0, "abcdef"}, {"abcdef", 5, 0, "abcd~"}, {"abcdef", 1, 0, "~"},
		{"abcdef", 0, 0, ""}, {"XNAS/AAPL/trades", 9, 1, "XNAS~ades"},
		{"\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad", 4, 0, "\xe4\xb8\xad~"},
		{"\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad", 6, 0,
			"\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad"}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		FILE *out = fmemopen(printed, sizeof(printed), "w");

		stoup_top_screen_fini(&screen);
		ck_assert_int_eq(stoup_top_screen_init(&screen, 1, 20, 1), 0);
		if (known[i].middle)
			stoup_top_put_middle(
				&screen, 0, 0, known[i].width, STOUP_TOP_PLAIN, known[i].text);
		else
			stoup_top_put(
				&screen, 0, 0, known[i].width, STOUP_TOP_PLAIN, known[i].text);
		stoup_top_screen_print(&screen, out);
		fclose(out);
		printed[strcspn(printed, "\n")] = 0;
		ck_assert_str_eq(printed, known[i].shown);
	}
}
END_TEST

START_TEST(numbers_keep_their_columns)
{
	char text[STOUP_TOP_NUMBER_CAP];

	ck_assert_str_eq(stoup_top_bytes(1023, text), "1023 B");
	ck_assert_str_eq(stoup_top_bytes(1024, text), "1.0 KiB");
	ck_assert_str_eq(stoup_top_bytes(1024 * 1023.99, text), "1.0 MiB");
	ck_assert_str_eq(stoup_top_bytes(3.5 * (1 << 30), text), "3.5 GiB");
	ck_assert_str_eq(stoup_top_count(9999999, text), "9999999");
	ck_assert_str_eq(stoup_top_count(10000000, text), "10.0M");
	ck_assert_str_eq(stoup_top_count(1.5e12, text), "1.5T");
	ck_assert_uint_le(strlen(stoup_top_bytes(1.8e19, text)), 13);
	ck_assert_uint_le(strlen(stoup_top_count(1.8e19, text)), 7);
}
END_TEST

/* ---- the map ---------------------------------------------------------------------------------- */

START_TEST(cells_hold_the_bytes_of_their_run)
{
	struct stoup_top_map_cell cells[16];
	uint64_t run;

	farm();
	stoup_top_map_fill(&top->looks[1], cells, 16, &run);
	ck_assert_uint_eq(run, 1 << 20);
	ck_assert_uint_eq(cells[0].bytes[STOUP_TOP_LEASED], 1 << 20);
	ck_assert_uint_eq(cells[1].bytes[STOUP_TOP_LOADING], 1 << 20);
	ck_assert_uint_eq(cells[2].bytes[STOUP_TOP_UNREAD], 1 << 20);
	ck_assert_uint_eq(cells[3].bytes[STOUP_TOP_RESIDENT], 1 << 20);
	ck_assert_uint_eq(cells[5].bytes[STOUP_TOP_DRAINING], 1 << 20);
	ck_assert_uint_eq(cells[7].bytes[STOUP_TOP_LEASED], 65536);
	ck_assert_uint_eq(cells[7].bytes[STOUP_TOP_FREE], (1 << 20) - 65536);
	ck_assert_uint_eq(cells[7].refs, 12);
	ck_assert_uint_eq(cells[15].bytes[STOUP_TOP_FREE], 1 << 20);
	/* An extent over several cells. */
	top->looks[1].extents[0].len = 3 << 20;
	top->looks[1].extent_cnt = 1;
	stoup_top_map_fill(&top->looks[1], cells, 7, &run);
	ck_assert_uint_eq(run, (16 << 20) / 7 + 1);
	ck_assert_uint_eq(cells[0].bytes[STOUP_TOP_LEASED], run);
	ck_assert_uint_eq(cells[1].bytes[STOUP_TOP_LEASED], (3 << 20) - run);
}
END_TEST

START_TEST(letters_tell_state_holders_and_heat)
{

	farm();
	press("\t\t");
	draw(80, 24, 1);
	HAS("LLLLLLLLLLooooooooo");
	HAS("uuuuuuuuurrrrrrr");
	HAS("ddddddddd");
	HAS("rlLLLL.......");
	press("c");
	draw(80, 24, 1);
	HAS("by holders");
	HAS("2222222222----");
	HAS("+.......");
	press("c");
	draw(80, 24, 1);
	HAS("by heat");
	HAS("---");
	HAS("333333333");
	press("c");
	ck_assert_int_eq(top->map_mode, STOUP_TOP_BY_STATE);
}
END_TEST

START_TEST(pools_of_any_size_are_drawn)
{
	static const uint64_t sizes[] = {
		0, 1, 4096, 1ull << 34, 1ull << 62, UINT64_MAX / 2, UINT64_MAX};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		stoup_watch_fini(&top->looks[0]);
		look_make(&top->looks[0], 100, 0, 1);
		top->looks[0].data_len = sizes[i];
		top->looks[0].extents[0].len = UINT32_MAX;
		draw(80, 24, 1);
		HAS("nobody is attached");
	}
	stoup_watch_fini(&top->looks[0]);
	look_make(&top->looks[0], 100, 1024, 100000);
	top->looks[0].data_len = 100000ull << 20;
	draw(80, 24, 1);
	HAS("1024 attached");
	HAS("worker1023");
	top->view = STOUP_TOP_SERIES;
	draw(80, 24, 1);
	HAS("(of volumes not read here)           97.7 GiB");
	HAS("(blocks of several series)");
}
END_TEST

/* ---- tables ----------------------------------------------------------------------------------- */

START_TEST(consumers_are_sorted_and_filtered)
{
	uint32_t *order, cnt;

	farm();
	ck_assert_int_eq(stoup_top_consumers(top, &order, &cnt), 0);
	ck_assert_uint_eq(cnt, 3);
	ck_assert_uint_eq(order[0], 2);
	free(order);
	top->reverse = 1;
	ck_assert_int_eq(stoup_top_consumers(top, &order, &cnt), 0);
	ck_assert_uint_eq(order[0], 0);
	free(order);
	/* By its command, and by a series that it holds. */
	press("/worker1\n");
	ck_assert_int_eq(stoup_top_consumers(top, &order, &cnt), 0);
	ck_assert_uint_eq(cnt, 1);
	ck_assert_uint_eq(order[0], 1);
	free(order);
	press("/\x15"
	      "AAPL\n");
	ck_assert_int_eq(stoup_top_consumers(top, &order, &cnt), 0);
	ck_assert_uint_eq(cnt, 1);
	ck_assert_uint_eq(order[0], 2);
	free(order);
}
END_TEST

START_TEST(series_add_up)
{
	struct stoup_top_series_row *table;
	uint64_t sum = 0;
	uint32_t cnt;
	int named;

	farm();
	ck_assert_int_eq(stoup_top_series(top, &table, &cnt, &named), 0);
	ck_assert_int_eq(named, 1);
	ck_assert_str_eq(table[0].name, "XNAS/AAPL/mbo");
	ck_assert_uint_eq(table[0].resident_bytes, 1 << 20);
	ck_assert_uint_eq(table[0].leased_bytes, 1 << 20);
	ck_assert_uint_eq(table[0].pid, 102);
	for (uint32_t i = 0; i < cnt; i++)
		sum += table[i].resident_bytes;
	/* One of them is loading still. */
	ck_assert_uint_eq(sum, (6 << 20) + 65536);
	free(table);
	top->names.series = NULL;
	ck_assert_int_eq(stoup_top_series(top, &table, &cnt, &named), 0);
	ck_assert_int_eq(named, 0);
	ck_assert_uint_eq(cnt, 1);
	free(table);
	press("\t");
	draw(80, 24, 1);
	HAS("XNAS/AAPL/mbo                               ?    1.0 MiB");
}
END_TEST

START_TEST(long_names_are_cut_in_their_middle)
{
	farm();
	memset(top->looks[1].holders[0].series, 'x', 143);
	memcpy(top->looks[1].holders[0].series, "XNAS/", 5);
	memcpy(top->looks[1].holders[0].series + 139, "/mbo", 4);
	press("\t");
	draw(80, 24, 1);
	HAS("XNAS/xxxxxxxxxxx~xxxxxxxxxxxxx/mbo");
}
END_TEST

/* ---- keys ------------------------------------------------------------------------------------- */

START_TEST(keys_change_what_they_say)
{
	farm();
	press("s");
	ck_assert_str_eq(stoup_top_sort_name(top->view, top->sort[top->view]), "leases");
	press("sssssss");
	ck_assert_str_eq(stoup_top_sort_name(top->view, top->sort[top->view]), "held");
	press("+");
	ck_assert(top->interval == 2);
	press("---");
	ck_assert(top->interval == 0.2);
	press("-----");
	ck_assert(top->interval == 0.1);
	press("++++++++++++");
	ck_assert(top->interval == 60);
	top->interval = 3600;
	press("+");
	ck_assert(top->interval == 3600);
	press("-");
	ck_assert(top->interval == 60);
	press("f");
	ck_assert_int_eq(top->frozen, 1);
	press(" ");
	ck_assert_int_eq(top->frozen + 2 * top->look_now, 2);
	press("/q\n");
	ck_assert_int_eq(top->quit, 0);
	ck_assert_str_eq(top->filter, "q");
	press("q");
	ck_assert_int_eq(top->quit, 1);
}
END_TEST

START_TEST(a_filter_is_typed_in_whole_characters)
{
	for (uint32_t i = 0; i < 2 * STOUP_TOP_FILTER_CAP; i++) {
		stoup_top_key(top, i == 0 ? '/' : 0x20ac);
		ck_assert_uint_lt(strlen(top->typed), STOUP_TOP_FILTER_CAP);
	}
	ck_assert_uint_eq(strlen(top->typed), 63);
	stoup_top_key(top, STOUP_TOP_KEY_ERASE);
	ck_assert_uint_eq(strlen(top->typed), 60);
	for (uint32_t i = 0; i < 30; i++)
		stoup_top_key(top, STOUP_TOP_KEY_ERASE);
	ck_assert_str_eq(top->typed, "");
	stoup_top_key(top, STOUP_TOP_KEY_ESCAPE);
	ck_assert_int_eq(top->typing, 0);
}
END_TEST

START_TEST(scrolling_stays_within_the_rows)
{
	look_make(&top->looks[0], 100, 50, 0);
	draw(80, 24, 1);
	stoup_top_key(top, STOUP_TOP_KEY_UP);
	ck_assert_uint_eq(top->scroll, 0);
	stoup_top_key(top, STOUP_TOP_KEY_END);
	draw(80, 24, 1);
	ck_assert_uint_eq(top->scroll, 50 - top->page);
	stoup_top_key(top, STOUP_TOP_KEY_PAGE_DOWN);
	draw(80, 24, 1);
	ck_assert_uint_eq(top->scroll, 50 - top->page);
	stoup_top_key(top, STOUP_TOP_KEY_PAGE_UP);
	ck_assert_uint_eq(top->scroll, 50 - top->page - (top->page - 1));
	stoup_top_key(top, STOUP_TOP_KEY_HOME);
	ck_assert_uint_eq(top->scroll, 0);
	/* Keys that come at once do not run beyond the end. */
	for (uint32_t i = 0; i < 20; i++)
		stoup_top_key(top, STOUP_TOP_KEY_PAGE_DOWN);
	stoup_top_key(top, STOUP_TOP_KEY_UP);
	ck_assert_uint_eq(top->scroll, 50 - top->page - 1);
}
END_TEST

/* ---- history and what happens ----------------------------------------------------------------- */

START_TEST(marks_are_means_of_what_was_seen)
{
	farm();
	ck_assert(stoup_top_history_value(&top->history, STOUP_TOP_LINE_RATIO, 0) == 0.75);
	ck_assert(stoup_top_history_value(&top->history, STOUP_TOP_LINE_HITS, 0) == 3000);
	ck_assert(stoup_top_history_value(&top->history, STOUP_TOP_LINE_HITS, 1) < 0);
	ck_assert(stoup_top_history_value(&top->history, STOUP_TOP_LINE_HITS, UINT32_MAX) < 0);
	/* The next mark, without rates: a daemon that began anew. */
	memset(top->looks[1].instance, 9, sizeof(top->looks[1].instance));
	top->looks[1].taken_ns = 104000000000;
	top->looks[1].daemon_pid = 4712;
	stoup_top_looked(top);
	ck_assert(stoup_top_history_value(&top->history, STOUP_TOP_LINE_HITS, 0) < 0);
	ck_assert(stoup_top_history_value(&top->history, STOUP_TOP_LINE_HITS, 1) == 3000);
	draw(80, 24, 1);
	HAS("a new daemon (pid 4712) took the place of process 4711");
	top->looks[1].taken_ns += 16000000000;
	draw(80, 24, 1);
	HAS_NOT("took the place");
	HAS("since start");
}
END_TEST

START_TEST(a_longer_interval_begins_anew)
{
	farm();
	top->interval = 60;
	stoup_top_looked(top);
	ck_assert_uint_eq(top->history.mark_ns, 60000000000);
	ck_assert(stoup_top_history_value(&top->history, STOUP_TOP_LINE_HITS, 1) < 0);
}
END_TEST

START_TEST(misses_are_those_of_the_last_minute)
{
	struct stoup_watch_histogram misses;

	farm();
	ck_assert(stoup_top_history_misses(&top->history, &top->looks[1], &misses) == 1);
	ck_assert_uint_eq(misses.count, 100);
	top->looks[1].taken_ns += 120000000000;
	ck_assert(stoup_top_history_misses(&top->history, &top->looks[1], &misses) == 0);
	ck_assert_uint_eq(misses.count, 200);
}
END_TEST

START_TEST(what_is_wrong_stands_on_top)
{
	farm();
	top->looks[1].state = STOUP_WATCH_SUSPENDED;
	draw(80, 24, 1);
	HAS("prices: suspended");
	HAS("kill -CONT 4711");
	top->looks[1].state = STOUP_WATCH_DEAD;
	draw(60, 18, 1);
	HAS("prices: dead");
	HAS("start it again");
}
END_TEST

START_TEST(what_is_no_volume_is_not_read_and_not_waited_for)
{
	struct stoup_watch_volume volume = {.block_cnt = 1, .series_cnt = 1};
	struct stoup_watch watch = {.store_path = "/nonexistent"};
	char dir[] = "/tmp/stoup-top-XXXXXX", path[64], fifo[64];
	const char *const paths[] = {"/dev/zero", "/dev/tty", "/proc/self/mem", "/tmp", "", "x",
		"/nonexistent/x.stoup", fifo, path};
	struct stoup_top_store *store;
	uint32_t cnt = 0;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	snprintf(path, sizeof(path), "%s/link", dir);
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	ck_assert_int_eq(symlink(fifo, path), 0);
	ck_assert_int_eq(stoup_top_store_create(&store), 0);
	for (uint32_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		snprintf(volume.path, sizeof(volume.path), "%s", paths[i]);
		volume.idx = i * 700;
		stoup_top_store_look(store, &watch);
		ck_assert_ptr_null(stoup_top_store_series(store, &volume, 0, &cnt));
	}
	volume.idx = UINT32_MAX;
	ck_assert_ptr_null(stoup_top_store_series(store, &volume, 0, &cnt));
	stoup_top_store_destroy(store);
	unlink(path);
	unlink(fifo);
	rmdir(dir);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("top");
	TCase *tcase = tcase_create("top");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_screen_of_80_by_24_is_known_to_the_letter);
	tcase_add_test(tcase, help_is_known_to_the_letter);
	tcase_add_test(tcase, larger_shows_more_and_smaller_says_so);
	tcase_add_test(tcase, all_is_ascii_where_the_terminal_is);
	tcase_add_test(tcase, no_text_commands_a_terminal);
	tcase_add_test(tcase, what_does_not_fit_is_cut_and_marked);
	tcase_add_test(tcase, numbers_keep_their_columns);
	tcase_add_test(tcase, cells_hold_the_bytes_of_their_run);
	tcase_add_test(tcase, letters_tell_state_holders_and_heat);
	tcase_add_test(tcase, pools_of_any_size_are_drawn);
	tcase_add_test(tcase, consumers_are_sorted_and_filtered);
	tcase_add_test(tcase, series_add_up);
	tcase_add_test(tcase, long_names_are_cut_in_their_middle);
	tcase_add_test(tcase, keys_change_what_they_say);
	tcase_add_test(tcase, a_filter_is_typed_in_whole_characters);
	tcase_add_test(tcase, scrolling_stays_within_the_rows);
	tcase_add_test(tcase, marks_are_means_of_what_was_seen);
	tcase_add_test(tcase, a_longer_interval_begins_anew);
	tcase_add_test(tcase, misses_are_those_of_the_last_minute);
	tcase_add_test(tcase, what_is_wrong_stands_on_top);
	tcase_add_test(tcase, what_is_no_volume_is_not_read_and_not_waited_for);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
