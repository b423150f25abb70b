/* SPDX-License-Identifier: Apache-2.0 */
/* preset_value.c - see preset_value.h. */
#include "producer/preset_value.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include "producer/csv_value.h"
#include "producer/preset.h"
#include "shm/decimal.h"

#define YEAR_1990_S UINT64_C(631152000)
#define YEAR_2100_S UINT64_C(4102444800)
#define DAY_NS      INT64_C(86400000000000)

/* Take the blanks off. */
static void trim(const char **text, size_t *len)
{
	while (*len && (**text == ' ' || **text == '\t')) {
		(*text)++;
		(*len)--;
	}
	while (*len && ((*text)[*len - 1] == ' ' || (*text)[*len - 1] == '\t'))
		(*len)--;
}

/* ---- epochs ------------------------------------------------------------------------------------- */

/* Digits alone, at most 19 of them: 0, or -EINVAL. */
static int whole(const char *text, size_t len, uint64_t *ret)
{
	uint64_t value = 0;

	if (len == 0 || len > 19)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		unsigned digit = (unsigned)(unsigned char)text[i] - '0';

		if (digit > 9)
			return -EINVAL;
		value = value * 10 + digit;
	}
	*ret = value;
	return 0;
}

/* The ranges of the units do not meet: each ends at 6.5 times its start, and the next is 1000 times on. */
static uint8_t unit_of(uint64_t value, uint64_t *ret_ns)
{
	uint64_t per_s = 1;

	for (uint8_t unit = STOUP_PRESET_UNIT_S; unit <= STOUP_PRESET_UNIT_NS;
		unit = (uint8_t)(unit << 1)) {
		if (value >= YEAR_1990_S * per_s && value < YEAR_2100_S * per_s) {
			*ret_ns = value * (UINT64_C(1000000000) / per_s);
			return unit;
		}
		per_s *= 1000;
	}
	return 0;
}

uint8_t stoup_preset_unit(const char *text, size_t len)
{
	uint64_t value, ns;

	trim(&text, &len);
	return whole(text, len, &value) == 0 ? unit_of(value, &ns) : 0;
}

const char *stoup_preset_unit_name(uint8_t unit)
{
	return unit == STOUP_PRESET_UNIT_S    ? "seconds"
	       : unit == STOUP_PRESET_UNIT_MS ? "milliseconds"
	       : unit == STOUP_PRESET_UNIT_US ? "microseconds"
	                                      : "nanoseconds";
}

static const char *unit_why(uint8_t unit)
{
	switch (unit) {
	case STOUP_PRESET_UNIT_S:
		return "looks like seconds, which this feed has not: if so, say --time-format s";
	case STOUP_PRESET_UNIT_MS:
		return "looks like milliseconds, which this feed has not: if so, say --time-format ms";
	case STOUP_PRESET_UNIT_US:
		return "looks like microseconds, which this feed has not: if so, say --time-format us";
	case STOUP_PRESET_UNIT_NS:
		return "looks like nanoseconds, which this feed has not: if so, say --time-format ns";
	default:
		return "is no time from 1990 to 2099 in any unit";
	}
}

static inline int read_epoch(const struct stoup_csv_bind *bind, uint8_t units, const char *text,
	size_t len, uint8_t *record, const char **ret_why)
{
	uint64_t value, ns = 0;
	uint8_t unit;

	trim(&text, &len);
	if (len == 0)
		return stoup_csv_value_null(bind->field, record, ret_why);
	if (whole(text, len, &value)) {
		*ret_why =
			"is no time: a count of units since 1970 is, without sign, point or letters "
			"(texts: --time-format iso)";
		return -EINVAL;
	}
	unit = unit_of(value, &ns);
	if (!(unit & units)) {
		*ret_why = unit_why(unit);
		return -ERANGE;
	}
	return stoup_csv_value_store(bind->field, ns, record, ret_why);
}

int stoup_preset_read_ms_us(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	return read_epoch(
		bind, STOUP_PRESET_UNIT_MS | STOUP_PRESET_UNIT_US, text, len, record, ret_why);
}

int stoup_preset_read_us(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	return read_epoch(bind, STOUP_PRESET_UNIT_US, text, len, record, ret_why);
}

int stoup_preset_read_day(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	int64_t ns;
	int rc;

	trim(&text, &len);
	rc = stoup_decimal_parse(text, len, -9, &ns);
	if (rc == 0 && (ns < 0 || ns >= DAY_NS))
		rc = -ERANGE;
	if (rc) {
		*ret_why = rc == -EDOM     ? "is finer than a nanosecond"
		           : rc == -EINVAL ? "is no number of seconds after midnight"
		                           : "is no second of a day (0 to 86399.999999999)";
		return rc;
	}
	return stoup_csv_value_store(bind->field, (uint64_t)(bind->base_ns + ns), record, ret_why);
}

/* ---- words --------------------------------------------------------------------------------------- */

int stoup_preset_read_word(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	const char *word = bind->column->words;

	trim(&text, &len);
	for (;;) {
		size_t word_len = strcspn(word, "|");

		if (word_len == len && strncasecmp(word, text, len) == 0) {
			record[bind->field->off] = (uint8_t)(*word - 'a' + 'A');
			return 0;
		}
		if (word[word_len] == '\0')
			break;
		word += word_len + 1;
	}
	*ret_why = bind->column->why;
	return -EINVAL;
}

int stoup_preset_read_bool(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	trim(&text, &len);
	if ((len == 4 && strncasecmp(text, "true", 4) == 0) || (len == 1 && *text == '1'))
		record[bind->field->off] = 1;
	else if ((len == 5 && strncasecmp(text, "false", 5) == 0) || (len == 1 && *text == '0'))
		record[bind->field->off] = 0;
	else {
		*ret_why = "is not true or false (or 1 or 0)";
		return -EINVAL;
	}
	return 0;
}

/* ---- numbers ------------------------------------------------------------------------------------- */

int stoup_preset_read_dummy(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	trim(&text, &len);
	if ((len == 10 && memcmp(text, "9999999999", 10) == 0) ||
		(len == 11 && memcmp(text, "-9999999999", 11) == 0))
		return stoup_csv_value_null(bind->field, record, ret_why);
	return stoup_csv_value_parse(bind->field, bind->format, text, len, record, ret_why);
}

int stoup_preset_read_dbn(const struct stoup_csv_bind *bind, const char *text, size_t len,
	uint8_t *record, const char **ret_why)
{
	int rc = stoup_csv_value_parse(bind->field, bind->format, text, len, record, ret_why);
	uint64_t bits;
	int64_t value;

	if (rc == 0 || !(bind->field->flags & STOUP_FIELD_NULL))
		return rc;
	trim(&text, &len);
	if (stoup_decimal_parse_u64(text, len, 0, &bits)) {
		if (stoup_decimal_parse(text, len, 0, &value))
			return rc;
		bits = (uint64_t)value;
	}
	if (bits != bind->field->null_bits)
		return rc;
	return stoup_csv_value_null(bind->field, record, ret_why);
}
