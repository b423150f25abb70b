/* SPDX-License-Identifier: Apache-2.0 */
/* bars_source.c - which fields of a schema are price, size and side, and which records are trades.
 *
 *      spec names a field --> that one
 *      else the schema is known --> its row in the table
 *      else --> by usual names (prices, sizes, sides)
 *
 * The same table stands in stoup_bars.h for people.
 */
#include <errno.h>
#include "consumer/bars.h"

/* What is known of a schema. Codes of two fields: the first in the low byte. */
struct known {
	const char *schema, *price, *size;
	const char *action[2];
	uint64_t action_mask;
	struct stoup_bars_set trades;
	const char *side[2];
	uint64_t side_mask;
	struct stoup_bars_set buys, sells;
	int skip_zero;
};

#define PAIR(a, b) ((uint64_t)(uint8_t)(a) | (uint64_t)(uint8_t)(b) << 8)
#define ANY_BITS   UINT64_C(0xffff)

/* Fields, action and side of the DBN kinds that have trades; side is whose order came last. */
#define DBN(name)                                                                                  \
	{                                                                                          \
		.schema = name, .price = "price", .size = "size", .action = {"action"},            \
		.action_mask = ANY_BITS, .trades = {{'T'}, 1}, .side = {"side"},                   \
		.side_mask = ANY_BITS, .buys = {{'B'}, 1}, .sells = {                              \
			{'A'},                                                                     \
			1                                                                          \
		}                                                                                  \
	}
/* A buyer who was there before means that the seller began. */
#define BINANCE(name, size_name)                                                                   \
	{                                                                                          \
		.schema = name, .price = "price", .size = size_name, .side = {"is_buyer_maker"},   \
		.side_mask = ANY_BITS, .buys = {{0}, 1}, .sells = {                                \
			{1},                                                                       \
			1                                                                          \
		}                                                                                  \
	}
#define TARDIS(name)                                                                               \
	{                                                                                          \
		.schema = name, .price = "price", .size = "amount", .side = {"side"},              \
		.side_mask = ANY_BITS, .buys = {{'B'}, 1}, .sells = {                              \
			{'S'},                                                                     \
			1                                                                          \
		}                                                                                  \
	}

static const struct known table[] = {
	DBN("mbo"),
	DBN("mbp-1"),
	DBN("mbp-10"),
	DBN("trades"),
	DBN("tbbo"),
	DBN("cmbp-1"),
	DBN("tcbbo"),
	{.schema = "tick", .price = "price", .size = "size"},
	/* Kind 2 in the low byte, bit 30: the local side sees it at the key's time. */
	{.schema = "event64",
		.price = "px",
		.size = "qty",
		.action = {"ev"},
		.action_mask = 0x400000ff,
		.trades = {{0x40000002}, 1},
		.side = {"ev"},
		.side_mask = 0x30000000,
		.buys = {{0x20000000}, 1},
		.sells = {{0x10000000}, 1}},
	BINANCE("binance-trades", "qty"),
	BINANCE("binance-aggtrades", "quantity"),
	TARDIS("tardis-trades"),
	TARDIS("tardis-liquidations"),
	/* Executions of visible and of hidden orders, crosses; the direction is the resting order's. */
	{.schema = "lobster",
		.price = "price",
		.size = "size",
		.action = {"type"},
		.action_mask = ANY_BITS,
		.trades = {{4, 5, 6}, 3},
		.side = {"type", "direction"},
		.side_mask = ANY_BITS,
		.buys = {{PAIR(4, -1), PAIR(5, -1)}, 2},
		.sells = {{PAIR(4, 1), PAIR(5, 1)}, 2}},
	/* Of P the side says nothing since 2014, of Q there is none. */
	{.schema = "itch-trade",
		.price = "price",
		.size = "size",
		.action = {"printable"},
		.action_mask = ANY_BITS,
		.trades = {{'Y'}, 1},
		.side = {"type", "side"},
		.side_mask = ANY_BITS,
		.buys = {{PAIR('E', 'S'), PAIR('C', 'S')}, 2},
		.sells = {{PAIR('E', 'B'), PAIR('C', 'B')}, 2},
		.skip_zero = 1},
	{.schema = "itch-mbo",
		.price = "price",
		.size = "size",
		.action = {"type", "printable"},
		.action_mask = ANY_BITS,
		.trades = {{PAIR('E', 'Y'), PAIR('C', 'Y')}, 2},
		.side = {"side"},
		.side_mask = ANY_BITS,
		.buys = {{'S'}, 1},
		.sells = {{'B'}, 1}},
};

static const char *const price_names[] = {"price", "px", NULL};
static const char *const size_names[] = {"size", "qty", "quantity", "amount", "volume", NULL};

static const struct known *known_find(const struct stoup_schema *schema)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].schema, schema->name) == 0)
			return &table[i];
	return NULL;
}

static const struct stoup_field *any_field(
	const struct stoup_schema *schema, const char *const *names)
{
	const struct stoup_field *field = NULL;

	for (; *names && !field; names++)
		field = stoup_schema_field(schema, *names);
	return field;
}

/* An integer of `len` bytes, as its type extends it to 64 bits. */
static int64_t extend(uint64_t bits, uint8_t type, uint32_t len)
{
	uint32_t unused = 64 - 8 * len;
	int has_sign = type == STOUP_TYPE_I8 || type == STOUP_TYPE_I16 || type == STOUP_TYPE_I32;

	return has_sign ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
}

static void column_set(const struct stoup_field *field, struct stoup_bars_column *ret)
{
	*ret = (struct stoup_bars_column){.off = field->off,
		.type = field->type,
		.exp10 = field->exp10,
		.has_null = field->flags & STOUP_FIELD_NULL ? 1 : 0,
		.null = extend(field->null_bits, field->type, stoup_type_len(field->type)),
		.divisor = 1,
		.factor = 1};
	for (int i = field->exp10; i < 0; i++)
		ret->divisor *= 10;
	for (int i = field->exp10; i > 0; i--)
		ret->factor *= 10;
}

static int is_float(const struct stoup_bars_column *column)
{
	return column->type == STOUP_TYPE_F32 || column->type == STOUP_TYPE_F64;
}

/* A price or a size. */
static int number_find(const struct stoup_schema *schema, const char *what, const char *name,
	const struct stoup_field *field, struct stoup_bars_column *ret, struct stoup_error *err)
{
	if (!field)
		return stoup_error_set(err, -EINVAL,
			"schema '%s' has no field '%s' for the %s of bars", schema->name, name,
			what);
	if (field->type == STOUP_TYPE_CHAR || field->type == STOUP_TYPE_BYTES ||
		(field->flags & (STOUP_FIELD_TIME | STOUP_FIELD_DURATION)))
		return stoup_error_set(err, -EINVAL,
			"field '%s' of schema '%s' is no number: it can not be the %s of bars",
			field->name, schema->name, what);
	column_set(field, ret);
	return 0;
}

static int price_find(const struct stoup_schema *schema, const struct known *known,
	const struct stoup_bars_wish *wish, struct stoup_bars_column *ret, struct stoup_error *err)
{
	const char *name = wish->names[STOUP_BARS_PRICE];
	const struct stoup_field *field;
	int rc;

	if (wish->named[STOUP_BARS_PRICE]) {
		field = stoup_schema_field(schema, name);
	} else {
		/* What is built in and not in the table tells states, or no prices of trades. */
		field = known ? stoup_schema_field(schema, known->price)
		        : stoup_schema_by_name(schema->name) ? NULL
		                                             : any_field(schema, price_names);
		if (!field)
			return stoup_error_set(err, -EINVAL,
				"records of schema '%s' are not known to be trades: name the field of "
				"the price that bars are made of",
				schema->name);
	}
	rc = number_find(schema, "price", name, field, ret, err);
	if (rc == 0 && field->type == STOUP_TYPE_U64)
		return stoup_error_set(err, -EINVAL,
			"field '%s' of schema '%s' is a u64: bars take prices of i64, smaller "
			"integers and floats",
			field->name, schema->name);
	return rc;
}

static int size_find(const struct stoup_schema *schema, const struct known *known,
	const struct stoup_bars_wish *wish, struct stoup_bars_source *ret, struct stoup_error *err)
{
	const char *name = wish->names[STOUP_BARS_SIZE];
	const struct stoup_field *field;
	int rc;

	if (wish->named[STOUP_BARS_SIZE]) {
		if (name[0] == 0)
			return 0;
		field = stoup_schema_field(schema, name);
	} else {
		field = known ? stoup_schema_field(schema, known->size)
		              : any_field(schema, size_names);
		if (!field)
			return 0;
	}
	rc = number_find(schema, "size", name, field, &ret->size, err);
	ret->has_size = rc == 0;
	return rc;
}

/* The columns of a code; one that is missing leaves it unset: -ENOENT. */
static int code_set(const struct stoup_schema *schema, const char *const *names, uint64_t mask,
	struct stoup_bars_code *ret)
{
	const struct stoup_field *field;

	for (uint32_t i = 0; i < 2 && names[i]; i++) {
		field = stoup_schema_field(schema, names[i]);
		if (!field || field->type == STOUP_TYPE_F32 || field->type == STOUP_TYPE_F64 ||
			field->type == STOUP_TYPE_BYTES) {
			ret->column_cnt = 0;
			return -ENOENT;
		}
		column_set(field, &ret->columns[i]);
		ret->column_cnt = i + 1;
	}
	ret->mask = mask;
	return 0;
}

static int action_find(const struct stoup_schema *schema, const struct known *known,
	const struct stoup_bars_wish *wish, struct stoup_bars_source *ret, struct stoup_error *err)
{
	const char *names[2] = {wish->names[STOUP_BARS_ACTION], NULL};
	const char *values = wish->names[STOUP_BARS_VALUES];

	if (!wish->named[STOUP_BARS_ACTION]) {
		if (!known || !known->action[0])
			return 0;
		ret->trades = known->trades;
		if (code_set(schema, known->action, known->action_mask, &ret->action) == 0)
			return 0;
		return stoup_error_set(err, -EINVAL,
			"schema '%s' has no field '%s' that tells trades from other records",
			schema->name, known->action[0]);
	}
	if (names[0][0] == 0)
		return 0;
	for (; values[ret->trades.cnt]; ret->trades.cnt++)
		ret->trades.values[ret->trades.cnt] = (uint8_t)values[ret->trades.cnt];
	if (code_set(schema, names, ANY_BITS, &ret->action) < 0 ||
		stoup_type_len(ret->action.columns[0].type) != 1)
		return stoup_error_set(err, -EINVAL,
			"schema '%s' has no field '%s' of one byte that tells trades from other "
			"records",
			schema->name, names[0]);
	return 0;
}

/* By the spec's name or the usual one: text, a maker's flag, or a sign. */
static int side_guess(const struct stoup_schema *schema, const char *name,
	struct stoup_bars_source *ret, struct stoup_error *err)
{
	const char *names[2] = {name, NULL};
	const struct stoup_field *field = stoup_schema_field(schema, name);

	if (!field || (field->type != STOUP_TYPE_CHAR && field->type != STOUP_TYPE_U8 &&
			      field->type != STOUP_TYPE_I8))
		return stoup_error_set(err, -EINVAL,
			"schema '%s' has no field '%s' that tells sides: a text (B, S or A), a u8 "
			"(0: the buyer began, 1: the seller) or an i8 (1, -1)",
			schema->name, name);
	if (field->type == STOUP_TYPE_CHAR) {
		ret->buys = (struct stoup_bars_set){{'B', 'b'}, 2};
		ret->sells = (struct stoup_bars_set){{'S', 's', 'A', 'a'}, 4};
	} else if (field->type == STOUP_TYPE_U8) {
		ret->buys = (struct stoup_bars_set){{0}, 1};
		ret->sells = (struct stoup_bars_set){{1}, 1};
	} else {
		ret->buys = (struct stoup_bars_set){{1}, 1};
		ret->sells = (struct stoup_bars_set){{0xff}, 1};
	}
	return code_set(schema, names, 0xff, &ret->side);
}

static int side_find(const struct stoup_schema *schema, const struct known *known,
	const struct stoup_bars_wish *wish, struct stoup_bars_source *ret, struct stoup_error *err)
{
	const char *name = wish->names[STOUP_BARS_SIDE];
	const struct stoup_field *field;

	if (wish->named[STOUP_BARS_SIDE])
		return name[0] ? side_guess(schema, name, ret, err) : 0;
	if (known) {
		ret->buys = known->buys;
		ret->sells = known->sells;
		if (known->side[0])
			code_set(schema, known->side, known->side_mask, &ret->side);
		return 0;
	}
	field = stoup_schema_field(schema, "side");
	return field && field->type == STOUP_TYPE_CHAR ? side_guess(schema, "side", ret, err) : 0;
}

int stoup_bars_source_find(const struct stoup_schema *schema, const struct stoup_bars_wish *wish,
	struct stoup_bars_source *ret, struct stoup_error *err)
{
	const struct known *known = known_find(schema);
	struct stoup_bars_source found = {.schema = schema, .skip_zero = known && known->skip_zero};
	int rc;

	if (schema->flags & (STOUP_SCHEMA_VARIABLE | STOUP_SCHEMA_BAR))
		return stoup_error_set(err, -EINVAL,
			"schema '%s' is one of %s: bars are made of trades", schema->name,
			schema->flags & STOUP_SCHEMA_BAR ? "bars" : "messages");
	rc = price_find(schema, known, wish, &found.price, err);
	if (rc == 0)
		rc = size_find(schema, known, wish, &found, err);
	if (rc == 0)
		rc = action_find(schema, known, wish, &found, err);
	if (rc == 0)
		rc = side_find(schema, known, wish, &found, err);
	if (rc == 0 && !found.has_size && wish->kind >= STOUP_BARS_VOLUME)
		rc = stoup_error_set(err, -EINVAL,
			"bars by volume or notional need a size, and schema '%s' has none: name its "
			"field",
			schema->name);
	if (rc < 0)
		return rc;
	found.is_float = is_float(&found.price) || (found.has_size && is_float(&found.size));
	*ret = found;
	return 0;
}
