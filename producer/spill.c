/* SPDX-License-Identifier: Apache-2.0 */
/* spill.c - runs of slices in an unnamed file. */
#include "producer/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "producer/cmd.h"
#include "producer/store.h"
#include "producer/volume_file.h"
#include "shm/message.h"

#define WRITE_BUFFER_LEN (1u << 20) /* large enough for full disk speed, small beside the budget */
#define WINDOW_LEN_MIN   4096u
#define WINDOW_LEN_MAX   (1u << 20)

struct run {
	uint64_t next_off; /* file offset behind the window */
	uint64_t end_off;  /* of the run */
	uint8_t *window;
	size_t pos, len; /* unread bytes of the window: [pos, len) */
	int has_head;
	struct stoup_spill_slice head;
};

struct stoup_spill {
	int fd;
	const char *dir_path;
	uint64_t len; /* bytes written, those in the buffer included */
	uint8_t *buffer;
	size_t buffer_len;
	struct run *runs;
	uint32_t run_cnt, run_cap;
	uint8_t *windows;
	size_t window_len;
};

/* ---- life ------------------------------------------------------------------------------------ */

static int file_error(
	const struct stoup_spill *spill, int code, const char *what, struct stoup_error *err)
{
	char len[STOUP_SIZE_TEXT_CAP];

	stoup_size_format(spill->len, len);
	if (code == -ENOSPC || code == -EDQUOT || code == -EFBIG)
		return stoup_error_set(err, code,
			"temporary file in %s: %s after %s; it needs as much room as the decoded "
			"input: %s; the store is unchanged",
			spill->dir_path, strerror(-code), len, stoup_volume_room_advice(code));
	return stoup_error_set(err, code,
		"temporary file in %s: %s: %s (at %s); the store is unchanged", spill->dir_path,
		what, strerror(-code), len);
}

/* File systems without O_TMPFILE (NFS, some overlays): a dotted name that is unlinked at once;
 * what a crash in between leaves is swept by the next writer. */
static int file_create(int dir_fd)
{
	char name[STOUP_STORE_NAME_CAP];
	uint64_t random;
	int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 ||
		(errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL))
		return fd < 0 ? -errno : fd;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(name, sizeof(name), STOUP_STORE_TEMP_PREFIX "spill-%016llx",
		(unsigned long long)random);
	fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	unlinkat(dir_fd, name, 0);
	return fd;
}

int stoup_spill_create(
	int dir_fd, const char *dir_path, struct stoup_spill **ret, struct stoup_error *err)
{
	struct stoup_spill *spill = calloc(1, sizeof(*spill));
	int rc;

	if (!spill)
		return stoup_error_set(err, -ENOMEM, "no memory for the temporary file's buffers");
	spill->dir_path = dir_path;
	spill->fd = file_create(dir_fd);
	spill->buffer = malloc(WRITE_BUFFER_LEN);
	if (spill->fd >= 0 && spill->buffer) {
		*ret = spill;
		return 0;
	}
	rc = file_error(spill, spill->fd < 0 ? spill->fd : -ENOMEM, "creating it failed", err);
	stoup_spill_destroy(spill);
	return rc;
}

void stoup_spill_destroy(struct stoup_spill *spill)
{
	if (!spill)
		return;
	if (spill->fd >= 0)
		close(spill->fd);
	free(spill->buffer);
	free(spill->runs);
	free(spill->windows);
	free(spill);
}

uint64_t stoup_spill_len(const struct stoup_spill *spill)
{
	return spill->len;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int buffer_flush(struct stoup_spill *spill, struct stoup_error *err)
{
	int rc = stoup_file_write(
		spill->fd, spill->buffer, spill->buffer_len, spill->len - spill->buffer_len);

	if (rc < 0)
		return file_error(spill, rc, "writing failed", err);
	spill->buffer_len = 0;
	return 0;
}

int stoup_spill_run_begin(struct stoup_spill *spill, struct stoup_error *err)
{
	if (spill->run_cnt == spill->run_cap) {
		uint32_t cap = spill->run_cap ? spill->run_cap * 2 : 16;
		struct run *runs = realloc(spill->runs, cap * sizeof(*runs));

		if (!runs)
			return file_error(spill, -ENOMEM, "no memory for its index", err);
		spill->runs = runs;
		spill->run_cap = cap;
	}
	if (spill->run_cnt > 0)
		spill->runs[spill->run_cnt - 1].end_off = spill->len;
	spill->runs[spill->run_cnt++] = (struct run){.next_off = spill->len};
	return 0;
}

int stoup_spill_slice_begin(
	struct stoup_spill *spill, const struct stoup_spill_slice *slice, struct stoup_error *err)
{
	return stoup_spill_write(spill, slice, sizeof(*slice), err);
}

int stoup_spill_write(
	struct stoup_spill *spill, const void *bytes, size_t len, struct stoup_error *err)
{
	const uint8_t *p = bytes;

	while (len > 0) {
		size_t room = WRITE_BUFFER_LEN - spill->buffer_len;
		size_t n = len < room ? len : room;
		int rc;

		memcpy(spill->buffer + spill->buffer_len, p, n);
		spill->buffer_len += n;
		spill->len += n;
		p += n;
		len -= n;
		if (spill->buffer_len < WRITE_BUFFER_LEN)
			continue;
		rc = buffer_flush(spill, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Have at least `need` unread bytes in the window. */
static int window_fill(
	struct stoup_spill *spill, struct run *run, size_t need, struct stoup_error *err)
{
	size_t left = run->len - run->pos, n;
	int rc;

	if (left >= need)
		return 0;
	memmove(run->window, run->window + run->pos, left);
	run->pos = 0;
	run->len = left;
	n = spill->window_len - left;
	if (n > run->end_off - run->next_off)
		n = (size_t)(run->end_off - run->next_off);
	if (left + n < need)
		return file_error(spill, -EIO, "a run ends too early", err);
	rc = stoup_file_read(spill->fd, run->window + left, n, run->next_off);
	if (rc < 0)
		return file_error(spill, rc, "reading failed", err);
	run->next_off += n;
	run->len += n;
	return 0;
}

/* Step to the next slice, if there is one. */
static int head_read(struct stoup_spill *spill, struct run *run, struct stoup_error *err)
{
	int rc;

	run->has_head = 0;
	if (run->pos == run->len && run->next_off == run->end_off)
		return 0;
	rc = window_fill(spill, run, sizeof(run->head), err);
	if (rc < 0)
		return rc;
	memcpy(&run->head, run->window + run->pos, sizeof(run->head));
	run->pos += sizeof(run->head);
	run->has_head = 1;
	return 0;
}

int stoup_spill_rewind(
	struct stoup_spill *spill, size_t memory_len, size_t record_cap, struct stoup_error *err)
{
	size_t window = spill->run_cnt ? memory_len / spill->run_cnt : 0;
	uint32_t i;
	int rc = buffer_flush(spill, err);

	if (rc < 0)
		return rc;
	free(spill->buffer);
	spill->buffer = NULL;
	if (spill->run_cnt == 0)
		return 0;
	spill->runs[spill->run_cnt - 1].end_off = spill->len;
	window = window < WINDOW_LEN_MIN ? WINDOW_LEN_MIN : window;
	window = window > WINDOW_LEN_MAX ? WINDOW_LEN_MAX : window;
	window = window < record_cap ? record_cap : window;
	spill->window_len = window;
	spill->windows = malloc(window * spill->run_cnt);
	if (!spill->windows)
		return file_error(spill, -ENOMEM, "no memory to read it back", err);
	for (i = 0; i < spill->run_cnt && rc == 0; i++) {
		spill->runs[i].window = spill->windows + i * window;
		rc = head_read(spill, &spill->runs[i], err);
	}
	return rc;
}

uint32_t stoup_spill_run_cnt(const struct stoup_spill *spill)
{
	return spill->run_cnt;
}

const struct stoup_spill_slice *stoup_spill_head(const struct stoup_spill *spill, uint32_t run_idx)
{
	const struct run *run = &spill->runs[run_idx];

	return run->has_head ? &run->head : NULL;
}

/* One message: its head says how long it is. */
static int message_view(struct stoup_spill *spill, struct run *run, const uint8_t **ret_records,
	uint64_t *ret_cnt, struct stoup_error *err)
{
	struct stoup_message_head head;
	int rc = window_fill(spill, run, sizeof(head), err);

	if (rc < 0)
		return rc;
	memcpy(&head, run->window + run->pos, sizeof(head));
	rc = window_fill(spill, run, stoup_message_unit_len(head.len), err);
	if (rc < 0)
		return rc;
	*ret_records = run->window + run->pos;
	*ret_cnt = 1;
	return 0;
}

int stoup_spill_view(struct stoup_spill *spill, uint32_t run_idx, uint32_t stride,
	const uint8_t **ret_records, uint64_t *ret_cnt, struct stoup_error *err)
{
	struct run *run = &spill->runs[run_idx];
	uint64_t cnt;
	int rc;

	if (stride == 0)
		return message_view(spill, run, ret_records, ret_cnt, err);
	rc = window_fill(spill, run, stride, err);
	if (rc < 0)
		return rc;
	cnt = (run->len - run->pos) / stride;
	*ret_records = run->window + run->pos;
	*ret_cnt = cnt < run->head.record_cnt ? cnt : run->head.record_cnt;
	return 0;
}

int stoup_spill_take(struct stoup_spill *spill, uint32_t run_idx, uint64_t cnt, uint64_t len,
	struct stoup_error *err)
{
	struct run *run = &spill->runs[run_idx];

	run->pos += (size_t)len;
	run->head.record_cnt -= cnt;
	run->head.len -= len;
	return run->head.record_cnt == 0 ? head_read(spill, run, err) : 0;
}
