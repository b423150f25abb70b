/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_diff.c - `stoup diff`: do two stores hold the same records?
 *
 *      A  X/AAA/mbo  | seg | seg |   seg   |        volumes, blocks and codecs do not matter
 *      B  X/AAA/mbo  | seg |    seg   | seg |
 *                    ^^^^^^^ one block on both sides, of equal hash: not decoded
 *
 * Records are compared one by one, in the order of reading, in every byte.
 */
#include "producer/diff.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/args.h"
#include "producer/cmd.h"
#include "producer/progress.h"
#include "producer/rewrite_report.h"
#include "shm/format.h"

#define VALUE_TEXT_CAP 1024u /* of one field: longer texts are cut */

static const char usage_text[] =
	"usage: stoup diff [--json] [--quiet] STORE_A STORE_B [PATTERN]\n"
	"\n"
	"Compare two stores by what they hold: series, schemas, and their records in order, byte for byte. How\n"
	"volumes, blocks and codecs are makes no difference. Of each series that differs it tells whether one\n"
	"store lacks it, else the first record that differs, with the field and both values, and how many do.\n"
	"PATTERN is a glob over the names of series. Exit status 0: equal; 1: different, or a failure.\n"
	"\n"
	"  --json    {\"equal\": ..., \"series\": [{\"name\": ..., \"state\": \"equal|differs|only_a|only_b\"}]}\n"
	"  --quiet   only the exit status\n";

struct cmd_diff {
	const char *paths[2], *pattern;
	int json, quiet;
	struct stoup_store *stores[2];
	struct stoup_parts parts[2];
	struct stoup_block_cache *cache;
	struct stoup_progress progress;
	uint64_t equal_cnt, differ_cnt, only_cnt[2], record_cnt, done_len;
};

/* ---- values ---------------------------------------------------------------------------------- */

/* The first field that differs; NULL: bytes of no field, or a message. */
static const struct stoup_field *field_find(
	const struct stoup_schema *schema, const uint8_t *a, const uint8_t *b)
{
	uint32_t i;

	for (i = 0; i < schema->field_cnt; i++) {
		const struct stoup_field *field = &schema->fields[i];
		size_t len = (size_t)stoup_type_len(field->type) * field->cnt;

		if (memcmp(a + field->off, b + field->off, len) != 0)
			return field;
	}
	return NULL;
}

static void value_text(
	const struct stoup_field *field, const uint8_t *record, char ret_text[VALUE_TEXT_CAP])
{
	int64_t len = stoup_format_field(field, record, ret_text, VALUE_TEXT_CAP);

	if (len < 0)
		snprintf(ret_text, VALUE_TEXT_CAP, "%" PRIu32 " bytes",
			(uint32_t)stoup_type_len(field->type) * field->cnt);
	else if (len == 0)
		snprintf(ret_text, VALUE_TEXT_CAP, "(undefined)");
}

/* Where two records differ that have no field there: their first byte that does. */
static size_t byte_find(const struct stoup_diff_series *found)
{
	size_t i, len = found->len_a < found->len_b ? found->len_a : found->len_b;

	for (i = 0; i < len && found->record_a[i] == found->record_b[i]; i++)
		;
	return i;
}

/* ---- one series ------------------------------------------------------------------------------ */

static void name_json(const struct cmd_diff *diff, const struct stoup_part *part, const char *state)
{
	printf("%s\n  {\"name\": ",
		diff->equal_cnt + diff->differ_cnt + diff->only_cnt[0] + diff->only_cnt[1] == 1
			? ""
			: ",");
	stoup_json_string(stdout, part->series->name);
	printf(", \"schema\": ");
	stoup_json_string(stdout, stoup_part_schema(part)->name);
	printf(", \"state\": \"%s\"", state);
}

static void only_print(const struct cmd_diff *diff, size_t group_idx, int side)
{
	const struct stoup_parts *parts = &diff->parts[side];
	const struct stoup_part *part = stoup_parts_first(parts, group_idx);
	uint64_t cnt = stoup_diff_record_cnt(parts, group_idx);

	if (diff->json) {
		name_json(diff, part, side ? "only_b" : "only_a");
		printf(", \"records_%c\": %" PRIu64 "}", "ab"[side], cnt);
	} else if (!diff->quiet) {
		printf("%s: only in %s (%" PRIu64 " record%s of %s)\n", part->series->name,
			diff->paths[side], cnt, STOUP_PLURAL(cnt), stoup_part_schema(part)->name);
	}
}

static void difference_json(
	const struct stoup_schema *schema, const struct stoup_diff_series *found)
{
	const struct stoup_field *field;
	char a[VALUE_TEXT_CAP], b[VALUE_TEXT_CAP];

	printf(", \"first_difference\": {\"ordinal\": %" PRIu64, found->ordinal);
	if (found->record_a)
		printf(", \"key_a\": %" PRId64, found->key_a);
	if (found->record_b)
		printf(", \"key_b\": %" PRId64, found->key_b);
	if (found->record_a && found->record_b) {
		field = field_find(schema, found->record_a, found->record_b);
		if (field) {
			value_text(field, found->record_a, a);
			value_text(field, found->record_b, b);
			printf(", \"field\": \"%s\", \"a\": ", field->name);
			stoup_json_string(stdout, a);
			printf(", \"b\": ");
			stoup_json_string(stdout, b);
		} else {
			printf(", \"byte\": %zu", byte_find(found));
		}
	}
	printf("}");
	if (found->cnt_a == found->cnt_b)
		printf(", \"differing\": %" PRIu64, found->differ_cnt);
}

static void difference_print(const struct cmd_diff *diff, const struct stoup_part *part,
	const struct stoup_schema *schema, const struct stoup_diff_series *found)
{
	char key_a[STOUP_FORMAT_CAP], key_b[STOUP_FORMAT_CAP];
	char a[VALUE_TEXT_CAP], b[VALUE_TEXT_CAP];
	const struct stoup_field *field;

	printf("%s: ", part->series->name);
	if (found->cnt_a != found->cnt_b)
		printf("%" PRIu64 " record%s in %s, %" PRIu64 " in %s; ", found->cnt_a,
			STOUP_PLURAL(found->cnt_a), diff->paths[0], found->cnt_b, diff->paths[1]);
	else
		printf("%" PRIu64 " of %" PRIu64 " record%s differ; ", found->differ_cnt,
			found->cnt_a, STOUP_PLURAL(found->cnt_a));
	if (!found->record_a || !found->record_b) {
		stoup_format_time(found->record_a ? found->key_a : found->key_b, key_a);
		printf("equal up to record %" PRIu64 " (%s), with which %s goes on\n",
			found->ordinal, key_a, diff->paths[found->record_a ? 0 : 1]);
		return;
	}
	stoup_format_time(found->key_a, key_a);
	stoup_format_time(found->key_b, key_b);
	printf("first at record %" PRIu64 " (%s%s%s): ", found->ordinal, key_a,
		found->key_a != found->key_b ? ", there " : "",
		found->key_a != found->key_b ? key_b : "");
	field = field_find(schema, found->record_a, found->record_b);
	if (!field) {
		printf("byte %zu (of %" PRIu32 ", there of %" PRIu32 ")\n", byte_find(found),
			found->len_a, found->len_b);
		return;
	}
	value_text(field, found->record_a, a);
	value_text(field, found->record_b, b);
	printf("%s is %s, there %s\n", field->name, a, b);
}

static int both_compare(struct cmd_diff *diff, size_t ga, size_t gb, struct stoup_error *err)
{
	const struct stoup_part *part = stoup_parts_first(&diff->parts[0], ga);
	struct stoup_diff_series found;
	struct stoup_schema schema;
	int rc = stoup_diff_series(
		diff->cache, &diff->parts[0], ga, &diff->parts[1], gb, &found, err);

	if (rc < 0)
		return rc;
	stoup_part_schema_view(part, &schema);
	diff->equal_cnt += found.equal != 0;
	diff->differ_cnt += !found.equal;
	diff->record_cnt += found.cnt_a < found.cnt_b ? found.cnt_a : found.cnt_b;
	if (diff->json) {
		name_json(diff, part, found.equal ? "equal" : "differs");
		printf(", \"records_a\": %" PRIu64 ", \"records_b\": %" PRIu64, found.cnt_a,
			found.cnt_b);
		if (!found.equal)
			difference_json(&schema, &found);
		printf("}");
	} else if (!diff->quiet && !found.equal) {
		difference_print(diff, part, &schema, &found);
	}
	stoup_diff_series_fini(&found);
	return 0;
}

/* ---- all series ------------------------------------------------------------------------------ */

/* Both lists are sorted by name and schema. */
static int all_compare(struct cmd_diff *diff, struct stoup_error *err)
{
	const struct stoup_parts *a = &diff->parts[0], *b = &diff->parts[1];
	size_t ga = 0, gb = 0;
	int rc = 0, cmp;

	while ((ga < a->group_cnt || gb < b->group_cnt) && rc == 0) {
		cmp = ga == a->group_cnt   ? 1
		      : gb == b->group_cnt ? -1
		                           : stoup_part_series_cmp(stoup_parts_first(a, ga),
						     stoup_parts_first(b, gb));
		if (cmp == 0) {
			rc = both_compare(diff, ga++, gb++, err);
		} else {
			diff->only_cnt[cmp > 0]++;
			only_print(diff, cmp > 0 ? gb++ : ga++, cmp > 0);
		}
		stoup_progress_step(&diff->progress, 0, diff->record_cnt);
	}
	return rc;
}

/* What could not be looked at can not be called equal. */
static uint64_t faults_print(const struct cmd_diff *diff)
{
	uint64_t cnt = 0;
	uint32_t i;
	int side;

	for (side = 0; side < 2; side++) {
		for (i = 0; i < diff->stores[side]->fault_cnt; i++)
			fprintf(stderr, "stoup diff: not compared: %s\n",
				diff->stores[side]->faults[i].text);
		cnt += diff->stores[side]->fault_cnt;
	}
	return cnt;
}

static int stores_open(struct cmd_diff *diff, struct stoup_error *err)
{
	int side, rc = 0;

	for (side = 0; side < 2 && rc == 0; side++) {
		rc = stoup_store_open(diff->paths[side], &diff->stores[side], err);
		if (rc == 0 && stoup_store_holds_nothing(diff->stores[side], err))
			rc = -ENOENT;
		if (rc == 0 && stoup_parts_of_store(
				       &diff->parts[side], diff->stores[side], diff->pattern) < 0)
			rc = stoup_error_set(err, -ENOMEM, "no memory for the list of series");
	}
	if (rc == 0 && stoup_block_cache_create(STOUP_REWRITE_MEMORY_LEN, &diff->cache) < 0)
		rc = stoup_error_set(err, -ENOMEM, "no memory to compare stores");
	if (rc == 0 && diff->pattern && diff->parts[0].cnt + diff->parts[1].cnt == 0)
		rc = stoup_error_set(
			err, -ENOENT, "no series matches '%.100s' in either store", diff->pattern);
	return rc;
}

static void summary_print(const struct cmd_diff *diff, int equal, uint64_t fault_cnt)
{
	if (diff->json)
		printf("%s], \"equal\": %s, \"not_compared\": %" PRIu64 "}\n",
			diff->parts[0].cnt + diff->parts[1].cnt ? "\n" : "",
			equal ? "true" : "false", fault_cnt);
	else if (!diff->quiet)
		printf("%" PRIu64 " series equal, %" PRIu64 " different, %" PRIu64
		       " only in %s, %" PRIu64 " only in %s\n",
			diff->equal_cnt, diff->differ_cnt, diff->only_cnt[0], diff->paths[0],
			diff->only_cnt[1], diff->paths[1]);
}

/* ---- command --------------------------------------------------------------------------------- */

static int args_parse(struct cmd_diff *diff, int argc, char **argv, struct stoup_error *err)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			diff->json = 1;
		else if (strcmp(argv[i], "--quiet") == 0)
			diff->quiet = 1;
		else if (argv[i][0] == '-' && argv[i][1])
			return stoup_error_set(err, -EINVAL, "unknown option %.60s", argv[i]);
		else if (!diff->paths[0])
			diff->paths[0] = argv[i];
		else if (!diff->paths[1])
			diff->paths[1] = argv[i];
		else if (!diff->pattern)
			diff->pattern = argv[i];
		else
			return stoup_error_set(err, -EINVAL, "too many arguments: %.60s", argv[i]);
	}
	return diff->paths[1] ? 0 : stoup_error_set(err, -EINVAL, "two stores are needed");
}

static int diff_run(struct cmd_diff *diff, int *ret_equal, struct stoup_error *err)
{
	uint64_t fault_cnt;
	int rc = stores_open(diff, err);

	if (rc < 0)
		return rc;
	fault_cnt = faults_print(diff);
	if (diff->json) {
		printf("{\"a\": ");
		stoup_json_string(stdout, diff->paths[0]);
		printf(", \"b\": ");
		stoup_json_string(stdout, diff->paths[1]);
		printf(", \"series\": [");
	}
	stoup_progress_begin(&diff->progress, "comparing", 0, diff->quiet);
	rc = all_compare(diff, err);
	stoup_progress_end(&diff->progress);
	if (rc < 0)
		return rc;
	*ret_equal = fault_cnt + diff->differ_cnt + diff->only_cnt[0] + diff->only_cnt[1] == 0;
	summary_print(diff, *ret_equal, fault_cnt);
	return 0;
}

int stoup_cmd_diff(int argc, char **argv)
{
	struct cmd_diff diff = {0};
	struct stoup_error err = {0};
	int rc, side, equal = 0;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage_text, stdout);
		return STOUP_EXIT_OK;
	}
	if (args_parse(&diff, argc, argv, &err) < 0) {
		fprintf(stderr, "stoup diff: %s; see `stoup help diff`\n", err.text);
		return STOUP_EXIT_USAGE;
	}
	rc = diff_run(&diff, &equal, &err);
	if (rc < 0)
		fprintf(stderr, "stoup diff: %s\n", err.text);
	stoup_block_cache_destroy(diff.cache);
	for (side = 0; side < 2; side++) {
		stoup_parts_fini(&diff.parts[side]);
		stoup_store_close(diff.stores[side]);
	}
	return rc == 0 && equal ? STOUP_EXIT_OK : STOUP_EXIT_FAIL;
}
