/* SPDX-License-Identifier: Apache-2.0 */
/* test_volume_golden.c - the committed volumes of tests/golden: contents of the good ones, words
 * of the faults of the damaged ones, and an independent reader's opinion.
 *
 *      NAME.stoup --this reader--> text --compare--> CONTENT.txt <--compare-- read_volume.py
 */
#include "tests/unit/volume_fixture.h"

#include <check.h>
#include <dirent.h>
#include <inttypes.h>

#define LINE_CAP 1024

static char golden_dir[2048];

static void golden_find(void)
{
	const char *source = getenv("STOUP_SOURCE_DIR");
	char *cut;

	if (source) {
		snprintf(golden_dir, sizeof(golden_dir), "%s/tests/golden", source);
		return;
	}
	snprintf(golden_dir, sizeof(golden_dir), "%s", __FILE__);
	cut = strstr(golden_dir, "tests/unit/");
	if (cut)
		strcpy(cut, "tests/golden");
}

/* A whole file of the directory; NULL where it cannot be read. One NUL follows its bytes. */
static uint8_t *file_read(const char *name, size_t *ret_len)
{
	char path[4096];
	uint8_t *bytes;
	FILE *file;
	long len;

	snprintf(path, sizeof(path), "%s/%s", golden_dir, name);
	file = fopen(path, "rb");
	if (!file)
		return NULL;
	fseek(file, 0, SEEK_END);
	len = ftell(file);
	rewind(file);
	bytes = calloc(1, (size_t)len + 1);
	if (bytes && fread(bytes, 1, (size_t)len, file) != (size_t)len) {
		free(bytes);
		bytes = NULL;
	}
	fclose(file);
	*ret_len = (size_t)len;
	return bytes;
}

static FILE *list_open(const char *name)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", golden_dir, name);
	file = fopen(path, "r");
	if (!file)
		ck_abort_msg("cannot open %s", path);
	return file;
}

/* ---- contents as text ------------------------------------------------------------------------ */

static void print_hex(FILE *out, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		fprintf(out, "%02x", bytes[i]);
	fputc('\n', out);
}

static void print_schemas(FILE *out, const struct stoup_vol_index *index)
{
	for (uint32_t i = 0; i < index->schema_cnt; i++) {
		const struct stoup_vol_schema *schema = &index->schemas[i];

		fprintf(out,
			"schema %s stride %u align %u key %u flags 0x%x interval %" PRIu64
			" hash %016" PRIx64 "\n",
			schema->name, schema->stride, schema->align, schema->key_off, schema->flags,
			schema->interval_ns, schema->hash);
		for (uint32_t at = 0; at < schema->field_cnt; at++) {
			const struct stoup_vol_field *field =
				&index->fields[schema->field_first + at];

			fprintf(out,
				"field %s off %u cnt %u type %u flags 0x%x exp10 %d null %" PRIx64
				" unit '%.8s'\n",
				field->name, field->off, field->cnt, field->type, field->flags,
				field->exp10, field->null_bits, field->unit);
		}
	}
}

static void print_segment(FILE *out, const struct stoup_vol_index *index, const uint8_t *bytes,
	const struct stoup_vol_segment *segment)
{
	const struct stoup_vol_schema *schema =
		&index->schemas[index->blocks[segment->block_idx].schema_idx];
	struct stoup_vol_fault fault;
	uint8_t *raw;

	if (image_block(bytes, index, segment->block_idx, &raw, &fault))
		ck_abort_msg("%s", fault.what);
	for (uint32_t i = 0; i < segment->record_cnt && schema->stride == 0; i++) {
		const struct stoup_message_head *head = stoup_message_head_of(
			raw + segment->raw_off + segment->raw_len - 4 * (segment->record_cnt - i));

		fprintf(out, "record %" PRIu64 " %" PRId64 " ", segment->ordinal + i, head->key);
		print_hex(out, (const uint8_t *)(head + 1), head->len);
	}
	for (uint32_t i = 0; i < segment->record_cnt && schema->stride > 0; i++) {
		const uint8_t *record = raw + segment->raw_off + (size_t)i * schema->stride;

		fprintf(out, "record %" PRIu64 " %" PRIu64 " ", segment->ordinal + i,
			image_get(record + schema->key_off, 8));
		print_hex(out, record, schema->stride);
	}
	free(raw);
}

static void print_volume(FILE *out, const struct stoup_vol_index *index, const uint8_t *bytes)
{
	const struct stoup_vol_header *header = &index->header;

	fprintf(out, "volume ");
	print_hex(out, header->id, 16);
	fprintf(out, "created %" PRId64 " ingest %" PRIu64 " batch %u of %u\n", header->created_ns,
		header->ingest_seq, header->batch_idx, header->batch_cnt);
	for (uint32_t i = 0; i < index->superseded_cnt; i++) {
		fprintf(out, "superseded ");
		print_hex(out, index->superseded[i], 16);
	}
	print_schemas(out, index);
	for (uint32_t i = 0; i < index->series_cnt; i++) {
		const struct stoup_vol_series *series = &index->series[i];

		fprintf(out,
			"series %s schema %s flags 0x%x records %" PRIu64 " keys %" PRId64
			" %" PRId64 "\n",
			series->name, index->schemas[series->schema_idx].name, series->flags,
			series->record_cnt, series->first_key, series->last_key);
		for (uint32_t at = 0; at < series->segment_cnt; at++)
			print_segment(
				out, index, bytes, &index->segments[series->segment_first + at]);
	}
}

/* Compare texts and name the first line that differs. */
static void same_text(const char *what, const char *got, const char *expected)
{
	int line = 1;

	for (size_t i = 0; got[i] || expected[i]; i++) {
		if (got[i] != expected[i])
			ck_abort_msg("%s: line %d differs at byte %zu", what, line, i);
		line += got[i] == '\n';
	}
}

static void check_volume(const char *name, const char *text, unsigned codec, unsigned transform)
{
	size_t len, text_len, got_len;
	uint8_t *bytes = file_read(name, &len), *expected = file_read(text, &text_len);
	struct stoup_vol_index *index = NULL;
	struct stoup_vol_fault fault = {0};
	char *got = NULL;
	FILE *out = open_memstream(&got, &got_len);

	if (!bytes || !expected)
		ck_abort_msg("cannot read %s or %s", name, text);
	if (image_verify(bytes, len, &fault) || image_open(bytes, len, &index, &fault))
		ck_abort_msg("%s: %s", name, fault.what);
	for (uint32_t i = 0; i < index->block_cnt; i++) {
		ck_assert_uint_eq(index->blocks[i].codec, codec);
		ck_assert_uint_eq(index->blocks[i].transform, transform);
	}
	print_volume(out, index, bytes);
	fclose(out);
	same_text(name, got, (const char *)expected);
	stoup_vol_index_destroy(index);
	free(got);
	free(expected);
	free(bytes);
}

START_TEST(volumes_of_all_earlier_versions_give_their_contents)
{
	char line[LINE_CAP], name[256], text[256];
	FILE *list = list_open("volumes.txt");
	unsigned codec, transform, cnt = 0;

	while (fgets(line, sizeof(line), list)) {
		ck_assert_int_eq(
			sscanf(line, "%255s %255s %u %u", name, text, &codec, &transform), 4);
		check_volume(name, text, codec, transform);
		cnt++;
	}
	fclose(list);
	ck_assert_uint_ge(cnt, 14);
}
END_TEST

/* ---- damaged ones ---------------------------------------------------------------------------- */

static const char *code_name(int code)
{
	return code == -ENOTSUP   ? "ENOTSUP"
	       : code == -ENODATA ? "ENODATA"
	       : code == -EBADMSG ? "EBADMSG"
	                          : "another";
}

static void check_damaged(char *line)
{
	char path[512], *fields[5], *rest = line;
	struct stoup_vol_fault fault = {0};
	size_t len;
	uint8_t *bytes;

	line[strcspn(line, "\n")] = 0;
	for (int i = 0; i < 5; i++) {
		fields[i] = strsep(&rest, "\t");
		ck_assert_ptr_nonnull(fields[i]);
	}
	snprintf(path, sizeof(path), "damaged/%s.stoup", fields[0]);
	bytes = file_read(path, &len);
	if (!bytes)
		ck_abort_msg("cannot read %s", path);
	ck_assert_int_ne(image_verify(bytes, len, &fault), 0);
	if (strcmp(fault.what, fields[4]))
		ck_abort_msg("%s: \"%s\" instead of \"%s\"", path, fault.what, fields[4]);
	ck_assert_str_eq(code_name(fault.code), fields[1]);
	ck_assert_str_eq(stoup_vol_region_name(fault.region), fields[2]);
	ck_assert_uint_eq(fault.file_off, strtoull(fields[3], NULL, 10));
	free(bytes);
}

static unsigned damaged_file_cnt(void)
{
	char path[4096];
	struct dirent *entry;
	unsigned cnt = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/damaged", golden_dir);
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)))
		cnt += strstr(entry->d_name, ".stoup") != NULL;
	closedir(dir);
	return cnt;
}

START_TEST(damaged_volumes_give_their_recorded_faults)
{
	char line[LINE_CAP];
	FILE *list = list_open("damaged/faults.txt");
	unsigned cnt = 0;

	for (; fgets(line, sizeof(line), list); cnt++)
		check_damaged(line);
	fclose(list);
	ck_assert_uint_ge(cnt, 40);
	ck_assert_uint_eq(cnt, damaged_file_cnt());
}
END_TEST

/* ---- the independent reader ------------------------------------------------------------------ */

static char *python_read(const char *name)
{
	char command[8192], chunk[4096], *text = NULL;
	size_t text_len, got;
	FILE *out = open_memstream(&text, &text_len), *in;
	int status;

	snprintf(command, sizeof(command), "python3 -B '%s/read_volume.py' '%s/%s'", golden_dir,
		golden_dir, name);
	in = popen(command, "r");
	ck_assert_ptr_nonnull(in);
	while ((got = fread(chunk, 1, sizeof(chunk), in)))
		fwrite(chunk, 1, got, out);
	status = pclose(in);
	fclose(out);
	if (status)
		ck_abort_msg("read_volume.py fails on %s", name);
	return text;
}

START_TEST(a_reader_made_from_the_document_alone_agrees)
{
	char line[LINE_CAP], name[256], text[256];
	FILE *list = list_open("volumes.txt");
	unsigned codec, cnt = 0;

	while (fgets(line, sizeof(line), list)) {
		size_t len;
		uint8_t *expected;
		char *got;

		ck_assert_int_eq(sscanf(line, "%255s %255s %u", name, text, &codec), 3);
		if (codec == STOUP_CODEC_ZSTD)
			continue;
		expected = file_read(text, &len);
		ck_assert_ptr_nonnull(expected);
		got = python_read(name);
		same_text(name, got, (const char *)expected);
		free(got);
		free(expected);
		cnt++;
	}
	fclose(list);
	ck_assert_uint_ge(cnt, 10);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("golden volumes");
	TCase *tests = tcase_create("golden volumes");
	SRunner *runner = srunner_create(suite);
	int failed;

	golden_find();
	tcase_set_timeout(tests, 120);
	suite_add_tcase(suite, tests);
	tcase_add_test(tests, volumes_of_all_earlier_versions_give_their_contents);
	tcase_add_test(tests, damaged_volumes_give_their_recorded_faults);
	if (system("command -v python3 >/dev/null 2>&1") == 0)
		tcase_add_test(tests, a_reader_made_from_the_document_alone_agrees);
	else
		fprintf(stderr, "python3 is absent: the independent reader is not compared\n");
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
