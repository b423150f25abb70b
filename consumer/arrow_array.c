/* SPDX-License-Identifier: Apache-2.0 */
/* arrow_array.c - the records of a span as an ArrowArray (see stoup_arrow.h).
 *
 *      records   |abcd|abcd|abcd|abcd| ...      tile by tile, so that rows stay in the first cache
 *                  |  |
 *      columns   aaaa..  bbbb..  cccc..  dddd..    gathered, but for a column that lies like that
 *                                                  already: its buffer is the span's
 *
 *      parent --children--> child {buffers, memory of its own}
 *                           child {buffer in the span, its own lease}
 *
 *      slab     |count of children|valid 0|values 0|valid 1|values 1| ...     all buffers of known length
 *
 * A child that was moved out of the parent lives on alone: children count on the slab, and what it does not
 * hold (texts, a lease) is a child's own. One allocation per batch, because many middling ones are given
 * back to the kernel at each release and faulted in again by the next batch: half of the time.
 * Only a child that was not copied has a lease, so that a copied batch costs the pool nothing.
 *
 * Invariant: the last release of a child gives back its lease; nobody else does.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/arrow.h"
#include "shm/decimal.h"

#define TILE          256u /* records: 14 KiB of 56 bytes each; a multiple of 8 for the bitmaps */
#define BUFFER_ALIGN  64u  /* what Arrow recommends */
#define TEXT_FIRST    4096u
#define PAD(len)      (((len) + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN)
#define DECIMAL_WIDTH 16u

__extension__ typedef __int128 int128;

/* ---- memory ----------------------------------------------------------------------------------- */

/* The buffers of an array's columns. */
struct slab {
	_Alignas(BUFFER_ALIGN) _Atomic uint32_t refs; /* columns, and who makes them */
	size_t used;                                  /* bytes behind this header */
};

/* A column while it is filled, and afterwards what its array points to. */
struct column {
	const void *buffers[3];
	struct stoup_field field;
	enum stoup_arrow_form form;
	uint32_t width;       /* bytes of the field in a record */
	uint32_t value_width; /* bytes of a value in the column */
	int borrowed;         /* buffers[1] is the span's, held by `lease` */
	struct stoup_lease lease;
	struct slab *slab; /* has valid, values and offsets */
	uint8_t *valid;    /* bitmap; NULL: the field has no null value */
	uint8_t *values;
	int32_t *offsets;
	uint8_t *text;
	size_t text_len, text_cap;
	uint64_t null_cnt;
};

struct parent {
	const void *buffers[1];
	struct ArrowArray *children;
	struct ArrowArray *pointers[];
};

static void slab_release(struct slab *slab)
{
	/* Whoever frees it sees what the others did with it. */
	if (slab && atomic_fetch_sub_explicit(&slab->refs, 1, memory_order_acq_rel) == 1)
		free(slab);
}

static void column_free(struct column *column)
{
	if (column->borrowed)
		stoup_release(&column->lease);
	slab_release(column->slab);
	free(column->text);
	free(column);
}

static void child_release(struct ArrowArray *array)
{
	column_free(array->private_data);
	array->release = NULL;
}

static void parent_release(struct ArrowArray *array)
{
	struct parent *parent = array->private_data;

	for (int64_t i = 0; i < array->n_children; i++)
		if (array->children[i]->release)
			array->children[i]->release(array->children[i]);
	free(parent->children);
	free(parent);
	array->release = NULL;
}

/* The next `len` bytes of a slab that has room for them. */
static void *buffer_take(struct slab *slab, uint64_t len)
{
	uint8_t *buffer = (uint8_t *)(slab + 1) + slab->used;

	/* Padding goes into files that readers write: no stray bytes. */
	memset(buffer + len, 0, PAD(len) - len);
	slab->used += PAD(len);
	return buffer;
}

/* ---- values ----------------------------------------------------------------------------------- */

static inline uint64_t bits_load(const uint8_t *at, uint32_t width)
{
	uint64_t bits = 0;

	switch (width) {
	case 1:
		return *at;
	case 2:
		memcpy(&bits, at, 2);
		return bits;
	case 4:
		memcpy(&bits, at, 4);
		return bits;
	default:
		memcpy(&bits, at, 8);
		return bits;
	}
}

static int is_signed(const struct stoup_field *field)
{
	return field->type == STOUP_TYPE_I8 || field->type == STOUP_TYPE_I16 ||
	       field->type == STOUP_TYPE_I32 || field->type == STOUP_TYPE_I64;
}

static int64_t sign_extend(uint64_t bits, uint32_t width)
{
	unsigned shift = 64 - 8 * width;

	return (int64_t)(bits << shift) >> shift;
}

/* ---- one tile of one column ------------------------------------------------------------------- */

/* Records of one tile: `at` is the field in the first one. */
struct tile {
	const uint8_t *at;
	uint64_t stride;
	uint64_t first, cnt; /* first is a multiple of 8 */
};

/* `width` is a constant at each call, so that its loads are plain ones. */
__attribute__((always_inline)) static inline void valid_bits(
	struct column *column, const struct tile *tile, uint32_t width)
{
	uint64_t null_bits = column->field.null_bits, stride = tile->stride;
	uint8_t *dst = column->valid + tile->first / 8;
	const uint8_t *at = tile->at;

	for (uint64_t left = tile->cnt; left > 0;) {
		uint32_t cnt = left < 8 ? (uint32_t)left : 8, byte = 0;

		for (uint32_t j = 0; j < cnt; j++, at += stride)
			byte |= (uint32_t)(bits_load(at, width) != null_bits) << j;
		column->null_cnt += cnt - (uint32_t)__builtin_popcount(byte);
		*dst++ = (uint8_t)byte;
		left -= cnt;
	}
}

static void fill_valid(struct column *column, const struct tile *tile)
{
	switch (column->width) {
	case 1:
		valid_bits(column, tile, 1);
		break;
	case 2:
		valid_bits(column, tile, 2);
		break;
	case 4:
		valid_bits(column, tile, 4);
		break;
	default:
		valid_bits(column, tile, 8);
	}
}

static int is_valid(const struct column *column, uint64_t idx)
{
	return !column->valid || (column->valid[idx / 8] >> (idx % 8) & 1);
}

/* With a constant width each of these loops is a load and a store. */
#define GATHER(width)                                                                              \
	case width:                                                                                \
		for (uint64_t i = 0; i < cnt; i++)                                                 \
			memcpy(dst + i * (width), at + i * stride, width);                         \
		break

static void fill_plain(struct column *column, const struct tile *tile)
{
	uint8_t *dst = column->values + tile->first * column->width;
	const uint8_t *at = tile->at;
	uint64_t cnt = tile->cnt, stride = tile->stride;

	switch (column->width) {
		GATHER(1);
		GATHER(2);
		GATHER(4);
		GATHER(8);
	default:
		for (uint64_t i = 0; i < cnt; i++)
			memcpy(dst + i * column->width, at + i * stride, column->width);
	}
}

/* Times and durations: u64 ones beyond i64 have no place in Arrow. */
static int check_i64(const struct column *column, const struct tile *tile, uint64_t *ret_idx)
{
	if (column->field.type != STOUP_TYPE_U64)
		return 0;
	for (uint64_t i = 0; i < tile->cnt; i++) {
		if (bits_load(tile->at + i * tile->stride, 8) > INT64_MAX &&
			is_valid(column, tile->first + i)) {
			*ret_idx = tile->first + i;
			return -ERANGE;
		}
	}
	return 0;
}

static int fill_i64(struct column *column, const struct tile *tile, uint64_t *ret_idx)
{
	int64_t *dst = (int64_t *)(void *)column->values + tile->first;
	int sign = is_signed(&column->field);

	if (column->width == 8) {
		fill_plain(column, tile);
		return check_i64(column, tile, ret_idx);
	}
	for (uint64_t i = 0; i < tile->cnt; i++) {
		uint64_t bits = bits_load(tile->at + i * tile->stride, column->width);

		dst[i] = sign ? sign_extend(bits, column->width) : (int64_t)bits;
	}
	return 0;
}

static void fill_decimal(struct column *column, const struct tile *tile)
{
	uint8_t *dst = column->values + tile->first * DECIMAL_WIDTH;
	int sign = is_signed(&column->field);
	int128 power = 1;

	/* Nearly all prices: an i64 whose scale is the column's. */
	if (column->field.type == STOUP_TYPE_I64 && column->field.exp10 < 0) {
		for (uint64_t i = 0; i < tile->cnt; i++) {
			int128 value = (int64_t)bits_load(tile->at + i * tile->stride, 8);

			memcpy(dst + i * DECIMAL_WIDTH, &value, DECIMAL_WIDTH);
		}
		return;
	}
	for (int i = 0; i < column->field.exp10; i++)
		power *= 10;
	for (uint64_t i = 0; i < tile->cnt; i++) {
		uint64_t bits = bits_load(tile->at + i * tile->stride, column->width);
		int128 value = sign ? (int128)sign_extend(bits, column->width) : (int128)bits;

		value *= power; /* below 2^64 * 10^18 < 10^38 */
		memcpy(dst + i * DECIMAL_WIDTH, &value, DECIMAL_WIDTH);
	}
}

static void fill_float(struct column *column, const struct tile *tile)
{
	double *dst = (double *)(void *)column->values + tile->first;
	int sign = is_signed(&column->field), exp10 = column->field.exp10;

	for (uint64_t i = 0; i < tile->cnt; i++) {
		uint64_t bits = bits_load(tile->at + i * tile->stride, column->width);

		if (sign)
			dst[i] = stoup_decimal_double(sign_extend(bits, column->width), exp10);
		else
			dst[i] = stoup_decimal_double_u64(bits, exp10);
	}
}

/* ---- texts ------------------------------------------------------------------------------------ */

/* Bytes of the UTF-8 sequence at `at`, at most `len`; 0: there is none. */
static uint32_t utf8_len(const uint8_t *at, uint32_t len)
{
	uint32_t cnt = at[0] < 0x80   ? 1
	               : at[0] < 0xc2 ? 0
	               : at[0] < 0xe0 ? 2
	               : at[0] < 0xf0 ? 3
	                              : 4;

	if (at[0] > 0xf4 || cnt > len)
		return 0;
	for (uint32_t i = 1; i < cnt; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	/* Longer than need be, surrogates, beyond U+10FFFF. */
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
		(at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return cnt;
}

static int is_utf8(const uint8_t *text, uint32_t len)
{
	for (uint32_t i = 0, cnt; i < len; i += cnt) {
		cnt = utf8_len(text + i, len - i);
		if (cnt == 0)
			return 0;
	}
	return 1;
}

static int text_room(struct column *column, size_t len)
{
	size_t cap = column->text_cap ? column->text_cap * 2 : TEXT_FIRST;
	uint8_t *text;

	if (column->text_len + len <= column->text_cap)
		return 0;
	while (cap < column->text_len + len)
		cap *= 2;
	text = aligned_alloc(BUFFER_ALIGN, cap);
	if (!text)
		return -ENOMEM;
	if (column->text_len > 0)
		memcpy(text, column->text, column->text_len);
	free(column->text);
	column->text = text;
	column->text_cap = cap;
	return 0;
}

/* Texts of one byte: a side, an action. */
static int fill_char(struct column *column, const struct tile *tile, uint64_t *ret_idx)
{
	int32_t *offsets = column->offsets + tile->first + 1;
	uint8_t *dst;
	size_t len = 0;

	if (column->text_len + tile->cnt > INT32_MAX)
		return -EFBIG;
	if (text_room(column, tile->cnt) < 0)
		return -ENOMEM;
	dst = column->text + column->text_len;
	for (uint64_t i = 0; i < tile->cnt; i++) {
		uint8_t c = tile->at[i * tile->stride];

		if (c >= 0x80) {
			*ret_idx = tile->first + i;
			return -EILSEQ;
		}
		dst[len] = c; /* an empty text is written over */
		len += c != 0;
		offsets[i] = (int32_t)(column->text_len + len);
	}
	column->text_len += len;
	return 0;
}

static int fill_text(struct column *column, const struct tile *tile, uint64_t *ret_idx)
{
	if (column->width == 1 && !column->valid)
		return fill_char(column, tile, ret_idx);
	for (uint64_t i = 0; i < tile->cnt; i++) {
		const uint8_t *text = tile->at + i * tile->stride;
		uint32_t len = (uint32_t)strnlen((const char *)text, column->width);

		*ret_idx = tile->first + i;
		if (!is_valid(column, tile->first + i))
			len = 0;
		if (!is_utf8(text, len))
			return -EILSEQ;
		if (column->text_len + len > INT32_MAX)
			return -EFBIG;
		if (text_room(column, len) < 0)
			return -ENOMEM;
		if (len > 0)
			memcpy(column->text + column->text_len, text, len);
		column->text_len += len;
		column->offsets[tile->first + i + 1] = (int32_t)column->text_len;
	}
	return 0;
}

/* ---- columns ---------------------------------------------------------------------------------- */

static int column_fill(struct column *column, const struct tile *tile, uint64_t *ret_idx)
{
	if (column->valid)
		fill_valid(column, tile);
	switch (column->form) {
	case STOUP_ARROW_PLAIN:
		if (!column->borrowed)
			fill_plain(column, tile);
		return 0;
	case STOUP_ARROW_I64:
		return column->borrowed ? check_i64(column, tile, ret_idx)
		                        : fill_i64(column, tile, ret_idx);
	case STOUP_ARROW_DECIMAL:
		fill_decimal(column, tile);
		return 0;
	case STOUP_ARROW_FLOAT:
		fill_float(column, tile);
		return 0;
	case STOUP_ARROW_TEXT:
		return fill_text(column, tile, ret_idx);
	case STOUP_ARROW_SKIP:
		break;
	}
	return 0;
}

/* Do the values lie in the span as the column wants them? */
static int lies_so(const struct column *column, const struct stoup_span *span)
{
	if (span->stride != column->width)
		return 0;
	return column->form == STOUP_ARROW_PLAIN ||
	       (column->form == STOUP_ARROW_I64 && column->width == 8);
}

static uint64_t values_len(const struct column *column, uint64_t cnt)
{
	if (column->form == STOUP_ARROW_TEXT)
		return (cnt + 1) * sizeof(*column->offsets);
	if (column->form == STOUP_ARROW_DECIMAL)
		return cnt * DECIMAL_WIDTH;
	return cnt * (column->form == STOUP_ARROW_PLAIN ? column->width : 8);
}

/* Bytes of the slab that a column needs. */
static uint64_t column_len(const struct column *column, const struct stoup_span *span)
{
	uint64_t len = column->field.flags & STOUP_FIELD_NULL ? PAD((span->record_cnt + 7) / 8) : 0;

	return lies_so(column, span) ? len : len + PAD(values_len(column, span->record_cnt));
}

static int column_buffers(struct column *column, const struct stoup_span *span, struct slab *slab)
{
	uint64_t cnt = span->record_cnt;
	int rc;

	if (lies_so(column, span)) {
		rc = stoup_hold(span, &column->lease);
		if (rc < 0)
			return rc;
		column->borrowed = 1;
	}
	column->slab = slab;
	atomic_fetch_add_explicit(&slab->refs, 1, memory_order_relaxed);
	if (column->field.flags & STOUP_FIELD_NULL)
		column->valid = buffer_take(slab, (cnt + 7) / 8);
	if (column->borrowed)
		return 0;
	column->values = buffer_take(slab, values_len(column, cnt));
	if (column->form != STOUP_ARROW_TEXT)
		return 0;
	column->offsets = (int32_t *)(void *)column->values;
	column->offsets[0] = 0;
	return text_room(column, 1);
}

static void column_init(
	struct column *column, const struct stoup_field *field, enum stoup_arrow_form form)
{
	*column = (struct column){.field = *field, .form = form, .width = stoup_arrow_width(field)};
}

static int column_make(const struct stoup_field *field, enum stoup_arrow_form form,
	const struct stoup_span *span, struct slab *slab, struct ArrowArray *ret)
{
	struct column *column = malloc(sizeof(*column));
	int rc;

	if (!column)
		return -ENOMEM;
	column_init(column, field, form);
	rc = column_buffers(column, span, slab);
	if (rc < 0) {
		column_free(column);
		return rc;
	}
	*ret = (struct ArrowArray){.length = (int64_t)span->record_cnt,
		.n_buffers = form == STOUP_ARROW_TEXT ? 3 : 2,
		.buffers = column->buffers,
		.release = child_release,
		.private_data = column};
	return 0;
}

/* A filled column: its array points to what it has. */
static void column_finish(struct ArrowArray *array, const struct stoup_span *span)
{
	struct column *column = array->private_data;

	if (column->null_cnt == 0)
		column->valid = NULL;
	array->null_count = (int64_t)column->null_cnt;
	column->buffers[0] = column->valid;
	if (column->form == STOUP_ARROW_TEXT) {
		column->buffers[1] = column->offsets;
		column->buffers[2] = column->text;
		memset(column->text + column->text_len, 0, column->text_cap - column->text_len);
	} else {
		column->buffers[1] = column->borrowed
		                             ? (const uint8_t *)span->base + column->field.off
		                             : column->values;
	}
}

/* ---- the array -------------------------------------------------------------------------------- */

static int fill_error(const struct stoup_span *span, const struct column *column, uint64_t idx,
	int rc, struct stoup_error *err)
{
	unsigned long long ordinal = (unsigned long long)(span->ordinal + idx);
	const char *name = column->field.name;

	if (rc == -ERANGE)
		return stoup_error_set(err, rc,
			"record %llu, field %.35s: a time beyond the year 2262, which Arrow's timestamps do "
			"not reach; STOUP_ARROW_TIME_INT gives the integers",
			ordinal, name);
	if (rc == -EILSEQ)
		return stoup_error_set(err, rc,
			"record %llu, field %.35s: the text is not UTF-8; STOUP_ARROW_TEXT_BYTES gives "
			"its bytes",
			ordinal, name);
	if (rc == -EFBIG)
		return stoup_error_set(err, rc,
			"field %.35s: more than 2 GiB of text in one array of %llu records; export a shorter "
			"span, or use stoup_arrow_stream",
			name, (unsigned long long)span->record_cnt);
	return stoup_error_set(err, rc, "no memory for the column %.35s of %llu records", name,
		(unsigned long long)span->record_cnt);
}

static int fill_all(
	struct ArrowArray *array, const struct stoup_span *span, struct stoup_error *err)
{
	for (uint64_t first = 0; first < span->record_cnt; first += TILE) {
		uint64_t left = span->record_cnt - first;
		struct tile tile = {
			.stride = span->stride, .first = first, .cnt = left < TILE ? left : TILE};
		const uint8_t *row = (const uint8_t *)span->base + first * span->stride;

		for (int64_t i = 0; i < array->n_children; i++) {
			struct column *column = array->children[i]->private_data;
			uint64_t idx = 0;
			int rc;

			tile.at = row + column->field.off;
			rc = column_fill(column, &tile, &idx);
			if (rc < 0)
				return fill_error(span, column, idx, rc, err);
		}
	}
	return 0;
}

static int column_error(
	const struct stoup_span *span, const char *name, int rc, struct stoup_error *err)
{
	return stoup_error_set(err, rc,
		rc == -ENOMEM ? "no memory for the column %.35s of %llu records"
		: rc == -EINVAL
			? "the column %.35s of %llu records is not copied, and the bytes of its span "
			  "are no longer held"
			: "no lease for the column %.35s of %llu records, which is not copied: "
			  "release something",
		name, (unsigned long long)span->record_cnt);
}

/* The columns of an array, one after the other: 0 where there are no more. */
struct walk {
	struct stoup_field record; /* of STOUP_ARROW_RECORDS */
	const struct stoup_field *field;
	enum stoup_arrow_form form;
	uint32_t idx;
};

static int walk_next(struct walk *walk, const struct stoup_schema *schema, uint32_t flags)
{
	if (flags & STOUP_ARROW_RECORDS) {
		walk->record = stoup_arrow_record_field(schema);
		walk->field = &walk->record;
		walk->form = STOUP_ARROW_PLAIN;
		return walk->idx++ == 0;
	}
	while (walk->idx < schema->field_cnt) {
		walk->field = &schema->fields[walk->idx++];
		walk->form = stoup_arrow_form(walk->field, flags);
		if (walk->form != STOUP_ARROW_SKIP)
			return 1;
	}
	return 0;
}

static struct slab *slab_make(const struct stoup_span *span, uint32_t flags)
{
	uint64_t len = sizeof(struct slab);
	struct walk walk = {0};
	struct column column;
	struct slab *slab;

	while (walk_next(&walk, span->schema, flags)) {
		column_init(&column, walk.field, walk.form);
		len += column_len(&column, span);
	}
	slab = aligned_alloc(BUFFER_ALIGN, PAD(len));
	if (slab) {
		atomic_init(&slab->refs, 1);
		slab->used = 0;
	}
	return slab;
}

static int columns_add(struct ArrowArray *array, const struct stoup_span *span, uint32_t flags,
	struct stoup_error *err)
{
	struct parent *parent = array->private_data;
	struct slab *slab = slab_make(span, flags);
	struct walk walk = {0};
	int rc = 0;

	if (!slab)
		return stoup_error_set(err, -ENOMEM, "no memory for the columns of %llu records",
			(unsigned long long)span->record_cnt);
	while (rc == 0 && walk_next(&walk, span->schema, flags)) {
		struct ArrowArray *child = &parent->children[array->n_children];

		rc = column_make(walk.field, walk.form, span, slab, child);
		if (rc < 0) {
			column_error(span, walk.field->name, rc, err);
			break;
		}
		parent->pointers[array->n_children++] = child;
	}
	slab_release(slab);
	return rc;
}

int stoup_arrow_array(const struct stoup_span *span, uint32_t flags, struct ArrowArray *ret,
	struct stoup_error *err)
{
	uint32_t cap;
	struct ArrowArray array = {.n_buffers = 1, .release = parent_release};
	struct parent *parent;
	int rc = stoup_arrow_check(span->schema, flags, err);

	if (rc < 0)
		return rc;
	if (span->schema->stride == 0)
		return stoup_arrow_messages(span, flags, ret, err);
	cap = span->schema->field_cnt + 1;
	parent = calloc(1, sizeof(*parent) + cap * sizeof(parent->pointers[0]));
	if (!parent)
		return stoup_error_set(err, -ENOMEM, "no memory for an Arrow array");
	parent->children = calloc(cap, sizeof(*parent->children));
	array.length = (int64_t)span->record_cnt;
	array.buffers = parent->buffers;
	array.children = parent->pointers;
	array.private_data = parent;
	rc = parent->children ? columns_add(&array, span, flags, err)
	                      : stoup_error_set(err, -ENOMEM, "no memory for an Arrow array");
	if (rc == 0)
		rc = fill_all(&array, span, err);
	if (rc < 0) {
		parent_release(&array);
		return rc;
	}
	for (int64_t i = 0; i < array.n_children; i++)
		column_finish(array.children[i], span);
	*ret = array;
	return 0;
}
