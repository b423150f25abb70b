/* SPDX-License-Identifier: Apache-2.0 */
/* test_exporter.c - what the exporter makes of headers, addresses and hostile texts, counts and names. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/exporter.h"
#include "consumer/exporter_accept.h"
#include "consumer/exporter_text.h"

START_TEST(openmetrics_is_sent_to_who_wants_it_no_less_than_text)
{
	ck_assert_int_eq(stoup_accept_open(NULL), 0);
	ck_assert_int_eq(stoup_accept_open(""), 0);
	ck_assert_int_eq(stoup_accept_open("*/*"), 0);
	ck_assert_int_eq(stoup_accept_open("text/plain;version=0.0.4"), 0);
	ck_assert_int_eq(stoup_accept_open("application/openmetrics-text"), 1);
	ck_assert_int_eq(stoup_accept_open("application/openmetrics-textual"), 0);
	ck_assert_int_eq(stoup_accept_open("application/openmetrics-text; version=1.0.0; q=0"), 0);
	ck_assert_int_eq(
		stoup_accept_open("application/openmetrics-text;q=0.4,text/plain;q=0.5"), 0);
	ck_assert_int_eq(
		stoup_accept_open(
			"application/openmetrics-text;version=1.0.0,application/"
			"openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
		1);
	ck_assert_int_eq(stoup_accept_open("application/openmetrics-text;q="), 0);
	ck_assert_int_eq(stoup_accept_open(",,;,"), 0);
}
END_TEST

START_TEST(only_local_hosts_are_served_on_a_loopback)
{
	const char *const local[] = {"localhost", "LOCALHOST:9753", "127.0.0.1", "127.0.0.1:80",
		"[::1]", "[::1]:9753", "10.0.0.1:1"};
	const char *const others[] = {"", "evil.example", "evil.example:9753",
		"127.0.0.1.evil.example", "localhost.evil.example", "[::1", "[evil]",
		"127.0.0.1:80:90", "127.0.0.1:x", "localhost@evil", "[::1]x"};

	ck_assert_int_eq(stoup_host_local(NULL), 1);
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		ck_assert_msg(stoup_host_local(local[i]), "%s", local[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ck_assert_msg(!stoup_host_local(others[i]), "%s", others[i]);
}
END_TEST

START_TEST(an_address_is_numbers_and_known_to_be_a_loopback_or_not)
{
	const struct {
		const char *text;
		int rc, loopback;
	} known[] = {{"127.0.0.1:9753", 0, 1}, {"127.9.9.9:0", 0, 1}, {"localhost:1", 0, 1},
		{"[::1]:65535", 0, 1}, {"0.0.0.0:1", 0, 0}, {"[::]:1", 0, 0}, {"10.1.2.3:1", 0, 0},
		{"[::ffff:127.0.0.1]:1", 0, 0}, {"", -1, 0}, {":1", -1, 0}, {"127.0.0.1", -1, 0},
		{"127.0.0.1:", -1, 0}, {"127.0.0.1:65536", -1, 0}, {"127.0.0.1:-1", -1, 0},
		{"127.0.0.1:1x", -1, 0}, {"::1:1", -1, 0}, {"[::1:1", -1, 0}, {"[]:1", -1, 0},
		{"host:1", -1, 0}, {"127.0.0.1:000001", -1, 0}};
	struct stoup_exporter_listen at;
	struct stoup_error err;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		int rc = stoup_exporter_listen_parse(known[i].text, &at, &err);

		ck_assert_msg((rc < 0) == (known[i].rc < 0), "%s", known[i].text);
		if (rc == 0)
			ck_assert_msg(at.loopback == known[i].loopback, "%s", known[i].text);
	}
}
END_TEST

/* What a sample with that label is written as. */
static char *written(const char *label, int open)
{
	static const struct stoup_metric metric = {
		"stoup_x_seconds", "seconds", STOUP_METRIC_COUNTER, "A \\ and\n\"more\"."};
	struct stoup_metrics to = {.open = open};
	char *text = NULL;
	size_t len;

	to.out = open_memstream(&text, &len);
	ck_assert_ptr_nonnull(to.out);
	stoup_metric_head(&to, &metric);
	stoup_sample_begin(&to, &metric, NULL);
	stoup_sample_label(&to, "l", label);
	stoup_sample_value(&to, &metric, 1500000001);
	stoup_metrics_end(&to);
	fclose(to.out);
	return text;
}

START_TEST(texts_are_escaped_and_both_formats_are_as_specified)
{
	char *text = written("a\"b\\c\nd\xff\xc3\xa9", 1);

	ck_assert_str_eq(text,
		"# HELP stoup_x_seconds A \\\\ and\\n\\\"more\\\".\n"
		"# TYPE stoup_x_seconds counter\n"
		"# UNIT stoup_x_seconds seconds\n"
		"stoup_x_seconds_total{l=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\xc3\xa9\"} 1.500000001\n"
		"# EOF\n");
	free(text);
	text = written("", 0);
	ck_assert_str_eq(text, "# HELP stoup_x_seconds_total A \\\\ and\\n\"more\".\n"
			       "# TYPE stoup_x_seconds_total counter\n"
			       "stoup_x_seconds_total{l=\"\"} 1.500000001\n");
	free(text);
	text = stoup_label_utf8("\xff\xe2\x82"
				"a");
	ck_assert_str_eq(text, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
			       "a");
	free(text);
}
END_TEST

/* Lines of the text that begin so. */
static uint32_t lines_of(const char *text, const char *begin)
{
	uint32_t cnt = strncmp(text, begin, strlen(begin)) == 0;

	for (; (text = strchr(text, '\n')) != NULL; text++)
		cnt += strncmp(text + 1, begin, strlen(begin)) == 0;
	return cnt;
}

START_TEST(buckets_never_fall_and_series_are_one_for_a_label)
{
	struct stoup_watch_histogram histograms[6];
	struct stoup_watch_holder holders[4] = {{.series = "\xff", .bytes = 1, .lease_cnt = 1},
		{.series = "\xfe", .bytes = 2, .lease_cnt = 1},
		{.series = "other", .bytes = UINT64_MAX, .lease_cnt = 1},
		{.series = "", .bytes = 4, .lease_cnt = 1}};
	struct stoup_exporter_pool pool = {.label = (char[]){"p"},
		.watch = {.histograms = histograms,
			.histogram_cnt = 6,
			.holders = holders,
			.holder_cnt = 4}};
	struct stoup_exporter exporter = {
		.pools = &pool, .pool_cnt = 1, .series_max = 9, .consumers = 1};
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	memset(histograms, 0xff, sizeof(histograms));
	stoup_exporter_metrics(&exporter, out, 1);
	fclose(out);
	ck_assert_uint_eq(lines_of(text, "stoup_read_seconds_bucket{pool=\"p\",le=\""), 30);
	ck_assert_ptr_nonnull(strstr(
		text, "stoup_read_seconds_bucket{pool=\"p\",le=\"+Inf\"} 18446744073709551615\n"));
	ck_assert_ptr_nonnull(strstr(text,
		"stoup_read_seconds_bucket{pool=\"p\",le=\"1.023e-06\"} 18446744073709551615\n"));
	ck_assert_uint_eq(lines_of(text, "stoup_series_leases{"), 2);
	ck_assert_ptr_nonnull(
		strstr(text, "stoup_series_leased_bytes{pool=\"p\",series=\"\xef\xbf\xbd\"} 3\n"));
	ck_assert_ptr_nonnull(strstr(text, "stoup_series_leases{pool=\"p\",series=\"other\"} 2\n"));
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("exporter");
	TCase *tcase = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, openmetrics_is_sent_to_who_wants_it_no_less_than_text);
	tcase_add_test(tcase, only_local_hosts_are_served_on_a_loopback);
	tcase_add_test(tcase, an_address_is_numbers_and_known_to_be_a_loopback_or_not);
	tcase_add_test(tcase, texts_are_escaped_and_both_formats_are_as_specified);
	tcase_add_test(tcase, buckets_never_fall_and_series_are_one_for_a_label);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
