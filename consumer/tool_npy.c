/* SPDX-License-Identifier: Apache-2.0 */
/* tool_npy.c - records of a scan as a NumPy file (see tool_npy.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/tool_npy.h"
#include "consumer/tool_columns.h"

#define NPY_ALIGN    64u /* of the records in the file: NumPy's own, and event64's */
#define NPY_V1_CAP   65535u
#define MEMBER       "data.npy"
#define ZIP_DATE     0x21u /* 1980-01-01: the same records are the same file */
#define ZIP64_FROM   UINT64_C(0xffffffff)
#define ZIP_VERSION  20u
#define ZIP_VERSION6 45u

/* ---- the header ------------------------------------------------------------------------------- */

/* NumPy's type of a field. */
static void print_type(FILE *out, const struct stoup_field *field)
{
	static const char *const names[] = {"?", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8",
		"<i8", "<f4", "<f8", "|S", "|V"};

	if (field->type >= STOUP_TYPE_CHAR)
		fprintf(out, "%s%u", names[field->type], field->cnt);
	else
		fputs(names[field->type], out);
}

/* The field that begins at `off`, or the next one behind it. */
static const struct stoup_field *field_at(const struct stoup_schema *schema, uint32_t off)
{
	const struct stoup_field *next = NULL;

	for (uint32_t i = 0; i < schema->field_cnt; i++)
		if (schema->fields[i].off >= off && (!next || schema->fields[i].off < next->off))
			next = &schema->fields[i];
	return next;
}

/* Fields in the order of their offsets; what lies between them has no name, which NumPy reads as
 * padding. */
static void print_descr(FILE *out, const struct stoup_schema *schema)
{
	const char *separator = "";
	uint32_t off = 0;

	fputc('[', out);
	while (off < schema->stride) {
		const struct stoup_field *field = field_at(schema, off);
		uint32_t next = field ? field->off : schema->stride;

		if (next > off) {
			fprintf(out, "%s('', '|V%u')", separator, next - off);
			separator = ", ";
		}
		if (field) {
			fprintf(out, "%s('%s', '", separator, field->name);
			print_type(out, field);
			fputs("')", out);
			separator = ", ";
			next += stoup_type_len(field->type) * field->cnt;
		}
		off = next;
	}
	fputc(']', out);
}

int64_t stoup_npy_head(const struct stoup_schema *schema, uint64_t record_cnt, char **ret)
{
	char *text = NULL, *head;
	size_t text_len = 0, prelude, len;
	FILE *out = open_memstream(&text, &text_len);

	if (!out)
		return -ENOMEM;
	fputs("{'descr': ", out);
	print_descr(out, schema);
	fprintf(out, ", 'fortran_order': False, 'shape': (%" PRIu64 ",), }", record_cnt);
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	/* Version 1.0 unless its 16 bits are too few; a blank-padded line that ends at a multiple of 64. */
	prelude = text_len + 10 + NPY_ALIGN < NPY_V1_CAP ? 10 : 12;
	len = (prelude + text_len + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN;
	head = malloc(len + 1);
	if (!head) {
		free(text);
		return -ENOMEM;
	}
	memset(head, ' ', len);
	memcpy(head, "\x93NUMPY\x01\x00", 8);
	head[6] = prelude == 10 ? 1 : 2;
	for (size_t i = 0; i < prelude - 8; i++)
		head[8 + i] = (char)((len - prelude) >> (8 * i));
	memcpy(head + prelude, text, text_len);
	head[len - 1] = '\n';
	free(text);
	*ret = head;
	return (int64_t)len;
}

/* ---- zip -------------------------------------------------------------------------------------- */

/* Eight bytes at a time: table k is the effect of a byte that k more bytes follow. */
static uint32_t crc_tables[8][256];

static void crc_init(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
		crc_tables[0][i] = c;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			crc_tables[k][i] = crc_tables[k - 1][i] >> 8 ^
			                   crc_tables[0][crc_tables[k - 1][i] & 0xff];
}

uint32_t stoup_npz_crc(uint32_t crc, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	if (crc_tables[0][1] == 0)
		crc_init();
	crc = ~crc;
	for (; len >= 8; len -= 8, at += 8) {
		uint64_t word;

		memcpy(&word, at, 8);
		word ^= crc;
		crc = 0;
		for (int k = 0; k < 8; k++)
			crc ^= crc_tables[7 - k][word >> (8 * k) & 0xff];
	}
	for (; len > 0; len--, at++)
		crc = crc >> 8 ^ crc_tables[0][(crc ^ *at) & 0xff];
	return ~crc;
}

static uint8_t *add(uint8_t *at, uint64_t value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		*at++ = (uint8_t)(value >> (8 * i));
	return at;
}

static uint8_t *add_text(uint8_t *at, const char *text)
{
	memcpy(at, text, strlen(text));
	return at + strlen(text);
}

/* Version, flags, method stored, time, date, checksum: the same in both headers of a member. */
static uint8_t *add_member(uint8_t *at, uint32_t version, uint32_t crc)
{
	at = add(at, version, 2);
	at = add(at, 0, 2);
	at = add(at, 0, 2);
	at = add(at, 0, 2);
	at = add(at, ZIP_DATE, 2);
	return add(at, crc, 4);
}

static uint8_t *add_extra(uint8_t *at, uint64_t npy_len)
{
	at = add(at, 1, 2);
	at = add(at, 16, 2);
	at = add(at, npy_len, 8);
	return add(at, npy_len, 8);
}

/* As NumPy's own, with sizes of 64 bits whatever they are. */
size_t stoup_npz_head(uint64_t npy_len, uint32_t crc, uint8_t *dst)
{
	uint8_t *at = add(dst, 0x04034b50, 4);

	at = add_member(at, ZIP_VERSION6, crc);
	at = add(at, ZIP64_FROM, 4);
	at = add(at, ZIP64_FROM, 4);
	at = add(at, strlen(MEMBER), 2);
	at = add(at, 20, 2);
	at = add_text(at, MEMBER);
	at = add_extra(at, npy_len);
	return (size_t)(at - dst);
}

/* The directory's one entry. */
static uint8_t *add_directory(uint8_t *at, uint64_t npy_len, uint32_t crc, int zip64)
{
	uint32_t version = zip64 ? ZIP_VERSION6 : ZIP_VERSION;

	at = add(at, 0x02014b50, 4);
	at = add(at, version, 2);
	at = add_member(at, version, crc);
	at = add(at, zip64 ? ZIP64_FROM : npy_len, 4);
	at = add(at, zip64 ? ZIP64_FROM : npy_len, 4);
	at = add(at, strlen(MEMBER), 2);
	at = add(at, zip64 ? 20 : 0, 2);
	at = add(at, 0, 2); /* comment */
	at = add(at, 0, 2); /* disk */
	at = add(at, 0, 2); /* attributes of the text kind */
	at = add(at, 0, 4); /* of the file */
	at = add(at, 0, 4); /* offset of the local header */
	at = add_text(at, MEMBER);
	return zip64 ? add_extra(at, npy_len) : at;
}

/* The end record of 64 bits and its locator. */
static uint8_t *add_end64(uint8_t *at, uint64_t dir_off, uint64_t dir_len)
{
	at = add(at, 0x06064b50, 4);
	at = add(at, 44, 8);
	at = add(at, ZIP_VERSION6, 2);
	at = add(at, ZIP_VERSION6, 2);
	at = add(at, 0, 4);
	at = add(at, 0, 4);
	at = add(at, 1, 8);
	at = add(at, 1, 8);
	at = add(at, dir_len, 8);
	at = add(at, dir_off, 8);
	at = add(at, 0x07064b50, 4);
	at = add(at, 0, 4);
	at = add(at, dir_off + dir_len, 8);
	return add(at, 1, 4);
}

size_t stoup_npz_tail(uint64_t npy_len, uint32_t crc, uint8_t *dst)
{
	uint8_t head[STOUP_NPZ_CAP];
	uint64_t dir_off = stoup_npz_head(npy_len, crc, head) + npy_len, dir_len;
	int zip64 = dir_off >= ZIP64_FROM;
	uint8_t *at = add_directory(dst, npy_len, crc, zip64);

	dir_len = (uint64_t)(at - dst);
	if (zip64)
		at = add_end64(at, dir_off, dir_len);
	at = add(at, 0x06054b50, 4);
	at = add(at, 0, 2);
	at = add(at, 0, 2);
	at = add(at, 1, 2);
	at = add(at, 1, 2);
	at = add(at, dir_len, 4);
	at = add(at, zip64 ? ZIP64_FROM : dir_off, 4);
	at = add(at, 0, 2);
	return (size_t)(at - dst);
}

/* ---- scans ------------------------------------------------------------------------------------ */

struct pass {
	FILE *out; /* NULL: count alone */
	int wants_crc;
	uint32_t crc;
	uint64_t left, record_cnt;
	const struct stoup_schema *from, *to; /* fields to be packed; the same: whole records */
	uint8_t *packed;                      /* room for one record */
};

static int bytes_take(struct pass *pass, const void *bytes, size_t len)
{
	if (pass->wants_crc)
		pass->crc = stoup_npz_crc(pass->crc, bytes, len);
	return pass->out && fwrite(bytes, 1, len, pass->out) != len ? -errno : 0;
}

/* The chosen fields of a record, one behind the other. */
static int record_take(struct pass *pass, const uint8_t *record)
{
	if (pass->from == pass->to)
		return bytes_take(pass, record, pass->from->stride);
	for (uint32_t i = 0; i < pass->to->field_cnt; i++) {
		const struct stoup_field *field = &pass->to->fields[i];

		memcpy(pass->packed + field->off,
			record + stoup_schema_field(pass->from, field->name)->off,
			(size_t)stoup_type_len(field->type) * field->cnt);
	}
	return bytes_take(pass, pass->packed, pass->to->stride);
}

/* A stoup_take. What comes beyond the number that the header has is looked at no more. */
static int64_t run_take(
	void *arg, const struct stoup_run *run, uint64_t *used, struct stoup_error *err)
{
	struct pass *pass = arg;
	uint64_t cnt = run->cnt < pass->left ? run->cnt : pass->left;
	const uint8_t *base = (const uint8_t *)run->span->base + run->from * run->span->stride;
	int rc = 0;

	pass->left -= cnt;
	pass->record_cnt += cnt;
	*used = run->cnt;
	if (!pass->out && !pass->wants_crc)
		return (int64_t)run->cnt;
	if (run->step > 0 && pass->from == pass->to) {
		rc = bytes_take(pass, base, cnt * run->span->stride);
		cnt = 0;
	}
	for (uint64_t i = 0; i < cnt && rc == 0; i++)
		rc = record_take(pass, run->step > 0 ? base + i * run->span->stride
						     : base - i * run->span->stride);
	if (rc < 0)
		return stoup_error_set(err, rc, "standard output: %s", strerror(-rc));
	return (int64_t)run->cnt;
}

static int write_file(struct stoup_query *query, const char *head, size_t head_len, uint32_t crc,
	int npz, struct pass *pass, struct stoup_error *err)
{
	uint64_t npy_len = head_len + pass->left * pass->to->stride;
	uint8_t zip[STOUP_NPZ_CAP];
	size_t len = npz ? stoup_npz_head(npy_len, crc, zip) : 0;
	int rc;

	if (fwrite(zip, 1, len, pass->out) != len ||
		fwrite(head, 1, head_len, pass->out) != head_len)
		return stoup_error_set(err, -errno, "standard output: %s", strerror(errno));
	rc = stoup_query_run(query, run_take, pass, err);
	if (rc < 0)
		return rc;
	if (pass->left > 0 || (npz && pass->crc != crc))
		return stoup_error_set(err, -ESTALE,
			"%.100s changed while it was read: what was written is no file; try again",
			query->sources[0].series.name);
	len = npz ? stoup_npz_tail(npy_len, crc, zip) : 0;
	if (fwrite(zip, 1, len, pass->out) != len || fflush(pass->out) != 0)
		return stoup_error_set(err, -errno, "standard output: %s", strerror(errno));
	return 0;
}

/* All passes over rows whose number is known. */
static int passes(
	struct stoup_query *query, struct pass *pass, int npz, FILE *out, struct stoup_error *err)
{
	uint64_t record_cnt = pass->left;
	char *head = NULL;
	int64_t head_len = stoup_npy_head(pass->to, record_cnt, &head);
	uint32_t first, crc = 0;
	int rc = 0;

	if (head_len < 0)
		return stoup_error_set(err, -ENOMEM, "no memory for the header of an array");
	first = stoup_npz_crc(0, head, (size_t)head_len);
	pass->wants_crc = npz;
	pass->crc = first;
	if (npz)
		rc = stoup_query_run(query, run_take, pass, err);
	crc = pass->crc;
	pass->out = out;
	pass->left = record_cnt;
	pass->record_cnt = 0;
	pass->crc = first;
	if (rc == 0)
		rc = write_file(query, head, (size_t)head_len, crc, npz, pass, err);
	free(head);
	return rc;
}

int64_t stoup_tool_npy_query(struct stoup_query *query, const struct stoup_select *select, int npz,
	FILE *out, struct stoup_error *err)
{
	const struct stoup_schema *schema = query->sources[0].schema;
	struct stoup_schema *packed = select->cnt > 0 ? stoup_columns_pack(schema, select) : NULL;
	struct pass pass = {.from = schema, .to = packed ? packed : schema};
	int rc = 0;

	pass.packed = malloc(pass.to->stride ? pass.to->stride : 1);
	if (!pass.packed || (select->cnt > 0 && !packed))
		rc = stoup_error_set(err, -ENOMEM, "no memory for a record");
	if (rc == 0)
		rc = stoup_query_count(query, &pass.left, err);
	if (rc == 0)
		rc = passes(query, &pass, npz, out, err);
	free(pass.packed);
	free(packed);
	return rc < 0 ? rc : (int64_t)pass.record_cnt;
}

int64_t stoup_tool_npy(struct stoup *st, const struct stoup_series *series,
	const struct stoup_range *range, int npz, FILE *out, struct stoup_error *err)
{
	struct stoup_source source = {.series = *series, .schema = series->schema};
	struct stoup_query query = {.st = st,
		.sources = &source,
		.source_cnt = 1,
		.range = *range,
		.limit = UINT64_MAX};
	const struct stoup_select all = {.cnt = 0};

	return stoup_tool_npy_query(&query, &all, npz, out, err);
}
