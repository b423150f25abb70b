/* SPDX-License-Identifier: Apache-2.0 */
/* tool_top_names.c - series of the blocks that lie in the pool, from the volumes' own files where they can be read.
 *
 * The control object tells volume and block of each extent, and who reads the store knows what lies in them. Volumes are read
 * once, a part of them at each look so that none of them takes long. See tool_top.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/tool_top.h"
#include "consumer/tools.h"
#include "shm/clock.h"

#define LOOK_NS UINT64_C(100000000) /* of reading volumes for one look */

struct entry {
	char path[128];
	int tried;
	struct stoup_block_series *series; /* NULL: not readable */
};

struct stoup_top_store {
	struct entry *entries; /* by volume */
	uint32_t cnt;
	uint64_t left_ns;
	char dir[256];
};

int stoup_top_store_create(struct stoup_top_store **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void stoup_top_store_destroy(struct stoup_top_store *store)
{
	if (!store)
		return;
	for (uint32_t i = 0; i < store->cnt; i++)
		stoup_block_series_close(store->entries[i].series);
	free(store->entries);
	free(store);
}

void stoup_top_store_look(struct stoup_top_store *store, const struct stoup_watch *watch)
{
	store->left_ns = LOOK_NS;
	memcpy(store->dir, watch->store_path, sizeof(store->dir));
}

static struct entry *entry_of(struct stoup_top_store *store, uint32_t volume_idx)
{
	uint32_t cnt = store->cnt ? store->cnt : 16;
	struct entry *entries;

	if (volume_idx < store->cnt)
		return &store->entries[volume_idx];
	while (cnt <= volume_idx && cnt < STOUP_VOLUME_CAP * 2)
		cnt *= 2;
	if (volume_idx >= cnt)
		return NULL;
	entries = realloc(store->entries, cnt * sizeof(*entries));
	if (!entries)
		return NULL;
	memset(entries + store->cnt, 0, (cnt - store->cnt) * sizeof(*entries));
	store->entries = entries;
	store->cnt = cnt;
	return &entries[volume_idx];
}

static void entry_read(
	struct stoup_top_store *store, const struct stoup_watch_volume *volume, struct entry *entry)
{
	const char *name = strrchr(volume->path, '/');
	uint64_t began = stoup_clock_ns(), took;
	char path[512];

	stoup_block_series_close(entry->series);
	memset(entry, 0, sizeof(*entry));
	memcpy(entry->path, volume->path, sizeof(entry->path));
	entry->tried = 1;
	/* Of a long path there is but the end: its directory is the store. */
	if (volume->path[0] == '/')
		snprintf(path, sizeof(path), "%s", volume->path);
	else
		snprintf(path, sizeof(path), "%s/%s", store->dir, name ? name + 1 : volume->path);
	if (stoup_block_series_open(path, volume->block_cnt, volume->series_cnt, &entry->series) <
		0)
		entry->series = NULL;
	took = stoup_clock_ns() - began;
	store->left_ns -= took < store->left_ns ? took : store->left_ns;
}

const char *stoup_top_store_series(
	void *arg, const struct stoup_watch_volume *volume, uint32_t block_idx, uint32_t *ret_cnt)
{
	struct stoup_top_store *store = arg;
	struct entry *entry = entry_of(store, volume->idx);

	if (!entry)
		return NULL;
	if (!entry->tried || strcmp(entry->path, volume->path) != 0) {
		if (store->left_ns == 0)
			return NULL;
		entry_read(store, volume, entry);
	}
	return entry->series ? stoup_block_series_name(entry->series, block_idx, ret_cnt) : NULL;
}
