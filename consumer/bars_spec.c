/* SPDX-License-Identifier: Apache-2.0 */
/* bars_spec.c - what bars are wanted: specs as texts and as structs, steps in the units of the records, and the
 * schema of what comes out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/bars.h"
#include "shm/decimal.h"

#define SPEC_LEN     sizeof(struct stoup_bars_spec) /* of the first release */
#define STEP_EXP10   18
#define STEP_BIT_CAP 126 /* what a sum can pass its step by still fits 128 bits */
#define TEXT_CAP     64

/* ---- texts ------------------------------------------------------------------------------------ */

static const struct unit {
	const char *name;
	uint32_t kind;
	int64_t ns;
} units[] = {
	{"ns", STOUP_BARS_TIME, 1},
	{"us", STOUP_BARS_TIME, 1000},
	{"ms", STOUP_BARS_TIME, 1000000},
	{"s", STOUP_BARS_TIME, 1000000000},
	{"m", STOUP_BARS_TIME, INT64_C(60) * 1000000000},
	{"h", STOUP_BARS_TIME, INT64_C(3600) * 1000000000},
	{"d", STOUP_BARS_TIME, INT64_C(86400) * 1000000000},
	{"w", STOUP_BARS_TIME, INT64_C(604800) * 1000000000},
	{"t", STOUP_BARS_TICK, 1},
	{"v", STOUP_BARS_VOLUME, 1},
	{"n", STOUP_BARS_NOTIONAL, 1},
};

static int text_refused(const char *text, const char *why, struct stoup_error *err)
{
	return stoup_error_set(err, -EINVAL,
		"bars '%.40s': %s. Write a number and a unit: 1m (ns us ms s m h d w), 1h+30m from half past on, 100t "
		"trades, 5000v volume, 1000000n notional",
		text, why);
}

/* The step of bars by volume: digits with a fraction, as integer and exponent of ten. */
static int step_decimal(const char *text, size_t len, uint64_t *ret, int32_t *ret_exp10)
{
	const char *point = memchr(text, '.', len);
	size_t decimals = point ? len - (size_t)(point - text) - 1 : 0;

	if (decimals > STEP_EXP10)
		return -EDOM;
	*ret_exp10 = -(int32_t)decimals;
	return stoup_decimal_parse_u64(text, len, *ret_exp10, ret);
}

static int spec_text(const char *text, struct stoup_bars_spec *ret, struct stoup_error *err)
{
	size_t len = strspn(text, "0123456789."), i = 0;
	const char *name = text + len;
	uint64_t step = 0;
	int32_t exp10 = 0;
	int rc;

	if (len == 0)
		return text_refused(text, "it does not begin with a number", err);
	if (*name == 0)
		return text_refused(text, "it has no unit", err);
	while (i < sizeof(units) / sizeof(units[0]) && strcmp(units[i].name, name) != 0)
		i++;
	if (i == sizeof(units) / sizeof(units[0]))
		return text_refused(text,
			strcmp(name, "M") == 0 || strcmp(name, "mo") == 0
				? "months have no fixed length"
				: "its unit is not known",
			err);
	if (units[i].kind < STOUP_BARS_VOLUME && memchr(text, '.', len))
		return text_refused(text, "a fraction is for volume and notional", err);
	rc = step_decimal(text, len, &step, &exp10);
	if (rc == -EINVAL)
		return text_refused(text, "its number can not be read", err);
	if (rc == 0 && step == 0)
		return text_refused(text, "the step is zero", err);
	if (rc == -EDOM)
		return text_refused(text, "it has more than 18 decimals", err);
	if (rc < 0 ||
		(units[i].kind < STOUP_BARS_VOLUME && (uint64_t)(INT64_MAX / units[i].ns) < step))
		return text_refused(text, "its number is too large", err);
	ret->kind = units[i].kind;
	ret->step = step * (uint64_t)units[i].ns;
	ret->step_exp10 = exp10;
	return 0;
}

static int len_refused(const struct stoup_bars_spec *spec, struct stoup_error *err)
{
	if (!spec)
		return stoup_error_set(err, -EINVAL, "no spec of bars was given");
	return stoup_error_set(err, -EINVAL,
		"spec.struct_len is %zu: set it to sizeof(struct stoup_bars_spec)",
		spec->struct_len);
}

/* "1h+30m": the part behind the sign is where bars by time open, beyond a multiple of their length. */
static int spec_shifted(
	const char *text, const char *plus, struct stoup_bars_spec *ret, struct stoup_error *err)
{
	struct stoup_bars_spec spec = *ret, shift = *ret;
	char step[TEXT_CAP];
	int rc;

	if ((size_t)(plus - text) >= sizeof(step))
		return text_refused(text, "its number can not be read", err);
	memcpy(step, text, (size_t)(plus - text));
	step[plus - text] = 0;
	rc = spec_text(step, &spec, err);
	if (rc == 0)
		rc = spec_text(plus + 1, &shift, err);
	if (rc < 0)
		return rc;
	if (spec.kind != STOUP_BARS_TIME || shift.kind != STOUP_BARS_TIME)
		return text_refused(text, "a shift is for bars by time, and a time itself", err);
	if (shift.step >= spec.step)
		return text_refused(text, "the shift is not shorter than the bar", err);
	spec.offset_ns = (int64_t)shift.step;
	*ret = spec;
	return 0;
}

int stoup_bars_spec_parse(const char *text, struct stoup_bars_spec *spec, struct stoup_error *err)
{
	const char *plus;

	if (!spec || spec->struct_len < SPEC_LEN)
		return len_refused(spec, err);
	if (!text)
		return stoup_error_set(err, -EINVAL, "no text of bars was given");
	plus = strchr(text, '+');
	return plus ? spec_shifted(text, plus, spec, err) : spec_text(text, spec, err);
}

/* ---- structs ---------------------------------------------------------------------------------- */

static int wish_names(
	const struct stoup_bars_spec *spec, struct stoup_bars_wish *ret, struct stoup_error *err)
{
	const char *const texts[5] = {
		spec->price, spec->size, spec->side, spec->action, spec->action_values};

	for (int i = 0; i < 5; i++) {
		if (!texts[i])
			continue;
		if (strlen(texts[i]) >= STOUP_FIELD_NAME_CAP)
			return stoup_error_set(err, -EINVAL,
				"the spec of bars names a field '%.40s...': names have at most %d bytes",
				texts[i], STOUP_FIELD_NAME_CAP - 1);
		ret->named[i] = 1;
		strcpy(ret->names[i], texts[i]);
	}
	if (ret->named[STOUP_BARS_PRICE] && ret->names[STOUP_BARS_PRICE][0] == 0)
		return stoup_error_set(err, -EINVAL, "bars need a price: name its field");
	if ((ret->names[STOUP_BARS_ACTION][0] == 0) != (ret->names[STOUP_BARS_VALUES][0] == 0))
		return stoup_error_set(err, -EINVAL,
			"spec.action and spec.action_values belong together: a field, and its bytes "
			"for trades");
	if (strlen(ret->names[STOUP_BARS_VALUES]) > STOUP_BARS_VALUE_CAP)
		return stoup_error_set(err, -EINVAL,
			"spec.action_values are %zu, at most %d are taken",
			strlen(ret->names[STOUP_BARS_VALUES]), STOUP_BARS_VALUE_CAP);
	return 0;
}

int stoup_bars_wish_take(
	const struct stoup_bars_spec *spec, struct stoup_bars_wish *ret, struct stoup_error *err)
{
	if (!spec || spec->struct_len < SPEC_LEN)
		return len_refused(spec, err);
	if (spec->kind < STOUP_BARS_TIME || spec->kind > STOUP_BARS_NOTIONAL)
		return stoup_error_set(err, -EINVAL, "spec.kind %u is no kind of bars", spec->kind);
	if ((spec->flags & ~(STOUP_BARS_FILL | STOUP_BARS_LAST)) || spec->zero)
		return stoup_error_set(err, -EINVAL,
			"spec.flags %#x are unknown: set the whole struct, unused members to 0",
			spec->flags);
	if (spec->kind != STOUP_BARS_TIME &&
		(spec->flags & STOUP_BARS_FILL || spec->offset_ns || spec->end_ns))
		return stoup_error_set(
			err, -EINVAL, "STOUP_BARS_FILL, offset_ns and end_ns are for bars by time");
	if (spec->step == 0 || (spec->kind == STOUP_BARS_TIME && spec->step > INT64_MAX))
		return stoup_error_set(err, -EINVAL,
			"spec.step %llu is not between 1 and what a time holds",
			(unsigned long long)spec->step);
	if (spec->step_exp10 < (spec->kind < STOUP_BARS_VOLUME ? 0 : -STEP_EXP10) ||
		spec->step_exp10 > (spec->kind < STOUP_BARS_VOLUME ? 0 : STEP_EXP10))
		return stoup_error_set(err, -EINVAL,
			"spec.step_exp10 %d: from -%d to %d for volume and notional, else 0",
			spec->step_exp10, STEP_EXP10, STEP_EXP10);
	*ret = (struct stoup_bars_wish){.kind = spec->kind,
		.flags = spec->flags,
		.step = spec->step,
		.step_exp10 = spec->step_exp10,
		.offset_ns = spec->offset_ns,
		.end_ns = spec->end_ns};
	return wish_names(spec, ret, err);
}

/* ---- by the records --------------------------------------------------------------------------- */

/* The step as a count of 10^exp10. */
static int step_scale(struct stoup_bars *bars, int exp10, struct stoup_error *err)
{
	stoup_uwide step = bars->wish.step;
	int shift = bars->wish.step_exp10 - exp10;

	for (; shift < 0 && step % 10 == 0; shift++)
		step /= 10;
	if (shift < 0)
		return stoup_error_set(err, -EINVAL,
			"the step of bars, %llu * 10^%d, is finer than the records, which count 10^%d",
			(unsigned long long)bars->wish.step, bars->wish.step_exp10, exp10);
	for (; shift > 0 && step >> STEP_BIT_CAP == 0; shift--)
		if (__builtin_mul_overflow(step, 10, &step))
			break;
	if (shift > 0 || step >> STEP_BIT_CAP)
		return stoup_error_set(err, -EINVAL,
			"the step of bars, %llu * 10^%d, is above 126 bits of records that count 10^%d",
			(unsigned long long)bars->wish.step, bars->wish.step_exp10, exp10);
	bars->step = step;
	return 0;
}

#define AT(member, kind)                                                                           \
	(uint32_t)((kind) ? offsetof(struct stoup_bar_record_f64, member)                          \
			  : offsetof(struct stoup_bar_record, member))

static struct stoup_field *field_add(
	struct stoup_bars *bars, const char *name, uint32_t off, uint8_t type, uint8_t flags)
{
	struct stoup_field *field = &bars->fields[bars->schema.field_cnt++];

	*field = (struct stoup_field){.off = off, .cnt = 1, .type = type, .flags = flags};
	strcpy(field->name, name);
	return field;
}

static void time_add(struct stoup_bars *bars, const char *name, uint32_t off, int key)
{
	struct stoup_field *field = field_add(bars, name, off, STOUP_TYPE_I64,
		(uint8_t)(STOUP_FIELD_TIME | (key ? STOUP_FIELD_KEY : 0)));

	strcpy(field->unit, "ns");
	if (key)
		bars->schema.key_off = off;
}

/* A price (i64) or a volume (u64); floats are undefined at NaN. */
static void number_add(struct stoup_bars *bars, const char *name, uint32_t off, uint8_t type,
	const struct stoup_bars_column *like)
{
	int in_double = bars->sources[0].is_float;
	struct stoup_field *field =
		field_add(bars, name, off, in_double ? STOUP_TYPE_F64 : type, STOUP_FIELD_NULL);

	field->exp10 = in_double ? 0 : like->exp10;
	field->null_bits = in_double                ? UINT64_C(0x7ff8000000000000)
	                   : type == STOUP_TYPE_I64 ? (uint64_t)INT64_MAX
	                                            : UINT64_MAX;
}

static void schema_make(struct stoup_bars *bars)
{
	const struct stoup_bars_source *source = &bars->sources[0];
	const struct stoup_bars_column *price = &source->price, *size = &source->size;
	struct stoup_schema *schema = &bars->schema;
	int f = source->is_float, by_time = bars->wish.kind == STOUP_BARS_TIME;

	*schema = (struct stoup_schema){
		.stride = f ? sizeof(struct stoup_bar_record_f64) : sizeof(struct stoup_bar_record),
		.align = 8,
		.flags = by_time ? STOUP_SCHEMA_BAR : 0,
		.interval_ns = by_time ? bars->wish.step : 0,
		.fields = bars->fields};
	strcpy(schema->name, f ? "trade-bar-f64" : "trade-bar");
	time_add(bars, "ts_open", AT(open_ns, f), by_time);
	time_add(bars, "ts_close", AT(close_ns, f), !by_time);
	time_add(bars, "ts_available", AT(available_ns, f), 0);
	number_add(bars, "open", AT(open, f), STOUP_TYPE_I64, price);
	number_add(bars, "high", AT(high, f), STOUP_TYPE_I64, price);
	number_add(bars, "low", AT(low, f), STOUP_TYPE_I64, price);
	number_add(bars, "close", AT(close, f), STOUP_TYPE_I64, price);
	number_add(bars, "volume", AT(volume, f), STOUP_TYPE_U64, size);
	number_add(bars, "buy_volume", AT(buy_volume, f), STOUP_TYPE_U64, size);
	number_add(bars, "sell_volume", AT(sell_volume, f), STOUP_TYPE_U64, size);
	field_add(bars, "count", AT(count, f), STOUP_TYPE_U64, 0);
	if (f)
		number_add(bars, "notional", offsetof(struct stoup_bar_record_f64, notional),
			STOUP_TYPE_I64, price);
	else
		field_add(bars, "notional", offsetof(struct stoup_bar_record, notional_low),
			STOUP_TYPE_BYTES, STOUP_FIELD_HIDDEN)
			->cnt = 16;
	number_add(bars, "vwap", AT(vwap, f), STOUP_TYPE_I64, price);
	field_add(bars, "first_ordinal", AT(first_ordinal, f), STOUP_TYPE_U64, 0);
	field_add(bars, "last_ordinal", AT(last_ordinal, f), STOUP_TYPE_U64, 0);
	field_add(bars, "partial", AT(partial, f), STOUP_TYPE_U8, 0);
	field_add(bars, "filled", AT(filled, f), STOUP_TYPE_U8, 0);
	schema->hash = stoup_schema_hash(schema);
}

int stoup_bars_scale(struct stoup_bars *bars, struct stoup_error *err)
{
	const struct stoup_bars_source *source = &bars->sources[0];
	int exp10 = source->has_size ? source->size.exp10 : 0, rc;

	bars->step = bars->wish.step;
	bars->f_step = stoup_decimal_double_u64(bars->wish.step, bars->wish.step_exp10);
	if (bars->wish.kind == STOUP_BARS_NOTIONAL)
		exp10 += source->price.exp10;
	if (bars->wish.kind >= STOUP_BARS_VOLUME && !source->is_float) {
		rc = step_scale(bars, exp10, err);
		if (rc < 0)
			return rc;
	}
	schema_make(bars);
	return 0;
}
