/* SPDX-License-Identifier: Apache-2.0 */
/* intake.c - see intake.h. */
#include "producer/intake.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include "shm/timestamp.h"

#define PATTERN_CAP 256

/* A pattern that is too long was refused with the option. */
int stoup_intake_match(const char *list, const char *name)
{
	const char *p = list;
	char pattern[PATTERN_CAP];

	for (;;) {
		size_t len = strcspn(p, ",");

		if (len < sizeof(pattern)) {
			memcpy(pattern, p, len);
			pattern[len] = '\0';
			if (fnmatch(pattern, name, FNM_NOESCAPE) == 0)
				return 1;
		}
		if (p[len] == '\0')
			return 0;
		p += len + 1;
	}
}

int stoup_intake_symbol(const struct stoup_intake *filter, const char *symbol)
{
	return !filter || !filter->symbols || stoup_intake_match(filter->symbols, symbol);
}

int stoup_intake_list_check(
	const char *option, const char *what, const char *value, struct stoup_error *err)
{
	const char *p = value;

	for (;;) {
		size_t len = strcspn(p, ",");

		if (len == 0 || len >= PATTERN_CAP)
			return stoup_error_set(err, -EINVAL,
				"--%s %.80s: %s; %s or patterns (* ? []) with commas between them",
				option, value,
				len == 0 ? "an empty pattern" : "a pattern of 256 bytes or more",
				what);
		if (p[len] == '\0')
			return 0;
		p += len + 1;
	}
}

static int time_option(const char *name, const char *value, int64_t *ret, struct stoup_error *err)
{
	const struct stoup_timestamp_format format = {.kind = STOUP_TIMESTAMP_AUTO};
	const char *why = "is no time";
	int64_t ns;

	if (stoup_timestamp_parse(&format, value, strlen(value), &ns, &why) < 0 || ns <= 0)
		return stoup_error_set(err, -EINVAL, "--%s %.60s %s, or ns since the epoch%s", name,
			value, why, strcmp(name, "to") == 0 ? " (or event64)" : "");
	*ret = ns;
	return 0;
}

int stoup_intake_option(
	struct stoup_intake *filter, const char *name, const char *value, struct stoup_error *err)
{
	int rc;

	if (strcmp(name, "symbols") == 0) {
		rc = stoup_intake_list_check(name, "symbols", value, err);
		if (rc == 0)
			filter->symbols = value;
		return rc;
	}
	if (strcmp(name, "from") == 0)
		return time_option(name, value, &filter->from_ns, err);
	if (strcmp(name, "to") == 0)
		return time_option(name, value, &filter->to_ns, err);
	return -ENOENT;
}
