/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_rm.c - `stoup rm`: series, or a range of them, out of a store.
 *
 * A volume is immutable: one that loses some of its records is written anew without them, one that loses all is only
 * superseded. All volumes change in one step.
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "producer/args.h"
#include "producer/cmd.h"
#include "producer/rewrite_report.h"
#include "producer/stop.h"
#include "shm/format.h"

static const char usage_text[] =
	"usage: stoup rm [options] STORE SERIES|PATTERN...\n"
	"\n"
	"Remove series from a store, or their records in a range of time. A SERIES is a whole name; a PATTERN is\n"
	"a glob (* and ? match /, too) and is asked about on a terminal; elsewhere it needs --yes. Volumes that\n"
	"hold other records, too, are written anew without the removed ones; everything else stays byte for byte,\n"
	"and daemons serve on meanwhile. One that matches nothing is an error, and then nothing is removed.\n"
	"\n"
	"  --from TIME   remove records from this time on (2024-01-02T12:00:00Z, or nanoseconds)\n"
	"  --to TIME     remove records before this time\n"
	"  --dry-run     only say what would be removed\n"
	"  --yes         do not ask\n"
	"  --quiet       no summary, no progress\n";

struct rm {
	struct stoup_rewrite_options options;
	const char **names;
	uint32_t name_cnt;
	uint64_t *matches;      /* by name: series that it names */
	int64_t from_ns, to_ns; /* from <= key < to */
	int yes;
	struct stoup_rewrite *rewrite;
	uint64_t segment_cnt; /* of which something is removed */
};

/* ---- matching -------------------------------------------------------------------------------- */

static int is_pattern(const char *name)
{
	return strpbrk(name, "*?[") != NULL;
}

/* Does this word name the series? A name that has the signs of a glob names itself, too. */
static int names(const char *word, const char *series)
{
	return strcmp(word, series) == 0 || (is_pattern(word) && fnmatch(word, series, 0) == 0);
}

static int is_named(const struct rm *rm, const char *series)
{
	uint32_t i;

	for (i = 0; i < rm->name_cnt; i++) {
		if (names(rm->names[i], series))
			return 1;
	}
	return 0;
}

static int is_inside(const struct rm *rm, int64_t key)
{
	return key >= rm->from_ns && key < rm->to_ns;
}

static enum stoup_rewrite_keep segment_keep(
	void *arg, const struct stoup_part *part, uint32_t segment_idx)
{
	const struct rm *rm = arg;
	const struct stoup_vol_segment *segment = &part->volume->index->segments[segment_idx];

	if (!is_named(rm, part->series->name) || segment->first_key >= rm->to_ns ||
		segment->last_key < rm->from_ns)
		return STOUP_REWRITE_KEEP_ALL;
	return is_inside(rm, segment->first_key) && is_inside(rm, segment->last_key)
	               ? STOUP_REWRITE_KEEP_NONE
	               : STOUP_REWRITE_KEEP_SOME;
}

static int key_keep(void *arg, int64_t key)
{
	return !is_inside(arg, key);
}

/* Choose the volumes that hold records to be removed, and count what each word names. */
static int choose(struct rm *rm, struct stoup_error *err)
{
	const struct stoup_store *store = stoup_rewrite_store(rm->rewrite);
	const char *name;
	uint32_t v, s, i;

	if (store->overlap_cnt > 0) {
		name = strrchr(store->overlaps[0]->path, '/');
		return stoup_error_set(err, -EEXIST,
			"%.60s is left out of the store because it overlaps another volume: it would come "
			"back; first remove it, or `stoup compact --overlaps merge|dedup`",
			name ? name + 1 : store->overlaps[0]->path);
	}
	for (v = 0; v < store->volume_cnt; v++) {
		const struct stoup_vol_index *index = store->volumes[v]->index;

		for (s = 0; s < index->series_cnt; s++) {
			const struct stoup_vol_series *series = &index->series[s];

			for (i = 0; i < rm->name_cnt; i++)
				rm->matches[i] += names(rm->names[i], series->name) != 0;
			if (is_named(rm, series->name) && series->first_key < rm->to_ns &&
				series->last_key >= rm->from_ns)
				stoup_rewrite_choose(rm->rewrite, v);
		}
	}
	for (i = 0; i < rm->name_cnt; i++) {
		if (rm->matches[i] == 0)
			return stoup_error_set(err, -ENOENT,
				"no series of %.60s %s '%.80s'; `stoup ls` lists them; nothing was removed",
				store->path, is_pattern(rm->names[i]) ? "matches" : "is called",
				rm->names[i]);
	}
	return 0;
}

/* ---- telling --------------------------------------------------------------------------------- */

/* What the indexes say will go of a group: records of whole segments, and segments that are cut. */
static void group_count(const struct rm *rm, const struct stoup_part_group *group,
	uint64_t *ret_whole, uint64_t *ret_cut)
{
	const struct stoup_parts *parts = stoup_rewrite_parts(rm->rewrite);
	union {
		const struct rm *in;
		void *out;
	} arg = {.in = rm};
	size_t p;
	uint32_t i;

	*ret_whole = *ret_cut = 0;
	for (p = group->first; p < group->first + group->cnt; p++) {
		const struct stoup_part *part = &parts->parts[p];

		for (i = 0; i < part->series->segment_cnt; i++) {
			uint32_t idx = part->series->segment_first + i;
			enum stoup_rewrite_keep keep = segment_keep(arg.out, part, idx);

			if (keep == STOUP_REWRITE_KEEP_NONE)
				*ret_whole += part->volume->index->segments[idx].record_cnt;
			*ret_cut += keep == STOUP_REWRITE_KEEP_SOME;
		}
	}
}

/* List what goes; returns the number of series. */
static uint64_t plan_print(struct rm *rm, FILE *out)
{
	const struct stoup_parts *parts = stoup_rewrite_parts(rm->rewrite);
	const struct stoup_rewrite_series *series = stoup_rewrite_series(rm->rewrite);
	uint64_t cnt = 0, whole, cut;
	size_t g;

	for (g = 0; g < parts->group_cnt; g++) {
		group_count(rm, &parts->groups[g], &whole, &cut);
		if (whole == 0 && cut == 0)
			continue;
		if (out && cut == 0)
			fprintf(out, "%s: %" PRIu64 " of %" PRIu64 " records\n",
				stoup_parts_first(parts, g)->series->name, whole,
				series[g].old_cnt);
		else if (out)
			fprintf(out,
				"%s: %" PRIu64 " of %" PRIu64
				" records, and those in the range of %" PRIu64 " segment%s\n",
				stoup_parts_first(parts, g)->series->name, whole, series[g].old_cnt,
				cut, STOUP_PLURAL(cut));
		cnt++;
	}
	return cnt;
}

/* What was removed, and what was kept in the same volumes. */
static void result_print(const struct rm *rm)
{
	const struct stoup_parts *parts = stoup_rewrite_parts(rm->rewrite);
	const struct stoup_rewrite_series *series = stoup_rewrite_series(rm->rewrite);
	uint64_t removed = 0, kept = 0;
	size_t g, kept_cnt = 0;

	for (g = 0; g < parts->group_cnt; g++) {
		removed += series[g].removed_cnt;
		if (series[g].removed_cnt > 0)
			printf("%s: %" PRIu64 " of %" PRIu64 " record%s removed, %" PRIu64
			       " left\n",
				stoup_parts_first(parts, g)->series->name, series[g].removed_cnt,
				series[g].old_cnt, STOUP_PLURAL(series[g].old_cnt),
				series[g].written.record_cnt);
		kept += series[g].written.record_cnt;
		kept_cnt += series[g].written.record_cnt > 0;
	}
	printf("%" PRIu64 " record%s removed; %" PRIu64
	       " of %zu series in the same volumes kept, read back from the new volumes\n",
		removed, STOUP_PLURAL(removed), kept, kept_cnt);
	stoup_rewrite_report_volumes(rm->rewrite);
}

/* Globs may name more than was meant. */
static int confirm(struct rm *rm, uint64_t series_cnt, struct stoup_error *err)
{
	char line[16];
	uint32_t i;
	int glob = 0;

	for (i = 0; i < rm->name_cnt; i++)
		glob |= is_pattern(rm->names[i]);
	if (!glob || rm->yes)
		return 0;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return stoup_error_set(err, -EPERM,
			"a pattern names %" PRIu64
			" series: say --yes to remove them without being asked, --dry-run to see them; "
			"nothing was removed",
			series_cnt);
	plan_print(rm, stderr);
	fprintf(stderr, "remove these records of %" PRIu64 " series? [y/N] ", series_cnt);
	if (fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y'))
		return 0;
	return stoup_error_set(err, -ECANCELED, "nothing was removed");
}

/* ---- command --------------------------------------------------------------------------------- */

/* 1: it was this option; 0: another word; -EINVAL. */
static int time_parse(
	struct stoup_args *args, const char *name, int64_t *ret_ns, struct stoup_error *err)
{
	int rc = stoup_args_value(args, name, err);

	if (rc > 0 && stoup_args_time(name, args->value, ret_ns, err) < 0)
		return -EINVAL;
	return rc;
}

static int args_parse(struct rm *rm, int argc, char **argv, struct stoup_error *err)
{
	struct stoup_args args = {.argc = argc, .argv = argv};
	int rc, plain = 0;

	for (args.at = 1; args.at < argc; args.at++) {
		const char *word = argv[args.at];

		rc = plain ? 0 : time_parse(&args, "--from", &rm->from_ns, err);
		if (rc == 0 && !plain)
			rc = time_parse(&args, "--to", &rm->to_ns, err);
		if (rc < 0)
			return rc;
		if (rc > 0)
			continue;
		if (!plain && stoup_args_flag(&args, "--"))
			plain = 1;
		else if (!plain && stoup_args_flag(&args, "--dry-run"))
			rm->options.dry_run = 1;
		else if (!plain && stoup_args_flag(&args, "--yes"))
			rm->yes = 1;
		else if (!plain && stoup_args_flag(&args, "--quiet"))
			rm->options.quiet = 1;
		else if (!plain && word[0] == '-')
			return stoup_error_set(err, -EINVAL, "unknown option %.60s", word);
		else if (!rm->options.store_path)
			rm->options.store_path = word;
		else
			rm->names[rm->name_cnt++] = word;
	}
	if (!rm->options.store_path || rm->name_cnt == 0)
		return stoup_error_set(
			err, -EINVAL, "%s is missing", rm->options.store_path ? "SERIES" : "STORE");
	if (rm->from_ns >= rm->to_ns)
		return stoup_error_set(err, -EINVAL, "--from is not before --to");
	return 0;
}

static int rm_run(struct rm *rm, struct stoup_error *err)
{
	struct stoup_rewrite_filter filter = {.arg = rm, .segment = segment_keep, .key = key_keep};
	uint64_t series_cnt;
	int rc = stoup_rewrite_begin(&rm->options, &rm->rewrite, err);

	if (rc == 0)
		rc = choose(rm, err);
	if (rc == 0)
		rc = stoup_rewrite_draw_in(rm->rewrite, err);
	if (rc < 0)
		return rc;
	series_cnt = plan_print(rm, rm->options.dry_run ? stdout : NULL);
	if (series_cnt == 0 || rm->options.dry_run) {
		if (!rm->options.quiet)
			printf(series_cnt ? "nothing was removed (--dry-run)\n"
					  : "no records in that range: nothing was removed\n");
		return 0;
	}
	rc = confirm(rm, series_cnt, err);
	if (rc == 0)
		rc = stoup_rewrite_run(rm->rewrite, &filter, err);
	if (rc < 0)
		return rc;
	stoup_rewrite_sweep(rm->rewrite);
	if (!rm->options.quiet)
		result_print(rm);
	return 0;
}

int stoup_cmd_rm(int argc, char **argv)
{
	struct rm rm = {.options = {.label = "removing"}, .to_ns = INT64_MAX};
	struct stoup_error err = {0};
	int rc;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage_text, stdout);
		return STOUP_EXIT_OK;
	}
	rm.names = calloc((size_t)argc + 1, sizeof(*rm.names));
	rm.matches = calloc((size_t)argc + 1, sizeof(*rm.matches));
	if (!rm.names || !rm.matches) {
		fprintf(stderr, "stoup rm: no memory for its arguments\n");
		rc = STOUP_EXIT_FAIL;
		goto out_free;
	}
	if (args_parse(&rm, argc, argv, &err) < 0) {
		fprintf(stderr, "stoup rm: %s; see `stoup help rm`\n", err.text);
		rc = STOUP_EXIT_USAGE;
		goto out_free;
	}
	rc = rm_run(&rm, &err) < 0 ? STOUP_EXIT_FAIL : STOUP_EXIT_OK;
	stoup_rewrite_end(rm.rewrite);
	if (rc == STOUP_EXIT_FAIL)
		fprintf(stderr, "stoup rm: %s\n", err.text);
out_free:
	free(rm.names);
	free(rm.matches);
	stoup_stop_raise();
	return rc;
}
