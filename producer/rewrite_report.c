/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite_report.c - tables of series and volumes. */
#include "producer/rewrite_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include "producer/rewrite_private.h"
#include "shm/format.h"

static void sums_print(const struct stoup_sums *sums, const struct stoup_sums_fields *fields,
	const char *name, int width, const char *when)
{
	char first[STOUP_FORMAT_CAP] = "-", last[STOUP_FORMAT_CAP] = "-";
	char price[STOUP_DECIMAL_TEXT_CAP], size[STOUP_DECIMAL_TEXT_CAP];

	if (sums->record_cnt > 0) {
		stoup_format_time(sums->first_key, first);
		stoup_format_time(sums->last_key, last);
	}
	stoup_sums_price_format(&sums->values, fields, price);
	stoup_sums_size_format(&sums->values, fields, size);
	printf("%-*s  %-6s %12" PRIu64 "  %-30s  %-30s  %20s  %16s\n", width, name, when,
		sums->record_cnt, first, last, price, size);
}

static void notes_print(const struct stoup_rewrite_series *series, int width)
{
	if (series->merged_cnt > 0)
		printf("%-*s  %19" PRIu64 "  records of volumes that overlapped, merged by time\n",
			width, "", series->merged_cnt);
	if (series->duplicate_cnt > 0)
		printf("%-*s  %19" PRIu64 "  of them dropped: equal to one of another volume\n",
			width, "", series->duplicate_cnt);
}

void stoup_rewrite_report_series(const struct stoup_rewrite *rewrite)
{
	uint64_t before = 0, after = 0;
	size_t cnt = rewrite->parts.group_cnt, g;
	size_t shown = cnt < STOUP_REPORT_SERIES_CAP ? cnt : STOUP_REPORT_SERIES_CAP;
	int width = 6;

	for (g = 0; g < cnt; g++) {
		size_t len = strlen(stoup_parts_first(&rewrite->parts, g)->series->name);

		before += rewrite->series[g].read.record_cnt;
		after += rewrite->series[g].written.record_cnt;
		if (g < shown && len > (size_t)width)
			width = (int)len;
	}
	printf("%-*s  %-6s %12s  %-30s  %-30s  %20s  %16s\n", width, "series", "", "records",
		"first", "last", "sum of price", "sum of size");
	for (g = 0; g < shown; g++) {
		const struct stoup_rewrite_series *series = &rewrite->series[g];

		sums_print(&series->read, &series->fields,
			stoup_parts_first(&rewrite->parts, g)->series->name, width, "before");
		sums_print(&series->written, &series->fields, "", width, "after");
		notes_print(series, width);
	}
	if (cnt > shown)
		printf("... and %zu series more\n", cnt - shown);
	printf("%-*s  %-6s %12" PRIu64 "\n", width, "total", "before", before);
	printf("%-*s  %-6s %12" PRIu64 "  in %zu series, read back from the new volumes\n", width,
		"", "after", after, cnt);
}

void stoup_rewrite_report_volumes(const struct stoup_rewrite *rewrite)
{
	char name[STOUP_STORE_NAME_CAP], raw[STOUP_SIZE_TEXT_CAP], stored[STOUP_SIZE_TEXT_CAP];
	const struct stoup_store *store = rewrite->store;
	uint64_t before = 0, after = 0;
	uint32_t i;

	for (i = 0; i < store->volume_cnt; i++)
		before += rewrite->chosen[i] ? store->volumes[i]->file_len : 0;
	for (i = 0; i < store->overlap_cnt; i++)
		before += rewrite->chosen_overlaps[i] ? store->overlaps[i]->file_len : 0;
	for (i = 0; i < rewrite->volume_cnt; i++) {
		const struct stoup_rewrite_volume *volume = &rewrite->volumes[i];

		stoup_store_name(&volume->header, name);
		stoup_size_format(volume->raw_len, raw);
		stoup_size_format(volume->file_len, stored);
		printf("volume %s/%s: decoded %s, stored %s%s\n", store->path, name, raw, stored,
			volume->block_cnt ? "" : " (no records: it only replaces others)");
		after += volume->file_len;
	}
	stoup_size_format(before, raw);
	stoup_size_format(after, stored);
	printf("%" PRIu32 " volume%s of %s became %" PRIu32 " of %s\n", rewrite->chosen_cnt,
		STOUP_PLURAL(rewrite->chosen_cnt), raw, rewrite->volume_cnt, stored);
}

uint32_t stoup_rewrite_planned_cnt(const struct stoup_rewrite *rewrite)
{
	uint64_t cnt = (rewrite->raw_total + rewrite->options.volume_len - 1) /
	               rewrite->options.volume_len;

	return cnt > STOUP_STORE_BATCH_CAP ? STOUP_STORE_BATCH_CAP : cnt ? (uint32_t)cnt : 1;
}

void stoup_rewrite_report_need(const struct stoup_rewrite *rewrite)
{
	char need[STOUP_SIZE_TEXT_CAP], free_text[STOUP_SIZE_TEXT_CAP];
	struct statvfs fs;

	stoup_size_format(rewrite->stored_total, need);
	if (fstatvfs(rewrite->store->dir_fd, &fs) < 0) {
		printf("room needed beside the old volumes: about %s\n", need);
		return;
	}
	stoup_size_format((uint64_t)fs.f_bavail * fs.f_frsize, free_text);
	printf("room needed beside the old volumes, while it runs: about %s%s; free: %s\n", need,
		rewrite->options.has_encoding || rewrite->options.recode
			? " (judged by the blocks as they are)"
			: "",
		free_text);
}
