/* SPDX-License-Identifier: Apache-2.0 */
/* The reader over a scripted backend: short reads, EINTR, EIO, a refused O_DIRECT, a full kernel,
 * each at the place that the test wants. */
#include "producer/reader_backend.h"
#include "tests/unit/reader_fixture.h"

/* ---- a scripted backend ---------------------------------------------------------------------- */

/* Each read of the script is answered by the next entry: bytes (given from the real pattern) or an
 * errno. What was asked is kept for the test to look at. */
static struct {
	int32_t answers[80];
	size_t answer_cnt, at;
	struct stoup_read_op asked[80];
	struct stoup_read_result ready[DEPTH];
	size_t ready_cnt;
	int flush_rc;
} script;

static int script_create(const struct stoup_reader_options *opt, uint32_t *depth, void **ret,
	char reason[STOUP_READER_REASON_CAP])
{
	(void)opt, (void)depth;
	snprintf(reason, STOUP_READER_REASON_CAP, "a script");
	*ret = &script;
	return 0;
}

static void script_destroy(void *state)
{
	(void)state;
}

static int script_file_set(void *state, uint32_t idx, int fd_buffered, int fd_direct)
{
	(void)state, (void)idx, (void)fd_buffered, (void)fd_direct;
	return 0;
}

static void script_begin(void *state, uint32_t op_idx, const struct stoup_read_op *op)
{
	(void)state;
	ck_assert_uint_lt(script.at, script.answer_cnt);
	int32_t answer = script.answers[script.at];
	for (int32_t i = 0; i < answer; i++)
		((uint8_t *)op->dst)[i] = byte_at(op->file_off + (uint32_t)i);
	script.asked[script.at++] = *op;
	script.ready[script.ready_cnt++] = (struct stoup_read_result){op_idx, answer};
}

static int script_flush(void *state)
{
	(void)state;
	return script.flush_rc;
}

static size_t script_reap(void *state, struct stoup_read_result *out, size_t cap)
{
	(void)state;
	size_t cnt = script.flush_rc < 0 ? 0 : script.ready_cnt;
	ck_assert_uint_ge(cap, cnt);
	memcpy(out, script.ready, cnt * sizeof(*out));
	script.ready_cnt -= cnt;
	return cnt;
}

static int script_poll_fd(const void *state)
{
	(void)state;
	return -1;
}

static const struct stoup_reader_backend script_backend = {
	.name = "script",
	.create = script_create,
	.destroy = script_destroy,
	.file_set = script_file_set,
	.begin = script_begin,
	.flush = script_flush,
	.reap = script_reap,
	.poll_fd = script_poll_fd,
};

static void setup_script(enum stoup_reader_switch direct, const int32_t *answers, size_t cnt)
{
	struct stoup_reader_options opt = {
		.direct = direct, .cached = STOUP_READER_SWITCH_OFF, .depth = DEPTH};
	setup_staging(4);
	opt.staging = staging;
	memset(&script, 0, sizeof(script));
	memcpy(script.answers, answers, cnt * sizeof(*answers));
	script.answer_cnt = cnt;
	ck_assert_int_eq(stoup_reader_create_on(&opt, &script_backend, &reader, NULL), 0);
	file_idx = stoup_reader_file_add(reader, file_fd, path, NULL);
	ck_assert_int_eq(file_idx, 0);
}

#define SCRIPT(direct, ...)                                                                        \
	do {                                                                                       \
		const int32_t answers_[] = {__VA_ARGS__};                                          \
		setup_script(direct, answers_, sizeof(answers_) / sizeof(int32_t));                \
	} while (0)

START_TEST(a_short_read_is_continued_where_it_ended)
{
	SCRIPT(STOUP_READER_SWITCH_OFF, 1, 4000, 999);
	ck_assert_int_eq(submit_slot(5, 777, 5000), 0);
	struct stoup_read_done done = {0};
	for (int i = 0; i < 3 && stoup_reader_reap(reader, &done, 1) == 0; i++)
		;
	ck_assert_int_eq(done.result, 5000);
	ck_assert_uint_eq(first_wrong(done.bytes, 777, 5000), 5000);
	ck_assert_uint_eq(script.asked[1].file_off, 778);
	ck_assert_uint_eq(script.asked[2].file_off, 4778);
	ck_assert_uint_eq(script.asked[2].len, 999);
	ck_assert_uint_eq(stoup_reader_counters(reader)->short_reads, 2);
}
END_TEST

START_TEST(an_interrupted_read_is_asked_again)
{
	SCRIPT(STOUP_READER_SWITCH_OFF, -EINTR, -EAGAIN, 100);
	ck_assert_int_eq(submit_slot(5, 0, 100), 0);
	struct stoup_read_done done = {0};
	for (int i = 0; i < 3 && stoup_reader_reap(reader, &done, 1) == 0; i++)
		;
	ck_assert_int_eq(done.result, 100);
	ck_assert_uint_eq(stoup_reader_counters(reader)->retries, 2);
	ck_assert_uint_eq(stoup_reader_counters(reader)->errors, 0);
	ck_assert_uint_eq(stoup_reader_counters(reader)->in_flight, 0);
}
END_TEST

START_TEST(a_read_that_is_interrupted_for_ever_ends_with_that_error)
{
	int32_t answers[80];
	struct stoup_read_done done = {0};
	int turns = 0;
	for (int i = 0; i < 80; i++)
		answers[i] = -EAGAIN;
	setup_script(STOUP_READER_SWITCH_OFF, answers, 80);
	ck_assert_int_eq(submit_slot(5, 0, 100), 0);
	while (stoup_reader_reap(reader, &done, 1) == 0)
		ck_assert_int_lt(++turns, 80);
	ck_assert_int_eq(done.result, -EAGAIN);
	ck_assert_uint_eq(stoup_reader_counters(reader)->retries, 64);
}
END_TEST

START_TEST(an_input_output_error_is_passed_on_and_the_next_read_goes_well)
{
	struct stoup_read_done done[2] = {{0}};
	SCRIPT(STOUP_READER_SWITCH_OFF, 50, -EIO, 30);
	ck_assert_int_eq(submit_slot(5, 0, 100), 0);
	ck_assert_uint_eq(stoup_reader_reap(reader, done, 2), 0);
	ck_assert_uint_eq(stoup_reader_reap(reader, done, 2), 1);
	ck_assert_int_eq(done[0].result, -EIO);
	ck_assert_ptr_null(done[0].bytes);
	ck_assert_int_eq(submit_slot(6, 0, 30), 0);
	ck_assert_uint_eq(stoup_reader_reap(reader, done, 2), 1);
	ck_assert_int_eq(done[0].result, 30);
	ck_assert_uint_eq(stoup_reader_counters(reader)->errors, 1);
	ck_assert_uint_eq(stoup_reader_counters(reader)->reads, 1);
}
END_TEST

START_TEST(a_direct_read_that_is_refused_makes_the_file_buffered)
{
	struct stoup_read_done done = {0};
	if (!direct_works)
		return;
	SCRIPT(STOUP_READER_SWITCH_ON, -EINVAL, 4096 + 904, 10);
	ck_assert_int_eq(submit_slot(5, 8192 + 4096, 5000), 0);
	ck_assert_uint_eq(stoup_reader_reap(reader, &done, 1), 0);
	ck_assert_uint_eq(stoup_reader_reap(reader, &done, 1), 1);
	ck_assert_uint_eq(script.asked[0].direct, 1);
	ck_assert_uint_eq(script.asked[1].direct, 0);
	ck_assert_int_eq(script.asked[1].fd, file_fd);
	ck_assert_int_eq(done.result, 5000);
	ck_assert_uint_eq(first_wrong(done.bytes, 8192 + 4096, 5000), 5000);
	ck_assert_int_eq(submit_slot(6, 100, 10), 0);
	ck_assert_uint_eq(stoup_reader_reap(reader, &done, 1), 1);
	ck_assert_uint_eq(script.asked[2].direct, 0);
	ck_assert_ptr_nonnull(strstr(stoup_reader_direct_reason(reader), "O_DIRECT"));
	ck_assert_uint_eq(stoup_reader_counters(reader)->files_buffered, 1);
}
END_TEST

START_TEST(a_direct_read_is_widened_and_its_unaligned_rest_is_buffered)
{
	struct stoup_read_done done = {0};
	if (!direct_works)
		return;
	SCRIPT(STOUP_READER_SWITCH_ON, 4096, 100, 0);
	ck_assert_int_eq(submit_slot(5, 12288 + 1000, 6000), 0);
	uint64_t first = script.asked[0].file_off;
	script.answers[2] = (int32_t)(12288 + 7000 - first - 4196);
	for (int i = 0; i < 3 && stoup_reader_reap(reader, &done, 1) == 0; i++)
		;
	ck_assert_uint_le(first, 12288 + 1000);
	ck_assert_uint_eq(first % 512, 0);
	ck_assert_uint_eq(script.asked[0].len % 512, 0);
	ck_assert_uint_ge(first + script.asked[0].len, 12288 + 7000);
	ck_assert_uint_eq((uintptr_t)script.asked[0].dst % 4096, 0);
	ck_assert_uint_eq(script.asked[1].direct, 1);
	ck_assert_uint_eq(script.asked[1].file_off, first + 4096);
	ck_assert_uint_eq(script.asked[2].direct, 0);
	ck_assert_uint_eq(script.asked[2].file_off + script.asked[2].len, 12288 + 7000);
	ck_assert_int_eq(done.result, 6000);
	ck_assert_uint_eq(first_wrong(done.bytes, 12288 + 1000, 6000), 6000);
}
END_TEST

START_TEST(a_batch_that_the_kernel_does_not_take_yet_is_kept)
{
	struct stoup_read_done done = {0};
	SCRIPT(STOUP_READER_SWITCH_OFF, 100);
	script.flush_rc = -EAGAIN;
	ck_assert_int_eq(submit_slot(5, 0, 100), 0);
	ck_assert_int_eq(stoup_reader_flush(reader), -EAGAIN);
	ck_assert_uint_eq(stoup_reader_reap(reader, &done, 1), 0);
	ck_assert_uint_eq(stoup_reader_ready(reader), 1);
	script.flush_rc = 1;
	ck_assert_uint_eq(stoup_reader_reap(reader, &done, 1), 1);
	ck_assert_int_eq(done.result, 100);
	ck_assert_uint_eq(stoup_reader_ready(reader), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reader_script");
	TCase *tcase = tcase_create("reader_script");
	tcase_add_checked_fixture(tcase, setup_empty, teardown_file);
	tcase_add_test(tcase, a_short_read_is_continued_where_it_ended);
	tcase_add_test(tcase, an_interrupted_read_is_asked_again);
	tcase_add_test(tcase, a_read_that_is_interrupted_for_ever_ends_with_that_error);
	tcase_add_test(tcase, an_input_output_error_is_passed_on_and_the_next_read_goes_well);
	tcase_add_test(tcase, a_direct_read_that_is_refused_makes_the_file_buffered);
	tcase_add_test(tcase, a_direct_read_is_widened_and_its_unaligned_rest_is_buffered);
	tcase_add_test(tcase, a_batch_that_the_kernel_does_not_take_yet_is_kept);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
