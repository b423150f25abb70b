/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - what of this machine a pool needs: looked at without a daemon, line by line.
 *
 *      stoup check --size 8G ticks/
 *             |
 *             +--> probes: each looks at one thing and says one line (or some)
 *                    ok | warning | problem    name    found    wanted    mend
 *
 * A problem keeps stoupd from starting, or somebody from attaching. A warning costs speed, or safety. A line that
 * is not ok names the command that mends it.
 *
 * Invariant: nothing of the machine is changed, and no consumer is made. A ring, an inotify instance and some
 * MiB of memory are had for a moment, since only that tells whether they are to be had.
 *
 * Files that are looked at have paths below `root`, which is empty but in tests. What others wrote (control
 * objects, names in shared directories) is copied before it is looked at, and believed in nothing but words.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_PRODUCER_CHECK_H
#define STOUP_PRODUCER_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include "producer/store.h"

enum stoup_check_level {
	STOUP_CHECK_OK,
	STOUP_CHECK_WARNING,
	STOUP_CHECK_PROBLEM,
};

#define STOUP_CHECK_LINE_CAP 96u /* of a check; what does not fit is counted in the last one */
#define STOUP_CHECK_TEXT_CAP 512u

struct stoup_check_line {
	enum stoup_check_level level;
	const char *name; /* static */
	char found[STOUP_CHECK_TEXT_CAP];
	char wanted[STOUP_CHECK_TEXT_CAP]; /* empty where nothing is */
	char mend[STOUP_CHECK_TEXT_CAP];   /* empty where all is well */
};

struct stoup_check {
	const char *root; /* in front of each path; "" */
	uint64_t pool_len;
	uint32_t backing; /* STOUP_BACKING_* */
	int mlock;
	const char *pool;       /* name, or NULL */
	const char *store_path; /* or NULL */
	struct stoup_store *store;
	char container[24];    /* "docker", "podman", "a container"; empty: not seen to be in one */
	int pool_lives;        /* the pool that was named has its memory already */
	uint64_t pool_has_len; /* then: bytes of it */
	uint32_t line_cnt;
	struct stoup_check_line lines[STOUP_CHECK_LINE_CAP];
};

/* ---- lines ------------------------------------------------------------------------------------ */

/* The next line, with empty texts. Never NULL. */
struct stoup_check_line *stoup_check_line(
	struct stoup_check *c, const char *name, enum stoup_check_level level);

void stoup_check_found(struct stoup_check_line *line, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void stoup_check_wanted(struct stoup_check_line *line, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void stoup_check_mend(struct stoup_check_line *line, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

uint32_t stoup_check_count(const struct stoup_check *c, enum stoup_check_level level);
void stoup_check_print(const struct stoup_check *c, FILE *out);
void stoup_check_print_json(const struct stoup_check *c, FILE *out);

/* ---- files below the root --------------------------------------------------------------------- */

/* Root and path in `dst`, of PATH_MAX bytes. */
const char *stoup_check_path(const struct stoup_check *c, const char *path, char *dst);

/* The first bytes of a file, ended by NUL, without the end of the last line. Their count or a negative errno. */
int stoup_check_read(const struct stoup_check *c, const char *path, char *dst, size_t cap);

/* The number behind `key` at the beginning of a line ("": of the first); UINT64_MAX where there is none. */
uint64_t stoup_check_number(const struct stoup_check *c, const char *path, const char *key);

/* ---- probes, in the order of their lines ------------------------------------------------------ */

void stoup_check_container(struct stoup_check *c); /* first: others word their advice by it */
void stoup_check_store(struct stoup_check *c);     /* opens c->store */
void stoup_check_pools(struct stoup_check *c);     /* sockets and control objects */
void stoup_check_memory(struct stoup_check *c);
void stoup_check_kernel(struct stoup_check *c);
void stoup_check_access(struct stoup_check *c);

#endif
