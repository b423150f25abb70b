/* SPDX-License-Identifier: Apache-2.0 */
/* storm_data.c - write a DBN file of records that prove themselves.
 *
 * usage: storm_data FILE EDITION SERIES:FROM:TO...
 *
 * Each SERIES gets the records with the ordinals FROM to TO - 1. They are written in turns of 100, as
 * the series of a feed would come.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "storm/record.h"

#define PART_CAP 256
#define TURN_CNT 100
#define CSTR_LEN 22 /* of symbols, DBN version 1 */

struct part {
	uint32_t series;
	uint64_t at, end;
};

static void put_int(FILE *out, uint64_t value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		putc((int)(value >> 8 * i & 0xff), out);
}

static void put_text(FILE *out, const char *text, size_t len)
{
	char room[CSTR_LEN] = {0};

	snprintf(room, sizeof(room), "%s", text);
	fwrite(room, 1, len, out);
}

static void put_symbol(FILE *out, const struct part *part)
{
	char text[CSTR_LEN];

	snprintf(text, sizeof(text), "S%" PRIu32, part->series);
	put_text(out, text, CSTR_LEN);
}

/* The head of a DBN file, version 1, schema mbo: one mapping per series. */
static void put_meta(FILE *out, const struct part *parts, size_t cnt)
{
	char number[CSTR_LEN];

	fwrite("DBN\x01", 1, 4, out);
	put_int(out, 120 + cnt * (3 * CSTR_LEN + 12), 4);
	put_text(out, STORM_DATASET, 16);
	put_int(out, 0, 2);
	put_int(out, (uint64_t)STORM_T0, 8);
	put_int(out, UINT64_MAX, 8);
	put_int(out, 0, 8);
	put_int(out, UINT64_MAX, 8);
	put_int(out, 1, 1);
	put_int(out, 0, 2);
	for (int i = 0; i < 47; i++)
		putc(0, out);
	put_int(out, 0, 4);
	put_int(out, cnt, 4);
	for (size_t i = 0; i < cnt; i++)
		put_symbol(out, &parts[i]);
	put_int(out, 0, 8);
	put_int(out, cnt, 4);
	for (size_t i = 0; i < cnt; i++) {
		put_symbol(out, &parts[i]);
		put_int(out, 1, 4);
		put_int(out, 20200101, 4);
		put_int(out, 20300101, 4);
		snprintf(number, sizeof(number), "%" PRIu32, parts[i].series + 1);
		put_text(out, number, CSTR_LEN);
	}
}

static void put_records(FILE *out, struct part *parts, size_t cnt, uint32_t edition)
{
	struct stoup_mbo record;
	int more;

	do {
		more = 0;
		for (size_t i = 0; i < cnt; i++) {
			for (int turn = 0; turn < TURN_CNT && parts[i].at < parts[i].end; turn++) {
				storm_record(parts[i].series, parts[i].at++, edition, &record);
				fwrite(&record, sizeof(record), 1, out);
			}
			more |= parts[i].at < parts[i].end;
		}
	} while (more);
}

int main(int argc, char **argv)
{
	static struct part parts[PART_CAP];
	size_t cnt = 0;
	uint32_t edition;
	FILE *out;

	if (argc < 4 || argc - 3 > PART_CAP) {
		fprintf(stderr, "usage: storm_data FILE EDITION SERIES:FROM:TO...\n");
		return 2;
	}
	edition = (uint32_t)strtoul(argv[2], NULL, 10);
	for (int i = 3; i < argc; i++, cnt++)
		if (sscanf(argv[i], "%" SCNu32 ":%" SCNu64 ":%" SCNu64, &parts[cnt].series,
			    &parts[cnt].at, &parts[cnt].end) != 3)
			return 2;
	out = fopen(argv[1], "wb");
	if (!out) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	put_meta(out, parts, cnt);
	put_records(out, parts, cnt, edition);
	if (ferror(out) || fclose(out) != 0) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	return 0;
}
