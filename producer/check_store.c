/* SPDX-License-Identifier: Apache-2.0 */
/* check_store.c - the store that was named: is it readable, whole, and do its blocks fit into the pool? */
#include "producer/check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "producer/cmd.h"
#include "shm/format.h"

#define POOL_PART       4u /* a block may fill that part of a pool */
#define BLOCKS_LEAST    8u /* and stoupd makes room for so many of the longest */
#define BLOCK_LEN_USUAL (UINT64_C(512) << 10)
#define POOL_LEN_CAP    (UINT64_C(512) << 20)
#define HUGE_LEN        (UINT64_C(2) << 20)
#define FAULT_LINES     4u

struct contents {
	uint64_t decoded_len, series_cnt;
	uint32_t block_len_max;
};

static struct contents look(const struct stoup_store *store)
{
	struct contents ret = {0};

	for (uint32_t v = 0; v < store->volume_cnt; v++) {
		const struct stoup_vol_index *index = store->volumes[v]->index;

		ret.series_cnt += index->series_cnt;
		for (uint32_t b = 0; b < index->block_cnt; b++) {
			ret.decoded_len += index->blocks[b].raw_len;
			if (index->blocks[b].raw_len > ret.block_len_max)
				ret.block_len_max = index->blocks[b].raw_len;
		}
	}
	return ret;
}

/* As stoupd without --size has it. */
static uint64_t default_len(const struct contents *in)
{
	uint64_t len = in->decoded_len + in->decoded_len / 16, least = in->block_len_max;

	if (least < BLOCK_LEN_USUAL)
		least = BLOCK_LEN_USUAL;
	if (len > POOL_LEN_CAP)
		len = POOL_LEN_CAP;
	if (len < least * BLOCKS_LEAST)
		len = least * BLOCKS_LEAST;
	return (len + HUGE_LEN - 1) & ~(HUGE_LEN - 1);
}

static void check_blocks(struct stoup_check *c, const struct contents *in)
{
	struct stoup_check_line *line;

	if (in->block_len_max <= c->pool_len / POOL_PART)
		return;
	line = stoup_check_line(c, "store_blocks", STOUP_CHECK_PROBLEM);
	stoup_check_found(line,
		"blocks of %u bytes in a pool of %" PRIu64 ", of which one may fill a quarter",
		in->block_len_max, c->pool_len);
	stoup_check_mend(line,
		"--size %" PRIu64 " or more, or stoup compact --block %" PRIu64 " %s",
		(uint64_t)in->block_len_max * POOL_PART, c->pool_len / POOL_PART, c->store_path);
}

static void check_faults(struct stoup_check *c)
{
	const struct stoup_store *store = c->store;

	for (uint32_t i = 0; i < store->fault_cnt && i < FAULT_LINES; i++) {
		struct stoup_check_line *line =
			stoup_check_line(c, "store_volume", STOUP_CHECK_PROBLEM);
		const struct stoup_store_fault *fault = &store->faults[i];

		stoup_check_found(line, "%.400s", fault->text);
		if (access(fault->path, R_OK) < 0 && errno == EACCES)
			stoup_check_mend(
				line, "chmod a+r %.300s, or run stoupd as its owner", fault->path);
		else if (store->overlap_cnt > 0)
			stoup_check_mend(line, "stoup compact --overlaps dedup %s", c->store_path);
		else
			stoup_check_mend(line, "a backup of it, else stoup verify --repair %s",
				c->store_path);
	}
}

/* Does an ingest, compact or rm run? The lock tells, not the file that it lies in. */
static int writer_runs(const char *store_path)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	char path[PATH_MAX];
	int fd = -1, busy;

	if (snprintf(path, sizeof(path), "%s/%s", store_path, STOUP_STORE_LOCK_NAME) < PATH_MAX)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	busy = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
	close(fd);
	return busy;
}

static void check_writer(struct stoup_check *c)
{
	struct stoup_check_line *line;

	if (c->store->unfinished_cnt == 0 && !c->store->writing)
		return;
	if (writer_runs(c->store_path)) {
		line = stoup_check_line(c, "store_writer", STOUP_CHECK_OK);
		stoup_check_found(line, "the store is being written");
		return;
	}
	line = stoup_check_line(c, "store_writer", STOUP_CHECK_WARNING);
	stoup_check_found(line, "a writer was cut short: it left files that nobody reads");
	stoup_check_mend(
		line, "the next ingest removes them; at once: stoup compact %s", c->store_path);
}

/* Who may write a volume may end those who map it (direct mode), or change what they read. */
static void check_modes(struct stoup_check *c)
{
	struct stoup_check_line *line;
	struct stat st;

	if (fstat(c->store->dir_fd, &st) == 0 && (st.st_mode & S_IWOTH) &&
		!(st.st_mode & S_ISVTX)) {
		line = stoup_check_line(c, "store_mode", STOUP_CHECK_WARNING);
		stoup_check_found(line, "everybody may remove and add volumes (mode %04o)",
			(unsigned int)st.st_mode & 07777);
		stoup_check_mend(line, "chmod o-w %s", c->store_path);
	}
	for (uint32_t i = 0; i < c->store->volume_cnt; i++) {
		if (fstat(c->store->volumes[i]->fd, &st) < 0 || !(st.st_mode & S_IWOTH))
			continue;
		line = stoup_check_line(c, "store_mode", STOUP_CHECK_WARNING);
		stoup_check_found(line,
			"everybody may write %.200s: programs that map it would die of SIGBUS",
			c->store->volumes[i]->path);
		stoup_check_mend(line, "chmod o-w %s/*.stoup", c->store_path);
		return;
	}
}

static void not_opened(struct stoup_check *c, int rc, const struct stoup_error *err)
{
	struct stoup_check_line *line = stoup_check_line(c, "store", STOUP_CHECK_PROBLEM);

	stoup_check_found(line, "%s", err->text);
	if (rc == -EACCES)
		stoup_check_mend(line, "chmod a+rx %s, or run stoupd as its owner", c->store_path);
	else if (rc == -EMFILE)
		stoup_check_mend(line, "ulimit -n 65536");
	else
		stoup_check_mend(line, "stoup ingest --store %s FILE", c->store_path);
}

void stoup_check_store(struct stoup_check *c)
{
	struct stoup_check_line *line;
	struct stoup_error err = {0};
	char decoded[STOUP_SIZE_TEXT_CAP];
	struct contents in;
	int rc;

	if (!c->store_path)
		return;
	rc = stoup_store_open(c->store_path, &c->store, &err);
	if (rc < 0) {
		not_opened(c, rc, &err);
		return;
	}
	if (stoup_store_holds_nothing(c->store, &err)) {
		not_opened(c, -ENOENT, &err);
		return;
	}
	in = look(c->store);
	if (c->pool_len == 0)
		c->pool_len = default_len(&in);
	stoup_size_format(in.decoded_len, decoded);
	line = stoup_check_line(c, "store", STOUP_CHECK_OK);
	stoup_check_found(line, "%u volume%s, decoding to %s", c->store->volume_cnt,
		STOUP_PLURAL(c->store->volume_cnt), decoded);
	check_blocks(c, &in);
	check_faults(c);
	check_writer(c);
	check_modes(c);
}
