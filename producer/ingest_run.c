/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_run.c - see ingest_run.h. */
#include "producer/ingest_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct run {
	const struct stoup_ingest *ingest;
	struct stoup_import *import;
	struct stoup_event64_build *build; /* or NULL */
};

/* Events are collected until all files were read. */
static int to_event64(struct run *run, struct stoup_input *input,
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

static int input_ingest(struct run *run, struct stoup_input *input, struct stoup_error *err)
{
	const struct stoup_sink sink = stoup_import_sink(run->import);
	const struct stoup_importer *importer;
	int guess, rc;

	rc = stoup_importer_find(input, &run->ingest->options, &importer, &guess, err);
	if (rc == 0)
		rc = symbols_check(run->ingest, input, importer, err);
	if (rc < 0)
		return rc;
	if (guess)
		stoup_sink_note(&sink, "%s: taken as %s (--format %s)", stoup_input_name(input),
			importer->what, importer->name);
	if (run->build)
		return to_event64(run, input, importer, err);
	return importer->ingest(&sink, input, &run->ingest->options, err);
}

/* Opened once: what was looked at in a pipe can not be read again. */
static int file_ingest(struct run *run, const char *path, struct stoup_error *err)
{
	struct stoup_input *input;
	int rc = stoup_input_open(path, &input, err);

	if (rc < 0)
		return rc;
	rc = input_ingest(run, input, err);
	stoup_input_close(input);
	return rc;
}

int stoup_ingest_run(const struct stoup_ingest *ingest, struct stoup_error *err)
{
	struct run run = {.ingest = ingest};
	size_t i;
	int rc = stoup_import_begin(&ingest->import, &run.import, err);

	if (rc == 0 && ingest->to_event64)
		rc = stoup_event64_build_create(
			run.import, &ingest->options.event64, &run.build, err);
	for (i = 0; i < ingest->file_cnt && rc == 0; i++)
		rc = file_ingest(&run, ingest->files[i], err);
	if (rc == 0 && run.build)
		rc = stoup_event64_build_finish(run.build, err);
	stoup_event64_build_destroy(run.build);
	if (rc == 0)
		rc = stoup_import_finish(run.import, err);
	stoup_import_destroy(run.import);
	return rc;
}
