/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - the messages of the attach socket (SOCK_SEQPACKET, one message per packet).
 *
 *      consumer                         daemon
 *         | -- hello ------------------> |   credentials are taken from the socket, not from the text
 *         | <- reply + descriptors ----- |   control, data, page, doorbell, then up to 4 volumes
 *         | -- volumes first ----------> |   only when there are more volumes; one question at a time
 *         | <- volumes + descriptors --- |
 *         |            ...               |   the socket stays open: its hang-up tells of an end
 *         | -- fork -------------------> |   before a fork: copy my leases, for a child
 *         | <- fork + ticket ----------- |   the copy holds them from now on
 *         | -- fork of former, number -> |   the same of an earlier attachment of this process, which was
 *         | <- fork + ticket ----------- |   disconnected while it held leases
 *         | -- file -------------------> |   direct mode: the file of one volume
 *         | <- file + descriptor ------- |   opened read-only, for consumers alone
 *         | -- pin --------------------> |   keep blocks, keep them no more, or: which are kept?
 *         | <- pin + numbers or text --- |
 *
 *      child                            daemon
 *         | -- hello with the ticket --> |   whoever knows it gets the copy, once
 *         | <- reply + descriptors ----- |   control, data, page, doorbell; no volumes: they are inherited
 *
 *      monitor                          daemon
 *         | -- hello, MONITOR ---------> |
 *         | <- reply + descriptor ------ |   control alone; the daemon hangs up: a monitor holds nothing
 *
 * Invariant: a message of another length than its structure, or without the magic, is refused.
 * The daemon never blocks on the socket; a hello must come within STOUP_HELLO_TIMEOUT_NS.
 */
#ifndef STOUP_SHM_WIRE_H
#define STOUP_SHM_WIRE_H

#include <stdint.h>
#include "shm/abi.h"
#include "shm/stoup_types.h"

#define STOUP_WIRE_HELLO   1u
#define STOUP_WIRE_REPLY   2u
#define STOUP_WIRE_VOLUMES 3u /* both ways */
#define STOUP_WIRE_FORK    4u /* both ways */
#define STOUP_WIRE_FORMER  5u /* asked; the answer is a FORK */
#define STOUP_WIRE_FILE    6u /* both ways */
#define STOUP_WIRE_PIN     7u /* both ways; to daemons of minor 3 alone */

/* Flags of a hello. */
#define STOUP_HELLO_MONITOR 0x1u /* wants to look, not to lease: the control object alone */
#define STOUP_HELLO_CHILD   0x2u /* `ticket` is what the parent got before the fork */

/* Flags of a reply. */
#define STOUP_REPLY_ASKS 0x1u /* the consumer has a quota: each lease is to be asked for */
#define STOUP_REPLY_QUOTA_SHIFT                                                                    \
	8u /* with ASKS: from this bit on, the quota's row in the control object */

/* Questions about pins. All may list them; the daemon's own user and root alone may change them. */
#define STOUP_PIN_ADD       1u /* keep the blocks of `text` in [from_ns, to_ns), all of them or none */
#define STOUP_PIN_DROP      2u /* those of `text`, of all series where it is empty */
#define STOUP_PIN_DROP_SAME 3u /* that of `text` with this very range */
#define STOUP_PIN_LIST      4u /* number `idx`, counted from 0 */

/* Flags of a question for volumes. */
#define STOUP_VOLUMES_NEWEST 0x1u /* move this consumer to the newest snapshot first */

#define STOUP_WIRE_FD_CONTROL  0u
#define STOUP_WIRE_FD_DATA     1u
#define STOUP_WIRE_FD_PAGE     2u
#define STOUP_WIRE_FD_DOORBELL 3u
#define STOUP_WIRE_FD_FIXED    4u  /* that many before the volumes */
#define STOUP_WIRE_VOLUME_CAP  32u /* volume descriptors in one message (the kernel allows 253) */
#define STOUP_WIRE_VOLUME_UNASKED                                                                  \
	4u /* up to that many come with the reply; of more, none: pull them */
#define STOUP_WIRE_FD_CAP (STOUP_WIRE_FD_FIXED + STOUP_WIRE_VOLUME_CAP)

#define STOUP_HELLO_TIMEOUT_NS INT64_C(2000000000) /* a client that says nothing is dropped */

struct stoup_wire_hello {
	uint64_t magic; /* STOUP_HELLO_MAGIC */
	uint32_t kind;  /* STOUP_WIRE_HELLO */
	uint32_t abi_major, abi_minor;
	uint32_t flags;       /* STOUP_HELLO_* */
	uint64_t fingerprint; /* stoup_abi_fingerprint() */
	uint64_t ticket;      /* of STOUP_HELLO_CHILD; else 0 */
};

struct stoup_wire_reply {
	uint64_t magic;
	uint32_t kind; /* STOUP_WIRE_REPLY */
	int32_t error; /* 0, or a negative errno: then only `text` counts and no descriptor came */
	uint32_t abi_major, abi_minor;
	uint64_t fingerprint;
	uint8_t instance[16];
	uint64_t attach_no;
	uint32_t consumer_idx;
	uint32_t volume_cnt;   /* volumes of the snapshot, all in all */
	uint32_t volume_here;  /* descriptors of its first volumes in this message */
	uint32_t flags;        /* STOUP_REPLY_*; 0 from daemons of minor 2 */
	uint64_t snapshot_seq; /* of the snapshot that the volumes make up */
	char text[STOUP_ERROR_TEXT_CAP];
};

struct stoup_wire_volumes {
	uint64_t magic;
	uint32_t kind; /* STOUP_WIRE_VOLUMES */
	int32_t error;
	uint32_t
		first; /* asked: from this one of the snapshot on, counted from 0; answered: the same */
	uint32_t cnt;        /* answered: descriptors in this message; 0 = there are no more */
	uint32_t volume_cnt; /* answered: volumes of the snapshot */
	uint32_t flags;      /* asked: STOUP_VOLUMES_* */
	uint64_t
		snapshot_seq; /* answered: the snapshot; it changes only when NEWEST is asked for */
};

struct stoup_wire_fork {
	uint64_t magic;
	uint32_t kind;   /* STOUP_WIRE_FORK */
	int32_t error;   /* answered: 0, or why not */
	uint64_t ticket; /* asked: 0 = make a copy, else give that copy up; answered: the ticket.
			  * FORMER: attach_no of the attachment whose leases are to be copied */
};

struct stoup_wire_file {
	uint64_t magic;
	uint32_t kind; /* STOUP_WIRE_FILE */
	int32_t error; /* answered: 0 with one descriptor, or why not; -ENOTSUP: nothing in it can be mapped */
	uint32_t volume_idx; /* asked; answered: the same */
	uint32_t zero;
	uint8_t id[16]; /* of that volume, as its catalog has it: another one's is -ESTALE */
};

struct stoup_wire_pin {
	uint64_t magic;
	uint32_t kind; /* STOUP_WIRE_PIN */
	int32_t error; /* answered: 0, or why not: then only `text` and the numbers of all count */
	uint32_t op;   /* STOUP_PIN_*; answered: the same */
	uint32_t idx;  /* LIST: asked; answered: the same; -ENOENT: there are no more */
	uint32_t cnt;  /* answered: ADD 1, or 0 where it was there; DROP: how many */
	uint32_t left_cnt;             /* answered: of this pin, volumes that found no room */
	int64_t from_ns, to_ns;        /* keys; 0: open on that side */
	uint64_t block_cnt, bytes;     /* answered: of this pin, loaded or not */
	uint64_t all_bytes, cap_bytes; /* answered: of all pins, and how many it may be */
	uint32_t pin_cnt;              /* answered: pins in force */
	uint32_t lost_cnt; /* answered: those that ended with the daemon before, which was killed */
	char text
		[STOUP_PIN_NAME_CAP]; /* asked: a series, zeros behind it; answered: LIST the series, else empty or why not */
};

/* Send one packet with descriptors (fd_cnt may be 0). 0 or a negative errno; never raises SIGPIPE. */
int stoup_wire_send(int sock_fd, const void *msg, size_t len, const int *fds, uint32_t fd_cnt);

/* Receive one packet of at most cap bytes and at most fd_cap descriptors (close-on-exec). Returns its
 * length, 0 for hang-up, negative errno. A cut message: -EPROTO; descriptors cut for want of
 * numbers (ulimit -n): -EMFILE; all that came are closed. */
int64_t stoup_wire_recv(
	int sock_fd, void *msg, size_t cap, int *fds, uint32_t fd_cap, uint32_t *ret_fd_cnt);

/* Receive one packet of at most cap bytes from a peer that has no descriptors to give. Returns its length, 0
 * for hang-up, negative errno. A longer packet, or one with descriptors: -EPROTO, and it stays in the
 * socket: letting go of somebody's descriptor may wait for that somebody, so whoever closes the socket
 * must not be the one who may not wait. */
int64_t stoup_wire_recv_plain(int sock_fd, void *msg, size_t cap);

/* Name of the pool of a store's automatic daemon: device and inode of the store's directory. */
#define STOUP_AUTO_POOL_FMT    "auto-%llx-%llx"
#define STOUP_AUTO_POOL_PREFIX "auto-"

/* Directories where sockets and locks of the user live: 0 the session's own, "$XDG_RUNTIME_DIR/stoup" (or
 * /tmp/stoup-UID where that is unset); 1 the machine's, "/run/stoup"; 2 and 3 those where another session of the user
 * makes its own: a login "/run/user/UID/stoup", a cron job "/tmp/stoup-UID". -ENOENT past the end. */
#define STOUP_RUNTIME_DIR_CNT 4u
int stoup_runtime_dir(uint32_t idx, char *dst, size_t cap);

/* A pool's name: 1 to 48 of [A-Za-z0-9_.-], not beginning with '.' or '-'. 0 or -EINVAL with text. */
int stoup_pool_name_valid(const char *name, struct stoup_error *err);

_Static_assert(sizeof(struct stoup_wire_hello) == 40, "hello");
_Static_assert(sizeof(struct stoup_wire_reply) == 336, "reply");
_Static_assert(sizeof(struct stoup_wire_volumes) == 40, "volumes");
_Static_assert(sizeof(struct stoup_wire_fork) == 24, "fork");
_Static_assert(sizeof(struct stoup_wire_file) == 40, "file");
_Static_assert(sizeof(struct stoup_wire_pin) == 600, "pin");

#endif
