/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - the daemon's lines on standard error: levels, the journal's marks, a bound on their rate.
 *
 *      stoupd[prices]: error: STORE/0001.stoup: block 7 at offset 4096: read: Input/output error
 *      <3>stoupd[prices]: error: ...                          where standard error is the journal
 *
 * One line per event, whatever bytes a text has. Of a level whose events come faster than they can be read, the lines
 * beyond STOUP_LOG_LINE_CAP in a second are left out, and their number is told; the control object's log has
 * each distinct error with its count all the same.
 *
 * Concurrency: the conductor's thread alone. A line is dropped where it could not be written at once: a full
 * pipe whose reader sleeps must not stop the pool.
 */
#ifndef STOUP_PRODUCER_LOG_H
#define STOUP_PRODUCER_LOG_H

#include <stdint.h>

/* The numbers of syslog(3), which the journal takes in front of a line. */
enum stoup_log_level {
	STOUP_LOG_DEFAULT = 0,
	STOUP_LOG_ERROR = 3,   /* something of the daemon's went wrong: data, memory, a store */
	STOUP_LOG_WARNING = 4, /* what a peer brought about: it was refused, or cut off */
	STOUP_LOG_INFO = 6,    /* start, end, snapshots */
	STOUP_LOG_DEBUG = 7,   /* who comes and goes */
};

#define STOUP_LOG_LINE_CAP 20u /* of one level in a second */

struct stoup_log {
	enum stoup_log_level level; /* up to this one lines are written */
	int journal;                /* standard error is the journal */
	const char *pool;           /* the caller's */
	uint64_t since_ns[STOUP_LOG_DEBUG + 1];
	uint32_t cnt[STOUP_LOG_DEBUG + 1], left_out[STOUP_LOG_DEBUG + 1];
};

/* DEFAULT is INFO. Looks at JOURNAL_STREAM. */
void stoup_log_init(struct stoup_log *log, const char *pool, enum stoup_log_level level);

/* Write one line; `now_ns` is CLOCK_MONOTONIC. */
void stoup_log_line(
	struct stoup_log *log, enum stoup_log_level level, uint64_t now_ns, const char *text);

/* Tell what was left out, where no line came since: a flood's end is no reason to keep its number. */
void stoup_log_tick(struct stoup_log *log, uint64_t now_ns);

/* "error", "warning", "info", "debug" to a level. 0 or -EINVAL. */
int stoup_log_parse(const char *text, enum stoup_log_level *ret);

#endif
