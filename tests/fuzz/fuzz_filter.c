/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_filter.c - any text as a filter, asked of records that lie at any place.
 *
 *      bytes[0]   which schema: the model's of all types, or a built-in one
 *      bytes[1]   seed of the records
 *      the rest   the filter
 *
 * A filter that is accepted gives the same answer for a record alone as in a span, whatever piece of the span is asked
 * for; its zone map of one record excludes that record only where it does not match; and a row of any bytes is only
 * compared. One that is refused says why.
 */
#include <errno.h>
#include "codec/zone.h"
#include "consumer/filter.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/filter_model.h"

#define CNT 70u /* more than a word of bits */

static void fill(const struct stoup_schema *schema, uint8_t *base, uint8_t seed)
{
	model_state = (uint64_t)seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	for (uint32_t i = 0; i < CNT; i++)
		for (uint32_t f = 0; f < schema->field_cnt; f++) {
			const struct stoup_field *field = &schema->fields[f];
			uint32_t len = stoup_type_len(field->type);

			for (uint32_t j = 0; j < field->cnt; j++) {
				uint64_t bits = model_bits(field);

				memcpy(base + i * schema->stride + field->off + j * len, &bits,
					len);
			}
		}
}

static void try_zones(const struct stoup_filter *filter, const struct stoup_schema *schema,
	const uint8_t *base, uint8_t seed)
{
	const struct stoup_vol_field *fields = (const void *)schema->fields;
	uint32_t len = stoup_zone_len(fields, schema->field_cnt);
	uint8_t *row = malloc(len);

	MUST(row && filter->zone_len <= len);
	for (uint32_t i = 0; i < CNT; i += 7) {
		const uint8_t *record = base + i * schema->stride;

		stoup_zone_make(fields, schema->field_cnt, schema->stride, record, 1, row);
		MUST(!stoup_filter_match(filter, record) ||
			!stoup_filter_zone_excludes(filter, row, len));
	}
	stoup_zone_make(fields, schema->field_cnt, schema->stride, base, CNT, row);
	if (stoup_filter_zone_excludes(filter, row, len))
		for (uint32_t i = 0; i < CNT; i++)
			MUST(!stoup_filter_match(filter, base + i * schema->stride));
	memset(row, seed, len);
	(void)stoup_filter_zone_excludes(filter, row, len);
	(void)stoup_filter_zone_excludes(filter, row, 7);
	free(row);
}

static void ask(const struct stoup_filter *filter, const struct stoup_schema *schema, uint8_t seed)
{
	uint8_t *base = malloc(CNT * schema->stride);
	struct stoup_span span = {
		.base = base, .record_cnt = CNT, .stride = schema->stride, .schema = schema};
	uint32_t idx[CNT], cap = seed % CNT + 1;
	uint64_t from = 0;

	MUST(base != NULL);
	fill(schema, base, seed);
	while (from < CNT) {
		int64_t got = stoup_filter_span(filter, &span, from, idx, cap), i = 0;
		uint64_t next = got == cap ? idx[cap - 1] + UINT64_C(1) : CNT;

		MUST(got >= 0 && got <= cap);
		for (; from < next; from++) {
			int is_in = i < got && idx[i] == from;

			MUST(stoup_filter_match(filter, base + from * schema->stride) == is_in);
			i += is_in;
		}
		MUST(i == got);
	}
	try_zones(filter, schema, base, seed);
	free(base);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char *const names[] = {"mbo", "definition", "event64", "itch-mbo"};
	struct fuzz_in in = {bytes, len};
	uint8_t which = fuzz_u8(&in), seed = fuzz_u8(&in);
	struct stoup_schema model = model_schema();
	const struct stoup_schema *schema =
		which % 2 ? &model : stoup_schema_by_name(names[which / 2 % 4]);
	struct stoup_filter *filter = NULL;
	struct stoup_error err = {0};
	char *text = fuzz_text(&in, 20000);
	int rc = stoup_filter_create(schema, text, &filter, &err);

	MUST(rc == 0 ? filter != NULL : rc == -EINVAL && err.code == rc && err.text[0] && !filter);
	if (rc == 0)
		ask(filter, schema, seed);
	stoup_filter_destroy(filter);
	free(text);
	return 0;
}
