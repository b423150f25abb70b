/* SPDX-License-Identifier: Apache-2.0 */
/* make_messages.c - writes the volumes of messages of this directory, their expected contents and damaged
 * copies, as make_golden.c does for records.
 *
 *      block 0, json     AAA 0-11                  even number of messages
 *      block 1, json     AAA 12-18 | BBB 0-4       odd numbers, two runs in one block
 *      block 2, frames   AAA 0-8                   keys step back, the order was kept
 *
 * Runs are put together byte by byte from docs/volume-format.md, section 8, not by the program's own code.
 * See README.md for the command.
 */
#include "tests/unit/volume_fixture.h"

#include <inttypes.h>

#include "codec/volume_layout.h"
#include "codec/volume_private.h"

#define KEY0    INT64_C(1735689600000000000) /* 2025-01-01T00:00:00Z */
#define RAW_CAP 8192u
#define LEN_CAP 128u

static const struct series {
	const char *name, *schema;
	uint32_t schema_idx, flags, cnt;
} serieses[] = {
	{"TEST/AAA/frames", "frames", 1, STOUP_VOL_SERIES_KEEP_ORDER, 9},
	{"TEST/AAA/json", "json", 0, 0, 19},
	{"TEST/BBB/json", "json", 0, 0, 5},
};

static const struct run {
	uint32_t block_idx, series_idx, first, cnt;
} runs[] = {{0, 1, 0, 12}, {1, 1, 12, 7}, {1, 2, 0, 5}, {2, 0, 0, 9}};

#define RUN_CNT   (sizeof(runs) / sizeof(runs[0]))
#define BLOCK_CNT 3u

static const struct stoup_vol_header header = {
	.id = "golden-message-1", .created_ns = KEY0, .ingest_seq = 3, .batch_cnt = 1};

/* ---- messages -------------------------------------------------------------------------------- */

static int64_t key_of(uint32_t series_idx, uint32_t i)
{
	if (series_idx == 0)
		return KEY0 + (int64_t)(i % 3 == 2 ? i - 2 : i) * 1000;
	return KEY0 + (int64_t)series_idx * 1000 + (int64_t)(i / 2) * 1000000;
}

static uint32_t message_make(uint32_t series_idx, uint32_t i, uint8_t *ret)
{
	uint32_t len = i % 5 == 4 ? 0 : i * 7 % 41;

	if (series_idx > 0)
		return (uint32_t)snprintf((char *)ret, LEN_CAP, "{\"n\":%u,\"s\":\"%.*s\"}", i,
			(int)len, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz");
	for (uint32_t b = 0; b < len; b++)
		ret[b] = (uint8_t)(i * 31 + b);
	return len;
}

/* Append a run to a block of *raw_len bytes. */
static void run_make(const struct run *run, uint8_t *raw, uint32_t *raw_len)
{
	uint32_t heads[64], at = *raw_len;

	for (uint32_t i = 0; i < run->cnt; i++) {
		uint32_t len = message_make(run->series_idx, run->first + i, raw + at + 16);

		heads[i] = at;
		image_put(raw + at, 8, (uint64_t)key_of(run->series_idx, run->first + i));
		image_put(raw + at + 8, 4, len);
		image_put(raw + at + 12, 4, 0);
		memset(raw + at + 16 + len, 0, 8);
		at += 16 + (len + 7) / 8 * 8;
	}
	if (run->cnt % 2) {
		image_put(raw + at, 4, 0);
		at += 4;
	}
	for (uint32_t i = 0; i < run->cnt; i++, at += 4)
		image_put(raw + at, 4, at - heads[i]);
	*raw_len = at;
}

/* ---- volumes --------------------------------------------------------------------------------- */

static int schema_add(struct stoup_vol_writer *writer, const char *name)
{
	struct stoup_vol_schema schema = {.name = name, .align = 8, .flags = 1};
	const struct stoup_vol_field none = {.off = 0};

	schema.hash = stoup_vol_schema_hash(&schema, &none);
	return stoup_vol_add_schema(writer, &schema, &none);
}

/* Declare the segments of a block; keys are running maxima. */
static int segments_add(struct stoup_vol_writer *writer, uint32_t block_idx, const uint32_t *offs)
{
	int rc = 0;

	for (uint32_t r = 0; r < RUN_CNT && rc == 0; r++) {
		const struct run *run = &runs[r];
		int64_t last = key_of(run->series_idx, run->first);

		for (uint32_t i = 0; i < run->cnt; i++)
			if (key_of(run->series_idx, run->first + i) > last)
				last = key_of(run->series_idx, run->first + i);
		if (run->block_idx == block_idx)
			rc = stoup_vol_add_segment(writer, run->series_idx, block_idx, offs[r],
				run->cnt, key_of(run->series_idx, run->first), last);
	}
	return rc;
}

static int make_image(const char *codec, struct image *image)
{
	static uint8_t raw[RAW_CAP];
	struct stoup_vol_writer *writer;
	uint32_t offs[RUN_CNT];
	int64_t rc = stoup_vol_writer_create(&header, &writer);

	if (rc == 0 && (schema_add(writer, "json") != 0 || schema_add(writer, "frames") != 1))
		rc = -EINVAL;
	for (uint32_t s = 0; s < 3 && rc >= 0; s++)
		rc = stoup_vol_add_series(
			writer, serieses[s].name, serieses[s].schema_idx, serieses[s].flags);
	for (uint32_t b = 0; b < BLOCK_CNT && rc >= 0; b++) {
		uint32_t raw_len = 0;

		for (uint32_t r = 0; r < RUN_CNT; r++) {
			offs[r] = raw_len;
			if (runs[r].block_idx == b)
				run_make(&runs[r], raw, &raw_len);
		}
		rc = image_add_block(image, writer, b == 2, raw, raw_len, codec, "");
		if (rc >= 0)
			rc = segments_add(writer, b, offs);
	}
	if (rc >= 0)
		rc = image_finish(image, writer, NULL);
	stoup_vol_writer_destroy(writer);
	return (int)rc;
}

static int write_file(const char *dir, const char *name, const struct image *image)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.stoup", dir, name);
	file = fopen(path, "wb");
	if (!file || fwrite(image->bytes, 1, image->len, file) != image->len)
		return -EIO;
	return fclose(file) ? -EIO : 0;
}

static int print_content(const char *dir)
{
	uint8_t bytes[LEN_CAP];
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/messages.txt", dir);
	file = fopen(path, "w");
	if (!file)
		return -errno;
	fputs("volume 676f6c64656e2d6d6573736167652d31\n", file);
	fprintf(file, "created %" PRId64 " ingest 3 batch 0 of 1\n", KEY0);
	fputs("schema json stride 0 align 8 key 0 flags 0x1 interval 0 hash 507bd4d7695250b8\n"
	      "schema frames stride 0 align 8 key 0 flags 0x1 interval 0 hash 97f52189e80dcd7c\n",
		file);
	for (uint32_t s = 0; s < 3; s++) {
		const struct series *series = &serieses[s];
		int64_t last = key_of(s, series->cnt - 1);

		if (s == 0 && key_of(s, series->cnt - 2) > last)
			last = key_of(s, series->cnt - 2);
		fprintf(file,
			"series %s schema %s flags 0x%x records %u keys %" PRId64 " %" PRId64 "\n",
			series->name, series->schema, series->flags, series->cnt, key_of(s, 0),
			last);
		for (uint32_t i = 0; i < series->cnt; i++) {
			uint32_t len = message_make(s, i, bytes);

			fprintf(file, "record %u %" PRId64 " ", i, key_of(s, i));
			for (uint32_t b = 0; b < len; b++)
				fprintf(file, "%02x", bytes[b]);
			fputc('\n', file);
		}
	}
	return fclose(file) ? -EIO : 0;
}

/* ---- damaged copies -------------------------------------------------------------------------- */

/* One edit of the bytes of block 1 of messages-none, whose hashes are made right again: `off` counts from the
 * begin of run AAA, or (negative) from its end. */
static const struct damage {
	const char *name;
	int off;
	uint32_t len;
	uint64_t value;
} damages[] = {
	{"message-distance", -28, 4, 16},
	{"message-distance-far", -4, 4, 0x7ffffff0},
	{"message-length", 8, 4, 0xfffffff0},
	{"message-head", 12, 4, 1},
	{"message-padding", -29, 1, 7},
	{"message-first-key", 0, 8, KEY0},
	{"message-key-back", 40, 8, KEY0},
};

static int make_damaged(const char *dir)
{
	char path[4096];
	FILE *file;
	int rc = 0;

	snprintf(path, sizeof(path), "%s/damaged/faults-messages.txt", dir);
	file = fopen(path, "w");
	if (!file)
		return -errno;
	for (size_t i = 0; !rc && i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct image image = {NULL, 0};
		struct stoup_vol_fault fault = {0};
		uint64_t entry, segment, off, len, run_len;

		rc = make_image("none", &image);
		if (rc)
			break;
		entry = image_entry(&image, STOUP_VOL_SECTION_BLOCKS, 1);
		off = image_get(image.bytes + entry + 8, 8);
		len = image_get(image.bytes + entry + 16, 4);
		segment = image_entry(&image, STOUP_VOL_SECTION_SEGMENTS, 2);
		run_len = image_get(image.bytes + segment + 12, 4);
		image_put(image.bytes + off +
				  (uint64_t)(damages[i].off < 0 ? (int)run_len + damages[i].off
								: damages[i].off),
			damages[i].len, damages[i].value);
		image_put(image.bytes + entry + 32, 8, stoup_vol_hash(image.bytes + off, len));
		image_put(image.bytes + entry + 40, 8, stoup_vol_hash(image.bytes + off, len));
		image_reseal(&image);
		if (!image_verify(image.bytes, image.len, &fault))
			rc = -EINVAL;
		fprintf(file, "%s\tEBADMSG\t%s\t%" PRIu64 "\t%s\n", damages[i].name,
			stoup_vol_region_name(fault.region), fault.file_off, fault.what);
		snprintf(path, sizeof(path), "%s/damaged", dir);
		if (!rc)
			rc = write_file(path, damages[i].name, &image);
		image_free(&image);
	}
	return fclose(file) && !rc ? -EIO : rc;
}

int main(int argc, char **argv)
{
	static const char *const codecs[] = {"none", "lz4", "zstd"};
	const char *dir = argc == 2 ? argv[1] : NULL;
	int rc = dir ? 0 : -EINVAL;

	for (size_t i = 0; !rc && i < 3; i++) {
		struct image image = {NULL, 0};
		char name[64];

		snprintf(name, sizeof(name), "messages-%s", codecs[i]);
		rc = make_image(codecs[i], &image);
		if (!rc)
			rc = write_file(dir, name, &image);
		image_free(&image);
	}
	if (!rc)
		rc = print_content(dir);
	if (!rc)
		rc = make_damaged(dir);
	if (rc)
		fprintf(stderr,
			"usage: make_messages DIRECTORY (which has a directory `damaged`): %s\n",
			strerror(-rc));
	return rc ? 1 : 0;
}
