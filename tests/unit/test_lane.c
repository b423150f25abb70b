/* SPDX-License-Identifier: Apache-2.0 */
/* test_lane.c - what is put into a lane comes out of it, in order, by another thread, in bounded memory. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/lane.h"

#define RECORD_CNT 200000u
#define LONG_LEN   (1u << 20)

struct record {
	int64_t ts;
	uint64_t number;
};

static const struct stoup_field fields[] = {
	{.name = "ts",
		.type = STOUP_TYPE_I64,
		.cnt = 1,
		.flags = STOUP_FIELD_KEY | STOUP_FIELD_TIME},
	{.name = "number", .type = STOUP_TYPE_U64, .cnt = 1, .off = 8},
};

static struct stoup_schema schema = {.name = "pair",
	.stride = sizeof(struct record),
	.align = 8,
	.hash = 77,
	.field_cnt = 2,
	.fields = fields};
static struct stoup_lane *lane;
static struct stoup_error err;

/* ---- the target ------------------------------------------------------------------------------- */

static struct {
	char text[4096]; /* notes and series */
	uint64_t put_cnt, message_len, fail_at;
	uint32_t series_cnt;
	struct stoup_where where;
} target;

static int64_t take_series(
	void *arg, const char *name, const struct stoup_schema *is, struct stoup_error *e)
{
	(void)arg;
	(void)e;
	ck_assert_str_eq(is->name, schema.name);
	ck_assert_str_eq(is->fields[1].name, "number");
	snprintf(target.text + strlen(target.text), sizeof(target.text) - strlen(target.text),
		"%s ", name);
	return 100 + target.series_cnt++;
}

static int take_put(void *arg, uint32_t series_idx, int64_t key, const void *bytes,
	const struct stoup_where *where, struct stoup_error *e)
{
	struct record record;

	(void)arg;
	memcpy(&record, bytes, sizeof(record));
	ck_assert_uint_eq(record.number, target.put_cnt);
	ck_assert_int_eq(record.ts, key);
	ck_assert_uint_eq(series_idx, 100 + record.number % 3);
	ck_assert_uint_eq(where->line, record.number + 1);
	ck_assert_uint_eq(where->file_off, record.number * ((uint64_t)1 << 31));
	target.where = *where;
	if (++target.put_cnt == target.fail_at)
		return stoup_error_set(e, -ENOSPC, "full");
	return 0;
}

static int take_message(void *arg, uint32_t series_idx, int64_t key, const void *bytes,
	uint32_t len, const struct stoup_where *where, struct stoup_error *e)
{
	const uint8_t *at = bytes;

	(void)arg;
	(void)where;
	(void)e;
	ck_assert_uint_eq(series_idx, 100);
	ck_assert_int_eq(key, 5);
	for (uint32_t i = 0; i < len; i++)
		ck_assert_uint_eq(at[i], (uint8_t)(i * 7));
	target.message_len += len;
	return 0;
}

static void take_note(void *arg, const char *text)
{
	(void)arg;
	snprintf(target.text + strlen(target.text), sizeof(target.text) - strlen(target.text),
		"[%s %llu] ", text, (unsigned long long)target.put_cnt);
}

static const struct stoup_sink sink = {
	.series = take_series, .put = take_put, .message = take_message, .note = take_note};

/* ---- who puts --------------------------------------------------------------------------------- */

static int put(const struct stoup_sink *to, uint64_t number, const char *file)
{
	static const char *const names[] = {"A/x", "B/x", "C/x"};
	struct record record = {.ts = (int64_t)(1000 + number), .number = number};
	struct stoup_where where = {file, number + 1, number * ((uint64_t)1 << 31)};
	struct stoup_error e;
	int64_t idx = to->series(to->arg, names[number % 3], &schema, &e);

	if (idx < 0)
		return (int)idx;
	ck_assert_int_eq(idx, (int64_t)(number % 3));
	return to->put(to->arg, (uint32_t)idx, record.ts, &record, &where, &e);
}

static void *put_all(void *arg)
{
	struct stoup_sink to = stoup_lane_sink(lane);
	struct stoup_error why = {0};
	int rc = 0;

	(void)arg;
	for (uint64_t i = 0; i < RECORD_CNT && rc == 0; i++) {
		if (i == 1000)
			stoup_sink_note(&to, "thousand");
		rc = put(&to, i, i < RECORD_CNT / 2 ? "one" : "two");
	}
	if (rc == 0)
		rc = stoup_error_set(&why, -EBADMSG, "two: the end");
	stoup_lane_end(lane, rc, &why);
	return NULL;
}

static void setup(void)
{
	memset(&target, 0, sizeof(target));
	ck_assert_int_eq(stoup_lane_create(512u << 10, &lane, &err), 0);
}

static void teardown(void)
{
	stoup_lane_destroy(lane);
}

/* ---- tests ------------------------------------------------------------------------------------ */

START_TEST(records_notes_series_and_the_last_error_come_out_in_order)
{
	pthread_t thread;
	int rc;

	ck_assert_int_eq(pthread_create(&thread, NULL, put_all, NULL), 0);
	rc = stoup_lane_replay(lane, &sink, &err);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(rc, -EBADMSG);
	ck_assert_str_eq(err.text, "two: the end");
	ck_assert_uint_eq(target.put_cnt, RECORD_CNT);
	ck_assert_str_eq(target.text, "A/x B/x C/x [thousand 1000] ");
	ck_assert_str_eq(target.where.file, "two");
}
END_TEST

START_TEST(an_error_of_the_target_ends_who_puts)
{
	pthread_t thread;
	int rc;

	target.fail_at = 5;
	ck_assert_int_eq(pthread_create(&thread, NULL, put_all, NULL), 0);
	rc = stoup_lane_replay(lane, &sink, &err);
	ck_assert_int_eq(pthread_join(thread, NULL), 0); /* it would wait for ever in a full lane */
	ck_assert_int_eq(rc, -ENOSPC);
	ck_assert_str_eq(err.text, "full");
	ck_assert_uint_eq(target.put_cnt, 5);
}
END_TEST

static void *put_long(void *arg)
{
	struct stoup_sink to = stoup_lane_sink(lane);
	struct stoup_where where = {"f", 1, 0};
	struct stoup_error why;
	uint8_t *bytes = arg;
	int rc = to.series(to.arg, "A/x", &schema, &why) == 0 ? 0 : -EINVAL;

	if (rc == 0)
		rc = to.message(to.arg, 0, 5, bytes, LONG_LEN, &where, &why);
	stoup_lane_end(lane, rc, &why);
	return NULL;
}

START_TEST(a_message_longer_than_the_lane_fits)
{
	uint8_t *bytes = malloc(LONG_LEN);
	pthread_t thread;

	for (uint32_t i = 0; i < LONG_LEN; i++)
		bytes[i] = (uint8_t)(i * 7);
	ck_assert_int_eq(pthread_create(&thread, NULL, put_long, bytes), 0);
	ck_assert_int_eq(stoup_lane_replay(lane, &sink, &err), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_eq(target.message_len, LONG_LEN);
	free(bytes);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lane");
	TCase *tc = tcase_create("lane");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, records_notes_series_and_the_last_error_come_out_in_order);
	tcase_add_test(tc, an_error_of_the_target_ends_who_puts);
	tcase_add_test(tc, a_message_longer_than_the_lane_fits);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
