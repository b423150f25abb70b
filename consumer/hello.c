/* SPDX-License-Identifier: Apache-2.0 */
/* hello.c - what is said over the socket: hello, volumes, the newest snapshot, copies for a fork.
 *
 *      hello ------------> control, data, page, doorbell, few volumes --> maps, snapshot
 *      volumes from n on -> at most 32 volumes           (until all of the snapshot are here)
 *      newest, from 0 on -> the same of a snapshot that may be another one
 *      fork -------------> ticket of a copy of the leases
 *      file of a volume -> its descriptor                (direct mode)
 *
 * Invariant: one question at a time, under `question`. An answer that did not come in time is still
 * to come (`owed`): it is read and thrown away before the next question, since nothing else tells
 * whose answer it is.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "consumer/client.h"
#include "shm/wire.h"

#ifndef MADV_POPULATE_READ /* of Linux 5.14 */
#define MADV_POPULATE_READ 22
#endif

/* ---- hello ----------------------------------------------------------------------------------- */

/* Receive one packet until the deadline. Its length, -ECONNRESET for hang-up, or another error. */
static int64_t receive(
	int sock_fd, void *msg, size_t cap, int *fds, uint32_t *ret_fd_cnt, uint64_t deadline_ns)
{
	int64_t len;

	for (;;) {
		struct pollfd p = {.fd = sock_fd, .events = POLLIN};
		uint64_t now = stoup_client_now();
		uint64_t left_ms = now < deadline_ns ? (deadline_ns - now + 999999) / 1000000 : 0;

		*ret_fd_cnt = 0;
		len = stoup_wire_recv(sock_fd, msg, cap, fds, STOUP_WIRE_FD_CAP, ret_fd_cnt);
		if (len != -EAGAIN)
			return len == 0 || len == -EPIPE ? -ECONNRESET : len;
		if (left_ms == 0)
			return -ETIMEDOUT;
		poll(&p, 1, left_ms > 1000 ? 1000 : (int)left_ms);
	}
}

static void close_all(const int *fds, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++)
		close(fds[i]);
}

static int explain_receive(const struct stoup_session *ses, int code, struct stoup_error *err)
{
	char what[STOUP_POOL_NAME_CAP + 16];

	switch (code) {
	case -ETIMEDOUT:
		return stoup_error_set(err, code,
			"the daemon of pool '%s' is silent: no answer in time; mend: look "
			"at it with stoup stat %s (stopped: kill -CONT PID)",
			ses->pool, ses->pool);
	case -ECONNRESET:
		return stoup_error_set(
			err, code, "the daemon of pool '%s' hung up: it is ending", ses->pool);
	case -EPROTO:
		return stoup_error_set(
			err, code, "pool '%s' answers in another protocol", ses->pool);
	default:
		snprintf(what, sizeof(what), "pool '%s', socket", ses->pool);
		errno = -code;
		return stoup_client_errno(err, what);
	}
}

/* A message in either direction. */
struct packet {
	void *at;
	size_t len;
};

/* Ask and take the answer, whose length may be any up to answer.len: its length, or an error with
 * text. The descriptors are the caller's. */
static int64_t ask(struct stoup_session *ses, struct packet question, struct packet answer,
	int *fds, uint32_t *ret_fd_cnt, uint64_t deadline_ns, struct stoup_error *err)
{
	union {
		struct stoup_wire_volumes volumes;
		struct stoup_wire_fork fork;
		struct stoup_wire_file file;
		struct stoup_wire_pin pin;
	} late;
	int64_t len;
	int rc;

	*ret_fd_cnt = 0;
	if (ses->owed) {
		len = receive(ses->sock_fd, &late, sizeof(late), fds, ret_fd_cnt, deadline_ns);
		close_all(fds, *ret_fd_cnt);
		*ret_fd_cnt = 0;
		if (len < 0)
			return explain_receive(ses, (int)len, err);
		ses->owed = 0;
	}
	rc = stoup_wire_send(ses->sock_fd, question.at, question.len, NULL, 0);
	if (rc < 0)
		return explain_receive(ses, rc == -EPIPE ? -ECONNRESET : rc, err);
	len = receive(ses->sock_fd, answer.at, answer.len, fds, ret_fd_cnt, deadline_ns);
	ses->owed = len == -ETIMEDOUT;
	return len < 0 ? explain_receive(ses, (int)len, err) : len;
}

static int reply_check(const struct stoup_session *ses, struct stoup_wire_reply *reply, int64_t len,
	uint32_t fd_cnt, struct stoup_error *err)
{
	if (len != (int64_t)sizeof(*reply) || reply->magic != STOUP_HELLO_MAGIC ||
		reply->kind != STOUP_WIRE_REPLY)
		return stoup_error_set(
			err, -EPROTO, "pool '%s' answers in another protocol", ses->pool);
	reply->text[sizeof(reply->text) - 1] = 0;
	if (reply->error != 0)
		return stoup_error_set(err,
			reply->error < 0 && reply->error > -4096 ? reply->error : -EPROTO, "%s",
			reply->text[0] ? reply->text : "the daemon refused, and did not say why");
	if (reply->abi_major != STOUP_ABI_MAJOR || reply->fingerprint != stoup_abi_fingerprint())
		return stoup_error_set(err, -EPROTO,
			"the daemon of pool '%s' speaks ABI %u.%u, this library %u.%u, or was laid "
			"out "
			"differently: use one release of both",
			ses->pool, reply->abi_major, reply->abi_minor, STOUP_ABI_MAJOR,
			STOUP_ABI_MINOR);
	if (reply->volume_here > STOUP_WIRE_VOLUME_CAP ||
		fd_cnt != STOUP_WIRE_FD_FIXED + reply->volume_here)
		return stoup_error_set(err, -EPROTO, "pool '%s' sent %u descriptors, announced %u",
			ses->pool, fd_cnt, STOUP_WIRE_FD_FIXED + reply->volume_here);
	return 0;
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* Make the page tables of the pool at once. A kernel before 5.14 cannot say it in one call: one byte of each
 * page is read. All pages are there: the daemon touched them. */
static void populate(const struct stoup_region *region)
{
	const volatile char *at = region->base;

	if (madvise(region->base, region->len, MADV_POPULATE_READ) == 0)
		return;
	for (size_t off = 0; off < region->len; off += STOUP_OS_PAGE_LEN)
		(void)at[off];
}

static void quota_take(struct stoup_session *ses, const struct stoup_wire_reply *reply)
{
	ses->asks = (reply->flags & STOUP_REPLY_ASKS) != 0;
	ses->quota_idx = reply->flags >> STOUP_REPLY_QUOTA_SHIFT;
}

static int map_fixed(struct stoup_session *ses, const struct stoup_wire_reply *reply,
	const int *fds, struct stoup_error *err)
{
	int rc;

	rc = stoup_region_map(fds[STOUP_WIRE_FD_CONTROL], sizeof(struct stoup_control), 0, 0,
		&ses->control_region, err);
	if (rc < 0)
		return rc;
	ses->control = ses->control_region.base;
	rc = stoup_control_verify(ses->control, ses->control_region.len, err);
	if (rc < 0)
		return rc;
	if (memcmp(ses->control->instance, reply->instance, sizeof(reply->instance)) != 0)
		return stoup_error_set(
			err, -EPROTO, "pool '%s' sent another instance's memory", ses->pool);
	ses->buffers = stoup_control_buffers(ses->control);
	/* Lazily, unless asked: page tables grow with what is read, so 64 workers do not pay for all of it. */
	rc = stoup_region_map(fds[STOUP_WIRE_FD_DATA], (size_t)ses->control->data_len, 0, 0,
		&ses->data_region, err);
	if (rc < 0)
		return rc;
	if (ses->client->opt.flags & STOUP_POPULATE)
		populate(&ses->data_region);
	rc = stoup_region_map(fds[STOUP_WIRE_FD_PAGE], stoup_page_footprint(ses->control->cell_cap),
		1, 1, &ses->page_region, err);
	if (rc < 0)
		return rc;
	ses->page = ses->page_region.base;
	if (stoup_page_verify(ses->page, ses->page_region.len, reply->instance, reply->attach_no) <
		0)
		return stoup_error_set(err, -EPROTO,
			"pool '%s' sent a consumer page that is malformed", ses->pool);
	ses->cell_cap = ses->page->cell_cap;
	ses->lease_bytes_cap = ses->control->lease_bytes_cap;
	quota_take(ses, reply);
	ses->request_cap = ses->control->request_cap;
	if (ses->request_cap == 0 || ses->request_cap > STOUP_SLOT_CNT)
		ses->request_cap = STOUP_SLOT_CNT;
	/* Shared memory is not believed beyond what the caller could have asked for. */
	if (ses->client->timeout_open && ses->control->request_timeout_ns <= STOUP_TIMEOUT_MAX_NS)
		ses->timeout_ns = ses->control->request_timeout_ns;
	return 0;
}

/* ---- volumes --------------------------------------------------------------------------------- */

/* Add volumes; closes all cnt descriptors in any case. */
static int add_volumes(
	struct stoup_snapshot *snap, const int *fds, uint32_t cnt, struct stoup_error *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < cnt; i++) {
		if (rc == 0)
			rc = stoup_snapshot_add(snap, fds[i], err);
		else
			close(fds[i]);
	}
	return rc;
}

/* One question for volumes; *msg is the answer. Its descriptors are the caller's on 0. */
static int ask_volumes(struct stoup_session *ses, struct stoup_wire_volumes *msg, int *fds,
	uint64_t deadline_ns, struct stoup_error *err)
{
	struct stoup_wire_volumes question = *msg;
	uint32_t fd_cnt;
	int64_t len = ask(ses, (struct packet){&question, sizeof(question)},
		(struct packet){msg, sizeof(*msg)}, fds, &fd_cnt, deadline_ns, err);

	if (len < 0)
		return (int)len;
	if (len == (int64_t)sizeof(*msg) && msg->magic == STOUP_HELLO_MAGIC &&
		msg->kind == STOUP_WIRE_VOLUMES && msg->error == 0 && fd_cnt == msg->cnt &&
		msg->first == question.first && (fd_cnt > 0 || msg->first >= msg->volume_cnt))
		return 0;
	close_all(fds, fd_cnt);
	if (len == (int64_t)sizeof(*msg) && msg->error == -ESTALE)
		return stoup_error_set(err, -ESTALE,
			"the snapshot that was asked for is no longer served by pool '%s': call "
			"stoup_refresh again",
			ses->pool);
	if (len == (int64_t)sizeof(*msg) && msg->error < 0 && msg->error > -4096)
		return stoup_error_set(err, msg->error,
			"pool '%s' refused its volumes from %u on: %s", ses->pool, question.first,
			strerror(-msg->error));
	return stoup_error_set(err, -EPROTO, "pool '%s' answered badly when asked for volume %u",
		ses->pool, question.first);
}

/* Ask for the volumes from `first` on, until all are here; one question at a time. `first` is 0 where
 * there are many: the daemon lays few descriptors into a socket unasked, since nobody may read it. */
static int pull_volumes(struct stoup_session *ses, struct stoup_snapshot *snap, uint32_t first,
	uint64_t deadline_ns, struct stoup_error *err)
{
	int fds[STOUP_WIRE_FD_CAP];
	struct stoup_wire_volumes msg;
	int rc;

	do {
		msg = (struct stoup_wire_volumes){
			.magic = STOUP_HELLO_MAGIC, .kind = STOUP_WIRE_VOLUMES, .first = first};
		rc = ask_volumes(ses, &msg, fds, deadline_ns, err);
		if (rc < 0)
			return rc;
		rc = add_volumes(snap, fds, msg.cnt, err);
		if (rc == 0 && msg.snapshot_seq != snap->seq)
			rc = stoup_error_set(err, -EPROTO,
				"pool '%s' sent volumes of snapshot %llu instead of %llu",
				ses->pool, (unsigned long long)msg.snapshot_seq,
				(unsigned long long)snap->seq);
		first += msg.cnt;
	} while (rc == 0 && first < msg.volume_cnt);
	return rc;
}

int stoup_hello_newest(struct stoup_session *ses, uint64_t deadline_ns, struct stoup_snapshot **ret,
	struct stoup_error *err)
{
	struct stoup_wire_volumes msg = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_VOLUMES,
		.flags = STOUP_VOLUMES_NEWEST};
	int fds[STOUP_WIRE_FD_CAP];
	struct stoup_snapshot *snap;
	int rc = ask_volumes(ses, &msg, fds, deadline_ns, err);

	if (rc < 0)
		return rc;
	rc = stoup_snapshot_make(ses, msg.snapshot_seq, &snap, err);
	if (rc < 0) {
		close_all(fds, msg.cnt);
		return rc;
	}
	rc = add_volumes(snap, fds, msg.cnt, err);
	if (rc == 0 && msg.cnt < msg.volume_cnt)
		rc = pull_volumes(ses, snap, msg.cnt, deadline_ns, err);
	if (rc == 0)
		rc = stoup_snapshot_finish(snap, err);
	if (rc < 0) {
		stoup_snapshot_destroy(snap);
		return rc;
	}
	*ret = snap;
	return 0;
}

/* ---- hello ----------------------------------------------------------------------------------- */

/* Say hello and take the answer: 0 with the descriptors, which are the caller's. */
static int say_hello(struct stoup_session *ses, struct stoup_wire_hello *hello,
	struct stoup_wire_reply *reply, int *fds, uint64_t deadline_ns, struct stoup_error *err)
{
	uint32_t fd_cnt;
	int64_t len;
	int rc;

	hello->magic = STOUP_HELLO_MAGIC;
	hello->kind = STOUP_WIRE_HELLO;
	hello->abi_major = STOUP_ABI_MAJOR;
	hello->abi_minor = STOUP_ABI_MINOR;
	hello->fingerprint = stoup_abi_fingerprint();
	len = ask(ses, (struct packet){hello, sizeof(*hello)},
		(struct packet){reply, sizeof(*reply)}, fds, &fd_cnt, deadline_ns, err);
	if (len < 0)
		return (int)len;
	rc = reply_check(ses, reply, len, fd_cnt, err);
	if (rc < 0)
		close_all(fds, fd_cnt);
	return rc;
}

int stoup_hello(struct stoup_session *ses, uint64_t deadline_ns, struct stoup_error *err)
{
	struct stoup_wire_hello hello = {0};
	struct stoup_wire_reply reply;
	struct stoup_snapshot *snap;
	int fds[STOUP_WIRE_FD_CAP];
	int rc = say_hello(ses, &hello, &reply, fds, deadline_ns, err);

	if (rc < 0)
		return rc;
	rc = map_fixed(ses, &reply, fds, err);
	close(fds[STOUP_WIRE_FD_CONTROL]);
	close(fds[STOUP_WIRE_FD_DATA]);
	close(fds[STOUP_WIRE_FD_PAGE]);
	ses->bell_fd = fds[STOUP_WIRE_FD_DOORBELL];
	if (rc == 0)
		rc = stoup_snapshot_make(ses, reply.snapshot_seq, &snap, err);
	if (rc < 0) {
		close_all(fds + STOUP_WIRE_FD_FIXED, reply.volume_here);
		return rc;
	}
	/* Freed with the session from here on. */
	ses->newest = ses->snapshots = snap;
	stoup_snapshot_publish(ses);
	rc = add_volumes(snap, fds + STOUP_WIRE_FD_FIXED, reply.volume_here, err);
	if (rc == 0 && reply.volume_here < reply.volume_cnt)
		rc = pull_volumes(ses, snap, reply.volume_here, deadline_ns, err);
	return rc < 0 ? rc : stoup_snapshot_finish(snap, err);
}

/* ---- forks ----------------------------------------------------------------------------------- */

static int ask_fork(struct stoup_session *ses, uint32_t kind, uint64_t ticket, uint64_t deadline_ns,
	uint64_t *ret_ticket, struct stoup_error *err)
{
	struct stoup_wire_fork question = {
		.magic = STOUP_HELLO_MAGIC, .kind = kind, .ticket = ticket};
	struct stoup_wire_fork answer;
	int fds[STOUP_WIRE_FD_CAP];
	uint32_t fd_cnt;
	int64_t len = ask(ses, (struct packet){&question, sizeof(question)},
		(struct packet){&answer, sizeof(answer)}, fds, &fd_cnt, deadline_ns, err);

	if (len < 0)
		return (int)len;
	close_all(fds, fd_cnt);
	if (len != (int64_t)sizeof(answer) || answer.magic != STOUP_HELLO_MAGIC ||
		answer.kind != STOUP_WIRE_FORK || (answer.error == 0 && answer.ticket == 0))
		return stoup_error_set(err, -EPROTO,
			"pool '%s' answered badly when asked for a copy of the leases", ses->pool);
	if (answer.error == -EUSERS)
		return stoup_error_set(err, -EUSERS,
			"pool '%s' has all its %u consumers and no place for a child's leases: "
			"start stoupd with more --consumers (at most %u)",
			ses->pool, ses->control->consumer_cap, STOUP_CONSUMER_CAP);
	if (answer.error != 0)
		return stoup_error_set(err,
			answer.error < 0 && answer.error > -4096 ? answer.error : -EPROTO,
			"pool '%s' made no copy of the leases for a child: %s", ses->pool,
			strerror(-answer.error));
	*ret_ticket = answer.ticket;
	return 0;
}

int stoup_hello_fork(struct stoup_session *ses, uint64_t ticket, uint64_t deadline_ns,
	uint64_t *ret_ticket, struct stoup_error *err)
{
	return ask_fork(ses, STOUP_WIRE_FORK, ticket, deadline_ns, ret_ticket, err);
}

int stoup_hello_former(struct stoup_session *ses, const struct stoup_session *former,
	uint64_t deadline_ns, uint64_t *ret_ticket, struct stoup_error *err)
{
	return ask_fork(
		ses, STOUP_WIRE_FORMER, former->page->attach_no, deadline_ns, ret_ticket, err);
}

int stoup_hello_child(
	struct stoup_session *ses, uint64_t ticket, uint64_t deadline_ns, struct stoup_error *err)
{
	struct stoup_wire_hello hello = {.flags = STOUP_HELLO_CHILD, .ticket = ticket};
	struct stoup_region page = {.fd = -1, .ro_fd = -1};
	struct stoup_wire_reply reply;
	int fds[STOUP_WIRE_FD_CAP];
	int rc = say_hello(ses, &hello, &reply, fds, deadline_ns, err);

	if (rc < 0)
		return rc;
	if (memcmp(ses->control->instance, reply.instance, sizeof(reply.instance)) != 0)
		rc = stoup_error_set(err, -EPIPE,
			"the daemon of pool '%s' ended while this process was forked: the copy of "
			"its leases went with it",
			ses->pool);
	if (rc == 0)
		rc = stoup_region_map(fds[STOUP_WIRE_FD_PAGE], stoup_page_footprint(ses->cell_cap),
			1, 1, &page, err);
	if (rc == 0 &&
		(stoup_page_verify(page.base, page.len, reply.instance, reply.attach_no) < 0 ||
			((struct stoup_page *)page.base)->cell_cap != ses->cell_cap))
		rc = stoup_error_set(err, -EPROTO,
			"pool '%s' sent a consumer page that is malformed", ses->pool);
	close(fds[STOUP_WIRE_FD_CONTROL]);
	close(fds[STOUP_WIRE_FD_DATA]);
	close(fds[STOUP_WIRE_FD_PAGE]);
	close_all(fds + STOUP_WIRE_FD_FIXED, reply.volume_here);
	if (rc < 0) {
		close(fds[STOUP_WIRE_FD_DOORBELL]);
		stoup_region_fini(&page);
		return rc;
	}
	ses->bell_fd = fds[STOUP_WIRE_FD_DOORBELL];
	ses->page_region = page;
	ses->page = page.base;
	quota_take(ses, &reply);
	return 0;
}

/* ---- files of volumes ------------------------------------------------------------------------ */

static int file_refused(const struct stoup_session *ses, const struct stoup_snapshot_volume *vol,
	int code, struct stoup_error *err)
{
	const char *more = "";

	if (code == -ESTALE)
		more = ": it is no longer served; call stoup_refresh";
	else if (code == -EMFILE || code == -ETOOMANYREFS)
		more = "; mend: raise its ulimit -n";
	return stoup_error_set(err, code, "the daemon of pool '%s' gave no file of volume %u: %s%s",
		ses->pool, vol->catalog->volume_idx, strerror(-code), more);
}

int stoup_hello_file(struct stoup_session *ses, const struct stoup_snapshot_volume *vol,
	uint64_t deadline_ns, int *ret_fd, struct stoup_error *err)
{
	struct stoup_wire_file question = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_FILE,
		.volume_idx = vol->catalog->volume_idx};
	struct stoup_wire_file answer;
	int fds[STOUP_WIRE_FD_CAP];
	uint32_t fd_cnt;
	int64_t len;

	memcpy(question.id, vol->catalog->volume_id, sizeof(question.id));
	len = ask(ses, (struct packet){&question, sizeof(question)},
		(struct packet){&answer, sizeof(answer)}, fds, &fd_cnt, deadline_ns, err);
	if (len < 0)
		return (int)len;
	if (len == (int64_t)sizeof(answer) && answer.magic == STOUP_HELLO_MAGIC &&
		answer.kind == STOUP_WIRE_FILE && answer.volume_idx == question.volume_idx) {
		if (answer.error == 0 && fd_cnt == 1) {
			*ret_fd = fds[0];
			return 0;
		}
		if (answer.error < 0 && answer.error > -4096 && fd_cnt == 0)
			return file_refused(ses, vol, answer.error, err);
	}
	close_all(fds, fd_cnt);
	return stoup_error_set(err, -EPROTO,
		"pool '%s' answered badly when asked for the file of volume %u", ses->pool,
		question.volume_idx);
}

/* ---- pins ------------------------------------------------------------------------------------ */

int stoup_hello_pin(struct stoup_session *ses, struct stoup_wire_pin *msg, uint64_t deadline_ns,
	struct stoup_error *err)
{
	struct stoup_wire_pin question = *msg;
	int fds[STOUP_WIRE_FD_CAP];
	uint32_t fd_cnt;
	int64_t len;

	/* An older one would hang up on a message that it does not know. */
	if (ses->control->abi_minor < 3)
		return stoup_error_set(err, -ENOTSUP,
			"the daemon of pool '%s' (version %.31s) is of an older release, which has no pins: "
			"restart it with the stoupd of this release",
			ses->pool, ses->control->version);
	question.magic = STOUP_HELLO_MAGIC;
	question.kind = STOUP_WIRE_PIN;
	len = ask(ses, (struct packet){&question, sizeof(question)},
		(struct packet){msg, sizeof(*msg)}, fds, &fd_cnt, deadline_ns, err);
	if (len < 0)
		return (int)len;
	close_all(fds, fd_cnt);
	if (len != (int64_t)sizeof(*msg) || msg->magic != STOUP_HELLO_MAGIC ||
		msg->kind != STOUP_WIRE_PIN || msg->op != question.op || msg->error > 0 ||
		msg->error < -4095)
		return stoup_error_set(
			err, -EPROTO, "pool '%s' answered badly when asked about pins", ses->pool);
	msg->text[sizeof(msg->text) - 1] = 0;
	if (msg->error < 0)
		return stoup_error_set(err, msg->error, "%.250s",
			msg->text[0] ? msg->text : strerror(-msg->error));
	return 0;
}
