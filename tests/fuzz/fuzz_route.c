/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_route.c - which series a DBN record goes to, against a slow model of mapping and names.
 *
 *      bytes[0]  version 1 to 3, ts_out, direction of the mapping, one stream, symbols or parents
 *      bytes[1]  the schema that the metadata name, or mixed
 *      then      [mappings: count][symbol][intervals: count][first day, days, instrument] ...
 *      the rest  records: [kind][instrument][day][for mapping records: symbol] ...
 *      symbol    [length][characters of a small alphabet]
 *
 * The target writes a whole DBN file of it, from the published layout alone, and says by looking at each
 * interval anew which names every record must go to. The import must put each record, byte for byte
 * and with its key, into exactly those series, once each.
 */
#include <errno.h>
#include "producer/ingest_dbn.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/dbn_build.h"

#define DAY_NS       UINT64_C(86400000000000)
#define DAY_FIRST    18624u /* 2020-12-28 */
#define MAPPING_CAP  12
#define INTERVAL_CAP 48
#define RECORD_CAP   256
#define SYMBOL_CAP   22 /* with its NUL: what version 1 has room for */
#define NAME_CAP     128
#define SERIES_CAP   1024

struct interval {
	uint32_t id, first, last; /* days, the last one not among them */
	uint32_t row;             /* the mapping that it is of */
	char symbol[SYMBOL_CAP];
};

struct record {
	size_t off; /* in the file */
	uint64_t key;
	uint32_t len, seen_cnt, name_cnt;
	uint64_t seen;                /* bit i: names[i] came */
	uint16_t names[INTERVAL_CAP]; /* of the model's */
};

/* Kinds of records: type, length in versions 1 to 3, name of the schema. */
static const struct kind {
	uint8_t rtype;
	uint16_t lens[3];
	const char *names[3];
} kinds[] = {
	{0xa0, {56, 56, 56}, {"mbo", "mbo", "mbo"}},
	{0x00, {48, 48, 48}, {"trades", "trades", "trades"}},
	{0x01, {80, 80, 80}, {"mbp-1", "mbp-1", "mbp-1"}},
	{0x0a, {368, 368, 368}, {"mbp-10", "mbp-10", "mbp-10"}},
	{0x21, {56, 56, 56}, {"ohlcv-1m", "ohlcv-1m", "ohlcv-1m"}},
	{0x12, {40, 40, 40}, {"status", "status", "status"}},
	{0x13, {360, 400, 520}, {"definition-v1", "definition-v2", "definition"}},
	{0x18, {64, 64, 80}, {"statistics-v1", "statistics-v1", "statistics"}},
	{0x15, {80, 320, 320}, {"error-v1", "error", "error"}},
	{0x17, {80, 320, 320}, {"system-v1", "system", "system"}},
	{0x16, {80, 176, 176}, {"symbol-mapping-v1", "symbol-mapping", "symbol-mapping"}},
	{0x7f, {32, 32, 32}, {NULL, NULL, NULL}}, /* not known: skipped */
};

#define KIND_CNT     (sizeof(kinds) / sizeof(kinds[0]))
#define KIND_ERROR   8
#define KIND_SYSTEM  9
#define KIND_MAPPING 10

static struct model {
	struct interval intervals[INTERVAL_CAP];
	uint32_t interval_cnt;
	char live[256][SYMBOL_CAP]; /* per instrument, from mapping records */
	struct record records[RECORD_CAP];
	uint32_t record_cnt;
	char names[SERIES_CAP][NAME_CAP]; /* of series, expected or opened */
	uint32_t name_cnt;
	int version, has_ts_out, one_stream, by_id, is_parent;
	const uint8_t *file;
} * model;

/* ---- days and names --------------------------------------------------------------------------- */

/* YYYYMMDD of a day since 1970, by counting. */
static uint32_t date_of(uint32_t day)
{
	static const uint32_t lens[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	uint32_t year = 1970, month = 0;

	for (uint32_t len = 365; day >= len; len = year % 4 ? 365 : 366) {
		day -= len;
		year++;
	}
	for (uint32_t len = 31; day >= len; len = month == 1 && year % 4 == 0 ? 29 : lens[month]) {
		day -= len;
		month++;
	}
	return year * 10000 + (month + 1) * 100 + day + 1;
}

static void name_make(char *dst, const char *symbol, const struct kind *kind)
{
	char escaped[3 * SYMBOL_CAP], *at = escaped;

	for (; *symbol; symbol++)
		if (*symbol == '/' || *symbol == '%' || *symbol < ' ')
			at += sprintf(at, "%%%02X", (unsigned char)*symbol);
		else
			*at++ = *symbol;
	*at = 0;
	snprintf(dst, NAME_CAP, "TEST.SET/%s/%s%s", escaped, kind->names[model->version - 1],
		model->has_ts_out ? ".ts_out" : "");
}

static uint16_t name_idx(const char *name)
{
	uint32_t i = 0;

	while (i < model->name_cnt && strcmp(model->names[i], name) != 0)
		i++;
	if (i == model->name_cnt) {
		MUST(i < SERIES_CAP && strlen(name) < NAME_CAP);
		strcpy(model->names[model->name_cnt++], name);
	}
	return (uint16_t)i;
}

static void expect(struct record *record, const char *symbol, const struct kind *kind)
{
	char name[NAME_CAP];
	uint16_t idx;

	name_make(name, symbol, kind);
	idx = name_idx(name);
	for (uint32_t i = 0; i < record->name_cnt; i++)
		if (record->names[i] == idx)
			return;
	record->names[record->name_cnt++] = idx;
}

static void expect_all(struct record *record, uint32_t id, uint32_t day, uint32_t kind_idx)
{
	const struct kind *kind = &kinds[kind_idx];
	char number[16];

	if (!kind->names[0])
		return;
	if (model->one_stream || kind_idx == KIND_ERROR || kind_idx == KIND_SYSTEM) {
		expect(record, "ALL", kind);
		return;
	}
	for (uint32_t i = 0; i < model->interval_cnt; i++) {
		const struct interval *interval = &model->intervals[i];

		if (interval->id == id && day >= interval->first && day < interval->last)
			expect(record, interval->symbol, kind);
	}
	if (record->name_cnt > 0)
		return;
	snprintf(number, sizeof(number), "%u", id);
	expect(record, model->live[id][0] ? model->live[id] : number, kind);
}

/* ---- the file --------------------------------------------------------------------------------- */

static void symbol_read(struct fuzz_in *in, char symbol[SYMBOL_CAP])
{
	static const char alphabet[] = "ABCZ019. /%-\t~ab";
	size_t len = fuzz_u8(in) % SYMBOL_CAP;

	for (size_t i = 0; i < len; i++)
		symbol[i] = alphabet[fuzz_u8(in) & 15];
	symbol[len] = 0;
}

static void write_mappings(struct fuzz_in *in, struct dbn_bytes *dbn, int by_id)
{
	uint32_t cnt = fuzz_u8(in) % MAPPING_CAP;

	for (uint32_t i = 0; i < cnt; i++) {
		char symbol[SYMBOL_CAP], number[16];
		uint32_t id = fuzz_u8(in), intervals = fuzz_u8(in) % 5;

		symbol_read(in, symbol);
		if (!symbol[0])
			strcpy(symbol, "A");
		snprintf(number, sizeof(number), "%u", id);
		dbn_mapping(dbn, by_id ? number : symbol);
		while (intervals-- > 0 && model->interval_cnt < INTERVAL_CAP) {
			struct interval *added = &model->intervals[model->interval_cnt++];

			/* Further intervals of a row name another symbol, or another instrument. */
			if (by_id && intervals > 0 && fuzz_u8(in) & 1)
				symbol[0] = (char)('a' + intervals);
			else if (!by_id)
				id = (id + fuzz_u8(in) % 3) % 256;
			snprintf(number, sizeof(number), "%u", id);
			added->id = id;
			added->row = i;
			added->first = DAY_FIRST + fuzz_u8(in) % 8;
			added->last = added->first + fuzz_u8(in) % 6;
			strcpy(added->symbol, symbol);
			dbn_interval(dbn, date_of(added->first), date_of(added->last),
				by_id ? symbol : number);
		}
	}
}

static void write_record(struct fuzz_in *in, struct dbn_bytes *dbn)
{
	struct record *record = &model->records[model->record_cnt++];
	uint32_t kind_idx = fuzz_u8(in) % KIND_CNT, id = fuzz_u8(in);
	uint32_t day = DAY_FIRST + fuzz_u8(in) % 10;
	const struct kind *kind = &kinds[kind_idx];
	uint32_t base_len = kind->lens[model->version - 1];
	uint8_t *at;

	*record = (struct record){.off = dbn->len,
		.key = day * DAY_NS + model->record_cnt,
		.len = base_len + (model->has_ts_out ? 8u : 0u)};
	at = dbn_record(dbn, kind->rtype, record->len, id, record->key);
	/* Wherever the key of this kind stands, it is the same. */
	for (uint32_t off = 16; off + 8 <= record->len; off += 8)
		dbn_int(at + off, 8, record->key);
	if (kind_idx == KIND_MAPPING) {
		char symbol[SYMBOL_CAP];
		int first = model->version == 1;

		symbol_read(in, symbol);
		memset(at + 16, 0, base_len - 16);
		strcpy((char *)at + (first ? 38 : 89), symbol);
		if (symbol[0])
			strcpy(model->live[id], symbol);
	}
	expect_all(record, id, day, kind_idx);
}

/* ---- the sink --------------------------------------------------------------------------------- */

static int64_t take_series(
	void *arg, const char *name, const struct stoup_schema *schema, struct stoup_error *err)
{
	(void)arg;
	MUST(stoup_schema_valid(schema, err) == 0);
	return name_idx(name);
}

static int take_record(void *arg, uint32_t series_idx, int64_t key, const void *bytes,
	const struct stoup_where *where, struct stoup_error *err)
{
	struct record *record = model->records;
	uint32_t i = 0;

	(void)arg;
	(void)err;
	while (record < model->records + model->record_cnt && record->off != where->file_off)
		record++;
	MUST(record < model->records + model->record_cnt);
	MUST((uint64_t)key == record->key);
	MUST(memcmp(bytes, model->file + record->off, record->len) == 0);
	while (i < record->name_cnt && record->names[i] != series_idx)
		i++;
	MUST(i < record->name_cnt && !(record->seen >> i & 1));
	record->seen |= UINT64_C(1) << i;
	record->seen_cnt++;
	return 0;
}

static void drop_note(void *arg, const char *text)
{
	(void)arg;
	MUST(strlen(text) > 0);
}

/* Does one mapping, or one instrument where those were asked for, have two answers for one day? */
static int has_overlap(void)
{
	for (uint32_t i = 0; i < model->interval_cnt; i++) {
		const struct interval *a = &model->intervals[i];

		for (uint32_t j = 0; j < i; j++) {
			const struct interval *b = &model->intervals[j];

			if ((model->by_id ? a->id == b->id : a->row == b->row) &&
				a->first < b->last && b->first < a->last && a->first < a->last &&
				b->first < b->last)
				return !model->is_parent;
		}
	}
	return 0;
}

static void import(const struct dbn_bytes *dbn)
{
	const struct stoup_sink sink = {
		.series = take_series, .put = take_record, .note = drop_note};
	const struct stoup_dbn_options options = {.one_stream = model->one_stream};
	int fd = fuzz_file(dbn->bytes, dbn->len), rc;
	struct stoup_error err = {0};
	struct stoup_input *input;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	MUST(stoup_input_open(path, &input, &err) == 0);
	close(fd);
	rc = stoup_ingest_dbn(&sink, input, &options, &err);
	stoup_input_close(input);
	if (has_overlap()) {
		MUST(rc == -EBADMSG && strstr(err.text, "intervals that overlap"));
		return;
	}
	if (rc < 0)
		fprintf(stderr, "%s\n", err.text);
	MUST(rc == 0);
	for (uint32_t i = 0; i < model->record_cnt; i++)
		MUST(model->records[i].seen_cnt == model->records[i].name_cnt);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_in in = {bytes, len};
	uint8_t flags = fuzz_u8(&in), schema = fuzz_u8(&in);
	int by_id = flags >> 3 & 1, is_parent = !by_id && (flags >> 5 & 1) == 0;
	struct dbn_bytes dbn;

	if (!model)
		model = malloc(sizeof(*model));
	MUST(model != NULL);
	/* The records are set one by one. */
	memset(model, 0, offsetof(struct model, records));
	model->record_cnt = model->name_cnt = 0;
	model->version = flags % 4 % 3 + 1;
	model->has_ts_out = flags >> 2 & 1;
	model->one_stream = flags >> 4 & 1;
	model->by_id = by_id;
	model->is_parent = is_parent;
	dbn_begin(&dbn, model->version, schema & 128 ? 0xffff : schema % 3,
		by_id       ? 0
		: is_parent ? 4
			    : 1,
		by_id ? 1 : 0, (unsigned)model->has_ts_out);
	dbn_symbol_tables(&dbn, "A");
	write_mappings(&in, &dbn, by_id);
	dbn_end_meta(&dbn);
	while (in.left > 0 && model->record_cnt < RECORD_CAP)
		write_record(&in, &dbn);
	model->file = dbn.bytes;
	import(&dbn);
	dbn_free(&dbn);
	return 0;
}
