/* SPDX-License-Identifier: Apache-2.0 */
/* import_series.c - the import's schemas and series, and how to find them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "codec/volume.h"
#include "producer/event64.h"
#include "producer/import_state.h"

#define SERIES_CNT_CAP (1u << 28) /* 64 GiB of index alone: a file that claims more is broken */

/* ---- schemas --------------------------------------------------------------------------------- */

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b != 0) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Decoded bytes of a full block: as many whole records as fit. Records that are large beside the
 * block would leave more than a tenth of it empty, so that their blocks are larger. Blocks that are
 * stored as they are begin at multiples of 4096 bytes: where it costs under a tenth, they hold a
 * multiple of that, and so follow each other without a gap, as one array when mapped. */
uint32_t stoup_import_block_len(uint32_t block_len, uint32_t codec, uint32_t stride)
{
	uint64_t len = block_len;
	uint64_t even = (uint64_t)stride / gcd(stride, STOUP_VOL_BLOCK_ALIGN_RAW) *
	                STOUP_VOL_BLOCK_ALIGN_RAW;

	if (len < 10ull * stride)
		len = 10ull * stride;
	if (codec == STOUP_CODEC_NONE && len / even * even >= len / 10 * 9)
		return (uint32_t)(len / even * even);
	return (uint32_t)(len / stride * stride);
}

static int schema_copy(const struct stoup_import *import, const struct stoup_schema *schema,
	struct stoup_import_schema *ret)
{
	struct stoup_import_schema copy = {.schema = *schema};

	copy.fields = calloc(schema->field_cnt ? schema->field_cnt : 1, sizeof(*copy.fields));
	if (!copy.fields)
		return -ENOMEM;
	if (schema->field_cnt > 0)
		memcpy(copy.fields, schema->fields, schema->field_cnt * sizeof(*copy.fields));
	copy.schema.fields = copy.fields;
	stoup_sums_fields(&copy.schema, &copy.sums);
	copy.block_len = schema->stride ? stoup_import_block_len(import->options.block_len,
						  import->options.encoding.codec, schema->stride)
	                                : import->options.block_len;
	*ret = copy;
	return 0;
}

void stoup_import_schema_count(struct stoup_import_schema *schema, uint64_t cnt, uint64_t len)
{
	schema->record_cnt += cnt;
	schema->record_len += len;
	if (schema->schema.stride == 0)
		schema->record_len += cnt * STOUP_MESSAGE_STRIDE;
}

static int64_t schema_find(const struct stoup_import *import, uint64_t hash)
{
	uint32_t i;

	/* A handful per import; a volume of many versions has tens. */
	for (i = 0; i < import->schema_cnt; i++) {
		if (import->schemas[i].schema.hash == hash)
			return i;
	}
	return -1;
}

static int64_t schema_add(
	struct stoup_import *import, const struct stoup_schema *schema, struct stoup_error *err)
{
	int64_t idx = schema_find(import, schema->hash);
	int rc;

	if (idx >= 0)
		return idx;
	rc = stoup_schema_valid(schema, err);
	if (rc < 0)
		return rc;
	if (schema->flags & STOUP_SCHEMA_VARIABLE && schema->align != STOUP_MESSAGE_ALIGN)
		return stoup_error_set(err, -EINVAL,
			"schema '%s': messages aligned to %" PRIu32
			"; 8 is what they are stored with",
			schema->name, schema->align);
	if (schema->stride > STOUP_RECORD_LEN_CAP)
		return stoup_error_set(err, -EINVAL,
			"schema '%s': records of %" PRIu32 " bytes; at most %u are allowed",
			schema->name, schema->stride, STOUP_RECORD_LEN_CAP);
	if (import->schema_cnt == import->schema_cap) {
		uint32_t cap = import->schema_cap ? import->schema_cap * 2 : 8;
		struct stoup_import_schema *grown = realloc(import->schemas, cap * sizeof(*grown));

		if (!grown)
			return stoup_error_set(err, -ENOMEM, "no memory for a schema");
		import->schemas = grown;
		import->schema_cap = cap;
	}
	rc = schema_copy(import, schema, &import->schemas[import->schema_cnt]);
	if (rc < 0)
		return stoup_error_set(err, rc, "no memory for a schema");
	return import->schema_cnt++;
}

/* ---- the table of series --------------------------------------------------------------------- */

static uint32_t *bucket_of(
	const struct stoup_import *import, const char *name, size_t len, uint32_t schema_idx)
{
	uint32_t mask = import->bucket_cap - 1;
	uint32_t at = (uint32_t)(stoup_vol_hash(name, len) + schema_idx * 0x9e3779b9u) & mask;

	for (;; at = (at + 1) & mask) {
		uint32_t idx = import->buckets[at];

		if (idx == 0 || (import->series[idx - 1].schema_idx == schema_idx &&
					strcmp(import->series[idx - 1].name, name) == 0))
			return &import->buckets[at];
	}
}

/* Keep the table at most half full. */
static int buckets_grow(struct stoup_import *import)
{
	uint32_t cap = import->bucket_cap ? import->bucket_cap * 2 : 1024, i;
	uint32_t *old = import->buckets;

	if (import->bucket_cap > 0 && import->series_cnt < import->bucket_cap / 2)
		return 0;
	import->buckets = calloc(cap, sizeof(*import->buckets));
	if (!import->buckets) {
		import->buckets = old;
		return -ENOMEM;
	}
	free(old);
	import->bucket_cap = cap;
	for (i = 0; i < import->series_cnt; i++) {
		const char *name = import->series[i].name;

		*bucket_of(import, name, strlen(name), import->series[i].schema_idx) = i + 1;
	}
	return 0;
}

static int series_grow(struct stoup_import *import)
{
	uint32_t cap = import->series_cap ? import->series_cap * 2 : 64;
	struct stoup_import_series *grown;

	if (import->series_cnt < import->series_cap)
		return 0;
	if (cap > SERIES_CNT_CAP)
		return -ENOMEM;
	grown = realloc(import->series, cap * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	import->series = grown;
	import->series_cap = cap;
	return 0;
}

int64_t stoup_import_series_lookup(
	const struct stoup_import *import, const char *name, uint64_t schema_hash)
{
	int64_t schema_idx = schema_find(import, schema_hash);

	if (schema_idx < 0 || import->bucket_cap == 0)
		return -1;
	return (int64_t)*bucket_of(import, name, strlen(name), (uint32_t)schema_idx) - 1;
}

/* Events of hftbacktest have an order of their own, which no option changes. */
static int keeps_order(const struct stoup_import *import, const struct stoup_schema *schema)
{
	return stoup_event64_is(schema) || import->options.order == STOUP_ORDER_KEEP;
}

/* Asked to keep what comes, nobody looks at it. */
static int checks_events(const struct stoup_import *import, const struct stoup_schema *schema)
{
	return stoup_event64_is(schema) &&
	       !(import->options.order_given && import->options.order == STOUP_ORDER_KEEP);
}

int64_t stoup_import_series_add(struct stoup_import *import, const char *name,
	const struct stoup_schema *schema, struct stoup_error *err)
{
	int64_t schema_idx = schema_add(import, schema, err);
	struct stoup_import_series *series;
	uint32_t *bucket;

	if (schema_idx < 0)
		return schema_idx;
	if (buckets_grow(import) < 0 || series_grow(import) < 0)
		goto out_memory;
	bucket = bucket_of(import, name, strlen(name), (uint32_t)schema_idx);
	if (*bucket > 0)
		return *bucket - 1;
	series = &import->series[import->series_cnt];
	*series = (struct stoup_import_series){.name = strdup(name),
		.schema_idx = (uint32_t)schema_idx,
		.flags = keeps_order(import, schema) ? STOUP_VOL_SERIES_KEEP_ORDER : 0,
		.check_events = checks_events(import, schema),
		.overlap_key = INT64_MAX};
	if (!series->name)
		goto out_memory;
	*bucket = ++import->series_cnt;
	return import->series_cnt - 1;
out_memory:
	return stoup_error_set(
		err, -ENOMEM, "no memory for %" PRIu32 " series and one more", import->series_cnt);
}

/* ---- order ----------------------------------------------------------------------------------- */

int stoup_import_series_cmp(const struct stoup_import *import, uint32_t a, uint32_t b)
{
	const struct stoup_import_series *sa = &import->series[a], *sb = &import->series[b];

	if (sa->schema_idx != sb->schema_idx)
		return sa->schema_idx < sb->schema_idx ? -1 : 1;
	return strcmp(sa->name, sb->name);
}

static int sorted_cmp(const void *a, const void *b, void *import)
{
	const uint32_t *ia = a, *ib = b;

	return stoup_import_series_cmp(import, *ia, *ib);
}

uint32_t *stoup_import_series_sorted(const struct stoup_import *import)
{
	uint32_t *order = malloc((import->series_cnt + 1) * sizeof(*order)), i;
	/* qsort_r has no const for its context, and only hands it on. */
	union {
		const struct stoup_import *in;
		void *out;
	} context = {.in = import};

	if (!order)
		return NULL;
	for (i = 0; i < import->series_cnt; i++)
		order[i] = i;
	qsort_r(order, import->series_cnt, sizeof(*order), sorted_cmp, context.out);
	return order;
}

void stoup_import_series_fini(struct stoup_import *import)
{
	uint32_t i;

	for (i = 0; i < import->series_cnt; i++) {
		free(import->series[i].name);
		free(import->series[i].samples);
	}
	for (i = 0; i < import->schema_cnt; i++)
		free(import->schemas[i].fields);
	free(import->series);
	free(import->schemas);
	free(import->buckets);
}
