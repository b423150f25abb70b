/* SPDX-License-Identifier: Apache-2.0 */
/* helper_doc.c - JSON lines through the binary form and back, for tests and for measuring.
 *
 *      helper_doc < in.jsonl > out.jsonl     each line's value: encoded, checked, printed
 *      helper_doc --hex < in.jsonl           the documents' bytes
 *      helper_doc --where FILTER < in.jsonl  those that it holds of
 *      helper_doc --speed N < in.jsonl       N rounds over all lines; MB/s of text on stdout
 *      helper_doc --scan N FILTER < in.jsonl N rounds over all documents in place; how many, MB/s of documents
 *
 * A line that is no JSON becomes "! OFFSET WHAT".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "producer/json_doc.h"

static char *text;
static size_t text_len;
static uint8_t *doc;
static char *json;
static size_t json_cap;
static struct stoup_doc_filter *filter;

static void die(const char *what)
{
	fprintf(stderr, "helper_doc: %s\n", what);
	exit(1);
}

static void read_all(void)
{
	size_t cap = 1u << 20, n;

	text = malloc(cap);
	while (text && (n = fread(text + text_len, 1, cap - text_len, stdin)) > 0) {
		text_len += n;
		if (text_len == cap)
			text = realloc(text, cap *= 2);
	}
	doc = malloc(STOUP_JSON_DOC_CAP(text_len));
	if (!text || !doc)
		die("no memory");
}

static void print(const struct stoup_doc *value)
{
	int64_t len = stoup_doc_json(value, json, json_cap);

	if (len > (int64_t)json_cap) {
		free(json);
		json_cap = (size_t)len;
		json = malloc(json_cap);
		if (!json)
			die("no memory");
		len = stoup_doc_json(value, json, json_cap);
	}
	if (len < 0)
		die("a document that can not be printed");
	fwrite(json, 1, (size_t)len, stdout);
	putchar('\n');
}

static void line(const char *at, size_t len, int hex)
{
	struct stoup_json_fault fault;
	struct stoup_error err;
	struct stoup_doc value;
	int64_t doc_len = stoup_json_to_doc(at, len, doc, &fault);

	if (doc_len < 0) {
		printf("! %zu %s\n", fault.off, fault.what);
		return;
	}
	if (stoup_doc_valid(doc, (size_t)doc_len, &err) < 0)
		die(err.text);
	if (stoup_doc_open(doc, (size_t)doc_len, &value) < 0)
		die("a valid document that does not open");
	if (filter && stoup_doc_match(filter, &value) != 1)
		return;
	if (hex) {
		for (int64_t i = 0; i < doc_len; i++)
			printf("%02x", doc[i]);
		putchar('\n');
		return;
	}
	print(&value);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* One pass over all lines: encode only, or print and hex. */
static void pass(int speed, int hex)
{
	const char *at = text, *end = text + text_len;

	while (at < end) {
		const char *next = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((next ? next : end) - at);
		struct stoup_json_fault fault;

		if (!speed)
			line(at, len, hex);
		else if (stoup_json_to_doc(at, len, doc, &fault) < 0)
			die(fault.what);
		at += len + 1;
	}
}

/* All documents one behind the other, each with its length in front; then the filter over them. */
static void scan(int rounds)
{
	uint8_t *all = malloc(STOUP_JSON_DOC_CAP(text_len) + 64), *out = all;
	const char *at = text, *end = text + text_len;
	uint64_t found = 0;
	double begin;

	if (!all)
		die("no memory");
	while (at < end) {
		const char *next = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((next ? next : end) - at);
		struct stoup_json_fault fault;
		int64_t doc_len = stoup_json_to_doc(at, len, out + 8, &fault);

		if (doc_len < 0)
			die(fault.what);
		memcpy(out, &doc_len, 8);
		out += 8 + doc_len;
		at += len + 1;
	}
	begin = now_s();
	for (int i = 0; i < rounds; i++) {
		for (const uint8_t *p = all; p < out;) {
			struct stoup_doc value;
			int64_t doc_len;

			memcpy(&doc_len, p, 8);
			found += stoup_doc_open(p + 8, (size_t)doc_len, &value) == 0 &&
			         stoup_doc_match(filter, &value) == 1;
			p += 8 + doc_len;
		}
	}
	printf("%" PRIu64 " found, %.0f MB/s\n", found / (uint64_t)rounds,
		(double)(out - all) * rounds / 1e6 / (now_s() - begin));
	free(all);
}

int main(int argc, char **argv)
{
	int rounds = argc == 3 && strcmp(argv[1], "--speed") == 0 ? atoi(argv[2]) : 0;
	struct stoup_error err;
	double begin;

	if (argc >= 3 && strcmp(argv[1], "--speed") != 0 &&
		stoup_doc_filter_create(argv[argc - 1], &filter, &err) < 0)
		die(err.text);
	read_all();
	if (argc == 4 && strcmp(argv[1], "--scan") == 0 && atoi(argv[2]) > 0) {
		scan(atoi(argv[2]));
		return 0;
	}
	begin = now_s();
	for (int i = 0; i < rounds; i++)
		pass(1, 0);
	if (rounds > 0)
		printf("%.0f MB/s\n", (double)text_len * rounds / 1e6 / (now_s() - begin));
	else
		pass(0, argc == 2 && strcmp(argv[1], "--hex") == 0);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
