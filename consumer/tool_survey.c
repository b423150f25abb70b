/* SPDX-License-Identifier: Apache-2.0 */
/* tool_survey.c - see tool_survey.h. */
#include "consumer/tool_survey.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "shm/format.h"

#define DAY_NS  UINT64_C(86400000000000)
#define CAP_MIN 1024u
#define CAP_MAX (UINT32_C(1) << 28)
#define MIX     UINT64_C(0x9e3779b97f4a7c15)

/* ---- the table -------------------------------------------------------------------------------- */

static struct stoup_survey_day *slot_of(struct stoup_survey_day *days, uint32_t cap, uint32_t day,
	uint32_t instrument_id, uint32_t source)
{
	uint64_t mixed = ((uint64_t)instrument_id | (uint64_t)(day << 12 ^ source) << 32) * MIX;
	uint32_t i = (uint32_t)(mixed >> 32) & (cap - 1);

	while (days[i].record_cnt > 0 &&
		(days[i].day != day || days[i].instrument_id != instrument_id ||
			days[i].source != source))
		i = (i + 1) & (cap - 1);
	return &days[i];
}

static int grow(struct stoup_survey *survey, struct stoup_error *err)
{
	uint32_t cap = survey->cap ? survey->cap * 2 : CAP_MIN;
	struct stoup_survey_day *grown = cap <= CAP_MAX ? calloc(cap, sizeof(*grown)) : NULL;

	if (!grown)
		return stoup_error_set(err, -ENOMEM,
			"no memory for %u instruments and days: export fewer at once", cap);
	for (uint32_t i = 0; i < survey->cap; i++) {
		const struct stoup_survey_day *old = &survey->days[i];

		if (old->record_cnt > 0)
			*slot_of(grown, cap, old->day, old->instrument_id, old->source) = *old;
	}
	free(survey->days);
	survey->days = grown;
	survey->cap = cap;
	survey->last = NULL;
	return 0;
}

static int find(struct stoup_survey *survey, uint32_t day, uint32_t instrument_id, uint32_t source,
	struct stoup_survey_day **ret, struct stoup_error *err)
{
	struct stoup_survey_day *at = survey->last;
	int rc;

	if (at && at->day == day && at->instrument_id == instrument_id && at->source == source) {
		*ret = at;
		return 0;
	}
	if (survey->cnt * 2 >= survey->cap) {
		rc = grow(survey, err);
		if (rc < 0)
			return rc;
	}
	at = slot_of(survey->days, survey->cap, day, instrument_id, source);
	if (at->record_cnt == 0) {
		*at = (struct stoup_survey_day){
			.day = day, .instrument_id = instrument_id, .source = source};
		survey->cnt++;
	}
	survey->last = at;
	*ret = at;
	return 0;
}

/* ---- one record ------------------------------------------------------------------------------- */

static uint64_t hash_of(uint64_t seed, const uint8_t *bytes, size_t len)
{
	for (; len >= 8; len -= 8, bytes += 8) {
		uint64_t word;

		memcpy(&word, bytes, 8);
		seed = (seed ^ word) * MIX;
		seed ^= seed >> 29;
	}
	return seed;
}

/* Does the record's own header say what its schema says? Import will go by it. */
static int check_header(const struct stoup_dbn_plan *plan, const struct stoup_dbn_source *source,
	const uint8_t *record, uint64_t ordinal, struct stoup_error *err)
{
	const struct stoup_dbn_out_kind *kind = source->kind;
	int is_old = record[1] == kind->rtypes[1] && record[1] != kind->rtypes[0];

	if (record[0] * 4u == source->series.schema->stride &&
		(record[1] == kind->rtypes[0] || (is_old && plan->schema == kind->schema)))
		return 0;
	if (is_old)
		return stoup_error_set(err, -EINVAL,
			"%.120s: record %" PRIu64
			" is a bar of the old type 0x%02x, which tells its length "
			"only in a file of its own schema: export it apart",
			source->series.name, ordinal, record[1]);
	return stoup_error_set(err, -EINVAL,
		"%.120s: the header of record %" PRIu64
		" says %u bytes of type 0x%02x, which %s records are "
		"not: it did not come from DBN; export it as csv, jsonl or npy",
		source->series.name, ordinal, record[0] * 4u, record[1], kind->name);
}

static uint64_t key_of(const struct stoup_schema *schema, const uint8_t *record)
{
	uint64_t key;

	memcpy(&key, record + schema->key_off, sizeof(key));
	return key;
}

static uint32_t instrument_of(const uint8_t *record)
{
	uint32_t id;

	memcpy(&id, record + 4, sizeof(id));
	return id;
}

static int take_record(struct stoup_survey *survey, const struct stoup_dbn_source *source,
	uint32_t source_idx, const uint8_t *record, struct stoup_error *err)
{
	const struct stoup_schema *schema = source->series.schema;
	uint64_t key = key_of(schema, record);
	struct stoup_survey_day *day;
	int rc;

	if (survey->record_cnt++ == 0 || (int64_t)key < survey->first_key)
		survey->first_key = (int64_t)key;
	if ((int64_t)key > survey->last_key)
		survey->last_key = (int64_t)key;
	if (source->kind->is_session)
		return 0;
	rc = find(survey, (uint32_t)(key / DAY_NS), instrument_of(record), source_idx, &day, err);
	if (rc < 0)
		return rc;
	day->record_cnt++;
	day->hash = hash_of(day->hash, record, schema->stride);
	return 0;
}

static int take_source(struct stoup *st, const struct stoup_dbn_plan *plan, uint32_t source_idx,
	const struct stoup_range *range, struct stoup_survey *survey, struct stoup_error *err)
{
	const struct stoup_dbn_source *source = &plan->sources[source_idx];
	struct stoup_cursor *cur;
	struct stoup_span span;
	int rc = stoup_scan(st, &source->series, range, &cur, err);

	if (rc < 0)
		return rc;
	while ((rc = stoup_next(cur, &span)) > 0) {
		for (uint64_t i = 0; i < span.record_cnt && rc >= 0; i++) {
			const uint8_t *record = (const uint8_t *)span.base + i * span.stride;

			rc = check_header(plan, source, record, span.ordinal + i, err);
			if (rc == 0)
				rc = take_record(survey, source, source_idx, record, err);
		}
		if (rc < 0)
			break;
	}
	if (rc < 0 && stoup_cursor_error(cur)->code)
		rc = stoup_error_set(err, rc, "%s", stoup_cursor_error(cur)->text);
	stoup_cursor_close(cur);
	return rc;
}

/* ---- several series of one instrument on one day ---------------------------------------------- */

static const struct stoup_dbn_plan
	*sort_plan; /* of the comparison below: qsort takes no argument */

static int compare_day(const void *lhs, const void *rhs)
{
	const struct stoup_survey_day *a = *(struct stoup_survey_day *const *)lhs;
	const struct stoup_survey_day *b = *(struct stoup_survey_day *const *)rhs;

	if (a->day != b->day)
		return a->day < b->day ? -1 : 1;
	if (a->instrument_id != b->instrument_id)
		return a->instrument_id < b->instrument_id ? -1 : 1;
	const struct stoup_dbn_out_kind *x = sort_plan->sources[a->source].kind;
	const struct stoup_dbn_out_kind *y = sort_plan->sources[b->source].kind;
	if (x != y)
		return x < y ? -1 : 1;
	return a->source < b->source ? -1 : a->source > b->source;
}

static int refuse_split(const struct stoup_dbn_plan *plan, const struct stoup_survey_day *a,
	const struct stoup_survey_day *b, struct stoup_error *err)
{
	char date[STOUP_FORMAT_CAP];

	stoup_format_time((int64_t)(a->day * DAY_NS), date);
	return stoup_error_set(err, -EINVAL,
		"on %.10s instrument %u is in %.60s and in %.60s, with different records, and DBN maps "
		"whole days: export them apart",
		date, a->instrument_id, plan->sources[a->source].series.name,
		plan->sources[b->source].series.name);
}

/* Entries of one instrument and day, sorted by kind: each kind must be there under each symbol, with the same
 * records. The first symbol's are written. */
static int check_group(const struct stoup_dbn_plan *plan, struct stoup_survey *survey,
	struct stoup_survey_day **group, size_t cnt, struct stoup_error *err)
{
	size_t per_kind = 0;
	uint32_t first_symbol = plan->sources[group[0]->source].symbol_idx;
	int is_one = 1;

	for (size_t i = 1; i < cnt; i++)
		is_one &= plan->sources[group[i]->source].symbol_idx == first_symbol;
	if (is_one)
		return 0;
	while (per_kind < cnt &&
		plan->sources[group[per_kind]->source].kind == plan->sources[group[0]->source].kind)
		per_kind++;
	for (size_t i = 0; i < cnt; i++) {
		struct stoup_survey_day *first = group[i - i % per_kind], *day = group[i];
		const struct stoup_dbn_source *source = &plan->sources[day->source];

		if (plan->sources[first->source].kind != source->kind ||
			source->symbol_idx !=
				plan->sources[group[i % per_kind]->source].symbol_idx ||
			day->record_cnt != first->record_cnt || day->hash != first->hash ||
			cnt % per_kind)
			return refuse_split(plan, group[i % per_kind ? i - i % per_kind : 0],
				i ? day : group[cnt - 1], err);
		day->is_dropped = day != first;
		survey->dropped_cnt += day->is_dropped ? day->record_cnt : 0;
	}
	return 0;
}

static int check_groups(const struct stoup_dbn_plan *plan, struct stoup_survey *survey,
	struct stoup_survey_day **sorted, struct stoup_error *err)
{
	for (size_t i = 0, end; i < survey->cnt; i = end) {
		int rc;

		for (end = i + 1; end < survey->cnt && sorted[end]->day == sorted[i]->day &&
				  sorted[end]->instrument_id == sorted[i]->instrument_id;)
			end++;
		rc = end > i + 1 ? check_group(plan, survey, sorted + i, end - i, err) : 0;
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------- */

static int compare_row_instrument(const void *lhs, const void *rhs)
{
	const struct stoup_dbn_row *a = lhs, *b = rhs;

	if (a->symbol_idx != b->symbol_idx)
		return a->symbol_idx < b->symbol_idx ? -1 : 1;
	if (a->instrument_id != b->instrument_id)
		return a->instrument_id < b->instrument_id ? -1 : 1;
	return a->first_day < b->first_day ? -1 : a->first_day > b->first_day;
}

static int compare_row_day(const void *lhs, const void *rhs)
{
	const struct stoup_dbn_row *a = lhs, *b = rhs;

	if (a->symbol_idx != b->symbol_idx)
		return a->symbol_idx < b->symbol_idx ? -1 : 1;
	if (a->first_day != b->first_day)
		return a->first_day < b->first_day ? -1 : 1;
	return a->instrument_id < b->instrument_id ? -1 : a->instrument_id > b->instrument_id;
}

/* One row for each run of days of a symbol and its instrument. */
static int make_rows(
	const struct stoup_dbn_plan *plan, struct stoup_survey *survey, struct stoup_error *err)
{
	struct stoup_dbn_row *rows = calloc((size_t)survey->cnt + 1, sizeof(*rows));
	size_t cnt = 0, out = 0;

	if (!rows)
		return stoup_error_set(err, -ENOMEM, "no memory for the mapping of symbols");
	survey->rows = rows;
	for (uint32_t i = 0; i < survey->cap; i++) {
		const struct stoup_survey_day *day = &survey->days[i];
		const struct stoup_dbn_source *source = &plan->sources[day->source];

		if (day->record_cnt > 0 && source->symbol)
			rows[cnt++] = (struct stoup_dbn_row){source->symbol, source->symbol_idx,
				day->instrument_id, day->day, day->day + 1};
	}
	qsort(rows, cnt, sizeof(*rows), compare_row_instrument);
	for (size_t i = 0; i < cnt; i++) {
		struct stoup_dbn_row *last = out > 0 ? &rows[out - 1] : NULL;

		if (last && last->symbol_idx == rows[i].symbol_idx &&
			last->instrument_id == rows[i].instrument_id &&
			rows[i].first_day <= last->end_day)
			last->end_day = rows[i].end_day;
		else
			rows[out++] = rows[i];
	}
	qsort(rows, out, sizeof(*rows), compare_row_day);
	survey->row_cnt = out;
	return 0;
}

/* ---- the whole -------------------------------------------------------------------------------- */

int stoup_survey_make(struct stoup *st, const struct stoup_dbn_plan *plan,
	const struct stoup_range *range, struct stoup_survey *ret, struct stoup_error *err)
{
	struct stoup_survey_day **sorted;
	size_t cnt = 0;
	int rc = 0;

	*ret = (struct stoup_survey){0};
	for (uint32_t i = 0; i < plan->cnt && rc == 0; i++)
		rc = take_source(st, plan, i, range, ret, err);
	if (rc < 0)
		return rc;
	sorted = calloc((size_t)ret->cnt + 1, sizeof(*sorted));
	if (!sorted)
		return stoup_error_set(err, -ENOMEM, "no memory for the mapping of symbols");
	for (uint32_t i = 0; i < ret->cap; i++)
		if (ret->days[i].record_cnt > 0)
			sorted[cnt++] = &ret->days[i];
	sort_plan = plan;
	qsort(sorted, cnt, sizeof(*sorted), compare_day);
	rc = check_groups(plan, ret, sorted, err);
	free(sorted);
	return rc < 0 ? rc : make_rows(plan, ret, err);
}

int stoup_survey_is_dropped(struct stoup_survey *survey, const struct stoup_dbn_plan *plan,
	size_t source, const void *record)
{
	const struct stoup_schema *schema = plan->sources[source].series.schema;
	struct stoup_survey_day *day;

	if (survey->dropped_cnt == 0 || plan->sources[source].kind->is_session)
		return 0;
	day = slot_of(survey->days, survey->cap, (uint32_t)(key_of(schema, record) / DAY_NS),
		instrument_of(record), (uint32_t)source);
	return day->is_dropped != 0;
}

void stoup_survey_fini(struct stoup_survey *survey)
{
	free(survey->days);
	free(survey->rows);
	*survey = (struct stoup_survey){0};
}
