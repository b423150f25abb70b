/* SPDX-License-Identifier: Apache-2.0 */
/* tool_dbn.c - what a DBN file of series is: see tool_dbn.h. */
#include "consumer/tool_dbn.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define V1            0x2u
#define V2            0x4u
#define V3            0x8u
#define V_ALL         (V1 | V2 | V3)
#define V1_SYMBOL_LEN 22u
#define V2_SYMBOL_LEN 71u
#define TS_OUT        ".ts_out"
#define TS_OUT_LEN    8u
#define NO_SYMBOL     "ALL" /* of series of all symbols, and of the messages of a session */
#define STYPE_RAW     1u
#define STYPE_MIXED   0xffu

static const struct stoup_dbn_out_kind kinds[] = {
	{"mbo", 0, {0xa0, 0xa0}, V_ALL, 0},
	{"mbp-1", 1, {0x01, 0x01}, V_ALL, 0},
	{"mbp-10", 2, {0x0a, 0x0a}, V_ALL, 0},
	{"tbbo", 3, {0x01, 0x01}, V_ALL, 0},
	{"trades", 4, {0x00, 0x00}, V_ALL, 0},
	{"ohlcv-1s", 5, {0x20, 0x11}, V_ALL, 0},
	{"ohlcv-1m", 6, {0x21, 0x11}, V_ALL, 0},
	{"ohlcv-1h", 7, {0x22, 0x11}, V_ALL, 0},
	{"ohlcv-1d", 8, {0x23, 0x11}, V_ALL, 0},
	{"definition-v1", 9, {0x13, 0x13}, V1, 0},
	{"definition-v2", 9, {0x13, 0x13}, V2, 0},
	{"definition", 9, {0x13, 0x13}, V3, 0},
	{"statistics-v1", 10, {0x18, 0x18}, V1 | V2, 0},
	{"statistics", 10, {0x18, 0x18}, V3, 0},
	{"status", 11, {0x12, 0x12}, V_ALL, 0},
	{"imbalance", 12, {0x14, 0x14}, V_ALL, 0},
	{"ohlcv-eod", 13, {0x24, 0x11}, V_ALL, 0},
	{"cmbp-1", 14, {0xb1, 0xb1}, V2 | V3, 0},
	{"cbbo-1s", 15, {0xc0, 0xc0}, V2 | V3, 0},
	{"cbbo-1m", 16, {0xc1, 0xc1}, V2 | V3, 0},
	{"tcbbo", 17, {0xc2, 0xc2}, V2 | V3, 0},
	{"bbo-1s", 18, {0xc3, 0xc3}, V_ALL, 0},
	{"bbo-1m", 19, {0xc4, 0xc4}, V_ALL, 0},
	{"error-v1", STOUP_DBN_OUT_MIXED, {0x15, 0x15}, V1, 1},
	{"error", STOUP_DBN_OUT_MIXED, {0x15, 0x15}, V2 | V3, 1},
	{"symbol-mapping-v1", STOUP_DBN_OUT_MIXED, {0x16, 0x16}, V1, 0},
	{"symbol-mapping", STOUP_DBN_OUT_MIXED, {0x16, 0x16}, V2 | V3, 0},
	{"system-v1", STOUP_DBN_OUT_MIXED, {0x17, 0x17}, V1, 1},
	{"system", STOUP_DBN_OUT_MIXED, {0x17, 0x17}, V2 | V3, 1},
};

#define SCHEMA_TBBO 3

/* ---- the plan --------------------------------------------------------------------------------- */

size_t stoup_dbn_dataset_len(const char *series_name)
{
	return strcspn(series_name, "/");
}

/* The kind of a series whose layout is that of the built-in schema, with or without ts_out behind it. */
static const struct stoup_dbn_out_kind *kind_of(const struct stoup_schema *schema, int *ret_ts_out)
{
	size_t len = strlen(schema->name), suffix_len = strlen(TS_OUT);
	int has = len > suffix_len && strcmp(schema->name + len - suffix_len, TS_OUT) == 0;

	*ret_ts_out = has;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct stoup_schema *base = stoup_schema_by_name(kinds[i].name);

		if (!base || strlen(base->name) != len - (has ? suffix_len : 0) ||
			strncmp(base->name, schema->name, strlen(base->name)) != 0)
			continue;
		if (has ? schema->stride == base->stride + TS_OUT_LEN &&
					schema->key_off == base->key_off
			: schema->hash == base->hash)
			return &kinds[i];
	}
	return NULL;
}

static int hex_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The middle of DATASET/SYMBOL/schema without its escapes; NULL where it names no symbol. */
static int symbol_of(const char *name, char **ret)
{
	const char *from = name + strcspn(name, "/"), *to = strrchr(name, '/');
	char *symbol = calloc(1, strlen(name) + 1), *at = symbol;
	size_t digit_cnt;

	if (!symbol)
		return -ENOMEM;
	for (from = from == to ? to : from + 1; from && from < to; from++) {
		if (*from == '%' && hex_of(from[1]) >= 0 && hex_of(from[2]) >= 0) {
			*at++ = (char)(hex_of(from[1]) * 16 + hex_of(from[2]));
			from += 2;
		} else {
			*at++ = *from;
		}
	}
	/* A number is what import calls an instrument without a symbol. */
	digit_cnt = strspn(symbol, "0123456789");
	if (symbol[digit_cnt] == '\0' || strcmp(symbol, NO_SYMBOL) == 0) {
		free(symbol);
		symbol = NULL;
	}
	*ret = symbol;
	return 0;
}

static int same_symbol(const char *a, const char *b)
{
	size_t len = (size_t)(strrchr(a, '/') ? strrchr(a, '/') - a : 0);

	return strncmp(a, b, len) == 0 && strrchr(b, '/') == b + len;
}

static int source_make(
	struct stoup_dbn_plan *plan, const struct stoup_series *series, struct stoup_error *err)
{
	struct stoup_dbn_source *source = &plan->sources[plan->cnt];
	int has_ts_out;

	source->series = *series;
	source->kind = kind_of(series->schema, &has_ts_out);
	if (!source->kind)
		return stoup_error_set(err, -EINVAL,
			"%.120s: records of %s are none of DBN's: export them as csv, jsonl or npy",
			series->name, series->schema->name);
	if (plan->cnt > 0 && plan->has_ts_out != has_ts_out)
		return stoup_error_set(err, -EINVAL,
			"%.80s has ts_out and %.80s has not: a DBN file has either; export them apart",
			has_ts_out ? series->name : plan->sources[0].series.name,
			has_ts_out ? plan->sources[0].series.name : series->name);
	if (symbol_of(series->name, &source->symbol) < 0)
		return stoup_error_set(err, -ENOMEM, "no memory for symbols");
	plan->has_ts_out = has_ts_out != 0;
	if (!source->symbol && !source->kind->is_session && plan->unnamed_cnt++ == 0)
		plan->unnamed = series->name;
	if (plan->cnt > 0)
		source->symbol_idx =
			source[-1].symbol_idx + !same_symbol(source[-1].series.name, series->name);
	plan->cnt++;
	return 0;
}

/* Which versions have all layouts. */
static int choose_version(struct stoup_dbn_plan *plan, int version, struct stoup_error *err)
{
	uint32_t versions = V_ALL;

	for (size_t i = 0; i < plan->cnt; i++) {
		const struct stoup_dbn_source *source = &plan->sources[i];

		if (version && !(source->kind->versions >> version & 1))
			return stoup_error_set(err, -EINVAL,
				"%.120s: DBN version %d has no %s records of this layout; leave "
				"--dbn-version out",
				source->series.name, version, source->kind->name);
		if (!(versions & source->kind->versions))
			return stoup_error_set(err, -EINVAL,
				"%.90s and what is before it (%.90s...) have layouts of different versions "
				"of DBN: export them apart",
				source->series.name, plan->sources[0].series.name);
		versions &= source->kind->versions;
	}
	plan->version = (uint8_t)(version ? version : 31 - __builtin_clz(versions));
	return 0;
}

/* One schema, or mixed; messages of a session are in files of any. */
static int choose_schema(struct stoup_dbn_plan *plan, struct stoup_error *err)
{
	const struct stoup_dbn_source *first = NULL, *tbbo = NULL;

	plan->schema = STOUP_DBN_OUT_MIXED;
	for (size_t i = 0; i < plan->cnt; i++) {
		const struct stoup_dbn_source *source = &plan->sources[i];

		if (source->kind->schema == STOUP_DBN_OUT_MIXED)
			continue;
		if (source->kind->schema == SCHEMA_TBBO)
			tbbo = source;
		if (first && first->kind->schema != source->kind->schema)
			plan->schema = STOUP_DBN_OUT_MIXED;
		else if (!first)
			plan->schema = source->kind->schema;
		if (tbbo && first && first->kind->schema != source->kind->schema)
			return stoup_error_set(err, -EINVAL,
				"%.90s beside %.90s: in a file of several schemas tbbo records can not be "
				"told from mbp-1; export tbbo apart",
				source->series.name, first->series.name);
		if (!first)
			first = source;
	}
	return 0;
}

int stoup_dbn_plan_make(const struct stoup_series *series, size_t cnt, int version,
	struct stoup_dbn_plan *ret, struct stoup_error *err)
{
	struct stoup_dbn_plan plan = {0};
	size_t len = stoup_dbn_dataset_len(series[0].name);
	int rc = 0;

	if (len > STOUP_DBN_OUT_DATASET_LEN)
		return stoup_error_set(err, -EINVAL,
			"%.120s: DBN has room for a dataset of %u bytes, this one has %zu; export as csv, "
			"jsonl or npy",
			series[0].name, STOUP_DBN_OUT_DATASET_LEN, len);
	memcpy(plan.dataset, series[0].name, len);
	plan.sources = calloc(cnt, sizeof(*plan.sources));
	if (!plan.sources)
		return stoup_error_set(err, -ENOMEM, "no memory for %zu series", cnt);
	for (size_t i = 0; i < cnt && rc == 0; i++)
		rc = source_make(&plan, &series[i], err);
	if (rc == 0)
		rc = choose_version(&plan, version, err);
	if (rc == 0)
		rc = choose_schema(&plan, err);
	if (rc < 0)
		stoup_dbn_plan_fini(&plan);
	else
		*ret = plan;
	return rc;
}

void stoup_dbn_plan_fini(struct stoup_dbn_plan *plan)
{
	for (size_t i = 0; i < plan->cnt; i++)
		free(plan->sources[i].symbol);
	free(plan->sources);
	*plan = (struct stoup_dbn_plan){0};
}

/* ---- metadata --------------------------------------------------------------------------------- */

static void put_int(FILE *out, uint64_t value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		putc((int)(value >> (8 * i) & 0xff), out);
}

static void put_text(FILE *out, const char *text, size_t len)
{
	size_t text_len = strlen(text);

	fwrite(text, 1, text_len, out);
	for (size_t i = text_len; i < len; i++)
		putc(0, out);
}

/* YYYYMMDD of a day since 1970. */
static uint32_t date_of(uint32_t day)
{
	uint32_t days = day + 719468u, era = days / 146097u, doe = days % 146097u;
	uint32_t yoe = (doe - doe / 1460u + doe / 36524u - doe / 146096u) / 365u;
	uint32_t doy = doe - (365u * yoe + yoe / 4u - yoe / 100u), mp = (5u * doy + 2u) / 153u;
	uint32_t month = mp < 10u ? mp + 3u : mp - 9u;

	return (yoe + era * 400u + (month <= 2u)) * 10000u + month * 100u + doy -
	       (153u * mp + 2u) / 5u + 1u;
}

/* One symbol for two instruments at once: only mixed types of symbols may have that. */
static int is_ambiguous(const struct stoup_dbn_row *rows, size_t row_cnt)
{
	for (size_t i = 1; i < row_cnt; i++)
		if (rows[i].symbol_idx == rows[i - 1].symbol_idx &&
			rows[i].first_day < rows[i - 1].end_day)
			return 1;
	return 0;
}

static int symbol_len_of(const struct stoup_dbn_plan *plan, const struct stoup_dbn_row *rows,
	size_t row_cnt, size_t *ret, struct stoup_error *err)
{
	size_t len = plan->version == 1 ? V1_SYMBOL_LEN : V2_SYMBOL_LEN;

	for (size_t i = 0; i < row_cnt; i++) {
		size_t symbol_len = strlen(rows[i].symbol);

		if (plan->version == 1 && symbol_len >= len)
			return stoup_error_set(err, -EINVAL,
				"the symbol %.100s has %zu bytes, DBN version 1 has room for %zu: leave its "
				"series out, or export them as csv, jsonl or npy",
				rows[i].symbol, symbol_len, len - 1);
		if (symbol_len >= len)
			len = symbol_len + 1;
	}
	*ret = len;
	return 0;
}

static void put_fixed(const struct stoup_dbn_plan *plan, int ambiguous, uint64_t start_ns,
	uint64_t end_ns, size_t symbol_len, FILE *out)
{
	put_text(out, plan->dataset, STOUP_DBN_OUT_DATASET_LEN);
	put_int(out, plan->schema, 2);
	put_int(out, start_ns, 8);
	put_int(out, end_ns ? end_ns : UINT64_MAX, 8);
	put_int(out, 0, 8);
	if (plan->version == 1)
		put_int(out, UINT64_MAX, 8);
	put_int(out, ambiguous ? STYPE_MIXED : STYPE_RAW, 1);
	put_int(out, 0, 1); /* stype_out: instrument_id */
	put_int(out, plan->has_ts_out, 1);
	if (plan->version > 1)
		put_int(out, symbol_len, 2);
	for (size_t i = 0; i < (plan->version == 1 ? 47u : 53u); i++)
		putc(0, out);
	put_int(out, 0, 4); /* length of the schema definition */
}

/* How many rows from `i` on are of one symbol. */
static size_t run_of(const struct stoup_dbn_row *rows, size_t row_cnt, size_t i)
{
	size_t end = i;

	while (end < row_cnt && rows[end].symbol_idx == rows[i].symbol_idx)
		end++;
	return end - i;
}

static void put_tables(
	const struct stoup_dbn_row *rows, size_t row_cnt, size_t symbol_len, FILE *out)
{
	uint32_t symbol_cnt = 0;

	for (size_t i = 0; i < row_cnt; i += run_of(rows, row_cnt, i))
		symbol_cnt++;
	put_int(out, symbol_cnt, 4);
	for (size_t i = 0; i < row_cnt; i += run_of(rows, row_cnt, i))
		put_text(out, rows[i].symbol, symbol_len);
	put_int(out, 0, 8); /* partial, not found */
	put_int(out, symbol_cnt, 4);
	for (size_t i = 0; i < row_cnt;) {
		size_t run = run_of(rows, row_cnt, i);

		put_text(out, rows[i].symbol, symbol_len);
		put_int(out, run, 4);
		for (size_t end = i + run; i < end; i++) {
			char id[16];

			snprintf(id, sizeof(id), "%u", rows[i].instrument_id);
			put_int(out, date_of(rows[i].first_day), 4);
			put_int(out, date_of(rows[i].end_day), 4);
			put_text(out, id, symbol_len);
		}
	}
}

int stoup_dbn_head_write(const struct stoup_dbn_plan *plan, const struct stoup_dbn_row *rows,
	size_t row_cnt, uint64_t start_ns, uint64_t end_ns, FILE *out, struct stoup_error *err)
{
	size_t symbol_len = 0, meta_len = 0, pad = 0;
	char *meta = NULL;
	int rc = symbol_len_of(plan, rows, row_cnt, &symbol_len, err);
	FILE *memory = rc == 0 ? open_memstream(&meta, &meta_len) : NULL;

	if (rc < 0)
		return rc;
	if (!memory)
		return stoup_error_set(err, -ENOMEM, "no memory for the metadata");
	put_fixed(plan, is_ambiguous(rows, row_cnt), start_ns, end_ns, symbol_len, memory);
	put_tables(rows, row_cnt, symbol_len, memory);
	if (fclose(memory) != 0) {
		free(meta);
		return stoup_error_set(err, -ENOMEM, "no memory for the metadata");
	}
	/* Version 3 keeps its records at multiples of 8 in the file. */
	if (plan->version == 3)
		pad = (8 - meta_len % 8) % 8;
	fwrite("DBN", 1, 3, out);
	putc(plan->version, out);
	put_int(out, meta_len + pad, 4);
	fwrite(meta, 1, meta_len, out);
	for (size_t i = 0; i < pad; i++)
		putc(0, out);
	free(meta);
	return 0;
}
