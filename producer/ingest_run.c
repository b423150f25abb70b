/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_run.c - see ingest_run.h. */
#include "producer/ingest_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "producer/ingest_files.h"
#include "producer/ingest_lanes.h"
#include "producer/source.h"

/* What is known of a file: written by the thread that reads it. */
struct source_state {
	struct stoup_source source;
	int is_file;                            /* `source` says what was read */
	int has_records;                        /* something of it was put */
	const struct stoup_importer *importer;  /* what read it; NULL: nothing did */
	const struct stoup_store_volume *known; /* left out: it is in the store */
};

struct run {
	const struct stoup_ingest *ingest;
	struct stoup_import *import;
	struct stoup_event64_build *build; /* or NULL */
	struct stoup_files files;
	struct source_state *sources; /* by file */
	uint32_t threads_per_file;
};

/* Events are collected until all files were read. */
static int to_event64(const struct run *run, struct stoup_input *input,
	const struct stoup_importer *importer, struct stoup_error *err)
{
	const struct stoup_event64_options *options = &run->ingest->options.event64;

	if (strcmp(importer->name, "dbn") == 0)
		return stoup_event64_dbn(run->build, input, options, err);
	if (strcmp(importer->name, "csv") == 0)
		return stoup_event64_csv(run->build, input, options, err);
	return stoup_error_set(err, -EINVAL, "%s: %s is not made into events%s",
		stoup_input_name(input), importer->what,
		strcmp(importer->name, "npy") == 0
			? ": hftbacktest's own are known by their fields, without --to event64"
			: ": DBN, and CSV of Tardis and Binance are");
}

/* --symbols is for data that has them: else it would be ignored silently. */
static int symbols_check(const struct stoup_ingest *ingest, const struct stoup_input *input,
	const struct stoup_importer *importer, struct stoup_error *err)
{
	if (!ingest->options.filter.symbols || importer->has_symbols)
		return 0;
	return stoup_error_set(err, -EINVAL, "%s: %s has no symbols that --symbols could choose",
		stoup_input_name(input), importer->what);
}

/* An option that another format has would be ignored silently. Where files of several formats are read, it
 * may be for those to come: options_unused looks when all were seen. */
static int options_check(const struct run *run, const struct stoup_input *input,
	const struct stoup_importer *importer, struct stoup_error *err)
{
	const struct stoup_ingest *ingest = run->ingest;
	char takers[160];

	if (run->files.cnt > 1 && !ingest->options.format)
		return 0;
	for (size_t i = 0; i < ingest->given_cnt; i++) {
		if (stoup_importer_takes(importer, ingest->given[i]))
			continue;
		stoup_importer_takers(ingest->given[i], takers, sizeof(takers));
		return stoup_error_set(err, -EINVAL, "%s: --%s is for %s, and this is %s",
			stoup_input_name(input), ingest->given[i], takers, importer->what);
	}
	return 0;
}

static int is_used(const struct run *run, const char *option)
{
	for (size_t i = 0; i < run->files.cnt; i++) {
		const struct source_state *source = &run->sources[i];

		/* What a file is that the store has already was not looked at. */
		if (!source->importer || stoup_importer_takes(source->importer, option))
			return 1;
	}
	return 0;
}

/* After all files: was every option one of a format that was read? */
static int options_unused(const struct run *run, struct stoup_error *err)
{
	char takers[160];

	for (size_t i = 0; i < run->ingest->given_cnt; i++) {
		if (is_used(run, run->ingest->given[i]))
			continue;
		stoup_importer_takers(run->ingest->given[i], takers, sizeof(takers));
		return stoup_error_set(err, -EINVAL,
			"--%s is for %s, and none of the files is such", run->ingest->given[i],
			takers);
	}
	return 0;
}

/* What reads a file: the importer that knows it. */
static int importer_choose(const struct run *run, struct stoup_input *input,
	const struct stoup_sink *sink, const struct stoup_importer **ret, struct stoup_error *err)
{
	int guess, rc = stoup_importer_find(input, &run->ingest->options, ret, &guess, err);

	if (rc == 0)
		rc = symbols_check(run->ingest, input, *ret, err);
	if (rc == 0 && !run->build) /* which has said so already */
		rc = options_check(run, input, *ret, err);
	if (rc == 0 && guess)
		stoup_sink_note(sink, "%s: taken as %s (--format %s)", stoup_input_name(input),
			(*ret)->what, (*ret)->name);
	return rc;
}

/* ---- whether a file put something --------------------------------------------------------------- */

struct counting {
	const struct stoup_sink *sink;
	int *has_records;
};

static int64_t counting_series(
	void *arg, const char *name, const struct stoup_schema *schema, struct stoup_error *err)
{
	const struct counting *counting = arg;

	return counting->sink->series(counting->sink->arg, name, schema, err);
}

static int counting_put(void *arg, uint32_t series_idx, int64_t key, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	const struct counting *counting = arg;

	*counting->has_records = 1;
	return counting->sink->put(counting->sink->arg, series_idx, key, record, where, err);
}

static int counting_message(void *arg, uint32_t series_idx, int64_t key, const void *bytes,
	uint32_t len, const struct stoup_where *where, struct stoup_error *err)
{
	const struct counting *counting = arg;

	*counting->has_records = 1;
	return counting->sink->message(
		counting->sink->arg, series_idx, key, bytes, len, where, err);
}

static void counting_note(void *arg, const char *text)
{
	const struct counting *counting = arg;

	counting->sink->note(counting->sink->arg, text);
}

static struct stoup_sink counting_sink(struct counting *counting)
{
	return (struct stoup_sink){.arg = counting,
		.series = counting_series,
		.put = counting_put,
		.message = counting->sink->message ? counting_message : NULL,
		.note = counting->sink->note ? counting_note : NULL};
}

/* ---- files ----------------------------------------------------------------------------------------- */

/* Opened once: what was looked at in a pipe can not be read again. */
static int file_import(struct run *run, const struct stoup_file *file,
	const struct stoup_sink *sink, const struct stoup_importer **ret_importer,
	struct stoup_error *err)
{
	struct stoup_ingest_options options = run->ingest->options;
	struct stoup_input *input;
	int rc = file->member < 0 ? stoup_input_open(file->path, &input, err)
	                          : stoup_input_open_member(file->path, (uint32_t)file->member,
					    file->name, &input, err);

	options.csv.threads = run->threads_per_file;
	if (rc < 0)
		return rc;
	rc = importer_choose(run, input, sink, ret_importer, err);
	if (rc == 0)
		rc = run->build ? to_event64(run, input, *ret_importer, err)
		                : (*ret_importer)->ingest(sink, input, &options, err);
	stoup_input_close(input);
	return rc;
}

/* Nobody named this file: the others can go without it. Said where there is room for it. */
static void exclude_hint(
	const struct run *run, const struct stoup_file *file, struct stoup_error *err)
{
	const char *name = strrchr(file->path, '/');
	size_t len = strlen(err->text);
	char hint[128];
	int hint_len;

	if (!file->found || run->files.cnt < 2 || strstr(err->text, "--exclude"))
		return;
	hint_len = snprintf(hint, sizeof(hint), "; or leave it out: --exclude '%s'",
		name ? name + 1 : file->path);
	if (hint_len > 0 && (size_t)hint_len < sizeof(hint) &&
		len + (size_t)hint_len < sizeof(err->text))
		memcpy(err->text + len, hint, (size_t)hint_len + 1);
}

/* What the records are beside the bytes: options, what the name says, and which file of an archive it is. */
static uint64_t meaning_of(const struct run *run, const struct stoup_file *file)
{
	uint64_t hash = stoup_importer_meaning(
		&run->ingest->options, file->name, run->ingest->options_hash);

	return file->member < 0 ? hash : (hash ^ (uint64_t)file->member) * UINT64_C(0x100000001b3);
}

/* Read one file into a sink, unless the store has it. The store does not change: it is locked. */
static int file_read(void *arg, size_t idx, const struct stoup_sink *sink, struct stoup_error *err)
{
	struct run *run = arg;
	struct source_state *source = &run->sources[idx];
	struct counting counting = {sink, &source->has_records};
	const struct stoup_sink counted = counting_sink(&counting);
	const struct stoup_file *file = &run->files.at[idx];
	int rc = stoup_source_of(file->path, meaning_of(run, file), &source->source, err);

	if (rc < 0)
		return rc;
	source->is_file = rc;
	if (source->is_file && !run->ingest->again && !run->ingest->import.replace)
		source->known =
			stoup_source_known(stoup_import_store(run->import), &source->source.entry);
	if (source->known)
		return 0;
	rc = file_import(run, file, &counted, &source->importer, err);
	if (rc == -EINVAL || rc == -EBADMSG)
		exclude_hint(run, file, err);
	if (rc == 0 && source->is_file)
		source->is_file = stoup_source_same(file->path, &source->source);
	return rc;
}

/* Threads for all files together. */
static uint32_t thread_cnt(const struct run *run)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (run->ingest->import.threads)
		return run->ingest->import.threads;
	return cores > 0 ? (uint32_t)cores : 1;
}

static uint32_t reader_cnt(const struct run *run)
{
	uint32_t cnt = thread_cnt(run);

	return cnt < run->files.cnt ? cnt : (uint32_t)run->files.cnt;
}

/* Events of all files are in memory before the first is put: their builder takes one file at a time. */
static int files_read(struct run *run, struct stoup_error *err)
{
	const struct stoup_sink sink = stoup_import_sink(run->import);
	const struct stoup_lanes lanes = {.file_cnt = run->files.cnt,
		.threads = reader_cnt(run),
		.read = file_read,
		.arg = run};
	int rc = 0;

	run->threads_per_file = thread_cnt(run) / lanes.threads;
	if (!run->build)
		return stoup_lanes_run(&lanes, &sink, err);
	for (size_t i = 0; i < run->files.cnt && rc == 0; i++)
		rc = file_read(run, i, &sink, err);
	return rc;
}

static int content_cmp(const void *a, const void *b)
{
	const struct source_state *const *sa = a, *const *sb = b;
	const struct stoup_vol_source *ea = &(*sa)->source.entry, *eb = &(*sb)->source.entry;
	int rc = memcmp(ea->hash, eb->hash, sizeof(ea->hash));

	if (rc == 0 && ea->options_hash != eb->options_hash)
		rc = ea->options_hash < eb->options_hash ? -1 : 1;
	return rc != 0 ? rc : (*sa > *sb) - (*sa < *sb);
}

/* Two copies of a file: the second is one that the store has. */
static int copies_check(const struct run *run, struct stoup_error *err)
{
	const struct source_state **files = calloc(run->files.cnt, sizeof(*files));
	size_t cnt = 0;
	int rc = files ? 0 : stoup_error_set(err, -ENOMEM, "no memory for a list of files");

	for (size_t i = 0; rc == 0 && i < run->files.cnt; i++)
		if (run->sources[i].is_file && run->sources[i].has_records)
			files[cnt++] = &run->sources[i];
	if (cnt > 1)
		qsort(files, cnt, sizeof(*files), content_cmp);
	for (size_t i = 1; i < cnt && rc == 0; i++) {
		const struct stoup_vol_source *a = &files[i - 1]->source.entry,
					      *b = &files[i]->source.entry;

		if (a->options_hash == b->options_hash &&
			memcmp(a->hash, b->hash, sizeof(a->hash)) == 0)
			rc = stoup_error_set(err, -EINVAL,
				"%.80s and %.80s hold the same: its records would be there twice; "
				"leave one out, or say --again",
				run->files.at[files[i - 1] - run->sources].name,
				run->files.at[files[i] - run->sources].name);
	}
	free(files);
	return rc;
}

/* List what was read, and tell what was left out. Returns how many files were. */
static int sources_finish(struct run *run, size_t *ret_known_cnt, struct stoup_error *err)
{
	size_t known_cnt = 0, first = 0;
	int rc = 0;

	for (size_t i = 0; i < run->files.cnt && rc == 0; i++) {
		const struct source_state *source = &run->sources[i];

		if (source->known)
			first = known_cnt++ == 0 ? i : first;
		else if (source->is_file)
			rc = stoup_import_add_source(run->import, &source->source.entry, err);
	}
	if (rc == 0 && known_cnt > 0) {
		const char *name = strrchr(run->sources[first].known->path, '/');

		char more[40] = "";

		if (known_cnt > 1)
			snprintf(more, sizeof(more), " and %zu more", known_cnt - 1);
		fprintf(stderr,
			"%s%s: the store has %s already (in %s, with these options): left out; --again reads %s\n",
			run->files.at[first].name, more, known_cnt > 1 ? "them" : "it",
			name ? name + 1 : "", known_cnt > 1 ? "them" : "it");
	}
	*ret_known_cnt = known_cnt;
	return rc;
}

static int finish(struct run *run, struct stoup_error *err)
{
	size_t known_cnt = 0;
	int rc = run->build ? stoup_event64_build_finish(run->build, err) : 0;

	if (rc == 0 && !run->ingest->again)
		rc = copies_check(run, err);
	if (rc == 0)
		rc = options_unused(run, err);
	if (rc == 0)
		rc = sources_finish(run, &known_cnt, err);
	if (rc < 0)
		return rc;
	if (known_cnt < run->files.cnt)
		return stoup_import_finish(run->import, err);
	if (!run->ingest->import.quiet)
		printf("nothing new: the store has %s\n",
			known_cnt == 1 ? "the file already" : "all of the files already");
	return 0;
}

int stoup_ingest_run(const struct stoup_ingest *ingest, struct stoup_error *err)
{
	struct run run = {.ingest = ingest};
	struct stoup_sink sink = {0}; /* notes go to stderr */
	const struct stoup_files_options files = {
		ingest->options.format, ingest->include, ingest->exclude};
	int rc = stoup_files_expand(ingest->args, ingest->arg_cnt, &files, &sink, &run.files, err);

	if (rc == 0)
		rc = stoup_import_begin(&ingest->import, &run.import, err);
	if (rc == 0 && ingest->to_event64)
		rc = stoup_event64_build_create(
			run.import, &ingest->options.event64, &run.build, err);
	if (rc == 0 && !(run.sources = calloc(run.files.cnt, sizeof(*run.sources))))
		rc = stoup_error_set(err, -ENOMEM, "no memory for a list of files");
	if (rc == 0)
		rc = files_read(&run, err);
	if (rc == 0)
		rc = finish(&run, err);
	stoup_event64_build_destroy(run.build);
	stoup_import_destroy(run.import);
	free(run.sources);
	stoup_files_fini(&run.files);
	return rc;
}
