/* SPDX-License-Identifier: Apache-2.0 */
/* chores.h - what could make the conductor wait for somebody else, done by a thread of its own.
 *
 *      conductor --close(fd)--> queue --> thread: close
 *                --look(pid)--> queue --> thread: /proc/PID/maps --> answer, read at a later tick
 *
 * A consumer's socket may hold, unread, descriptors that its peer sent: closing it lets go of them, and
 * letting go of a file of a hostile FUSE server, or of a TCP socket that lingers, waits. Reading a process's
 * memory map waits for whoever holds its lock. Neither may stop the pool,
 * nor each other: the daemon has one of these for closing and one for looking.
 *
 * Invariant: no function here waits for the thread, except destroy, and that not for long.
 *
 * Limits: STOUP_CHORE_CAP chores wait; a look beyond them is asked again later, and a descriptor beyond
 * them stays open until the daemon ends: new consumers may then be refused, attached ones are served.
 */
#ifndef STOUP_PRODUCER_CHORES_H
#define STOUP_PRODUCER_CHORES_H

#include <stdint.h>

#define STOUP_CHORE_CAP 1024u /* more than the default number of descriptors of a process */

struct stoup_chores;

/* look_cap: consumer places. daemon_pid is part of a page's label. 0 or a negative errno. */
int stoup_chores_create(uint32_t look_cap, uint32_t daemon_pid, struct stoup_chores **ret);
/* Accepts NULL. A thread that is stuck is left behind: the process ends anyway. */
void stoup_chores_destroy(struct stoup_chores *chores);

/* Shut a socket down now, and close it soon. */
void stoup_chores_close(struct stoup_chores *chores, int fd);

/* Ask whether process `pid` still maps the page of attachment attach_no at place idx. */
void stoup_chores_look(struct stoup_chores *chores, uint32_t idx, uint32_t pid, uint64_t attach_no);
/* The answer: 1 = yes, or it can not be known; 0 = no; -EAGAIN = not yet; -ENOENT = nobody asked. */
int stoup_chores_looked(struct stoup_chores *chores, uint32_t idx, uint64_t attach_no);

#endif
