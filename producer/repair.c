/* SPDX-License-Identifier: Apache-2.0 */
/* repair.c - `stoup verify --repair`: what is left of a store when what is damaged is dropped.
 *
 *      block damaged    NAME  --link--> NAME.damaged     rewrite without its segments, which supersedes NAME
 *      index damaged    NAME  --rename--> NAME.damaged
 *
 * Each damaged volume is mended by itself, in one step of its own: together with others it would span their times, and a
 * volume that is brought back from a backup later would overlap it.
 *
 * But for a series that keeps its order: its keys are running maxima, and where the first records of a volume are lost
 * those that are left may begin before the last key of the volume before. Written anew alone it would overlap that, and be
 * left out: then those before it go with it.
 *
 * A volume whose index is damaged may be one of a batch, which is served only where all its members are there. Then a
 * volume without blocks is written first, which says that this member is superseded.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "producer/block_cache.h"
#include "producer/rewrite_report.h"
#include "producer/verify.h"
#include "producer/volume_file.h"
#include "shm/format.h"
#include "shm/hook.h"

#define ID_PREFIX_LEN  14u /* of the ids of one batch: the last two bytes are batch_idx */
#define NAME_LEN       256u
#define DAMAGED_SUFFIX ".damaged"
#define KEPT_NAME_CAP  (NAME_LEN + 24u)

#define KEPT_TRY_CAP 1000u

/* A volume with damaged blocks or padding. */
struct damaged {
	uint8_t id[16];
	char name[NAME_LEN];
	struct stoup_verify_marks marks;
	int mended;
};

struct repair {
	const char *path;
	int dry_run, quiet;
	struct stoup_store *store; /* as it was found */
	struct damaged *damaged;
	uint32_t damaged_cnt;
	uint64_t lost_cnt; /* records */
	uint32_t mended_cnt, moved_cnt, left_cnt;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- looking --------------------------------------------------------------------------------- */

static int look(struct repair *repair, struct stoup_error *err)
{
	struct stoup_store *store = repair->store;
	struct stoup_progress progress;
	uint64_t total = 0, done = 0;
	uint32_t i;
	int64_t cnt = 0;

	repair->damaged = calloc(store->volume_cnt + 1u, sizeof(*repair->damaged));
	if (!repair->damaged)
		return stoup_error_set(err, -ENOMEM, "no memory to look for damage");
	for (i = 0; i < store->volume_cnt; i++)
		total += store->volumes[i]->file_len;
	stoup_progress_begin(&progress, repair->path, total, repair->quiet);
	for (i = 0; i < store->volume_cnt && cnt >= 0; i++) {
		const struct stoup_store_volume *volume = store->volumes[i];
		struct damaged *damaged = &repair->damaged[repair->damaged_cnt];

		*damaged = (struct damaged){0};
		damaged->marks.segments = calloc(volume->index->segment_cnt + 1u, 1);
		cnt = damaged->marks.segments
		              ? stoup_volume_verify(volume, &progress, done, &damaged->marks)
		              : -ENOMEM;
		done += volume->file_len;
		if (cnt > 0 && damaged->marks.segment_cnt == 0 && !damaged->marks.padding) {
			printf("not mended: %s: its bytes are whole: what was put so, or by a later version, is "
			       "no damage (`stoup rm` removes records)\n",
				volume->path);
			repair->left_cnt++;
		}
		if (damaged->marks.segment_cnt > 0 || damaged->marks.padding) {
			memcpy(damaged->id, volume->index->header.id, 16);
			snprintf(damaged->name, sizeof(damaged->name), "%s",
				base_name(volume->path));
			repair->damaged_cnt++;
		} else {
			free(damaged->marks.segments);
			damaged->marks.segments = NULL;
		}
	}
	stoup_progress_end(&progress);
	return cnt < 0 ? stoup_error_set(err, (int)cnt, "no memory to look for damage") : 0;
}

static const struct damaged *damaged_find(const struct repair *repair, const uint8_t id[16])
{
	uint32_t i;

	for (i = 0; i < repair->damaged_cnt; i++) {
		if (memcmp(repair->damaged[i].id, id, 16) == 0)
			return &repair->damaged[i];
	}
	return NULL;
}

/* Can what is wrong with a file be mended by leaving the file out? Not a file of a later version, not one that may not
 * be read, not one that is left out because of others. */
static int is_index_damage(const struct stoup_store_fault *fault)
{
	return fault->fault.region != 0 &&
	       (fault->fault.code == -EBADMSG || fault->fault.code == -ENODATA);
}

/* ---- telling what is lost -------------------------------------------------------------------- */

static void segments_lost(struct repair *repair, const struct stoup_part *part,
	const struct damaged *damaged, uint64_t ordinal)
{
	const struct stoup_vol_index *index = part->volume->index;
	char first[STOUP_FORMAT_CAP], last[STOUP_FORMAT_CAP];
	uint32_t i;

	for (i = 0; i < part->series->segment_cnt; i++) {
		uint32_t idx = part->series->segment_first + i;
		const struct stoup_vol_segment *segment = &index->segments[idx];

		if (!damaged->marks.segments[idx])
			continue;
		stoup_format_time(segment->first_key, first);
		stoup_format_time(segment->last_key, last);
		printf("%s: %s: %" PRIu32 " record%s, ordinals %" PRIu64 " to %" PRIu64
		       ", from %s to %s (%s, block %" PRIu32 ")\n",
			repair->dry_run ? "would be lost" : "lost", part->series->name,
			segment->record_cnt, STOUP_PLURAL(segment->record_cnt),
			ordinal + segment->ordinal,
			ordinal + segment->ordinal + segment->record_cnt - 1, first, last,
			damaged->name, segment->block_idx);
		repair->lost_cnt += segment->record_cnt;
	}
}

/* Every lost segment, with its ordinals as a scan of the whole series counts. */
static int losses_print(struct repair *repair, struct stoup_error *err)
{
	struct stoup_parts parts = {0};
	uint64_t ordinal;
	size_t g, p;
	int rc = stoup_parts_of_store(&parts, repair->store, NULL);

	for (g = 0; g < parts.group_cnt && rc == 0; g++) {
		ordinal = 0;
		for (p = 0; p < parts.groups[g].cnt; p++) {
			const struct stoup_part *part = &parts.parts[parts.groups[g].first + p];
			const struct damaged *damaged =
				damaged_find(repair, part->volume->index->header.id);

			if (damaged)
				segments_lost(repair, part, damaged, ordinal);
			ordinal += part->series->record_cnt;
		}
	}
	stoup_parts_fini(&parts);
	return rc < 0 ? stoup_error_set(err, rc, "no memory to list what is lost") : 0;
}

/* ---- keeping the damaged file ---------------------------------------------------------------- */

static void kept_name(const char *name, uint32_t try, char ret_name[KEPT_NAME_CAP])
{
	if (try == 0)
		snprintf(ret_name, KEPT_NAME_CAP, "%s" DAMAGED_SUFFIX, name);
	else
		snprintf(ret_name, KEPT_NAME_CAP, "%s" DAMAGED_SUFFIX "-%" PRIu32, name, try + 1);
}

static int is_same_file(int dir_fd, const char *a, const char *b)
{
	struct stat sa, sb;

	return fstatat(dir_fd, a, &sa, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(dir_fd, b, &sb, AT_SYMLINK_NOFOLLOW) == 0 && sa.st_ino == sb.st_ino &&
	       sa.st_dev == sb.st_dev;
}

/* Give the file a second name. 1 made, 0 it was there, or negative errno. */
static int file_keep(int dir_fd, const char *name, char ret_name[KEPT_NAME_CAP])
{
	uint32_t try;

	for (try = 0; try < KEPT_TRY_CAP; try++) {
		kept_name(name, try, ret_name);
		if (linkat(dir_fd, name, dir_fd, ret_name, 0) == 0)
			return 1;
		if (errno != EEXIST)
			return -errno;
		if (is_same_file(dir_fd, name, ret_name))
			return 0;
	}
	return -EEXIST;
}

/* Move a file out of the store. */
static int file_move(int dir_fd, const char *name, char ret_name[KEPT_NAME_CAP])
{
	uint32_t try;

	for (try = 0; try < KEPT_TRY_CAP; try++) {
		struct stat st;

		kept_name(name, try, ret_name);
		if (renameat2(dir_fd, name, dir_fd, ret_name, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno == EINVAL && fstatat(dir_fd, ret_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return renameat(dir_fd, name, dir_fd, ret_name) < 0 ? -errno : 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* ---- damaged blocks -------------------------------------------------------------------------- */

static enum stoup_rewrite_keep segment_keep(
	void *arg, const struct stoup_part *part, uint32_t segment_idx)
{
	const struct damaged *damaged = damaged_find(arg, part->volume->index->header.id);

	return damaged && damaged->marks.segments[segment_idx] ? STOUP_REWRITE_KEEP_NONE
	                                                       : STOUP_REWRITE_KEEP_ALL;
}

static int key_keep(void *arg, int64_t key)
{
	(void)arg;
	(void)key;
	return 1;
}

static int64_t volume_find(const struct stoup_store *store, const uint8_t id[16])
{
	uint32_t i;

	for (i = 0; i < store->volume_cnt; i++) {
		if (memcmp(store->volumes[i]->index->header.id, id, 16) == 0)
			return i;
	}
	return -1;
}

/* The key with which what is left of a series begins, where its first segments are lost; 0: they are not, or all are. */
static int first_key_left(struct stoup_block_cache *cache, const struct damaged *damaged,
	const struct stoup_part *part, int64_t *ret_key, struct stoup_error *err)
{
	const struct stoup_vol_index *index = part->volume->index;
	uint32_t first = part->series->segment_first, end = first + part->series->segment_cnt;
	uint32_t at = first;
	struct stoup_vol_fault fault;
	struct stoup_schema schema;
	const uint8_t *raw;
	int rc;

	*ret_key = 0;
	while (at < end && damaged->marks.segments[at])
		at++;
	if (at == first || at == end)
		return 0;
	rc = stoup_block_cache_get(
		cache, part->volume, index->segments[at].block_idx, &raw, &fault);
	if (rc < 0)
		return stoup_error_set(err, rc, "%.60s: %.100s", damaged->name, fault.what);
	stoup_part_schema_view(part, &schema);
	*ret_key = stoup_sums_key(&schema, raw + index->segments[at].raw_off);
	stoup_block_cache_put(cache, part->volume, index->segments[at].block_idx);
	return 0;
}

/* Choose the volumes that what is left would overlap, see above. */
static int order_draw_in(struct stoup_rewrite *rewrite, const struct damaged *damaged,
	uint32_t volume_idx, struct stoup_error *err)
{
	const struct stoup_store *store = stoup_rewrite_store(rewrite);
	struct stoup_part part = {.volume = store->volumes[volume_idx]};
	const struct stoup_vol_index *index = part.volume->index;
	struct stoup_block_cache *cache = NULL;
	int64_t key;
	uint32_t s, v;
	int rc = stoup_block_cache_create(STOUP_REWRITE_MEMORY_LEN, &cache);

	if (rc < 0)
		return stoup_error_set(err, rc, "no memory to mend %.60s", damaged->name);
	for (s = 0; s < index->series_cnt && rc == 0; s++) {
		part.series = &index->series[s];
		if (!(part.series->flags & STOUP_VOL_SERIES_KEEP_ORDER))
			continue;
		rc = first_key_left(cache, damaged, &part, &key, err);
		for (v = 0; v < store->volume_cnt && rc == 0 && key > 0; v++) {
			const struct stoup_vol_series *other =
				stoup_store_series_find(store->volumes[v]->index, part.series->name,
					stoup_part_schema(&part)->hash);

			if (other && other->first_key <= part.series->first_key &&
				other->last_key > key)
				stoup_rewrite_choose(rewrite, v);
		}
	}
	stoup_block_cache_destroy(cache);
	return rc;
}

/* Damaged volumes that go with this one: their files are kept, too, and they are mended by it. */
static int others_keep(
	struct repair *repair, struct stoup_rewrite *rewrite, struct stoup_error *err)
{
	struct stoup_store *store = stoup_rewrite_store(rewrite);
	char kept[KEPT_NAME_CAP];
	uint32_t i;

	for (i = 0; i < repair->damaged_cnt; i++) {
		struct damaged *damaged = &repair->damaged[i];
		int64_t idx = volume_find(store, damaged->id);
		int made;

		if (damaged->mended || idx < 0 || !stoup_rewrite_is_chosen(rewrite, (uint32_t)idx))
			continue;
		made = file_keep(store->dir_fd, damaged->name, kept);
		if (made < 0 && made != -EPERM && made != -EOPNOTSUPP && made != -EMLINK &&
			made != -ENOSYS)
			return stoup_error_set(err, made,
				"%.60s: keeping it beside as *" DAMAGED_SUFFIX
				" failed: %s; nothing was changed",
				damaged->name, strerror(-made));
	}
	return 0;
}

static void others_mended(struct repair *repair, const struct stoup_rewrite *rewrite)
{
	uint32_t i;

	for (i = 0; i < repair->damaged_cnt; i++) {
		struct damaged *damaged = &repair->damaged[i];
		int64_t idx = volume_find(stoup_rewrite_store(rewrite), damaged->id);

		if (idx < 0 || !stoup_rewrite_is_chosen(rewrite, (uint32_t)idx))
			continue;
		repair->mended_cnt += !damaged->mended;
		damaged->mended = 1;
	}
}

/* Write the volume anew, its damaged file kept under another name. */
static int volume_rewrite(struct repair *repair, struct stoup_rewrite *rewrite,
	const struct damaged *damaged, struct stoup_error *err)
{
	struct stoup_rewrite_filter filter = {
		.arg = repair, .segment = segment_keep, .key = key_keep};
	struct stoup_store *store = stoup_rewrite_store(rewrite);
	char kept[KEPT_NAME_CAP];
	int made = file_keep(store->dir_fd, damaged->name, kept), rc;

	/* No hard links there: the new name comes after the new volume, before the sweep. */
	if (made < 0 && made != -EPERM && made != -EOPNOTSUPP && made != -EMLINK && made != -ENOSYS)
		return stoup_error_set(err, made,
			"%.60s: keeping it beside as *" DAMAGED_SUFFIX
			" failed: %s; nothing was changed",
			damaged->name, strerror(-made));
	STOUP_HOOK("repair.kept");
	rc = others_keep(repair, rewrite, err);
	if (rc == 0)
		rc = stoup_rewrite_run(rewrite, &filter, err);
	if (rc < 0) {
		if (made > 0)
			unlinkat(store->dir_fd, kept, 0);
		return rc;
	}
	if (made < 0) {
		rc = file_move(store->dir_fd, damaged->name, kept);
		if (rc < 0)
			printf("%s: could not be kept beside: %s\n", damaged->name, strerror(-rc));
	}
	others_mended(repair, rewrite);
	stoup_rewrite_sweep(rewrite);
	if (!repair->quiet) {
		printf("%s: written anew without what is damaged; the damaged file stays as %s/%s\n",
			damaged->name, repair->path, kept);
		stoup_rewrite_report_volumes(rewrite);
	}
	return 0;
}

static int volume_mend(
	struct repair *repair, const struct damaged *damaged, struct stoup_error *err)
{
	struct stoup_rewrite_options options = {.store_path = repair->path,
		.label = "repairing",
		.quiet = repair->quiet,
		.allow_faults = 1};
	struct stoup_rewrite *rewrite = NULL;
	struct stoup_store *store;
	int64_t idx;
	int rc = stoup_rewrite_begin(&options, &rewrite, err);

	if (rc < 0)
		return rc;
	store = stoup_rewrite_store(rewrite);
	idx = volume_find(store, damaged->id);
	if (idx < 0) {
		rc = stoup_error_set(err, -EAGAIN,
			"%.60s went while it was looked at: another writer was at work; try again",
			damaged->name);
		goto out_end;
	}
	if (store->overlap_cnt > 0) {
		rc = stoup_error_set(err, -EEXIST,
			"%.80s is left out because it overlaps another volume, and would take the place of "
			"the mended one: remove it or bring it elsewhere first; nothing was changed",
			base_name(store->overlaps[0]->path));
		goto out_end;
	}
	stoup_rewrite_choose(rewrite, (uint32_t)idx);
	rc = order_draw_in(rewrite, damaged, (uint32_t)idx, err);
	if (rc == 0)
		rc = stoup_rewrite_draw_in(rewrite, err);
	if (rc == 0)
		rc = volume_rewrite(repair, rewrite, damaged, err);
out_end:
	stoup_rewrite_end(rewrite);
	return rc;
}

/* ---- damaged indexes ------------------------------------------------------------------------- */

/* What a file whose index is damaged is a member of: from its header, else from its name. */
static int header_of(
	const struct stoup_store *store, const char *name, struct stoup_vol_header *ret)
{
	uint8_t bytes[STOUP_VOL_HEADER_LEN];
	struct stoup_vol_fault ignored;
	unsigned long long seq;
	unsigned idx, id;
	int end = 0, rc = -1, fd = openat(store->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0) {
		rc = stoup_file_read(fd, bytes, sizeof(bytes), 0);
		if (rc == 0)
			rc = stoup_vol_header_parse(bytes, ret, &ignored);
		close(fd);
	}
	if (rc == 0)
		return 1;
	if (sscanf(name, "%llu-%u-%8x" STOUP_VOL_SUFFIX "%n", &seq, &idx, &id, &end) != 3 ||
		end == 0 || name[end] != '\0')
		return 0;
	*ret = (struct stoup_vol_header){.ingest_seq = seq,
		.batch_idx = idx,
		.id = {(uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id}};
	return 1;
}

/* The id of the member, where the store serves another one of its batch, and it is not superseded yet. */
static int member_id(
	const struct stoup_store *store, const struct stoup_vol_header *header, uint8_t ret_id[16])
{
	uint32_t v, s;
	int found = 0;

	for (v = 0; v < store->volume_cnt; v++) {
		const struct stoup_vol_header *other = &store->volumes[v]->index->header;

		if (other->ingest_seq == header->ingest_seq && other->batch_cnt > 1 &&
			memcmp(other->id, header->id, 4) == 0) {
			memcpy(ret_id, other->id, ID_PREFIX_LEN);
			ret_id[14] = (uint8_t)header->batch_idx;
			ret_id[15] = (uint8_t)(header->batch_idx >> 8);
			found = 1;
		}
	}
	for (v = 0; v < store->volume_cnt && found; v++) {
		const struct stoup_vol_index *index = store->volumes[v]->index;

		for (s = 0; s < index->superseded_cnt; s++) {
			if (memcmp(index->superseded[s], ret_id, 16) == 0)
				return 0;
		}
	}
	return found;
}

/* Move a file aside that can not be served. */
static int file_mend(struct repair *repair, const char *name, struct stoup_error *err)
{
	struct stoup_rewrite_options options = {.store_path = repair->path,
		.label = "repairing",
		.quiet = repair->quiet,
		.allow_faults = 1};
	struct stoup_rewrite *rewrite = NULL;
	struct stoup_vol_header header;
	struct stoup_store *store;
	char kept[KEPT_NAME_CAP], marker[STOUP_STORE_NAME_CAP] = "";
	uint8_t id[16];
	uint32_t cnt;
	int rc = stoup_rewrite_begin(&options, &rewrite, err);

	if (rc < 0)
		return rc;
	store = stoup_rewrite_store(rewrite);
	if (header_of(store, name, &header) && member_id(store, &header, id)) {
		rc = stoup_rewrite_supersede(rewrite, id);
		rc = rc < 0 ? stoup_error_set(err, rc, "no memory to mend %.60s", name)
		            : stoup_rewrite_run(rewrite, NULL, err);
		if (rc < 0)
			goto out_end;
		stoup_store_name(&stoup_rewrite_volumes(rewrite, &cnt)->header, marker);
	}
	STOUP_HOOK("repair.marked");
	rc = file_move(store->dir_fd, name, kept);
	if (rc == 0 && fsync(store->dir_fd) < 0)
		rc = -errno;
	if (rc < 0) {
		stoup_error_set(err, rc, "%.60s: moving it aside failed: %s", name, strerror(-rc));
		goto out_end;
	}
	repair->moved_cnt++;
	printf("%s: moved aside as %s/%s; what it held can not be told, its index is damaged\n",
		name, repair->path, kept);
	if (marker[0])
		printf("%s stands for it beside the other volumes of its ingest; to bring %s back from a "
		       "backup, remove that first\n",
			marker, name);
out_end:
	stoup_rewrite_end(rewrite);
	return rc;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int mend(struct repair *repair, struct stoup_error *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < repair->store->fault_cnt && rc == 0; i++) {
		const struct stoup_store_fault *fault = &repair->store->faults[i];
		const char *name = base_name(fault->path);

		if (!is_index_damage(fault)) {
			printf("not mended: %s\n", fault->text);
			repair->left_cnt++;
			continue;
		}
		printf("%s\n", fault->text);
		if (repair->dry_run)
			printf("would be moved aside: %s\n", name);
		else
			rc = file_mend(repair, name, err);
		repair->moved_cnt += repair->dry_run != 0;
	}
	for (i = 0; i < repair->damaged_cnt && rc == 0 && !repair->dry_run; i++) {
		if (!repair->damaged[i].mended)
			rc = volume_mend(repair, &repair->damaged[i], err);
	}
	return rc;
}

static void summary_print(const struct repair *repair)
{
	if (repair->quiet)
		return;
	if (repair->damaged_cnt == 0 && repair->moved_cnt == 0 && !repair->dry_run)
		printf("%s: %s; it was not touched\n", repair->path,
			repair->left_cnt ? "no damage that can be mended" : "no damage");
	else if (repair->dry_run)
		printf("%" PRIu32 " volume%s would be written anew, %" PRIu32
		       " moved aside, %" PRIu64 " record%s lost; nothing was changed (--dry-run)\n",
			repair->damaged_cnt, STOUP_PLURAL(repair->damaged_cnt), repair->moved_cnt,
			repair->lost_cnt, STOUP_PLURAL(repair->lost_cnt));
	else
		printf("%" PRIu32 " volume%s written anew, %" PRIu32 " moved aside, %" PRIu64
		       " record%s lost%s\n",
			repair->mended_cnt, STOUP_PLURAL(repair->mended_cnt), repair->moved_cnt,
			repair->lost_cnt, STOUP_PLURAL(repair->lost_cnt),
			repair->moved_cnt ? ", and those of what was moved aside" : "");
}

int stoup_repair(const char *store_path, int dry_run, int quiet, struct stoup_error *err)
{
	struct repair repair = {.path = store_path, .dry_run = dry_run, .quiet = quiet};
	uint32_t i;
	int rc = stoup_store_open(store_path, &repair.store, err);

	if (rc < 0)
		return rc;
	if (stoup_store_holds_nothing(repair.store, err))
		rc = -ENOENT;
	if (rc == 0)
		rc = look(&repair, err);
	if (rc == 0 && repair.damaged_cnt > 0)
		rc = losses_print(&repair, err);
	if (rc == 0)
		rc = mend(&repair, err);
	if (rc == 0)
		summary_print(&repair);
	if (rc == 0 && repair.left_cnt > 0)
		rc = stoup_error_set(err, -EUCLEAN,
			"%.100s: %" PRIu32 " file%s not mended, see above", store_path,
			repair.left_cnt, repair.left_cnt == 1 ? " is" : "s are");
	for (i = 0; i < repair.damaged_cnt; i++)
		free(repair.damaged[i].marks.segments);
	free(repair.damaged);
	stoup_store_close(repair.store);
	return rc;
}
