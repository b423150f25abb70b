/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_hello.c - the attach socket as the daemon sees it: bytes, descriptors and hang-ups in any order.
 *
 *      input: steps      connect | hello, as it should be or changed | bytes | question for volumes | for a file | about pins |
 *                        fork, giving up, coming for it | leases | descriptors with any of these | receive | close one or both ways |
 *                        page said detached | turns | time
 *
 * Checked: whatever the daemon says is a message of the protocol with the descriptors that it
 * announces, all sealed or read-only as they must be; afterwards no connection, consumer or descriptor is
 * left, and somebody who keeps the rules attaches and gets volumes.
 */
#include "tests/fuzz/daemon_steps.h"

#define PEER_CAP   6
#define THREADS_MS 60000 /* for its threads to have done what they were given */
#define STEP_CAP   120

static struct steps_peer peers[PEER_CAP];
static uint64_t ticket; /* of the last copy that was made for a child */

/* Open descriptors, but for pipes: the fuzzer itself opens some when it first names a function. */
static int fd_cnt_now(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	char target[16] = "";
	int cnt = 0;

	MUST(dir != NULL);
	while ((entry = readdir(dir)) != NULL)
		cnt += readlinkat(dirfd(dir), entry->d_name, target, sizeof(target)) < 5 ||
		       memcmp(target, "pipe:", 5) != 0;
	closedir(dir);
	return cnt;
}

/* ---- what the daemon says --------------------------------------------------------------------- */

static int is_writable(int fd)
{
	char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return 0;
	munmap(at, 4096);
	return 1;
}

static void check_fds(const int *fds, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		MUST(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
		if (i == STOUP_WIRE_FD_DOORBELL)
			continue;
		MUST(is_writable(fds[i]) == (i == STOUP_WIRE_FD_PAGE));
		MUST(ftruncate(fds[i], 0) < 0);
	}
}

static void on_reply(struct steps_peer *peer, const struct stoup_wire_reply *reply, const int *fds,
	uint32_t fd_cnt)
{
	MUST(memchr(reply->text, 0, sizeof(reply->text)) != NULL);
	if (reply->error != 0) {
		MUST(reply->error < 0 && reply->text[0] && fd_cnt == 0);
		return;
	}
	MUST(reply->fingerprint == stoup_abi_fingerprint());
	MUST(reply->consumer_idx < steps_daemon->opt.consumer_cap);
	if (fd_cnt == 1) { /* a monitor */
		MUST(!is_writable(fds[0]));
		close(fds[0]);
		return;
	}
	MUST(fd_cnt == STOUP_WIRE_FD_FIXED + reply->volume_here);
	check_fds(fds, fd_cnt);
	MUST(peer->page == NULL);
	steps_join(peer, fds, fd_cnt);
	MUST(peer->page->attach_no == reply->attach_no);
}

/* Take one message; 1 when one was there. */
static int receive(struct steps_peer *peer)
{
	union {
		struct stoup_wire_reply reply;
		struct stoup_wire_volumes volumes;
		struct stoup_wire_fork fork;
		struct stoup_wire_file file;
		struct stoup_wire_pin pin;
	} msg;
	int fds[STOUP_WIRE_FD_CAP];
	uint32_t fd_cnt = 0;
	int64_t len =
		stoup_wire_recv(peer->sock_fd, &msg, sizeof(msg), fds, STOUP_WIRE_FD_CAP, &fd_cnt);

	if (len <= 0)
		return 0;
	MUST(msg.reply.magic == STOUP_HELLO_MAGIC);
	switch (msg.reply.kind) {
	case STOUP_WIRE_REPLY:
		MUST(len == sizeof(msg.reply));
		on_reply(peer, &msg.reply, fds, fd_cnt);
		return 1;
	case STOUP_WIRE_VOLUMES:
		MUST(len == sizeof(msg.volumes));
		MUST(fd_cnt == msg.volumes.cnt && fd_cnt <= STEPS_VOLUME_CNT);
		break;
	case STOUP_WIRE_FILE:
		MUST(len == sizeof(msg.file) && msg.file.error <= 0);
		MUST(fd_cnt == (msg.file.error == 0));
		if (fd_cnt > 0)
			MUST((fcntl(fds[0], F_GETFL) & O_ACCMODE) == O_RDONLY);
		break;
	case STOUP_WIRE_PIN:
		MUST(len == sizeof(msg.pin) && fd_cnt == 0 && msg.pin.error <= 0);
		MUST(memchr(msg.pin.text, 0, sizeof(msg.pin.text)) != NULL);
		MUST(msg.pin.all_bytes <= msg.pin.cap_bytes && msg.pin.pin_cnt <= STOUP_PIN_CAP);
		break;
	default:
		MUST(msg.fork.kind == STOUP_WIRE_FORK && len == sizeof(msg.fork) && fd_cnt == 0);
		if (msg.fork.error == 0)
			ticket = msg.fork.ticket;
		break;
	}
	for (uint32_t i = 0; i < fd_cnt; i++) {
		MUST(!is_writable(fds[i]));
		close(fds[i]);
	}
	return 1;
}

/* ---- what is said to it ----------------------------------------------------------------------- */

/* Change some bytes of a message, or cut it or lengthen it. */
static size_t change(struct fuzz_in *in, void *msg, size_t len, size_t cap)
{
	uint8_t how = fuzz_u8(in);
	const uint8_t *bytes;
	size_t off, cnt;

	if (how & 1) {
		off = fuzz_u8(in) % len;
		cnt = fuzz_take(in, fuzz_u8(in) % 9, &bytes);
		memcpy((uint8_t *)msg + off, bytes, cnt < len - off ? cnt : len - off);
	}
	if (how & 2)
		len = fuzz_u16(in) % cap;
	return len;
}

/* Send with up to 40 descriptors, which the daemon does not want. */
static void say(struct fuzz_in *in, const struct steps_peer *peer, const void *msg, size_t len)
{
	int fds[STOUP_WIRE_FD_CAP] = {0}, fd = -1;
	uint32_t cnt = 0;
	uint8_t want = fuzz_u8(in);

	if (want >= 0xe0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		while (cnt < (want & 31u) + 1 && cnt < STOUP_WIRE_FD_CAP)
			fds[cnt++] = want & 1 ? fd : peer->sock_fd;
	}
	stoup_wire_send(peer->sock_fd, msg, len, fds, cnt);
	if (fd >= 0)
		close(fd);
}

static uint64_t any_ticket(struct fuzz_in *in)
{
	uint8_t choice = fuzz_u8(in);

	return choice & 1 ? ticket : choice / 2;
}

/* Name a buffer in a few cells, as a lease does. */
static void hold(struct fuzz_in *in, const struct steps_peer *peer)
{
	uint32_t idx = fuzz_u8(in) % steps_daemon->buffer_cap, cnt = fuzz_u8(in) % 4;

	atomic_store(&peer->page->cell_high, 4);
	for (uint32_t i = 0; i <= cnt; i++)
		atomic_store(
			&peer->page->cells[i], stoup_word(steps_daemon->buffers[idx].gen, idx));
}

/* For the file of a place, by its volume's id or by none. */
static struct stoup_wire_file file_question(uint32_t place, int stranger)
{
	const struct stoup_daemon *d = steps_daemon;
	struct stoup_wire_file file = {
		.magic = STOUP_HELLO_MAGIC, .kind = STOUP_WIRE_FILE, .volume_idx = place};

	_Static_assert(sizeof(file) == sizeof(struct stoup_wire_volumes), "one length");
	if (!stranger && place < d->volume_cnt && d->volumes[place].file)
		memcpy(file.id, d->volumes[place].file->index->header.id, sizeof(file.id));
	return file;
}

/* About one of three series, or none, and a range of its blocks. */
static struct stoup_wire_pin pin_question(struct fuzz_in *in)
{
	struct stoup_wire_pin pin = {.magic = STOUP_HELLO_MAGIC, .kind = STOUP_WIRE_PIN};
	uint8_t op = fuzz_u8(in), which = fuzz_u8(in), from = fuzz_u8(in), to = fuzz_u8(in);

	pin.op = op % 6;
	pin.idx = from;
	if (which & 7)
		snprintf(pin.text, sizeof(pin.text), "%c/A", 'A' + which % 4);
	if (from)
		pin.from_ns = STEPS_KEY + ((int64_t)(from % 16) << 20);
	if (to)
		pin.to_ns = STEPS_KEY + ((int64_t)(to % 16) << 20);
	return pin;
}

static void say_message(struct fuzz_in *in, const struct steps_peer *peer, unsigned which)
{
	union {
		struct stoup_wire_hello hello;
		struct stoup_wire_volumes volumes;
		struct stoup_wire_fork fork;
		struct stoup_wire_file file;
		struct stoup_wire_pin pin;
		uint8_t bytes[640];
	} msg;
	const uint8_t *bytes;
	size_t len = sizeof(msg.hello);

	memset(&msg, 0, sizeof(msg));
	if (which == 0) {
		msg.hello = steps_hello();
		msg.hello.flags = fuzz_u8(in) & 7;
		msg.hello.ticket = msg.hello.flags & STOUP_HELLO_CHILD ? any_ticket(in) : 0;
	} else if (which == 1) {
		uint8_t first = fuzz_u8(in) % 4, flags = fuzz_u8(in);

		/* The same length: a bit makes it a question for a file. */
		len = sizeof(msg.volumes);
		if (flags & 16) {
			msg.pin = pin_question(in);
			len = sizeof(msg.pin);
		} else if (flags & 4)
			msg.file = file_question(first, flags & 8);
		else
			msg.volumes = (struct stoup_wire_volumes){.magic = STOUP_HELLO_MAGIC,
				.kind = STOUP_WIRE_VOLUMES,
				.first = first,
				.flags = flags & 3};
	} else if (which == 2) {
		msg.fork = (struct stoup_wire_fork){
			.magic = STOUP_HELLO_MAGIC, .kind = STOUP_WIRE_FORK};
		msg.fork.ticket = any_ticket(in);
		len = sizeof(msg.fork);
	} else {
		len = fuzz_take(in, fuzz_u16(in) % sizeof(msg), &bytes);
		memcpy(msg.bytes, bytes, len);
		say(in, peer, &msg, len);
		return;
	}
	say(in, peer, &msg, change(in, &msg, len, sizeof(msg)));
}

static void step(struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in);
	struct steps_peer *peer = &peers[(what >> 4) % PEER_CAP];

	what &= 15;
	if (what < 2) {
		steps_turn(0);
	} else if (what == 2) {
		steps_skip(fuzz_u8(in) * UINT64_C(25000000));
	} else if (peer->sock_fd < 0) {
		peer->sock_fd = steps_connect();
	} else if (what < 10) {
		say_message(in, peer, what < 6 ? 0 : (what - 5u) % 4);
	} else if (what == 10) {
		receive(peer);
	} else if (what == 11) {
		shutdown(peer->sock_fd, fuzz_u8(in) % 3);
	} else if (what == 12 && peer->page) {
		atomic_store(&peer->page->state, fuzz_u8(in) % 4);
	} else if (what == 13) {
		steps_leave(peer, fuzz_u8(in) & 1);
	} else if (what == 14 && peer->page) {
		hold(in, peer);
	} else {
		steps_settle();
		receive(peer);
	}
}

/* What was said in time is heard, also by a daemon that stood still meanwhile. */
static void late_visit(void)
{
	struct stoup_wire_hello hello = steps_hello();
	struct steps_peer peer = {.sock_fd = steps_connect(), .bell_fd = -1};

	MUST(peer.sock_fd >= 0);
	while (!steps_turn(0)) /* accepted, and not read */
		;
	MUST(stoup_wire_send(peer.sock_fd, &hello, sizeof(hello), NULL, 0) == 0);
	steps_skip(2 * STOUP_HELLO_TIMEOUT_NS);
	steps_settle();
	MUST(receive(&peer) && peer.page);
	steps_leave(&peer, 1);
}

/* Somebody who keeps the rules is served: attaches, asks for the volumes, removes all pins, leaves. */
static void legal_visit(void)
{
	struct stoup_wire_volumes ask = {.magic = STOUP_HELLO_MAGIC, .kind = STOUP_WIRE_VOLUMES};
	struct stoup_wire_pin unpin = {
		.magic = STOUP_HELLO_MAGIC, .kind = STOUP_WIRE_PIN, .op = STOUP_PIN_DROP};
	const struct stoup_daemon *d = steps_daemon;
	struct steps_peer peer;

	MUST(steps_attach(&peer) == 0);
	MUST(stoup_wire_send(peer.sock_fd, &ask, sizeof(ask), NULL, 0) == 0);
	steps_settle();
	MUST(receive(&peer));
	MUST(stoup_wire_send(peer.sock_fd, &unpin, sizeof(unpin), NULL, 0) == 0);
	steps_settle();
	MUST(receive(&peer));
	MUST(d->pin_cnt == 0 && d->pin_bytes == 0 && d->pinned_blocks == 0 && d->pinned_bytes == 0);
	steps_leave(&peer, 1);
	steps_bury(STOUP_IDX_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_in in = {bytes, len};
	static int before;

	steps_start();
	/* Once: later a thread of the daemon may be looking at a memory map just now. */
	if (before == 0)
		before = fd_cnt_now();
	for (int i = 0; i < PEER_CAP; i++)
		peers[i] = (struct steps_peer){.sock_fd = -1, .bell_fd = -1};
	for (int i = 0; i < STEP_CAP && in.left > 0; i++)
		step(&in);
	for (int i = 0; i < PEER_CAP; i++)
		steps_leave(&peers[i], 0);
	steps_settle();
	steps_bury(STOUP_IDX_NONE);
	late_visit();
	legal_visit();
	steps_check();
	for (uint32_t i = 0; i < STOUP_PENDING_CAP; i++)
		MUST(steps_daemon->pending[i].fd < 0);
	/* The daemon has its threads close sockets and look at memory maps; on a loaded machine they come late. */
	for (int i = 0; fd_cnt_now() != before; i++) {
		MUST(i < THREADS_MS);
		usleep(1000);
	}
	return 0;
}
