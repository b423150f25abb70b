/* SPDX-License-Identifier: Apache-2.0 */
/* preset_path.c - see preset_path.h. */
#include "producer/preset_path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "shm/timestamp.h"

#define SECOND_NS INT64_C(1000000000)
#define DAY_S     86400

/* ---- dates -------------------------------------------------------------------------------------- */

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int digits(const char *text, int cnt, int *ret)
{
	*ret = 0;
	for (int i = 0; i < cnt; i++) {
		if (!is_digit(text[i]))
			return -EINVAL;
		*ret = *ret * 10 + (text[i] - '0');
	}
	return 0;
}

int stoup_preset_date_parse(const char *text, size_t len, int64_t *ret_day)
{
	const struct stoup_timestamp_format iso = {.kind = STOUP_TIMESTAMP_ISO};
	const char *why;
	int64_t ns;

	if (len != 10 && len != 8)
		return -EINVAL;
	if (stoup_timestamp_parse(&iso, text, len, &ns, &why) < 0 || ns < 0)
		return -EINVAL;
	*ret_day = ns / (DAY_S * SECOND_NS);
	return 0;
}

/* ---- lengths ------------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	int64_t ns; /* 0: of no fixed length */
} units[] = {
	{"sec", SECOND_NS},
	{"min", 60 * SECOND_NS},
	{"mo", 0},
	{"M", 0},
	{"ms", SECOND_NS / 1000},
	{"s", SECOND_NS},
	{"m", 60 * SECOND_NS},
	{"h", 3600 * SECOND_NS},
	{"H", 3600 * SECOND_NS},
	{"d", DAY_S *SECOND_NS},
	{"D", DAY_S *SECOND_NS},
	{"w", 7 * DAY_S *SECOND_NS},
};

/* A unit of `len` bytes: its index, or -1. */
static int unit_find(const char *text, size_t len)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strlen(units[i].name) == len && memcmp(units[i].name, text, len) == 0)
			return (int)i;
	return -1;
}

/* "15m" or "M15" (there M is minutes). */
static int interval_parse(const char *text, size_t len, int64_t *ret_ns)
{
	int prefix = len > 1 && !is_digit(text[0]);
	size_t at = prefix ? 1 : 0;
	int64_t cnt = 0;
	int unit;

	for (; at < len && is_digit(text[at]); at++) {
		if (at > 5)
			return -EINVAL;
		cnt = cnt * 10 + (text[at] - '0');
	}
	if (cnt == 0 || (prefix && at != len))
		return -EINVAL;
	if (prefix)
		unit = unit_find(text[0] == 'M' ? "m" : text, 1);
	else
		unit = unit_find(text + at, len - at);
	if (unit < 0)
		return -EINVAL;
	*ret_ns = cnt * units[unit].ns;
	return 0;
}

void stoup_preset_interval(int64_t ns, char dst[STOUP_PRESET_INTERVAL_CAP])
{
	static const struct {
		const char *name;
		int64_t ns;
	} names[] = {{"d", DAY_S * SECOND_NS}, {"h", 3600 * SECOND_NS}, {"m", 60 * SECOND_NS},
		{"s", SECOND_NS}, {"ms", SECOND_NS / 1000}, {"us", 1000}, {"ns", 1}};
	size_t i = 0;

	while (ns % names[i].ns != 0)
		i++;
	snprintf(dst, STOUP_PRESET_INTERVAL_CAP, "%" PRId64 "%s", ns / names[i].ns, names[i].name);
}

/* ---- patterns ------------------------------------------------------------------------------------ */

struct text {
	const char *at, *end;
};

static int match(const char *pattern, struct text text, struct stoup_preset_path *ret);

static int copy(char *dst, const char *text, size_t len)
{
	if (len >= STOUP_PRESET_TEXT_CAP)
		return 0;
	memcpy(dst, text, len);
	dst[len] = '\0';
	return 1;
}

/* Take `len` bytes for one directive. */
static int take(char directive, const char *text, size_t len, struct stoup_preset_path *ret)
{
	int month, year;

	switch (directive) {
	case 's':
		return copy(ret->symbol, text, len);
	case 'e':
		return copy(ret->exchange, text, len);
	case 'i':
		ret->has_interval = interval_parse(text, len, &ret->interval_ns) == 0;
		return ret->has_interval;
	default:
		break;
	}
	if (len == 7 && text[4] == '-' && digits(text, 4, &year) == 0 &&
		digits(text + 5, 2, &month) == 0)
		return month >= 1 && month <= 12;
	ret->has_day = stoup_preset_date_parse(text, len, &ret->day) == 0;
	return ret->has_day;
}

static int match_directive(const char *pattern, struct text text, struct stoup_preset_path *ret)
{
	size_t have = (size_t)(text.end - text.at);

	for (size_t len = 1; len <= have; len++) {
		struct stoup_preset_path tried = *ret;

		if (take(pattern[1], text.at, len, &tried) &&
			match(pattern + 2, (struct text){text.at + len, text.end}, &tried)) {
			*ret = tried;
			return 1;
		}
	}
	return 0;
}

static int match(const char *pattern, struct text text, struct stoup_preset_path *ret)
{
	while (*pattern) {
		if (*pattern == '%')
			return match_directive(pattern, text, ret);
		if (*pattern == '*') {
			if (pattern[1] == '\0')
				return 1;
			for (; text.at <= text.end; text.at++)
				if (match(pattern + 1, text, ret))
					return 1;
			return 0;
		}
		if (text.at == text.end || *text.at != *pattern)
			return 0;
		text.at++;
		pattern++;
	}
	return text.at == text.end;
}

/* The last part of a path, without endings that say nothing. */
static struct text stem(const char *path)
{
	static const char *const endings[] = {
		".csv", ".txt", ".zip", ".gz", ".zst", ".xz", ".lz4", ".tsv"};
	const char *slash = strrchr(path, '/');
	struct text text = {slash ? slash + 1 : path, path + strlen(path)};

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t len = strlen(endings[i]);

		if ((size_t)(text.end - text.at) > len &&
			strncasecmp(text.end - len, endings[i], len) == 0) {
			text.end -= len;
			i = (size_t)-1;
		}
	}
	return text;
}

int stoup_preset_path_match(const char *pattern, const char *path, struct stoup_preset_path *ret)
{
	*ret = (struct stoup_preset_path){0};
	return match(pattern, stem(path), ret);
}
