/* SPDX-License-Identifier: Apache-2.0 */
/* csv_hint_time.c - see csv_hint_time.h. */
#include "producer/csv_hint_time.h"

#include <stdio.h>
#include <string.h>

#define SPELT_CAP 32 /* of a pattern: a date, a time of day with a fraction, what is between them */

/* A text is spelt as a pattern from its begin to its end. */
struct spell {
	const char *at, *end;
	char out[SPELT_CAP];
	size_t out_len;
	int ok;
};

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t digits(const struct spell *spell)
{
	const char *at = spell->at;

	while (at < spell->end && is_digit(*at))
		at++;
	return (size_t)(at - spell->at);
}

static void put(struct spell *spell, const char *text, size_t len)
{
	if (spell->out_len + len >= sizeof(spell->out)) {
		spell->ok = 0;
		return;
	}
	memcpy(spell->out + spell->out_len, text, len);
	spell->out_len += len;
	spell->out[spell->out_len] = '\0';
}

/* A field of so many digits (0: 1 to 9). */
static void field(struct spell *spell, const char *name, size_t len)
{
	size_t there = digits(spell);

	if (len ? there != len : there < 1 || there > 9)
		spell->ok = 0;
	put(spell, name, 2);
	spell->at += there;
}

/* One character as it stands, of those in `set`. */
static int literal(struct spell *spell, const char *set)
{
	if (!spell->ok || spell->at == spell->end || *spell->at == '\0' || !strchr(set, *spell->at))
		return 0;
	put(spell, spell->at, 1);
	spell->at++;
	return 1;
}

/* Three fields of a date with the same mark between them. */
static void date(struct spell *spell, const char *const names[3])
{
	char mark[2] = "";

	for (int i = 0; i < 3; i++) {
		if (i == 1 && spell->at < spell->end)
			mark[0] = *spell->at;
		if (i == 1 && mark[0] == '.' && names[0][1] == 'm') /* nobody writes it so */
			spell->ok = 0;
		if (i && !(strchr("./-", mark[0]) && literal(spell, mark)))
			spell->ok = 0;
		field(spell, names[i], names[i][1] == 'Y' ? 4 : 2);
	}
}

static void time_of_day(struct spell *spell)
{
	field(spell, "%H", 2);
	if (!literal(spell, ":"))
		spell->ok = 0;
	field(spell, "%M", 2);
	if (literal(spell, ":")) {
		field(spell, "%S", 2);
		if (literal(spell, ".,"))
			field(spell, "%f", 0);
	}
}

/* Does a pattern with the date's fields in this order read the text? */
static int spelt(const struct spell *from, const char *const names[3], struct spell *ret)
{
	struct stoup_timestamp_format format = {.kind = STOUP_TIMESTAMP_AUTO};
	const char *why;
	int64_t ns;

	*ret = *from;
	date(ret, names);
	if (ret->ok && ret->at < ret->end) {
		while (literal(ret, " ,T_-"))
			;
		time_of_day(ret);
	}
	if (!ret->ok || ret->at != ret->end ||
		stoup_timestamp_format_parse(ret->out, &format, NULL) < 0)
		return 0;
	return stoup_timestamp_parse(
		       &format, from->at, (size_t)(from->end - from->at), &ns, &why) == 0;
}

void stoup_csv_hint_time(const struct stoup_timestamp_format *format, const char *text, size_t len,
	char dst[STOUP_CSV_HINT_CAP])
{
	static const char *const orders[][3] = {
		{"%Y", "%m", "%d"}, {"%d", "%m", "%Y"}, {"%m", "%d", "%Y"}};
	struct spell from = {.at = text, .end = text + len, .ok = 1}, clock, found[3];
	size_t cnt = 0;

	dst[0] = '\0';
	if (format->kind != STOUP_TIMESTAMP_AUTO && format->kind != STOUP_TIMESTAMP_ISO)
		return;
	while (from.at < from.end && (*from.at == ' ' || *from.at == '\t'))
		from.at++;
	while (from.end > from.at && (from.end[-1] == ' ' || from.end[-1] == '\t'))
		from.end--;
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		cnt += (size_t)spelt(&from, orders[i], &found[cnt]);
	clock = from;
	time_of_day(&clock);
	if (cnt == 1)
		snprintf(dst, STOUP_CSV_HINT_CAP, "is a time of another form: --time-format '%s'",
			found[0].out);
	else if (cnt > 1)
		snprintf(dst, STOUP_CSV_HINT_CAP,
			"is a time of another form: --time-format '%s' or '%s'", found[0].out,
			found[1].out);
	else if (clock.ok && clock.at == clock.end)
		snprintf(dst, STOUP_CSV_HINT_CAP,
			"is a time of day alone: its date must be joined to it, in one column");
}
