/* SPDX-License-Identifier: Apache-2.0 */
/* fields_op.c - values of a column to residuals: the inverse of a kernel, one pass per column.
 *
 *      value - reference --> offset from base | step | distance to the maximum --> / tick --> u
 *
 * Everything is modulo 2^width, so no value is out of reach; only the code 0 of an undefined value
 * can collide, and stoup_fields_op_fit refuses that.
 *
 * Concurrency: pure functions.
 */
#include "codec/fields.h"

#include <errno.h>
#include <string.h>

/* A walk over the values of a column in one mode. */
struct walk {
	uint64_t mask, before; /* before: value before, or maximum so far */
	unsigned drop;         /* 64 - bits of the width: for sign extension */
	int begun;
};

static struct walk walk_begin(uint8_t width)
{
	return (struct walk){.mask = UINT64_MAX >> (64 - 8 * width), .drop = 64u - 8u * width};
}

static uint64_t extend(const struct walk *walk, uint64_t value)
{
	return (uint64_t)((int64_t)(value << walk->drop) >> walk->drop);
}

/* The step to a value in mode STEP or PEAK, sign-extended. */
static uint64_t walk_step(struct walk *walk, uint8_t mode, uint64_t value)
{
	uint64_t step = extend(walk, value - walk->before);

	if (mode == STOUP_FIELDS_STEP || !(step >> 63))
		walk->before = value;
	return step;
}

static uint64_t fold(uint64_t step)
{
	return step << 1 ^ (0 - (step >> 63));
}

static int is_null(
	const struct stoup_fields_op *op, const struct stoup_fields_values *values, uint32_t i)
{
	return (op->flags & STOUP_FIELDS_NULL) && values->own[i] == op->null;
}

static uint64_t value_at(
	const struct walk *walk, const struct stoup_fields_values *values, uint32_t i)
{
	return (values->own[i] - (values->ref ? values->ref[i] : 0)) & walk->mask;
}

static uint64_t gcd_with(uint64_t a, uint64_t b)
{
	if (a == 1 || (a && b % a == 0))
		return a;
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* ---- fitting --------------------------------------------------------------------------------- */

struct range {
	uint64_t min, max;
};

/* Least and greatest value, as numbers of the sign under which they lie closer together; both
 * modulo the width. 0 where all are undefined. */
static int range_find(const struct stoup_fields_op *op, const struct stoup_fields_values *values,
	struct range *ret)
{
	struct walk walk = walk_begin(values->width);
	uint64_t flip = walk.mask ^ walk.mask >> 1; /* the sign bit */
	uint64_t min = UINT64_MAX, max = 0, smin = UINT64_MAX, smax = 0;

	for (uint32_t i = 0; i < values->cnt; i++) {
		uint64_t value, biased;

		if (is_null(op, values, i))
			continue;
		value = value_at(&walk, values, i);
		biased = value ^ flip;
		min = value < min ? value : min;
		max = value > max ? value : max;
		smin = biased < smin ? biased : smin;
		smax = biased > smax ? biased : smax;
	}
	if (min > max)
		return 0;
	*ret = smax - smin < max - min ? (struct range){smin ^ flip, smax ^ flip}
	                               : (struct range){min, max};
	return 1;
}

static uint32_t byte_cnt(uint64_t value)
{
	return value ? 8 - (uint32_t)__builtin_clzll(value) / 8 : 0;
}

static int fit_offset(struct stoup_fields_op *op, const struct stoup_fields_values *values)
{
	struct walk walk = walk_begin(values->width);
	uint64_t tick = 0, null = op->flags & STOUP_FIELDS_NULL ? 1 : 0, span;
	struct range range;

	if (!range_find(op, values, &range))
		return -ERANGE;
	for (uint32_t i = 0; i < values->cnt && tick != 1; i++) {
		if (!is_null(op, values, i))
			tick = gcd_with(tick, (value_at(&walk, values, i) - range.min) & walk.mask);
	}
	span = (range.max - range.min) & walk.mask;
	op->tick = tick > 1 ? tick : 1;
	if (span / op->tick + null > walk.mask)
		return -ERANGE;
	/* A base that saves no plane is left out: the bytes stay what they are. Without one, null
	 * would have no code of its own if all of them are used. */
	op->base = op->tick > 1 || byte_cnt(span) < byte_cnt(range.max) || range.max < range.min ||
	                           (null && range.max == walk.mask)
	                   ? range.min
	                   : 0;
	return 0;
}

static int fit_steps(struct stoup_fields_op *op, const struct stoup_fields_values *values)
{
	struct walk walk = walk_begin(values->width);
	uint64_t tick = 0, widest = 0;

	for (uint32_t i = 0; i < values->cnt; i++) {
		uint64_t value, step;

		if (is_null(op, values, i))
			continue;
		value = value_at(&walk, values, i);
		if (!walk.begun) {
			walk.begun = 1;
			op->base = walk.before = value;
		}
		step = walk_step(&walk, op->mode, value);
		widest = fold(step) > widest ? fold(step) : widest;
		if (tick != 1)
			tick = gcd_with(tick, step >> 63 ? 0 - step : step);
	}
	if (!walk.begun)
		return -ERANGE;
	op->tick = tick > 1 ? tick : 1;
	if ((op->flags & STOUP_FIELDS_NULL) && widest >= walk.mask)
		return -ERANGE;
	return 0;
}

int stoup_fields_op_fit(struct stoup_fields_op *op, const struct stoup_fields_values *values)
{
	int rc;

	op->base = 0;
	op->tick = 1;
	op->flags &= STOUP_FIELDS_REF | STOUP_FIELDS_NULL;
	rc = op->mode == STOUP_FIELDS_OFFSET ? fit_offset(op, values) : fit_steps(op, values);
	if (rc)
		return rc;
	if (op->base)
		op->flags |= STOUP_FIELDS_BASE;
	if (op->tick > 1)
		op->flags |= STOUP_FIELDS_TICK;
	return 0;
}

/* ---- residuals ------------------------------------------------------------------------------- */

/* An exact division by a constant: shift out its power of two, multiply by the inverse of the rest
 * modulo 2^64. */
struct divisor {
	uint64_t inverse;
	unsigned shift;
};

static struct divisor divisor_make(uint64_t tick)
{
	unsigned shift = (unsigned)__builtin_ctzll(tick);
	uint64_t odd = tick >> shift, inverse = odd; /* right in 3 bits, then in 6, 12, ... */

	for (int i = 0; i < 5; i++)
		inverse *= 2 - odd * inverse;
	return (struct divisor){inverse, shift};
}

static uint64_t divide(const struct divisor *divisor, uint64_t value)
{
	return (value >> divisor->shift) * divisor->inverse;
}

static uint64_t divide_signed(const struct divisor *divisor, uint64_t value)
{
	return (uint64_t)((int64_t)value >> divisor->shift) * divisor->inverse;
}

static void residuals_offset(const struct stoup_fields_op *op,
	const struct stoup_fields_values *values, uint64_t add, uint64_t *ret)
{
	struct walk walk = walk_begin(values->width);
	struct divisor divisor = divisor_make(op->tick);

	for (uint32_t i = 0; i < values->cnt; i++) {
		uint64_t value = (value_at(&walk, values, i) - op->base) & walk.mask;

		ret[i] = is_null(op, values, i) ? 0 : (divide(&divisor, value) + add) & walk.mask;
	}
}

static void residuals_steps(const struct stoup_fields_op *op,
	const struct stoup_fields_values *values, uint64_t add, uint64_t *ret)
{
	struct walk walk = walk_begin(values->width);
	struct divisor divisor = divisor_make(op->tick);

	walk.before = op->base;
	for (uint32_t i = 0; i < values->cnt; i++) {
		uint64_t step;

		if (is_null(op, values, i)) {
			ret[i] = 0;
			continue;
		}
		step = walk_step(&walk, op->mode, value_at(&walk, values, i));
		ret[i] = (fold(divide_signed(&divisor, step)) + add) & walk.mask;
	}
}

uint64_t stoup_fields_residuals(
	const struct stoup_fields_op *op, const struct stoup_fields_values *values, uint64_t *ret)
{
	uint64_t varying = 0, add = op->flags & STOUP_FIELDS_NULL ? 1 : 0;

	if (op->mode == STOUP_FIELDS_OFFSET)
		residuals_offset(op, values, add, ret);
	else
		residuals_steps(op, values, add, ret);
	for (uint32_t i = 1; i < values->cnt; i++)
		varying |= ret[i] ^ ret[0];
	return varying;
}
