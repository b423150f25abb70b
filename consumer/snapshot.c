/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - the volumes of an attachment: map their catalogs, order them, share their schemas.
 *
 *      descriptors in the daemon's order --map, verify--> volumes --sort by ingest--> st->volumes
 *                                                            \--one object per layout--> st->schemas
 *
 * Invariant: after attach nothing here changes, so series and cursors read it without a lock. Two
 * volumes whose layouts agree share one schema object: comparing pointers compares layouts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "consumer/client.h"

/* Room for one more, doubling; NULL (and nothing changed) without memory. */
static void *grow(void *items, uint32_t cnt, size_t item_len)
{
	if (cnt & (cnt - 1) || (cnt > 0 && cnt < 8))
		return items;
	return realloc(items, (cnt ? (size_t)cnt * 2 : 8) * item_len);
}

int stoup_snapshot_add(struct stoup *st, int fd, struct stoup_error *err)
{
	struct stoup_snapshot_volume *more, *vol;
	struct stoup_region region;
	const struct stoup_catalog *catalog;
	int rc;

	rc = stoup_region_map(fd, sizeof(struct stoup_catalog), 0, 0, &region, err);
	close(fd);
	if (rc < 0)
		return rc;
	catalog = region.base;
	rc = stoup_catalog_verify(catalog, region.len, err);
	if (rc < 0)
		goto out_unmap;
	if (catalog->volume_idx >= st->control->volume_cap) {
		rc = stoup_error_set(err, -EPROTO, "the daemon's catalog names volume %u of %u",
			catalog->volume_idx, st->control->volume_cap);
		goto out_unmap;
	}
	/* Retired meanwhile: its blocks are not served any more. */
	if (atomic_load_explicit(&stoup_control_volumes(st->control)[catalog->volume_idx].state,
		    memory_order_acquire) == STOUP_VOLUME_RETIRED)
		goto out_unmap;
	more = grow(st->volumes, st->volume_cnt, sizeof(*more));
	if (!more) {
		rc = stoup_error_set(err, -ENOMEM, "no memory for %u volumes", st->volume_cnt + 1);
		goto out_unmap;
	}
	st->volumes = more;
	vol = &st->volumes[st->volume_cnt++];
	*vol = (struct stoup_snapshot_volume){
		.catalog = catalog,
		.map_len = region.len,
		.series = stoup_catalog_series(catalog),
		.segments = stoup_catalog_segments(catalog),
		.blocks = stoup_catalog_blocks(catalog),
		.residency = stoup_catalog_residency_ro(catalog),
	};
	return 0;
out_unmap:
	munmap(region.base, region.len);
	return rc;
}

static int by_ingest(const void *a, const void *b)
{
	const struct stoup_catalog *x = ((const struct stoup_snapshot_volume *)a)->catalog;
	const struct stoup_catalog *y = ((const struct stoup_snapshot_volume *)b)->catalog;

	if (x->ingest_seq != y->ingest_seq)
		return x->ingest_seq < y->ingest_seq ? -1 : 1;
	if (x->batch_idx != y->batch_idx)
		return x->batch_idx < y->batch_idx ? -1 : 1;
	return x->volume_idx < y->volume_idx ? -1 : x->volume_idx > y->volume_idx;
}

/* The client's object for a layout; made at its first sight. */
static int schema_intern(struct stoup *st, const struct stoup_catalog *catalog, uint32_t idx,
	const struct stoup_schema **ret, struct stoup_error *err)
{
	const struct stoup_catalog_schema *c = &stoup_catalog_schemas(catalog)[idx];
	struct stoup_schema schema = {
		.stride = c->stride,
		.align = c->align,
		.key_off = c->key_off,
		.flags = c->flags,
		.interval_ns = c->interval_ns,
		.field_cnt = c->field_cnt,
		.fields = stoup_catalog_fields(catalog) + c->field_first,
	};
	struct stoup_schema **more, *made;
	int rc;

	memcpy(schema.name, c->name, sizeof(schema.name));
	schema.hash = stoup_schema_hash(&schema);
	for (uint32_t i = 0; i < st->schema_cnt; i++) {
		if (st->schemas[i]->hash == schema.hash &&
			strcmp(st->schemas[i]->name, schema.name) == 0) {
			*ret = st->schemas[i];
			return 0;
		}
	}
	rc = stoup_schema_valid(&schema, err);
	if (rc < 0) {
		stoup_error_prefix(err, "the daemon's catalog of volume %u", catalog->volume_idx);
		return stoup_error_set(err, -EPROTO, "%s", err ? err->text : "");
	}
	more = grow(st->schemas, st->schema_cnt, sizeof(struct stoup_schema *));
	if (!more)
		return stoup_error_set(err, -ENOMEM, "no memory for schemas");
	st->schemas = more;
	made = malloc(sizeof(*made));
	if (!made)
		return stoup_error_set(err, -ENOMEM, "no memory for a schema");
	*made = schema;
	st->schemas[st->schema_cnt++] = made;
	*ret = made;
	return 0;
}

int stoup_snapshot_finish(struct stoup *st, struct stoup_error *err)
{
	int rc;

	if (st->volume_cnt > 1)
		qsort(st->volumes, st->volume_cnt, sizeof(*st->volumes), by_ingest);
	for (uint32_t v = 0; v < st->volume_cnt; v++) {
		struct stoup_snapshot_volume *vol = &st->volumes[v];
		uint32_t cnt = vol->catalog->schema_cnt;

		vol->schemas = calloc(cnt ? cnt : 1, sizeof(const struct stoup_schema *));
		if (!vol->schemas)
			return stoup_error_set(err, -ENOMEM, "no memory for %u schemas", cnt);
		for (uint32_t i = 0; i < cnt; i++) {
			rc = schema_intern(st, vol->catalog, i, &vol->schemas[i], err);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

void stoup_snapshot_fini(struct stoup *st)
{
	for (uint32_t v = 0; v < st->volume_cnt; v++) {
		free(st->volumes[v].schemas);
		munmap((void *)(uintptr_t)st->volumes[v].catalog, st->volumes[v].map_len);
	}
	free(st->volumes);
	for (uint32_t i = 0; i < st->schema_cnt; i++)
		free(st->schemas[i]);
	free(st->schemas);
	st->volumes = NULL;
	st->schemas = NULL;
	st->volume_cnt = st->schema_cnt = 0;
}
