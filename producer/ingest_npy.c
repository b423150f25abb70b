/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_npy.c - structured NumPy arrays into an import (see ingest_npy.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/csv_plan.h"
#include "producer/csv_value.h"
#include "producer/event64.h"
#include "producer/ingest_npy.h"
#include "producer/npy.h"

#define CHUNK_LEN     (1u << 20) /* rows that are read at once */
#define RECORD_ALIGN  64u
#define FIELDS_CAP    120
#define MADE_NAME     "npy"
#define STRIDE_ALIGN  8u
#define HALF_TEXT_CAP 8

/* Bytes that go from a row to a record. */
struct move {
	uint32_t from, to, len;
	const struct stoup_field *time; /* the record's field: NaT is not its null value; or NULL */
};

struct reader {
	const struct stoup_sink *sink;
	struct stoup_input *input;
	const struct stoup_csv_options *options;
	struct stoup_npy npy;
	const struct stoup_schema *schema;
	struct stoup_schema_draft *draft; /* owner of `schema`, or NULL */
	struct stoup_csv_plan *plan;      /* likewise */
	struct move moves[STOUP_SCHEMA_FIELD_CAP];
	uint32_t move_cnt; /* 0: the row is the record */
	int natural;       /* the made schema has another layout than the array */
	uint8_t *rows, *record;
	uint32_t series_idx;
};

static const char *name_of(const struct reader *r)
{
	return stoup_input_name(r->input);
}

/* ---- the header ------------------------------------------------------------------------------- */

/* Exactly `len` bytes. */
static int read_all(struct reader *r, void *dst, size_t len, struct stoup_error *err)
{
	uint64_t at = stoup_input_stream_off(r->input);
	size_t have = 0;

	while (have < len) {
		int64_t got = stoup_input_read(r->input, (uint8_t *)dst + have, len - have, err);

		if (got < 0)
			return (int)got;
		if (got == 0)
			return stoup_error_set(err, -ENODATA,
				"%s ends at offset %" PRIu64
				" of its array, %zu bytes short: the file is cut "
				"short",
				name_of(r), at + have, len - have);
		have += (size_t)got;
	}
	return 0;
}

static int read_header(struct reader *r, struct stoup_error *err)
{
	struct stoup_npy_prelude prelude;
	const uint8_t *bytes;
	uint8_t skipped[STOUP_NPY_PRELUDE_LEN];
	int64_t have = stoup_input_peek(r->input, STOUP_NPY_PRELUDE_LEN, &bytes, err);
	char *text = NULL;
	int rc;

	if (have < 0)
		return (int)have;
	rc = stoup_npy_prelude(bytes, (size_t)have, &prelude, err);
	if (rc < 0)
		goto out_name;
	rc = read_all(r, skipped, prelude.header_off, err);
	if (rc < 0)
		return rc;
	text = malloc(prelude.header_len + 1);
	if (!text)
		return stoup_error_set(err, -ENOMEM, "no memory to read %s", name_of(r));
	rc = read_all(r, text, prelude.header_len, err);
	if (rc < 0)
		goto out_free;
	rc = stoup_npy_header(text, prelude.header_len, prelude.header_off, &r->npy, err);
	free(text);
	if (rc == 0)
		return 0;
out_name:
	stoup_error_prefix(err, "%s", name_of(r));
	return rc;
out_free:
	free(text);
	return rc;
}

/* ---- the schema ------------------------------------------------------------------------------- */

static const struct stoup_field *row_field(const struct stoup_npy *npy, const char *name)
{
	for (uint32_t i = 0; i < npy->field_cnt; i++)
		if (strcmp(npy->fields[i].name, name) == 0)
			return &npy->fields[i];
	return NULL;
}

/* The array's field names, as many as fit, for texts. */
static const char *names_text(const struct stoup_npy *npy, char dst[FIELDS_CAP])
{
	size_t len = 0;

	dst[0] = 0;
	for (uint32_t i = 0; i < npy->field_cnt; i++) {
		size_t more = strlen(npy->fields[i].name);

		if (more == 0)
			continue;
		if (len + more + 6 > FIELDS_CAP) {
			strcpy(dst + len, "...");
			break;
		}
		if (len > 0)
			dst[len++] = ' ';
		memcpy(dst + len, npy->fields[i].name, more + 1);
		len += more;
	}
	return dst;
}

/* A time of the array may be NaT. Is that the null value of the record's field as well? */
static int same_null(const struct stoup_field *from, const struct stoup_field *to)
{
	return !(from->flags & STOUP_FIELD_NULL) ||
	       ((to->flags & STOUP_FIELD_NULL) && to->null_bits == from->null_bits);
}

/* Does the array have these fields at these offsets, and no others? */
static int same_layout(const struct stoup_npy *npy, const struct stoup_schema *schema)
{
	uint32_t named = 0;

	for (uint32_t i = 0; i < npy->field_cnt; i++)
		named += npy->fields[i].name[0] != 0;
	if (npy->stride != schema->stride || named != schema->field_cnt)
		return 0;
	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		const struct stoup_field *to = &schema->fields[i];
		const struct stoup_field *from = row_field(npy, to->name);

		if (!from || from->off != to->off || from->type != to->type ||
			from->cnt != to->cnt || !same_null(from, to))
			return 0;
	}
	return 1;
}

static const char *made_key(const struct reader *r, struct stoup_error *err)
{
	const struct stoup_npy *npy = &r->npy;
	const char *key = NULL;
	char names[FIELDS_CAP];

	if (r->options->time) {
		const struct stoup_field *field = row_field(npy, r->options->time);

		if (field && stoup_type_len(field->type) == 8 && field->type != STOUP_TYPE_F64 &&
			!(field->flags & STOUP_FIELD_DURATION))
			return field->name;
		stoup_error_set(err, -EINVAL,
			field ? "%s: --time %.40s: the key is an integer of 8 bytes, nanoseconds since 1970"
			      : "%s: --time %.40s: no such field (there are: %s)",
			name_of(r), r->options->time, names_text(npy, names));
		return NULL;
	}
	for (uint32_t i = 0; i < npy->field_cnt; i++) {
		if (!(npy->fields[i].flags & STOUP_FIELD_TIME))
			continue;
		if (key) {
			stoup_error_set(err, -EINVAL,
				"%s: both %s and %s are times: say which is the key (--time)",
				name_of(r), key, npy->fields[i].name);
			return NULL;
		}
		key = npy->fields[i].name;
	}
	if (!key)
		stoup_error_set(err, -EINVAL,
			"%s: no field is a datetime64[ns]: name the key (--time FIELD; there are: %s), or say "
			"--schema",
			name_of(r), names_text(npy, names));
	return key;
}

/* Add the array's fields at their offsets, or one behind the other. */
static int made_fields(struct reader *r, int natural, struct stoup_error *err)
{
	int rc = stoup_schema_draft_create(MADE_NAME, &r->draft, err);

	for (uint32_t i = 0; i < r->npy.field_cnt && rc == 0; i++) {
		struct stoup_field field = r->npy.fields[i];

		if (!field.name[0])
			continue;
		if (natural)
			field.off = STOUP_FIELD_OFF_NATURAL;
		rc = stoup_schema_draft_add(r->draft, &field, err);
	}
	return rc;
}

static int made_schema(struct reader *r, struct stoup_error *err)
{
	const char *key = made_key(r, err);
	const struct stoup_field *field;
	int rc;

	if (!key)
		return -EINVAL;
	/* Keys lie at multiples of 8: else the array's layout can not be kept. */
	field = row_field(&r->npy, key);
	r->natural = field->off % STRIDE_ALIGN != 0 || r->npy.stride % STRIDE_ALIGN != 0;
	rc = made_fields(r, r->natural, err);
	if (rc < 0)
		return rc;
	if (!r->natural)
		r->draft->schema.stride = r->npy.stride;
	if (r->options->interval_ns >= 0) {
		r->draft->schema.flags |= STOUP_SCHEMA_BAR;
		r->draft->schema.interval_ns = (uint64_t)r->options->interval_ns;
	}
	rc = stoup_schema_draft_finish(r->draft, key, err);
	r->schema = &r->draft->schema;
	return rc;
}

static int named_schema(struct reader *r, struct stoup_error *err)
{
	struct stoup_csv_options options;
	int rc;

	stoup_csv_options_init(&options);
	options.schema = r->options->schema;
	options.interval_ns = r->options->interval_ns;
	rc = stoup_csv_plan_create(&options, &r->plan, err);
	if (rc < 0)
		return rc;
	r->plan->options = NULL; /* which ends here; the plan is kept for its schema */
	r->schema = r->plan->schema;
	if (r->options->time)
		return stoup_error_set(err, -EINVAL,
			"--time is for arrays without --schema: schema %s has its key",
			r->schema->name);
	return 0;
}

static int choose_schema(struct reader *r, struct stoup_error *err)
{
	const struct stoup_schema *event64 = stoup_schema_by_name("event64");

	if (r->options->schema)
		return named_schema(r, err);
	if (!r->options->time && r->options->interval_ns < 0 && same_layout(&r->npy, event64)) {
		r->schema = event64;
		return 0;
	}
	return made_schema(r, err);
}

/* ---- rows to records -------------------------------------------------------------------------- */

static int field_missing(
	const struct reader *r, const struct stoup_field *field, struct stoup_error *err)
{
	char names[FIELDS_CAP];

	/* As of CSV: an undefined value (stoup_csv_value_blank), an empty text, reserved zeros. */
	if (((field->flags & (STOUP_FIELD_HIDDEN | STOUP_FIELD_NULL)) ||
		    field->type == STOUP_TYPE_CHAR) &&
		!(field->flags & STOUP_FIELD_KEY))
		return 0;
	return stoup_error_set(err, -EINVAL,
		"%s: schema %s has a field %s, the array has none of that name (there are: %s)",
		name_of(r), r->schema->name, field->name, names_text(&r->npy, names));
}

static const char *type_text(const struct stoup_field *field, char dst[HALF_TEXT_CAP])
{
	static const char *const names[] = {
		"?", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64", "S", "V"};

	if (field->type < STOUP_TYPE_CHAR)
		return names[field->type];
	snprintf(dst, HALF_TEXT_CAP, "%s%u", names[field->type], field->cnt);
	return dst;
}

static int plan_moves(struct reader *r, struct stoup_error *err)
{
	char have[HALF_TEXT_CAP], want[HALF_TEXT_CAP];

	r->move_cnt = 0;
	if (r->draft ? !r->natural : same_layout(&r->npy, r->schema))
		return 0;
	for (uint32_t i = 0; i < r->schema->field_cnt; i++) {
		const struct stoup_field *to = &r->schema->fields[i];
		const struct stoup_field *from = row_field(&r->npy, to->name);
		int rc;

		if (!from) {
			rc = field_missing(r, to, err);
			if (rc < 0)
				return rc;
			continue;
		}
		if (from->type != to->type || from->cnt != to->cnt)
			return stoup_error_set(err, -EINVAL,
				"%s: field %s is %s in the array and %s in schema %s: save the array with that "
				"type (astype)",
				name_of(r), to->name, type_text(from, have), type_text(to, want),
				r->schema->name);
		r->moves[r->move_cnt++] = (struct move){from->off, to->off,
			stoup_type_len(to->type) * to->cnt, same_null(from, to) ? NULL : to};
	}
	return 0;
}

/* NaT in a field that calls something else undefined, or nothing. */
static int put_nat(const struct reader *r, const struct stoup_field *to, uint64_t row_off,
	struct stoup_error *err)
{
	static const int64_t nat = INT64_MIN;

	if (memcmp(r->record + to->off, &nat, sizeof(nat)) != 0)
		return 0;
	if (!(to->flags & STOUP_FIELD_NULL))
		return stoup_error_set(err, -ERANGE,
			"%s, offset %" PRIu64
			": field %s is NaT, and schema %s has no undefined value for it",
			name_of(r), row_off, to->name, r->schema->name);
	memcpy(r->record + to->off, &to->null_bits, sizeof(to->null_bits));
	return 0;
}

static int record_make(const struct reader *r, const uint8_t *row, uint64_t row_off,
	const uint8_t **ret, struct stoup_error *err)
{
	int rc = 0;

	*ret = r->move_cnt == 0 ? row : r->record;
	for (uint32_t i = 0; i < r->move_cnt && rc == 0; i++) {
		const struct move *move = &r->moves[i];

		memcpy(r->record + move->to, row + move->from, move->len);
		if (move->time)
			rc = put_nat(r, move->time, row_off, err);
	}
	return rc;
}

static int put_row(struct reader *r, const uint8_t *row, uint64_t row_off, struct stoup_error *err)
{
	const struct stoup_where where = {name_of(r), 0, row_off};
	const uint8_t *record;
	int64_t key;
	int rc = record_make(r, row, row_off, &record, err);

	if (rc < 0)
		return rc;
	memcpy(&key, record + r->schema->key_off, sizeof(key));
	return r->sink->put(r->sink->arg, r->series_idx, key, record, &where, err);
}

static int put_rows(struct reader *r, struct stoup_error *err)
{
	uint32_t stride = r->npy.stride;
	uint64_t left = r->npy.row_cnt, cnt;
	uint8_t behind;
	int rc = 0;

	while (left > 0 && rc == 0) {
		uint64_t row_off = stoup_input_stream_off(r->input);

		cnt = CHUNK_LEN / stride < left ? CHUNK_LEN / stride : left;
		rc = read_all(r, r->rows, (size_t)(cnt * stride), err);
		for (uint64_t i = 0; i < cnt && rc == 0; i++)
			rc = put_row(r, r->rows + i * stride, row_off + i * stride, err);
		left -= cnt;
	}
	if (rc < 0)
		return rc;
	/* Also the end of what it is packed in, with its checksums. */
	rc = (int)stoup_input_read(r->input, &behind, 1, err);
	if (rc > 0)
		return stoup_error_set(err, -EBADMSG,
			"%s: garbage behind the array, at offset %" PRIu64, name_of(r),
			stoup_input_stream_off(r->input) - 1);
	return rc;
}

/* ---- the call --------------------------------------------------------------------------------- */

static int options_check(
	const struct reader *r, const struct stoup_csv_options *options, struct stoup_error *err)
{
	if (!options->series)
		return stoup_error_set(err, -EINVAL,
			"%s: an array needs the name of its series (--series NAME); of a directory "
			"--include '*.np?' takes arrays alone, --exclude all others",
			name_of(r));
	if (options->columns || options->map || options->scale >= 0)
		return stoup_error_set(err, -EINVAL,
			"%s: --columns, --map and --scale are for text; an array's fields have names and types",
			name_of(r));
	return 0;
}

static int ingest(struct reader *r, struct stoup_error *err)
{
	int64_t series_idx;
	int rc = read_header(r, err);

	if (rc == 0)
		rc = choose_schema(r, err);
	if (rc == 0)
		rc = plan_moves(r, err);
	if (rc < 0)
		return rc;
	r->rows = aligned_alloc(RECORD_ALIGN, CHUNK_LEN);
	r->record = calloc(1, r->schema->stride);
	if (!r->rows || !r->record)
		return stoup_error_set(err, -ENOMEM, "no memory to read %s", name_of(r));
	stoup_csv_value_blank(r->schema, r->record);
	series_idx = r->sink->series(r->sink->arg, r->options->series, r->schema, err);
	if (series_idx < 0)
		return (int)series_idx;
	r->series_idx = (uint32_t)series_idx;
	return put_rows(r, err);
}

int stoup_ingest_npy(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_csv_options *options, struct stoup_error *err)
{
	struct reader *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return stoup_error_set(
			err, -ENOMEM, "no memory to read %s", stoup_input_name(input));
	r->sink = sink;
	r->input = input;
	r->options = options;
	rc = options_check(r, options, err);
	if (rc == 0)
		rc = ingest(r, err);
	free(r->rows);
	free(r->record);
	stoup_schema_draft_destroy(r->draft);
	stoup_csv_plan_destroy(r->plan);
	free(r);
	return rc;
}
