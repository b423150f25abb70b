/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's backend on io_uring.
 *
 * A ring is believed only after it did a read: it is made with the flags that will be used (best
 * ones first), and one read of a timer has to travel the way that all others will: submitted,
 * finished by the kernel while we sleep in poll, announced there, reaped. Versions are never
 * compared: profiles and back-ports make them lie.
 *
 *      SINGLE_ISSUER | DEFER_TASKRUN    completions are made when we ask, in one go   eventfd
 *      COOP_TASKRUN                     ... at our next system call, no interrupt     ring
 *      (none)                                                                         ring
 *
 * The last column is the poll descriptor. With DEFER_TASKRUN the ring's own descriptor *is*
 * readable when work waits, but nobody who sleeps on it is woken (Linux 6.18; a poll with a
 * time-out finds it at the time-out, which looks like a success), so an eventfd is registered.
 *
 * Registered files: slot 2i is file i as the caller opened it, slot 2i + 1 its O_DIRECT twin. The
 * table is as large as RLIMIT_NOFILE lets it be; files beyond it go by descriptor.
 */
#include "producer/reader_backend.h"

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define ENTRIES_MIN       4u       /* a smaller ring is slower than the thread pool */
#define SELF_TEST_NS      1000000u /* the timer of the self-test: long enough to fall asleep */
#define SELF_TEST_WAIT_MS 500      /* a wake-up that is this late was none: poll just ended */
#define SELF_TEST_LATE_MS 400
#define EMPTY_REAPS       16u /* see uring_reap */
#define FIXED_FILES_CAP   32768u
#define FIXED_REGION_CAP  ((size_t)1 << 30) /* the kernel takes no larger vector */
#define FLUSH_RETRY_US    1000
#define COOKIE_SELF_TEST  UINT64_MAX

struct uring_state {
	struct io_uring ring;
	int event_fd; /* announces completions; -1: the ring's descriptor does */
	unsigned flags;
	unsigned entries;
	uint32_t in_flight;   /* begun and not reaped, in the batch or in the kernel */
	uint32_t fixed_cnt;   /* files with two slots in the registered table */
	uint8_t *fixed_files; /* one byte per file: its slots are filled */
	int fixed_buffer;
	uint32_t empty_cnt; /* reaps in a row that found nothing */
};

static const unsigned flag_ladder[] = {
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
	IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
	0,
};

static const char *flags_name(unsigned flags)
{
	if (flags & IORING_SETUP_DEFER_TASKRUN)
		return "SINGLE_ISSUER|DEFER_TASKRUN";
	return flags & IORING_SETUP_COOP_TASKRUN ? "COOP_TASKRUN" : "no flags";
}

/* ---- why not --------------------------------------------------------------------------------- */

static int sysctl_disabled(void)
{
	char text[16] = "";
	FILE *file = fopen("/proc/sys/kernel/io_uring_disabled", "re");
	if (!file)
		return 0;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	return atoi(text);
}

static void setup_reason(int rc, char reason[STOUP_READER_REASON_CAP])
{
	struct rlimit limit = {0};
	char why[128] = "";
	int disabled = sysctl_disabled();
	if (rc == -EPERM && disabled > 0)
		snprintf(why, sizeof(why), " (sysctl kernel.io_uring_disabled is %d)", disabled);
	else if (rc == -EPERM)
		snprintf(why, sizeof(why),
			" (seccomp, as in container profiles, or kernel.io_uring_disabled)");
	else if (rc == -ENOSYS)
		snprintf(why, sizeof(why), " (a kernel or a seccomp profile without io_uring)");
	else if (rc == -ENOMEM && getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
		snprintf(why, sizeof(why), " (RLIMIT_MEMLOCK is %llu bytes: raise it, ulimit -l)",
			(unsigned long long)limit.rlim_cur);
	snprintf(reason, STOUP_READER_REASON_CAP, "io_uring_setup: %s%s", strerror(-rc), why);
}

/* ---- making the ring ------------------------------------------------------------------------- */

static void event_clear(const struct uring_state *state)
{
	uint64_t value;
	if (state->event_fd >= 0 && read(state->event_fd, &value, sizeof(value)) < 0)
		return; /* it was not set */
}

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Sleep until the descriptor is readable; 0, or -ETIME if nobody woke us. */
static int announced(int poll_fd)
{
	struct pollfd pfd = {.fd = poll_fd, .events = POLLIN};
	int64_t begin_ms = now_ms();
	int rc;
	do {
		rc = poll(&pfd, 1, SELF_TEST_WAIT_MS);
	} while (rc < 0 && errno == EINTR && now_ms() - begin_ms < SELF_TEST_LATE_MS);
	return rc == 1 && now_ms() - begin_ms < SELF_TEST_LATE_MS ? 0 : -ETIME;
}

/* One read that ends while we sleep. */
static int self_test(struct uring_state *state)
{
	/* Static: should the test fail half-way, a read that comes late finds memory that lives. */
	static _Thread_local uint64_t value;
	const struct itimerspec soon = {.it_value.tv_nsec = SELF_TEST_NS};
	struct io_uring *ring = &state->ring;
	struct io_uring_cqe *cqe = NULL;
	int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (timer_fd < 0)
		return -errno;
	value = 0;
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	io_uring_prep_read(sqe, timer_fd, &value, sizeof(value), 0);
	io_uring_sqe_set_data64(sqe, COOKIE_SELF_TEST);
	int rc = timerfd_settime(timer_fd, 0, &soon, NULL) < 0 ? -errno : io_uring_submit(ring);
	if (rc != 1) {
		rc = rc < 0 ? rc : -EIO;
		goto out_close;
	}
	rc = announced(state->event_fd >= 0 ? state->event_fd : ring->ring_fd);
	if (rc < 0)
		goto out_close;
	unsigned ready = io_uring_peek_batch_cqe(ring, &cqe, 1);
	if (ready != 1 || cqe->user_data != COOKIE_SELF_TEST || cqe->res != (int)sizeof(value) ||
		value != 1)
		rc = -EIO;
	if (ready == 1)
		io_uring_cqe_seen(ring, cqe);
	event_clear(state);

out_close:
	close(timer_fd);
	return rc;
}

static void ring_drop(struct uring_state *state)
{
	io_uring_queue_exit(&state->ring);
	if (state->event_fd >= 0)
		close(state->event_fd);
	state->event_fd = -1;
}

static int ring_announce(struct uring_state *state)
{
	if (!(state->flags & IORING_SETUP_DEFER_TASKRUN))
		return 0;
	state->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (state->event_fd < 0)
		return -errno;
	return io_uring_register_eventfd(&state->ring, state->event_fd);
}

/* With these flags, as many entries as the memory limit has room for. */
static int ring_setup(struct uring_state *state, unsigned flags, unsigned entries)
{
	struct io_uring_params params;
	int rc;
	for (;; entries /= 2) {
		memset(&params, 0, sizeof(params));
		params.flags = flags;
		rc = io_uring_queue_init_params(entries, &state->ring, &params);
		if (rc != -ENOMEM || entries / 2 < ENTRIES_MIN)
			break;
	}
	if (rc < 0)
		return rc;
	state->flags = flags;
	state->entries = params.sq_entries;
	return 0;
}

static int ring_make(
	struct uring_state *state, unsigned entries, char reason[STOUP_READER_REASON_CAP])
{
	int rc = -ENOSYS;
	for (size_t i = 0; i < sizeof(flag_ladder) / sizeof(flag_ladder[0]); i++) {
		rc = ring_setup(state, flag_ladder[i], entries);
		if (rc < 0)
			setup_reason(rc, reason);
		/* Refused as a whole: other flags will not help. */
		if (rc == -EPERM || rc == -ENOSYS || rc == -ENOMEM)
			return rc;
		if (rc < 0)
			continue;
		rc = ring_announce(state);
		if (rc == 0)
			rc = self_test(state);
		if (rc == 0)
			return 0;
		snprintf(reason, STOUP_READER_REASON_CAP, "io_uring self-test read (%s): %s",
			flags_name(state->flags), strerror(-rc));
		ring_drop(state);
	}
	return rc;
}

/* ---- registration: each is a saving, none is needed ------------------------------------------ */

static void fixed_files_make(struct uring_state *state, uint32_t file_cap)
{
	struct rlimit limit;
	uint64_t slot_cnt = 2 * (uint64_t)file_cap;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	if (slot_cnt > limit.rlim_cur)
		slot_cnt = limit.rlim_cur;
	if (slot_cnt > FIXED_FILES_CAP)
		slot_cnt = FIXED_FILES_CAP;
	state->fixed_files = calloc(file_cap, 1);
	if (!state->fixed_files || slot_cnt < 2)
		return;
	if (io_uring_register_files_sparse(&state->ring, (unsigned)slot_cnt) == 0)
		state->fixed_cnt = (uint32_t)(slot_cnt / 2);
}

/* Returns 0 or why not. */
static int fixed_buffer_make(struct uring_state *state, struct stoup_staging *staging)
{
	struct iovec iov;
	iov.iov_base = stoup_staging_region(staging, &iov.iov_len);
	if (iov.iov_len > FIXED_REGION_CAP)
		return -EFBIG;
	int rc = io_uring_register_buffers(&state->ring, &iov, 1);
	if (rc == 0)
		state->fixed_buffer = 1;
	return rc;
}

static int uring_create(const struct stoup_reader_options *opt, uint32_t *depth, void **ret,
	char reason[STOUP_READER_REASON_CAP])
{
	int buffer_rc = 0;
	struct uring_state *state = calloc(1, sizeof(*state));
	if (!state) {
		snprintf(reason, STOUP_READER_REASON_CAP, "io_uring: no memory");
		return -ENOMEM;
	}
	state->event_fd = -1;
	int rc = ring_make(state, *depth < ENTRIES_MIN ? ENTRIES_MIN : *depth, reason);
	if (rc < 0)
		goto out_free;
	fixed_files_make(state, opt->file_cap);
	if (opt->staging && opt->fixed != STOUP_READER_SWITCH_OFF)
		buffer_rc = fixed_buffer_make(state, opt->staging);
	if (buffer_rc < 0 && opt->fixed == STOUP_READER_SWITCH_ON) {
		snprintf(reason, STOUP_READER_REASON_CAP,
			"io_uring: registration of the staging region: %s (RLIMIT_MEMLOCK)",
			strerror(-buffer_rc));
		rc = buffer_rc;
		goto out_exit;
	}
	if (*depth > state->entries)
		*depth = state->entries;
	snprintf(reason, STOUP_READER_REASON_CAP,
		"%s, %u entries, %u fixed files, fixed buffers %s%s", flags_name(state->flags),
		state->entries, state->fixed_cnt, state->fixed_buffer ? "on" : "off",
		buffer_rc < 0 ? " (refused: RLIMIT_MEMLOCK)" : "");
	*ret = state;
	return 0;

out_exit:
	ring_drop(state);
out_free:
	free(state->fixed_files);
	free(state);
	return rc;
}

/* ---- reads ----------------------------------------------------------------------------------- */

static int uring_file_set(void *arg, uint32_t file_idx, int fd_buffered, int fd_direct)
{
	struct uring_state *state = arg;
	int fds[2] = {fd_buffered, fd_direct};
	if (file_idx >= state->fixed_cnt)
		return 0;
	if (fd_buffered < 0 && !state->fixed_files[file_idx])
		return 0;
	int rc = io_uring_register_files_update(&state->ring, 2 * file_idx, fds, 2);
	state->fixed_files[file_idx] = rc == 2 && fd_buffered >= 0;
	return state->fixed_files[file_idx];
}

static void uring_begin(void *arg, uint32_t op_idx, const struct stoup_read_op *op)
{
	struct uring_state *state = arg;
	/* At most `depth` operations exist and the ring has as many entries: there is one. */
	struct io_uring_sqe *sqe = io_uring_get_sqe(&state->ring);
	if (!sqe)
		abort();
	int fixed = op->file_idx < state->fixed_cnt && state->fixed_files[op->file_idx];
	int fd = fixed ? (int)(2 * op->file_idx + op->direct) : op->fd;
	if (op->staged && state->fixed_buffer)
		io_uring_prep_read_fixed(sqe, fd, op->dst, op->len, op->file_off, 0);
	else
		io_uring_prep_read(sqe, fd, op->dst, op->len, op->file_off);
	if (fixed)
		sqe->flags |= IOSQE_FIXED_FILE;
	/* A buffered read comes here because the bytes are not in the page cache. Begun inline, it
	 * would allocate pages and start read-ahead on the conductor: 200-300 us for 512 KiB. */
	if (!op->direct)
		sqe->flags |= IOSQE_ASYNC;
	io_uring_sqe_set_data64(sqe, op_idx);
	state->in_flight++;
}

static int uring_flush(void *arg)
{
	struct uring_state *state = arg;
	int calls = 0;
	while (io_uring_sq_ready(&state->ring) > 0) {
		int rc = io_uring_submit(&state->ring);
		calls++;
		if (rc < 0 && rc != -EINTR)
			return rc == -EBUSY ? -EAGAIN : rc;
		if (rc == 0)
			return -EAGAIN;
	}
	return calls;
}

static size_t completions_take(struct uring_state *state, struct stoup_read_result *out, size_t cap)
{
	struct io_uring_cqe *cqes[64];
	size_t cnt = 0;
	while (cnt < cap) {
		unsigned room = cap - cnt < 64 ? (unsigned)(cap - cnt) : 64;
		/* Enters the kernel only when the ring says that deferred completions wait. */
		unsigned ready = io_uring_peek_batch_cqe(&state->ring, cqes, room);
		if (ready == 0)
			break;
		for (unsigned i = 0; i < ready; i++) {
			out[cnt].op_idx = (uint32_t)cqes[i]->user_data;
			out[cnt++].result = cqes[i]->res;
		}
		io_uring_cq_advance(&state->ring, ready);
	}
	state->in_flight -= (uint32_t)cnt;
	return cnt;
}

/* The eventfd is set when work is deferred and again when it becomes completions, inside our own
 * peek: so it is cleared after taking, and then looked again, for what came in between. A signal
 * may also come late with nothing behind it, and an eventfd left set would wake its sleeper for
 * ever: a few empty reaps in a row clear it too (not each: that would be a system call for every
 * turn of a conductor that is busy with other things). */
static size_t uring_reap(void *arg, struct stoup_read_result *out, size_t cap)
{
	struct uring_state *state = arg;
	size_t cnt = 0, more = completions_take(state, out, cap);
	if (more == 0 && ++state->empty_cnt < EMPTY_REAPS)
		return 0;
	state->empty_cnt = 0;
	do {
		cnt += more;
		event_clear(state);
		more = completions_take(state, out + cnt, cap - cnt);
	} while (more > 0);
	return cnt;
}

static int uring_poll_fd(const void *arg)
{
	const struct uring_state *state = arg;
	return state->event_fd >= 0 ? state->event_fd : state->ring.ring_fd;
}

/* Closing a ring does not wait for the disk: reads that are in flight are waited for first, or they
 * would be written into memory that has another owner by then. They are not cancelled: a read that
 * a device has cannot be taken back, and those that can are waited for all the same. */
static void uring_destroy(void *arg)
{
	struct uring_state *state = arg;
	struct io_uring_cqe *cqe;
	while (state->in_flight > 0) {
		int rc = uring_flush(state);
		if (rc >= 0)
			rc = io_uring_wait_cqe(&state->ring, &cqe);
		if (rc == -EAGAIN || rc == -ENOMEM)
			usleep(FLUSH_RETRY_US);
		if (rc == -EINTR || rc == -EAGAIN || rc == -ENOMEM)
			continue;
		if (rc < 0)
			abort(); /* called by a thread that did not make the ring */
		io_uring_cqe_seen(&state->ring, cqe);
		state->in_flight--;
	}
	ring_drop(state);
	free(state->fixed_files);
	free(state);
}

const struct stoup_reader_backend stoup_reader_backend_uring = {
	.name = "io_uring",
	.create = uring_create,
	.destroy = uring_destroy,
	.file_set = uring_file_set,
	.begin = uring_begin,
	.flush = uring_flush,
	.reap = uring_reap,
	.poll_fd = uring_poll_fd,
};
