/* SPDX-License-Identifier: Apache-2.0 */
/* importer.h - the formats that `stoup ingest` reads: one entry each.
 *
 *      first bytes, name --is?--> importer --ingest--> sink
 *      --format NAME ----named--> importer
 *
 * Formats are asked in the order of the table, and the first that knows the bytes is taken; text that
 * nobody knows is CSV. A format that was guessed from less than its own magic says so (`is` returns
 * STOUP_FORMAT_GUESS).
 *
 * Concurrency: importers are called by several threads at once, each with an input and a sink of its own;
 * options and table are immutable then.
 */
#ifndef STOUP_PRODUCER_IMPORTER_H
#define STOUP_PRODUCER_IMPORTER_H

#include <stddef.h>
#include "producer/event64_build.h"
#include "producer/intake.h"
#include "producer/frames.h"
#include "producer/ingest_csv.h"
#include "producer/ingest_dbn.h"
#include "producer/ingest_itch.h"
#include "producer/ingest_jsonl.h"
#include "producer/input.h"
#include "producer/sink.h"

#define STOUP_FORMAT_PEEK_LEN 4096u /* bytes of the unpacked stream that `is` may see */

#define STOUP_FORMAT_NO    0
#define STOUP_FORMAT_GUESS 1 /* likely: told to the user */
#define STOUP_FORMAT_SURE  2 /* it has its own magic or ending */

/* What the user asked for. Each importer has its own struct; what several share stands here. */
struct stoup_ingest_options {
	const char *
		series; /* one series for all, where the format allows it; NULL: named by the data */
	const char *format;         /* --format as given; NULL: auto */
	struct stoup_intake filter; /* applied by the importer (symbols) and by the import (keys) */
	int allow_partial;          /* of a file that is cut at its end take what is whole */
	int allow_steps;  /* times may step back: they are sorted, or kept in their order */
	const char *date; /* of files that have times of day only; NULL: by their names */
	struct stoup_dbn_options dbn;
	struct stoup_itch_options itch;
	const char *symbol;      /* of files that hold one symbol; NULL: by their paths */
	int bi5_hour, bi5_point; /* one more than what was given; 0: not given */
	struct stoup_frames_options frames;
	struct stoup_csv_options csv;
	struct stoup_event64_options event64;
	struct stoup_jsonl_options jsonl;
};

struct stoup_importer {
	const char *name; /* of --format */
	const char *what; /* for people: "DBN", "CSV" */
	/* How names of its files end, without packing (".csv"); ends with NULL. Below directories only such
	 * files are read. */
	const char *const *suffixes;
	int takes_zip;   /* its files come as NAME.zip, too, whatever NAME ends with */
	int has_symbols; /* may --symbols be said? */
	/* Its options, and those of others that it refuses in words of its own; ends with NULL. NULL: none. */
	const char *const *takes;
	/* Do these first bytes, or this path, look like it? STOUP_FORMAT_*. NULL: only by --format. */
	int (*is)(const uint8_t *bytes, size_t len, const char *path);
	/* What a path says of the records, as text in dst[cap]: 1; 0: nothing. Files with the same bytes are
	 * two where it differs. NULL: paths say nothing. */
	int (*meaning)(const struct stoup_ingest_options *options, const char *path, char *dst,
		size_t cap);
	/* Is `format` another name that this importer answers to (a preset)? NULL: none. */
	int (*named)(const char *format);
	/* An option without value: 1 if it is one of this importer's. NULL: none. */
	int (*flag)(struct stoup_ingest_options *options, const char *name);
	/* An option with its value: 0; -ENOENT for another name, -EINVAL with text. NULL: none. */
	int (*option)(struct stoup_ingest_options *options, const char *name, const char *value,
		struct stoup_error *err);
	/* Help text of its options, static; NULL: none. */
	const char *(*usage)(void);
	/* Read an open input to its end and put what it holds. 0, or a negative errno with a text that
	 * names the file. */
	int (*ingest)(const struct stoup_sink *sink, struct stoup_input *input,
		const struct stoup_ingest_options *options, struct stoup_error *err);
};

/* All formats; ends with an entry without a name. The last one takes any text. */
extern const struct stoup_importer *const stoup_importers[];

/* The importer of a --format, or NULL. */
const struct stoup_importer *stoup_importer_named(const char *format);

/* The importer for an input, by its first bytes and path (options->format, where given): 0; or what
 * reading gives. `*ret_guess`: it was a guess. */
int stoup_importer_find(struct stoup_input *input, const struct stoup_ingest_options *options,
	const struct stoup_importer **ret, int *ret_guess, struct stoup_error *err);

/* Is `option` (without dashes) one of the importer's? */
int stoup_importer_takes(const struct stoup_importer *importer, const char *option);

/* The option's name as a text that stays, if it is one of an importer's; else NULL. */
const char *stoup_importer_option(const char *option);

/* What the formats are that take an option: "DBN, ITCH 5.0". */
void stoup_importer_takers(const char *option, char *dst, size_t cap);

/* FNV-1a of what a path says of the records, going on from `hash`. */
uint64_t stoup_importer_meaning(
	const struct stoup_ingest_options *options, const char *path, uint64_t hash);

/* Text of all --format names: "dbn, csv or npy". Static. */
const char *stoup_importer_names(void);

#endif
