/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - the sink's front: options, series names, checks of keys and order. */
#include "producer/import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "codec/volume.h"
#include "producer/import_state.h"
#include "producer/stop.h"
#include "shm/format.h"

#define PROGRESS_RECORDS 65536u /* how often the clock is looked at */
#define STOP_RECORDS     4096u  /* how often it is asked whether to stop */
#define WHERE_CAP        112u

/* ---- life ------------------------------------------------------------------------------------ */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int options_complete(struct stoup_import_options *options, struct stoup_error *err)
{
	if (options->block_len == 0)
		options->block_len = STOUP_IMPORT_BLOCK_LEN;
	if (options->volume_len == 0)
		options->volume_len = STOUP_IMPORT_VOLUME_LEN;
	if (options->memory_len == 0)
		options->memory_len = STOUP_IMPORT_MEMORY_LEN;
	if (options->block_len < STOUP_IMPORT_BLOCK_LEN_MIN ||
		options->block_len > STOUP_IMPORT_BLOCK_LEN_MAX)
		return stoup_error_set(err, -EINVAL,
			"a block of %" PRIu32 " bytes: 64K to 2M are allowed", options->block_len);
	if (options->memory_len < STOUP_IMPORT_MEMORY_LEN_MIN)
		options->memory_len = STOUP_IMPORT_MEMORY_LEN_MIN;
	if (options->memory_len > STOUP_IMPORT_MEMORY_LEN_MAX)
		options->memory_len = STOUP_IMPORT_MEMORY_LEN_MAX;
	if (options->order < STOUP_ORDER_REFUSE || options->order > STOUP_ORDER_KEEP)
		return stoup_error_set(err, -EINVAL, "unknown order %d", options->order);
	return 0;
}

int stoup_import_begin(const struct stoup_import_options *options, struct stoup_import **ret,
	struct stoup_error *err)
{
	struct stoup_import *import = calloc(1, sizeof(*import));
	int rc;

	if (!import)
		return stoup_error_set(err, -ENOMEM, "no memory for an import");
	import->options = *options;
	import->begin_ns = now_ns();
	rc = options_complete(&import->options, err);
	if (rc == 0 && options->dry_run) {
		rc = stoup_import_dry_begin(import, err);
		if (rc < 0)
			goto out_destroy;
		goto out_begun;
	}
	if (rc == 0)
		rc = stoup_store_lock(options->store_path, &import->lock, err);
	if (rc < 0)
		goto out_destroy;
	stoup_store_sweep(&import->lock);
	rc = stoup_store_open(import->lock.path, &import->store, err);
	if (rc == 0)
		rc = stoup_import_arena_create(import, err);
	if (rc == 0)
		rc = stoup_spill_create(
			import->lock.dir_fd, import->lock.path, &import->spill, err);
	if (rc < 0)
		goto out_destroy;
out_begun:
	stoup_progress_begin(&import->progress, "reading", 0, options->quiet);
	*ret = import;
	return 0;
out_destroy:
	stoup_import_destroy(import);
	return rc;
}

void stoup_import_destroy(struct stoup_import *import)
{
	if (!import)
		return;
	stoup_progress_end(&import->progress);
	stoup_import_arena_destroy(import);
	stoup_spill_destroy(import->spill);
	stoup_import_series_fini(import);
	stoup_store_close(import->store);
	stoup_store_unlock(&import->lock, import->volume_cnt == 0 || !import->finished);
	free(import->affected);
	free(import->sources);
	free(import->refused);
	free(import->volumes);
	free(import);
}

/* ---- series ---------------------------------------------------------------------------------- */

static int name_check(const char *name, struct stoup_error *err)
{
	size_t len = strlen(name), i;

	if (len == 0)
		return stoup_error_set(err, -EINVAL, "the name of the series is empty");
	if (len >= STOUP_SERIES_NAME_CAP)
		return stoup_error_set(err, -EINVAL,
			"series '%.40s...': the name has %zu bytes; at most %d are allowed", name,
			len, STOUP_SERIES_NAME_CAP - 1);
	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c < 0x20 || c == 0x7f)
			return stoup_error_set(err, -EINVAL,
				"series '%.*s': a control byte (0x%02x) in the name", (int)i, name,
				c);
		if (c == '/' && (i == 0 || i + 1 == len || name[i - 1] == '/'))
			return stoup_error_set(err, -EINVAL,
				"series '%.100s': an empty part in the name (a '/' in a symbol is "
				"written %%2F)",
				name);
	}
	return 0;
}

int64_t stoup_import_series(struct stoup_import *import, const char *name,
	const struct stoup_schema *schema, struct stoup_error *err)
{
	int rc = name_check(name, err);

	if (rc < 0)
		return rc;
	if (stoup_event64_is(schema) && import->options.order == STOUP_ORDER_SORT)
		return stoup_error_set(err, -EINVAL,
			"%.100s: events of hftbacktest have two orders, by exchange and by local time, so that "
			"sorting by one breaks the other: leave --sort out",
			name);
	return stoup_import_series_add(import, name, schema, err);
}

/* ---- keys ------------------------------------------------------------------------------------ */

int64_t stoup_import_key(const struct stoup_schema *schema, const void *record)
{
	int64_t key;

	memcpy(&key, (const uint8_t *)record + schema->key_off, sizeof(key));
	return key;
}

/* "FILE:LINE" or "FILE, offset N"; of a long path the end, which tells more. */
static const char *where_text(const struct stoup_where *where, char dst[WHERE_CAP])
{
	const char *file = where && where->file ? where->file : "input", *cut = "";
	size_t len = strlen(file);

	if (len > 80) {
		file += len - 77;
		cut = "...";
	}
	if (!where)
		snprintf(dst, WHERE_CAP, "%s", file);
	else if (where->line > 0)
		snprintf(dst, WHERE_CAP, "%s%s:%" PRIu64, cut, file, where->line);
	else
		snprintf(dst, WHERE_CAP, "%s%s, offset %" PRIu64, cut, file, where->file_off);
	return dst;
}

static int key_check(int64_t key, const struct stoup_where *where, struct stoup_error *err)
{
	char text[WHERE_CAP];

	if (key <= 0 || key == INT64_MAX)
		return stoup_error_set(err, -ERANGE,
			"%s: key %" PRId64
			" (%s) is no time after 1970: a record without a time can "
			"not be placed",
			where_text(where, text), key,
			key == -1 || key == INT64_MAX ? "undefined" : "not positive");
	return 0;
}

static int key_field_check(const struct stoup_schema *schema, int64_t key, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	char text[WHERE_CAP];

	if (schema->stride == 0)
		return stoup_error_set(err, -EINVAL,
			"%s: schema '%s' is one of messages, not of records",
			where_text(where, text), schema->name);
	if (stoup_import_key(schema, record) != key)
		return stoup_error_set(err, -EINVAL,
			"%s: key %" PRId64
			" is not what the key field of schema '%s' holds (%" PRId64 ")",
			where_text(where, text), key, schema->name,
			stoup_import_key(schema, record));
	return 0;
}

static int step_back_error(const struct stoup_import_series *series, int64_t key,
	const struct stoup_where *where, struct stoup_error *err)
{
	char text[WHERE_CAP], now[STOUP_FORMAT_CAP], before[STOUP_FORMAT_CAP];

	stoup_format_time(key, now);
	stoup_format_time(series->prev_key, before);
	return stoup_error_set(err, -EILSEQ,
		"%s: %s is before %s of the record before it; --sort sorts, --order=keep keeps the "
		"order (series %s)",
		where_text(where, text), now, before, series->name);
}

/* The two orders of hftbacktest's events, over all files of the ingest. */
static int events_check(struct stoup_import_series *series, const void *record,
	const struct stoup_where *where, struct stoup_error *err)
{
	struct stoup_event64 event;
	char text[WHERE_CAP];
	int rc;

	memcpy(&event, record, sizeof(event));
	rc = stoup_event64_order_check(&series->events, &event, err);
	if (rc < 0)
		stoup_error_prefix(err, "%s", where_text(where, text));
	return rc;
}

/* Check and note the key's place in the order. Returns the effective key, or a negative errno. */
static int64_t order_check(const struct stoup_import *import, struct stoup_import_series *series,
	int64_t key, const struct stoup_where *where, struct stoup_error *err)
{
	int keeps = (series->flags & STOUP_VOL_SERIES_KEEP_ORDER) != 0;
	int64_t effective = key;

	if (series->record_cnt == 0)
		return key;
	if (key < series->prev_key) {
		if (!keeps && import->options.order == STOUP_ORDER_REFUSE)
			return step_back_error(series, key, where, err);
		series->step_back_cnt++;
	}
	if (keeps && key < series->last_key)
		effective = series->last_key;
	return effective;
}

/* ---- putting --------------------------------------------------------------------------------- */

/* An overlap that is certain is refused at once, not after hours of reading. */
static int overlap_early(
	struct stoup_import *import, uint32_t series_idx, int64_t key, struct stoup_error *err)
{
	struct stoup_import_series *series = &import->series[series_idx];

	if (series->record_cnt == 0 && !import->options.replace)
		series->overlap_key = stoup_import_overlap_key(import, series_idx, key);
	if (key <= series->overlap_key)
		return 0;
	return stoup_import_overlap_error(import, series_idx,
		series->record_cnt && series->first_key < key ? series->first_key : key, key, err);
}

/* May a record of this key come next? Returns the effective key, or a negative errno. */
static int64_t admit(struct stoup_import *import, uint32_t series_idx, int64_t key,
	const struct stoup_where *where, struct stoup_error *err)
{
	int64_t effective = order_check(import, &import->series[series_idx], key, where, err);
	int rc;

	if (import->record_cnt % STOP_RECORDS == 0 && (rc = stoup_stop_asked(err)) < 0)
		return rc;
	if (effective < 0)
		return effective;
	rc = overlap_early(import, series_idx, effective, err);
	return rc < 0 ? rc : effective;
}

/* A record was put. */
static void note(struct stoup_import *import, uint32_t series_idx, int64_t key, int64_t effective,
	uint32_t len)
{
	struct stoup_import_series *series = &import->series[series_idx];

	if (series->record_cnt == 0 || effective < series->first_key)
		series->first_key = effective;
	if (series->record_cnt == 0 || effective > series->last_key)
		series->last_key = effective;
	series->prev_key = key;
	series->record_cnt++;
	stoup_import_schema_count(&import->schemas[series->schema_idx], 1, len);
	import->record_cnt++;
	import->record_len += len;
	if (import->record_cnt % PROGRESS_RECORDS == 0)
		stoup_progress_step(&import->progress, import->record_len, import->record_cnt);
}

/* Is it outside the range that was asked for? Counted, not put. */
static int is_filtered(struct stoup_import *import, int64_t key)
{
	if (stoup_intake_key(&import->options.filter, key))
		return 0;
	import->filtered_cnt++;
	return 1;
}

int stoup_import_put(struct stoup_import *import, uint32_t series_idx, int64_t key,
	const void *record, const struct stoup_where *where, struct stoup_error *err)
{
	struct stoup_import_series *series = &import->series[series_idx];
	struct stoup_import_schema *schema = &import->schemas[series->schema_idx];
	int64_t effective;
	int rc = key_check(key, where, err);

	if (rc == 0)
		rc = key_field_check(&schema->schema, key, record, where, err);
	if (rc < 0 || is_filtered(import, key))
		return rc;
	if (series->check_events)
		rc = events_check(series, record, where, err);
	if (rc < 0)
		return rc;
	effective = admit(import, series_idx, key, where, err);
	if (effective < 0)
		return (int)effective;
	if (import->options.dry_run)
		stoup_import_dry_put(import, series_idx, record);
	else
		rc = stoup_import_arena_put(import, series_idx, effective, record, err);
	if (rc < 0)
		return rc;
	note(import, series_idx, key, effective, schema->schema.stride);
	stoup_sums_values_add(&series->sums, &schema->sums, record);
	return 0;
}

static int message_check(const struct stoup_schema *schema, uint32_t len,
	const struct stoup_where *where, struct stoup_error *err)
{
	char text[WHERE_CAP];

	if (schema->stride)
		return stoup_error_set(err, -EINVAL,
			"%s: schema '%s' is one of records, not of messages",
			where_text(where, text), schema->name);
	if (len > STOUP_MESSAGE_LEN_CAP)
		return stoup_error_set(err, -EMSGSIZE,
			"%s: a message of %" PRIu32
			" bytes; at most %u are stored: split it, or leave it "
			"out",
			where_text(where, text), len, STOUP_MESSAGE_LEN_CAP);
	return 0;
}

int stoup_import_put_message(struct stoup_import *import, uint32_t series_idx, int64_t key,
	const void *bytes, uint32_t len, const struct stoup_where *where, struct stoup_error *err)
{
	struct stoup_import_schema *schema =
		&import->schemas[import->series[series_idx].schema_idx];
	uint32_t unit_len;
	int64_t effective;
	int rc = key_check(key, where, err);

	if (rc == 0)
		rc = message_check(&schema->schema, len, where, err);
	if (rc < 0 || is_filtered(import, key))
		return rc;
	effective = admit(import, series_idx, key, where, err);
	if (effective < 0)
		return (int)effective;
	if (import->options.dry_run)
		stoup_import_dry_message(import, series_idx, key, bytes, len);
	else
		rc = stoup_import_arena_put_message(
			import, series_idx, effective, key, bytes, len, err);
	if (rc < 0)
		return rc;
	unit_len = stoup_message_unit_len(len);
	if (unit_len > schema->unit_max)
		schema->unit_max = unit_len;
	note(import, series_idx, key, effective, unit_len);
	return 0;
}

int stoup_import_add_source(
	struct stoup_import *import, const struct stoup_vol_source *source, struct stoup_error *err)
{
	if (import->source_cnt == import->source_cap) {
		uint32_t cap = import->source_cap ? import->source_cap * 2 : 64;
		struct stoup_vol_source *grown = realloc(import->sources, cap * sizeof(*grown));

		if (!grown)
			return stoup_error_set(err, -ENOMEM, "no memory for a list of files");
		import->sources = grown;
		import->source_cap = cap;
	}
	import->sources[import->source_cnt++] = *source;
	return 0;
}

const struct stoup_store *stoup_import_store(const struct stoup_import *import)
{
	return import->store;
}

/* All checks are made, but what --replace would rewrite is not read. */
static int dry_finish(struct stoup_import *import, struct stoup_error *err)
{
	int rc = import->options.replace ? 0 : stoup_import_overlap_check(import, err);

	if (rc == 0 && !import->options.quiet)
		stoup_import_summary(import);
	return rc;
}

int stoup_import_finish(struct stoup_import *import, struct stoup_error *err)
{
	int rc;

	stoup_progress_end(&import->progress);
	if (import->options.dry_run)
		return dry_finish(import, err);
	rc = stoup_import_arena_flush(import, err);
	stoup_import_arena_destroy(import);
	if (rc == 0)
		rc = stoup_import_overlap_check(import, err);
	if (rc == 0)
		rc = stoup_import_write(import, err);
	if (rc < 0)
		return rc;
	import->finished = 1;
	stoup_store_sweep(&import->lock);
	if (!import->options.quiet)
		stoup_import_summary(import);
	return 0;
}
