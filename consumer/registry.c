/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c - what a handle has given out for good: series by id, one schema object per layout.
 *
 *      snapshot of today --name, layout--> entry 17 {copy of the name, schema object} <-- id 18
 *      snapshot after a restart ------------^
 *
 * Invariant: an entry and a schema object, once made, do not change and live until detach, so that
 * a struct stoup_series stays valid over refreshes and restarts. Two volumes whose layouts agree
 * share one schema object: comparing pointers compares layouts.
 *
 * Concurrency: entries are under the client's mutex. Schema objects are made under `question`, by
 * whoever makes a snapshot, and nobody else looks them up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/client.h"

#define ENTRY_CAP_FIRST 64u

/* ---- schemas --------------------------------------------------------------------------------- */

static struct stoup_schema *schema_copy(const struct stoup_schema *schema)
{
	struct stoup_schema *made = malloc(sizeof(*made));
	struct stoup_field *fields = calloc(schema->field_cnt, sizeof(*fields));

	if (!made || !fields) {
		free(made);
		free(fields);
		return NULL;
	}
	memcpy(fields, schema->fields, schema->field_cnt * sizeof(*fields));
	*made = *schema;
	made->fields = fields;
	return made;
}

int stoup_registry_schema(struct stoup *st, const struct stoup_catalog *catalog, uint32_t idx,
	const struct stoup_schema **ret, struct stoup_error *err)
{
	const struct stoup_catalog_schema *c = &stoup_catalog_schemas(catalog)[idx];
	struct stoup_schema schema = {
		.stride = c->stride,
		.align = c->align,
		.key_off = c->key_off,
		.flags = c->flags,
		.interval_ns = c->interval_ns,
		.field_cnt = c->field_cnt,
		.fields = stoup_catalog_fields(catalog) + c->field_first,
	};
	struct stoup_schema **more;
	int rc;

	memcpy(schema.name, c->name, sizeof(schema.name));
	schema.hash = stoup_schema_hash(&schema);
	for (uint32_t i = 0; i < st->schema_cnt; i++) {
		if (st->schemas[i]->hash == schema.hash &&
			strcmp(st->schemas[i]->name, schema.name) == 0) {
			*ret = st->schemas[i];
			return 0;
		}
	}
	rc = stoup_schema_valid(&schema, err);
	if (rc < 0) {
		stoup_error_prefix(err, "the daemon's catalog of volume %u", catalog->volume_idx);
		return stoup_error_set(err, -EPROTO, "%s", err ? err->text : "");
	}
	more = realloc(st->schemas, (st->schema_cnt + 1) * sizeof(struct stoup_schema *));
	if (!more)
		return stoup_error_set(err, -ENOMEM, "no memory for schemas");
	st->schemas = more;
	st->schemas[st->schema_cnt] = schema_copy(&schema);
	if (!st->schemas[st->schema_cnt])
		return stoup_error_set(err, -ENOMEM, "no memory for a schema");
	*ret = st->schemas[st->schema_cnt++];
	return 0;
}

/* ---- series ---------------------------------------------------------------------------------- */

static uint64_t entry_hash(const char *name, const struct stoup_schema *schema)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ schema->hash;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 32;
}

static void entry_link(struct stoup *st, uint32_t idx)
{
	struct stoup_entry *entry = &st->entries[idx];
	uint32_t *bucket =
		&st->entry_buckets[entry_hash(entry->name, entry->schema) & (st->entry_cap - 1)];

	entry->next = *bucket;
	*bucket = idx;
}

/* Under the mutex: room for one more. */
static int entries_grow(struct stoup *st)
{
	uint32_t cap = st->entry_cap ? st->entry_cap * 2 : ENTRY_CAP_FIRST;
	struct stoup_entry *entries;
	uint32_t *buckets;

	if (st->entry_cnt < st->entry_cap)
		return 0;
	entries = realloc(st->entries, (size_t)cap * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	st->entries = entries;
	buckets = malloc((size_t)cap * sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	for (uint32_t i = 0; i < cap; i++)
		buckets[i] = UINT32_MAX;
	free(st->entry_buckets);
	st->entry_buckets = buckets;
	st->entry_cap = cap;
	for (uint32_t i = 0; i < st->entry_cnt; i++)
		entry_link(st, i);
	return 0;
}

/* Under the mutex: the index of an entry, made where there is none; -ENOMEM. */
static int64_t entry_get(struct stoup *st, const char *name, const struct stoup_schema *schema)
{
	uint32_t idx = UINT32_MAX;
	char *copy;

	if (st->entry_cap > 0)
		idx = st->entry_buckets[entry_hash(name, schema) & (st->entry_cap - 1)];
	for (; idx != UINT32_MAX; idx = st->entries[idx].next)
		if (st->entries[idx].schema == schema && strcmp(st->entries[idx].name, name) == 0)
			return idx;
	copy = strdup(name);
	if (!copy || entries_grow(st) < 0) {
		free(copy);
		return -ENOMEM;
	}
	st->entries[st->entry_cnt] = (struct stoup_entry){.name = copy, .schema = schema};
	entry_link(st, st->entry_cnt);
	return st->entry_cnt++;
}

int stoup_registry_id(struct stoup *st, const char *name, const struct stoup_schema *schema,
	uint64_t *ret_id, const char **ret_name)
{
	int64_t idx;

	pthread_mutex_lock(&st->mutex);
	idx = entry_get(st, name, schema);
	if (idx >= 0) {
		*ret_id = (uint64_t)idx + 1;
		*ret_name = st->entries[idx].name;
	}
	pthread_mutex_unlock(&st->mutex);
	return idx < 0 ? (int)idx : 0;
}

int stoup_registry_entry(struct stoup *st, uint64_t id, const char **ret_name,
	const struct stoup_schema **ret_schema)
{
	int rc = -ENOENT;

	pthread_mutex_lock(&st->mutex);
	if (id != 0 && id <= st->entry_cnt) {
		*ret_name = st->entries[id - 1].name;
		*ret_schema = st->entries[id - 1].schema;
		rc = 0;
	}
	pthread_mutex_unlock(&st->mutex);
	return rc;
}

void stoup_registry_fini(struct stoup *st)
{
	for (uint32_t i = 0; i < st->entry_cnt; i++)
		free(st->entries[i].name);
	free(st->entries);
	free(st->entry_buckets);
	for (uint32_t i = 0; i < st->schema_cnt; i++) {
		free((void *)(uintptr_t)st->schemas[i]->fields);
		free(st->schemas[i]);
	}
	free(st->schemas);
}
