/* SPDX-License-Identifier: Apache-2.0 */
/* b9_documents.c - B9: the messages where one nested field has a value, hot.
 *
 *      JSON lines --+-- jansson     each parsed into objects
 *                   +-- simdjson    on demand
 *                   +-- documents in the pool: a filter over spans, a path message by message; N processes
 *
 * The field is data.T, the exchange's time: it is in all kinds of messages, in most of them the last but one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench/b9_peers.h"
#include "bench/harness.h"
#include "bench/rig_text.h"
#include "consumer/stoup_docs.h"

#define SERIES   "BENCH/ONE/bipf"
#define FULL_LEN 343000000u /* bytes of JSON, as in the published scan */
#define IDX_CAP  4096u
#define SLOW     20u /* jansson takes part in each of so many rounds */

struct scan {
	struct stoup *st;
	struct stoup_series series;
	struct stoup_doc_filter *filter;
	struct stoup_doc_path *path;
	int64_t wanted;
};

/* What a worker is made of. */
struct want {
	const char *pool;
	int64_t wanted;
};

static void *scan_make(const void *arg)
{
	const struct want *want = arg;
	struct scan *scan = calloc(1, sizeof(*scan));
	struct stoup_error err = {0};
	char text[64];

	if (!scan)
		bench_die("no memory");
	snprintf(text, sizeof(text), "data.T = %lld", (long long)want->wanted);
	if (stoup_doc_filter_create(text, &scan->filter, &err) < 0 ||
		stoup_doc_path_create("data.T", &scan->path, &err) < 0)
		bench_die("%s", err.text);
	scan->wanted = want->wanted;
	scan->st = bench_attach(want->pool, NULL, SERIES, &scan->series);
	return scan;
}

static void scan_free(struct scan *scan)
{
	stoup_doc_filter_destroy(scan->filter);
	stoup_doc_path_destroy(scan->path);
	stoup_detach(scan->st);
	free(scan);
}

/* ---- in place --------------------------------------------------------------------------------- */

typedef uint64_t (*span_fn)(const struct scan *scan, const struct stoup_span *span);

static inline uint64_t spans_pass(const struct scan *scan, span_fn span_pass)
{
	struct stoup_error err = {0};
	struct stoup_cursor *cur;
	struct stoup_span span;
	uint64_t found_cnt = 0;
	int rc;

	if (stoup_scan(scan->st, &scan->series, NULL, &cur, &err) < 0)
		bench_die("%s", err.text);
	while ((rc = stoup_next(cur, &span)) > 0)
		found_cnt += span_pass(scan, &span);
	if (rc < 0)
		bench_die("%s", stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
	return found_cnt;
}

static uint64_t span_filter(const struct scan *scan, const struct stoup_span *span)
{
	uint32_t idx[IDX_CAP];
	uint64_t found_cnt = 0, from = 0;
	int64_t cnt;

	do {
		cnt = stoup_doc_filter_span(scan->filter, span, from, idx, IDX_CAP, NULL);
		found_cnt += (uint64_t)cnt;
		from = cnt == IDX_CAP ? (uint64_t)idx[IDX_CAP - 1] + 1 : span->record_cnt;
	} while (from < span->record_cnt);
	return found_cnt;
}

static uint64_t filter_pass(void *scan)
{
	return spans_pass(scan, span_filter);
}

static uint64_t span_path(const struct scan *scan, const struct stoup_span *span)
{
	uint64_t found_cnt = 0;

	for (uint64_t i = 0; i < span->record_cnt; i++) {
		struct stoup_message message = stoup_message_at(span, i);
		struct stoup_doc doc, value;
		int64_t number;

		found_cnt += stoup_doc_open(message.bytes, message.len, &doc) == 0 &&
		             stoup_doc_seek(&doc, scan->path, &value) == 1 &&
		             stoup_doc_int(&value, &number) == 0 && number == scan->wanted;
	}
	return found_cnt;
}

static uint64_t path_pass(void *scan)
{
	return spans_pass(scan, span_path);
}

/* ---- the row ---------------------------------------------------------------------------------- */

/* The value in the middle message that has one, by a search in its text. */
static int64_t wanted_of(const struct bench_texts *texts)
{
	for (uint64_t i = texts->cnt / 2; i < texts->cnt; i++) {
		const char *at = memmem(texts->bytes + texts->off[i],
			texts->off[i + 1] - texts->off[i], "\"T\":", 4);

		if (at)
			return strtoll(at + 4, NULL, 10);
	}
	bench_die("B9: no message has a field T");
}

static void one_process(const struct bench_texts *texts, struct scan *scan, const char *data)
{
	struct bench_b9 b9 = {texts->bytes, texts->off, texts->cnt, scan->wanted};
	const char *no_simdjson = "libsimdjson-dev was not there when this was built";
	struct bench_contender contenders[] = {
		{.name = "stoup, filter over spans", .pass = filter_pass, .arg = scan},
		{.name = "stoup, path per message", .pass = path_pass, .arg = scan},
		{.name = "simdjson, message by message",
			.pass = bench_b9_simdjson,
			.arg = &b9,
			.absent = no_simdjson},
		{.name = "simdjson, iterate_many",
			.pass = bench_b9_simdjson_many,
			.arg = &b9,
			.absent = no_simdjson},
		{.name = "jansson",
			.pass = bench_b9_jansson,
			.arg = &b9,
			.every = bench_settings.quick ? 0 : SLOW,
			.absent = "libjansson-dev was not there when this was built"},
	};
	struct bench_case what = {.row = "B9",
		.name = "one process",
		.data = data,
		.record_cnt = texts->cnt,
		.byte_cnt = bench_texts_len(texts),
		.reference = "stoup, filter over spans"};

	bench_interleave(
		&what, contenders, sizeof(contenders) / sizeof(contenders[0]), bench_rounds());
}

static void processes(const struct bench_texts *texts, const struct want *want, const char *data)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t cnt = cores < 2 ? 2 : cores > 8 ? 8 : (uint32_t)cores;
	struct bench_team team;
	char name[64];
	struct bench_contender contender = {
		.name = "stoup, filter over spans", .pass = bench_team_pass, .arg = &team};
	struct bench_case what = {.row = "B9",
		.name = name,
		.data = data,
		.record_cnt = texts->cnt * cnt,
		.byte_cnt = bench_texts_len(texts) * cnt,
		.reference = contender.name};

	snprintf(name, sizeof(name), "%u processes at the same time", cnt);
	bench_team_start(&team, cnt, scan_make, want, filter_pass);
	bench_interleave(&what, &contender, 1, bench_rounds());
	bench_team_end(&team);
}

void bench_b9_documents(void)
{
	int real;
	struct bench_texts texts = bench_texts_json((size_t)bench_scale(FULL_LEN, 3000000), &real);
	const char *store = bench_path("b9.store"), *data;
	struct bench_daemon daemon;
	struct want want = {.wanted = wanted_of(&texts)};
	struct scan *scan;

	data = real ? "captured messages, over and over; data.T = a value"
	            : "made messages of the captured ones' shape; data.T = a value";
	bench_texts_store(store, SERIES, "bipf", &texts);
	/* A document is at most a little longer than its text; 24 bytes of a message's own. */
	bench_daemon_start(&daemon, store,
		bench_texts_len(&texts) * 5 / 4 + texts.cnt * 40 + (64u << 20), NULL);
	want.pool = daemon.pool;
	scan = scan_make(&want);
	one_process(&texts, scan, data);
	processes(&texts, &want, data);
	scan_free(scan);
	bench_daemon_stop(&daemon);
	bench_remove(store);
	bench_texts_free(&texts);
	bench_note("B9",
		"Rates are of JSON text, also in place, where a document has another length and most of it is "
		"passed over. The published scan of 458,803 messages of 748 bytes on average took 5 s by a parser "
		"and 0.85 s in place.");
}
