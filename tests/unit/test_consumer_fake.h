/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_fake.h - a small conductor for tests of libstoup: makes a pool with the functions
 * of shm, answers hello, and grants, fails or ignores requests as a test says.
 *
 *      test: fake_init, fake_volume, fake_start("NAME") ... stoup_attach("NAME") ... fake_stop
 *
 * Records are struct pair {key, value}; value counts up over the series of a volume, beginning at
 * the volume's number times 1,000,000. Block b of a volume is made of the segments that name it.
 *
 * Concurrency: one thread is the conductor. A test changes what a block does only through the
 * atomic fields, or before fake_start. Included by one test program each, hence static.
 */
#ifndef STOUP_TEST_CONSUMER_FAKE_H
#define STOUP_TEST_CONSUMER_FAKE_H

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <linux/sockios.h>
#include <unistd.h>
#include "consumer/client.h"
#include "shm/futex.h"
#include "shm/lease.h"
#include "shm/wire.h"

#define FAKE_VOLUME_CAP  80
#define FAKE_BLOCK_CAP   16
#define FAKE_SEGMENT_CAP 64
#define FAKE_SERIES_CAP  16
#define FAKE_PEER_CAP    8
#define FAKE_LOG_CAP     256
#define FAKE_BUFFER_CAP  512

/* What a demand for a block does. */
enum fake_act {
	FAKE_GRANT,
	FAKE_NEVER,
	FAKE_FAIL,
	FAKE_EMPTY,
	FAKE_BAD_BUFFER,
	FAKE_HANG_UP
};

struct pair {
	int64_t key;
	uint64_t value;
};

struct fake_segment {
	uint32_t block;
	uint32_t cnt;
	int64_t keys[16];
};

struct fake_series {
	const char *name;
	const char *schema; /* "pair" or "other": two layouts */
	uint32_t flags, segment_cnt;
	struct fake_segment segments[FAKE_SEGMENT_CAP];
};

struct fake_block {
	uint8_t bytes[4096];
	uint32_t len;         /* so far, and what the catalog says when not overridden */
	uint32_t claimed_len; /* 0 = len */
	_Atomic int act;
	_Atomic int error;
	_Atomic uint64_t detail;
	_Atomic int load_cnt;
};

struct fake_volume {
	struct stoup_region region;
	struct stoup_catalog *catalog;
	_Atomic uint64_t *residency;
	struct fake_block blocks[FAKE_BLOCK_CAP];
	uint32_t block_cnt;
	uint64_t ingest_seq;
	uint32_t batch_idx;
};

struct fake_peer {
	int sock_fd, bell_fd;
	struct stoup_region page;
};

struct fake_request {
	uint32_t kind, volume_idx, block_idx, ahead_cnt, ahead_volume_idx, ahead_block_idx;
};

struct fake {
	char dir[64];
	struct stoup_region control_region, data_region;
	struct stoup_control *control;
	struct fake_volume volumes[FAKE_VOLUME_CAP];
	uint32_t volume_cnt;
	struct fake_peer peers[FAKE_PEER_CAP];
	uint32_t peer_cnt;
	int listen_fd, stop_fd;
	uint32_t buffer_next;
	pthread_t thread;
	pthread_mutex_t mutex; /* log, loads from the test's thread */
	struct fake_request log[FAKE_LOG_CAP];
	uint32_t log_cnt;
	uint64_t attach_seq;
	/* misbehaviour of the hello */
	int mute;   /* accept, say nothing */
	int refuse; /* reply with this error */
	int bad_fingerprint;
	uint32_t unasked; /* the reply brings as many volumes, or none when there are more; 0 = 4 */
	uint32_t pull_cnt;
	_Atomic int load_ahead;
	/* Instead of fake_load for a demand; 0 = not now, the hook answers the slot later. */
	uint64_t (*load)(struct fake *f, struct fake_peer *peer, uint32_t slot_idx,
		const struct fake_request *r);
	/* After each turn of the conductor: an event, or a second without one. */
	void (*turn)(struct fake *f);
};

/* ---- making ---------------------------------------------------------------------------------- */

static const struct stoup_field fake_fields[2] = {
	{.name = "key",
		.off = 0,
		.cnt = 1,
		.type = STOUP_TYPE_I64,
		.flags = STOUP_FIELD_KEY | STOUP_FIELD_TIME},
	{.name = "value", .off = 8, .cnt = 1, .type = STOUP_TYPE_U64},
};

/* The conductor may also run where no test does (test_consumer_auto.c), so it does not report to
 * Check. */
static inline void fake_must_at(int fine, const char *what, int line)
{
	if (fine)
		return;
	fprintf(stderr, "test_consumer_fake.h:%d: not so: %s (errno %d)\n", line, what, errno);
	abort();
}
#define FAKE_MUST(condition) fake_must_at((condition) ? 1 : 0, #condition, __LINE__)

static inline void fake_check(int rc, const struct stoup_error *err)
{
	ck_assert_msg(rc >= 0, "%d: %s", rc, err->text);
}

/* A pool in a fresh runtime directory; lease_cap is its lease_bytes_cap. */
static inline void fake_init_cells(struct fake *f, uint64_t lease_cap, uint32_t cell_cap)
{
	struct stoup_control_config config = {.consumer_cap = 8,
		.cell_cap = cell_cap,
		.buffer_cap = FAKE_BUFFER_CAP,
		.volume_cap = 128};
	struct stoup_error err;
	char path[128];

	memset(f, 0, sizeof(*f));
	pthread_mutex_init(&f->mutex, NULL);
	strcpy(f->dir, "/tmp/stoup-fake-XXXXXX");
	FAKE_MUST((mkdtemp(f->dir)) != NULL);
	setenv("XDG_RUNTIME_DIR", f->dir, 1);
	snprintf(path, sizeof(path), "%s/stoup", f->dir);
	FAKE_MUST(mkdir(path, 0700) == 0);
	FAKE_MUST(stoup_region_create(&f->control_region, STOUP_BACKING_MEMFD, "fake-control", 0600,
			  stoup_control_footprint(&config), 1, 1, 1, &err) == 0);
	FAKE_MUST(stoup_region_create(&f->data_region, STOUP_BACKING_MEMFD, "fake-data", 0600,
			  (size_t)FAKE_BUFFER_CAP * 4096, 1, 1, 1, &err) == 0);
	f->control = f->control_region.base;
	stoup_control_format(f->control, &config);
	f->control->data_len = f->data_region.len;
	f->control->lease_bytes_cap = lease_cap;
	f->control->ahead_bytes_cap = 1 << 20;
	f->control->block_len_max = 4096;
	f->control->daemon_pid = (uint32_t)getpid();
	f->control->daemon_start = stoup_process_start((uint32_t)getpid());
	memcpy(f->control->instance, "0123456789abcdef", 16);
	atomic_store(&f->control->heartbeat_ns, stoup_client_now());
	atomic_store(&f->control->asleep, 1);
	stoup_control_announce(f->control);
}

static inline void fake_init(struct fake *f)
{
	fake_init_cells(f, 1 << 20, STOUP_CELL_CAP);
}

/* Names of the two layouts: "other" has its value signed. */
static inline void fake_schemas(struct stoup_catalog *c)
{
	struct stoup_catalog_schema *schemas = (void *)((char *)c + c->schema_off);
	struct stoup_field *fields = (void *)((char *)c + c->field_off);

	for (uint32_t i = 0; i < 2; i++) {
		struct stoup_schema schema = {.stride = 16, .align = 8, .field_cnt = 2};

		fields[2 * i] = fake_fields[0];
		fields[2 * i + 1] = fake_fields[1];
		if (i == 1)
			fields[3].type = STOUP_TYPE_I64;
		strcpy(schema.name, i == 0 ? "pair" : "other");
		schema.fields = &fields[2 * i];
		strcpy(schemas[i].name, schema.name);
		schemas[i].stride = 16;
		schemas[i].align = 8;
		schemas[i].hash = stoup_schema_hash(&schema);
		schemas[i].field_first = 2 * i;
		schemas[i].field_cnt = 2;
	}
}

static inline uint32_t fake_segment_add(struct fake_volume *v, uint32_t series_idx,
	const struct fake_segment *s, struct stoup_catalog_segment *dst, uint64_t ordinal,
	uint64_t value)
{
	struct fake_block *block = &v->blocks[s->block];

	*dst = (struct stoup_catalog_segment){.block_idx = s->block,
		.raw_off = block->len,
		.record_cnt = s->cnt,
		.series_idx = series_idx,
		.ordinal = ordinal};
	for (uint32_t i = 0; i < s->cnt; i++) {
		struct pair pair = {.key = s->keys[i], .value = value + i};

		memcpy(block->bytes + block->len, &pair, sizeof(pair));
		block->len += (uint32_t)sizeof(pair);
		if (i == 0 || s->keys[i] > dst->last_key)
			dst->last_key = s->keys[i];
	}
	dst->first_key = s->cnt ? s->keys[0] : 0;
	return s->cnt;
}

/* Add a volume. Series must be given in the order of their names. */
static inline struct fake_volume *fake_volume(struct fake *f, uint64_t ingest_seq,
	uint32_t batch_idx, uint32_t block_cnt, const struct fake_series *series,
	uint32_t series_cnt)
{
	struct stoup_catalog_counts counts = {.schema_cnt = 2,
		.field_cnt = 4,
		.series_cnt = series_cnt,
		.block_cnt = block_cnt,
		.string_len = 16};
	struct fake_volume *v = &f->volumes[f->volume_cnt];
	struct stoup_catalog_segment *segments;
	struct stoup_catalog_series *table;
	struct stoup_catalog_block *blocks;
	uint64_t value = (uint64_t)f->volume_cnt * 1000000;
	uint32_t name_off = 16, at = 0;
	struct stoup_error err;
	char *strings;

	for (uint32_t i = 0; i < series_cnt; i++) {
		counts.segment_cnt += series[i].segment_cnt;
		counts.string_len += strlen(series[i].name) + 1;
	}
	FAKE_MUST(stoup_region_create(&v->region, STOUP_BACKING_MEMFD, "fake-catalog", 0600,
			  stoup_catalog_footprint(&counts), 1, 1, 1, &err) == 0);
	v->catalog = v->region.base;
	stoup_catalog_format(v->catalog, &counts, f->volume_cnt);
	v->catalog->ingest_seq = v->ingest_seq = ingest_seq;
	v->catalog->batch_idx = v->batch_idx = batch_idx;
	v->residency = stoup_catalog_residency(v->catalog);
	v->block_cnt = block_cnt;
	fake_schemas(v->catalog);
	strings = (char *)v->catalog + v->catalog->string_off;
	strcpy(strings, "/data/fake.svol");
	table = (void *)((char *)v->catalog + v->catalog->series_off);
	segments = (void *)((char *)v->catalog + v->catalog->segment_off);
	blocks = (void *)((char *)v->catalog + v->catalog->block_off);
	for (uint32_t i = 0; i < series_cnt; i++) {
		struct stoup_catalog_series *row = &table[i];

		strcpy(strings + name_off, series[i].name);
		*row = (struct stoup_catalog_series){.name_off = name_off,
			.name_len = (uint32_t)strlen(series[i].name),
			.schema_idx = strcmp(series[i].schema, "pair") == 0 ? 0 : 1,
			.flags = series[i].flags,
			.segment_first = at,
			.segment_cnt = series[i].segment_cnt};
		name_off += row->name_len + 1;
		for (uint32_t j = 0; j < series[i].segment_cnt; j++, at++) {
			uint32_t cnt = fake_segment_add(v, i, &series[i].segments[j], &segments[at],
				row->record_cnt, value);

			if (row->record_cnt == 0 && cnt > 0)
				row->first_key = segments[at].first_key;
			if (cnt > 0 && segments[at].last_key > row->last_key)
				row->last_key = segments[at].last_key;
			row->record_cnt += cnt;
			value += cnt;
		}
	}
	for (uint32_t b = 0; b < block_cnt; b++) {
		blocks[b].raw_len =
			v->blocks[b].claimed_len ? v->blocks[b].claimed_len : v->blocks[b].len;
		blocks[b].stored_len = 77;
		blocks[b].stored_off = 64 + 4096 * (uint64_t)b;
	}
	atomic_store(&stoup_control_volumes(f->control)[f->volume_cnt].state, STOUP_VOLUME_SERVED);
	f->volume_cnt++;
	atomic_store(&f->control->volume_cnt, f->volume_cnt);
	return v;
}

/* ---- conducting ------------------------------------------------------------------------------ */

/* Put a block into the next buffer and publish it; its word. */
static inline uint64_t fake_load(struct fake *f, uint32_t volume_idx, uint32_t block_idx)
{
	struct fake_volume *v = &f->volumes[volume_idx];
	struct stoup_control_buffer *buffer;
	uint64_t word;
	uint32_t idx;

	pthread_mutex_lock(&f->mutex);
	word = atomic_load(&v->residency[block_idx]);
	if (word == 0) {
		idx = f->buffer_next++;
		FAKE_MUST(idx < FAKE_BUFFER_CAP);
		buffer = &stoup_control_buffers(f->control)[idx];
		memcpy((char *)f->data_region.base + (size_t)idx * 4096, v->blocks[block_idx].bytes,
			v->blocks[block_idx].len);
		atomic_store(&buffer->off, (uint64_t)idx * 4096);
		atomic_store(&buffer->len, stoup_catalog_blocks(v->catalog)[block_idx].raw_len);
		atomic_store(&buffer->gen, 7);
		word = stoup_word(7, idx);
		atomic_fetch_add(&v->blocks[block_idx].load_cnt, 1);
		stoup_residency_publish(&v->residency[block_idx], word);
	}
	pthread_mutex_unlock(&f->mutex);
	return word;
}

static inline void fake_evict(struct fake *f, uint32_t volume_idx, uint32_t block_idx)
{
	stoup_residency_clear(&f->volumes[volume_idx].residency[block_idx]);
}

static inline void fake_done(struct stoup_slot *slot, int error, uint64_t detail)
{
	if (stoup_request_done(slot, error, detail))
		stoup_futex_wake(&slot->state, 1);
}

static inline void fake_demand(
	struct fake *f, struct fake_peer *peer, uint32_t slot_idx, const struct fake_request *r)
{
	struct stoup_page *page = peer->page.base;
	struct stoup_slot *slot = &page->slots[slot_idx];
	struct fake_block *block = &f->volumes[r->volume_idx].blocks[r->block_idx];
	_Atomic uint64_t *cell = &page->cells[atomic_load(&slot->cell_idx)];
	uint64_t ticket = stoup_ticket(slot_idx, atomic_load(&slot->seq));

	uint64_t word;

	switch (atomic_load(&block->act)) {
	case FAKE_GRANT:
		word = f->load ? f->load(f, peer, slot_idx, r)
		               : fake_load(f, r->volume_idx, r->block_idx);
		if (word == 0)
			break;
		stoup_lease_grant(cell, ticket, word);
		fake_done(slot, 0, 0);
		break;
	case FAKE_FAIL:
		fake_done(slot, atomic_load(&block->error), atomic_load(&block->detail));
		break;
	case FAKE_EMPTY:
		fake_done(slot, 0, 0);
		break;
	case FAKE_BAD_BUFFER:
		stoup_lease_grant(cell, ticket, stoup_word(9, FAKE_BUFFER_CAP + 5));
		fake_done(slot, 0, 0);
		break;
	case FAKE_HANG_UP:
		shutdown(peer->sock_fd, SHUT_RDWR);
		break;
	default:
		break;
	}
}

static inline void fake_request(struct fake *f, struct fake_peer *peer, uint32_t slot_idx)
{
	struct stoup_page *page = peer->page.base;
	struct stoup_slot *slot = &page->slots[slot_idx];
	struct fake_request r = {atomic_load(&slot->kind), atomic_load(&slot->volume_idx),
		atomic_load(&slot->block_idx), atomic_load(&slot->ahead_cnt),
		atomic_load(&slot->ahead_volume_idx), atomic_load(&slot->ahead_block_idx)};

	pthread_mutex_lock(&f->mutex);
	if (f->log_cnt < FAKE_LOG_CAP)
		f->log[f->log_cnt++] = r;
	pthread_mutex_unlock(&f->mutex);
	if (r.kind == STOUP_REQUEST_DEMAND)
		fake_demand(f, peer, slot_idx, &r);
	for (uint32_t i = 0; i < r.ahead_cnt && atomic_load(&f->load_ahead); i++)
		fake_load(f, r.ahead_volume_idx, r.ahead_block_idx + i);
	if (r.kind == STOUP_REQUEST_AHEAD)
		fake_done(slot, 0, 0);
}

static inline void fake_take(struct fake *f, struct fake_peer *peer)
{
	uint64_t bits;

	if (!peer->page.base)
		return;
	bits = stoup_request_take(peer->page.base);
	for (uint32_t s = 0; s < 64; s++) {
		if (bits >> s & 1)
			fake_request(f, peer, s);
	}
}

static inline void fake_reply(struct fake *f, struct fake_peer *peer)
{
	struct stoup_wire_reply reply = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_REPLY,
		.abi_major = STOUP_ABI_MAJOR,
		.fingerprint = stoup_abi_fingerprint(),
		.volume_cnt = f->volume_cnt};
	int fds[STOUP_WIRE_FD_CAP];
	struct stoup_error err;

	if (f->refuse) {
		reply.error = f->refuse;
		strcpy(reply.text, "all 8 places are taken");
		FAKE_MUST(stoup_wire_send(peer->sock_fd, &reply, sizeof(reply), NULL, 0) == 0);
		return;
	}
	memcpy(reply.instance, f->control->instance, 16);
	reply.attach_no = ++f->attach_seq;
	reply.fingerprint += (uint64_t)f->bad_fingerprint;
	FAKE_MUST(stoup_region_create_page(&peer->page, "fake-page",
			  stoup_page_footprint(f->control->cell_cap), &err) == 0);
	stoup_page_format(
		peer->page.base, reply.instance, reply.attach_no, 0, f->control->cell_cap);
	peer->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fds[STOUP_WIRE_FD_CONTROL] = f->control_region.ro_fd;
	fds[STOUP_WIRE_FD_DATA] = f->data_region.ro_fd;
	fds[STOUP_WIRE_FD_PAGE] = peer->page.fd;
	fds[STOUP_WIRE_FD_DOORBELL] = peer->bell_fd;
	while (f->volume_cnt <= (f->unasked ? f->unasked : STOUP_WIRE_VOLUME_UNASKED) &&
		reply.volume_here < f->volume_cnt) {
		fds[STOUP_WIRE_FD_FIXED + reply.volume_here] =
			f->volumes[reply.volume_here].region.ro_fd;
		reply.volume_here++;
	}
	FAKE_MUST(stoup_wire_send(peer->sock_fd, &reply, sizeof(reply), fds,
			  STOUP_WIRE_FD_FIXED + reply.volume_here) == 0);
}

static inline void fake_more(struct fake *f, struct fake_peer *peer, uint32_t first)
{
	struct stoup_wire_volumes msg = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_VOLUMES,
		.first = first,
		.volume_cnt = f->volume_cnt};
	int fds[STOUP_WIRE_VOLUME_CAP], unread = 0;

	/* As the daemon does: an answer that was not taken ends the connection. */
	if (ioctl(peer->sock_fd, SIOCOUTQ, &unread) == 0 && unread > 0) {
		shutdown(peer->sock_fd, SHUT_RDWR);
		return;
	}
	f->pull_cnt++;
	while (msg.cnt < STOUP_WIRE_VOLUME_CAP && first + msg.cnt < f->volume_cnt) {
		fds[msg.cnt] = f->volumes[first + msg.cnt].region.ro_fd;
		msg.cnt++;
	}
	FAKE_MUST(stoup_wire_send(peer->sock_fd, &msg, sizeof(msg), fds, msg.cnt) == 0);
}

static inline void fake_message(struct fake *f, struct fake_peer *peer)
{
	union {
		struct stoup_wire_hello hello;
		struct stoup_wire_volumes volumes;
	} msg;
	int fds[STOUP_WIRE_FD_CAP];
	uint32_t fd_cnt;
	int64_t len =
		stoup_wire_recv(peer->sock_fd, &msg, sizeof(msg), fds, STOUP_WIRE_FD_CAP, &fd_cnt);

	if (len <= 0) {
		close(peer->sock_fd);
		peer->sock_fd = -1;
		return;
	}
	if (f->mute)
		return;
	if (msg.hello.kind == STOUP_WIRE_HELLO)
		fake_reply(f, peer);
	else
		fake_more(f, peer, msg.volumes.first);
}

static inline void *fake_run(void *arg)
{
	struct fake *f = arg;
	uint64_t drained;

	for (;;) {
		struct pollfd p[2 + 2 * FAKE_PEER_CAP] = {{.fd = f->stop_fd, .events = POLLIN},
			{.fd = f->listen_fd, .events = POLLIN}};

		for (uint32_t i = 0; i < FAKE_PEER_CAP; i++) {
			p[2 + 2 * i] = (struct pollfd){.fd = f->peers[i].sock_fd, .events = POLLIN};
			p[3 + 2 * i] = (struct pollfd){.fd = f->peers[i].bell_fd, .events = POLLIN};
			if (i >= f->peer_cnt)
				p[2 + 2 * i].fd = p[3 + 2 * i].fd = -1;
		}
		if (poll(p, 2 + 2 * FAKE_PEER_CAP, 1000) < 0 || p[0].revents)
			return NULL;
		for (uint32_t i = 0; i < f->peer_cnt; i++) {
			if (p[3 + 2 * i].revents && read(f->peers[i].bell_fd, &drained, 8) == 8)
				fake_take(f, &f->peers[i]);
			if (p[2 + 2 * i].revents)
				fake_message(f, &f->peers[i]);
		}
		if (f->turn)
			f->turn(f);
		if (p[1].revents && f->peer_cnt < FAKE_PEER_CAP) {
			f->peers[f->peer_cnt] = (struct fake_peer){
				.sock_fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC),
				.bell_fd = -1};
			f->peers[f->peer_cnt].page.fd = f->peers[f->peer_cnt].page.ro_fd = -1;
			f->peer_cnt++;
		}
	}
}

static inline void fake_path(const struct fake *f, const char *name, char *path, size_t cap)
{
	snprintf(path, cap, "%s/stoup/%s.sock", f->dir, name);
}

static inline void fake_listen(struct fake *f, const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	fake_path(f, name, addr.sun_path, sizeof(addr.sun_path));
	f->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	FAKE_MUST(bind(f->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	FAKE_MUST(listen(f->listen_fd, 16) == 0);
	f->stop_fd = eventfd(0, EFD_CLOEXEC);
}

static inline void fake_start(struct fake *f, const char *name)
{
	fake_listen(f, name);
	FAKE_MUST(pthread_create(&f->thread, NULL, fake_run, f) == 0);
}

/* End the conductor's thread and close its sockets, as a death does. */
static inline void fake_kill(struct fake *f)
{
	const uint64_t one = 1;

	if (f->stop_fd < 0)
		return;
	FAKE_MUST(write(f->stop_fd, &one, 8) == 8);
	pthread_join(f->thread, NULL);
	close(f->stop_fd);
	close(f->listen_fd);
	for (uint32_t i = 0; i < f->peer_cnt; i++) {
		if (f->peers[i].sock_fd >= 0)
			close(f->peers[i].sock_fd);
		if (f->peers[i].bell_fd >= 0)
			close(f->peers[i].bell_fd);
		f->peers[i].sock_fd = f->peers[i].bell_fd = -1;
	}
	f->stop_fd = -1;
}

static inline void fake_stop(struct fake *f)
{
	char command[128];

	fake_kill(f);
	for (uint32_t i = 0; i < f->peer_cnt; i++)
		stoup_region_fini(&f->peers[i].page);
	for (uint32_t i = 0; i < f->volume_cnt; i++)
		stoup_region_fini(&f->volumes[i].region);
	stoup_region_fini(&f->data_region);
	stoup_region_fini(&f->control_region);
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	FAKE_MUST(system(command) == 0);
	pthread_mutex_destroy(&f->mutex);
}

/* ---- what tests ask -------------------------------------------------------------------------- */

static inline uint32_t fake_log_cnt(struct fake *f)
{
	uint32_t cnt;

	pthread_mutex_lock(&f->mutex);
	cnt = f->log_cnt;
	pthread_mutex_unlock(&f->mutex);
	return cnt;
}

/* A request as the conductor took it. The two ends map the page at different addresses, so a thread
 * sanitizer sees no order through it: the mutex is for that. */
static inline struct fake_request fake_log(struct fake *f, uint32_t idx)
{
	struct fake_request request;

	pthread_mutex_lock(&f->mutex);
	request = f->log[idx];
	pthread_mutex_unlock(&f->mutex);
	return request;
}

/* The value of a cell of the first attachment. */
static inline uint64_t fake_cell(const struct fake *f, uint32_t idx)
{
	const struct stoup_page *page = f->peers[0].page.base;

	return atomic_load(&page->cells[idx]);
}

/* How many cells of the first attachment lease a buffer. */
static inline uint32_t fake_leased(const struct fake *f)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < f->control->cell_cap; i++)
		cnt += stoup_cell_leased(fake_cell(f, i)) != 0;
	return cnt;
}

static inline struct stoup *fake_attach(const char *name, const struct stoup_options *opt)
{
	struct stoup_error err;
	struct stoup *st = NULL;
	int rc = stoup_attach(name, opt, &st, &err);

	fake_check(rc, &err);
	return st;
}

static inline struct stoup_cursor *fake_scan(
	struct stoup *st, const char *name, int64_t from, int64_t to)
{
	struct stoup_range range = {from, to};
	struct stoup_series series;
	struct stoup_cursor *cur = NULL;
	struct stoup_error err;
	int rc = stoup_series_find(st, name, &series, &err);

	fake_check(rc, &err);
	rc = stoup_scan(st, &series, &range, &cur, &err);
	fake_check(rc, &err);
	return cur;
}

/* One program: its cases, run in one process so that threads and sanitizers see everything. */
static inline int fake_main(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
