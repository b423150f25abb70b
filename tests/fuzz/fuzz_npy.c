/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_npy.c - headers of NumPy files.
 *
 *      input   [0: a whole file | 1: the header's text alone] [bytes ...]
 *
 * Checked: what is accepted has its fields one behind the other inside the stride, with names that a
 * schema may have; written again as text it reads as the same; an error has its text; and the
 * same bytes cut at any place never read as more rows or fields.
 */
#include <errno.h>
#include <inttypes.h>
#include "producer/npy.h"
#include "tests/fuzz/fuzz.h"

#define TEXT_CAP (64u << 10)

static const char *const types[] = {
	"", "u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f4", "<f8", "S", "V"};

static void write_header(FILE *out, const struct stoup_npy *npy)
{
	fprintf(out, "{'shape': (%" PRIu64 ",), 'fortran_order': True, 'descr': [", npy->row_cnt);
	for (uint32_t i = 0; i < npy->field_cnt; i++) {
		const struct stoup_field *field = &npy->fields[i];

		fprintf(out, "(\"%s\",'", field->name);
		if (field->flags & STOUP_FIELD_NULL)
			fprintf(out, "%s8[ns]", field->flags & STOUP_FIELD_TIME ? "<M" : "<m");
		else if (field->type < STOUP_TYPE_CHAR)
			fputs(types[field->type], out);
		else
			fprintf(out, "%s%u", types[field->type], field->cnt);
		fputs("')\n,", out);
	}
	fputs("]}", out);
}

static void check(const struct stoup_npy *npy)
{
	uint32_t end = 0;

	MUST(npy->field_cnt >= 1 && npy->field_cnt <= STOUP_SCHEMA_FIELD_CAP);
	MUST(npy->stride >= 1 && npy->stride <= STOUP_RECORD_LEN_CAP);
	for (uint32_t i = 0; i < npy->field_cnt; i++) {
		const struct stoup_field *field = &npy->fields[i];

		MUST(field->off == end && field->cnt >= 1);
		MUST(field->type >= STOUP_TYPE_U8 && field->type <= STOUP_TYPE_LAST);
		MUST(field->cnt == 1 || field->type >= STOUP_TYPE_CHAR);
		MUST(field->name[0] || field->type == STOUP_TYPE_BYTES);
		MUST(memchr(field->name, 0, sizeof(field->name)) != NULL);
		end += stoup_type_len(field->type) * field->cnt;
	}
	MUST(end == npy->stride);
}

static int parse(const char *text, size_t len, struct stoup_npy *ret)
{
	struct stoup_error err = {0};
	/* Of exactly its length: nothing behind it may be read. */
	char *copy = malloc(len + (len == 0));
	int rc;

	MUST(copy != NULL);
	memcpy(copy, text, len);
	rc = stoup_npy_header(copy, len, 10, ret, &err);
	free(copy);
	MUST(rc == 0 || rc == -EBADMSG || rc == -ENOTSUP);
	MUST(rc == 0 || (err.code == rc && err.text[0]));
	return rc;
}

static void try_header(const char *text, size_t len)
{
	static struct stoup_npy npy, again;
	char *written = NULL;
	size_t written_len = 0;
	FILE *out;

	if (parse(text, len, &npy) < 0)
		return;
	check(&npy);
	out = open_memstream(&written, &written_len);
	MUST(out != NULL);
	write_header(out, &npy);
	fclose(out);
	MUST(parse(written, written_len, &again) == 0);
	MUST(memcmp(&npy, &again, sizeof(npy)) == 0);
	/* A dictionary that is cut is none. */
	MUST(parse(written, written_len - 1, &again) == -EBADMSG);
	MUST(parse(written, written_len / 2, &again) < 0);
	free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct stoup_npy_prelude prelude;
	struct stoup_error err = {0};
	int rc;

	if (len < 1 || len > TEXT_CAP)
		return 0;
	if (bytes[0] & 1) {
		try_header((const char *)bytes + 1, len - 1);
		return 0;
	}
	bytes++;
	len--;
	rc = stoup_npy_prelude(bytes, len, &prelude, &err);
	MUST(rc == 0 || (err.code == rc && err.text[0]));
	if (rc < 0)
		return 0;
	MUST(prelude.header_off == 10 || prelude.header_off == 12);
	MUST(prelude.header_len <= STOUP_NPY_HEADER_CAP);
	if (len - prelude.header_off >= prelude.header_len)
		try_header((const char *)bytes + prelude.header_off, prelude.header_len);
	return 0;
}
