/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - see source.h. */
#include "producer/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define READ_LEN (1u << 20)

/* ---- making ------------------------------------------------------------------------------------ */

static int hash_file(int fd, XXH3_state_t *state, struct stoup_source *source)
{
	uint8_t *buf = malloc(READ_LEN);
	XXH128_canonical_t canonical;
	ssize_t n;

	if (!buf)
		return -ENOMEM;
	XXH3_128bits_reset(state);
	for (;;) {
		n = read(fd, buf, READ_LEN);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		XXH3_128bits_update(state, buf, (size_t)n);
		source->entry.file_len += (uint64_t)n;
	}
	free(buf);
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
	memcpy(source->entry.hash, canonical.digest, sizeof(source->entry.hash));
	return n < 0 ? -errno : 0;
}

/* The end of the path, with what is no text replaced. */
static void name_set(const char *path, char dst[STOUP_VOL_SOURCE_NAME_CAP])
{
	size_t len = strlen(path);

	if (len >= STOUP_VOL_SOURCE_NAME_CAP)
		path += len - (STOUP_VOL_SOURCE_NAME_CAP - 1);
	for (size_t i = 0; path[i]; i++) {
		unsigned char c = (unsigned char)path[i];

		dst[i] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
	}
}

int stoup_source_of(
	const char *path, uint64_t options_hash, struct stoup_source *ret, struct stoup_error *err)
{
	struct stoup_source source = {.entry = {.options_hash = options_hash}};
	XXH3_state_t *state = NULL;
	struct timespec now;
	int fd, rc = 0;

	/* What is not there is told by opening it as an input. */
	if (stat(path, &source.st) < 0 || !S_ISREG(source.st.st_mode))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (fstat(fd, &source.st) < 0)
		rc = -errno;
	state = rc == 0 ? XXH3_createState() : NULL;
	if (rc == 0)
		rc = state ? hash_file(fd, state, &source) : -ENOMEM;
	XXH3_freeState(state);
	close(fd);
	if (rc < 0)
		return stoup_error_set(err, rc, "%s: %s", path, strerror(-rc));
	clock_gettime(CLOCK_REALTIME, &now);
	source.entry.ingested_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	name_set(path, source.entry.name);
	*ret = source;
	return 1;
}

int stoup_source_same(const char *path, const struct stoup_source *source)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_dev == source->st.st_dev &&
	       st.st_ino == source->st.st_ino && st.st_size == source->st.st_size &&
	       (uint64_t)st.st_size == source->entry.file_len &&
	       st.st_mtim.tv_sec == source->st.st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == source->st.st_mtim.tv_nsec;
}

/* ---- finding ----------------------------------------------------------------------------------- */

static int lists(const struct stoup_vol_index *index, const struct stoup_vol_source *source)
{
	for (uint32_t i = 0; i < index->source_cnt; i++) {
		const struct stoup_vol_source *other = &index->sources[i];

		if (other->file_len == source->file_len &&
			other->options_hash == source->options_hash &&
			memcmp(other->hash, source->hash, sizeof(other->hash)) == 0)
			return 1;
	}
	return 0;
}

/* Volumes of one batch follow each other: do all of them list it? */
static int batch_lists(
	const struct stoup_store *store, uint32_t first, const struct stoup_vol_source *source)
{
	const struct stoup_vol_header *header = &store->volumes[first]->index->header;
	uint32_t cnt = 0;

	for (uint32_t i = first; i < store->volume_cnt; i++) {
		const struct stoup_vol_index *index = store->volumes[i]->index;

		if (index->header.ingest_seq != header->ingest_seq)
			break;
		cnt += memcmp(index->header.id, header->id, 14) == 0 && lists(index, source);
	}
	return cnt == header->batch_cnt;
}

const struct stoup_store_volume *stoup_source_known(
	const struct stoup_store *store, const struct stoup_vol_source *source)
{
	for (uint32_t i = 0; i < store->volume_cnt; i++) {
		const struct stoup_store_volume *volume = store->volumes[i];

		if (volume->index->header.batch_idx == 0 && lists(volume->index, source) &&
			batch_lists(store, i, source))
			return volume;
	}
	return NULL;
}
