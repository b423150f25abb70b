/* SPDX-License-Identifier: Apache-2.0 */
/* tool_args.c - see tool_args.h. */
#include "consumer/tool_args.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "consumer/tool_pool.h"
#include "shm/format.h"
#include "shm/timestamp.h"

int stoup_tool_time(const char *tool, const char *text, int64_t *ret)
{
	struct stoup_timestamp_format format = {.kind = STOUP_TIMESTAMP_AUTO};
	const char *why = "";
	int rc = stoup_timestamp_parse(&format, text, strlen(text), ret, &why);

	if (rc == 0 && *ret > 0)
		return 0;
	if (rc == 0)
		why = "is too early: keys are later than 1970-01-01T00:00:00Z";
	/* What stands behind a semicolon is for who ingests. */
	fprintf(stderr, "%s: '%s' %.*s; examples: 2024-06-03T14:30:00Z, 1717425000000000000\n",
		tool, text, (int)strcspn(why, ";"), why);
	return -EINVAL;
}

int stoup_tool_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	size_t len = strlen(text);
	uint64_t value;

	if (len < 1 || strspn(text, "0123456789") != len)
		return 0;
	errno = 0;
	value = strtoull(text, NULL, 10);
	if (errno || value < min || value > max)
		return 0;
	*ret = value;
	return 1;
}

int stoup_tool_seconds(const char *text, double min, double max, double *ret)
{
	double value;
	char *end;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || *end || errno || !(value >= min && value <= max))
		return 0;
	*ret = value;
	return 1;
}

void stoup_tool_nap(double seconds)
{
	struct timespec left = {.tv_sec = (time_t)seconds};

	left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

int stoup_tool_range_valid(const char *tool, const struct stoup_range *range)
{
	char from[STOUP_FORMAT_CAP], to[STOUP_FORMAT_CAP];

	if (range->from_ns == 0 || range->to_ns == 0 || range->from_ns <= range->to_ns)
		return 0;
	stoup_format_time(range->from_ns, from);
	stoup_format_time(range->to_ns, to);
	fprintf(stderr, "%s: --%s %s is later than --%s %s\n", tool,
		range->flags & STOUP_FROM_AFTER ? "after" : "from", from,
		range->flags & STOUP_TO_INCLUDED ? "until" : "to", to);
	return -EINVAL;
}

int stoup_tool_attach(const char *pool, uint32_t flags, struct stoup **ret, struct stoup_error *err)
{
	char path[PATH_MAX], beside[PATH_MAX];
	struct stoup_options opt;
	struct stat st;
	int rc;

	stoup_options_init(&opt);
	opt.flags = flags;
	if (!getenv("STOUPD") && stoup_daemon_beside(beside, sizeof(beside)))
		opt.daemon = beside;
	rc = stoup_attach(pool, &opt, ret, err);
	if (rc != -ENOENT || strchr(pool, '/') || stat(pool, &st) < 0 || !S_ISDIR(st.st_mode))
		return rc;
	snprintf(path, sizeof(path), "./%s/", pool);
	return stoup_attach(path, &opt, ret, err);
}

int stoup_tool_stdout(const char *tool)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	if (errno != EPIPE && errno != EINTR)
		fprintf(stderr, "%s: standard output: %s\n", tool,
			errno ? strerror(errno) : "writing failed");
	__fpurge(stdout);
	clearerr(stdout);
	return -EIO;
}

int stoup_tool_reader_gone(void)
{
	struct pollfd p = {.fd = STDOUT_FILENO};

	if (poll(&p, 1, 0) <= 0 || !(p.revents & (POLLERR | POLLHUP | POLLNVAL)))
		return 0;
	raise(SIGPIPE);
	return 1;
}
