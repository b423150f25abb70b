/* SPDX-License-Identifier: Apache-2.0 */
/* private_decode.c - what a program without stoup does: read and decode a series' blocks for itself.
 *
 *      store --index--> blocks of the series, in key order --pread--> stored bytes --decode--> one buffer
 *
 * For `stoup bench`, which holds it against a scan of the pool. One thread; checksums are not looked
 * at, as the daemon does not either.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "codec/block.h"
#include "producer/cmd.h"
#include "producer/store.h"
#include "producer/volume_file.h"
#include "shm/clock.h"

struct decoding {
	const char *name;
	uint64_t limit, raw_len;
	uint8_t *stored, *raw;
	void *scratch;
};

static int block_decode(struct decoding *d, const struct stoup_store_volume *volume,
	uint32_t block_idx, struct stoup_error *err)
{
	const struct stoup_vol_block *block = &volume->index->blocks[block_idx];
	int rc = stoup_file_read(volume->fd, d->stored, block->stored_len, block->stored_off);

	if (rc == 0)
		rc = stoup_block_decode(block->codec, block->transform, d->stored,
			block->stored_len, d->raw, block->raw_len, d->scratch);
	if (rc < 0)
		return stoup_error_set(err, rc,
			"%s: block %u cannot be read (`stoup verify` tells more)", volume->path,
			block_idx);
	d->raw_len += block->raw_len;
	return 0;
}

/* The blocks of one part; neighbouring segments may share one. */
static int part_decode(struct decoding *d, const struct stoup_store_volume *volume,
	const struct stoup_vol_series *series, struct stoup_error *err)
{
	uint32_t last = UINT32_MAX;
	int rc = 0;

	for (uint32_t i = 0; i < series->segment_cnt && d->raw_len < d->limit && rc == 0; i++) {
		uint32_t idx = volume->index->segments[series->segment_first + i].block_idx;

		if (idx != last)
			rc = block_decode(d, volume, idx, err);
		last = idx;
	}
	return rc;
}

static int all_decode(struct decoding *d, const struct stoup_store *store, struct stoup_error *err)
{
	int rc = 0;

	d->raw_len = 0;
	for (uint32_t v = 0; v < store->volume_cnt && rc == 0; v++) {
		const struct stoup_vol_index *index = store->volumes[v]->index;

		for (uint32_t s = 0; s < index->series_cnt && rc == 0; s++)
			if (strcmp(index->series[s].name, d->name) == 0)
				rc = part_decode(d, store->volumes[v], &index->series[s], err);
	}
	return rc;
}

int stoup_private_decode(const char *store_path, const char *series, uint64_t limit,
	uint64_t *ret_len, uint64_t *ret_ns, struct stoup_error *err)
{
	struct decoding d = {.name = series, .limit = limit};
	struct stoup_store *store = NULL;
	uint64_t began, ns;
	int rc = stoup_store_open(store_path, &store, err);

	if (rc < 0)
		return rc;
	d.stored = malloc(STOUP_BLOCK_RAW_CAP);
	d.raw = malloc(STOUP_BLOCK_RAW_CAP);
	d.scratch = aligned_alloc(64, (stoup_block_scratch_len() + 63) & ~(size_t)63);
	if (!d.stored || !d.raw || !d.scratch) {
		rc = stoup_error_set(err, -ENOMEM, "no memory for a private decoder");
		goto out_free;
	}
	stoup_block_scratch_init(d.scratch);
	rc = all_decode(&d, store, err); /* the first pass touches buffers and page cache */
	began = stoup_clock_ns();
	if (rc == 0)
		rc = all_decode(&d, store, err);
	ns = stoup_clock_ns() - began;
	if (rc == 0 && d.raw_len == 0)
		rc = stoup_error_set(err, -ENOENT, "%s holds nothing of %s", store_path, series);
	if (rc == 0) {
		*ret_len = d.raw_len;
		*ret_ns = ns;
	}
out_free:
	free(d.scratch);
	free(d.raw);
	free(d.stored);
	stoup_store_close(store);
	return rc;
}

int stoup_store_decoded_len(const char *store_path, uint64_t *ret_len, struct stoup_error *err)
{
	struct stoup_store *store = NULL;
	uint64_t len = 0;
	int rc = stoup_store_open(store_path, &store, err);

	if (rc < 0)
		return rc;
	rc = stoup_store_holds_nothing(store, err) ? -ENOENT : 0;
	for (uint32_t v = 0; v < store->volume_cnt; v++)
		for (uint32_t i = 0; i < store->volumes[v]->index->block_cnt; i++)
			len += store->volumes[v]->index->blocks[i].raw_len;
	stoup_store_close(store);
	if (rc == 0)
		*ret_len = len;
	return rc;
}
