/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_fake.h - a small conductor for tests of libstoup: makes a pool with the functions
 * of shm, answers hello, and grants, fails or ignores requests as a test says.
 *
 *      test: fake_init, fake_volume, fake_start("NAME") ... stoup_attach("NAME") ... fake_stop
 *      dies: fake_kill, fake_reset, fake_volume, fake_start("NAME")
 *      rescan: fake_volume and fake_retire, fake_rescan
 *
 * Concurrency: one thread is the conductor. A test changes what a block does only through the
 * atomic fields, or before fake_start. Included by one test program each, hence static.
 */
#ifndef STOUP_TEST_CONSUMER_FAKE_H
#define STOUP_TEST_CONSUMER_FAKE_H

#include "tests/unit/test_consumer_pool.h"

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
		atomic_load(&slot->ahead_volume_idx), atomic_load(&slot->ahead_block_idx),
		atomic_load(&slot->ahead_step)};

	pthread_mutex_lock(&f->mutex);
	if (f->log_cnt < FAKE_LOG_CAP)
		f->log[f->log_cnt++] = r;
	pthread_mutex_unlock(&f->mutex);
	if (r.kind == STOUP_REQUEST_DEMAND)
		fake_demand(f, peer, slot_idx, &r);
	for (uint32_t i = 0; i < r.ahead_cnt && atomic_load(&f->load_ahead); i++)
		fake_load(
			f, r.ahead_volume_idx, r.ahead_block_idx + (r.ahead_step < 0 ? 0 - i : i));
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

/* Descriptors of the volumes of a snapshot from `first` on; *ret_total: all of them. */
static inline uint32_t fake_volumes(
	struct fake *f, uint64_t seq, uint32_t first, uint32_t cap, int *fds, uint32_t *ret_total)
{
	uint32_t total = 0, cnt = 0;

	for (uint32_t i = 0; i < f->volume_cnt; i++) {
		const struct fake_volume *v = &f->volumes[i];

		if (v->born_seq > seq || (v->retired_seq != 0 && v->retired_seq <= seq))
			continue;
		if (total++ >= first && cnt < cap)
			fds[cnt++] = v->region.ro_fd;
	}
	*ret_total = total;
	return cnt;
}

/* Make a page and doorbell for the peer. */
static inline void fake_page(struct fake *f, struct fake_peer *peer)
{
	struct stoup_error err;

	FAKE_MUST(stoup_region_create_page(&peer->page, "fake-page",
			  stoup_page_footprint(f->control->cell_cap), &err) == 0);
	stoup_page_format(
		peer->page.base, f->control->instance, ++f->attach_seq, 0, f->control->cell_cap);
	peer->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	peer->snapshot_seq = f->snapshot_seq;
}

/* The child of a fork: it gets the copy, once. */
static inline void fake_redeem(struct fake *f, struct fake_peer *peer, uint64_t ticket)
{
	for (uint32_t i = 0; i < FAKE_PEER_CAP; i++) {
		struct fake_peer *copy = &f->copies[i];

		if (copy->ticket != ticket)
			continue;
		peer->page = copy->page;
		peer->bell_fd = copy->bell_fd;
		*copy = (struct fake_peer){0};
	}
}

static inline void fake_reply(struct fake *f, struct fake_peer *peer, uint64_t ticket)
{
	struct stoup_wire_reply reply = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_REPLY,
		.abi_major = STOUP_ABI_MAJOR,
		.fingerprint = stoup_abi_fingerprint()};
	uint32_t unasked = f->unasked ? f->unasked : STOUP_WIRE_VOLUME_UNASKED;
	int fds[STOUP_WIRE_FD_CAP];

	if (ticket)
		fake_redeem(f, peer, ticket);
	else if (!f->refuse)
		fake_page(f, peer);
	if (f->refuse || !peer->page.base) {
		reply.error = f->refuse ? f->refuse : -ENOENT;
		strcpy(reply.text, f->refuse ? "all 8 places are taken" : "no such ticket");
		FAKE_MUST(stoup_wire_send(peer->sock_fd, &reply, sizeof(reply), NULL, 0) == 0);
		return;
	}
	memcpy(reply.instance, f->control->instance, 16);
	reply.attach_no = ((struct stoup_page *)peer->page.base)->attach_no;
	reply.fingerprint += (uint64_t)f->bad_fingerprint;
	reply.snapshot_seq = peer->snapshot_seq;
	fds[STOUP_WIRE_FD_CONTROL] = f->control_region.ro_fd;
	fds[STOUP_WIRE_FD_DATA] = f->data_region.ro_fd;
	fds[STOUP_WIRE_FD_PAGE] = peer->page.fd;
	fds[STOUP_WIRE_FD_DOORBELL] = peer->bell_fd;
	reply.volume_here = fake_volumes(f, reply.snapshot_seq, 0, STOUP_WIRE_VOLUME_CAP,
		fds + STOUP_WIRE_FD_FIXED, &reply.volume_cnt);
	if (reply.volume_cnt > unasked || ticket)
		reply.volume_here = 0;
	FAKE_MUST(stoup_wire_send(peer->sock_fd, &reply, sizeof(reply), fds,
			  STOUP_WIRE_FD_FIXED + reply.volume_here) == 0);
}

static inline void fake_more(
	struct fake *f, struct fake_peer *peer, const struct stoup_wire_volumes *question)
{
	struct stoup_wire_volumes msg = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_VOLUMES,
		.first = question->first,
		.error = f->refuse_volumes};
	int fds[STOUP_WIRE_VOLUME_CAP], unread = 0;

	/* As the daemon does: an answer that was not taken ends the connection. */
	if ((ioctl(peer->sock_fd, SIOCOUTQ, &unread) == 0 && unread > 0) ||
		(f->cut > 0 && f->cut-- > 0)) {
		shutdown(peer->sock_fd, SHUT_RDWR);
		return;
	}
	f->pull_cnt++;
	if (question->flags & STOUP_VOLUMES_NEWEST)
		peer->snapshot_seq = f->snapshot_seq;
	msg.snapshot_seq = peer->snapshot_seq;
	if (!msg.error)
		msg.cnt = fake_volumes(f, msg.snapshot_seq, msg.first, STOUP_WIRE_VOLUME_CAP, fds,
			&msg.volume_cnt);
	FAKE_MUST(stoup_wire_send(peer->sock_fd, &msg, sizeof(msg), fds, msg.cnt) == 0);
}

/* Copy the leases of a peer for a child, or give a copy up. */
static inline void fake_fork(struct fake *f, struct fake_peer *peer, uint64_t ticket)
{
	struct stoup_wire_fork msg = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_FORK,
		.error = f->refuse_fork,
		.ticket = ticket};
	const struct stoup_page *from = peer->page.base;
	uint32_t i = 0;

	while (!msg.error && i < FAKE_PEER_CAP && f->copies[i].ticket != ticket)
		i++;
	if (!msg.error && ticket) {
		close(f->copies[i].bell_fd);
		stoup_region_fini(&f->copies[i].page);
		f->copies[i] = (struct fake_peer){0};
	} else if (!msg.error) {
		struct stoup_page *to;

		fake_page(f, &f->copies[i]);
		to = f->copies[i].page.base;
		msg.ticket = f->copies[i].ticket = 1000 + f->attach_seq;
		atomic_store(&to->cell_high, atomic_load(&from->cell_high));
		for (uint32_t c = 0; c < f->control->cell_cap; c++)
			if (stoup_cell_leased(atomic_load(&from->cells[c])))
				atomic_store(&to->cells[c], atomic_load(&from->cells[c]));
	}
	FAKE_MUST(stoup_wire_send(peer->sock_fd, &msg, sizeof(msg), NULL, 0) == 0);
}

/* The file of a volume, as the daemon gives it: a description of its own. */
static inline void fake_give(
	struct fake *f, struct fake_peer *peer, const struct stoup_wire_file *question)
{
	struct stoup_wire_file msg = *question;
	const struct fake_volume *v = &f->volumes[question->volume_idx];
	char path[64];
	int fd = -1;

	msg.error = f->refuse_file;
	if (!msg.error && question->volume_idx >= f->volume_cnt)
		msg.error = -EINVAL;
	else if (!msg.error && memcmp(v->catalog->volume_id, question->id, 16) != 0)
		msg.error = -ESTALE;
	else if (!msg.error && v->file_fd == 0)
		msg.error = -ENOTSUP;
	if (!msg.error) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", v->file_fd);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		FAKE_MUST(fd >= 0);
		atomic_fetch_add(&f->file_cnt, 1);
	}
	FAKE_MUST(stoup_wire_send(peer->sock_fd, &msg, sizeof(msg), &fd, fd >= 0) == 0);
	if (fd >= 0)
		close(fd);
}

static inline void fake_message(struct fake *f, struct fake_peer *peer)
{
	union {
		struct stoup_wire_hello hello;
		struct stoup_wire_volumes volumes;
		struct stoup_wire_fork fork;
		struct stoup_wire_file file;
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
	pthread_mutex_lock(&f->mutex);
	if (msg.hello.kind == STOUP_WIRE_HELLO && f->cut_hello > 0) {
		f->cut_hello--;
		shutdown(peer->sock_fd, SHUT_RDWR);
		pthread_mutex_unlock(&f->mutex);
		return;
	}
	if (msg.hello.kind == STOUP_WIRE_HELLO)
		fake_reply(f, peer, msg.hello.ticket);
	else if (msg.hello.kind == STOUP_WIRE_FORK)
		fake_fork(f, peer, msg.fork.ticket);
	else if (msg.hello.kind == STOUP_WIRE_FILE)
		fake_give(f, peer, &msg.file);
	else if (f->late > 0)
		f->late--;
	else
		fake_more(f, peer, &msg.volumes);
	pthread_mutex_unlock(&f->mutex);
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
	unlink(addr.sun_path);
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
	f->thread = 0;
}

/* Another daemon takes over: other memory, no volumes, nobody attached. */
static inline void fake_forget(struct fake *f)
{
	for (uint32_t i = 0; i < FAKE_PEER_CAP; i++) {
		if (i < f->peer_cnt)
			stoup_region_fini(&f->peers[i].page);
		if (f->copies[i].ticket)
			stoup_region_fini(&f->copies[i].page);
	}
	for (uint32_t i = 0; i < f->volume_cnt; i++) {
		stoup_region_fini(&f->volumes[i].region);
		if (f->volumes[i].file_fd > 0)
			close(f->volumes[i].file_fd);
	}
	stoup_region_fini(&f->data_region);
	stoup_region_fini(&f->control_region);
	memset(f->peers, 0, sizeof(f->peers));
	memset(f->copies, 0, sizeof(f->copies));
	memset(f->volumes, 0, sizeof(f->volumes));
	f->peer_cnt = f->volume_cnt = f->buffer_next = f->log_cnt = 0;
}

/* After fake_kill: a pool of the same name, to be given volumes and started. */
static inline void fake_reset(struct fake *f)
{
	uint64_t lease_cap = f->control->lease_bytes_cap;
	uint32_t cell_cap = f->control->cell_cap;

	fake_forget(f);
	fake_memory(f, lease_cap, cell_cap);
}

static inline void fake_stop(struct fake *f)
{
	char command[128];

	fake_kill(f);
	fake_forget(f);
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	FAKE_MUST(system(command) == 0);
	pthread_mutex_destroy(&f->mutex);
}

/* ---- what tests ask -------------------------------------------------------------------------- */

/* Hang up at that many hellos from now on; how many were left of those before. */
static inline int fake_cut_hello(struct fake *f, int cnt)
{
	int left;

	pthread_mutex_lock(&f->mutex);
	left = f->cut_hello;
	f->cut_hello = cnt;
	pthread_mutex_unlock(&f->mutex);
	return left;
}

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

static inline struct stoup_cursor *fake_scan_flags(
	struct stoup *st, const char *name, int64_t from, int64_t to, uint32_t flags)
{
	const struct stoup_range range = {.from_ns = from, .to_ns = to, .flags = flags};
	struct stoup_series series;
	struct stoup_cursor *cur = NULL;
	struct stoup_error err;
	int rc = stoup_series_find(st, name, &series, &err);

	fake_check(rc, &err);
	rc = stoup_scan(st, &series, &range, &cur, &err);
	fake_check(rc, &err);
	return cur;
}

static inline struct stoup_cursor *fake_scan(
	struct stoup *st, const char *name, int64_t from, int64_t to)
{
	return fake_scan_flags(st, name, from, to, 0);
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
