/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - see log.h. */
#include "producer/log.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shm/json.h"

#define SECOND_NS UINT64_C(1000000000)

static const char *const words[STOUP_LOG_DEBUG + 1] = {
	[STOUP_LOG_ERROR] = "error",
	[STOUP_LOG_WARNING] = "warning",
	[STOUP_LOG_INFO] = "info",
	[STOUP_LOG_DEBUG] = "debug",
};

/* The variable is inherited by those whose standard error is no longer the journal: the file decides. */
static int is_journal(void)
{
	const char *text = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return text && sscanf(text, "%llu:%llu", &dev, &ino) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

void stoup_log_init(struct stoup_log *log, const char *pool, enum stoup_log_level level)
{
	memset(log, 0, sizeof(*log));
	log->level = level == STOUP_LOG_DEFAULT ? STOUP_LOG_INFO : level;
	log->journal = is_journal();
	log->pool = pool;
}

static void put(const struct stoup_log *log, enum stoup_log_level level, const char *text)
{
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
	char line[640], mark[8] = "";
	int len;

	if (log->journal)
		snprintf(mark, sizeof(mark), "<%d>", (int)level);
	len = snprintf(line, sizeof(line) - 1, "%sstoupd[%s]: %s%s%s", mark, log->pool,
		level == STOUP_LOG_INFO ? "" : words[level], level == STOUP_LOG_INFO ? "" : ": ",
		text);
	if (len < 0)
		return;
	if ((size_t)len > sizeof(line) - 2)
		len = (int)sizeof(line) - 2;
	/* Paths may hold anything but '/' and NUL. */
	line[len] = 0;
	stoup_utf8_plain(line);
	line[len++] = '\n';
	/* A pipe polls writable while it has room for a whole page, so a shorter write can not block. */
	if (poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) &&
		write(STDERR_FILENO, line, (size_t)len) < 0)
		return;
}

static void tell_left_out(struct stoup_log *log, enum stoup_log_level level)
{
	char text[96];

	if (log->left_out[level] == 0)
		return;
	snprintf(text, sizeof(text),
		"lines left out: %u; stoup log %s shows each error with its count",
		log->left_out[level], log->pool);
	put(log, level, text);
	log->left_out[level] = 0;
}

void stoup_log_line(
	struct stoup_log *log, enum stoup_log_level level, uint64_t now_ns, const char *text)
{
	if (level > log->level)
		return;
	if (now_ns - log->since_ns[level] >= SECOND_NS) {
		tell_left_out(log, level);
		log->since_ns[level] = now_ns;
		log->cnt[level] = 0;
	}
	if (log->cnt[level]++ < STOUP_LOG_LINE_CAP)
		put(log, level, text);
	else
		log->left_out[level]++;
}

void stoup_log_tick(struct stoup_log *log, uint64_t now_ns)
{
	for (int level = 0; level <= STOUP_LOG_DEBUG; level++)
		if (log->left_out[level] > 0 && now_ns - log->since_ns[level] >= SECOND_NS)
			tell_left_out(log, (enum stoup_log_level)level);
}

int stoup_log_parse(const char *text, enum stoup_log_level *ret)
{
	for (int i = 0; i <= STOUP_LOG_DEBUG; i++)
		if (words[i] && strcmp(text, words[i]) == 0) {
			*ret = (enum stoup_log_level)i;
			return 0;
		}
	return -EINVAL;
}
