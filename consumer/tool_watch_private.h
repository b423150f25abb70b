/* SPDX-License-Identifier: Apache-2.0 */
/* tool_watch_private.h - what the parts of a look share: bounded copies, ages, the tables.
 *
 * `head` is always the private, checked copy of the superblock, `control` the shared object.
 */
#ifndef STOUP_CONSUMER_TOOL_WATCH_PRIVATE_H
#define STOUP_CONSUMER_TOOL_WATCH_PRIVATE_H

#include <stdint.h>
#include <string.h>
#include "consumer/tool_watch.h"
#include "shm/json.h"

#define STOUP_WATCH_COUNTER_CAP 1024u /* more than any release has: refused */

/* Age of a CLOCK_MONOTONIC moment; 0 for one that is not known or lies ahead. */
static inline uint64_t age_ns(const struct stoup_watch *watch, uint64_t then)
{
	return then == 0 || then > watch->taken_ns ? 0 : watch->taken_ns - then;
}

#define LOAD(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* Copy a text whose NUL may be missing, and which a process may have given itself: no terminal is commanded by it. */
#define TEXT(dst, src) text_copy(dst, sizeof(dst), src, sizeof(src))

static inline void text_copy(char *dst, size_t dst_cap, const char *src, size_t src_len)
{
	size_t len = src_len < dst_cap - 1 ? src_len : dst_cap - 1;

	memcpy(dst, src, len);
	memset(dst + len, 0, dst_cap - len);
	stoup_utf8_plain(dst);
	len = strlen(dst);
	/* What lies behind its end is nobody's text. */
	memset(dst + len, 0, dst_cap - len);
}

/* Do `cnt` rows from `off` on lie within `len` bytes? */
static inline int fits(uint64_t off, uint32_t cnt, size_t row, size_t len)
{
	return off % 8 == 0 && off <= len && (uint64_t)cnt * row <= len - off;
}

/* Each reads one table into *watch: 0 or -ENOMEM. */
int stoup_watch_counters_read(const struct stoup_control *control, const struct stoup_control *head,
	struct stoup_watch *watch);
int stoup_watch_consumers_read(const struct stoup_control *control,
	const struct stoup_control *head, struct stoup_watch *watch);
int stoup_watch_extents_read(const struct stoup_control *control, const struct stoup_control *head,
	struct stoup_watch *watch);
int stoup_watch_volumes_read(const struct stoup_control *control, const struct stoup_control *head,
	struct stoup_watch *watch);
int stoup_watch_errors_read(const struct stoup_control *control, const struct stoup_control *head,
	struct stoup_watch *watch);
int stoup_watch_histograms_read(const struct stoup_control *control,
	const struct stoup_control *head, struct stoup_watch *watch);
int stoup_watch_holders_read(const struct stoup_control *control, const struct stoup_control *head,
	struct stoup_watch *watch);
int stoup_watch_quotas_read(const struct stoup_control *control, const struct stoup_control *head,
	struct stoup_watch *watch);

#endif
