/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_verify.c - `stoup verify`: every byte of a volume, and what the bytes say.
 *
 *      header, footer, trailer   their checksums, every reference between them
 *      padding                   zero
 *      blocks                    hash of the stored bytes, decoding, hash of the decoded bytes
 *      records                   keys in order, and the segments' first and last keys
 *      documents                 all of each (stoup_doc_valid)
 *
 * Damage never ends the walk: each is told with file, region and offset, and the exit status is 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "codec/block.h"
#include "codec/zone.h"
#include "producer/cmd.h"
#include "producer/progress.h"
#include "producer/runs.h"
#include "producer/stop.h"
#include "producer/store.h"
#include "producer/verify.h"
#include "producer/volume_file.h"
#include "shm/message.h"
#include "shm/stoup_doc.h"

#define PAD_CHUNK_LEN 4096u

static const char usage_text[] =
	"usage: stoup verify [--quiet] STORE|FILE...\n"
	"       stoup verify --repair [--dry-run] [--quiet] STORE...\n"
	"\n"
	"Check every checksum, decode every block, check padding, the order of keys and zone maps. Each fault "
	"is\n"
	"told with file, region and offset; the exit status is 1 when there is one, and when a\n"
	"directory holds no volumes.\n"
	"\n"
	"  --quiet     faults only\n"
	"  --repair    drop what is damaged, so that the rest is whole: a volume with damaged blocks is written\n"
	"              anew without them, one whose index is damaged is no longer a part of the store. Tells of\n"
	"              each lost segment its series, records, ordinals and times. The damaged files stay beside\n"
	"              as NAME.damaged. A store without damage is not touched. Exit status 0: it is whole now\n"
	"  --dry-run   with --repair: only say what would be dropped\n";

struct verify {
	int quiet;
	struct stoup_progress progress;
	uint64_t done_len;
	uint64_t volume_cnt, block_cnt, fault_cnt;
};

/* What checking one volume needs. */
struct check {
	struct verify *verify;
	const char *path;
	int fd;
	const struct stoup_vol_index *index;
	uint32_t *order; /* segments by block */
	uint8_t *stored, *raw;
	uint8_t *row; /* the zone map of a segment as its records have it */
	void *scratch;
	struct stoup_verify_marks *marks; /* NULL: nobody mends */
	uint64_t fault_cnt;
};

static const char *plural(uint64_t cnt)
{
	return cnt == 1 ? "" : "s";
}

/* ---- reports --------------------------------------------------------------------------------- */

static void report(struct check *check, const struct stoup_vol_fault *fault)
{
	char text[STOUP_ERROR_TEXT_CAP * 2];

	stoup_volume_fault_text(check->path, fault, text, sizeof(text));
	stoup_progress_end(&check->verify->progress);
	printf("%s\n", text);
	check->fault_cnt++;
}

static void segment_mark(struct check *check, uint32_t segment_idx)
{
	if (!check->marks || check->marks->segments[segment_idx])
		return;
	check->marks->segments[segment_idx] = 1;
	check->marks->segment_cnt++;
}

static void report_segment(
	struct check *check, uint32_t segment_idx, uint64_t record_idx, const char *what)
{
	const struct stoup_vol_segment *segment = &check->index->segments[segment_idx];
	const struct stoup_vol_series *series = &check->index->series[segment->series_idx];
	struct stoup_vol_fault fault = {.code = -EBADMSG,
		.region = STOUP_VOL_REGION_BLOCK,
		.block_idx = segment->block_idx,
		.file_off = check->index->blocks[segment->block_idx].stored_off};

	snprintf(fault.what, sizeof(fault.what), "record %" PRIu64 " of series %.80s: %s",
		segment->ordinal + record_idx, series->name, what);
	report(check, &fault);
	segment_mark(check, segment_idx);
}

/* ---- padding --------------------------------------------------------------------------------- */

static void pad_check(struct check *check, uint64_t off, uint64_t len)
{
	uint8_t bytes[PAD_CHUNK_LEN];
	struct stoup_vol_fault fault = {.code = -EBADMSG, .region = STOUP_VOL_REGION_PADDING};

	while (len > 0) {
		size_t n = len < sizeof(bytes) ? (size_t)len : sizeof(bytes), i;
		int rc = stoup_file_read(check->fd, bytes, n, off);

		for (i = 0; rc == 0 && i < n && bytes[i] == 0; i++)
			;
		if (rc == 0 && i == n) {
			off += n;
			len -= n;
			continue;
		}
		fault.file_off = rc == 0 ? off + i : off;
		if (rc == 0)
			snprintf(fault.what, sizeof(fault.what),
				"byte is 0x%02x but should be zero", bytes[i]);
		else
			snprintf(fault.what, sizeof(fault.what), "reading failed: %s",
				strerror(-rc));
		report(check, &fault);
		if (check->marks)
			check->marks->padding = 1;
		return;
	}
}

static void padding_check(struct check *check)
{
	uint64_t off, len;
	uint32_t i;

	for (i = 0; stoup_vol_padding(check->index, i, &off, &len) == 1; i++)
		pad_check(check, off, len);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Keys of one segment of the decoded block. */
static void segment_check(struct check *check, uint32_t segment_idx)
{
	const struct stoup_vol_segment *segment = &check->index->segments[segment_idx];
	const struct stoup_vol_series *series = &check->index->series[segment->series_idx];
	const struct stoup_vol_schema *schema = &check->index->schemas[series->schema_idx];
	const uint8_t *record = check->raw + segment->raw_off + schema->key_off;
	int keep = (series->flags & STOUP_VOL_SERIES_KEEP_ORDER) != 0;
	int64_t key, max = segment->first_key;
	uint32_t i;

	for (i = 0; i < segment->record_cnt; i++, record += schema->stride) {
		memcpy(&key, record, sizeof(key));
		if (i == 0 && (keep ? key > max : key != max)) {
			report_segment(
				check, segment_idx, 0, "its key is not the segment's first key");
			return;
		}
		if (key < max && !keep) {
			report_segment(check, segment_idx, i, "its key is below the one before");
			return;
		}
		max = key > max ? key : max;
	}
	if (max != segment->last_key)
		report_segment(check, segment_idx, segment->record_cnt - 1,
			"its key is not the segment's last key");
}

/* The zone map of a segment whose records are whole: does it allow them all? */
static void zone_check(struct check *check, uint32_t segment_idx)
{
	const struct stoup_vol_index *index = check->index;
	const struct stoup_vol_segment *segment = &index->segments[segment_idx];
	const struct stoup_vol_series *series = &index->series[segment->series_idx];
	const struct stoup_vol_schema *schema = &index->schemas[series->schema_idx];
	const struct stoup_vol_field *fields = index->fields + schema->field_first;
	const uint8_t *row = stoup_vol_zone(index, segment_idx);
	struct stoup_vol_fault fault = {
		.code = -EBADMSG, .region = STOUP_VOL_REGION_FOOTER, .file_off = index->footer_off};
	uint32_t field;

	if (!row)
		return;
	stoup_zone_make(fields, schema->field_cnt, schema->stride, check->raw + segment->raw_off,
		segment->record_cnt, check->row);
	field = stoup_zone_excludes(fields, schema->field_cnt, row, check->row);
	if (field == schema->field_cnt)
		return;
	snprintf(fault.what, sizeof(fault.what),
		"the zone map of segment %" PRIu32
		" of series %.40s excludes values of field %.35s "
		"that it has",
		segment_idx - series->segment_first, series->name, fields[field].name);
	report(check, &fault);
	/* The records are whole: written anew, the volume loses none. */
	if (check->marks)
		check->marks->padding = 1;
}

/* The documents of a run of schema bipf, which was checked as a run. */
static int docs_check(const struct check *check, uint32_t segment_idx, struct stoup_error *err)
{
	const struct stoup_vol_segment *segment = &check->index->segments[segment_idx];
	const uint8_t *at = check->raw + segment->raw_off;
	const struct stoup_vol_schema *schema =
		&check->index->schemas[check->index->blocks[segment->block_idx].schema_idx];

	if (strcmp(schema->name, "bipf") != 0)
		return 0;
	for (uint64_t i = 0; i < segment->record_cnt; i++) {
		const struct stoup_message_head *head = (const void *)at;

		if (stoup_doc_valid(head + 1, head->len, err) < 0) {
			stoup_error_prefix(err, "%.80s, message %" PRIu64,
				check->index->series[segment->series_idx].name,
				segment->ordinal + i);
			return -EBADMSG;
		}
		at += stoup_message_unit_len(head->len);
	}
	return 0;
}

/* The message run that a segment is. */
static void run_check(struct check *check, uint32_t segment_idx)
{
	const struct stoup_vol_segment *segment = &check->index->segments[segment_idx];
	struct stoup_vol_fault fault = {.code = -EBADMSG,
		.region = STOUP_VOL_REGION_BLOCK,
		.block_idx = segment->block_idx,
		.file_off = check->index->blocks[segment->block_idx].stored_off};
	struct stoup_error err;
	int run_rc = stoup_run_check(check->index, segment_idx, check->raw, &err);

	if (run_rc == 0 && docs_check(check, segment_idx, &err) == 0)
		return;
	snprintf(fault.what, sizeof(fault.what), "%.*s", (int)sizeof(fault.what) - 1, err.text);
	report(check, &fault);
	/* What is no document was put so: its bytes are whole, and so are those beside it. */
	if (run_rc < 0)
		segment_mark(check, segment_idx);
}

/* Check one block; *at is the place in check->order of its first segment. */
static void block_check(struct check *check, uint32_t block_idx, uint32_t *at)
{
	const struct stoup_vol_index *index = check->index;
	struct stoup_vol_fault fault;
	int rc = stoup_volume_block_read(check->fd, index, block_idx, check->stored, &fault);

	if (rc == 0)
		rc = stoup_vol_block_decode(
			index, block_idx, check->stored, check->raw, check->scratch, &fault);
	if (rc < 0)
		report(check, &fault);
	for (; *at < index->segment_cnt; (*at)++) {
		uint32_t segment_idx = check->order[*at];

		if (index->segments[segment_idx].block_idx != block_idx)
			break;
		if (rc == 0 && index->schemas[index->blocks[block_idx].schema_idx].stride) {
			segment_check(check, segment_idx);
			zone_check(check, segment_idx);
		} else if (rc == 0)
			run_check(check, segment_idx);
		else if (rc != -ENOTSUP) /* what a later version wrote is not damaged */
			segment_mark(check, segment_idx);
	}
}

static void blocks_check(struct check *check)
{
	struct verify *verify = check->verify;
	uint32_t i, at = 0;

	for (i = 0; i < check->index->block_cnt; i++) {
		block_check(check, i, &at);
		stoup_progress_step(&verify->progress,
			verify->done_len + check->index->blocks[i].stored_off, 0);
	}
	verify->block_cnt += check->index->block_cnt;
}

/* ---- volumes --------------------------------------------------------------------------------- */

static int order_cmp(const void *a, const void *b, void *arg)
{
	const struct stoup_vol_index *index = arg;
	const uint32_t *ia = a, *ib = b;
	uint32_t ba = index->segments[*ia].block_idx, bb = index->segments[*ib].block_idx;

	if (ba != bb)
		return ba < bb ? -1 : 1;
	return *ia < *ib ? -1 : *ia > *ib;
}

static int check_init(struct check *check)
{
	const struct stoup_vol_index *index = check->index;
	size_t stored_len = 1, raw_len = 1, row_len = 1, scratch_len = stoup_block_scratch_len();
	/* qsort_r has no const for its context, and only hands it on. */
	union {
		const struct stoup_vol_index *in;
		void *out;
	} context = {.in = index};
	uint32_t i;

	for (i = 0; i < index->block_cnt; i++) {
		const struct stoup_vol_block *block = &index->blocks[i];

		stored_len = block->stored_len > stored_len ? block->stored_len : stored_len;
		raw_len = block->raw_len > raw_len ? block->raw_len : raw_len;
	}
	check->stored = malloc(stored_len);
	for (i = 0; i < index->segment_cnt; i++)
		if (stoup_vol_zone(index, i) && stoup_vol_zone_len(index, i) > row_len)
			row_len = stoup_vol_zone_len(index, i);
	check->raw = malloc(raw_len);
	check->row = malloc(row_len);
	check->scratch = aligned_alloc(64, (scratch_len + 63) / 64 * 64 + 64);
	check->order = calloc(index->segment_cnt + 1u, sizeof(*check->order));
	if (!check->stored || !check->raw || !check->row || !check->scratch || !check->order)
		return -ENOMEM;
	stoup_block_scratch_init(check->scratch);
	for (i = 0; i < index->segment_cnt; i++)
		check->order[i] = i;
	qsort_r(check->order, index->segment_cnt, sizeof(*check->order), order_cmp, context.out);
	return 0;
}

static void check_fini(struct check *check)
{
	free(check->stored);
	free(check->raw);
	free(check->row);
	free(check->scratch);
	free(check->order);
}

static void volume_verify(
	struct verify *verify, const char *path, int fd, const struct stoup_vol_index *index)
{
	struct check check = {.verify = verify, .path = path, .fd = fd, .index = index};
	char len[STOUP_SIZE_TEXT_CAP];

	verify->volume_cnt++;
	if (check_init(&check) < 0) {
		printf("%s: no memory to check it\n", path);
		check.fault_cnt++;
	} else {
		padding_check(&check);
		blocks_check(&check);
	}
	check_fini(&check);
	verify->fault_cnt += check.fault_cnt;
	verify->done_len += index->file_len;
	if (verify->quiet || check.fault_cnt > 0)
		return;
	stoup_size_format(index->file_len, len);
	stoup_progress_end(&verify->progress);
	printf("%s: good (%" PRIu32 " series, %" PRIu32 " block%s, %s)\n", path, index->series_cnt,
		index->block_cnt, plural(index->block_cnt), len);
}

int64_t stoup_volume_verify(const struct stoup_store_volume *volume,
	struct stoup_progress *progress, uint64_t done_len, struct stoup_verify_marks *marks)
{
	struct verify verify = {.done_len = done_len};
	struct check check = {.verify = &verify,
		.path = volume->path,
		.fd = volume->fd,
		.index = volume->index,
		.marks = marks};
	int rc = check_init(&check);

	if (progress)
		verify.progress = *progress;
	if (rc == 0) {
		padding_check(&check);
		blocks_check(&check);
	}
	check_fini(&check);
	if (progress)
		*progress = verify.progress;
	return rc < 0 ? rc : (int64_t)check.fault_cnt;
}

static void file_verify(struct verify *verify, const char *path, int fd, uint64_t file_len)
{
	struct stoup_vol_index *index = NULL;
	struct stoup_vol_fault fault;
	struct check check = {.verify = verify, .path = path};

	if (stoup_volume_index_read(fd, file_len, &index, &fault) < 0) {
		report(&check, &fault);
		verify->volume_cnt++;
		verify->fault_cnt++;
		return;
	}
	stoup_progress_begin(&verify->progress, path, file_len, verify->quiet);
	verify->done_len = 0;
	volume_verify(verify, path, fd, index);
	stoup_progress_end(&verify->progress);
	stoup_vol_index_destroy(index);
}

static int store_verify(struct verify *verify, const char *path, struct stoup_error *err)
{
	struct stoup_store *store;
	uint64_t total = 0;
	uint32_t i;
	int rc = stoup_store_open(path, &store, err);

	if (rc < 0)
		return rc;
	if (stoup_store_holds_nothing(store, err)) {
		stoup_store_close(store);
		return -ENOENT;
	}
	for (i = 0; i < store->volume_cnt; i++)
		total += store->volumes[i]->file_len;
	stoup_progress_begin(&verify->progress, path, total, verify->quiet);
	verify->done_len = 0;
	for (i = 0; i < store->fault_cnt; i++)
		printf("%s\n", store->faults[i].text);
	verify->fault_cnt += store->fault_cnt;
	verify->volume_cnt += store->fault_cnt;
	for (i = 0; i < store->volume_cnt; i++)
		volume_verify(verify, store->volumes[i]->path, store->volumes[i]->fd,
			store->volumes[i]->index);
	stoup_progress_end(&verify->progress);
	for (i = 0; i < store->unfinished_cnt && !verify->quiet; i++)
		fprintf(stderr, "note: %s/%s: %s\n", store->path, store->unfinished[i],
			STOUP_STORE_UNFINISHED_TEXT);
	for (i = 0; i < store->stale_cnt && !verify->quiet; i++)
		printf("%s/%s: superseded, not checked; the next ingest removes it\n", store->path,
			store->stale[i]);
	stoup_store_close(store);
	return 0;
}

/* ---- command --------------------------------------------------------------------------------- */

static int path_verify(struct verify *verify, const char *path, struct stoup_error *err)
{
	struct stat st;
	int rc = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) < 0)
		rc = stoup_error_set(err, -errno, "%s: %s", path, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		rc = store_verify(verify, path, err);
	else if (S_ISREG(st.st_mode))
		file_verify(verify, path, fd, (uint64_t)st.st_size);
	else
		rc = stoup_error_set(err, -EINVAL, "%s: neither a file nor a directory", path);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* What the options ask for. */
struct verify_args {
	int repair, dry_run, path_cnt;
};

static int args_parse(struct verify *verify, struct verify_args *args, int argc, char **argv,
	struct stoup_error *err)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--quiet") == 0)
			verify->quiet = 1;
		else if (strcmp(argv[i], "--repair") == 0)
			args->repair = 1;
		else if (strcmp(argv[i], "--dry-run") == 0)
			args->dry_run = 1;
		else if (argv[i][0] == '-')
			return stoup_error_set(err, -EINVAL, "unknown option %.60s", argv[i]);
		else
			args->path_cnt++;
	}
	if (args->path_cnt == 0)
		return stoup_error_set(err, -EINVAL, "STORE or FILE is missing");
	if (args->dry_run && !args->repair)
		return stoup_error_set(
			err, -EINVAL, "--dry-run is of --repair: verify alone changes nothing");
	return 0;
}

int stoup_cmd_verify(int argc, char **argv)
{
	struct verify verify = {0};
	struct verify_args args = {0};
	struct stoup_error err = {0};
	int i, rc, failed = 0;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage_text, stdout);
		return STOUP_EXIT_OK;
	}
	if (args_parse(&verify, &args, argc, argv, &err) < 0) {
		fprintf(stderr, "stoup verify: %s; see `stoup help verify`\n", err.text);
		return STOUP_EXIT_USAGE;
	}
	for (i = 1; i < argc; i++) {
		if (argv[i][0] == '-')
			continue;
		rc = args.repair ? stoup_repair(argv[i], args.dry_run, verify.quiet, &err)
		                 : path_verify(&verify, argv[i], &err);
		if (rc == 0)
			continue;
		fprintf(stderr, "stoup verify: %s\n", err.text);
		failed = 1;
	}
	stoup_stop_raise();
	/* Where nothing could be looked at, zeros would read as a result. */
	if (!verify.quiet && verify.volume_cnt > 0)
		printf("%" PRIu64 " volume%s, %" PRIu64 " block%s, %" PRIu64 " fault%s\n",
			verify.volume_cnt, plural(verify.volume_cnt), verify.block_cnt,
			plural(verify.block_cnt), verify.fault_cnt, plural(verify.fault_cnt));
	return failed || verify.fault_cnt > 0 ? STOUP_EXIT_FAIL : STOUP_EXIT_OK;
}
