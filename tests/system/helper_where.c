/* SPDX-License-Identifier: Apache-2.0 */
/* helper_where.c - records of all field types that follow from a seed: stored, and asked by random filters.
 *
 * usage: helper_where put STORE CODEC BLOCK SEED FIRST CNT      records FIRST to FIRST + CNT - 1 of a seed
 *        helper_where ask POOL CNT QUERIES SEED [direct]
 *        helper_where pause POOL CNT [backward]                 waits for a line on stdin after its second span
 *        helper_where count POOL FILTER                         prints segments left out and handed out
 *        helper_where lie FILE                                  a zone map that excludes what is there
 *
 * Values change little within 500 records, so that zone maps can say no, and are taken from what filter_model.h makes:
 * ends of the types, undefined ones, NaN. All records are copied out once by a plain scan. Every question is put to these
 * in the slow way of filter_model.h, in samples, and in whole by stoup_filter_span; what a cursor of stoup_scan_where
 * hands out must have the same records, in the scan's direction, within the range.
 */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>
#include "codec/volume_layout.h"
#include "codec/zone.h"
#include "producer/import.h"
#include "tests/unit/filter_model.h"

#define KEY0   INT64_C(1700000000000000000)
#define EPOCH  500u /* records that share their few values */
#define SERIES "T/WHERE/model"

static _Noreturn void die(const char *what, const char *text)
{
	fprintf(stderr, "helper_where: %s: %s\n", what, text);
	exit(1);
}

/* Rows of equal keys, also over borders of segments and volumes. */
static int64_t key_of(uint64_t i)
{
	return KEY0 + (int64_t)(i / 7) * 1000;
}

/* ---- storing --------------------------------------------------------------------------------- */

static void make(uint64_t seed, uint64_t i, uint8_t *record)
{
	uint8_t pool[3][MODEL_STRIDE];
	int64_t key = key_of(i);

	model_state = (seed << 32 | (i / EPOCH + 1)) * UINT64_C(0x9e3779b97f4a7c15);
	for (uint32_t j = 0; j < 3; j++)
		model_record(pool[j]);
	model_state += i * UINT64_C(0x2545f4914f6cdd1d) + 1;
	memset(record, 0, MODEL_STRIDE);
	for (size_t f = 0; f < MODEL_FIELD_CNT; f++) {
		const struct stoup_field *field = &model_fields[f];

		memcpy(record + field->off, pool[model_below(3)] + field->off, model_len(field));
	}
	memcpy(record, &key, sizeof(key));
}

static int put_all(char **argv)
{
	struct stoup_import_options options = {.store_path = argv[0], .quiet = 1, .threads = 2};
	uint64_t seed = strtoull(argv[3], NULL, 10), first = strtoull(argv[4], NULL, 10);
	uint64_t end = first + strtoull(argv[5], NULL, 10);
	struct stoup_schema schema = model_schema();
	struct stoup_import *import;
	struct stoup_error err = {0};
	uint8_t record[MODEL_STRIDE];
	int64_t series;

	options.block_len = (uint32_t)strtoul(argv[2], NULL, 10);
	if (stoup_encoding_parse(argv[1], NULL, &options.encoding) < 0 ||
		stoup_import_begin(&options, &import, &err) < 0)
		die("begin", err.text);
	series = stoup_import_series(import, SERIES, &schema, &err);
	for (uint64_t i = first; series >= 0 && i < end; i++) {
		make(seed, i, record);
		if (stoup_import_put(import, (uint32_t)series, key_of(i), record, NULL, &err) < 0)
			die("put", err.text);
	}
	if (series < 0 || stoup_import_finish(import, &err) < 0)
		die("finish", err.text);
	stoup_import_destroy(import);
	return 0;
}

/* ---- asking ---------------------------------------------------------------------------------- */

struct job {
	struct stoup *st;
	struct stoup_series series;
	uint32_t flags;
	uint8_t *all; /* cnt records */
	uint64_t cnt;
	uint32_t *expected, *got; /* numbers of records */
	uint64_t left_out, segment_cnt, found;
};

static void begin(struct job *job, const char *pool, const char *cnt)
{
	struct stoup_range range = {.flags = job->flags};
	struct stoup_cursor *cur;
	struct stoup_error err = {0};
	struct stoup_span span;
	uint64_t at = 0;
	int rc;

	job->cnt = strtoull(cnt, NULL, 10);
	job->all = malloc(job->cnt * MODEL_STRIDE);
	job->expected = malloc(job->cnt * sizeof(uint32_t));
	job->got = malloc(job->cnt * sizeof(uint32_t));
	if (!job->all || !job->expected || !job->got)
		die("begin", "no memory");
	if (stoup_attach(pool, NULL, &job->st, &err) < 0 ||
		stoup_series_find(job->st, SERIES, &job->series, &err) < 0 ||
		stoup_scan(job->st, &job->series, &range, &cur, &err) < 0)
		die("attach", err.text);
	while ((rc = stoup_next(cur, &span)) > 0) {
		if (at + span.record_cnt > job->cnt || span.ordinal != at)
			die("scan", "more records than there are");
		memcpy(job->all + at * MODEL_STRIDE, span.base, span.record_cnt * MODEL_STRIDE);
		at += span.record_cnt;
	}
	if (rc < 0 || at != job->cnt)
		die("scan", rc < 0 ? stoup_cursor_error(cur)->text : "records are missing");
	stoup_cursor_close(cur);
}

static void end(struct job *job)
{
	if (stoup_detach(job->st) < 0)
		die("detach", "something is held");
	free(job->all);
	free(job->expected);
	free(job->got);
}

/* Records of [from, to) that match: how many, in job->expected. */
static int in_range(const struct stoup_range *range, uint64_t i)
{
	int64_t key = range->flags & STOUP_ORDINALS ? (int64_t)i : key_of(i);

	if (key < range->from_ns || ((range->flags & STOUP_FROM_AFTER) && key == range->from_ns))
		return 0;
	return range->to_ns == 0 || key < range->to_ns ||
	       ((range->flags & STOUP_TO_INCLUDED) && key == range->to_ns);
}

static uint64_t expect(struct job *job, const struct stoup_filter *filter,
	const struct model_node *node, const struct stoup_range *range, const char *text)
{
	struct stoup_span span = {.base = job->all,
		.record_cnt = job->cnt,
		.stride = MODEL_STRIDE,
		.schema = job->series.schema};
	int64_t cnt = stoup_filter_span(filter, &span, 0, job->expected, job->cnt);
	uint64_t kept = 0;

	for (int64_t i = 0; i < cnt; i++) {
		if (in_range(range, job->expected[i]))
			job->expected[kept++] = job->expected[i];
	}
	for (uint32_t i = 0; i < 30; i++) {
		const uint8_t *record =
			job->all + model_below((uint32_t)job->cnt) * (size_t)MODEL_STRIDE;

		if ((model_truth(node, record) == 1) != stoup_filter_match(filter, record))
			die("the reference says otherwise", text);
	}
	return cnt < 0 ? 0 : kept;
}

/* What one span has of the answer, put where the direction wants it. */
static uint64_t take(struct job *job, const struct stoup_filter *filter,
	const struct stoup_span *span, uint64_t got, uint32_t flags)
{
	uint32_t *to = job->got + got;
	int64_t cnt;

	if (memcmp(span->base, job->all + span->ordinal * MODEL_STRIDE,
		    span->record_cnt * MODEL_STRIDE) != 0)
		die("a span", "has other records");
	cnt = stoup_filter_span(filter, span, 0, to, job->cnt - got);
	if (cnt < 0)
		die("a span", "can not be asked");
	for (int64_t i = 0; i < cnt; i++)
		to[i] += (uint32_t)span->ordinal;
	for (int64_t i = 0; (flags & STOUP_BACKWARD) && i < cnt / 2; i++) {
		uint32_t other = to[i];

		to[i] = to[cnt - 1 - i];
		to[cnt - 1 - i] = other;
	}
	return got + (uint64_t)cnt;
}

/* The scan of one question; `pauses`: the caller does something to the daemon after the second span. */
static void compare(struct job *job, struct stoup_filter *filter, const struct stoup_range *range,
	uint64_t cnt, const char *text, int pauses)
{
	struct stoup_range limited;
	struct stoup_cursor *cur;
	struct stoup_error err = {0};
	struct stoup_span span;
	uint64_t got = 0, span_cnt = 0;
	int rc;

	limited = *range;
	limited.limit = 1;
	if (stoup_scan_where(job->st, &job->series, &limited, filter, &cur, &err) != -EINVAL ||
		stoup_scan_where(job->st, &job->series, range, filter, &cur, &err) < 0)
		die("where", err.text);
	stoup_filter_destroy(filter); /* the cursor keeps what it needs */
	if (stoup_filter_create(job->series.schema, text, &filter, &err) < 0)
		die("again", err.text);
	while ((rc = stoup_next(cur, &span)) > 0) {
		got = take(job, filter, &span, got, range->flags);
		if (++span_cnt != 2 || !pauses)
			continue;
		puts("middle");
		fflush(stdout);
		(void)getchar();
	}
	if (rc < 0)
		die("next", stoup_cursor_error(cur)->text);
	for (uint64_t i = 0; i < cnt; i++)
		if (got != cnt ||
			job->got[i] !=
				job->expected[range->flags & STOUP_BACKWARD ? cnt - 1 - i : i])
			die("not the records that match", text);
	if (got != cnt)
		die("records that do not match", text);
	job->left_out += stoup_cursor_left_out(cur);
	job->segment_cnt += span_cnt;
	job->found += cnt;
	stoup_cursor_close(cur);
	stoup_filter_destroy(filter);
}

static void ask(struct job *job)
{
	struct stoup_range range = {.flags = job->flags};
	struct stoup_filter *filter;
	struct model_text text = {.len = 0};
	struct stoup_error err = {0};
	struct model_node *node = model_filter(&text, model_below(3));
	uint64_t cnt;

	if (model_below(2))
		range.flags |= STOUP_BACKWARD;
	if (model_below(3) == 0) {
		range.from_ns = key_of(model_below((uint32_t)job->cnt));
		range.to_ns = range.from_ns + model_below((uint32_t)job->cnt) * INT64_C(100);
		range.flags |= model_below(2) ? STOUP_FROM_AFTER : 0;
		range.flags |= model_below(2) ? STOUP_TO_INCLUDED : 0;
	} else if (model_below(4) == 0) {
		range.from_ns = model_below((uint32_t)job->cnt);
		range.to_ns = range.from_ns + 1 + model_below((uint32_t)job->cnt / 3);
		range.flags |= STOUP_ORDINALS;
	}
	if (stoup_filter_create(job->series.schema, text.at, &filter, &err) < 0)
		die(text.at, err.text);
	cnt = expect(job, filter, node, &range, text.at);
	compare(job, filter, &range, cnt, text.at, 0);
	model_free(node);
}

static int ask_all(int argc, char **argv)
{
	struct job job = {.flags = argc > 4 ? STOUP_DIRECT : 0};
	uint64_t query_cnt = strtoull(argv[2], NULL, 10);

	begin(&job, argv[0], argv[1]);
	model_state = strtoull(argv[3], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	for (uint64_t i = 0; i < query_cnt; i++)
		ask(&job);
	printf("%" PRIu64 " left out, %" PRIu64 " spans, %" PRIu64 " records\n", job.left_out,
		job.segment_cnt, job.found);
	end(&job);
	return 0;
}

/* A question whose answer lies in several places, far from each other. */
static int pause_all(int argc, char **argv)
{
	static const char text[] = "u8 in (0, 1, 2, 252, 253) and price is not null";
	struct job job = {.flags = 0};
	struct stoup_range range = {.flags = argc > 2 ? STOUP_BACKWARD : 0};
	struct stoup_filter *filter;
	struct stoup_error err = {0};
	struct stoup_span span;
	int64_t cnt;

	begin(&job, argv[0], argv[1]);
	if (stoup_filter_create(job.series.schema, text, &filter, &err) < 0)
		die(text, err.text);
	span = (struct stoup_span){.base = job.all,
		.record_cnt = job.cnt,
		.stride = MODEL_STRIDE,
		.schema = job.series.schema};
	cnt = stoup_filter_span(filter, &span, 0, job.expected, job.cnt);
	compare(&job, filter, &range, (uint64_t)cnt, text, 1);
	printf("%" PRIu64 " left out, %" PRIu64 " spans, %" PRIu64 " records\n", job.left_out,
		job.segment_cnt, job.found);
	end(&job);
	return 0;
}

/* One question and no more: how many segments were left out and handed out. */
static int count(char **argv)
{
	struct stoup_series series;
	struct stoup_filter *filter;
	struct stoup_cursor *cur;
	struct stoup_error err = {0};
	struct stoup_span span;
	struct stoup *st;
	uint64_t span_cnt = 0;
	int rc;

	if (stoup_attach(argv[0], NULL, &st, &err) < 0 ||
		stoup_series_find(st, SERIES, &series, &err) < 0 ||
		stoup_filter_create(series.schema, argv[1], &filter, &err) < 0 ||
		stoup_scan_where(st, &series, NULL, filter, &cur, &err) < 0)
		die("count", err.text);
	while ((rc = stoup_next(cur, &span)) > 0)
		span_cnt++;
	if (rc < 0)
		die("next", stoup_cursor_error(cur)->text);
	printf("%" PRIu64 " %" PRIu64 "\n", stoup_cursor_left_out(cur), span_cnt);
	stoup_cursor_close(cur);
	stoup_filter_destroy(filter);
	return stoup_detach(st) < 0;
}

/* ---- lying ----------------------------------------------------------------------------------- */

/* Change the first zone map of a volume so that it excludes a value of the field u8, and make its checksums right. */
static int lie(const char *path)
{
	static uint8_t bytes[64 << 20];
	struct stoup_vol_disk_trailer trailer;
	struct stoup_vol_disk_section section = {0};
	FILE *file = fopen(path, "r+b");
	size_t len = file ? fread(bytes, 1, sizeof(bytes), file) : 0;
	uint8_t *footer, *row;

	if (len < sizeof(trailer))
		die(path, "can not be read");
	memcpy(&trailer, bytes + len - sizeof(trailer), sizeof(trailer));
	footer = bytes + trailer.footer_off;
	for (uint32_t i = 0; section.kind != STOUP_VOL_SECTION_ZONES; i++)
		memcpy(&section, footer + 16 + i * sizeof(section), sizeof(section));
	/* 16 fields have flags; in front of u8 stands the key. */
	row = footer + section.off + STOUP_ZONE_HEAD_LEN + 16 + 2 * sizeof(int64_t);
	row[0] = row[1] = row[0] ? 0 : 1;
	trailer.footer_hash = stoup_vol_hash(footer, trailer.footer_len);
	trailer.checksum =
		stoup_vol_hash(&trailer, offsetof(struct stoup_vol_disk_trailer, checksum));
	memcpy(bytes + len - sizeof(trailer), &trailer, sizeof(trailer));
	if (fseek(file, 0, SEEK_SET) != 0 || fwrite(bytes, 1, len, file) != len ||
		fclose(file) != 0)
		die(path, "can not be written");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 8 && strcmp(argv[1], "put") == 0)
		return put_all(argv + 2);
	if (argc >= 6 && strcmp(argv[1], "ask") == 0)
		return ask_all(argc - 2, argv + 2);
	if (argc >= 4 && strcmp(argv[1], "pause") == 0)
		return pause_all(argc - 2, argv + 2);
	if (argc == 4 && strcmp(argv[1], "count") == 0)
		return count(argv + 2);
	if (argc == 3 && strcmp(argv[1], "lie") == 0)
		return lie(argv[2]);
	die("usage", "see the head of the source");
}
