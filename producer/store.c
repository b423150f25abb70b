/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - opening a store as a snapshot of its volumes. */
#include "producer/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "producer/store_private.h"
#include "producer/volume_file.h"

/* A writer may publish and unlink while the directory is read. A listing is taken again afterwards;
 * one that changed is read anew. Each round needs a whole publish to fail, so that a few are
 * plenty. */
#define SCAN_ROUND_CAP 16

/* ---- listing --------------------------------------------------------------------------------- */

static int name_cmp(const void *a, const void *b)
{
	const char *const *na = a, *const *nb = b;

	return strcmp(*na, *nb);
}

static int is_wanted(const char *name, int temp)
{
	size_t len = strlen(name), suffix = sizeof(STOUP_VOL_SUFFIX) - 1;

	if (temp)
		return strncmp(name, STOUP_STORE_TEMP_PREFIX,
			       sizeof(STOUP_STORE_TEMP_PREFIX) - 1) == 0;
	return name[0] != '.' && len > suffix && strcmp(name + len - suffix, STOUP_VOL_SUFFIX) == 0;
}

static int names_add(struct stoup_store_names *names, size_t *cap, const char *name)
{
	if (names->cnt == *cap) {
		size_t want = *cap ? *cap * 2 : 64;
		char **grown = realloc(names->names, want * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		names->names = grown;
		*cap = want;
	}
	names->names[names->cnt] = strdup(name);
	if (!names->names[names->cnt])
		return -ENOMEM;
	names->cnt++;
	return 0;
}

int stoup_store_list(int dir_fd, int temp, struct stoup_store_names *ret)
{
	struct stoup_store_names names = {0};
	struct dirent *entry;
	size_t cap = 0;
	/* An own descriptor, so that each listing has its own position. */
	int rc = 0, fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	for (;;) {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			break;
		if (is_wanted(entry->d_name, temp))
			rc = names_add(&names, &cap, entry->d_name);
		if (rc < 0)
			goto out_close;
	}
	rc = -errno;
out_close:
	closedir(dir);
	if (rc < 0) {
		stoup_store_names_fini(&names);
		return rc;
	}
	if (names.cnt > 0)
		qsort(names.names, names.cnt, sizeof(*names.names), name_cmp);
	*ret = names;
	return 0;
}

void stoup_store_names_fini(struct stoup_store_names *names)
{
	size_t i;

	for (i = 0; i < names->cnt; i++)
		free(names->names[i]);
	free(names->names);
	*names = (struct stoup_store_names){0};
}

static int names_equal(const struct stoup_store_names *a, const struct stoup_store_names *b)
{
	size_t i;

	for (i = 0; a->cnt == b->cnt && i < a->cnt; i++) {
		if (strcmp(a->names[i], b->names[i]) != 0)
			return 0;
	}
	return a->cnt == b->cnt;
}

/* ---- one file -------------------------------------------------------------------------------- */

static struct stoup_store_volume *find_shared(
	const struct stoup_store *old, const struct stat *st, int64_t mtime_ns)
{
	uint32_t i;

	for (i = 0; old && i < old->volume_cnt; i++) {
		struct stoup_store_volume *volume = old->volumes[i];

		if (volume->ino == st->st_ino && volume->dev == st->st_dev &&
			volume->file_len == (uint64_t)st->st_size && volume->mtime_ns == mtime_ns)
			return volume;
	}
	return NULL;
}

/* Learn what a damaged file is a member of: from its header, else from its name. */
static void identify(int fd, struct stoup_store_candidate *candidate)
{
	uint8_t bytes[STOUP_VOL_HEADER_LEN];
	struct stoup_vol_fault ignored;
	unsigned long long seq;
	unsigned idx, id;
	int end = 0;

	if (fd >= 0 && stoup_file_read(fd, bytes, sizeof(bytes), 0) == 0 &&
		stoup_vol_header_parse(bytes, &candidate->header, &ignored) == 0) {
		candidate->identified = 1;
		return;
	}
	if (sscanf(candidate->name, "%llu-%u-%8x" STOUP_VOL_SUFFIX "%n", &seq, &idx, &id, &end) !=
			3 ||
		end == 0 || candidate->name[end] != '\0')
		return;
	candidate->header = (struct stoup_vol_header){
		.ingest_seq = seq,
		.batch_idx = idx,
		.id = {(uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id},
	};
	candidate->identified = 1;
}

static void file_fault(struct stoup_store_candidate *candidate, int code, const char *what)
{
	candidate->fault = (struct stoup_vol_fault){.code = code};
	snprintf(candidate->fault.what, sizeof(candidate->fault.what), "%s", what);
}

static int volume_create(int fd, const char *dir_path, const struct stat *st, int64_t mtime_ns,
	struct stoup_store_candidate *candidate)
{
	struct stoup_store_volume *volume = calloc(1, sizeof(*volume));
	int rc;

	if (!volume)
		return -ENOMEM;
	rc = stoup_volume_index_read(fd, (uint64_t)st->st_size, &volume->index, &candidate->fault);
	if (rc < 0)
		goto out_free;
	if (asprintf(&volume->path, "%s/%s", dir_path, candidate->name) < 0) {
		stoup_vol_index_destroy(volume->index);
		rc = -ENOMEM;
		goto out_free;
	}
	volume->fd = fd;
	volume->refs = 1;
	volume->dev = st->st_dev;
	volume->ino = st->st_ino;
	volume->file_len = (uint64_t)st->st_size;
	volume->mtime_ns = mtime_ns;
	candidate->volume = volume;
	candidate->header = volume->index->header;
	candidate->identified = 1;
	return 0;
out_free:
	free(volume);
	return rc;
}

/* Fill a candidate from an open descriptor. Returns 1 where the descriptor was kept. */
static int candidate_fill(int fd, const char *dir_path, const struct stoup_store *old,
	struct stoup_store_candidate *candidate)
{
	struct stoup_store_volume *shared;
	struct stat st;
	int64_t mtime_ns;
	int rc;

	if (fstat(fd, &st) < 0) {
		file_fault(candidate, -errno, strerror(errno));
		return 0;
	}
	if (!S_ISREG(st.st_mode)) {
		file_fault(candidate, -EINVAL, "is no regular file");
		return 0;
	}
	mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	shared = find_shared(old, &st, mtime_ns);
	if (shared) {
		stoup_store_volume_acquire(shared);
		candidate->volume = shared;
		candidate->header = shared->index->header;
		candidate->identified = 1;
		return 0;
	}
	rc = volume_create(fd, dir_path, &st, mtime_ns, candidate);
	if (rc == -ENOMEM)
		return rc;
	if (rc < 0)
		identify(fd, candidate);
	return rc == 0;
}

/* A file that has gone means that the directory changed; a shortage concerns the whole call; all
 * else (no permission, a symbolic link to nowhere) is the file's own fault. */
static int open_failed(int dir_fd, int code, struct stoup_store_candidate *candidate)
{
	struct stat st;

	if (code == EMFILE || code == ENFILE || code == ENOMEM)
		return -code;
	if (code == ENOENT && fstatat(dir_fd, candidate->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -code;
	file_fault(candidate, -code, strerror(code));
	return 0;
}

int stoup_store_candidate_open(int dir_fd, const char *dir_path, const char *name,
	const struct stoup_store *old, struct stoup_store_candidate *ret)
{
	struct stoup_store_candidate candidate = {.name = strdup(name)};
	/* O_NONBLOCK: opening a FIFO must not hang. It means nothing for a regular file. */
	int rc = 0, fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (!candidate.name)
		rc = -ENOMEM;
	else if (fd >= 0)
		rc = candidate_fill(fd, dir_path, old, &candidate);
	else
		rc = open_failed(dir_fd, errno, &candidate);
	if (fd >= 0 && rc != 1)
		close(fd);
	if (rc < 0) {
		free(candidate.name);
		return rc;
	}
	if (!candidate.identified)
		identify(-1, &candidate);
	*ret = candidate;
	return 0;
}

void stoup_store_candidate_fini(struct stoup_store_candidate *candidate)
{
	stoup_store_volume_release(candidate->volume);
	free(candidate->name);
	free(candidate->advice);
}

/* ---- the snapshot ---------------------------------------------------------------------------- */

static int fault_add(struct stoup_store *store, const struct stoup_store_candidate *candidate)
{
	struct stoup_store_fault *fault = &store->faults[store->fault_cnt];
	size_t len;

	if (asprintf(&fault->path, "%s/%s", store->path, candidate->name) < 0)
		return -ENOMEM;
	fault->fault = candidate->fault;
	stoup_volume_fault_text(fault->path, &fault->fault, fault->text, sizeof(fault->text));
	if (candidate->advice)
		snprintf(
			fault->text, sizeof(fault->text), "%s: %s", fault->path, candidate->advice);
	len = strlen(fault->text);
	/* A part of it is damaged, or it ends early: nothing of it can be served. */
	if (fault->fault.region != 0 &&
		(fault->fault.code == -EBADMSG || fault->fault.code == -ENODATA))
		snprintf(fault->text + len, sizeof(fault->text) - len,
			"; remove %s and ingest its range again", candidate->name);
	store->fault_cnt++;
	return 0;
}

/* Move chosen candidates into the snapshot. */
static int store_fill(
	struct stoup_store *store, struct stoup_store_candidate *candidates, size_t cnt)
{
	size_t i;
	int rc = 0;

	store->volumes = calloc(cnt + 1, sizeof(*store->volumes));
	store->faults = calloc(cnt + 1, sizeof(*store->faults));
	store->stale = calloc(cnt + 1, sizeof(*store->stale));
	store->overlaps = calloc(cnt + 1, sizeof(*store->overlaps));
	store->unfinished = calloc(cnt + 1, sizeof(*store->unfinished));
	if (!store->volumes || !store->faults || !store->stale || !store->overlaps ||
		!store->unfinished)
		return -ENOMEM;
	store->next_seq = 1;
	for (i = 0; i < cnt && rc == 0; i++) {
		struct stoup_store_candidate *candidate = &candidates[i];

		if (candidate->identified && candidate->header.ingest_seq >= store->next_seq &&
			candidate->header.ingest_seq < UINT64_MAX)
			store->next_seq = candidate->header.ingest_seq + 1;
		if (candidate->fate == STOUP_STORE_SERVED) {
			store->volumes[store->volume_cnt++] = candidate->volume;
			candidate->volume = NULL;
		} else if (candidate->fate == STOUP_STORE_STALE) {
			store->stale[store->stale_cnt++] = candidate->name;
			candidate->name = NULL;
		} else if (candidate->fate == STOUP_STORE_UNFINISHED) {
			store->unfinished[store->unfinished_cnt++] = candidate->name;
			candidate->name = NULL;
		} else {
			rc = fault_add(store, candidate);
			if (candidate->overlaps) {
				store->overlaps[store->overlap_cnt++] = candidate->volume;
				candidate->volume = NULL;
			}
		}
	}
	return rc;
}

/* Read the directory once. -EAGAIN where it changed meanwhile. */
static int store_scan(struct stoup_store *store, const struct stoup_store *old)
{
	struct stoup_store_names names = {0}, again = {0};
	struct stoup_store_traces traces = {0};
	struct stoup_store_candidate *candidates = NULL;
	size_t cnt = 0;
	int rc = stoup_store_list(store->dir_fd, 0, &names);

	if (rc < 0)
		return rc;
	candidates = calloc(names.cnt + 1, sizeof(*candidates));
	rc = candidates ? 0 : -ENOMEM;
	for (; rc == 0 && cnt < names.cnt; cnt++) {
		rc = stoup_store_candidate_open(
			store->dir_fd, store->path, names.names[cnt], old, &candidates[cnt]);
		if (rc < 0)
			break;
	}
	/* Before the second listing: a batch that is completed after this changes it. */
	traces.locked = stoup_store_is_locked(store->dir_fd);
	if (rc == 0)
		rc = stoup_store_list(store->dir_fd, 1, &traces.temps);
	if (rc == 0)
		rc = stoup_store_list(store->dir_fd, 0, &again);
	if (rc == -ENOENT || (rc == 0 && !names_equal(&names, &again)))
		rc = -EAGAIN;
	if (rc == 0)
		rc = stoup_store_choose(candidates, cnt, &traces);
	store->writing = traces.locked || traces.temps.cnt > 0;
	if (rc == 0)
		rc = store_fill(store, candidates, cnt);
	while (cnt > 0)
		stoup_store_candidate_fini(&candidates[--cnt]);
	free(candidates);
	stoup_store_names_fini(&names);
	stoup_store_names_fini(&again);
	stoup_store_names_fini(&traces.temps);
	return rc;
}

static int open_error(const char *path, int code, struct stoup_error *err)
{
	if (code == -ENOENT)
		return stoup_error_set(err, code,
			"there is no store '%s'; `stoup ingest --store %s FILE...` makes one", path,
			path);
	if (code == -ENOTDIR)
		return stoup_error_set(err, code,
			"'%s' is no directory; a store is a directory of *" STOUP_VOL_SUFFIX
			" files",
			path);
	if (code == -EMFILE || code == -ENFILE)
		return stoup_error_set(err, code,
			"store '%s': %s; it needs one descriptor per volume: raise `ulimit -n`",
			path, strerror(-code));
	if (code == -EAGAIN)
		return stoup_error_set(
			err, code, "store '%s' changes all the time; try again", path);
	return stoup_error_set(err, code, "store '%s': %s", path, strerror(-code));
}

/* The path without slashes at its end, so that "PATH/NAME" reads well. */
static char *path_copy(const char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	return strndup(path, len);
}

static int snapshot_open(const char *path, int dir_fd, const struct stoup_store *old,
	struct stoup_store **ret, struct stoup_error *err)
{
	struct stoup_store *store = calloc(1, sizeof(*store));
	int rc, round;

	if (!store)
		return open_error(path, -ENOMEM, err);
	store->path = path_copy(path);
	store->dir_fd = dir_fd < 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
	                           : openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!store->path || store->dir_fd < 0) {
		rc = store->path ? -errno : -ENOMEM;
		goto out_close;
	}
	rc = -EAGAIN;
	for (round = 0; round < SCAN_ROUND_CAP && rc == -EAGAIN; round++)
		rc = store_scan(store, old);
	if (rc < 0)
		goto out_close;
	*ret = store;
	return 0;
out_close:
	stoup_store_close(store);
	return open_error(path, rc, err);
}

int stoup_store_open(const char *path, struct stoup_store **ret, struct stoup_error *err)
{
	return snapshot_open(path, -1, NULL, ret, err);
}

int stoup_store_rescan(const struct stoup_store *old, int dir_fd, struct stoup_store **ret,
	struct stoup_error *err)
{
	return snapshot_open(old->path, dir_fd, old, ret, err);
}

int stoup_store_holds_nothing(const struct stoup_store *store, struct stoup_error *err)
{
	if (store->volume_cnt > 0 || store->fault_cnt > 0)
		return 0;
	if (store->writing || store->unfinished_cnt > 0)
		stoup_error_set(err, -ENOENT,
			"'%.150s' holds no whole ingest yet: " STOUP_STORE_UNFINISHED_TEXT,
			store->path);
	else
		stoup_error_set(
			err, -ENOENT, "'%.200s' holds no volumes: is it a store?", store->path);
	return 1;
}

void stoup_store_close(struct stoup_store *store)
{
	uint32_t i;

	if (!store)
		return;
	for (i = 0; i < store->volume_cnt; i++)
		stoup_store_volume_release(store->volumes[i]);
	for (i = 0; i < store->overlap_cnt; i++)
		stoup_store_volume_release(store->overlaps[i]);
	for (i = 0; i < store->fault_cnt; i++)
		free(store->faults[i].path);
	for (i = 0; i < store->stale_cnt; i++)
		free(store->stale[i]);
	for (i = 0; i < store->unfinished_cnt; i++)
		free(store->unfinished[i]);
	free(store->volumes);
	free(store->faults);
	free(store->stale);
	free(store->overlaps);
	free(store->unfinished);
	if (store->dir_fd >= 0)
		close(store->dir_fd);
	free(store->path);
	free(store);
}

void stoup_store_volume_acquire(struct stoup_store_volume *volume)
{
	volume->refs++;
}

void stoup_store_volume_release(struct stoup_store_volume *volume)
{
	if (!volume || --volume->refs > 0)
		return;
	close(volume->fd);
	stoup_vol_index_destroy(volume->index);
	free(volume->path);
	free(volume);
}

/* ---- series ---------------------------------------------------------------------------------- */

const struct stoup_vol_series *stoup_store_series_find(
	const struct stoup_vol_index *index, const char *name, uint64_t schema_hash)
{
	uint32_t lo = 0, hi = index->series_cnt;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct stoup_vol_series *series = &index->series[mid];
		uint64_t hash = index->schemas[series->schema_idx].hash;
		int cmp = strcmp(series->name, name);

		if (cmp == 0 && hash == schema_hash)
			return series;
		if (cmp < 0 || (cmp == 0 && hash < schema_hash))
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const struct stoup_vol_series *stoup_store_series_other(
	const struct stoup_vol_index *index, const char *name, uint64_t schema_hash)
{
	uint32_t lo = 0, hi = index->series_cnt;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (strcmp(index->series[mid].name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < index->series_cnt && strcmp(index->series[lo].name, name) == 0; lo++)
		if (index->schemas[index->series[lo].schema_idx].hash != schema_hash)
			return &index->series[lo];
	return NULL;
}

int stoup_store_part_cmp(const struct stoup_vol_index *a_index, const struct stoup_vol_series *a,
	const struct stoup_vol_index *b_index, const struct stoup_vol_series *b)
{
	const struct stoup_vol_header *ah = &a_index->header, *bh = &b_index->header;

	if (a->first_key != b->first_key)
		return a->first_key < b->first_key ? -1 : 1;
	if (a->last_key != b->last_key)
		return a->last_key < b->last_key ? -1 : 1;
	if (ah->ingest_seq != bh->ingest_seq)
		return ah->ingest_seq < bh->ingest_seq ? -1 : 1;
	return ah->batch_idx < bh->batch_idx ? -1 : ah->batch_idx > bh->batch_idx;
}

int stoup_store_range_overlaps(int64_t a_first, int64_t a_last, int64_t b_first, int64_t b_last)
{
	if (a_first == b_first && a_last == b_last)
		return 1;
	return a_first < b_last && b_first < a_last;
}
