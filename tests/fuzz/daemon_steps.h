/* SPDX-License-Identifier: Apache-2.0 */
/* daemon_steps.h - a real daemon in this process, moved on turn by turn by a fuzz target.
 *
 *      target --steps_turn--> the conductor's own work, tick, events     (one thread, no sleeping)
 *             --steps_skip--> its clock runs ahead: time-outs come at once
 *             --socket-->     attach as any process does: hello, descriptors, page
 *
 *      store   2 volumes of STEPS_BLOCK_CNT blocks each, lengths 1 to 11 pages, in a pool of 40 pages:
 *              a quarter of it is the longest block served, so that some blocks never are; a third volume
 *              lies beside the store: steps_swap brings it in or takes it out, and has the store rescanned
 *
 * The loop itself sleeps, so its parts are taken from the source file rather than from the library.
 * The daemon lives as long as the process; what an input leaves behind is the target's to undo, and
 * steps_check says whether it did.
 *
 * Invariant: record i of block b of volume v is steps_record(v, b, i) wherever it is read.
 */
#ifndef STOUP_TESTS_DAEMON_STEPS_H
#define STOUP_TESTS_DAEMON_STEPS_H

#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "codec/volume_private.h"
#include "producer/conductor.c"
#include "producer/daemon.c"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/volume_fixture.h"

#define STEPS_VOLUME_CNT 3u
#define STEPS_BLOCK_CNT  14u
#define STEPS_POOL_LEN   (40u * 4096u)
#define STEPS_CELL_CAP   64u
#define STEPS_TURN_CAP   2000 /* turns until everything must have come to rest */
#define STEPS_KEY        INT64_C(1700000000000000000)

struct steps_record {
	int64_t key;
	uint64_t value;
};

static struct stoup_daemon *steps_daemon;
static uint64_t steps_skew_ns; /* the conductor's clock runs ahead by this */
static char steps_dir[64];
static char steps_in[256], steps_out[256]; /* the third volume, inside and outside of the store */
static int steps_is_in;

/* ---- the store -------------------------------------------------------------------------------- */

static inline uint32_t steps_block_len(uint32_t block)
{
	return (1 + block * 7 % 11) * 4096 - block * 16;
}

static inline struct steps_record steps_record(uint32_t volume, uint32_t block, uint32_t i)
{
	uint64_t x = ((uint64_t)volume << 40 | (uint64_t)block << 20 | i) + 1;

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (struct steps_record){STEPS_KEY + ((int64_t)block << 20) + i, x ^ x >> 31};
}

/* The bytes of a block; filled once. */
static inline const uint8_t *steps_block(uint32_t volume, uint32_t block)
{
	static uint8_t *blocks[STEPS_VOLUME_CNT][STEPS_BLOCK_CNT];
	uint32_t cnt = steps_block_len(block) / (uint32_t)sizeof(struct steps_record);
	struct steps_record *records;

	if (!blocks[volume][block]) {
		records = malloc(cnt * sizeof(*records));
		MUST(records != NULL);
		for (uint32_t i = 0; i < cnt; i++)
			records[i] = steps_record(volume, block, i);
		blocks[volume][block] = (uint8_t *)records;
	}
	return blocks[volume][block];
}

static inline void steps_write(const char *path, const struct image *image)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	MUST(fd >= 0 && write(fd, image->bytes, image->len) == (ssize_t)image->len);
	close(fd);
}

static inline void steps_volume(uint32_t volume)
{
	static const struct stoup_vol_field fields[] = {
		{.name = "ts", .off = 0, .cnt = 1, .type = 8, .flags = 0x06},
		{.name = "value", .off = 8, .cnt = 1, .type = 7},
	};
	struct stoup_vol_schema schema = {.name = "pair", .stride = 16, .align = 8, .field_cnt = 2};
	struct stoup_vol_header header = {.id = {9, (uint8_t)volume},
		.created_ns = STEPS_KEY,
		.ingest_seq = volume + 1,
		.batch_cnt = 1};
	char name[STOUP_STORE_NAME_CAP], path[256], series[] = "A/A";
	struct stoup_vol_writer *writer;
	struct image image = {0};

	MUST(stoup_vol_writer_create(&header, &writer) == 0);
	schema.hash = stoup_vol_schema_hash(&schema, fields);
	MUST(stoup_vol_add_schema(writer, &schema, fields) == 0);
	series[0] = (char)('A' + volume);
	MUST(stoup_vol_add_series(writer, series, 0, 0) == 0);
	for (uint32_t b = 0; b < STEPS_BLOCK_CNT; b++) {
		uint32_t cnt = steps_block_len(b) / 16;

		MUST(image_add_block(&image, writer, 0, steps_block(volume, b), cnt * 16,
			     b % 3 ? "lz4" : "none", "") == b);
		MUST(stoup_vol_add_segment(writer, 0, b, 0, cnt, steps_record(volume, b, 0).key,
			     steps_record(volume, b, cnt - 1).key) == 0);
	}
	MUST(image_finish(&image, writer, NULL) == 0);
	stoup_store_name(&header, name);
	snprintf(path, sizeof(path), "%s/store/%s", steps_dir, name);
	if (volume == 2) {
		strcpy(steps_in, path);
		snprintf(steps_out, sizeof(steps_out), "%s/%s", steps_dir, name);
		strcpy(path, steps_out);
	}
	steps_write(path, &image);
	stoup_vol_writer_destroy(writer);
	image_free(&image);
}

/* ---- the daemon ------------------------------------------------------------------------------- */

static inline void steps_end(void)
{
	char command[128];

	stop(steps_daemon);
	free(steps_daemon);
	snprintf(command, sizeof(command), "rm -rf %s", steps_dir);
	if (system(command) != 0)
		fprintf(stderr, "%s is left behind\n", steps_dir);
}

static inline void steps_start(void)
{
	static char pool[32], store[80];
	struct stoup_error err = {0};
	struct stoup_daemon *d;
	char path[128];

	if (steps_daemon)
		return;
	snprintf(steps_dir, sizeof(steps_dir), "/tmp/stoup-fuzz-%d-XXXXXX", (int)getpid());
	MUST(mkdtemp(steps_dir) != NULL);
	setenv("XDG_RUNTIME_DIR", steps_dir, 1);
	snprintf(store, sizeof(store), "%s/store", steps_dir);
	snprintf(path, sizeof(path), "%s/stoup", steps_dir);
	MUST(mkdir(store, 0700) == 0 && mkdir(path, 0700) == 0);
	for (uint32_t v = 0; v < STEPS_VOLUME_CNT; v++)
		steps_volume(v);
	snprintf(pool, sizeof(pool), "fuzz-%d", (int)getpid());
	d = calloc(1, sizeof(*d));
	MUST(d != NULL);
	d->opt = (struct stoup_daemon_options){.store_path = {store},
		.store_cnt = 1,
		.pool = pool,
		.pool_len = STEPS_POOL_LEN,
		.backing = STOUP_BACKING_MEMFD,
		.consumer_cap = 8,
		.cell_cap = STEPS_CELL_CAP,
		.decode_threads = 1,
		.request_timeout_ns = UINT64_C(30000000000),
		.request_cap = STOUP_SLOT_CNT,
		.pin_percent = STOUP_PIN_PERCENT,
		.ready_fd = -1,
		.quiet = 1};
	d->log = &d->log_own;
	stoup_log_init(d->log, pool, STOUP_LOG_WARNING);
	d->service.fd = -1;
	d->uid = geteuid();
	d->lock_fd = d->home_fd = d->spare_fd = d->listen_fd = d->epoll_fd = d->signal_fd =
		d->watch_fd = -1;
	d->control_region.fd = d->control_region.ro_fd = -1;
	d->data_region.fd = d->data_region.ro_fd = -1;
	for (uint32_t i = 0; i < STOUP_PENDING_CAP; i++)
		d->pending[i].fd = -1;
	if (start(d, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	steps_daemon = d;
	atexit(steps_end);
}

/* One turn of the loop, which does not sleep longer than wait_ms. Returns 1 when something moved. */
static inline int steps_turn(int wait_ms)
{
	struct stoup_daemon *d = steps_daemon;
	struct epoll_event event[EVENT_CAP];
	int moved, cnt;

	d->now_ns = stoup_now_ns() + steps_skew_ns;
	moved = work(d);
	if (d->starving)
		stoup_requests_expire(d);
	if (d->now_ns >= d->tick_ns)
		tick(d);
	if (!moved && last_look(d))
		moved = 1;
	cnt = epoll_wait(d->epoll_fd, event, EVENT_CAP, moved ? 0 : wait_ms);
	stoup_flag_lower(&d->control->asleep);
	stoup_flag_lower(&d->control->starving);
	events(d, event, cnt);
	return moved || cnt > 0;
}

/* Let time pass for the daemon. */
static inline void steps_skip(uint64_t ns)
{
	steps_skew_ns += ns;
}

/* Turns until nothing moves and nothing is read or decoded. */
static inline void steps_settle(void)
{
	int turns = 0;

	while (steps_turn(0) || steps_daemon->in_flight > 0) {
		MUST(++turns < STEPS_TURN_CAP);
		if (steps_daemon->in_flight > 0)
			steps_turn(1);
	}
}

/* Bring the third volume into the store, or take it out, and have the daemon see it. */
static inline void steps_swap(void)
{
	uint64_t before = steps_daemon->snapshot_seq;

	MUST(rename(steps_is_in ? steps_in : steps_out, steps_is_in ? steps_out : steps_in) == 0);
	steps_is_in = !steps_is_in;
	stoup_rescan_ask(steps_daemon);
	for (int i = 0; steps_daemon->snapshot_seq == before; i++) {
		MUST(i < STEPS_TURN_CAP);
		steps_turn(0);
		steps_skip(UINT64_C(10000000));
	}
}

/* The place of a volume in the newest snapshot; STOUP_IDX_NONE. */
static inline uint32_t steps_place(uint32_t volume)
{
	const struct stoup_daemon *d = steps_daemon;

	for (uint32_t i = 0; i < d->volume_cnt; i++)
		if (d->volumes[i].file && d->volumes[i].retired_seq == 0 &&
			d->volumes[i].file->index->header.id[1] == volume)
			return i;
	return STOUP_IDX_NONE;
}

/* Pinned is what a pin counts and the pool has, and shown is what is pinned. */
static inline void steps_check_pins(void)
{
	const struct stoup_daemon *d = steps_daemon;
	uint32_t pinned = 0;

	for (uint32_t i = 0; i < d->buffer_cap; i++) {
		const struct stoup_buffer *b = &d->buffers[i];

		MUST(atomic_load(&d->table[i].flags) == b->pinned);
		if (!b->pinned)
			continue;
		MUST(b->state == STOUP_BUFFER_RESIDENT);
		MUST(d->volumes[b->volume_idx].pin_cnt[b->block_idx] > 0);
		pinned++;
	}
	MUST(pinned == d->pinned_blocks && d->pin_bytes <= d->control->pin_bytes_cap);
}

/* Does the daemon believe in itself: its ring, and its lists of waiters and loads. */
static inline void steps_check(void)
{
	const struct stoup_daemon *d = steps_daemon;
	uint32_t waiters = 0, cap = d->opt.consumer_cap * STOUP_SLOT_CNT, owed = 0;
	const char *rule = "";

	if (stoup_ring_verify(d->ring, &rule) < 0) {
		fprintf(stderr, "the ring: %s\n", rule);
		abort();
	}
	for (uint32_t i = d->waiter_free; i != STOUP_IDX_NONE; i = d->waiters[i].next)
		MUST(i < cap && ++waiters <= cap);
	for (uint32_t i = 0; i < d->opt.consumer_cap; i++)
		if (d->consumers[i].state != STOUP_CONSUMER_NONE)
			owed += d->consumers[i].waiting_cnt;
	MUST(waiters + owed == cap);
	steps_check_pins();
}

/* ---- a peer ----------------------------------------------------------------------------------- */

/* An attachment with the bare protocol; -1 and NULL where there is none. */
struct steps_peer {
	int sock_fd, bell_fd;
	struct stoup_page *page;
	size_t page_len;
};

static inline int steps_connect(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(addr.sun_path, steps_daemon->sock_path, strlen(steps_daemon->sock_path) + 1);
	MUST(fd >= 0);
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline struct stoup_wire_hello steps_hello(void)
{
	return (struct stoup_wire_hello){.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_HELLO,
		.abi_major = STOUP_ABI_MAJOR,
		.abi_minor = STOUP_ABI_MINOR,
		.fingerprint = stoup_abi_fingerprint()};
}

/* Map what a good reply brought; closes the rest. */
static inline void steps_join(struct steps_peer *peer, const int *fds, uint32_t fd_cnt)
{
	struct stoup_region region;
	struct stoup_error err;

	MUST(fd_cnt >= STOUP_WIRE_FD_FIXED);
	MUST(stoup_region_map(fds[STOUP_WIRE_FD_PAGE], stoup_page_footprint(STEPS_CELL_CAP), 1, 0,
		     &region, &err) == 0);
	peer->page = region.base;
	peer->page_len = region.len;
	peer->bell_fd = fds[STOUP_WIRE_FD_DOORBELL];
	for (uint32_t i = 0; i < fd_cnt; i++)
		if (i != STOUP_WIRE_FD_DOORBELL)
			close(fds[i]);
}

/* Attach; 0, or -1 where the daemon refused. */
static inline int steps_attach(struct steps_peer *peer)
{
	struct stoup_wire_hello hello = steps_hello();
	struct stoup_wire_reply reply;
	int fds[STOUP_WIRE_FD_CAP];
	uint32_t fd_cnt;
	int64_t len;

	*peer = (struct steps_peer){.sock_fd = steps_connect(), .bell_fd = -1};
	MUST(peer->sock_fd >= 0);
	MUST(stoup_wire_send(peer->sock_fd, &hello, sizeof(hello), NULL, 0) == 0);
	for (int i = 0; i < STEPS_TURN_CAP; i++) {
		steps_turn(0);
		len = stoup_wire_recv(
			peer->sock_fd, &reply, sizeof(reply), fds, STOUP_WIRE_FD_CAP, &fd_cnt);
		if (len != -EAGAIN)
			break;
	}
	MUST(len == sizeof(reply));
	if (reply.error == 0) {
		steps_join(peer, fds, fd_cnt);
		return 0;
	}
	close(peer->sock_fd);
	peer->sock_fd = -1;
	return -1;
}

/* Ring as a process does that has something for the conductor. */
static inline void steps_ring(const struct steps_peer *peer)
{
	uint64_t one = 1;

	if (peer->bell_fd >= 0 && write(peer->bell_fd, &one, sizeof(one)) < 0)
		MUST(errno == EAGAIN);
}

/* End an attachment, orderly or by hanging up. The daemon takes this process for alive and its page for
 * mapped (it is, by the daemon itself), so that a hang-up alone leaves it deaf: steps_bury. */
static inline void steps_leave(struct steps_peer *peer, int orderly)
{
	if (peer->page && orderly)
		atomic_store(&peer->page->state, STOUP_PAGE_DETACHED);
	if (peer->page)
		munmap(peer->page, peer->page_len);
	if (peer->bell_fd >= 0)
		close(peer->bell_fd);
	if (peer->sock_fd >= 0)
		close(peer->sock_fd);
	*peer = (struct steps_peer){.sock_fd = -1, .bell_fd = -1};
}

/* All consumers but number `spare` come to their end, as if their processes were gone. */
static inline void steps_bury(uint32_t spare)
{
	struct stoup_daemon *d = steps_daemon;

	for (uint32_t i = 0; i < d->opt.consumer_cap; i++)
		if (i != spare && d->consumers[i].state != STOUP_CONSUMER_NONE)
			atomic_store(&((struct stoup_page *)d->consumers[i].page.base)->state,
				STOUP_PAGE_DETACHED);
	for (int i = 0; i < 3; i++) {
		steps_skip(UINT64_C(5000000000));
		steps_settle();
	}
	MUST(stoup_attach_cnt(d) == (spare == STOUP_IDX_NONE ? 0u : 1u));
}

#endif
