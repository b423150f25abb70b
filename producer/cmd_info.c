/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_info.c - `stoup info`: volumes, series and segments, as the indexes tell them.
 *
 * Blocks are shared by series: a segment's stored bytes are its share of its block by decoded length.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "codec/block.h"
#include "producer/cmd.h"
#include "producer/parts.h"
#include "producer/rewrite_report.h"
#include "producer/volume_file.h"
#include "shm/format.h"

static const char usage_text[] =
	"usage: stoup info [--json] [--segments] STORE|FILE [SERIES|PATTERN]\n"
	"\n"
	"Show the volumes of a store, or one volume: id, place in the order of ingests, when it was written, what it\n"
	"supersedes; and its series. With SERIES or PATTERN (a glob over the whole name), or with --segments, each\n"
	"segment, too: volume, block, records, ordinal of the first one in its series, first and last key, decoded\n"
	"and stored bytes, codec, ratio. Only indexes are read, and no lock is taken.\n"
	"\n"
	"  --json       {\"volumes\": [...], \"series\": [{\"name\": ..., \"segments\": [...]}]}, always with segments\n"
	"  --segments   of all series\n";

struct info {
	const char *path, *pattern;
	int json, segments;
	struct stoup_store *store; /* or one file: */
	struct stoup_store_volume file;
	const struct stoup_store_volume **volumes;
	uint32_t volume_cnt;
	struct stoup_parts parts;
};

/* ---- words ----------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void way_text(const struct stoup_vol_block *block, char *ret_text, size_t cap)
{
	static const char *const codecs[] = {"none", "lz4", "zstd"};
	const char *codec = block->codec <= STOUP_CODEC_LAST ? codecs[block->codec] : "unknown";

	snprintf(ret_text, cap, "%s%s",
		block->transform == STOUP_TRANSFORM_NONE     ? ""
		: block->transform == STOUP_TRANSFORM_FIELDS ? "fields+"
							     : "unknown+",
		codec);
}

static void id_text(const uint8_t id[16], char ret_text[33])
{
	size_t i;

	for (i = 0; i < 16; i++)
		snprintf(ret_text + 2 * i, 3, "%02x", id[i]);
}

static const struct stoup_vol_block *block_of(
	const struct stoup_part *part, const struct stoup_vol_segment *segment)
{
	return &part->volume->index->blocks[segment->block_idx];
}

static double stored_len(const struct stoup_part *part, const struct stoup_vol_segment *segment)
{
	const struct stoup_vol_block *block = block_of(part, segment);

	return (double)block->stored_len * segment->raw_len / block->raw_len;
}

static uint64_t raw_len_of(const struct stoup_vol_index *index)
{
	uint64_t len = 0;
	uint32_t i;

	for (i = 0; i < index->block_cnt; i++)
		len += index->blocks[i].raw_len;
	return len;
}

/* Segments that have a zone map. */
static uint32_t zone_cnt_of(const struct stoup_vol_index *index)
{
	uint32_t cnt = 0, i;

	for (i = 0; i < index->segment_cnt; i++)
		cnt += stoup_vol_zone(index, i) != NULL;
	return cnt;
}

/* ---- volumes --------------------------------------------------------------------------------- */

static void volume_print(const struct stoup_store_volume *volume)
{
	const struct stoup_vol_index *index = volume->index;
	const struct stoup_vol_header *header = &index->header;
	char id[33], created[STOUP_FORMAT_CAP], raw[STOUP_SIZE_TEXT_CAP], file[STOUP_SIZE_TEXT_CAP];
	char zones[STOUP_SIZE_TEXT_CAP];
	uint64_t raw_len = raw_len_of(index);
	uint32_t i, zone_cnt = zone_cnt_of(index);

	id_text(header->id, id);
	stoup_size_format(index->zone_len, zones);
	stoup_format_time(header->created_ns, created);
	stoup_size_format(raw_len, raw);
	stoup_size_format(index->file_len, file);
	printf("volume %s\n"
	       "  id %s, format %" PRIu32 ".%" PRIu32 ", ingest %" PRIu64 ", volume %" PRIu32
	       " of %" PRIu32 ", written %s\n"
	       "  %" PRIu32 " series, %" PRIu32 " segment%s, %" PRIu32
	       " block%s; decoded %s, stored %s, ratio %.2f\n"
	       "  zone maps of %" PRIu32 " segment%s, %s\n",
		base_name(volume->path), id, header->major, header->minor, header->ingest_seq,
		header->batch_idx + 1, header->batch_cnt, created, index->series_cnt,
		index->segment_cnt, STOUP_PLURAL(index->segment_cnt), index->block_cnt,
		STOUP_PLURAL(index->block_cnt), raw, file,
		(double)raw_len / (double)index->file_len, zone_cnt, STOUP_PLURAL(zone_cnt), zones);
	for (i = 0; i < index->superseded_cnt; i++) {
		id_text(index->superseded[i], id);
		printf("  supersedes %s\n", id);
	}
}

static void volume_json(const struct stoup_store_volume *volume, int first)
{
	const struct stoup_vol_index *index = volume->index;
	const struct stoup_vol_header *header = &index->header;
	char id[33];
	uint32_t i;

	id_text(header->id, id);
	printf("%s\n  {\"path\": ", first ? "" : ",");
	stoup_json_string(stdout, volume->path);
	printf(", \"id\": \"%s\", \"format\": \"%" PRIu32 ".%" PRIu32 "\", \"ingest_seq\": %" PRIu64
	       ", \"batch_idx\": %" PRIu32 ", \"batch_cnt\": %" PRIu32 ", \"created_ns\": %" PRId64
	       ", \"series\": %" PRIu32 ", \"segments\": %" PRIu32 ", \"blocks\": %" PRIu32
	       ", \"raw_bytes\": %" PRIu64 ", \"file_bytes\": %" PRIu64 ", \"zone_maps\": %" PRIu32
	       ", \"zone_bytes\": %" PRIu64 ", \"supersedes\": [",
		id, header->major, header->minor, header->ingest_seq, header->batch_idx,
		header->batch_cnt, header->created_ns, index->series_cnt, index->segment_cnt,
		index->block_cnt, raw_len_of(index), index->file_len, zone_cnt_of(index),
		index->zone_len);
	for (i = 0; i < index->superseded_cnt; i++) {
		id_text(index->superseded[i], id);
		printf("%s\"%s\"", i ? ", " : "", id);
	}
	printf("]}");
}

/* ---- series ---------------------------------------------------------------------------------- */

static void segment_print(
	const struct stoup_part *part, const struct stoup_vol_segment *segment, uint64_t ordinal)
{
	char first[STOUP_FORMAT_CAP], last[STOUP_FORMAT_CAP], way[32];
	double stored = stored_len(part, segment);

	stoup_format_time(segment->first_key, first);
	stoup_format_time(segment->last_key, last);
	way_text(block_of(part, segment), way, sizeof(way));
	printf("  %-28s %6" PRIu32 " %12" PRIu64 " %9" PRIu32 "  %s  %s %10" PRIu32
	       " %10.0f  %-11s %6.2f\n",
		base_name(part->volume->path), segment->block_idx, ordinal, segment->record_cnt,
		first, last, segment->raw_len, stored, way, segment->raw_len / stored);
}

static void segment_json(const struct stoup_part *part, const struct stoup_vol_segment *segment,
	uint64_t ordinal, int first)
{
	double stored = stored_len(part, segment);
	char way[32];

	way_text(block_of(part, segment), way, sizeof(way));
	printf("%s\n    {\"volume\": ", first ? "" : ",");
	stoup_json_string(stdout, base_name(part->volume->path));
	printf(", \"block\": %" PRIu32 ", \"records\": %" PRIu32 ", \"ordinal\": %" PRIu64
	       ", \"first_key\": %" PRId64 ", \"last_key\": %" PRId64 ", \"raw_bytes\": %" PRIu32
	       ", \"stored_bytes\": %.0f, \"codec\": \"%s\", \"ratio\": %.3f}",
		segment->block_idx, segment->record_cnt, ordinal, segment->first_key,
		segment->last_key, segment->raw_len, stored, way, segment->raw_len / stored);
}

/* All segments of a group, with their ordinals in the whole series. */
static void segments_show(const struct info *info, const struct stoup_part_group *group)
{
	uint64_t ordinal = 0;
	int first = 1;
	uint32_t i;
	size_t p;

	if (!info->json)
		printf("  %-28s %6s %12s %9s  %-30s  %-30s %10s %10s  %-11s %6s\n", "volume",
			"block", "ordinal", "records", "first", "last", "decoded", "stored",
			"codec", "ratio");
	for (p = 0; p < group->cnt; p++) {
		const struct stoup_part *part = &info->parts.parts[group->first + p];

		for (i = 0; i < part->series->segment_cnt; i++, first = 0) {
			const struct stoup_vol_segment *segment =
				&part->volume->index->segments[part->series->segment_first + i];

			if (info->json)
				segment_json(part, segment, ordinal + segment->ordinal, first);
			else
				segment_print(part, segment, ordinal + segment->ordinal);
		}
		ordinal += part->series->record_cnt;
	}
}

static void group_show(const struct info *info, size_t group_idx)
{
	const struct stoup_part_group *group = &info->parts.groups[group_idx];
	const struct stoup_part *parts = &info->parts.parts[group->first];
	char first[STOUP_FORMAT_CAP], last[STOUP_FORMAT_CAP];
	uint64_t record_cnt = 0, segment_cnt = 0;
	uint32_t flags = 0;
	size_t p;

	for (p = 0; p < group->cnt; p++) {
		record_cnt += parts[p].series->record_cnt;
		segment_cnt += parts[p].series->segment_cnt;
		flags |= parts[p].series->flags;
	}
	if (info->json) {
		printf("%s\n  {\"name\": ", group_idx ? "," : "");
		stoup_json_string(stdout, parts->series->name);
		printf(", \"schema\": ");
		stoup_json_string(stdout, stoup_part_schema(parts)->name);
		printf(", \"schema_hash\": \"%016" PRIx64 "\", \"stride\": %" PRIu32
		       ", \"records\": %" PRIu64 ", \"volumes\": %zu, \"keeps_order\": %s, "
		       "\"segments\": [",
			stoup_part_schema(parts)->hash, stoup_part_schema(parts)->stride,
			record_cnt, group->cnt,
			flags & STOUP_VOL_SERIES_KEEP_ORDER ? "true" : "false");
		segments_show(info, group);
		printf("]}");
		return;
	}
	stoup_format_time(parts->series->first_key, first);
	stoup_format_time(parts[group->cnt - 1].series->last_key, last);
	printf("series %s: %s, %" PRIu64 " record%s in %" PRIu64
	       " segment%s of %zu volume%s, %s to %s%s\n",
		parts->series->name, stoup_part_schema(parts)->name, record_cnt,
		STOUP_PLURAL(record_cnt), segment_cnt, STOUP_PLURAL(segment_cnt), group->cnt,
		STOUP_PLURAL(group->cnt), first, last,
		flags & STOUP_VOL_SERIES_KEEP_ORDER ? ", keeps its order" : "");
	if (info->segments || info->pattern)
		segments_show(info, group);
}

static void faults_show(const struct info *info)
{
	uint32_t i;

	for (i = 0; info->store && i < info->store->fault_cnt; i++) {
		if (!info->json) {
			fprintf(stderr, "stoup info: not shown: %s\n", info->store->faults[i].text);
			continue;
		}
		printf("%s\n  {\"path\": ", i ? "," : "");
		stoup_json_string(stdout, info->store->faults[i].path);
		printf(", \"text\": ");
		stoup_json_string(stdout, info->store->faults[i].text);
		printf("}");
	}
}

static void info_show(const struct info *info)
{
	uint32_t i;
	size_t g;

	if (info->json) {
		printf("{\"path\": ");
		stoup_json_string(stdout, info->path);
		printf(", \"volumes\": [");
	}
	for (i = 0; i < info->volume_cnt; i++) {
		if (info->json)
			volume_json(info->volumes[i], i == 0);
		else
			volume_print(info->volumes[i]);
	}
	if (info->json)
		printf("], \"series\": [");
	for (g = 0; g < info->parts.group_cnt; g++)
		group_show(info, g);
	if (info->json)
		printf("], \"faults\": [");
	faults_show(info);
	if (info->json)
		printf("]}\n");
}

/* ---- opening --------------------------------------------------------------------------------- */

static int file_open(struct info *info, struct stoup_error *err)
{
	struct stoup_vol_fault fault;
	struct stat st;
	char text[STOUP_ERROR_TEXT_CAP * 2];
	int rc;

	info->file.fd = open(info->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (info->file.fd < 0 || fstat(info->file.fd, &st) < 0)
		return stoup_error_set(err, -errno, "%.150s: %s", info->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return stoup_error_set(
			err, -EINVAL, "%.150s: neither a file nor a directory", info->path);
	info->file.path = strdup(info->path);
	if (!info->file.path)
		return stoup_error_set(err, -ENOMEM, "no memory to read the index");
	rc = stoup_volume_index_read(
		info->file.fd, (uint64_t)st.st_size, &info->file.index, &fault);
	if (rc < 0) {
		stoup_volume_fault_text(info->path, &fault, text, sizeof(text));
		return stoup_error_set(err, rc, "%s", text);
	}
	return 0;
}

static int volumes_open(struct info *info, struct stoup_error *err)
{
	struct stat st;
	uint32_t i;
	int rc;

	info->file.fd = -1;
	if (stat(info->path, &st) == 0 && !S_ISDIR(st.st_mode)) {
		rc = file_open(info, err);
		info->volume_cnt = 1;
	} else {
		rc = stoup_store_open(info->path, &info->store, err);
		if (rc == 0 && stoup_store_holds_nothing(info->store, err))
			rc = -ENOENT;
		info->volume_cnt = rc == 0 ? info->store->volume_cnt : 0;
	}
	if (rc < 0)
		return rc;
	info->volumes = calloc(info->volume_cnt + 1u, sizeof(*info->volumes));
	rc = info->volumes ? 0 : -ENOMEM;
	for (i = 0; i < info->volume_cnt && rc == 0; i++) {
		info->volumes[i] = info->store ? info->store->volumes[i] : &info->file;
		rc = stoup_parts_add(&info->parts, info->volumes[i], i, 0, info->pattern);
	}
	if (rc == 0)
		rc = stoup_parts_group(&info->parts, 0);
	if (rc < 0)
		return stoup_error_set(err, rc, "no memory for the list of series");
	if (info->pattern && info->parts.cnt == 0)
		return stoup_error_set(err, -ENOENT, "no series of %.80s matches '%.80s'",
			info->path, info->pattern);
	return 0;
}

/* ---- command --------------------------------------------------------------------------------- */

static int args_parse(struct info *info, int argc, char **argv, struct stoup_error *err)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			info->json = 1;
		else if (strcmp(argv[i], "--segments") == 0)
			info->segments = 1;
		else if (argv[i][0] == '-' && argv[i][1])
			return stoup_error_set(err, -EINVAL, "unknown option %.60s", argv[i]);
		else if (!info->path)
			info->path = argv[i];
		else if (!info->pattern)
			info->pattern = argv[i];
		else
			return stoup_error_set(err, -EINVAL, "too many arguments: %.60s", argv[i]);
	}
	return info->path ? 0 : stoup_error_set(err, -EINVAL, "STORE or FILE is missing");
}

int stoup_cmd_info(int argc, char **argv)
{
	struct info info = {.file = {.fd = -1}};
	struct stoup_error err = {0};
	int rc;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage_text, stdout);
		return STOUP_EXIT_OK;
	}
	if (args_parse(&info, argc, argv, &err) < 0) {
		fprintf(stderr, "stoup info: %s; see `stoup help info`\n", err.text);
		return STOUP_EXIT_USAGE;
	}
	rc = volumes_open(&info, &err);
	if (rc == 0)
		info_show(&info);
	else
		fprintf(stderr, "stoup info: %s\n", err.text);
	stoup_parts_fini(&info.parts);
	free(info.volumes);
	stoup_store_close(info.store);
	stoup_vol_index_destroy(info.file.index);
	free(info.file.path);
	if (info.file.fd >= 0)
		close(info.file.fd);
	return rc < 0 ? STOUP_EXIT_FAIL : STOUP_EXIT_OK;
}
