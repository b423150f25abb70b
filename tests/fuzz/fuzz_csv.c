/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_csv.c - delimited texts, the options that say what they are, and schema files.
 *
 *      bytes[0] & 3  0: a schema file
 *                    2: a delimiter, CSV
 *                    1, 3: options, one NAME=VALUE a line; an empty line; a schema file, when
 *                       schema=@ was among them, and an empty line; CSV
 *
 * Checked: a schema that was read is valid and, written again as text, is the same layout; rows
 * written again with all fields quoted are the same rows; records are the same whatever pieces the
 * text comes in; each number or time of a record, printed, reads back as the same bits.
 */
#include <errno.h>
#include "producer/csv_table.h"
#include "producer/preset.h"
#include "producer/csv_value.h"
#include "producer/schema_file.h"
#include "shm/format.h"
#include "tests/fuzz/fuzz.h"

#define ROW_CAP  64 /* rows and records that are compared */
#define TEXT_CAP (256u << 10)

/* ---- schema files ----------------------------------------------------------------------------- */

static int is_signed(uint32_t type)
{
	return type == STOUP_TYPE_I8 || type == STOUP_TYPE_I16 || type == STOUP_TYPE_I32 ||
	       type == STOUP_TYPE_I64;
}

static void write_null(FILE *out, const struct stoup_field *field)
{
	uint32_t unused = 64 - 8 * stoup_type_len(field->type);

	if (field->type == STOUP_TYPE_F32 || field->type == STOUP_TYPE_F64)
		fprintf(out, " null=nan");
	else if (is_signed(field->type))
		fprintf(out, " null=%lld", (long long)(field->null_bits << unused) >> unused);
	else
		fprintf(out, " null=%llu", (unsigned long long)field->null_bits);
}

static void write_schema(FILE *out, const struct stoup_schema *schema)
{
	static const char *const types[] = {"", "u8", "i8", "u16", "i16", "u32", "i32", "u64",
		"i64", "f32", "f64", "char", "bytes"};

	fprintf(out, "schema %s\nstride %u\nalign %u\n", schema->name, schema->stride,
		schema->align);
	if (schema->flags & STOUP_SCHEMA_BAR)
		fprintf(out, "bar %lluns\n", (unsigned long long)schema->interval_ns);
	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		const struct stoup_field *field = &schema->fields[i];

		fprintf(out, "field %s %s", field->name, types[field->type]);
		if (field->type >= STOUP_TYPE_CHAR)
			fprintf(out, "[%u]", field->cnt);
		fprintf(out, " at=%u scale=%d%s%s%s", field->off, field->exp10,
			field->flags & STOUP_FIELD_TIME ? " time" : "",
			field->flags & STOUP_FIELD_DURATION ? " duration" : "",
			field->flags & STOUP_FIELD_HIDDEN ? " hidden" : "");
		if (field->unit[0])
			fprintf(out, " unit=%.8s", field->unit);
		if (field->flags & STOUP_FIELD_NULL)
			write_null(out, field);
		fprintf(out, "\n");
		if (field->flags & STOUP_FIELD_KEY)
			fprintf(out, "key %s\n", field->name);
	}
}

static void try_schema(const char *text, size_t len)
{
	struct stoup_schema_draft *draft = NULL, *again = NULL;
	struct stoup_error err = {0};
	char *written = NULL;
	size_t written_len = 0;
	FILE *out;
	int rc = stoup_schema_text_parse(text, len, "fuzz", &draft, &err);

	MUST(rc == 0 || (err.code == rc && err.text[0]));
	if (rc)
		return;
	MUST(stoup_schema_valid(&draft->schema, &err) == 0);
	MUST(draft->schema.hash == stoup_schema_hash(&draft->schema));
	out = open_memstream(&written, &written_len);
	MUST(out != NULL);
	write_schema(out, &draft->schema);
	fclose(out);
	rc = stoup_schema_text_parse(written, written_len, "again", &again, &err);
	if (rc)
		fprintf(stderr, "%s\n%s\n", err.text, written);
	MUST(rc == 0);
	MUST(again->schema.hash == draft->schema.hash &&
		again->schema.align == draft->schema.align);
	MUST(memcmp(again->fields, draft->fields, sizeof(again->fields)) == 0);
	stoup_schema_draft_destroy(again);
	stoup_schema_draft_destroy(draft);
	free(written);
}

/* ---- rows ------------------------------------------------------------------------------------- */

struct source {
	const char *at;
	size_t left, piece;
};

static int64_t source_read(void *arg, void *dst, size_t len, struct stoup_error *err)
{
	struct source *source = arg;

	(void)err;
	if (len > source->piece)
		len = source->piece;
	if (len > source->left)
		len = source->left;
	memcpy(dst, source->at, len);
	source->at += len;
	source->left -= len;
	return (int64_t)len;
}

/* Read up to ROW_CAP rows and write them with all fields quoted. How it ended: 1 there are more. */
static int rows_again(struct source source, char delimiter, FILE *out, unsigned *ret_cnt)
{
	struct stoup_error err = {0};
	struct stoup_csv *csv = NULL;
	struct stoup_csv_row row;
	int rc = stoup_csv_create(source_read, &source, delimiter, &csv, &err);

	MUST(rc == 0 || (rc == -EINVAL && err.text[0]));
	*ret_cnt = 0;
	while (rc == 0 && (rc = stoup_csv_next(csv, &row, &err)) > 0) {
		MUST(row.field_cnt >= 1 && row.line >= 1);
		for (uint32_t i = 0; i < row.field_cnt; i++) {
			fputc('"', out);
			for (uint32_t at = 0; at < row.fields[i].len; at++) {
				char c = row.fields[i].text[at];

				MUST(c != 0);
				if (c == '"')
					fputc('"', out);
				fputc(c, out);
			}
			fprintf(out, "\"%s", i + 1 < row.field_cnt ? (char[]){delimiter, 0} : "\n");
		}
		if (++*ret_cnt == ROW_CAP)
			break;
		rc = 0;
	}
	MUST(rc >= 0 || err.text[0]);
	stoup_csv_destroy(csv);
	return rc;
}

static void try_rows(const char *text, size_t len, char delimiter, size_t piece)
{
	char *one = NULL, *two = NULL, *three = NULL;
	size_t one_len = 0, two_len = 0, three_len = 0;
	unsigned one_cnt, two_cnt, three_cnt;
	FILE *out = open_memstream(&one, &one_len);
	int rc = rows_again((struct source){text, len, SIZE_MAX}, delimiter, out, &one_cnt);

	fclose(out);
	out = open_memstream(&two, &two_len);
	MUST(rows_again((struct source){text, len, piece}, delimiter, out, &two_cnt) == rc);
	fclose(out);
	MUST(one_cnt == two_cnt && one_len == two_len && memcmp(one, two, one_len) == 0);
	out = open_memstream(&three, &three_len);
	if (one_cnt > 0) {
		rc = rows_again((struct source){one, one_len, piece}, delimiter, out, &three_cnt);
		MUST(rc >= 0 && three_cnt == one_cnt);
	}
	fclose(out);
	MUST(one_cnt == 0 || (three_len == one_len && memcmp(one, three, one_len) == 0));
	free(one);
	free(two);
	free(three);
}

/* ---- records ---------------------------------------------------------------------------------- */

/* Every value that was read prints as a text that reads as the same value. */
static void prints_back(const struct stoup_schema *schema, const uint8_t *record)
{
	const struct stoup_timestamp_format iso = {.kind = STOUP_TIMESTAMP_ISO};
	uint8_t *again = calloc(1, schema->stride);
	char text[STOUP_FORMAT_CAP];

	MUST(again != NULL);
	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		const struct stoup_field *field = &schema->fields[i];
		const char *why = "";
		int64_t len;

		if (field->type == STOUP_TYPE_CHAR || field->type == STOUP_TYPE_BYTES)
			continue;
		len = stoup_format_field(field, record, text, sizeof(text));
		MUST(len >= 0 && len < STOUP_FORMAT_CAP && text[len] == 0);
		MUST(stoup_csv_value_parse(field, &iso, text, (size_t)len, again, &why) == 0);
		MUST(memcmp(again + field->off, record + field->off, stoup_type_len(field->type)) ==
			0);
	}
	free(again);
}

/* Read a table; FNV-1a of all its records, and how it ended. */
static int table_hash(
	const struct stoup_csv_options *options, struct source source, uint64_t *ret, int print)
{
	struct stoup_csv_table *table;
	struct stoup_csv_record record;
	struct stoup_error err = {0};
	int rc = stoup_csv_table_create(source_read, &source, "fuzz", options, &table, &err);

	*ret = UINT64_C(0xcbf29ce484222325);
	MUST(rc == 0 || (err.code == rc && err.text[0]));
	if (rc)
		return rc;
	for (int i = 0; i < ROW_CAP && (rc = stoup_csv_table_next(table, &record, &err)) > 0; i++) {
		const struct stoup_schema *schema = stoup_csv_table_schema(table);
		const uint8_t *bytes = record.bytes;

		MUST(record.key > 0 && record.where.line >= 1);
		MUST(memcmp(bytes + schema->key_off, &record.key, 8) == 0);
		for (uint32_t at = 0; at < schema->stride; at++)
			*ret = (*ret ^ bytes[at]) * UINT64_C(0x100000001b3);
		if (print && options->columns && !options->schema)
			prints_back(schema, bytes);
	}
	MUST(rc >= 0 || (err.code == rc && err.text[0]));
	stoup_csv_table_destroy(table);
	return rc;
}

/* Cut [*at, end) behind the next empty line; the part in front of it, NUL-terminated, on the heap. */
static char *section(const char **at, const char *end)
{
	const char *stop = memmem(*at, (size_t)(end - *at), "\n\n", 2);
	size_t len = (size_t)((stop ? stop : end) - *at);
	char *text = malloc(len + 1);

	MUST(text != NULL);
	memcpy(text, *at, len);
	text[len] = 0;
	*at = stop ? stop + 2 : end;
	return text;
}

/* Set options from NAME=VALUE lines; they point into `lines`. The file of schema=@ is `path`. */
static int options_read(struct stoup_csv_options *options, char *lines, const char *path)
{
	struct stoup_error err = {0};
	int rc = 0;

	stoup_csv_options_init(options);
	for (char *save, *line = strtok_r(lines, "\n", &save); line && rc == 0;
		line = strtok_r(NULL, "\n", &save)) {
		char *value = strchr(line, '=');

		if (!value)
			return -ENOENT;
		*value++ = 0;
		/* What stoup ingest has of its own. */
		if (strcmp(line, "format") == 0 && stoup_preset_named(value))
			options->format = value;
		else if (strcmp(line, "symbol") == 0)
			options->symbol = value;
		else if (strcmp(line, "day") == 0)
			options->day = atoi(value) % 50000;
		if (strcmp(line, "x") == 0 || strcmp(line, "format") == 0 ||
			strcmp(line, "symbol") == 0 || strcmp(line, "day") == 0)
			continue;
		/* No files of this machine. */
		if (strcmp(line, "schema") == 0 && strpbrk(value, "/@"))
			value = (char *)(uintptr_t)path;
		rc = stoup_csv_option(options, line, value, &err);
		MUST(rc == 0 || rc == -ENOENT || (rc == -EINVAL && err.text[0]));
	}
	return rc;
}

static void try_table(const char *text, size_t len, size_t piece)
{
	const char *at = text, *end = text + len;
	char *lines = section(&at, end), *schema = NULL, path[64];
	struct stoup_csv_options options;
	uint64_t whole, pieces;
	int fd, rc;

	if (strstr(lines, "schema=@"))
		schema = section(&at, end);
	fd = schema ? fuzz_file(schema, strlen(schema)) : -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (options_read(&options, lines, path) == 0) {
		len = (size_t)(end - at);
		rc = table_hash(&options, (struct source){at, len, SIZE_MAX}, &whole, 1);
		MUST(table_hash(&options, (struct source){at, len, piece}, &pieces, 0) == rc);
		MUST(whole == pieces);
	}
	if (fd >= 0)
		close(fd);
	free(schema);
	free(lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	size_t piece;
	char *text;

	if (len < 2 || len > TEXT_CAP)
		return 0;
	piece = bytes[0] / 4 + 1u;
	/* A copy of exactly its length: the texts of CSV are not NUL-terminated. */
	text = malloc(len - 1);
	MUST(text != NULL);
	memcpy(text, bytes + 1, len - 1);
	if (bytes[0] & 1)
		try_table(text, len - 1, piece);
	else if (bytes[0] & 2)
		try_rows(text + 1, len - 2, text[0], piece);
	else
		try_schema(text, len - 1);
	free(text);
	return 0;
}
