/* SPDX-License-Identifier: Apache-2.0 */
/* cmd.c - reading sizes and durations, showing lengths and decimals. */
#include "producer/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

__extension__ typedef unsigned __int128 stoup_uint128;

#define NS_PER_S 1000000000LL

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{"", 1},
	{"B", 1},
	{"K", 1ull << 10},
	{"KB", 1ull << 10},
	{"KiB", 1ull << 10},
	{"M", 1ull << 20},
	{"MB", 1ull << 20},
	{"MiB", 1ull << 20},
	{"G", 1ull << 30},
	{"GB", 1ull << 30},
	{"GiB", 1ull << 30},
	{"T", 1ull << 40},
	{"TB", 1ull << 40},
	{"TiB", 1ull << 40},
	{NULL, 0},
};

static const struct unit duration_units[] = {
	{"ns", 1},
	{"us", 1000},
	{"ms", 1000000},
	{"s", (uint64_t)NS_PER_S},
	{"m", 60 * (uint64_t)NS_PER_S},
	{"h", 3600 * (uint64_t)NS_PER_S},
	{"d", 86400 * (uint64_t)NS_PER_S},
	{NULL, 0},
};

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "DIGITS[.DIGITS]UNIT" to an integer of the smallest unit; what a fraction leaves below that is
 * refused, so that no text is silently rounded. */
static int number_parse(const char *text, const struct unit *units, uint64_t *ret)
{
	stoup_uint128 value = 0, scale = 1;
	const char *p = text;
	const struct unit *unit;

	if (!is_digit(*p))
		return -EINVAL;
	for (; is_digit(*p); p++) {
		value = value * 10 + (unsigned)(*p - '0');
		if (value > INT64_MAX)
			return -ERANGE;
	}
	if (*p == '.') {
		if (!is_digit(p[1]))
			return -EINVAL;
		for (p++; is_digit(*p); p++) {
			if (scale >= 1000000000000ull)
				return -EINVAL;
			value = value * 10 + (unsigned)(*p - '0');
			scale *= 10;
		}
	}
	if (*p == '\0' && value == 0) {
		*ret = 0;
		return 0;
	}
	for (unit = units; unit->name && strcmp(unit->name, p) != 0; unit++)
		;
	if (!unit->name)
		return -EINVAL;
	value *= unit->factor;
	if (value % scale != 0)
		return -EINVAL;
	value /= scale;
	if (value > INT64_MAX)
		return -ERANGE;
	*ret = (uint64_t)value;
	return 0;
}

int stoup_size_parse(const char *text, uint64_t *ret_len)
{
	char upper[64];
	size_t i, len = strlen(text);

	if (len >= sizeof(upper))
		return -EINVAL;
	/* 64k and 64K mean the same; there is no smaller unit that a small letter could mean. */
	for (i = 0; i <= len; i++) {
		char c = text[i];

		upper[i] = c == 'k' || c == 'm' || c == 'g' || c == 't' || c == 'b'
		                   ? (char)(c - 'a' + 'A')
		                   : c;
	}
	return number_parse(upper, size_units, ret_len);
}

int stoup_duration_parse(const char *text, int64_t *ret_ns)
{
	uint64_t value;
	int rc = number_parse(text, duration_units, &value);

	if (rc == 0)
		*ret_ns = (int64_t)value;
	return rc;
}

void stoup_duration_format(int64_t ns, char ret_text[STOUP_DURATION_TEXT_CAP])
{
	uint64_t v = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	uint64_t s = v / NS_PER_S;
	const char *sign = ns < 0 ? "-" : "";

	if (v < 1000)
		snprintf(ret_text, STOUP_DURATION_TEXT_CAP, "%s%" PRIu64 " ns", sign, v);
	else if (v < 1000000)
		snprintf(ret_text, STOUP_DURATION_TEXT_CAP, "%s%.3g us", sign, (double)v / 1e3);
	else if (v < NS_PER_S)
		snprintf(ret_text, STOUP_DURATION_TEXT_CAP, "%s%.3g ms", sign, (double)v / 1e6);
	else if (s < 60)
		snprintf(ret_text, STOUP_DURATION_TEXT_CAP, "%s%.3g s", sign, (double)v / 1e9);
	else if (s < 86400)
		snprintf(ret_text, STOUP_DURATION_TEXT_CAP,
			"%s%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64, sign, s / 3600, s / 60 % 60,
			s % 60);
	else
		snprintf(ret_text, STOUP_DURATION_TEXT_CAP,
			"%s%" PRIu64 " d %02" PRIu64 ":%02" PRIu64 ":%02" PRIu64, sign, s / 86400,
			s / 3600 % 24, s / 60 % 60, s % 60);
}

void stoup_size_format(uint64_t len, char ret_text[STOUP_SIZE_TEXT_CAP])
{
	static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)len / 1024;
	size_t i = 0;

	if (len < 1024) {
		snprintf(ret_text, STOUP_SIZE_TEXT_CAP, "%" PRIu64 " B", len);
		return;
	}
	while (value >= 1024 && i + 1 < sizeof(names) / sizeof(names[0])) {
		value /= 1024;
		i++;
	}
	snprintf(ret_text, STOUP_SIZE_TEXT_CAP, value < 100 ? "%.1f %s" : "%.0f %s", value,
		names[i]);
}

void stoup_decimal_format(stoup_int128 integer, int exp10, char ret_text[STOUP_DECIMAL_TEXT_CAP])
{
	/* The most negative value has no positive counterpart: negate as unsigned. */
	stoup_uint128 v = integer < 0 ? 0 - (stoup_uint128)integer : (stoup_uint128)integer;
	char digits[172]; /* reversed */
	size_t cnt = 0, point = exp10 < 0 ? (size_t)-exp10 : 0, drop = 0, out = 0, i;

	for (; exp10 > 0 && v != 0; exp10--)
		digits[cnt++] = '0';
	for (; v != 0; v /= 10)
		digits[cnt++] = (char)('0' + (unsigned)(v % 10));
	while (cnt <= point)
		digits[cnt++] = '0';
	while (drop < point && digits[drop] == '0')
		drop++;
	if (integer < 0)
		ret_text[out++] = '-';
	for (i = cnt; i > drop; i--) {
		if (i == point)
			ret_text[out++] = '.';
		ret_text[out++] = digits[i - 1];
	}
	ret_text[out] = '\0';
}

void stoup_process_prepare(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
	signal(SIGXFSZ, SIG_IGN);
}
