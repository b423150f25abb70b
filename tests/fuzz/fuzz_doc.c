/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_doc.c - documents that lie, and texts that are nearly JSON.
 *
 *      input   [0: a document | 1: JSON | 2: a path and a document | 3: a filter and a document |
 *               4: a filter and a run of messages] [bytes ...]
 *
 * Checked: no call reads outside of a document of exactly its length (the address sanitizer sees it), every
 * view lies inside; what stoup_doc_valid takes every call reads; what the encoder makes is valid, prints,
 * and is made again of what was printed, byte for byte; the order is one. A key is found where a walk over all
 * members finds it first, and a filter over a run holds of the messages that it holds of alone.
 */
#include <errno.h>
#include "producer/json_doc.h"
#include "shm/doc_match.h"
#include "shm/message.h"
#include "tests/fuzz/fuzz.h"

#define VALUE_CAP 64 /* values of a document that are compared with each other */

struct walk {
	const uint8_t *from, *end;
	struct stoup_doc values[VALUE_CAP];
	uint32_t value_cnt;
	int valid;
};

static char *print(const struct stoup_doc *doc, size_t *ret_len)
{
	int64_t len = stoup_doc_json(doc, NULL, 0);
	char *text;

	MUST(len > 0 || len == -EBADMSG || len == -EMSGSIZE);
	if (len < 0)
		return NULL;
	text = malloc((size_t)len);
	MUST(text != NULL);
	MUST(stoup_doc_json(doc, text, (size_t)len) == len);
	*ret_len = (size_t)len;
	return text;
}

static void check_value(const struct walk *walk, const struct stoup_doc *value)
{
	const char *text;
	size_t len;
	int64_t integer;
	double number;
	int rc;

	MUST(value->payload >= walk->from && value->payload <= walk->end);
	MUST(value->payload_len <= (size_t)(walk->end - value->payload));
	rc = stoup_doc_string(value, &text, &len);
	MUST(rc == (value->type == STOUP_DOC_STRING ? 0 : -EINVAL));
	rc = stoup_doc_bool(value);
	MUST(rc == 0 || rc == 1 || rc == -EINVAL);
	if (stoup_doc_int(value, &integer) == 0) {
		int64_t again = ~integer;

		MUST(stoup_doc_decimal(value, 0, &again) == 0 && again == integer);
		MUST(stoup_doc_double(value, &number) == 0);
	}
	(void)stoup_doc_double(value, &number);
	(void)stoup_doc_decimal(value, -9, &integer);
	MUST(stoup_doc_compare(value, value) == 0);
}

/* The first member of that key, by a walk that reads tag by tag. */
static const uint8_t *first_of(const struct stoup_doc *object, const struct stoup_doc *wanted)
{
	struct stoup_doc_iter iter;
	struct stoup_doc key, value;

	MUST(stoup_doc_iterate(object, &iter) == 0);
	do
		MUST(stoup_doc_next(&iter, &key, &value) == 1);
	while (key.payload_len != wanted->payload_len ||
		memcmp(key.payload, wanted->payload, key.payload_len) != 0);
	return value.payload;
}

/* All values, containers entered up to the depth that documents have. */
static void walk(struct walk *w, const struct stoup_doc *doc, int depth)
{
	struct stoup_doc_iter iter;
	struct stoup_doc key, value, found;
	uint32_t idx = 0;
	int rc;

	check_value(w, doc);
	if (w->value_cnt < VALUE_CAP)
		w->values[w->value_cnt++] = *doc;
	if (stoup_doc_iterate(doc, &iter) < 0 || depth == STOUP_DOC_DEPTH_CAP)
		return;
	for (; (rc = stoup_doc_next(&iter, &key, &value)) == 1; idx++) {
		if (idx < 16 && iter.keyed) {
			MUST(stoup_doc_get(
				     doc, (const char *)key.payload, key.payload_len, &found) == 1);
			MUST(found.payload == first_of(doc, &key));
		} else if (idx < 16) {
			MUST(stoup_doc_at(doc, idx, &found) == 1);
			MUST(found.payload == value.payload);
		}
		walk(w, &value, depth + 1);
	}
	MUST(rc == 0 || (rc == -EBADMSG && !w->valid));
}

static int sign(int value)
{
	return (value > 0) - (value < 0);
}

static void check_order(const struct walk *w)
{
	for (uint32_t i = 0; i + 2 < w->value_cnt; i++) {
		const struct stoup_doc *a = &w->values[i], *b = &w->values[i + 1],
				       *c = &w->values[i + 2];
		int ab = sign(stoup_doc_compare(a, b)), bc = sign(stoup_doc_compare(b, c));

		MUST(ab == -sign(stoup_doc_compare(b, a)));
		if (ab == bc || bc == 0)
			MUST(sign(stoup_doc_compare(a, c)) == ab);
	}
}

/* Encode a text in memory of its own; NULL: no JSON. */
static uint8_t *encode(const char *text, size_t len, size_t *ret_len)
{
	struct stoup_json_fault fault = {SIZE_MAX, NULL};
	uint8_t *doc = malloc(STOUP_JSON_DOC_CAP(len));
	int64_t doc_len;

	MUST(doc != NULL);
	doc_len = stoup_json_to_doc(text, len, doc, &fault);
	if (doc_len > 0) {
		*ret_len = (size_t)doc_len;
		return doc;
	}
	MUST(doc_len == -EBADMSG || doc_len == -ENODATA || doc_len == -EMSGSIZE);
	MUST(fault.off <= len && fault.what && fault.what[0]);
	free(doc);
	return NULL;
}

static void check_doc(const uint8_t *bytes, size_t len)
{
	struct walk w = {.from = bytes, .end = bytes + len};
	struct stoup_error err = {0};
	struct stoup_doc doc;
	char *text;
	size_t text_len, again_len;
	int rc = stoup_doc_valid(bytes, len, &err);

	MUST(rc == 0 || (rc == -EBADMSG && err.code == rc && err.text[0]));
	w.valid = rc == 0;
	rc = stoup_doc_open(bytes, len, &doc);
	MUST(rc == 0 || (rc == -EBADMSG && !w.valid));
	if (rc < 0)
		return;
	walk(&w, &doc, 0);
	text = print(&doc, &text_len);
	MUST(text || !w.valid);
	if (w.valid) {
		check_order(&w);
		bytes = encode(text, text_len, &again_len);
		MUST(bytes != NULL);
		MUST(stoup_doc_valid(bytes, again_len, NULL) == 0);
		free((void *)(uintptr_t)bytes);
	}
	free(text);
}

static void check_json(const char *text, size_t len)
{
	size_t doc_len, again_len, out_len;
	uint8_t *doc = encode(text, len, &doc_len), *again;
	struct stoup_doc value;
	uint8_t *exact;
	char *out;

	if (!doc)
		return;
	exact = malloc(doc_len);
	MUST(exact != NULL);
	memcpy(exact, doc, doc_len);
	free(doc);
	check_doc(exact, doc_len);
	MUST(stoup_doc_valid(exact, doc_len, NULL) == 0);
	MUST(stoup_doc_open(exact, doc_len, &value) == 0);
	out = print(&value, &out_len);
	MUST(out != NULL);
	again = encode(out, out_len, &again_len);
	MUST(again && again_len == doc_len && memcmp(again, exact, doc_len) == 0);
	free(again);
	free(out);
	free(exact);
}

static void check_path(const uint8_t *bytes, size_t len)
{
	size_t path_len = len ? bytes[0] % 32u : 0;
	char text[33] = {0};
	struct stoup_doc_path *path;
	struct stoup_error err = {0};
	struct stoup_doc doc, found;
	int rc;

	if (len < 1 + path_len)
		return;
	memcpy(text, bytes + 1, path_len);
	rc = stoup_doc_path_create(text, &path, &err);
	MUST(rc == 0 || (rc == -EINVAL && err.text[0]));
	if (rc < 0)
		return;
	if (stoup_doc_open(bytes + 1 + path_len, len - 1 - path_len, &doc) == 0) {
		rc = stoup_doc_seek(&doc, path, &found);
		MUST(rc == 0 || rc == 1 || rc == -EBADMSG);
		if (rc == 1)
			MUST(found.payload >= doc.payload - doc.tag_len &&
				found.payload + found.payload_len <= bytes + len);
	}
	stoup_doc_path_destroy(path);
}

static void check_filter(const uint8_t *bytes, size_t len)
{
	size_t text_len = len ? bytes[0] : 0;
	char text[256] = {0};
	struct stoup_doc_filter *filter;
	struct stoup_error err = {0};
	struct stoup_doc doc;
	int rc;

	if (len < 1 + text_len)
		return;
	memcpy(text, bytes + 1, text_len);
	rc = stoup_doc_filter_create(text, &filter, &err);
	MUST(rc == 0 || (rc == -EINVAL && err.text[0]));
	if (rc < 0)
		return;
	bytes += 1 + text_len;
	len -= 1 + text_len;
	if (stoup_doc_open(bytes, len, &doc) == 0) {
		rc = stoup_doc_match(filter, &doc);
		MUST(rc == 0 || rc == 1 || rc == -EBADMSG);
		MUST(rc >= 0 || stoup_doc_valid(bytes, len, NULL) < 0);
	}
	stoup_doc_filter_destroy(filter);
}

#define RUN_CAP 64u

/* [length of the filter][filter][length, 2 bytes][message][length][message] ... */
static void check_run(const uint8_t *bytes, size_t len)
{
	size_t at = len ? 1 + (size_t)bytes[0] : 1, room_len = 2 * len + RUN_CAP * 32;
	uint32_t run_len = 0, cnt = 0, idx[RUN_CAP], found_cnt, expected_cnt = 0;
	uint64_t broken_cnt = 0, expected_broken = 0;
	char text[256] = {0};
	struct stoup_doc_filter *filter;
	uint8_t *run;

	if (len < at)
		return;
	memcpy(text, bytes + 1, at - 1);
	if (stoup_doc_filter_create(text, &filter, NULL) < 0)
		return;
	run = aligned_alloc(8, room_len / 8 * 8 + 8);
	MUST(run != NULL);
	while (len - at >= 2 && cnt < RUN_CAP) {
		uint32_t one_len = bytes[at] | (uint32_t)bytes[at + 1] << 8;

		at += 2;
		if (one_len > len - at)
			one_len = (uint32_t)(len - at);
		run_len += stoup_message_write(run + run_len, 1000 + cnt++, bytes + at, one_len);
		at += one_len;
	}
	if (cnt > 0) {
		const uint32_t *table;

		run_len = stoup_message_run_end(run, run_len, cnt);
		table = (const void *)(run + run_len - 4 * cnt);
		found_cnt = stoup_doc_match_run(filter, table, 0, cnt, idx, RUN_CAP, &broken_cnt);
		for (uint32_t i = 0; i < cnt; i++) {
			const struct stoup_message_head *head =
				(const void *)((const uint8_t *)(table + i) - table[i]);
			struct stoup_doc doc;
			int rc = stoup_doc_open(head + 1, head->len, &doc);

			if (rc == 0)
				rc = stoup_doc_match(filter, &doc);
			expected_broken += rc < 0;
			if (rc == 1)
				MUST(expected_cnt < found_cnt && idx[expected_cnt++] == i);
		}
		MUST(expected_cnt == found_cnt && expected_broken == broken_cnt);
	}
	free(run);
	stoup_doc_filter_destroy(filter);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (len < 1 || len > 64u << 10)
		return 0;
	switch (bytes[0] % 5) {
	case 0:
		check_doc(bytes + 1, len - 1);
		break;
	case 1:
		check_json((const char *)bytes + 1, len - 1);
		break;
	case 2:
		check_path(bytes + 1, len - 1);
		break;
	case 3:
		check_filter(bytes + 1, len - 1);
		break;
	default:
		check_run(bytes + 1, len - 1);
		break;
	}
	return 0;
}
