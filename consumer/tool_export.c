/* SPDX-License-Identifier: Apache-2.0 */
/* tool_export.c - see tool_export.h. */
#include "consumer/tool_export.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "consumer/tool_dbn.h"
#include "consumer/tool_merge.h"
#include "consumer/tool_npy.h"
#include "consumer/tool_out.h"
#include "consumer/tool_survey.h"
#include "consumer/tool_text.h"

const char *stoup_export_ending(enum stoup_export_format format)
{
	static const char *const endings[] = {
		"", ".csv", ".jsonl", ".dbn", ".npy", ".npz", ".lines"};

	return endings[format];
}

/* ---- text and arrays -------------------------------------------------------------------------- */

static int write_text(struct stoup_export *export, const struct stoup_series *series,
	struct stoup_out *out, uint64_t *ret_cnt, struct stoup_error *err)
{
	struct stoup_text text;
	struct stoup_cursor *cur;
	struct stoup_span span;
	int rc = stoup_scan(export->st, series, &export->range, &cur, err), printed = 1;

	if (rc < 0)
		return rc;
	if (stoup_text_init(
		    &text, out->file, export->format == STOUP_EXPORT_JSONL, series->schema) < 0) {
		stoup_cursor_close(cur);
		return stoup_error_set(err, -ENOMEM, "no memory to print records");
	}
	text.lines = export->format == STOUP_EXPORT_LINES;
	if (export->header)
		stoup_text_header(&text);
	while (printed > 0 && !stoup_out_failed(out) && (rc = stoup_next(cur, &span)) > 0) {
		for (uint64_t i = 0; i < span.record_cnt && printed > 0 && !stoup_out_failed(out);
			i++)
			printed = stoup_text_span(&text, &span, i);
		*ret_cnt += span.record_cnt;
	}
	if (rc < 0)
		stoup_error_set(err, rc, "%s", stoup_cursor_error(cur)->text);
	else if (printed <= 0)
		rc = printed < 0
		             ? stoup_error_set(err, -ENOMEM, "no memory to print records")
		             : stoup_error_set(err, -EBADMSG,
				       "%.150s has a message that is no document (`stoup verify` "
				       "looks at all)",
				       series->name);
	stoup_cursor_close(cur);
	stoup_text_fini(&text);
	return rc < 0 ? rc : 0;
}

static int write_array(struct stoup_export *export, const struct stoup_series *series,
	struct stoup_out *out, uint64_t *ret_cnt, struct stoup_error *err)
{
	int64_t cnt = stoup_tool_npy(export->st, series, &export->range,
		export->format == STOUP_EXPORT_NPZ, out->file, err);

	*ret_cnt = cnt > 0 ? (uint64_t)cnt : 0;
	return cnt < 0 ? (int)cnt : 0;
}

/* ---- DBN -------------------------------------------------------------------------------------- */

static int write_records(struct stoup_export *export, const struct stoup_dbn_plan *plan,
	struct stoup_survey *survey, struct stoup_out *out, uint64_t *ret_cnt,
	struct stoup_error *err)
{
	const struct stoup_series **series = calloc(plan->cnt, sizeof(*series));
	struct stoup_tool_merge *merge = NULL;
	const void *record;
	size_t source;
	int rc;

	if (!series)
		return stoup_error_set(err, -ENOMEM, "no memory for %zu series", plan->cnt);
	for (size_t i = 0; i < plan->cnt; i++)
		series[i] = &plan->sources[i].series;
	rc = stoup_tool_merge_begin(export->st, series, plan->cnt, &export->range, &merge, err);
	while (rc >= 0 && !stoup_out_failed(out) &&
		(rc = stoup_tool_merge_next(merge, &record, &source, err)) > 0) {
		if (stoup_survey_is_dropped(survey, plan, source, record))
			continue;
		fwrite(record, 1, series[source]->schema->stride, out->file);
		++*ret_cnt;
	}
	stoup_tool_merge_end(merge);
	free(series);
	if (rc == 0 && !stoup_out_failed(out) &&
		*ret_cnt + survey->dropped_cnt != survey->record_cnt)
		return stoup_error_set(
			err, -ESTALE, "the store changed while it was read: try again");
	return rc < 0 ? rc : 0;
}

static void tell_dbn(const struct stoup_export *export, const struct stoup_dbn_plan *plan,
	const struct stoup_survey *survey)
{
	if (export->quiet)
		return;
	if (survey->dropped_cnt > 0)
		fprintf(stderr,
			"stoup export: %" PRIu64
			" records of instruments with several symbols are written once\n",
			survey->dropped_cnt);
	if (plan->unnamed_cnt > 0)
		fprintf(stderr,
			"stoup export: %" PRIu64
			" series %s of no one symbol (%s...): the file has instrument "
			"numbers alone\n",
			plan->unnamed_cnt, plan->unnamed_cnt == 1 ? "is" : "are", plan->unnamed);
}

static int write_dbn(struct stoup_export *export, const struct stoup_series *series, size_t cnt,
	struct stoup_out *out, uint64_t *ret_cnt, struct stoup_error *err)
{
	struct stoup_survey survey = {0};
	struct stoup_dbn_plan plan;
	uint64_t start, end;
	int rc = stoup_dbn_plan_make(series, cnt, export->dbn_version, &plan, err);

	if (rc < 0)
		return rc;
	rc = stoup_survey_make(export->st, &plan, &export->range, &survey, err);
	start = export->range.from_ns ? (uint64_t) export->range.from_ns
	                              : (uint64_t)survey.first_key;
	end = export->range.to_ns ? (uint64_t) export->range.to_ns
	      : survey.record_cnt ? (uint64_t)survey.last_key + 1
	                          : 0;
	if (rc == 0)
		rc = stoup_dbn_head_write(
			&plan, survey.rows, survey.row_cnt, start, end, out->file, err);
	if (rc == 0)
		rc = write_records(export, &plan, &survey, out, ret_cnt, err);
	if (rc == 0)
		tell_dbn(export, &plan, &survey);
	stoup_survey_fini(&survey);
	stoup_dbn_plan_fini(&plan);
	return rc;
}

/* ---- files ------------------------------------------------------------------------------------ */

static int remember(struct stoup_export *export, const char *path)
{
	char **grown = realloc(export->written, (export->written_cnt + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	export->written = grown;
	grown[export->written_cnt] = strdup(path);
	if (!grown[export->written_cnt])
		return -ENOMEM;
	export->written_cnt++;
	return 0;
}

/* Records of `cnt` series (more than one: DBN) as one file. */
static int write_file(struct stoup_export *export, const char *path,
	const struct stoup_series *series, size_t cnt, struct stoup_error *err)
{
	struct stoup_out out;
	uint64_t record_cnt = 0;
	int is_new, rc = stoup_out_open(path, export->force, export->zstd, &out, err);

	if (rc < 0)
		return rc;
	if (export->format == STOUP_EXPORT_DBN)
		rc = write_dbn(export, series, cnt, &out, &record_cnt, err);
	else if (export->format == STOUP_EXPORT_NPY || export->format == STOUP_EXPORT_NPZ)
		rc = write_array(export, series, &out, &record_cnt, err);
	else
		rc = write_text(export, series, &out, &record_cnt, err);
	if (stoup_out_failed(&out))
		rc = stoup_out_error(&out, err);
	if (rc < 0) {
		stoup_out_discard(&out);
		return rc;
	}
	is_new = out.is_new && !export->force;
	rc = stoup_out_publish(&out, err);
	if (rc == 0 && is_new && remember(export, path) < 0)
		rc = stoup_error_set(err, -ENOMEM, "no memory for the names of files");
	if (rc == 0 && path && !export->quiet)
		printf("%s: %" PRIu64 " records of %zu series, %" PRIu64 " bytes\n", path,
			record_cnt, cnt, out.len);
	return rc;
}

/* Parts of a series' name as directories; a part of dots alone is no name of a file. */
static char *path_of(
	const struct stoup_export *export, const char *name, size_t len, int is_twin, uint64_t hash)
{
	char *path = NULL, twin[24] = "";
	size_t path_len;
	FILE *out = open_memstream(&path, &path_len);

	if (!out)
		return NULL;
	if (is_twin)
		snprintf(twin, sizeof(twin), "-%016" PRIx64, hash);
	fputs(export->directory, out);
	for (size_t i = 0; i < len;) {
		size_t part = 0, dots;

		while (i + part < len && name[i + part] != '/')
			part++;
		dots = strspn(name + i, ".");
		putc('/', out);
		for (size_t k = 0; k < part; k++) {
			if (dots >= part)
				fputs("%2E", out);
			else
				putc(name[i + k], out);
		}
		i += part + 1;
	}
	fprintf(out, "%s%s%s", twin, stoup_export_ending(export->format),
		export->zstd ? ".zst" : "");
	if (fclose(out) != 0) {
		free(path);
		return NULL;
	}
	return path;
}

static int make_directories(char *path, struct stoup_error *err)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int rc;

		*slash = '\0';
		rc = mkdir(path, 0777) < 0 && errno != EEXIST ? -errno : 0;
		if (rc < 0)
			stoup_error_set(err, rc, "%.180s: %s", path, strerror(-rc));
		*slash = '/';
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int write_in_directory(struct stoup_export *export, const struct stoup_series *series,
	size_t cnt, size_t name_len, int is_twin, struct stoup_error *err)
{
	char *path = path_of(export, series->name, name_len, is_twin, series->schema->hash);
	int rc;

	if (!path)
		return stoup_error_set(err, -ENOMEM, "no memory for the names of files");
	rc = make_directories(path, err);
	if (rc == 0)
		rc = write_file(export, path, series, cnt, err);
	free(path);
	return rc;
}

static int has_twin(const struct stoup_export *export, size_t i)
{
	const struct stoup_series *all = export->series;

	return (i > 0 && strcmp(all[i - 1].name, all[i].name) == 0) ||
	       (i + 1 < export->series_cnt && strcmp(all[i + 1].name, all[i].name) == 0);
}

/* How many series from `i` on are one file: those of a dataset for DBN, else each its own. */
static size_t group_of(const struct stoup_export *export, size_t i)
{
	const struct stoup_series *all = export->series;
	size_t len = stoup_dbn_dataset_len(all[i].name), end = i + 1;

	if (export->format != STOUP_EXPORT_DBN)
		return 1;
	while (end < export->series_cnt && stoup_dbn_dataset_len(all[end].name) == len &&
		memcmp(all[end].name, all[i].name, len) == 0)
		end++;
	return end - i;
}

static int write_all(struct stoup_export *export, struct stoup_error *err)
{
	int rc = 0;

	if (!export->directory && group_of(export, 0) < export->series_cnt)
		return stoup_error_set(err, -EINVAL,
			"%zu series (%.80s, %.80s...) are more than one file: --directory DIR makes a file of "
			"each%s",
			export->series_cnt, export->series[0].name,
			export->series[group_of(export, 0)].name,
			export->format == STOUP_EXPORT_DBN ? " dataset" : "");
	if (!export->directory)
		return write_file(export, export->output, export->series, export->series_cnt, err);
	for (size_t i = 0, cnt; i < export->series_cnt && rc == 0; i += cnt) {
		const char *name = export->series[i].name;

		cnt = group_of(export, i);
		rc = write_in_directory(export, &export->series[i], cnt,
			export->format == STOUP_EXPORT_DBN ? stoup_dbn_dataset_len(name)
							   : strlen(name),
			export->format != STOUP_EXPORT_DBN && has_twin(export, i), err);
	}
	return rc;
}

int stoup_export_run(struct stoup_export *export, struct stoup_error *err)
{
	int rc = write_all(export, err);

	for (size_t i = 0; i < export->written_cnt; i++) {
		if (rc < 0)
			unlink(export->written[i]);
		free(export->written[i]);
	}
	free(export->written);
	export->written = NULL;
	export->written_cnt = 0;
	return rc;
}
