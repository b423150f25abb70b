/* SPDX-License-Identifier: Apache-2.0 */
/* import_summary.c - what was stored, as a table on stdout.
 *
 * The sums let a user compare with the totals of the file's publisher or of another program: they
 * are exact, and leave undefined values out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "producer/import_state.h"
#include "shm/format.h"

#define SERIES_SHOWN_CAP 40u

/* ---- series ---------------------------------------------------------------------------------- */

static void series_print(const struct stoup_import *import, uint32_t series_idx, int width)
{
	const struct stoup_import_series *series = &import->series[series_idx];
	const struct stoup_import_schema *schema = &import->schemas[series->schema_idx];
	char first[STOUP_FORMAT_CAP], last[STOUP_FORMAT_CAP];
	char price[STOUP_DECIMAL_TEXT_CAP], volume[STOUP_DECIMAL_TEXT_CAP];

	stoup_format_time(series->first_key, first);
	stoup_format_time(series->last_key, last);
	stoup_sums_price_format(&series->sums, &schema->sums, price);
	stoup_sums_size_format(&series->sums, &schema->sums, volume);
	printf("%-*s %12" PRIu64 "  %s  %s  %20s  %16s\n", width, series->name, series->record_cnt,
		first, last, price, volume);
	if (series->step_back_cnt > 0)
		printf("%-*s %12" PRIu64 "  records step back in time; %s\n", width, "",
			series->step_back_cnt,
			series->flags & STOUP_VOL_SERIES_KEEP_ORDER
				? "their order was kept (--order=keep)"
				: "sorted (--sort)");
	if (series->kept_cnt > 0)
		printf("%-*s %12" PRIu64
		       "  records of this series outside the new range were kept\n",
			width, "", series->kept_cnt);
}

static void filtered_print(const struct stoup_import *import)
{
	if (import->filtered_cnt > 0)
		printf("%" PRIu64 " record%s outside --from and --to left out\n",
			import->filtered_cnt, STOUP_PLURAL(import->filtered_cnt));
}

static void series_table(const struct stoup_import *import)
{
	uint32_t *order = stoup_import_series_sorted(import), i, cnt = 0, shown = 0;
	int width = 6;

	if (!order)
		return;
	for (i = 0; i < import->series_cnt; i++) {
		const struct stoup_import_series *series = &import->series[order[i]];

		if (series->record_cnt > 0 && ++cnt <= SERIES_SHOWN_CAP &&
			strlen(series->name) > (size_t)width)
			width = (int)strlen(series->name);
	}
	printf("%-*s %12s  %-30s  %-30s  %20s  %16s\n", width, "series", "records", "first", "last",
		"sum of price", "sum of size");
	for (i = 0; i < import->series_cnt && shown < SERIES_SHOWN_CAP; i++) {
		if (import->series[order[i]].record_cnt == 0)
			continue;
		series_print(import, order[i], width);
		shown++;
	}
	if (cnt > shown)
		printf("... and %" PRIu32 " series more\n", cnt - shown);
	printf("%-*s %12" PRIu64 "  in %" PRIu32 " series\n", width, "total", import->record_cnt,
		cnt);
	filtered_print(import);
	free(order);
}

/* ---- volumes --------------------------------------------------------------------------------- */

static void volumes_print(const struct stoup_import *import)
{
	char raw[STOUP_SIZE_TEXT_CAP], stored[STOUP_SIZE_TEXT_CAP], name[STOUP_STORE_NAME_CAP];
	uint64_t raw_len = 0, file_len = 0;
	struct timespec now;
	double seconds;
	uint32_t i;

	for (i = 0; i < import->volume_cnt; i++) {
		const struct stoup_import_volume *volume = &import->volumes[i];

		stoup_store_name(&volume->header, name);
		stoup_size_format(volume->raw_len, raw);
		stoup_size_format(volume->file_len, stored);
		printf("volume %s/%s: decoded %s, stored %s\n", import->lock.path, name, raw,
			stored);
		raw_len += volume->raw_len;
		file_len += volume->file_len;
	}
	if (import->affected_cnt > 0)
		printf("%" PRIu32 " older volume%s rewritten into it\n", import->affected_cnt,
			import->affected_cnt == 1 ? " was" : "s were");
	clock_gettime(CLOCK_MONOTONIC, &now);
	seconds = ((double)now.tv_sec * 1e9 + (double)now.tv_nsec - (double)import->begin_ns) / 1e9;
	stoup_size_format(raw_len, raw);
	stoup_size_format(file_len, stored);
	printf("decoded %s, stored %s, ratio %.2f; %.2f s, %.2f M records/s\n", raw, stored,
		(double)raw_len / (double)file_len, seconds,
		(double)import->record_cnt / 1e6 / (seconds > 0 ? seconds : 1e-9));
}

/* A name for two layouts is hardly ever meant: who reads by the name is refused from then on. */
static void layouts_warn(const struct stoup_import *import)
{
	for (uint32_t s = 0; s < import->series_cnt; s++) {
		const struct stoup_import_series *series = &import->series[s];
		uint64_t hash = import->schemas[series->schema_idx].schema.hash;
		const struct stoup_vol_series *other = NULL;

		for (uint32_t v = 0; v < import->store->volume_cnt && series->record_cnt && !other;
			v++)
			other = stoup_store_series_other(
				import->store->volumes[v]->index, series->name, hash);
		if (other)
			fprintf(stderr,
				"warning: the store has %s in another layout as well: two series of one name, "
				"which `stoup cat` can not tell apart; another --series keeps them apart\n",
				series->name);
	}
}

void stoup_import_summary(const struct stoup_import *import)
{
	uint32_t i;

	for (i = 0; i < import->store->fault_cnt; i++)
		fprintf(stderr, "warning: not compared with the new records: %s\n",
			import->store->faults[i].text);
	layouts_warn(import);
	if (import->record_cnt == 0) {
		printf("no records: nothing was stored\n");
		filtered_print(import);
		return;
	}
	series_table(import);
	if (import->options.dry_run)
		stoup_import_dry_summary(import);
	else
		volumes_print(import);
}
