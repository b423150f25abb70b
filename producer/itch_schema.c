/* SPDX-License-Identifier: Apache-2.0 */
/* itch_schema.c - see itch_schema.h. Names and offsets are those of Nasdaq's specification of
 * TotalView-ITCH 5.0. */
#include "producer/itch_schema.h"

#include <string.h>

#define COUNT_OF(array) ((uint32_t)(sizeof(array) / sizeof(array)[0]))

static const struct stoup_itch_column system_columns[] = {{"event", 11, 1, 't'}};

static const struct stoup_itch_column directory_columns[] = {
	{"stock", 11, 8, 't'},
	{"market_category", 19, 1, 't'},
	{"financial_status", 20, 1, 't'},
	{"round_lot_size", 21, 4, 'u'},
	{"round_lots_only", 25, 1, 't'},
	{"issue_class", 26, 1, 't'},
	{"issue_subtype", 27, 2, 't'},
	{"authenticity", 29, 1, 't'},
	{"short_sale_threshold", 30, 1, 't'},
	{"ipo_flag", 31, 1, 't'},
	{"luld_tier", 32, 1, 't'},
	{"etp_flag", 33, 1, 't'},
	{"etp_leverage", 34, 4, 'u'},
	{"inverse", 38, 1, 't'},
};

static const struct stoup_itch_column action_columns[] = {
	{"stock", 11, 8, 't'},
	{"state", 19, 1, 't'},
	{"reserved", 20, 1, 't'},
	{"reason", 21, 4, 't'},
};

static const struct stoup_itch_column regsho_columns[] = {
	{"stock", 11, 8, 't'},
	{"action", 19, 1, 't'},
};

static const struct stoup_itch_column participant_columns[] = {
	{"mpid", 11, 4, 't'},
	{"stock", 15, 8, 't'},
	{"primary", 23, 1, 't'},
	{"mode", 24, 1, 't'},
	{"state", 25, 1, 't'},
};

static const struct stoup_itch_column mwcb_levels_columns[] = {
	{"level_1", 11, 8, 'P'},
	{"level_2", 19, 8, 'P'},
	{"level_3", 27, 8, 'P'},
};

static const struct stoup_itch_column mwcb_status_columns[] = {{"breached_level", 11, 1, 't'}};

static const struct stoup_itch_column ipo_columns[] = {
	{"stock", 11, 8, 't'},
	{"release_time_s", 19, 4, 'u'},
	{"release_qualifier", 23, 1, 't'},
	{"price", 24, 4, 'p'},
};

static const struct stoup_itch_column luld_columns[] = {
	{"stock", 11, 8, 't'},
	{"reference_price", 19, 4, 'p'},
	{"upper_price", 23, 4, 'p'},
	{"lower_price", 27, 4, 'p'},
	{"extension", 31, 4, 'u'},
};

static const struct stoup_itch_column halt_columns[] = {
	{"stock", 11, 8, 't'},
	{"market", 19, 1, 't'},
	{"action", 20, 1, 't'},
};

static const struct stoup_itch_column imbalance_columns[] = {
	{"paired_shares", 11, 8, 'u'},
	{"imbalance_shares", 19, 8, 'u'},
	{"direction", 27, 1, 't'},
	{"far_price", 36, 4, 'p'},
	{"near_price", 40, 4, 'p'},
	{"reference_price", 44, 4, 'p'},
	{"cross", 48, 1, 't'},
	{"variation", 49, 1, 't'},
};

static const struct stoup_itch_column rpii_columns[] = {
	{"stock", 11, 8, 't'},
	{"interest", 19, 1, 't'},
};

static const struct stoup_itch_column listing_columns[] = {
	{"stock", 11, 8, 't'},
	{"open_eligibility", 19, 1, 't'},
	{"minimum_price", 20, 4, 'p'},
	{"maximum_price", 24, 4, 'p'},
	{"near_price", 28, 4, 'p'},
	{"near_time", 32, 8, 'u'},
	{"lower_collar", 40, 4, 'p'},
	{"upper_collar", 44, 4, 'p'},
};

#define KIND(type, is_of_stock, name, list)                                                        \
	{                                                                                          \
		type, is_of_stock, name, list, COUNT_OF(list)                                      \
	}

const struct stoup_itch_kind stoup_itch_kinds[] = {
	KIND('S', 0, "itch-system", system_columns),
	KIND('R', 0, "itch-directory", directory_columns),
	KIND('H', 0, "itch-action", action_columns),
	KIND('Y', 0, "itch-regsho", regsho_columns),
	KIND('L', 0, "itch-participant", participant_columns),
	KIND('V', 0, "itch-mwcb-levels", mwcb_levels_columns),
	KIND('W', 0, "itch-mwcb-status", mwcb_status_columns),
	KIND('K', 0, "itch-ipo", ipo_columns),
	KIND('J', 0, "itch-luld", luld_columns),
	KIND('h', 0, "itch-halt", halt_columns),
	KIND('I', 1, "itch-imbalance", imbalance_columns),
	KIND('N', 0, "itch-rpii", rpii_columns),
	KIND('O', 0, "itch-listing", listing_columns),
};

const uint32_t stoup_itch_kind_cnt = COUNT_OF(stoup_itch_kinds);

_Static_assert(COUNT_OF(stoup_itch_kinds) <= STOUP_ITCH_KIND_CAP, "kinds fit");

/* ---- schemas ----------------------------------------------------------------------------------- */

static struct stoup_field field_of(const struct stoup_itch_column *column)
{
	struct stoup_field field = {.off = STOUP_FIELD_OFF_NATURAL, .cnt = 1};

	memcpy(field.name, column->name, strlen(column->name));
	if (column->how == 't') {
		field.type = STOUP_TYPE_CHAR;
		field.cnt = column->len;
	} else
		field.type = column->len == 8   ? STOUP_TYPE_U64
		             : column->len == 4 ? STOUP_TYPE_U32
		                                : STOUP_TYPE_U16;
	field.exp10 = column->how == 'p' ? -4 : column->how == 'P' ? -8 : 0;
	return field;
}

int stoup_itch_kind_schema(const struct stoup_itch_kind *kind, struct stoup_schema_draft **ret,
	struct stoup_error *err)
{
	static const struct stoup_field head[] = {
		{.name = "ts",
			.off = 0,
			.cnt = 1,
			.type = STOUP_TYPE_I64,
			.flags = STOUP_FIELD_TIME},
		{.name = "seq", .off = 8, .cnt = 1, .type = STOUP_TYPE_U64},
		{.name = "locate", .off = 16, .cnt = 1, .type = STOUP_TYPE_U16},
		{.name = "tracking", .off = 18, .cnt = 1, .type = STOUP_TYPE_U16},
	};
	struct stoup_schema_draft *draft;
	int rc = stoup_schema_draft_create(kind->schema, &draft, err);

	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < COUNT_OF(head) && rc == 0; i++)
		rc = stoup_schema_draft_add(draft, &head[i], err);
	for (uint32_t i = 0; i < kind->column_cnt && rc == 0; i++) {
		struct stoup_field field = field_of(&kind->columns[i]);

		rc = stoup_schema_draft_add(draft, &field, err);
	}
	if (rc == 0)
		rc = stoup_schema_draft_finish(draft, "ts", err);
	if (rc < 0)
		stoup_schema_draft_destroy(draft);
	else
		*ret = draft;
	return rc;
}

/* ---- records ----------------------------------------------------------------------------------- */

void stoup_itch_text(const uint8_t *bytes, size_t len, char *dst)
{
	size_t used = len;

	while (used > 0 && (bytes[used - 1] == ' ' || bytes[used - 1] == 0))
		used--;
	memcpy(dst, bytes, used);
	memset(dst + used, 0, len - used);
}

static void put(const struct stoup_itch_column *column, const uint8_t *message, uint8_t *dst)
{
	const uint8_t *from = message + column->off;
	uint16_t small;
	uint32_t middle;
	uint64_t large;

	if (column->how == 't')
		stoup_itch_text(from, column->len, (char *)dst);
	else if (column->len == 8) {
		large = stoup_be64(from);
		memcpy(dst, &large, 8);
	} else if (column->len == 4) {
		middle = stoup_be32(from);
		memcpy(dst, &middle, 4);
	} else {
		small = stoup_be16(from);
		memcpy(dst, &small, 2);
	}
}

void stoup_itch_kind_record(const struct stoup_itch_kind *kind, const struct stoup_schema *schema,
	const uint8_t *message, int64_t ts, uint64_t seq, uint8_t *record)
{
	static const struct stoup_itch_column locate = {"", 1, 2, 'u'}, tracking = {"", 3, 2, 'u'};

	memset(record, 0, schema->stride);
	memcpy(record, &ts, 8);
	memcpy(record + 8, &seq, 8);
	put(&locate, message, record + 16);
	put(&tracking, message, record + 18);
	for (uint32_t i = 0; i < kind->column_cnt; i++)
		put(&kind->columns[i], message, record + schema->fields[4 + i].off);
}
