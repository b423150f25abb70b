/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_ls.c - `stoup ls`: what a store holds, from the indexes alone.
 *
 * A series is listed once, whatever the number of its volumes: its parts are sorted by name, schema
 * and key, and each group of them is a row. Blocks are shared by series, so that a series' stored
 * bytes are its share of its blocks by decoded length.
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "codec/block.h"
#include "producer/cmd.h"
#include "producer/store.h"
#include "shm/format.h"

#define GAP_DEFAULT_NS 3600000000000ll /* an hour: longer than any pause inside a session */

static const char usage_text[] =
	"usage: stoup ls [--json] [--gaps[=DURATION]] STORE [PATTERN]\n"
	"\n"
	"List the series of a store: name, schema, records, first and last time, codec, ratio\n"
	"(decoded bytes / stored bytes of the series' blocks).\n"
	"PATTERN is a glob over the whole name (* and ? match / too).\n"
	"\n"
	"  --json              {\"series\": [{\"name\": ...}]}\n"
	"  --gaps[=DURATION]   also the stretches longer than DURATION (default 1h; 250ms, 2s, 1d) "
	"for\n"
	"                      which the store has no data, as far as the index tells: between the "
	"end\n"
	"                      of one segment and the start of the next. No data does not mean "
	"that\n"
	"                      nothing happened. A gap inside a segment is not seen.\n";

/* One series in one volume. */
struct part {
	const struct stoup_vol_index *index;
	const struct stoup_vol_series *series;
};

/* One series in all volumes: parts[first .. first + cnt). */
struct row {
	const struct part *parts;
	size_t part_cnt;
	uint64_t record_cnt, raw_len;
	double stored_len;
	int64_t first_key, last_key;
	uint32_t codecs;     /* bit per STOUP_CODEC_* */
	uint32_t transforms; /* bit per STOUP_TRANSFORM_* */
	uint32_t ways;       /* bit per pair of them */
	uint32_t flags;
};

struct ls {
	const char *path, *pattern;
	int json;
	int64_t gap_ns; /* 0: none asked for */
	struct stoup_store *store;
	struct part *parts;
	size_t part_cnt;
	int name_width, schema_width;
};

/* ---- rows ------------------------------------------------------------------------------------ */

static const struct stoup_vol_schema *schema_of(const struct part *part)
{
	return &part->index->schemas[part->series->schema_idx];
}

static int same_series(const struct part *a, const struct part *b)
{
	return schema_of(a)->hash == schema_of(b)->hash &&
	       strcmp(a->series->name, b->series->name) == 0;
}

static int part_cmp(const void *pa, const void *pb)
{
	const struct part *a = pa, *b = pb;
	uint64_t ha = schema_of(a)->hash, hb = schema_of(b)->hash;
	int cmp = strcmp(a->series->name, b->series->name);

	if (cmp == 0 && ha != hb)
		cmp = ha < hb ? -1 : 1;
	return cmp ? cmp : stoup_store_part_cmp(a->index, a->series, b->index, b->series);
}

static int parts_collect(struct ls *ls)
{
	size_t cnt = 0;
	uint32_t v, s;

	for (v = 0; v < ls->store->volume_cnt; v++)
		cnt += ls->store->volumes[v]->index->series_cnt;
	ls->parts = calloc(cnt + 1, sizeof(*ls->parts));
	if (!ls->parts)
		return -ENOMEM;
	ls->name_width = 6;
	ls->schema_width = 12;
	for (v = 0; v < ls->store->volume_cnt; v++) {
		const struct stoup_vol_index *index = ls->store->volumes[v]->index;

		for (s = 0; s < index->series_cnt; s++) {
			const char *name = index->series[s].name;

			if (ls->pattern && fnmatch(ls->pattern, name, 0) != 0)
				continue;
			ls->parts[ls->part_cnt++] = (struct part){index, &index->series[s]};
			if (strlen(name) > (size_t)ls->name_width)
				ls->name_width = (int)strlen(name);
			name = index->schemas[index->series[s].schema_idx].name;
			if (strlen(name) > (size_t)ls->schema_width)
				ls->schema_width = (int)strlen(name);
		}
	}
	qsort(ls->parts, ls->part_cnt, sizeof(*ls->parts), part_cmp);
	return 0;
}

/* Codecs of a later version share one number, shown as unknown, and so do transforms. */
#define CODEC_CNT     (STOUP_CODEC_LAST + 2)
#define TRANSFORM_CNT (STOUP_TRANSFORM_LAST + 2)

static uint32_t known_codec(uint32_t codec)
{
	return codec < CODEC_CNT ? codec : CODEC_CNT - 1;
}

static uint32_t known_transform(uint32_t transform)
{
	return transform < TRANSFORM_CNT ? transform : TRANSFORM_CNT - 1;
}

static void row_add(struct row *row, const struct part *part)
{
	const struct stoup_vol_series *series = part->series;
	uint32_t i;

	for (i = 0; i < series->segment_cnt; i++) {
		const struct stoup_vol_segment *segment =
			&part->index->segments[series->segment_first + i];
		const struct stoup_vol_block *block = &part->index->blocks[segment->block_idx];
		double len = segment->raw_len;

		row->raw_len += segment->raw_len;
		row->stored_len += (double)block->stored_len * len / (double)block->raw_len;
		row->codecs |= 1u << known_codec(block->codec);
		row->transforms |= 1u << known_transform(block->transform);
		row->ways |= 1u << (known_transform(block->transform) * CODEC_CNT +
				     known_codec(block->codec));
	}
	if (row->part_cnt == 0 || series->first_key < row->first_key)
		row->first_key = series->first_key;
	if (row->part_cnt == 0 || series->last_key > row->last_key)
		row->last_key = series->last_key;
	row->record_cnt += series->record_cnt;
	row->flags |= series->flags;
	row->part_cnt++;
}

/* The row that begins at parts[*at]; goes on behind it. */
static struct row row_next(const struct ls *ls, size_t *at)
{
	struct row row = {.parts = &ls->parts[*at]};

	do {
		row_add(&row, &ls->parts[(*at)++]);
	} while (*at < ls->part_cnt && same_series(row.parts, &ls->parts[*at]));
	return row;
}

static double row_ratio(const struct row *row)
{
	return row->stored_len > 0 ? (double)row->raw_len / row->stored_len : 0;
}

static const char *codec_name(uint32_t codec)
{
	static const char *const names[] = {"none", "lz4", "zstd"};

	return codec <= STOUP_CODEC_LAST ? names[codec] : "unknown";
}

static const char *transform_name(uint32_t transform)
{
	static const char *const names[] = {"none", "fields"};

	return transform <= STOUP_TRANSFORM_LAST ? names[transform] : "unknown";
}

/* "lz4", "fields+lz4,none": how the blocks of a row are stored. */
static void ways_text(const struct row *row, char *ret, size_t cap)
{
	size_t len = 0;

	ret[0] = '\0';
	for (uint32_t way = 0; way < CODEC_CNT * TRANSFORM_CNT && len < cap; way++) {
		uint32_t transform = way / CODEC_CNT;

		if (!(row->ways & 1u << way))
			continue;
		len += (size_t)snprintf(ret + len, cap - len, "%s%s%s%s", len ? "," : "",
			transform ? transform_name(transform) : "", transform ? "+" : "",
			codec_name(way % CODEC_CNT));
	}
}

/* ---- gaps ------------------------------------------------------------------------------------ */

typedef void gap_fn(const struct ls *ls, int64_t after_key, int64_t before_key, size_t idx);

/* Call fn for each stretch longer than gap_ns between segments; returns how many. */
static size_t gaps_walk(const struct ls *ls, const struct row *row, gap_fn *fn)
{
	int64_t last_key = row->first_key;
	size_t cnt = 0, p;
	uint32_t i;

	for (p = 0; p < row->part_cnt; p++) {
		const struct part *part = &row->parts[p];

		for (i = 0; i < part->series->segment_cnt; i++) {
			const struct stoup_vol_segment *segment =
				&part->index->segments[part->series->segment_first + i];

			if (segment->first_key - last_key > ls->gap_ns)
				fn(ls, last_key, segment->first_key, cnt++);
			last_key = segment->last_key > last_key ? segment->last_key : last_key;
		}
	}
	return cnt;
}

static void gap_print(const struct ls *ls, int64_t after_key, int64_t before_key, size_t idx)
{
	char after[STOUP_FORMAT_CAP], before[STOUP_FORMAT_CAP], length[STOUP_DURATION_TEXT_CAP];

	(void)ls;
	(void)idx;
	stoup_format_time(after_key, after);
	stoup_format_time(before_key, before);
	stoup_duration_format(before_key - after_key, length);
	printf("    no data from %s to %s (%s)\n", after, before, length);
}

static void gap_json(const struct ls *ls, int64_t after_key, int64_t before_key, size_t idx)
{
	(void)ls;
	printf("%s{\"after_key\": %" PRId64 ", \"before_key\": %" PRId64 ", \"length_ns\": %" PRId64
	       "}",
		idx ? ", " : "", after_key, before_key, before_key - after_key);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void row_print(const struct ls *ls, const struct row *row)
{
	char first[STOUP_FORMAT_CAP], last[STOUP_FORMAT_CAP], ways[128];

	ways_text(row, ways, sizeof(ways));
	stoup_format_time(row->first_key, first);
	stoup_format_time(row->last_key, last);
	printf("%-*s  %-*s %12" PRIu64 "  %s  %s  %-11s %6.2f%s\n", ls->name_width,
		row->parts[0].series->name, ls->schema_width, schema_of(row->parts)->name,
		row->record_cnt, first, last, ways, row_ratio(row),
		row->flags & STOUP_VOL_SERIES_KEEP_ORDER ? "  keeps its order" : "");
	if (ls->gap_ns > 0)
		gaps_walk(ls, row, gap_print);
}

static void print_text(const struct ls *ls)
{
	size_t at = 0;

	if (ls->part_cnt > 0)
		printf("%-*s  %-*s %12s  %-30s  %-30s  %-11s %6s\n", ls->name_width, "series",
			ls->schema_width, "schema", "records", "first", "last", "codec", "ratio");
	if (ls->part_cnt == 0 && ls->pattern)
		fprintf(stderr, "stoup ls: no series matches '%s'\n", ls->pattern);
	while (at < ls->part_cnt) {
		struct row row = row_next(ls, &at);

		row_print(ls, &row);
	}
	if (ls->gap_ns > 0)
		printf("Gaps are those between segments, as the index tells them; one inside a "
		       "segment is not seen.\n");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void row_json(const struct ls *ls, const struct row *row)
{
	const struct stoup_vol_schema *schema = schema_of(row->parts);
	char first[STOUP_FORMAT_CAP], last[STOUP_FORMAT_CAP];
	const char *comma = "";
	uint32_t c;

	stoup_format_time(row->first_key, first);
	stoup_format_time(row->last_key, last);
	printf("{\"name\": ");
	stoup_json_string(stdout, row->parts[0].series->name);
	printf(", \"schema\": ");
	stoup_json_string(stdout, schema->name);
	printf(", \"schema_hash\": \"%016" PRIx64 "\", \"stride\": %" PRIu32
	       ", \"records\": %" PRIu64 ", \"first_key\": %" PRId64 ", \"last_key\": %" PRId64,
		schema->hash, schema->stride, row->record_cnt, row->first_key, row->last_key);
	printf(", \"first_time\": \"%s\", \"last_time\": \"%s\", \"codecs\": [", first, last);
	for (c = 0; c < CODEC_CNT; c++) {
		if (!(row->codecs & 1u << c))
			continue;
		printf("%s\"%s\"", comma, codec_name(c));
		comma = ", ";
	}
	printf("], \"transforms\": [");
	comma = "";
	for (c = 0; c < TRANSFORM_CNT; c++) {
		if (!(row->transforms & 1u << c))
			continue;
		printf("%s\"%s\"", comma, transform_name(c));
		comma = ", ";
	}
	printf("], \"raw_bytes\": %" PRIu64 ", \"stored_bytes\": %.0f, \"ratio\": %.3f, "
	       "\"volumes\": %zu, \"keeps_order\": %s",
		row->raw_len, row->stored_len, row_ratio(row), row->part_cnt,
		row->flags & STOUP_VOL_SERIES_KEEP_ORDER ? "true" : "false");
	if (ls->gap_ns > 0) {
		printf(", \"gaps\": [");
		gaps_walk(ls, row, gap_json);
		printf("]");
	}
	printf("}");
}

static void print_json(const struct ls *ls)
{
	size_t at = 0;
	uint32_t i;

	printf("{\"store\": ");
	stoup_json_string(stdout, ls->store->path);
	printf(", \"volumes\": %" PRIu32, ls->store->volume_cnt);
	if (ls->gap_ns > 0)
		printf(", \"gap_min_ns\": %" PRId64 ", \"gap_granularity\": \"segment\"",
			ls->gap_ns);
	printf(", \"series\": [");
	while (at < ls->part_cnt) {
		size_t first = at;
		struct row row = row_next(ls, &at);

		printf("%s\n  ", first ? "," : "");
		row_json(ls, &row);
	}
	printf("%s], \"faults\": [", ls->part_cnt ? "\n" : "");
	for (i = 0; i < ls->store->fault_cnt; i++) {
		printf("%s\n  {\"path\": ", i ? "," : "");
		stoup_json_string(stdout, ls->store->faults[i].path);
		printf(", \"text\": ");
		stoup_json_string(stdout, ls->store->faults[i].text);
		printf("}");
	}
	printf("%s]}\n", ls->store->fault_cnt ? "\n" : "");
}

/* ---- command --------------------------------------------------------------------------------- */

static int args_parse(struct ls *ls, int argc, char **argv, struct stoup_error *err)
{
	int i;

	for (i = 1; i < argc; i++) {
		const char *arg = argv[i];

		if (strcmp(arg, "--json") == 0)
			ls->json = 1;
		else if (strcmp(arg, "--gaps") == 0)
			ls->gap_ns = GAP_DEFAULT_NS;
		else if (strncmp(arg, "--gaps=", 7) == 0) {
			if (stoup_duration_parse(arg + 7, &ls->gap_ns) < 0 || ls->gap_ns == 0)
				return stoup_error_set(err, -EINVAL,
					"%s: a duration such as 250ms, 2s, 1h or 1d", arg);
		} else if (arg[0] == '-' && arg[1])
			return stoup_error_set(err, -EINVAL, "unknown option %s", arg);
		else if (!ls->path)
			ls->path = arg;
		else if (!ls->pattern)
			ls->pattern = arg;
		else
			return stoup_error_set(err, -EINVAL, "too many arguments: %s", arg);
	}
	return ls->path ? 0 : stoup_error_set(err, -EINVAL, "STORE is missing");
}

int stoup_cmd_ls(int argc, char **argv)
{
	struct ls ls = {0};
	struct stoup_error err = {0};
	uint32_t i;
	int status = STOUP_EXIT_FAIL;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage_text, stdout);
		return STOUP_EXIT_OK;
	}
	if (args_parse(&ls, argc, argv, &err) < 0) {
		fprintf(stderr, "stoup ls: %s; see `stoup help ls`\n", err.text);
		return STOUP_EXIT_USAGE;
	}
	if (stoup_store_open(ls.path, &ls.store, &err) < 0) {
		fprintf(stderr, "stoup ls: %s\n", err.text);
		return STOUP_EXIT_FAIL;
	}
	if (stoup_store_holds_nothing(ls.store, &err)) {
		fprintf(stderr, "stoup ls: %s\n", err.text);
		goto out_close;
	}
	if (parts_collect(&ls) < 0) {
		fprintf(stderr, "stoup ls: no memory for the list of series\n");
		goto out_close;
	}
	if (ls.json)
		print_json(&ls);
	else
		print_text(&ls);
	for (i = 0; i < ls.store->fault_cnt && !ls.json; i++)
		fprintf(stderr, "stoup ls: not listed: %s\n", ls.store->faults[i].text);
	status = STOUP_EXIT_OK;
out_close:
	free(ls.parts);
	stoup_store_close(ls.store);
	return status;
}
