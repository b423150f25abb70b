/* SPDX-License-Identifier: Apache-2.0 */
/* lane.c - see lane.h.
 *
 *      batch   |head|bytes |head|bytes |head|bytes      |
 *               entries, each at a multiple of 8         cap
 *
 * A record's key is not kept: it stands in the record. Line and offset are kept as differences to those of
 * the entry before, because most fit 32 bits.
 */
#include "producer/lane.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_LEN  (256u << 10)
#define ENTRY_STEP 8u

enum kind {
	KIND_PUT,
	KIND_MESSAGE,
	KIND_SERIES,
	KIND_NOTE,
	KIND_FILE,  /* `where` names another file from here on */
	KIND_WHERE, /* line and offset anew */
};

struct head {
	uint8_t kind;
	uint8_t zero[3];
	uint32_t series_idx;
	uint32_t len; /* of the bytes behind the head */
	uint32_t line_step, off_step;
	uint32_t zero2;
};

/* Behind the head of a series: the schema, its fields, the name. */
struct series_entry {
	struct stoup_schema schema;
	uint32_t name_len, zero;
};

struct where_entry {
	uint64_t line, file_off;
};

struct batch {
	struct batch *next;
	size_t len, cap;
	uint8_t bytes[];
};

/* What a series was opened as, to know it when it is opened again. */
struct known {
	char *name;
	uint64_t hash;
	uint32_t len; /* of its records: what a put takes */
};

struct stoup_lane {
	/* of who puts */
	struct batch *filling;
	struct known *known;
	uint32_t known_cnt, known_cap;
	uint32_t *buckets, bucket_cap; /* index + 1 into `known` by hash; 0: empty */
	const char *put_file;
	struct where_entry put_where;

	/* of who replays */
	uint32_t *map;                /* the target's index of a series */
	struct stoup_schema *schemas; /* of series that were replayed: where their keys are */
	uint32_t map_cnt, map_cap;
	char *file; /* the name in force; names before it are kept until the end, for the sink's texts */
	char **files;
	uint32_t file_cnt, file_cap;
	struct where_entry where;

	/* of both, under the lock */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct batch *first, *last;
	size_t queued_len, cap_len;
	struct batch *spare;
	int ended, cancelled;
	int rc;
	struct stoup_error err;
};

/* ---- life -------------------------------------------------------------------------------------- */

int stoup_lane_create(size_t cap_len, struct stoup_lane **ret, struct stoup_error *err)
{
	struct stoup_lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return stoup_error_set(err, -ENOMEM, "no memory to read files beside each other");
	lane->cap_len = cap_len;
	pthread_mutex_init(&lane->lock, NULL);
	pthread_cond_init(&lane->changed, NULL);
	*ret = lane;
	return 0;
}

static void batches_free(struct batch *batch)
{
	while (batch) {
		struct batch *next = batch->next;

		free(batch);
		batch = next;
	}
}

void stoup_lane_destroy(struct stoup_lane *lane)
{
	if (!lane)
		return;
	batches_free(lane->first);
	free(lane->filling);
	free(lane->spare);
	for (uint32_t i = 0; i < lane->known_cnt; i++)
		free(lane->known[i].name);
	for (uint32_t i = 0; i < lane->file_cnt; i++)
		free(lane->files[i]);
	free(lane->known);
	free(lane->buckets);
	free(lane->map);
	free(lane->schemas);
	free(lane->files);
	pthread_cond_destroy(&lane->changed);
	pthread_mutex_destroy(&lane->lock);
	free(lane);
}

/* ---- batches ----------------------------------------------------------------------------------- */

/* Give the filled batch to who replays; waits while the lane is full. 0 or -ECANCELED. */
static int hand_over(struct stoup_lane *lane)
{
	struct batch *batch = lane->filling;
	int cancelled;

	if (!batch || batch->len == 0)
		return 0;
	pthread_mutex_lock(&lane->lock);
	while (lane->queued_len > 0 && lane->queued_len + batch->len > lane->cap_len &&
		!lane->cancelled)
		pthread_cond_wait(&lane->changed, &lane->lock);
	cancelled = lane->cancelled;
	if (!cancelled) {
		if (lane->last)
			lane->last->next = batch;
		else
			lane->first = batch;
		lane->last = batch;
		lane->queued_len += batch->len;
		lane->filling = NULL;
		pthread_cond_broadcast(&lane->changed);
	}
	pthread_mutex_unlock(&lane->lock);
	return cancelled ? -ECANCELED : 0;
}

static struct batch *batch_take(struct stoup_lane *lane, size_t need)
{
	struct batch *batch = NULL;

	if (need <= BATCH_LEN) {
		pthread_mutex_lock(&lane->lock);
		batch = lane->spare;
		lane->spare = NULL;
		pthread_mutex_unlock(&lane->lock);
	}
	if (!batch) {
		size_t cap = need > BATCH_LEN ? need : BATCH_LEN;

		batch = malloc(sizeof(*batch) + cap);
		if (!batch)
			return NULL;
		batch->cap = cap;
	}
	batch->len = 0;
	batch->next = NULL;
	return batch;
}

/* Room for an entry of `len` bytes; NULL with *ret_rc. */
static struct head *entry_begin(
	struct stoup_lane *lane, enum kind kind, size_t len, int *ret_rc, struct stoup_error *err)
{
	size_t need = (sizeof(struct head) + len + ENTRY_STEP - 1) / ENTRY_STEP * ENTRY_STEP;
	struct head *head;

	if (lane->filling && lane->filling->len + need > lane->filling->cap) {
		*ret_rc = hand_over(lane);
		if (*ret_rc < 0) {
			stoup_error_set(err, *ret_rc, "reading was ended");
			return NULL;
		}
	}
	if (!lane->filling)
		lane->filling = batch_take(lane, need);
	if (!lane->filling) {
		*ret_rc = stoup_error_set(err, -ENOMEM, "no memory for records that were read");
		return NULL;
	}
	head = (struct head *)(void *)(lane->filling->bytes + lane->filling->len);
	*head = (struct head){.kind = (uint8_t)kind, .len = (uint32_t)len};
	lane->filling->len += need;
	return head;
}

static int entry_add(struct stoup_lane *lane, enum kind kind, const void *bytes, size_t len,
	struct stoup_error *err)
{
	int rc = 0;
	struct head *head = entry_begin(lane, kind, len, &rc, err);

	if (head)
		memcpy(head + 1, bytes, len);
	return rc;
}

/* ---- who puts ---------------------------------------------------------------------------------- */

static uint32_t *bucket_of(const struct stoup_lane *lane, const char *name, uint64_t hash)
{
	uint64_t h = hash;
	uint32_t mask = lane->bucket_cap - 1, at;

	for (const char *p = name; *p; p++)
		h = (h ^ (uint8_t)*p) * 0x100000001b3ull;
	for (at = (uint32_t)(h ^ h >> 32) & mask;; at = (at + 1) & mask) {
		uint32_t idx = lane->buckets[at];

		if (idx == 0 || (lane->known[idx - 1].hash == hash &&
					strcmp(lane->known[idx - 1].name, name) == 0))
			return &lane->buckets[at];
	}
}

static int buckets_grow(struct stoup_lane *lane)
{
	uint32_t cap = lane->bucket_cap ? lane->bucket_cap * 2 : 64;
	struct known *known;

	if (lane->bucket_cap > 0 && lane->known_cnt < lane->bucket_cap / 2)
		return 0;
	known = realloc(lane->known, cap * sizeof(*known));
	if (!known)
		return -ENOMEM;
	lane->known = known;
	free(lane->buckets);
	lane->bucket_cap = 0;
	lane->buckets = calloc(cap, sizeof(*lane->buckets));
	if (!lane->buckets)
		return -ENOMEM;
	lane->bucket_cap = cap;
	for (uint32_t i = 0; i < lane->known_cnt; i++)
		*bucket_of(lane, known[i].name, known[i].hash) = i + 1;
	return 0;
}

static int series_queue(struct stoup_lane *lane, const char *name,
	const struct stoup_schema *schema, struct stoup_error *err)
{
	size_t fields_len = schema->field_cnt * sizeof(struct stoup_field), name_len = strlen(name);
	struct series_entry entry = {.schema = *schema, .name_len = (uint32_t)name_len};
	int rc = 0;
	struct head *head =
		entry_begin(lane, KIND_SERIES, sizeof(entry) + fields_len + name_len + 1, &rc, err);
	uint8_t *at = head ? (uint8_t *)(head + 1) : NULL;

	if (!head)
		return rc;
	memcpy(at, &entry, sizeof(entry));
	if (fields_len > 0)
		memcpy(at + sizeof(entry), schema->fields, fields_len);
	memcpy(at + sizeof(entry) + fields_len, name, name_len + 1);
	return 0;
}

static int64_t lane_series(
	void *arg, const char *name, const struct stoup_schema *schema, struct stoup_error *err)
{
	struct stoup_lane *lane = arg;
	uint32_t *bucket;
	char *copy;
	int rc;

	if (buckets_grow(lane) < 0)
		return stoup_error_set(err, -ENOMEM, "no memory for a series");
	bucket = bucket_of(lane, name, schema->hash);
	if (*bucket > 0)
		return *bucket - 1;
	rc = series_queue(lane, name, schema, err);
	if (rc < 0)
		return rc;
	copy = strdup(name);
	if (!copy)
		return stoup_error_set(err, -ENOMEM, "no memory for a series");
	lane->known[lane->known_cnt] =
		(struct known){.name = copy, .hash = schema->hash, .len = schema->stride};
	*bucket = ++lane->known_cnt;
	return lane->known_cnt - 1;
}

/* Say where the next entry comes from, as far as its steps do not say it. */
static int where_queue(struct stoup_lane *lane, const struct stoup_where *where, uint32_t *ret_line,
	uint32_t *ret_off, struct stoup_error *err)
{
	struct where_entry now = {.line = where->line, .file_off = where->file_off};
	uint64_t line = now.line - lane->put_where.line,
		 off = now.file_off - lane->put_where.file_off;
	int rc = 0;

	if (where->file != lane->put_file) {
		const char *file = where->file ? where->file : "input";

		rc = entry_add(lane, KIND_FILE, file, strlen(file) + 1, err);
		lane->put_file = where->file;
	}
	if (rc == 0 && (line > UINT32_MAX || off > UINT32_MAX)) {
		rc = entry_add(lane, KIND_WHERE, &now, sizeof(now), err);
		line = off = 0;
	}
	lane->put_where = now;
	*ret_line = (uint32_t)line;
	*ret_off = (uint32_t)off;
	return rc;
}

static int bytes_queue(struct stoup_lane *lane, enum kind kind, uint32_t series_idx,
	const void *bytes, size_t len, int64_t key, const struct stoup_where *where,
	struct stoup_error *err)
{
	size_t key_len = kind == KIND_MESSAGE ? sizeof(key) : 0;
	uint32_t line_step, off_step;
	struct head *head;
	int rc = where_queue(lane, where, &line_step, &off_step, err);

	if (rc < 0)
		return rc;
	head = entry_begin(lane, kind, key_len + len, &rc, err);
	if (!head)
		return rc;
	head->series_idx = series_idx;
	head->line_step = line_step;
	head->off_step = off_step;
	memcpy(head + 1, &key, key_len);
	if (len > 0)
		memcpy((uint8_t *)(head + 1) + key_len, bytes, len);
	return 0;
}

static int lane_put(void *arg, uint32_t series_idx, int64_t key, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	struct stoup_lane *lane = arg;

	return bytes_queue(
		lane, KIND_PUT, series_idx, record, lane->known[series_idx].len, key, where, err);
}

static int lane_message(void *arg, uint32_t series_idx, int64_t key, const void *bytes,
	uint32_t len, const struct stoup_where *where, struct stoup_error *err)
{
	return bytes_queue(arg, KIND_MESSAGE, series_idx, bytes, len, key, where, err);
}

static void lane_note(void *arg, const char *text)
{
	/* A note that finds no memory is lost; the put that follows says why. */
	entry_add(arg, KIND_NOTE, text, strlen(text) + 1, NULL);
}

struct stoup_sink stoup_lane_sink(struct stoup_lane *lane)
{
	return (struct stoup_sink){.arg = lane,
		.series = lane_series,
		.put = lane_put,
		.message = lane_message,
		.note = lane_note};
}

void stoup_lane_end(struct stoup_lane *lane, int rc, const struct stoup_error *err)
{
	hand_over(lane);
	pthread_mutex_lock(&lane->lock);
	lane->ended = 1;
	lane->rc = rc;
	if (rc < 0)
		lane->err = *err;
	pthread_cond_broadcast(&lane->changed);
	pthread_mutex_unlock(&lane->lock);
}

/* ---- who replays ------------------------------------------------------------------------------- */

static int map_add(struct stoup_lane *lane, uint32_t idx, const struct stoup_schema *schema)
{
	if (lane->map_cnt == lane->map_cap) {
		uint32_t cap = lane->map_cap ? lane->map_cap * 2 : 64;
		uint32_t *map = realloc(lane->map, cap * sizeof(*map));
		struct stoup_schema *schemas;

		if (!map)
			return -ENOMEM;
		lane->map = map;
		schemas = realloc(lane->schemas, cap * sizeof(*schemas));
		if (!schemas)
			return -ENOMEM;
		lane->schemas = schemas;
		lane->map_cap = cap;
	}
	lane->map[lane->map_cnt] = idx;
	lane->schemas[lane->map_cnt++] = *schema;
	return 0;
}

static int series_replay(struct stoup_lane *lane, const struct head *head,
	const struct stoup_sink *sink, struct stoup_error *err)
{
	const uint8_t *at = (const uint8_t *)(head + 1);
	struct series_entry entry;
	int64_t idx;

	memcpy(&entry, at, sizeof(entry));
	entry.schema.fields = (const struct stoup_field *)(const void *)(at + sizeof(entry));
	at += sizeof(entry) + entry.schema.field_cnt * sizeof(struct stoup_field);
	idx = sink->series(sink->arg, (const char *)at, &entry.schema, err);
	if (idx < 0)
		return (int)idx;
	if (map_add(lane, (uint32_t)idx, &entry.schema) < 0)
		return stoup_error_set(err, -ENOMEM, "no memory for a series");
	return 0;
}

static int file_replay(struct stoup_lane *lane, const char *name, struct stoup_error *err)
{
	if (lane->file_cnt == lane->file_cap) {
		uint32_t cap = lane->file_cap ? lane->file_cap * 2 : 4;
		char **files = realloc(lane->files, cap * sizeof(*files));

		if (!files)
			return stoup_error_set(err, -ENOMEM, "no memory for a name");
		lane->files = files;
		lane->file_cap = cap;
	}
	lane->file = strdup(name);
	if (!lane->file)
		return stoup_error_set(err, -ENOMEM, "no memory for a name");
	lane->files[lane->file_cnt++] = lane->file;
	return 0;
}

static int record_replay(struct stoup_lane *lane, const struct head *head,
	const struct stoup_sink *sink, struct stoup_error *err)
{
	const uint8_t *bytes = (const uint8_t *)(head + 1);
	struct stoup_where where;
	int64_t key;

	lane->where.line += head->line_step;
	lane->where.file_off += head->off_step;
	where = (struct stoup_where){lane->file, lane->where.line, lane->where.file_off};
	if (head->kind == KIND_PUT) {
		memcpy(&key, bytes + lane->schemas[head->series_idx].key_off, sizeof(key));
		return sink->put(sink->arg, lane->map[head->series_idx], key, bytes, &where, err);
	}
	if (!sink->message)
		return stoup_error_set(err, -ENOTSUP, "messages are not taken here");
	memcpy(&key, bytes, sizeof(key));
	return sink->message(sink->arg, lane->map[head->series_idx], key, bytes + sizeof(key),
		head->len - (uint32_t)sizeof(key), &where, err);
}

static int entry_replay(struct stoup_lane *lane, const struct head *head,
	const struct stoup_sink *sink, struct stoup_error *err)
{
	switch ((enum kind)head->kind) {
	case KIND_PUT:
	case KIND_MESSAGE:
		return record_replay(lane, head, sink, err);
	case KIND_SERIES:
		return series_replay(lane, head, sink, err);
	case KIND_NOTE:
		stoup_sink_note(sink, "%s", (const char *)(head + 1));
		return 0;
	case KIND_FILE:
		return file_replay(lane, (const char *)(head + 1), err);
	case KIND_WHERE:
		memcpy(&lane->where, head + 1, sizeof(lane->where));
		return 0;
	}
	return -EINVAL;
}

static int batch_replay(struct stoup_lane *lane, const struct batch *batch,
	const struct stoup_sink *sink, struct stoup_error *err)
{
	size_t at = 0;
	int rc = 0;

	while (at < batch->len && rc == 0) {
		const struct head *head = (const struct head *)(const void *)(batch->bytes + at);

		rc = entry_replay(lane, head, sink, err);
		at += (sizeof(*head) + head->len + ENTRY_STEP - 1) / ENTRY_STEP * ENTRY_STEP;
	}
	return rc;
}

/* The next batch, or NULL at the end. */
static struct batch *batch_next(struct stoup_lane *lane)
{
	struct batch *batch;

	pthread_mutex_lock(&lane->lock);
	while (!lane->first && !lane->ended)
		pthread_cond_wait(&lane->changed, &lane->lock);
	batch = lane->first;
	if (batch) {
		lane->first = batch->next;
		if (!lane->first)
			lane->last = NULL;
	}
	pthread_mutex_unlock(&lane->lock);
	return batch;
}

/* Its bytes count until they were replayed, so that the bound holds for all of the lane's memory. */
static void batch_done(struct stoup_lane *lane, struct batch *batch)
{
	pthread_mutex_lock(&lane->lock);
	lane->queued_len -= batch->len;
	if (!lane->spare && batch->cap == BATCH_LEN) {
		lane->spare = batch;
		batch = NULL;
	}
	pthread_cond_broadcast(&lane->changed);
	pthread_mutex_unlock(&lane->lock);
	free(batch);
}

int stoup_lane_replay(
	struct stoup_lane *lane, const struct stoup_sink *sink, struct stoup_error *err)
{
	struct batch *batch;
	int rc = 0;

	while (rc == 0 && (batch = batch_next(lane))) {
		rc = batch_replay(lane, batch, sink, err);
		batch_done(lane, batch);
	}
	if (rc < 0) {
		stoup_lane_cancel(lane);
		return rc;
	}
	if (lane->rc < 0)
		return stoup_error_set(err, lane->rc, "%s", lane->err.text);
	return 0;
}

void stoup_lane_cancel(struct stoup_lane *lane)
{
	pthread_mutex_lock(&lane->lock);
	lane->cancelled = 1;
	pthread_cond_broadcast(&lane->changed);
	pthread_mutex_unlock(&lane->lock);
}
