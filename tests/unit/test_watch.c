/* SPDX-License-Identifier: Apache-2.0 */
/* test_watch.c - histograms and their quantiles, times in slots, and looks at control objects that are good, old or nonsense. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "consumer/tool_watch.h"
#include "shm/control.h"
#include "shm/histogram.h"
#include "shm/sample.h"

static const struct stoup_control_config config = {
	.consumer_cap = 4, .cell_cap = 64, .buffer_cap = 8, .volume_cap = 2};
static struct stoup_control *control;
static struct stoup_watch look;
static size_t len;

static void setup(void)
{
	len = stoup_control_footprint(&config);
	control = aligned_alloc(STOUP_OS_PAGE_LEN, len);
	ck_assert_ptr_nonnull(control);
	memset(control, 0, len);
	stoup_control_format(control, &config);
	control->daemon_pid = (uint32_t)getpid();
	control->daemon_start = stoup_process_start(control->daemon_pid);
	control->data_len = 1 << 20;
	memset(control->instance, 7, sizeof(control->instance));
	stoup_control_announce(control);
	memset(&look, 0, sizeof(look));
}

static void teardown(void)
{
	stoup_watch_fini(&look);
	free(control);
}

static int read_it(void)
{
	struct stoup_error err = {0};

	return stoup_watch_read(control, len, &look, &err);
}

/* ---- histograms ------------------------------------------------------------------------------- */

START_TEST(a_value_has_its_bucket)
{
	const struct {
		uint64_t value;
		uint32_t bucket;
	} known[] = {{0, 0}, {7, 7}, {8, 8}, {15, 15}, {16, 16}, {17, 16}, {18, 17}, {31, 23},
		{32, 24}, {960, 63}, {1000, 63}, {1023, 63}, {1024, 64}, {UINT64_C(1) << 42, 319},
		{UINT64_MAX, 319}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		ck_assert_uint_eq(stoup_histogram_bucket(known[i].value), known[i].bucket);
	ck_assert_uint_eq(stoup_histogram_low(63), 960);
	ck_assert_uint_eq(stoup_histogram_low(64), 1024);
}
END_TEST

START_TEST(buckets_leave_nothing_out_and_are_no_wider_than_an_eighth)
{
	for (uint32_t i = 0; i + 1 < STOUP_HISTOGRAM_BUCKETS; i++) {
		uint64_t low = stoup_histogram_low(i), next = stoup_histogram_low(i + 1);

		ck_assert_uint_eq(stoup_histogram_bucket(low), i);
		ck_assert_uint_eq(stoup_histogram_bucket(next - 1), i);
		ck_assert(next > low && (next - low == 1 || next - low <= low / 8));
	}
}
END_TEST

START_TEST(quantiles_are_those_of_the_values)
{
	struct stoup_control_histogram *h = stoup_control_histograms(control);

	for (uint64_t v = 1; v <= 8; v++)
		stoup_histogram_add(&h[STOUP_HISTOGRAM_READ], v);
	stoup_histogram_add(&h[STOUP_HISTOGRAM_DECODE], 1000);
	ck_assert_int_eq(read_it(), 0);
	ck_assert_uint_eq(look.histogram_cnt, STOUP_HISTOGRAM_CNT);
	const struct stoup_watch_histogram *r = &look.histograms[STOUP_HISTOGRAM_READ];

	ck_assert_str_eq(r->name, "read");
	ck_assert_uint_eq(r->count, 8);
	ck_assert_uint_eq(r->sum, 36);
	ck_assert_uint_eq(r->max, 8);
	ck_assert_uint_eq(stoup_watch_quantile(r, 0.125), 1);
	ck_assert_uint_eq(stoup_watch_quantile(r, 0.5), 4);
	ck_assert_uint_eq(stoup_watch_quantile(r, 0.51), 5);
	ck_assert_uint_eq(stoup_watch_quantile(r, 0.9), 8);
	ck_assert_uint_eq(stoup_watch_quantile(r, 1), 8);
	/* The bucket ends at 1023: never above the maximum. */
	ck_assert_uint_eq(
		stoup_watch_quantile(&look.histograms[STOUP_HISTOGRAM_DECODE], 0.5), 1000);
	ck_assert_uint_eq(stoup_watch_quantile(&look.histograms[STOUP_HISTOGRAM_MISS], 0.5), 0);
}
END_TEST

START_TEST(a_slot_carries_two_times_once)
{
	_Atomic uint64_t detail = stoup_sample_make(1600, 325);
	uint64_t sample = stoup_sample_take(&detail);

	ck_assert_uint_eq(stoup_sample_wait_ns(sample), 1600);
	ck_assert_uint_eq(stoup_sample_wake_ns(sample), 320);
	ck_assert_uint_eq(stoup_sample_take(&detail), 0);
	/* The time of an answer is none, and stays. */
	atomic_store(&detail, 123456789);
	ck_assert_uint_eq(stoup_sample_take(&detail), 0);
	ck_assert_uint_eq(atomic_load(&detail), 123456789);
	/* They stop at their highest value, apart from each other. */
	sample = stoup_sample_make(UINT64_MAX, 0);
	ck_assert_uint_eq(stoup_sample_wake_ns(sample), 0);
	ck_assert_uint_eq(stoup_sample_wait_ns(sample), ((UINT64_C(1) << 38) - 1) << 4);
	sample = stoup_sample_make(0, UINT64_MAX);
	ck_assert_uint_eq(stoup_sample_wait_ns(sample), 0);
	ck_assert_uint_eq(stoup_sample_wake_ns(sample), ((UINT64_C(1) << 25) - 1) << 4);
}
END_TEST

/* ---- looks ------------------------------------------------------------------------------------ */

START_TEST(an_older_daemon_has_no_histograms_and_no_holders)
{
	control->histogram_off = control->holder_off = 0;
	control->histogram_cnt = control->histogram_len = 0;
	control->holder_cap = control->holder_len = 0;
	ck_assert_int_eq(read_it(), 0);
	ck_assert_uint_eq(look.histogram_cnt, 0);
	ck_assert_uint_eq(look.holder_cnt, 0);
	ck_assert_uint_eq(look.counter_cnt, STOUP_COUNTER_CNT);
	/* Nor the counters that came later. */
	control->counter_cnt = STOUP_COUNTER_BASE_CNT;
	ck_assert_int_eq(read_it(), 0);
	ck_assert_uint_eq(stoup_watch_value(&look, STOUP_COUNTER_HITS), 0);
}
END_TEST

START_TEST(pins_are_shown_and_an_older_daemon_has_none)
{
	struct stoup_control_buffer *b = stoup_control_buffers(control);

	control->pin_bytes_cap = 12345;
	for (uint32_t i = 0; i < 2; i++) {
		atomic_store(&b[i].state, STOUP_BUFFER_RESIDENT);
		atomic_store(&b[i].off, (uint64_t)i * 4096);
		atomic_store(&b[i].len, 1000);
	}
	/* Flags that come later are nobody's pin. */
	atomic_store(&b[0].flags, STOUP_BUFFER_PINNED | 0x80u);
	atomic_store(&b[1].flags, ~STOUP_BUFFER_PINNED);
	atomic_store(&stoup_control_counters(control)[STOUP_COUNTER_PINNED_BYTES].value, 4096);
	ck_assert_int_eq(read_it(), 0);
	ck_assert_uint_eq(look.pin_bytes_cap, 12345);
	ck_assert_int_eq(look.extents[0].pinned, 1);
	ck_assert_int_eq(look.extents[1].pinned, 0);
	ck_assert_uint_eq(stoup_watch_value(&look, STOUP_COUNTER_PINNED_BYTES), 4096);
	control->counter_cnt = STOUP_COUNTER_PINS;
	ck_assert_int_eq(read_it(), 0);
	ck_assert_uint_eq(stoup_watch_value(&look, STOUP_COUNTER_PINNED_BYTES), 0);
}
END_TEST

START_TEST(quotas_are_rows_that_have_a_bound)
{
	struct stoup_control_quota *row = stoup_control_quotas(control);
	const uint64_t wild[] = {UINT64_MAX, UINT64_MAX - 7, len, len - 8, 4097};

	memset(row[0].name, 'q', sizeof(row[0].name));
	row[0].bytes_cap = 100;
	row[2] = (struct stoup_control_quota){.name = "user:a\033b",
		.kind = STOUP_QUOTA_USER,
		.id = 7,
		.bytes_cap = 5,
		.leased_bytes = 4,
		.limit_cnt = 3,
		.consumer_cnt = 2,
		.waiting_cnt = 1};
	ck_assert_int_eq(read_it(), 0);
	ck_assert_uint_eq(look.quota_cnt, 2);
	ck_assert_uint_eq(strlen(look.quotas[0].name), sizeof(look.quotas[0].name) - 1);
	ck_assert_str_eq(look.quotas[1].name, "user:a?b");
	ck_assert_uint_eq(look.quotas[1].id, 7);
	ck_assert_uint_eq(look.quotas[1].leased_bytes, 4);
	ck_assert_uint_eq(look.quotas[1].limit_cnt, 3);
	ck_assert_uint_eq(look.quotas[1].consumer_cnt, 2);
	ck_assert_uint_eq(look.quotas[1].waiting_cnt, 1);
	for (size_t w = 0; w < sizeof(wild) / sizeof(wild[0]); w++) {
		control->quota_off = wild[w];
		ck_assert_int_eq(read_it(), 0);
		ck_assert_uint_eq(look.quota_cnt, 0);
	}
	control->quota_off = 0;
	control->quota_cap = control->quota_len = 0;
	ck_assert_int_eq(read_it(), 0);
	ck_assert_uint_eq(look.quota_cnt, 0);
}
END_TEST

START_TEST(tables_outside_of_the_mapping_are_not_read)
{
	uint64_t *const offs[] = {&control->consumer_off, &control->buffer_off,
		&control->volume_off, &control->counter_off, &control->error_off};
	const uint64_t wild[] = {UINT64_MAX, UINT64_MAX - 7, len, len - 8, 4097};

	for (size_t i = 0; i < sizeof(offs) / sizeof(offs[0]); i++)
		for (size_t w = 0; w < sizeof(wild) / sizeof(wild[0]); w++) {
			uint64_t good = *offs[i];

			*offs[i] = wild[w];
			ck_assert_int_eq(read_it(), -EPROTO);
			ck_assert_ptr_null(look.counters);
			*offs[i] = good;
		}
	for (size_t w = 0; w < sizeof(wild) / sizeof(wild[0]); w++) {
		control->histogram_off = control->holder_off = wild[w];
		ck_assert_int_eq(read_it(), 0);
		ck_assert_uint_eq(look.histogram_cnt + look.holder_cnt, 0);
	}
	control->consumer_cap = STOUP_CONSUMER_CAP + 1;
	ck_assert_int_eq(read_it(), -EPROTO);
}
END_TEST

START_TEST(texts_end_and_command_no_terminal)
{
	memset(control->store_path, 'x', sizeof(control->store_path));
	memcpy(control->version, "\033[2J\n1", 7);
	ck_assert_int_eq(read_it(), 0);
	ck_assert_uint_eq(strlen(look.store_path), sizeof(look.store_path) - 1);
	ck_assert_str_eq(look.version, "?[2J?1");
	/* C1 has commands too: as a byte, and as a character of UTF-8. What is cut or is none ends as '?'. */
	memcpy(control->version,
		"a\x9b"
		"2J\xc2\x9b"
		"3J\xc3\xa9\xff\xe2\x82",
		14);
	ck_assert_int_eq(read_it(), 0);
	ck_assert_str_eq(look.version, "a?2J??3J\xc3\xa9???");
}
END_TEST

START_TEST(an_object_that_is_cut_short_fails_the_look_alone)
{
	struct stoup_error err = {0};
	int fd = memfd_create("cut", MFD_CLOEXEC);
	void *mapped;

	ck_assert_int_eq(ftruncate(fd, (off_t)len), 0);
	mapped = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(mapped, MAP_FAILED);
	/* At any page, again and again: the signal is not left blocked. */
	for (size_t keep = 0; keep < len; keep += STOUP_OS_PAGE_LEN) {
		ck_assert_int_eq(ftruncate(fd, (off_t)len), 0);
		memcpy(mapped, control, len);
		ck_assert_int_eq(stoup_watch_read(mapped, len, &look, &err), 0);
		ck_assert_int_eq(ftruncate(fd, (off_t)keep), 0);
		err.text[0] = 0;
		if (stoup_watch_read(mapped, len, &look, &err) == 0)
			continue; /* only what nobody reads was cut away */
		ck_assert_ptr_nonnull(strstr(err.text, "cut short"));
		ck_assert_ptr_null(look.counters);
	}
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(stoup_watch_read(mapped, len, &look, &err), -EPROTO);
	munmap(mapped, len);
	close(fd);
}
END_TEST

/* A page that is not of a look, after looks: the process dies of it, as it would have. */
START_TEST(other_bus_errors_are_not_swallowed)
{
	int fd = memfd_create("other", MFD_CLOEXEC);
	volatile char *mapped;

	ck_assert_int_eq(read_it(), 0);
	ck_assert_int_eq(ftruncate(fd, STOUP_OS_PAGE_LEN), 0);
	mapped = mmap(NULL, STOUP_OS_PAGE_LEN, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne((void *)(uintptr_t)mapped, MAP_FAILED);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	(void)mapped[0];
}
END_TEST

/* Every word of the superblock, and words of the tables, with what nobody would write there. */
START_TEST(nonsense_anywhere_is_refused_or_shown_within_bounds)
{
	uint64_t state = 88172645463325252u, *words = (uint64_t *)control;
	const uint64_t odd[] = {0, 1, 7, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63, UINT32_MAX};
	uint64_t *good = malloc(len);
	uint32_t refused = 0, shown = 0;

	memcpy(good, control, len);
	for (uint32_t round = 0; round < 4000; round++) {
		for (uint32_t i = 0; i < 1 + round % 5; i++) {
			size_t at;

			state ^= state << 13, state ^= state >> 7, state ^= state << 17;
			at = state >> 20;
			at %= round % 2 ? sizeof(*control) / 8 : len / 8;
			words[at] = state % 3 ? odd[state / 3 % 7] : state;
		}
		if (read_it() < 0) {
			refused++;
			ck_assert_ptr_null(look.counters);
		} else {
			shown++;
			for (uint32_t i = 0; i < look.extent_cnt; i++)
				ck_assert(
					look.extents[i].off + look.extents[i].len <= look.data_len);
			for (uint32_t i = 0; i < look.histogram_cnt; i++)
				stoup_watch_quantile(&look.histograms[i], 0.5);
		}
		if (round % 3 == 2)
			memcpy(control, good, len);
	}
	ck_assert_uint_gt(refused, 0);
	ck_assert_uint_gt(shown, 0);
	free(good);
}
END_TEST

START_TEST(extents_lie_in_the_pool_and_add_up)
{
	struct stoup_control_buffer *b = stoup_control_buffers(control);

	for (uint32_t i = 0; i < 5; i++) {
		atomic_store(&b[i].state, STOUP_BUFFER_RESIDENT);
		atomic_store(&b[i].off, (uint64_t)(4 - i) * 4096);
		atomic_store(&b[i].len, 1000);
		atomic_store(&b[i].refs, i);
	}
	atomic_store(&b[1].state, STOUP_BUFFER_LOADING);
	atomic_store(&b[3].off, UINT64_C(1) << 20);
	atomic_store(&b[4].state, 99);
	ck_assert_int_eq(read_it(), 0);
	/* By offset; what lies outside, or is in no state, is none. */
	ck_assert_uint_eq(look.extent_cnt, 3);
	ck_assert_uint_eq(look.extents[0].buffer_idx, 2);
	ck_assert_uint_eq(look.extents[2].buffer_idx, 0);
	ck_assert_uint_eq(look.sums.resident_blocks, 2);
	ck_assert_uint_eq(look.sums.leases, 2);
	ck_assert_uint_eq(look.sums.leased_bytes, 1000);
}
END_TEST

START_TEST(a_row_of_holders_is_whole_or_not_shown)
{
	struct stoup_control_holder *row = stoup_control_holders(control);
	struct stoup_control_consumer *c = stoup_control_consumers(control);

	atomic_store(&c[2].state, STOUP_CONSUMER_ATTACHED);
	atomic_store(&c[2].attach_no, 9);
	for (uint32_t i = 0; i < 3; i++) {
		row[i] = (struct stoup_control_holder){.seq = 2,
			.consumer_idx = 2,
			.pid = 40 + i,
			.lease_cnt = 1,
			.attach_no = 9 + i};
		memset(row[i].series, 's', sizeof(row[i].series));
	}
	atomic_store(&row[0].seq, 3); /* in work */
	ck_assert_int_eq(read_it(), 0);
	ck_assert_uint_eq(look.holder_cnt, 2);
	ck_assert_uint_eq(look.holders[0].pid, 41);
	ck_assert_uint_eq(strlen(look.holders[0].series), sizeof(look.holders[0].series) - 1);
	/* Another attachment of that place: it ended. */
	ck_assert_uint_eq(look.holders[0].state, STOUP_CONSUMER_NONE);
	atomic_store(&row[0].seq, 4);
	ck_assert_int_eq(read_it(), 0);
	ck_assert_uint_eq(look.holders[0].state, STOUP_CONSUMER_ATTACHED);
}
END_TEST

START_TEST(rates_are_of_one_daemon)
{
	struct stoup_watch before = {.taken_ns = 1000000000, .counter_cnt = 0},
			   now = {.taken_ns = 3000000000};

	ck_assert(stoup_watch_seconds(&before, &now) == 2);
	ck_assert(stoup_watch_per_second(10, 30, 2) == 10);
	ck_assert(stoup_watch_per_second(30, 10, 2) == 0);
	ck_assert(stoup_watch_seconds(&now, &before) == 0);
	now.instance[3] = 1;
	ck_assert(stoup_watch_seconds(&before, &now) == 0);
	ck_assert(stoup_watch_ratio(3, 1) == 0.75);
	ck_assert(stoup_watch_ratio(0, 0) < 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("watch");
	TCase *tcase = tcase_create("watch");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_value_has_its_bucket);
	tcase_add_test(tcase, buckets_leave_nothing_out_and_are_no_wider_than_an_eighth);
	tcase_add_test(tcase, quantiles_are_those_of_the_values);
	tcase_add_test(tcase, a_slot_carries_two_times_once);
	tcase_add_test(tcase, an_older_daemon_has_no_histograms_and_no_holders);
	tcase_add_test(tcase, pins_are_shown_and_an_older_daemon_has_none);
	tcase_add_test(tcase, quotas_are_rows_that_have_a_bound);
	tcase_add_test(tcase, tables_outside_of_the_mapping_are_not_read);
	tcase_add_test(tcase, texts_end_and_command_no_terminal);
	tcase_add_test(tcase, an_object_that_is_cut_short_fails_the_look_alone);
	tcase_add_test_raise_signal(tcase, other_bus_errors_are_not_swallowed, SIGBUS);
	tcase_add_test(tcase, nonsense_anywhere_is_refused_or_shown_within_bounds);
	tcase_add_test(tcase, extents_lie_in_the_pool_and_add_up);
	tcase_add_test(tcase, a_row_of_holders_is_whole_or_not_shown);
	tcase_add_test(tcase, rates_are_of_one_daemon);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
