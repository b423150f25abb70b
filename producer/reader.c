/* SPDX-License-Identifier: Apache-2.0 */
#include "producer/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "producer/reader_backend.h"

/* A read that comes back with EINTR or EAGAIN this often without a byte has its error passed on. */
#define RETRY_CAP 64u

#define OP_NONE UINT32_MAX

/* No file is longer: offsets are off_t, and room is left for rounding up to the alignment. */
#define OFFSET_CAP ((uint64_t)INT64_MAX - STOUP_READ_ALIGN_CAP)

enum op_state {
	OP_FREE = 0,
	OP_RUNNING, /* in the batch or in flight */
	OP_READY,   /* waits for reap */
};

/* One accepted request. The bytes of the file from base_off on go to base; the request's own begin
 * file_off - base_off further on (0 unless a direct read was widened). */
struct reader_op {
	enum op_state state;
	uint32_t next; /* in the free or the ready list */
	struct stoup_read req;
	struct stoup_read_op raw; /* the read that is running now */
	uint8_t *base;
	uint64_t base_off;
	uint32_t want; /* bytes from base_off that are needed */
	uint32_t wide; /* bytes from base_off that a direct read asks for */
	uint32_t got;  /* bytes from base_off that are there */
	uint32_t retry_cnt;
	uint64_t end_off;
	int64_t result;
	enum stoup_read_source source;
};

struct stoup_reader {
	const struct stoup_reader_backend *backend;
	void *state;
	struct stoup_reader_options opt;
	uint32_t depth;
	struct reader_op *ops;
	uint32_t free_head;
	uint32_t ready_head, ready_tail;
	uint32_t ready_cnt;
	uint32_t batch_cnt; /* begun and not flushed */
	struct stoup_read_result *results;
	struct stoup_reader_file *files;
	struct stoup_reader_counters counters;
	char reason[STOUP_READER_REASON_CAP];
	char direct_reason[STOUP_READER_REASON_CAP];
};

/* ---- one request, step by step --------------------------------------------------------------- */

static void op_ready(struct stoup_reader *reader, struct reader_op *op, int64_t result)
{
	uint32_t op_idx = (uint32_t)(op - reader->ops);
	op->result = result;
	op->state = OP_READY;
	op->next = OP_NONE;
	if (reader->ready_head == OP_NONE)
		reader->ready_head = op_idx;
	else
		reader->ops[reader->ready_tail].next = op_idx;
	reader->ready_tail = op_idx;
	reader->ready_cnt++;
}

/* Read on behind what is there, direct or not. */
static void op_begin(struct stoup_reader *reader, struct reader_op *op, int direct)
{
	const struct stoup_reader_file *file = &reader->files[op->req.file_idx];
	op->raw.dst = op->base + op->got;
	op->raw.file_off = op->base_off + op->got;
	op->raw.len = (direct ? op->wide : op->want) - op->got;
	op->raw.file_idx = op->req.file_idx;
	op->raw.fd = direct ? file->fd_direct : file->fd;
	op->raw.direct = direct ? 1 : 0;
	op->raw.staged = op->req.slot_idx >= 0 ? 1 : 0;
	op->source = direct ? STOUP_READ_DIRECT : STOUP_READ_BUFFERED;
	reader->backend->begin(reader->state, (uint32_t)(op - reader->ops), &op->raw);
	reader->batch_cnt++;
	if (++reader->counters.in_flight > reader->counters.in_flight_max)
		reader->counters.in_flight_max = reader->counters.in_flight;
}

static void direct_refused(
	struct stoup_reader *reader, struct stoup_reader_file *file, const char *what)
{
	file->direct = 0;
	reader->counters.files_buffered++;
	if (reader->direct_reason[0] == '\0')
		snprintf(reader->direct_reason, sizeof(reader->direct_reason), "%s", what);
}

/* What follows from an error: again, again without O_DIRECT, or the end. */
static void op_failed(struct stoup_reader *reader, struct reader_op *op, int code)
{
	struct stoup_reader_file *file = &reader->files[op->req.file_idx];
	if ((code == -EINTR || code == -EAGAIN) && op->retry_cnt < RETRY_CAP) {
		op->retry_cnt++;
		reader->counters.retries++;
		op_begin(reader, op, op->raw.direct);
		return;
	}
	if (op->raw.direct && (code == -EINVAL || code == -EOPNOTSUPP)) {
		reader->counters.retries++;
		if (file->direct)
			direct_refused(reader, file,
				"a file that opened with O_DIRECT refused such a read (EINVAL): "
				"read buffered");
		op_begin(reader, op, 0);
		return;
	}
	op_ready(reader, op, code);
}

static void op_step(struct stoup_reader *reader, struct reader_op *op, int32_t result)
{
	const struct stoup_reader_file *file = &reader->files[op->req.file_idx];
	reader->counters.in_flight--;
	if (result < 0) {
		op_failed(reader, op, result);
		return;
	}
	if (result == 0) {
		op->end_off = op->base_off + op->got;
		op_ready(reader, op, -ENODATA);
		return;
	}
	op->got += (uint32_t)result;
	op->retry_cnt = 0;
	reader->counters.device_bytes += (uint32_t)result;
	if (op->got >= op->want) {
		op_ready(reader, op, op->req.len);
		return;
	}
	/* A direct read that ends off the alignment has met the end of the file, or nearly: the
	 * rest cannot be asked for with O_DIRECT, and a buffered read tells end from middle. */
	reader->counters.short_reads++;
	op_begin(reader, op, op->raw.direct && op->got % file->offset_align == 0);
}

/* ---- submit ---------------------------------------------------------------------------------- */

static int request_valid(const struct stoup_reader *reader, const struct stoup_read *req)
{
	const struct stoup_staging *staging = reader->opt.staging;
	if (req->file_idx >= reader->opt.file_cap || !reader->files[req->file_idx].used)
		return -EINVAL;
	if (req->len == 0 || req->file_off > OFFSET_CAP - req->len)
		return -EINVAL;
	if (req->slot_idx < 0)
		return !req->dst || req->dst_cap < req->len ? -EINVAL : 0;
	if (!staging || (uint32_t)req->slot_idx >= stoup_staging_slot_cnt(staging))
		return -EINVAL;
	if (req->len > stoup_staging_slot_len(staging) - 2 * STOUP_READ_ALIGN_CAP)
		return -EMSGSIZE;
	return 0;
}

/* Lay a request out for a direct read: widened to the alignment in a slot, as it is in a dst that
 * is aligned and has room. 1, or 0 if it must be a buffered one. */
static int widen(const struct stoup_reader_file *file, struct reader_op *op)
{
	uint64_t align = file->offset_align;
	if (!file->direct)
		return 0;
	uint64_t base_off = op->req.file_off - op->req.file_off % align;
	uint64_t head = op->req.file_off - base_off;
	uint64_t wide = (head + op->req.len + align - 1) / align * align;
	if (wide > INT32_MAX)
		return 0;
	if (op->req.slot_idx < 0 && (head != 0 || wide > op->req.dst_cap ||
					    (uintptr_t)op->base % file->memory_align != 0))
		return 0;
	op->base_off = base_off;
	op->want = (uint32_t)(head + op->req.len);
	op->wide = (uint32_t)wide;
	return 1;
}

/* Only where the alternative is a direct read: a buffered one takes the page cache by itself, in
 * the kernel's or the pool's threads. */
static int take_cached(struct stoup_reader *reader, struct reader_op *op)
{
	struct stoup_reader_file *file = &reader->files[op->req.file_idx];
	if (reader->opt.cached == STOUP_READER_SWITCH_OFF || !file->direct ||
		op->req.len > reader->opt.cached_len_cap)
		return 0;
	if (stoup_reader_file_cached(file, op->req.file_off, op->req.len, op->base) < 0) {
		reader->counters.cached_misses++;
		return 0;
	}
	op->source = STOUP_READ_CACHED;
	op->got = op->want;
	op_ready(reader, op, op->req.len);
	return 1;
}

int stoup_reader_submit(struct stoup_reader *reader, const struct stoup_read *req)
{
	int rc = request_valid(reader, req);
	if (rc < 0)
		return rc;
	if (reader->free_head == OP_NONE) {
		reader->counters.refused++;
		return -EAGAIN;
	}
	struct reader_op *op = &reader->ops[reader->free_head];
	struct stoup_reader_file *file = &reader->files[req->file_idx];
	reader->free_head = op->next;
	memset(op, 0, sizeof(*op));
	op->state = OP_RUNNING;
	op->req = *req;
	op->base = req->slot_idx >= 0 ? stoup_staging_bytes(reader->opt.staging, req->slot_idx)
	                              : req->dst;
	op->base_off = req->file_off;
	op->want = req->len;
	file->busy_cnt++;
	if (!take_cached(reader, op))
		op_begin(reader, op, widen(file, op));
	return 0;
}

int stoup_reader_flush(struct stoup_reader *reader)
{
	if (reader->batch_cnt == 0)
		return 0;
	int rc = reader->backend->flush(reader->state);
	if (rc < 0)
		return rc;
	reader->batch_cnt = 0;
	reader->counters.submits += (uint32_t)rc;
	return 0;
}

/* ---- reap ------------------------------------------------------------------------------------ */

static void done_fill(
	struct stoup_reader *reader, const struct reader_op *op, struct stoup_read_done *done)
{
	struct stoup_reader_counters *counters = &reader->counters;
	done->cookie = op->req.cookie;
	done->result = op->result;
	done->end_off = op->end_off;
	done->bytes = op->result >= 0 ? op->base + (op->req.file_off - op->base_off) : NULL;
	done->slot_idx = op->req.slot_idx;
	done->file_idx = op->req.file_idx;
	done->source = op->source;
	if (op->result < 0) {
		counters->errors++;
		return;
	}
	counters->reads++;
	counters->bytes += op->req.len;
	switch (op->source) {
	case STOUP_READ_CACHED:
		counters->cached_reads++;
		break;
	case STOUP_READ_DIRECT:
		counters->direct_reads++;
		break;
	case STOUP_READ_BUFFERED:
		counters->buffered_reads++;
		break;
	}
}

size_t stoup_reader_reap(struct stoup_reader *reader, struct stoup_read_done *out, size_t cap)
{
	size_t cnt = 0;
	(void)stoup_reader_flush(reader); /* what is left over is tried again by the next call */
	size_t raw_cnt = reader->backend->reap(reader->state, reader->results, reader->depth);
	for (size_t i = 0; i < raw_cnt; i++)
		op_step(reader, &reader->ops[reader->results[i].op_idx], reader->results[i].result);
	(void)stoup_reader_flush(reader); /* what op_step continues */
	while (cnt < cap && reader->ready_head != OP_NONE) {
		uint32_t op_idx = reader->ready_head;
		struct reader_op *op = &reader->ops[op_idx];
		done_fill(reader, op, &out[cnt++]);
		reader->ready_head = op->next;
		reader->ready_cnt--;
		reader->files[op->req.file_idx].busy_cnt--;
		op->state = OP_FREE;
		op->next = reader->free_head;
		reader->free_head = op_idx;
	}
	return cnt;
}

size_t stoup_reader_ready(const struct stoup_reader *reader)
{
	return reader->ready_cnt + (reader->batch_cnt > 0 ? 1 : 0);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int file_slot_find(const struct stoup_reader *reader)
{
	for (uint32_t i = 0; i < reader->opt.file_cap; i++)
		if (!reader->files[i].used)
			return (int)i;
	return -ENFILE;
}

int stoup_reader_file_add(
	struct stoup_reader *reader, int fd_buffered, const char *path, struct stoup_error *err)
{
	char reason[STOUP_READER_REASON_CAP] = "";
	int file_idx = file_slot_find(reader);
	if (file_idx < 0)
		return stoup_error_set(err, file_idx, "reader: %u files are open, the limit",
			reader->opt.file_cap);
	struct stoup_reader_file *file = &reader->files[file_idx];
	stoup_reader_file_init(file, fd_buffered);
	if (reader->opt.direct != STOUP_READER_SWITCH_OFF) {
		int rc = stoup_reader_file_direct(file, path, reason);
		if (rc < 0 && reader->opt.direct == STOUP_READER_SWITCH_ON) {
			stoup_reader_file_fini(file);
			return stoup_error_set(err, rc, "%s", reason);
		}
		if (rc < 0)
			direct_refused(reader, file, reason);
	}
	/* What the ring holds needs no descriptor of this process: one less per volume. */
	int held = reader->backend->file_set(
		reader->state, (uint32_t)file_idx, file->fd, file->fd_direct);
	if (held == 1 && file->fd_direct >= 0) {
		int fd = file->fd_direct;
		file->fd_direct = -1;
		close(fd);
	}
	return file_idx;
}

int stoup_reader_file_remove(struct stoup_reader *reader, uint32_t file_idx)
{
	if (file_idx >= reader->opt.file_cap || !reader->files[file_idx].used)
		return -ENOENT;
	if (reader->files[file_idx].busy_cnt > 0)
		return -EBUSY;
	(void)reader->backend->file_set(reader->state, file_idx, -1, -1);
	stoup_reader_file_fini(&reader->files[file_idx]);
	return 0;
}

int64_t stoup_reader_try_cached(
	struct stoup_reader *reader, uint32_t file_idx, uint64_t file_off, size_t len, void *dst)
{
	if (file_idx >= reader->opt.file_cap || !reader->files[file_idx].used || len == 0 ||
		len > OFFSET_CAP || file_off > OFFSET_CAP - len)
		return -EINVAL;
	return stoup_reader_file_cached(&reader->files[file_idx], file_off, len, dst);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int option_range(
	const char *name, uint32_t *value, uint32_t fallback, uint32_t cap, struct stoup_error *err)
{
	if (*value == 0)
		*value = fallback;
	if (*value > cap)
		return stoup_error_set(
			err, -EINVAL, "reader: %s is %u, must be 1 to %u", name, *value, cap);
	return 0;
}

static int options_complete(struct stoup_reader_options *opt, struct stoup_error *err)
{
	int rc = option_range(
		"depth", &opt->depth, STOUP_READER_DEPTH_DEFAULT, STOUP_READER_DEPTH_CAP, err);
	if (rc == 0)
		rc = option_range("threads", &opt->threads, STOUP_READER_THREADS_DEFAULT,
			STOUP_READER_THREADS_CAP, err);
	if (rc == 0)
		rc = option_range("file_cap", &opt->file_cap, STOUP_READER_FILE_CAP_DEFAULT,
			STOUP_READER_FILE_CAP, err);
	if (rc == 0)
		rc = option_range("cached_len_cap", &opt->cached_len_cap,
			STOUP_READER_CACHED_LEN_DEFAULT, STOUP_READER_CACHED_LEN_CAP, err);
	return rc;
}

static int tables_make(struct stoup_reader *reader)
{
	reader->ops = calloc(reader->depth, sizeof(*reader->ops));
	reader->results = calloc(reader->depth, sizeof(*reader->results));
	reader->files = calloc(reader->opt.file_cap, sizeof(*reader->files));
	if (!reader->ops || !reader->results || !reader->files)
		return -ENOMEM;
	for (uint32_t i = 0; i < reader->depth; i++)
		reader->ops[i].next = i + 1 < reader->depth ? i + 1 : OP_NONE;
	reader->free_head = 0;
	reader->ready_head = OP_NONE;
	reader->ready_tail = OP_NONE;
	return 0;
}

int stoup_reader_create_on(const struct stoup_reader_options *opt,
	const struct stoup_reader_backend *backend, struct stoup_reader **ret,
	struct stoup_error *err)
{
	struct stoup_reader *reader = calloc(1, sizeof(*reader));
	if (!reader)
		return stoup_error_set(err, -ENOMEM, "reader: no memory");
	reader->opt = *opt;
	int rc = options_complete(&reader->opt, err);
	if (rc < 0)
		goto out_destroy;
	reader->depth = reader->opt.depth;
	rc = backend->create(&reader->opt, &reader->depth, &reader->state, reader->reason);
	if (rc < 0) {
		stoup_error_set(err, rc, "%s", reader->reason);
		goto out_destroy;
	}
	reader->backend = backend;
	rc = tables_make(reader);
	if (rc < 0) {
		stoup_error_set(err, rc, "reader: no memory for %u requests and %u files",
			reader->depth, reader->opt.file_cap);
		goto out_destroy;
	}
	*ret = reader;
	return 0;

out_destroy:
	stoup_reader_destroy(reader);
	return rc;
}

int stoup_reader_create(
	const struct stoup_reader_options *opt, struct stoup_reader **ret, struct stoup_error *err)
{
	struct stoup_error refusal = {0};
	if (opt->kind != STOUP_READER_PREAD) {
		int rc = stoup_reader_create_on(opt, &stoup_reader_backend_uring, ret, &refusal);
		if (rc == 0)
			return 0;
		if (opt->kind == STOUP_READER_URING)
			return stoup_error_set(err, rc, "%s", refusal.text);
	}
	int rc = stoup_reader_create_on(opt, &stoup_reader_backend_pread, ret, err);
	if (rc < 0)
		return rc;
	snprintf((*ret)->reason, sizeof((*ret)->reason), "%s",
		opt->kind == STOUP_READER_PREAD ? "asked for by option" : refusal.text);
	return 0;
}

void stoup_reader_destroy(struct stoup_reader *reader)
{
	if (!reader)
		return;
	/* First the backend: while it lives, kernel and threads may write to callers' memory. */
	if (reader->backend)
		reader->backend->destroy(reader->state);
	for (uint32_t i = 0; reader->files && i < reader->opt.file_cap; i++)
		if (reader->files[i].used)
			stoup_reader_file_fini(&reader->files[i]);
	free(reader->files);
	free(reader->results);
	free(reader->ops);
	free(reader);
}

const char *stoup_reader_kind(const struct stoup_reader *reader)
{
	return reader->backend->name;
}

const char *stoup_reader_reason(const struct stoup_reader *reader)
{
	return reader->reason;
}

const char *stoup_reader_direct_reason(const struct stoup_reader *reader)
{
	return reader->direct_reason;
}

uint32_t stoup_reader_depth(const struct stoup_reader *reader)
{
	return reader->depth;
}

const struct stoup_reader_counters *stoup_reader_counters(const struct stoup_reader *reader)
{
	return &reader->counters;
}

int stoup_reader_poll_fd(const struct stoup_reader *reader)
{
	return reader->backend->poll_fd(reader->state);
}
