/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_compact.c - `stoup compact`: fewer volumes, other codecs, other blocks; the same records.
 *
 * Which volumes: those that are small beside --volume, and those whose blocks are not as was asked for; and what lies
 * between them in time (rewrite.h). A volume that is as it should be stays what it is, so that a store that grows day by
 * day can be compacted day by day.
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codec/zone.h"
#include "producer/args.h"
#include "producer/cmd.h"
#include "producer/import_state.h"
#include "producer/rewrite_report.h"
#include "producer/stop.h"
#include "producer/store_private.h"
#include "shm/format.h"

static const char usage_text[] =
	"usage: stoup compact [options] STORE [PATTERN]\n"
	"\n"
	"Merge the volumes of a store into fewer ones, store their blocks anew, or both. The records stay what\n"
	"they are, in the same order; the new volumes are read back and compared before they replace the old\n"
	"ones. Daemons serve on meanwhile. Without options small volumes are merged, and full blocks are copied\n"
	"as they are. With PATTERN (a glob over names of series; * matches /, too) only volumes that hold such a\n"
	"series, and what lies between them in time.\n"
	"\n"
	"  --codec NAME      store blocks so: default, fast, small, none, lz4, lz4hc, zstd; a block that is\n"
	"                    stored so already is copied (default: what most of the volumes' bytes have);\n"
	"                    volumes of older releases get zone maps by it\n"
	"  --level N         of the codec; every block is then encoded anew\n"
	"  --block SIZE      decoded bytes of a block, 64K to 2M (default: as the store's full blocks)\n"
	"  --volume SIZE     decoded bytes of a volume (default 4G); volumes under half of it are merged\n"
	"  --overlaps WHAT   volumes that the store leaves out because they overlap others, such as copies:\n"
	"                    refuse (default) names them; merge takes all their records in, by time, those of\n"
	"                    the older volume first where times are equal, so that a record that two volumes\n"
	"                    hold is there twice; dedup takes them in, too, but of records that are equal in\n"
	"                    every byte in two ingests keeps one (equal records of one ingest stay)\n"
	"  --dry-run         only say what would be done\n"
	"  --threads N       encoders (default: one per core)\n"
	"  --memory SIZE     for decoded blocks, 1M to 64G (default 64M and one block of each volume in which\n"
	"                    series share blocks, at most 1G; with less these are decoded more than once)\n"
	"  --quiet           no summary, no progress\n";

enum overlaps {
	OVERLAPS_REFUSE,
	OVERLAPS_MERGE,
	OVERLAPS_DEDUP
};

struct compact {
	struct stoup_rewrite_options options;
	const char *codec, *level, *pattern;
	enum overlaps overlaps;
	struct stoup_rewrite *rewrite;
};

/* ---- arguments ------------------------------------------------------------------------------- */

static int overlaps_parse(struct compact *compact, const char *text, struct stoup_error *err)
{
	static const char *const names[] = {"refuse", "merge", "dedup"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(text, names[i]) == 0) {
			compact->overlaps = (enum overlaps)i;
			compact->options.dedup = compact->overlaps == OVERLAPS_DEDUP;
			return 0;
		}
	}
	return stoup_error_set(err, -EINVAL, "--overlaps %.60s: refuse, merge or dedup", text);
}

/* One option with a value. 1 it was one; 0 none; -EINVAL. */
static int value_parse(struct compact *compact, struct stoup_args *args, struct stoup_error *err)
{
	struct stoup_rewrite_options *options = &compact->options;
	uint64_t len;
	int rc;

	if ((rc = stoup_args_value(args, "--codec", err)) != 0)
		compact->codec = args->value;
	else if ((rc = stoup_args_value(args, "--level", err)) != 0)
		compact->level = args->value;
	else if ((rc = stoup_args_value(args, "--overlaps", err)) != 0)
		return rc < 0 || overlaps_parse(compact, args->value, err) < 0 ? -EINVAL : 1;
	else if ((rc = stoup_args_value(args, "--threads", err)) != 0)
		return rc < 0 || stoup_args_count("--threads", args->value, 1, 1024,
					 &options->threads, err) < 0
		               ? -EINVAL
		               : 1;
	else if ((rc = stoup_args_value(args, "--block", err)) != 0) {
		if (rc > 0 && stoup_args_size("--block", args->value, STOUP_IMPORT_BLOCK_LEN_MIN,
				      STOUP_IMPORT_BLOCK_LEN_MAX, &len, err) < 0)
			return -EINVAL;
		options->block_len = rc > 0 ? (uint32_t)len : 0;
	} else if ((rc = stoup_args_value(args, "--volume", err)) != 0)
		return rc < 0 || stoup_args_size("--volume", args->value, 65536, UINT64_C(1) << 50,
					 &options->volume_len, err) < 0
		               ? -EINVAL
		               : 1;
	else if ((rc = stoup_args_value(args, "--memory", err)) != 0)
		return rc < 0 || stoup_args_size("--memory", args->value, 1u << 20,
					 UINT64_C(64) << 30, &options->memory_len, err) < 0
		               ? -EINVAL
		               : 1;
	return rc;
}

static int args_parse(struct compact *compact, int argc, char **argv, struct stoup_error *err)
{
	struct stoup_args args = {.argc = argc, .argv = argv};
	struct stoup_rewrite_options *options = &compact->options;
	int rc;

	for (args.at = 1; args.at < argc; args.at++) {
		const char *word = argv[args.at];

		rc = value_parse(compact, &args, err);
		if (rc < 0)
			return rc;
		if (rc > 0)
			continue;
		if (stoup_args_flag(&args, "--dry-run"))
			options->dry_run = 1;
		else if (stoup_args_flag(&args, "--quiet"))
			options->quiet = 1;
		else if (word[0] == '-')
			return stoup_error_set(err, -EINVAL, "unknown option %.60s", word);
		else if (!options->store_path)
			options->store_path = word;
		else if (!compact->pattern)
			compact->pattern = word;
		else
			return stoup_error_set(err, -EINVAL, "too many arguments: %.60s", word);
	}
	if (!options->store_path)
		return stoup_error_set(err, -EINVAL, "STORE is missing");
	if (compact->level && !compact->codec)
		return stoup_error_set(err, -EINVAL, "--level needs --codec");
	if (compact->codec &&
		stoup_encoding_parse(compact->codec, compact->level, &options->encoding) < 0)
		return stoup_error_set(err, -EINVAL,
			"--codec %.30s%s%.30s: default, fast, small, none, lz4, lz4hc or zstd, and a level "
			"that it has",
			compact->codec, compact->level ? " --level " : "",
			compact->level ? compact->level : "");
	options->has_encoding = compact->codec != NULL;
	options->recode = compact->level != NULL;
	return 0;
}

/* ---- choosing -------------------------------------------------------------------------------- */

static int holds(const struct stoup_vol_index *index, const char *pattern)
{
	uint32_t i;

	for (i = 0; pattern && i < index->series_cnt; i++) {
		if (fnmatch(pattern, index->series[i].name, 0) == 0)
			return 1;
	}
	return !pattern;
}

/* Records of each block. NULL: no memory. */
static uint32_t *record_cnts(const struct stoup_vol_index *index)
{
	uint32_t *cnts = calloc(index->block_cnt + 1u, sizeof(*cnts)), i;

	for (i = 0; cnts && i < index->segment_cnt; i++)
		cnts[index->segments[i].block_idx] += index->segments[i].record_cnt;
	return cnts;
}

/* Is the length of a block not that of a full one of `len` bytes? The last one of its schema may be shorter. Messages are
 * of any length: one may be alone in a longer block, and a block is full where the next one does not fit in, too. */
static int is_other_len(
	const struct stoup_vol_index *index, uint32_t block_idx, uint32_t len, uint32_t record_cnt)
{
	const struct stoup_vol_block *block = &index->blocks[block_idx];
	const struct stoup_vol_block *next =
		block_idx + 1 < index->block_cnt && block[1].schema_idx == block->schema_idx
			? block + 1
			: NULL;

	if (index->schemas[block->schema_idx].stride == 0)
		return (block->raw_len > len && record_cnt > 1) ||
		       (next && (uint64_t)block->raw_len + next->raw_len <= len);
	return block->raw_len > len || (next && block->raw_len < len - len / 4);
}

/* Decoded bytes of segments that would have a zone map if they were written now. */
static uint64_t lacking_zones(const struct stoup_vol_index *index)
{
	uint64_t len = 0;
	uint32_t i;

	for (i = 0; i < index->segment_cnt; i++)
		if (!stoup_vol_zone(index, i) && stoup_vol_zone_len(index, i) > 0 &&
			index->segments[i].record_cnt >= STOUP_ZONE_RECORDS_MIN)
			len += index->segments[i].raw_len;
	return len;
}

/* Are the blocks not as was asked for? A tenth of the bytes may be otherwise: blocks that did not become shorter, the
 * last ones of their series. */
static int is_otherwise(const struct compact *compact, const struct stoup_vol_index *index)
{
	const struct stoup_rewrite_options *options = &compact->options;
	uint64_t total = 0, otherwise = 0;
	uint32_t *cnts = record_cnts(index), i;

	for (i = 0; i < index->block_cnt; i++) {
		const struct stoup_vol_block *block = &index->blocks[i];
		uint32_t stride = index->schemas[block->schema_idx].stride;
		uint32_t len = options->block_len;
		int other = options->recode;

		if (options->has_encoding)
			other |= block->codec != options->encoding.codec ||
			         block->transform !=
			                 stoup_encoding_transform(&options->encoding, stride);
		if (len > 0 && stride > 0)
			len = stoup_import_block_len(len,
				options->has_encoding ? options->encoding.codec : block->codec,
				stride);
		if (len > 0)
			other |= is_other_len(index, i, len, cnts ? cnts[i] : 1);
		total += block->raw_len;
		otherwise += other ? block->raw_len : 0;
	}
	free(cnts);
	return otherwise > total / 10 ||
	       (options->has_encoding && lacking_zones(index) > total / 10);
}

static uint64_t raw_len_of(const struct stoup_vol_index *index)
{
	uint64_t len = 0;
	uint32_t i;

	for (i = 0; i < index->block_cnt; i++)
		len += index->blocks[i].raw_len;
	return len;
}

static int overlaps_refuse(const struct stoup_store *store, struct stoup_error *err)
{
	const char *name = strrchr(store->overlaps[0]->path, '/');

	return stoup_error_set(err, -EEXIST,
		"%.60s%s left out of the store because of overlaps: --overlaps merge takes in all their "
		"records, --overlaps dedup without those that are there already; or remove the file",
		name ? name + 1 : store->overlaps[0]->path,
		store->overlap_cnt > 1 ? " and others are" : " is");
}

enum want {
	WANT_NOT,
	WANT_SMALL,
	WANT_OTHERWISE
};

/* Would a small volume be taken out of an ingest whose others stay? Then it stays, too: its files would no longer be known,
 * and it has at least one full volume beside it. */
static int is_tail(const struct compact *compact, const uint8_t *wants, uint32_t volume_idx)
{
	const struct stoup_store *store = stoup_rewrite_store(compact->rewrite);
	uint32_t first, end, i;
	int stays = 0;

	if (wants[volume_idx] != WANT_SMALL ||
		!stoup_rewrite_is_shared(compact->rewrite, volume_idx, &first, &end))
		return 0;
	for (i = first; i < end; i++) {
		if (!stoup_store_same_batch(&store->volumes[i]->index->header,
			    &store->volumes[volume_idx]->index->header))
			continue;
		if (wants[i] == WANT_OTHERWISE)
			return 0;
		stays |= wants[i] == WANT_NOT;
	}
	return stays;
}

static void wanted_choose(const struct compact *compact, const uint8_t *wants)
{
	const struct stoup_store *store = stoup_rewrite_store(compact->rewrite);
	uint32_t i;

	for (i = 0; i < store->volume_cnt; i++) {
		if (wants[i] != WANT_NOT && !is_tail(compact, wants, i))
			stoup_rewrite_choose(compact->rewrite, i);
	}
}

/* Choose; *ret_otherwise: how many are chosen for their blocks. */
static int choose(struct compact *compact, uint32_t *ret_otherwise, struct stoup_error *err)
{
	const struct stoup_store *store = stoup_rewrite_store(compact->rewrite);
	uint64_t volume_len =
		compact->options.volume_len ? compact->options.volume_len : STOUP_IMPORT_VOLUME_LEN;
	uint32_t i, match_cnt = 0;
	uint8_t *wants;

	if (store->overlap_cnt > 0 && compact->overlaps == OVERLAPS_REFUSE)
		return overlaps_refuse(store, err);
	for (i = 0; i < store->overlap_cnt; i++)
		stoup_rewrite_choose_overlap(compact->rewrite, i);
	wants = calloc(store->volume_cnt + 1u, sizeof(*wants));
	if (!wants)
		return stoup_error_set(err, -ENOMEM, "no memory to choose volumes");
	for (i = 0; i < store->volume_cnt; i++) {
		const struct stoup_vol_index *index = store->volumes[i]->index;
		int otherwise;

		if (!holds(index, compact->pattern))
			continue;
		match_cnt++;
		otherwise = is_otherwise(compact, index);
		*ret_otherwise += otherwise != 0;
		if (otherwise)
			wants[i] = WANT_OTHERWISE;
		else if (raw_len_of(index) < volume_len / 2)
			wants[i] = WANT_SMALL;
	}
	wanted_choose(compact, wants);
	free(wants);
	if (match_cnt == 0 && compact->pattern)
		return stoup_error_set(err, -ENOENT, "no series of %.80s matches '%.80s'",
			store->path, compact->pattern);
	return 0;
}

/* ---- command --------------------------------------------------------------------------------- */

static void dry_run_print(const struct compact *compact)
{
	const struct stoup_rewrite *rewrite = compact->rewrite;
	const struct stoup_store *store = stoup_rewrite_store(rewrite);
	uint32_t planned = stoup_rewrite_planned_cnt(rewrite), i;

	for (i = 0; i < store->volume_cnt; i++) {
		if (stoup_rewrite_is_chosen(rewrite, i))
			printf("would rewrite %s\n", store->volumes[i]->path);
	}
	for (i = 0; i < store->overlap_cnt; i++)
		printf("would merge   %s (left out now because it overlaps)\n",
			store->overlaps[i]->path);
	printf("%" PRIu32 " of %" PRIu32 " volumes would become %" PRIu32 "\n",
		stoup_rewrite_chosen_cnt(rewrite), store->volume_cnt + store->overlap_cnt, planned);
	stoup_rewrite_report_need(rewrite);
}

static int compact_run(struct compact *compact, struct stoup_error *err)
{
	uint32_t otherwise = 0, chosen;
	int rc = stoup_rewrite_begin(&compact->options, &compact->rewrite, err);

	if (rc == 0)
		rc = choose(compact, &otherwise, err);
	if (rc == 0)
		rc = stoup_rewrite_draw_in(compact->rewrite, err);
	if (rc < 0)
		return rc;
	chosen = stoup_rewrite_chosen_cnt(compact->rewrite);
	if (otherwise == 0 && stoup_rewrite_store(compact->rewrite)->overlap_cnt == 0 &&
		stoup_rewrite_planned_cnt(compact->rewrite) >= chosen) {
		if (!compact->options.quiet)
			printf("nothing to be gained: %s is as it was asked for (%" PRIu32
			       " volume%s)\n",
				compact->options.store_path,
				stoup_rewrite_store(compact->rewrite)->volume_cnt,
				STOUP_PLURAL(stoup_rewrite_store(compact->rewrite)->volume_cnt));
		return 0;
	}
	if (compact->options.dry_run) {
		dry_run_print(compact);
		return 0;
	}
	rc = stoup_rewrite_run(compact->rewrite, NULL, err);
	if (rc < 0)
		return rc;
	stoup_rewrite_sweep(compact->rewrite);
	if (!compact->options.quiet) {
		stoup_rewrite_report_series(compact->rewrite);
		stoup_rewrite_report_volumes(compact->rewrite);
	}
	return 0;
}

int stoup_cmd_compact(int argc, char **argv)
{
	struct compact compact = {.options = {.label = "compacting", .whole_ingests = 1}};
	struct stoup_error err = {0};
	int rc;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage_text, stdout);
		return STOUP_EXIT_OK;
	}
	if (args_parse(&compact, argc, argv, &err) < 0) {
		fprintf(stderr, "stoup compact: %s; see `stoup help compact`\n", err.text);
		return STOUP_EXIT_USAGE;
	}
	rc = compact_run(&compact, &err);
	stoup_rewrite_end(compact.rewrite);
	if (rc < 0)
		fprintf(stderr, "stoup compact: %s\n", err.text);
	stoup_stop_raise();
	return rc < 0 ? STOUP_EXIT_FAIL : STOUP_EXIT_OK;
}
