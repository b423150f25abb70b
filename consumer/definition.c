/* SPDX-License-Identifier: Apache-2.0 */
/* definition.c - what was known of an instrument at a time.
 *
 *      SYMBOL/definition, -v2, -v1 (and .ts_out) --backward from the time--> the last record of each
 *                                                      --the latest--> fields by name --> struct stoup_instrument
 *
 * Fields are found by name, so that layouts that add or move some are read as well.
 *
 * Invariant: a record that is later than the asked time is never looked at.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "consumer/client.h"
#include "consumer/instrument.h"
#include "shm/format.h"

#define SIZE_OF(member) sizeof(((struct stoup_instrument *)0)->member)
/* What the struct was when it first came: shorter ones are a mistake. */
#define FIRST_LEN (offsetof(struct stoup_instrument, unit_of_measure) + SIZE_OF(unit_of_measure))
#define MEMBER(name, kind)                                                                         \
	{                                                                                          \
#name, offsetof(struct stoup_instrument, name), SIZE_OF(name),                     \
			STOUP_MEMBER_##kind, 0, 0                                                  \
	}
#define NULLABLE(name, kind, undefined)                                                            \
	{                                                                                          \
#name, offsetof(struct stoup_instrument, name), SIZE_OF(name),                     \
			STOUP_MEMBER_##kind, (uint64_t)(undefined), 1                              \
	}

const struct stoup_member stoup_members[] = {
	MEMBER(raw_symbol, TEXT),
	MEMBER(instrument_id, UINT),
	MEMBER(raw_instrument_id, UINT),
	MEMBER(publisher_id, UINT),
	MEMBER(channel_id, UINT),
	NULLABLE(ts_event, TIME, UINT64_MAX),
	NULLABLE(expiration, TIME, UINT64_MAX),
	NULLABLE(activation, TIME, UINT64_MAX),
	MEMBER(instrument_class, CHAR),
	NULLABLE(min_price_increment, PRICE, INT64_MAX),
	NULLABLE(min_price_increment_amount, PRICE, INT64_MAX),
	NULLABLE(display_factor, PRICE, INT64_MAX),
	NULLABLE(unit_of_measure_qty, PRICE, INT64_MAX),
	MEMBER(unit_of_measure, TEXT),
	NULLABLE(contract_multiplier, INT, INT32_MAX),
	NULLABLE(original_contract_size, INT, INT32_MAX),
	NULLABLE(contract_multiplier_unit, INT, INT8_MAX),
	NULLABLE(strike_price, PRICE, INT64_MAX),
	MEMBER(strike_price_currency, TEXT),
	MEMBER(currency, TEXT),
	MEMBER(settl_currency, TEXT),
	MEMBER(exchange, TEXT),
	MEMBER(asset, TEXT),
	MEMBER(group, TEXT),
	MEMBER(security_type, TEXT),
	MEMBER(secsubtype, TEXT),
	MEMBER(cfi, TEXT),
	MEMBER(underlying, TEXT),
	MEMBER(underlying_id, UINT),
	NULLABLE(maturity_year, UINT, UINT16_MAX),
	NULLABLE(maturity_month, UINT, UINT8_MAX),
	NULLABLE(maturity_day, UINT, UINT8_MAX),
	NULLABLE(maturity_week, UINT, UINT8_MAX),
	NULLABLE(price_ratio, PRICE, INT64_MAX),
	NULLABLE(high_limit_price, PRICE, INT64_MAX),
	NULLABLE(low_limit_price, PRICE, INT64_MAX),
	NULLABLE(max_price_variation, PRICE, INT64_MAX),
	NULLABLE(trading_reference_price, PRICE, INT64_MAX),
	NULLABLE(main_fraction, UINT, UINT8_MAX),
	NULLABLE(sub_fraction, UINT, UINT8_MAX),
	NULLABLE(price_display_format, UINT, UINT8_MAX),
	NULLABLE(market_depth, INT, INT32_MAX),
	NULLABLE(market_depth_implied, INT, INT32_MAX),
	NULLABLE(min_lot_size, INT, INT32_MAX),
	NULLABLE(min_lot_size_block, INT, INT32_MAX),
	NULLABLE(min_lot_size_round_lot, INT, INT32_MAX),
	NULLABLE(min_trade_vol, UINT, UINT32_MAX),
	NULLABLE(max_trade_vol, UINT, UINT32_MAX),
	MEMBER(market_segment_id, UINT),
	NULLABLE(inst_attrib_value, INT, INT32_MAX),
	MEMBER(match_algorithm, CHAR),
	MEMBER(user_defined_instrument, CHAR),
	MEMBER(security_update_action, CHAR),
	MEMBER(leg_count, UINT),
	MEMBER(leg_index, UINT),
	{NULL, 0, 0, STOUP_MEMBER_INT, 0, 0},
};

/* ---- one record ------------------------------------------------------------------------------- */

static uint64_t integer_of(const struct stoup_field *field, const uint8_t *record)
{
	uint32_t len = stoup_type_len(field->type);
	uint64_t bits = 0;
	int is_signed = field->type == STOUP_TYPE_I8 || field->type == STOUP_TYPE_I16 ||
	                field->type == STOUP_TYPE_I32 || field->type == STOUP_TYPE_I64;

	memcpy(&bits, record + field->off, len);
	if (is_signed && len < 8 && bits >> (8 * len - 1))
		bits |= UINT64_MAX << (8 * len);
	return bits;
}

/* A text keeps what the member has room for, and its NUL. */
static void take_text(const struct stoup_member *member, const struct stoup_field *field,
	const uint8_t *record, uint8_t *dst)
{
	uint32_t len = field->cnt < member->len ? field->cnt : member->len - 1;

	memcpy(dst, record + field->off, strnlen((const char *)record + field->off, len));
}

static void take_record(
	const struct stoup_schema *schema, const uint8_t *record, struct stoup_instrument *ret)
{
	memset(ret, 0, sizeof(*ret));
	memcpy(&ret->key, record + schema->key_off, sizeof(ret->key));
	for (const struct stoup_member *member = stoup_members; member->name; member++) {
		const struct stoup_field *field = stoup_schema_field(schema, member->name);
		uint8_t *dst = (uint8_t *)ret + member->off;
		uint64_t bits = member->undefined;

		if (member->kind == STOUP_MEMBER_TEXT) {
			if (field && field->type == STOUP_TYPE_CHAR)
				take_text(member, field, record, dst);
			continue;
		}
		if (field && field->type == STOUP_TYPE_CHAR)
			bits = record[field->off];
		else if (field && field->type <= STOUP_TYPE_I64)
			bits = integer_of(field, record);
		memcpy(dst, &bits, member->len);
	}
}

/* ---- the latest ------------------------------------------------------------------------------- */

/* The last record of a series at or before key_ns: 1, 0: there is none. */
static int last_of(struct stoup *st, const struct stoup_series *series, int64_t key_ns,
	struct stoup_instrument *ret, struct stoup_error *err)
{
	struct stoup_range range = {
		.to_ns = key_ns == INT64_MAX ? 0 : key_ns + 1, .flags = STOUP_BACKWARD};
	struct stoup_cursor *cur;
	struct stoup_span span;
	int rc = stoup_scan(st, series, &range, &cur, err);

	if (rc < 0)
		return rc;
	rc = stoup_next(cur, &span);
	if (rc > 0)
		take_record(span.schema,
			(const uint8_t *)span.base + (span.record_cnt - 1) * span.stride, ret);
	if (rc < 0)
		stoup_error_set(err, rc, "%s", stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
	return rc;
}

static int not_yet(const char *symbol, int64_t key_ns, int64_t first_key, struct stoup_error *err)
{
	char first[STOUP_FORMAT_CAP], asked[STOUP_FORMAT_CAP];

	stoup_format_time(first_key, first);
	stoup_format_time(key_ns, asked);
	return stoup_error_set(err, -ENODATA,
		"%.100s: no definition at or before %s; the first one is of %s", symbol, asked,
		first);
}

/* Newest version first: of equal keys it is taken. */
static const struct {
	const char *schema;
	uint8_t version;
} series_names[] = {{"definition", 3}, {"definition.ts_out", 3}, {"definition-v2", 2},
	{"definition-v2.ts_out", 2}, {"definition-v1", 1}, {"definition-v1.ts_out", 1}};

static int latest_of(struct stoup *st, const char *symbol, int64_t key_ns,
	struct stoup_instrument *ret, struct stoup_error *err)
{
	int64_t first_key = INT64_MAX;
	int found = 0, is_there = 0;

	for (size_t i = 0; i < sizeof(series_names) / sizeof(series_names[0]); i++) {
		struct stoup_instrument one;
		struct stoup_series series;
		char name[512];
		int rc;

		if ((size_t)snprintf(name, sizeof(name), "%s/%s", symbol, series_names[i].schema) >=
			sizeof(name))
			return stoup_error_set(
				err, -EINVAL, "%.60s... is too long a symbol", symbol);
		rc = stoup_series_find(st, name, &series, NULL);
		if (rc == -ENOENT || (rc == 0 && series.record_cnt == 0))
			continue;
		if (rc < 0)
			return stoup_series_find(st, name, &series, err);
		is_there = 1;
		if (series.first_key < first_key)
			first_key = series.first_key;
		rc = last_of(st, &series, key_ns, &one, err);
		if (rc < 0)
			return rc;
		if (rc == 0 || (found && one.key <= ret->key))
			continue;
		one.version = series_names[i].version;
		*ret = one;
		found = 1;
	}
	if (found)
		return 0;
	if (is_there)
		return not_yet(symbol, key_ns, first_key, err);
	return stoup_error_set(err, -ENOENT,
		"%.120s has no definitions: there is none of its series definition, definition-v2 and "
		"definition-v1; ingest the definitions of its dataset",
		symbol);
}

int stoup_definition_at(struct stoup *st, const char *symbol, int64_t key_ns,
	struct stoup_instrument *ret, struct stoup_error *err)
{
	struct stoup_instrument found;
	size_t len;
	int rc;

	if (!st || !symbol || !ret || ret->struct_len < FIRST_LEN)
		return stoup_error_set(err, -EINVAL,
			"stoup_definition_at needs an attachment, a symbol, and ret->struct_len = "
			"sizeof(struct stoup_instrument)");
	if (key_ns <= 0)
		return stoup_error_set(err, -EINVAL,
			"%lld is no time of a definition: keys are later than 1970-01-01T00:00:00Z",
			(long long)key_ns);
	rc = latest_of(st, symbol, key_ns, &found, err);
	if (rc < 0)
		return rc;
	len = ret->struct_len;
	if (len > sizeof(found))
		memset((uint8_t *)ret + sizeof(found), 0, len - sizeof(found));
	found.struct_len = len;
	memcpy(ret, &found, len < sizeof(found) ? len : sizeof(found));
	return 0;
}
