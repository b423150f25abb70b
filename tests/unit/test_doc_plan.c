/* SPDX-License-Identifier: Apache-2.0 */
/* test_doc_plan.c - filters asked by their plan, against a reader that looks for each test alone: random
 * filters over random documents, and over runs of messages. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/stoup_docs.h"
#include "import_fixture.h"
#include "producer/json_doc.h"
#include "shm/doc_match.h"
#include "shm/message.h"

#define DOC_CNT    400u
#define FILTER_CNT 600u
#define TEXT_CAP   4096u
#define PART_CAP   64u

static uint64_t state;

static uint32_t rnd(uint32_t below)
{
	state = fx_mix(state + 1);
	return (uint32_t)((state >> 20) % below);
}

/* ---- random documents ---------------------------------------------------------------------------- */

/* Names that begin alike, of lengths round 8, and few of them, so that filters meet them. */
static const char *const names[] = {"a", "b", "data", "datas", "dat", "", "12345678", "123456789",
	"12345678x", "a name of 20 bytes..."};
#define NAME_CNT 10u

struct text {
	char at[TEXT_CAP];
	size_t len;
};

static void add(struct text *text, const char *what)
{
	size_t len = strlen(what);

	ck_assert_uint_lt(text->len + len, TEXT_CAP);
	memcpy(text->at + text->len, what, len + 1);
	text->len += len;
}

static const char *const scalars[] = {"1", "2", "-1", "3000000000", "18446744073709551615", "1.5",
	"2.0", "1e3", "12345678901234567890123", "\"1.5\"", "\"x\"", "\"xyzxyzxy\"",
	"\"xyzxyzxyz\"", "\"\"", "true", "false", "null"};
#define SCALAR_CNT 17u

static void add_value(struct text *text, uint32_t depth)
{
	uint32_t kind = depth < 5 && text->len < TEXT_CAP / 2 ? rnd(4) : 0, cnt = rnd(7);

	if (kind < 2) {
		add(text, scalars[rnd(SCALAR_CNT)]);
		return;
	}
	add(text, kind == 2 ? "[" : "{");
	for (uint32_t i = 0; i < cnt; i++) {
		if (i > 0)
			add(text, ",");
		if (kind == 3) {
			add(text, "\"");
			add(text, names[rnd(NAME_CNT)]);
			add(text, "\":");
		}
		add_value(text, depth + 1);
	}
	add(text, kind == 2 ? "]" : "}");
}

static uint8_t *docs[DOC_CNT];
static uint32_t doc_lens[DOC_CNT];

static void docs_make(void)
{
	struct stoup_json_fault fault;

	for (uint32_t i = 0; i < DOC_CNT; i++) {
		struct text text = {.len = 0};
		uint8_t room[STOUP_JSON_DOC_CAP(TEXT_CAP)];
		int64_t len;

		do {
			text.len = 0;
			add_value(&text, 0);
		} while (text.len < 40);
		len = stoup_json_to_doc(text.at, text.len, room, &fault);
		ck_assert_msg(len > 0, "%s: %s", text.at, fault.what);
		docs[i] = malloc(
			(size_t)len); /* of its very length: the sanitizer sees what reads behind */
		memcpy(docs[i], room, (size_t)len);
		doc_lens[i] = (uint32_t)len;
	}
}

static void docs_free(void)
{
	for (uint32_t i = 0; i < DOC_CNT; i++)
		free(docs[i]);
}

/* ---- random filters, and the plain way to ask them ------------------------------------------------- */

/* A part of a filter: a test that was compiled alone, or and, or, not. */
struct part {
	char kind; /* 't', '&', '|', '!' */
	uint32_t left, right;
	struct stoup_doc_path *path;
	char op[8];
	struct stoup_doc_filter *alone; /* of ". OP VALUE" */
};

static struct part parts[PART_CAP];
static uint32_t part_cnt;

static void add_path(struct text *text)
{
	uint32_t cnt = 1 + rnd(4);

	for (uint32_t i = 0; i < cnt; i++) {
		char element[16];

		snprintf(element, sizeof(element), "[%u]", rnd(7));
		if (rnd(3) == 0) {
			add(text, element);
			continue;
		}
		if (i > 0)
			add(text, ".");
		for (const char *at = names[rnd(5)]; *at; at++)
			add(text, (const char[]){*at, 0});
	}
}

static uint32_t part_add(struct part part)
{
	ck_assert_uint_lt(part_cnt, PART_CAP);
	parts[part_cnt] = part;
	return part_cnt++;
}

static uint32_t add_test(struct text *text)
{
	static const char *const ops[] = {"=", "!=", "<", "<=", ">", ">=", "exists"};
	struct text path = {.len = 0}, alone = {.len = 0};
	struct part part = {.kind = 't'};
	uint32_t op = rnd(7), scalar = rnd(op < 2 ? SCALAR_CNT : SCALAR_CNT - 3);
	struct stoup_error err = {0};

	add_path(&path);
	ck_assert_msg(stoup_doc_path_create(path.at, &part.path, &err) == 0, "%s", err.text);
	snprintf(part.op, sizeof(part.op), "%s", ops[op]);
	add(&alone, ". ");
	add(&alone, ops[op]);
	add(&alone, " ");
	if (op != 6)
		add(&alone, scalars[scalar]);
	ck_assert_msg(stoup_doc_filter_create(alone.at, &part.alone, &err) == 0, "%s: %s", alone.at,
		err.text);
	add(text, path.at);
	add(text, alone.at + 1);
	return part_add(part);
}

static uint32_t add_filter(struct text *text, uint32_t depth)
{
	uint32_t kind = depth < 4 ? rnd(5) : 0, left, right;

	if (kind < 2 && depth > 0)
		return add_test(text);
	if (kind == 4) {
		add(text, "not (");
		left = add_filter(text, depth + 1);
		add(text, ")");
		return part_add((struct part){.kind = '!', .left = left});
	}
	add(text, "(");
	left = add_filter(text, depth + 1);
	add(text, kind % 2 ? ") and (" : ") or (");
	right = add_filter(text, depth + 1);
	add(text, ")");
	return part_add((struct part){.kind = kind % 2 ? '&' : '|', .left = left, .right = right});
}

/* Each test follows its own path from the document on. */
static int plainly(uint32_t idx, const struct stoup_doc *doc)
{
	const struct part *part = &parts[idx];
	struct stoup_doc value;

	switch (part->kind) {
	case '&':
		return plainly(part->left, doc) && plainly(part->right, doc);
	case '|':
		return plainly(part->left, doc) || plainly(part->right, doc);
	case '!':
		return !plainly(part->left, doc);
	default:
		return stoup_doc_seek(doc, part->path, &value) == 1 &&
		       stoup_doc_match(part->alone, &value) == 1;
	}
}

static void parts_free(void)
{
	for (uint32_t i = 0; i < part_cnt; i++) {
		stoup_doc_path_destroy(parts[i].path);
		stoup_doc_filter_destroy(parts[i].alone);
	}
	part_cnt = 0;
}

START_TEST(a_plan_finds_what_tests_find_alone)
{
	uint64_t yes_cnt = 0, asked_cnt = 0;

	state = 20240808;
	docs_make();
	for (uint32_t i = 0; i < FILTER_CNT; i++) {
		struct text text = {.len = 0};
		uint32_t whole = add_filter(&text, 0);
		struct stoup_doc_filter *filter;
		struct stoup_error err = {0};

		ck_assert_msg(stoup_doc_filter_create(text.at, &filter, &err) == 0, "%s: %s",
			text.at, err.text);
		for (uint32_t j = 0; j < DOC_CNT; j++) {
			struct stoup_doc doc;
			int expected;

			ck_assert_int_eq(stoup_doc_open(docs[j], doc_lens[j], &doc), 0);
			expected = plainly(whole, &doc);
			ck_assert_msg(stoup_doc_match(filter, &doc) == expected,
				"filter %u, document %u, expected %d: %s", i, j, expected, text.at);
			yes_cnt += (uint64_t)expected;
			asked_cnt++;
		}
		stoup_doc_filter_destroy(filter);
		parts_free();
	}
	/* Both answers are common, or nothing was compared. */
	ck_assert_uint_gt(yes_cnt, asked_cnt / 10);
	ck_assert_uint_lt(yes_cnt, asked_cnt - asked_cnt / 10);
	docs_free();
}
END_TEST

/* ---- spans ------------------------------------------------------------------------------------------ */

static struct stoup_doc_filter *filter_of(const char *text)
{
	struct stoup_doc_filter *filter;
	struct stoup_error err = {0};

	ck_assert_msg(stoup_doc_filter_create(text, &filter, &err) == 0, "%s", err.text);
	return filter;
}

START_TEST(a_span_is_filtered_into_a_selection)
{
	struct stoup_doc_filter *filter =
		filter_of("data exists or a exists and not b exists or [1] > 1");
	uint32_t len = 0, expected[DOC_CNT], expected_cnt = 0, found[DOC_CNT + 1];
	uint64_t broken_cnt = 0, from = 0, cnt = 0;
	struct stoup_span span;
	uint8_t *run;

	state = 7;
	docs_make();
	for (uint32_t i = 0; i < DOC_CNT; i++)
		len += doc_lens[i] + 64;
	run = aligned_alloc(64, (len + 63) / 64 * 64);
	len = 0;
	for (uint32_t i = 0; i < DOC_CNT; i++) {
		/* Each tenth one is cut off behind its tag: it is no document. */
		uint32_t take = i % 10 == 9 ? doc_lens[i] - 1 : doc_lens[i];
		struct stoup_doc doc;

		len += stoup_message_write(run + len, 1000 + i, docs[i], take);
		ck_assert_int_eq(stoup_doc_open(docs[i], doc_lens[i], &doc), 0);
		if (i % 10 != 9 && stoup_doc_match(filter, &doc) == 1)
			expected[expected_cnt++] = i;
	}
	len = stoup_message_run_end(run, len, DOC_CNT);
	span = (struct stoup_span){.base = run + len - 4 * DOC_CNT,
		.record_cnt = DOC_CNT,
		.stride = STOUP_MESSAGE_STRIDE,
		.schema = stoup_schema_by_name("bipf")};
	ck_assert_uint_gt(expected_cnt, DOC_CNT / 20);
	ck_assert_int_eq(stoup_doc_filter_span(filter, &span, 0, found, DOC_CNT + 1, &broken_cnt),
		expected_cnt);
	ck_assert_mem_eq(found, expected, expected_cnt * sizeof(found[0]));
	ck_assert_uint_eq(broken_cnt, DOC_CNT / 10);
	/* In pieces, each behind the one before. */
	while (1) {
		uint32_t idx[3];
		int64_t n = stoup_doc_filter_span(filter, &span, from, idx, 3, NULL);

		ck_assert_int_ge(n, 0);
		ck_assert_mem_eq(idx, expected + cnt, (size_t)n * sizeof(idx[0]));
		cnt += (uint64_t)n;
		if (n < 3)
			break;
		from = (uint64_t)idx[2] + 1;
	}
	ck_assert_uint_eq(cnt, expected_cnt);
	ck_assert_int_eq(stoup_doc_filter_span(filter, &span, DOC_CNT, found, 1, NULL), 0);
	ck_assert_int_eq(stoup_doc_filter_span(filter, &span, 0, found, 0, NULL), 0);
	/* A span that is cut. */
	span.base = (const uint8_t *)span.base + expected[1] * span.stride;
	span.record_cnt = expected[2] - expected[1];
	ck_assert_int_eq(stoup_doc_filter_span(filter, &span, 0, found, 9, NULL), 1);
	ck_assert_uint_eq(found[0], 0);
	span.schema = stoup_schema_by_name("trades");
	ck_assert_int_eq(stoup_doc_filter_span(filter, &span, 0, found, 9, NULL), -EINVAL);
	stoup_doc_filter_destroy(filter);
	free(run);
	docs_free();
}
END_TEST

/* ---- limits ------------------------------------------------------------------------------------------- */

START_TEST(a_filter_has_limits_and_says_them)
{
	struct stoup_doc_filter *filter;
	struct stoup_error err = {0};
	static char text[8200];
	size_t len = 0;

	/* 129 steps: no document is as deep. */
	for (int i = 0; i < 129; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "[0]");
	snprintf(text + len, sizeof(text) - len, " = 1");
	ck_assert_int_eq(stoup_doc_filter_create(text, &filter, &err), -EINVAL);
	ck_assert_str_eq(err.text, "filter: a path of 129 steps; documents are at most 128 deep");
	/* 16 paths of 65 names of their own. */
	len = 0;
	for (int i = 0; i < 16; i++) {
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, "%sp%x", i ? " or " : "", (unsigned)i);
		for (int j = 0; j < 64; j++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, ".a");
		len += (size_t)snprintf(text + len, sizeof(text) - len, " = 1");
	}
	ck_assert_int_eq(stoup_doc_filter_create(text, &filter, &err), -EINVAL);
	ck_assert_str_eq(err.text, "filter: more than 1023 names in its paths");
	/* 128 tests of as many names in one object: all of them are asked. */
	len = 0;
	for (int i = 0; i < 128; i++)
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, "%sn%d = %d", i ? " and " : "", i, i);
	filter = filter_of(text);
	{
		static char json[4096];
		uint8_t bytes[8192];
		struct stoup_json_fault fault;
		struct stoup_doc doc;
		size_t at = 0;

		for (int wrong = -1; wrong < 128; wrong++) {
			int64_t doc_len;

			at = 0;
			for (int i = 0; i < 128; i++)
				at += (size_t)snprintf(json + at, sizeof(json) - at, "%s\"n%d\":%d",
					i ? "," : "{", i, i == wrong ? i + 1 : i);
			at += (size_t)snprintf(json + at, sizeof(json) - at, "}");
			doc_len = stoup_json_to_doc(json, at, bytes, &fault);
			ck_assert_int_gt(doc_len, 0);
			ck_assert_int_eq(stoup_doc_open(bytes, (size_t)doc_len, &doc), 0);
			ck_assert_int_eq(stoup_doc_match(filter, &doc), wrong == -1);
		}
	}
	stoup_doc_filter_destroy(filter);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("doc_plan");
	TCase *tc = tcase_create("plan");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, a_plan_finds_what_tests_find_alone);
	tcase_add_test(tc, a_span_is_filtered_into_a_selection);
	tcase_add_test(tc, a_filter_has_limits_and_says_them);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
