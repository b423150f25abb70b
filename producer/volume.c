/* SPDX-License-Identifier: Apache-2.0 */
/* volume.c - the volumes that a daemon serves: opened stores, catalogs, residency, reader files.
 *
 *      place  (empty) --make--> catalog, tables, reader file --show--> monitors see it
 *                ^                                                          |
 *                +------------------------- unmake <------------------------+
 *
 * Invariant: a place that is not empty holds its volume acquired, so that the file stays open, unlinked or
 * not, and whatever becomes of the store's snapshot.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A field is the same 64 bytes in a volume and in a catalog. */
#define SAME(member)                                                                               \
	offsetof(struct stoup_field, member) == offsetof(struct stoup_vol_field, member)
_Static_assert(sizeof(struct stoup_field) == sizeof(struct stoup_vol_field) && SAME(name) &&
		       SAME(off) && SAME(cnt) && SAME(type) && SAME(flags) && SAME(exp10) &&
		       SAME(null_bits) && SAME(unit),
	"one layout");

#define GRAIN_NS        INT64_C(20000000)   /* the kernel's clock of file times: 4 or 10 ms */
#define GRAIN_COARSE_NS INT64_C(2000000000) /* of file systems that keep whole seconds */

static void note_block_len(struct stoup_daemon *d, uint32_t raw_len)
{
	if (raw_len > d->block_len_max)
		d->block_len_max = raw_len;
	if (d->block_len_min == 0 || raw_len < d->block_len_min)
		d->block_len_min = raw_len;
}

int stoup_store_mark(const struct stoup_daemon *d, uint32_t idx, struct stoup_store_mark *ret)
{
	struct timespec now;
	struct stat st;
	int64_t age_ns, grain_ns;

	if ((d->home_fd >= 0 ? fstat(d->home_fd, &st) : stat(d->opt.store_path[idx], &st)) < 0)
		return -errno;
	clock_gettime(CLOCK_REALTIME, &now);
	*ret = (struct stoup_store_mark){.dev = st.st_dev, .ino = st.st_ino, .ctime = st.st_ctim};
	/* Two changes within one tick of the file system's clock have one time: a change that is so young
	 * can not tell itself from the next. */
	age_ns = ((int64_t)now.tv_sec - st.st_ctim.tv_sec) * 1000000000 + now.tv_nsec -
	         st.st_ctim.tv_nsec;
	grain_ns = st.st_ctim.tv_nsec == 0 ? GRAIN_COARSE_NS : GRAIN_NS;
	if (age_ns >= 0 && age_ns < grain_ns)
		ret->ctime = (struct timespec){0, 0};
	return 0;
}

int stoup_has_home(const struct stoup_daemon *d)
{
	return d->opt.automatic && d->opt.store_cnt == 1 &&
	       strncmp(d->opt.pool, STOUP_AUTO_POOL_PREFIX, strlen(STOUP_AUTO_POOL_PREFIX)) == 0;
}

int stoup_home_is(const struct stoup_daemon *d, uint64_t dev, uint64_t ino)
{
	char pool[STOUP_POOL_NAME_CAP];

	snprintf(pool, sizeof(pool), STOUP_AUTO_POOL_FMT, (unsigned long long)dev,
		(unsigned long long)ino);
	return strcmp(pool, d->opt.pool) == 0;
}

/* The name of an automatic pool is the number of a directory: kept open, so that no other one gets that number
 * while the name is ours, and read on wherever the path leads later. */
static int home_keep(struct stoup_daemon *d, struct stoup_error *err)
{
	struct stat st;

	if (!stoup_has_home(d))
		return 0;
	if (fstat(d->stores[0]->dir_fd, &st) < 0)
		return stoup_error_set(
			err, -errno, "%.150s: %s", d->opt.store_path[0], strerror(errno));
	if (!stoup_home_is(d, st.st_dev, st.st_ino))
		return stoup_error_set(err, -ESTALE,
			"%.150s was replaced in this moment; mend: attach again",
			d->opt.store_path[0]);
	d->home_fd = fcntl(d->stores[0]->dir_fd, F_DUPFD_CLOEXEC, 0);
	return d->home_fd < 0 ? stoup_error_set(err, -errno, "%.150s: %s", d->opt.store_path[0],
					strerror(errno))
	                      : 0;
}

int stoup_volumes_open(struct stoup_daemon *d, struct stoup_error *err)
{
	int rc;

	for (uint32_t i = 0; i < d->opt.store_cnt; i++) {
		(void)stoup_store_mark(d, i, &d->store_marks[i]);
		rc = stoup_store_open(d->opt.store_path[i], &d->stores[i], err);

		if (rc < 0)
			return rc;
		d->volume_cnt += d->stores[i]->volume_cnt;
	}
	rc = home_keep(d, err);
	if (rc < 0)
		return rc;
	if (d->volume_cnt > STOUP_VOLUME_CAP)
		return stoup_error_set(err, -E2BIG,
			"%u volumes are more than a pool serves (%u); mend: stoup compact, or "
			"fewer stores",
			d->volume_cnt, STOUP_VOLUME_CAP);
	d->volume_cap = d->volume_cnt + STOUP_PLACE_SPARE < STOUP_VOLUME_CAP
	                        ? d->volume_cnt + STOUP_PLACE_SPARE
	                        : STOUP_VOLUME_CAP;
	for (uint32_t i = 0; i < d->opt.store_cnt; i++)
		for (uint32_t v = 0; v < d->stores[i]->volume_cnt; v++) {
			const struct stoup_vol_index *index = d->stores[i]->volumes[v]->index;

			for (uint32_t b = 0; b < index->block_cnt; b++)
				note_block_len(d, index->blocks[b].raw_len);
		}
	return 0;
}

/* Decoded bytes of all stores, each block rounded up to pages as the ring does. */
uint64_t stoup_volumes_raw_len(const struct stoup_daemon *d)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < d->opt.store_cnt; i++)
		for (uint32_t v = 0; v < d->stores[i]->volume_cnt; v++) {
			const struct stoup_vol_index *index = d->stores[i]->volumes[v]->index;

			for (uint32_t b = 0; b < index->block_cnt; b++)
				sum += (index->blocks[b].raw_len + STOUP_OS_PAGE_LEN - 1) &
				       ~(uint64_t)(STOUP_OS_PAGE_LEN - 1);
		}
	return sum;
}

/* ---- the catalog ------------------------------------------------------------------------------ */

static void count_index(const struct stoup_store_volume *file, struct stoup_catalog_counts *n)
{
	const struct stoup_vol_index *index = file->index;

	n->schema_cnt = index->schema_cnt;
	n->field_cnt = index->field_cnt;
	n->series_cnt = index->series_cnt;
	n->block_cnt = index->block_cnt;
	n->segment_cnt = index->segment_cnt;
	n->string_len = strlen(file->path) + 1;
	n->zone_len = index->zone_len;
	for (uint32_t i = 0; i < index->series_cnt; i++)
		n->string_len += (uint64_t)index->series[i].name_len + 1;
}

static void *table_at(struct stoup_catalog *c, uint64_t off)
{
	return (char *)c + off;
}

static void fill_schemas(struct stoup_catalog *c, const struct stoup_vol_index *index)
{
	struct stoup_catalog_schema *to = table_at(c, c->schema_off);

	for (uint32_t i = 0; i < index->schema_cnt; i++) {
		const struct stoup_vol_schema *from = &index->schemas[i];

		snprintf(to[i].name, sizeof(to[i].name), "%s", from->name);
		to[i].stride = from->stride;
		to[i].align = from->align;
		to[i].key_off = from->key_off;
		to[i].flags = from->flags;
		to[i].interval_ns = from->interval_ns;
		to[i].hash = from->hash;
		to[i].field_first = from->field_first;
		to[i].field_cnt = from->field_cnt;
	}
	if (index->field_cnt > 0)
		memcpy(table_at(c, c->field_off), index->fields,
			(size_t)index->field_cnt * sizeof(struct stoup_field));
}

static void fill_series(struct stoup_catalog *c, const struct stoup_store_volume *file)
{
	struct stoup_catalog_series *to = table_at(c, c->series_off);
	char *strings = table_at(c, c->string_off);
	uint32_t at = (uint32_t)strlen(file->path) + 1;

	memcpy(strings, file->path, at);
	c->path_off = 0;
	for (uint32_t i = 0; i < file->index->series_cnt; i++) {
		const struct stoup_vol_series *from = &file->index->series[i];

		memcpy(strings + at, from->name, from->name_len);
		to[i].name_off = at;
		to[i].name_len = from->name_len;
		to[i].schema_idx = from->schema_idx;
		to[i].flags =
			from->flags & STOUP_VOL_SERIES_KEEP_ORDER ? STOUP_CATALOG_KEEP_ORDER : 0;
		to[i].segment_first = from->segment_first;
		to[i].segment_cnt = from->segment_cnt;
		to[i].record_cnt = from->record_cnt;
		to[i].first_key = from->first_key;
		to[i].last_key = from->last_key;
		at += from->name_len + 1;
	}
}

/* Numbers that no version knows do not become known ones. */
static uint16_t low_half(uint32_t value)
{
	return value < UINT16_MAX ? (uint16_t)value : UINT16_MAX;
}

/* Where a consumer begins: of messages, at the table of the run (shm/message.h), whose entries are as
 * records to it. A run too short for its table is refused when its block is decoded. */
static uint32_t segment_off(
	const struct stoup_vol_index *index, const struct stoup_vol_segment *segment)
{
	uint64_t table_len = (uint64_t)segment->record_cnt * STOUP_MESSAGE_STRIDE;

	if (index->schemas[index->series[segment->series_idx].schema_idx].stride)
		return segment->raw_off;
	return segment->raw_off +
	       (uint32_t)(table_len < segment->raw_len ? segment->raw_len - table_len : 0);
}

static void fill_blocks(struct stoup_catalog *c, const struct stoup_vol_index *index)
{
	struct stoup_catalog_block *block = table_at(c, c->block_off);
	struct stoup_catalog_segment *segment = table_at(c, c->segment_off);

	for (uint32_t i = 0; i < index->block_cnt; i++) {
		block[i].raw_len = index->blocks[i].raw_len;
		block[i].stored_len = index->blocks[i].stored_len;
		block[i].codec = low_half(index->blocks[i].codec);
		block[i].transform = low_half(index->blocks[i].transform);
		block[i].schema_idx = index->blocks[i].schema_idx;
		block[i].stored_off = index->blocks[i].stored_off;
	}
	for (uint32_t i = 0; i < index->segment_cnt; i++) {
		segment[i].block_idx = index->segments[i].block_idx;
		segment[i].raw_off = segment_off(index, &index->segments[i]);
		segment[i].record_cnt = index->segments[i].record_cnt;
		segment[i].series_idx = index->segments[i].series_idx;
		segment[i].ordinal = index->segments[i].ordinal;
		segment[i].first_key = index->segments[i].first_key;
		segment[i].last_key = index->segments[i].last_key;
	}
}

static void fill_zones(struct stoup_catalog *c, const struct stoup_vol_index *index)
{
	if (index->zone_len == 0)
		return;
	memcpy(table_at(c, c->zone_off), index->zone_words,
		(size_t)index->segment_cnt * sizeof(index->zone_words[0]));
	memcpy(table_at(c, stoup_catalog_zone_rows_off(c)), index->zones, (size_t)index->zone_len);
}

static int make_catalog(struct stoup_daemon *d, uint32_t volume_idx, struct stoup_error *err)
{
	struct stoup_volume *v = &d->volumes[volume_idx];
	struct stoup_catalog_counts counts = {0};
	struct stoup_catalog *c;
	char name[128];
	int rc;

	count_index(v->file, &counts);
	/* name_off has 32 bits. */
	if (counts.string_len > UINT32_MAX || stoup_catalog_footprint(&counts) == 0)
		return stoup_error_set(err, -E2BIG,
			"%s: series names of %llu bytes are more than a catalog holds",
			v->file->path, (unsigned long long)counts.string_len);
	/* One place may hold several volumes in the daemon's life, so that its number alone is no name. */
	snprintf(name, sizeof(name), "/stoup.%u.%s.v%u.%llu", d->uid, d->opt.pool, volume_idx,
		(unsigned long long)v->born_seq);
	/* Small objects stay in memfds of ordinary pages when the data lies in huge ones. */
	rc = stoup_region_create(&v->catalog,
		d->opt.backing == STOUP_BACKING_POSIX ? STOUP_BACKING_POSIX : STOUP_BACKING_MEMFD,
		name, 0600, stoup_catalog_footprint(&counts), 1, 1, 1, err);
	if (rc < 0)
		return rc;
	/* Only the read-only one is passed on; with thousands of volumes descriptors are scarce. */
	close(v->catalog.fd);
	v->catalog.fd = -1;
	c = v->catalog.base;
	stoup_catalog_format(c, &counts, volume_idx);
	memcpy(c->volume_id, v->file->index->header.id, sizeof(c->volume_id));
	c->ingest_seq = v->file->index->header.ingest_seq;
	c->batch_idx = v->file->index->header.batch_idx;
	fill_schemas(c, v->file->index);
	fill_series(c, v->file);
	fill_blocks(c, v->file->index);
	fill_zones(c, v->file->index);
	v->residency = stoup_catalog_residency(c);
	return 0;
}

/* ---- one place -------------------------------------------------------------------------------- */

void stoup_volume_show(struct stoup_daemon *d, uint32_t volume_idx)
{
	struct stoup_control_volume *entry = &stoup_control_volumes(d->control)[volume_idx];
	const struct stoup_volume *v = &d->volumes[volume_idx];
	const struct stoup_vol_index *index = v->file->index;
	size_t len = strlen(v->file->path);

	/* ABSENT until now: a monitor that looked at the volume before reads a mixture at worst, and the
	 * path's last byte is never written. */
	entry->record_cnt = entry->raw_len = entry->stored_len = 0;
	entry->block_cnt = index->block_cnt;
	entry->series_cnt = index->series_cnt;
	entry->segment_cnt = index->segment_cnt;
	entry->catalog_len = v->catalog.len;
	memcpy(entry->id, index->header.id, sizeof(entry->id));
	for (uint32_t i = 0; i < index->series_cnt; i++)
		entry->record_cnt += index->series[i].record_cnt;
	for (uint32_t i = 0; i < index->block_cnt; i++) {
		entry->raw_len += index->blocks[i].raw_len;
		entry->stored_len += index->blocks[i].stored_len;
	}
	snprintf(entry->path, sizeof(entry->path), "%s",
		len < sizeof(entry->path) ? v->file->path
					  : v->file->path + len - (sizeof(entry->path) - 1));
	atomic_store_explicit(&entry->born_seq, v->born_seq, memory_order_relaxed);
	atomic_store_explicit(&entry->retired_seq, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->state, STOUP_VOLUME_SERVED, memory_order_release);
}

int stoup_volume_unmake(struct stoup_daemon *d, uint32_t volume_idx)
{
	struct stoup_volume *v = &d->volumes[volume_idx];

	if (v->reader_idx >= 0 &&
		stoup_reader_file_remove(d->reader, (uint32_t)v->reader_idx) == -EBUSY)
		return -EBUSY;
	v->reader_idx = -1;
	stoup_give_close(v);
	stoup_region_fini(&v->catalog);
	v->catalog = (struct stoup_region){.fd = -1, .ro_fd = -1};
	v->residency = NULL;
	free(v->load_idx);
	free(v->load_cnt);
	free(v->block_series);
	free(v->block_shared);
	free(v->block_last);
	v->block_series = v->block_shared = v->block_last = NULL;
	free(v->pin_cnt);
	free(v->pin_seen);
	v->pin_cnt = NULL;
	v->pin_seen = NULL;
	stoup_runs_destroy(v->runs);
	v->load_idx = NULL;
	v->load_cnt = NULL;
	v->runs = NULL;
	stoup_store_volume_release(v->file);
	v->file = NULL;
	atomic_store_explicit(&stoup_control_volumes(d->control)[volume_idx].state,
		STOUP_VOLUME_ABSENT, memory_order_release);
	return 0;
}

int stoup_volume_make(struct stoup_daemon *d, uint32_t volume_idx, struct stoup_store_volume *file,
	uint32_t store_idx, uint64_t born_seq, struct stoup_error *err)
{
	struct stoup_volume *v = &d->volumes[volume_idx];
	uint32_t block_cnt = file->index->block_cnt;
	struct stoup_error why;
	int rc;

	*v = (struct stoup_volume){.file = file,
		.born_seq = born_seq,
		.store_idx = store_idx,
		.catalog = {.fd = -1, .ro_fd = -1},
		.give_fd = -1,
		.reader_idx = -1};
	stoup_store_volume_acquire(file);
	v->load_idx = malloc((size_t)block_cnt * sizeof(v->load_idx[0]) + 1);
	v->load_cnt = calloc((size_t)block_cnt + 1, sizeof(v->load_cnt[0]));
	v->block_series = calloc((size_t)block_cnt + 1, sizeof(v->block_series[0]));
	v->block_shared = calloc((size_t)block_cnt + 1, sizeof(v->block_shared[0]));
	v->block_last = calloc((size_t)block_cnt + 1, sizeof(v->block_last[0]));
	v->pin_cnt = calloc((size_t)block_cnt + 1, sizeof(v->pin_cnt[0]));
	v->pin_seen = calloc((size_t)block_cnt / 8 + 1, 1);
	if (!v->load_idx || !v->load_cnt || !v->block_series || !v->block_shared ||
		!v->block_last || !v->pin_cnt || !v->pin_seen ||
		stoup_runs_create(file->index, &v->runs) < 0) {
		rc = stoup_error_set(err, -ENOMEM, "out of memory for %u blocks", block_cnt);
		goto out_unmake;
	}
	for (uint32_t b = 0; b < block_cnt; b++) {
		v->load_idx[b] = STOUP_IDX_NONE;
		if (file->index->blocks[b].raw_len > v->block_len_max)
			v->block_len_max = file->index->blocks[b].raw_len;
	}
	stoup_holders_index(v);
	free(v->block_last);
	v->block_last = NULL;
	rc = make_catalog(d, volume_idx, err);
	if (rc < 0)
		goto out_unmake;
	v->reader_idx = stoup_reader_file_add(d->reader, file->fd, file->path, &why);
	if (v->reader_idx < 0)
		stoup_log_error(d, v->reader_idx, "%s: can not be read: %s",
			stoup_path_tail(file->path), why.text);
	stoup_give_open(d, volume_idx);
	return 0;
out_unmake:
	(void)stoup_volume_unmake(d, volume_idx);
	v->born_seq = 0;
	return rc;
}

/* ---- all of them ------------------------------------------------------------------------------ */

/* They are known now; whoever reads them is told again. */
void stoup_volumes_say_large(struct stoup_daemon *d, uint64_t seq)
{
	uint64_t large = 0, all = 0;

	for (uint32_t v = 0; v < d->volume_cnt; v++) {
		const struct stoup_vol_index *index;

		if (!d->volumes[v].file || d->volumes[v].born_seq != seq)
			continue;
		index = d->volumes[v].file->index;
		for (uint32_t b = 0; b < index->block_cnt; b++, all++)
			large += index->blocks[b].raw_len > d->control->block_len_max;
	}
	if (large > 0)
		stoup_log_error(d, -EFBIG,
			"%llu of %llu blocks decode to more than the %u bytes that a pool of %llu serves; mend: --size "
			"%llu or more",
			(unsigned long long)large, (unsigned long long)all,
			d->control->block_len_max, (unsigned long long)d->data_region.len,
			(unsigned long long)d->block_len_max * STOUP_POOL_PART);
}

int stoup_volumes_make(struct stoup_daemon *d, struct stoup_error *err)
{
	uint32_t idx = 0;

	d->volumes = calloc((size_t)d->volume_cap, sizeof(d->volumes[0]));
	if (!d->volumes)
		return stoup_error_set(err, -ENOMEM, "out of memory for %u volumes", d->volume_cap);
	for (uint32_t i = 0; i < d->volume_cap; i++) {
		d->volumes[i].catalog.fd = d->volumes[i].catalog.ro_fd = -1;
		d->volumes[i].give_fd = d->volumes[i].reader_idx = -1;
	}
	d->snapshot_seq = 1;
	for (uint32_t s = 0; s < d->opt.store_cnt; s++) {
		const struct stoup_store *store = d->stores[s];

		for (uint32_t i = 0; i < store->fault_cnt; i++)
			stoup_log_error(d, -EBADMSG, "volume refused: %s", store->faults[i].text);
		for (uint32_t v = 0; v < store->volume_cnt; v++, idx++) {
			int rc = stoup_volume_make(
				d, idx, store->volumes[v], s, d->snapshot_seq, err);

			if (rc < 0)
				return rc;
			stoup_volume_show(d, idx);
		}
	}
	stoup_volumes_say_large(d, d->snapshot_seq);
	atomic_store_explicit(&d->control->volume_cnt, d->volume_cnt, memory_order_release);
	atomic_store_explicit(&d->control->snapshot_seq, d->snapshot_seq, memory_order_release);
	stoup_snapshot_gauges(d);
	return 0;
}

void stoup_volumes_fini(struct stoup_daemon *d)
{
	for (uint32_t i = 0; d->volumes && i < d->volume_cap; i++) {
		stoup_give_close(&d->volumes[i]);
		stoup_region_fini(&d->volumes[i].catalog);
		free(d->volumes[i].load_idx);
		free(d->volumes[i].load_cnt);
		free(d->volumes[i].pin_cnt);
		free(d->volumes[i].pin_seen);
		free(d->volumes[i].block_series);
		free(d->volumes[i].block_shared);
		free(d->volumes[i].block_last);
		stoup_runs_destroy(d->volumes[i].runs);
		stoup_store_volume_release(d->volumes[i].file);
	}
	free(d->volumes);
	for (uint32_t i = 0; i < d->opt.store_cnt; i++)
		stoup_store_close(d->stores[i]);
}
