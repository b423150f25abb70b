/* SPDX-License-Identifier: Apache-2.0 */
/* import_dry.c - an import that only looks: all checks, the sums and the first records of each series,
 * and neither lock, directory, temporary file nor volume.
 *
 * The store is looked at as it is now: another ingest may run meanwhile.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "producer/import_state.h"
#include "shm/format.h"
#include "shm/stoup_doc.h"

#define SAMPLE_CNT       3u
#define SAMPLE_BYTES     160u /* of a message */
#define SERIES_SHOWN_CAP 10u
#define FIELDS_SHOWN_CAP 24u

/* A kept message: its key and length, and as many bytes as are shown. */
struct sample_message {
	int64_t key;
	uint32_t len, shown_len;
	uint8_t bytes[SAMPLE_BYTES]; /* its first ones; of a document those of its JSON */
};

/* ---- begin ------------------------------------------------------------------------------------- */

int stoup_import_dry_begin(struct stoup_import *import, struct stoup_error *err)
{
	const char *path = import->options.store_path;
	struct stat st;

	if (stat(path, &st) == 0)
		return stoup_store_open(path, &import->store, err);
	if (errno != ENOENT)
		return stoup_error_set(err, -errno, "%s: %s", path, strerror(errno));
	import->store = calloc(1, sizeof(*import->store));
	if (!import->store)
		return stoup_error_set(err, -ENOMEM, "no memory for an import");
	import->store->dir_fd = -1;
	return 0;
}

/* ---- samples ----------------------------------------------------------------------------------- */

static void *sample_add(struct stoup_import_series *series, size_t len)
{
	if (series->sample_cnt >= SAMPLE_CNT)
		return NULL;
	if (!series->samples)
		series->samples = calloc(SAMPLE_CNT, len);
	return series->samples ? series->samples + series->sample_cnt++ * len : NULL;
}

void stoup_import_dry_put(struct stoup_import *import, uint32_t series_idx, const void *record)
{
	struct stoup_import_series *series = &import->series[series_idx];
	size_t len = import->schemas[series->schema_idx].schema.stride;
	void *sample = sample_add(series, len);

	if (sample)
		memcpy(sample, record, len);
}

/* The JSON of a document, as much as is shown, into `dst`: its length; 0 for what is none. */
static uint32_t document_show(const struct stoup_import *import, uint32_t series_idx,
	const void *bytes, uint32_t len, uint8_t *dst)
{
	const struct stoup_import_series *series = &import->series[series_idx];
	struct stoup_doc doc;
	int64_t json_len = 0;

	if (strcmp(import->schemas[series->schema_idx].schema.name, "bipf") == 0 &&
		stoup_doc_open(bytes, len, &doc) == 0)
		json_len = stoup_doc_json(&doc, (char *)dst, SAMPLE_BYTES);
	return json_len > 0 ? (uint32_t)json_len : 0;
}

void stoup_import_dry_message(struct stoup_import *import, uint32_t series_idx, int64_t key,
	const void *bytes, uint32_t len)
{
	struct sample_message *sample =
		sample_add(&import->series[series_idx], sizeof(struct sample_message));

	if (!sample)
		return;
	sample->key = key;
	sample->len = len;
	sample->shown_len = document_show(import, series_idx, bytes, len, sample->bytes);
	if (sample->shown_len > 0 || len == 0)
		return;
	sample->shown_len = len;
	memcpy(sample->bytes, bytes, len < SAMPLE_BYTES ? len : SAMPLE_BYTES);
}

/* ---- what was understood ------------------------------------------------------------------------ */

static void record_print(const struct stoup_schema *schema, const uint8_t *record)
{
	uint32_t shown = 0;

	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		const struct stoup_field *field = &schema->fields[i];
		char text[STOUP_FORMAT_CAP];
		int64_t len;

		if (field->flags & STOUP_FIELD_HIDDEN)
			continue;
		if (shown++ == FIELDS_SHOWN_CAP) {
			printf("  ...");
			break;
		}
		len = stoup_format_field(field, record, text, sizeof(text));
		printf("  %s=%s", field->name, len < 0 ? "..." : text);
	}
	printf("\n");
}

static void message_print(const struct sample_message *sample)
{
	uint32_t len = sample->shown_len < SAMPLE_BYTES ? sample->shown_len : SAMPLE_BYTES;
	char time[STOUP_FORMAT_CAP];

	stoup_format_time(sample->key, time);
	printf("  %s  %" PRIu32 " bytes  ", time, sample->len);
	for (uint32_t i = 0; i < len; i++)
		putchar(sample->bytes[i] >= 0x20 && sample->bytes[i] < 0x7f ? sample->bytes[i]
									    : '.');
	printf("%s\n", len < sample->shown_len ? "..." : "");
}

static void series_print(
	const struct stoup_import *import, const struct stoup_import_series *series)
{
	const struct stoup_schema *schema = &import->schemas[series->schema_idx].schema;

	printf("%s (%s), first records as understood:\n", series->name, schema->name);
	for (uint32_t i = 0; i < series->sample_cnt; i++) {
		if (schema->stride > 0)
			record_print(schema, series->samples + (size_t)i * schema->stride);
		else
			message_print((const struct sample_message *)(void *)series->samples + i);
	}
}

void stoup_import_dry_summary(const struct stoup_import *import)
{
	uint32_t *order = stoup_import_series_sorted(import), shown = 0, cnt = 0;

	for (uint32_t i = 0; order && i < import->series_cnt; i++) {
		const struct stoup_import_series *series = &import->series[order[i]];

		if (series->record_cnt == 0)
			continue;
		if (++cnt > SERIES_SHOWN_CAP)
			continue;
		series_print(import, series);
		shown++;
	}
	if (cnt > shown)
		printf("... and %" PRIu32 " series more\n", cnt - shown);
	free(order);
	printf("dry run: nothing was stored%s\n",
		import->options.replace ? "; --replace would put these records in the place of the "
					  "store's in their range of time"
					: "");
}
