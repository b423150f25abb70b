/* SPDX-License-Identifier: Apache-2.0 */
/* b9_jansson.c - each message parsed by jansson into objects of the heap, then looked into. */
#include "bench/b9_peers.h"

#ifdef STOUP_BENCH_JANSSON

#include <jansson.h>
#include "bench/harness.h"

static uint64_t pass(void *arg)
{
	const struct bench_b9 *b9 = arg;
	uint64_t found_cnt = 0;

	for (uint64_t i = 0; i < b9->cnt; i++) {
		const char *text = b9->bytes + b9->off[i];
		json_error_t error;
		json_t *doc, *value;

		doc = json_loadb(text, b9->off[i + 1] - b9->off[i], JSON_DECODE_ANY, &error);
		if (!doc)
			bench_die("jansson: %s", error.text);
		value = json_object_get(json_object_get(doc, "data"), "T");
		found_cnt += json_is_integer(value) && json_integer_value(value) == b9->wanted;
		json_decref(doc);
	}
	return found_cnt;
}

uint64_t (*const bench_b9_jansson)(void *b9) = pass;

const char *bench_jansson_version(void)
{
	return JANSSON_VERSION;
}

#else

uint64_t (*const bench_b9_jansson)(void *b9) = NULL;

const char *bench_jansson_version(void)
{
	return "";
}

#endif
