/* SPDX-License-Identifier: Apache-2.0 */
/* helper_far.c - a store whose volume has blocks around and beyond 4 GiB, with holes between them.
 *
 *      [header][block 0: none]  hole  [block 1: lz4 | 4 GiB]  [2: none][3: zstd][4: none] hole [5][footer]
 *
 * usage: helper_far DIRECTORY     writes the one volume of the store and prints what a scan must find;
 *                                 exit status 77 where files can not have holes
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "codec/block.h"
#include "codec/volume.h"
#include "codec/volume_private.h"
#include "producer/store.h"

#define BLOCK_CNT  6u
#define RECORD_CNT 4096u /* per block */
#define RAW_LEN    (RECORD_CNT * (uint32_t)sizeof(struct tick))
#define KEY0       INT64_C(1700000000000000000)
#define GIB        (UINT64_C(1) << 30)

struct tick {
	int64_t key;
	int32_t price;
	uint32_t qty;
};

static const struct stoup_vol_field fields[] = {
	{.name = "ts_event", .off = 0, .cnt = 1, .type = 8, .flags = 0x06, .unit = "ns"},
	{.name = "price", .off = 8, .cnt = 1, .type = 6, .exp10 = -2, .unit = "USD"},
	{.name = "qty", .off = 12, .cnt = 1, .type = 5},
};

static const char *const codecs[BLOCK_CNT] = {"none", "lz4", "none", "zstd", "none", "lz4"};
/* Where the search for a place begins: the second block lies across 4 GiB. */
static const uint64_t places[BLOCK_CNT] = {0, 4 * GIB - 1024, 0, 0, 0, 4 * GIB + (GIB >> 2)};

static _Noreturn void die(const char *what, int64_t rc)
{
	fprintf(stderr, "%s: %s\n", what, strerror((int)-rc));
	exit(1);
}

static void put(int fd, const void *bytes, size_t len, uint64_t off)
{
	if (pwrite(fd, bytes, len, (off_t)off) != (ssize_t)len)
		die("pwrite", -errno);
}

static void fill(struct tick *ticks, uint32_t block)
{
	for (uint32_t i = 0; i < RECORD_CNT; i++) {
		uint32_t n = block * RECORD_CNT + i;

		ticks[i] = (struct tick){
			KEY0 + 1000 * (int64_t)n, (int32_t)(n * 2654435761u >> 20), n % 7 + 1};
	}
}

static void add_block(int fd, struct stoup_vol_writer *writer, uint32_t idx)
{
	static struct tick ticks[RECORD_CNT];
	size_t cap = stoup_block_encode_cap(RAW_LEN), len = 0;
	struct stoup_encoder *encoder = NULL;
	struct stoup_encoding encoding;
	uint32_t codec = 0, transform = 0;
	uint8_t *stored = malloc(cap);
	uint64_t off = 0;
	int64_t rc;

	fill(ticks, idx);
	if (!stored || stoup_encoding_parse(codecs[idx], "", &encoding) < 0 ||
		stoup_encoder_create(&encoding, &encoder) < 0)
		die("encoder", -ENOMEM);
	rc = stoup_block_encode(
		encoder, NULL, ticks, RAW_LEN, stored, cap, &len, &codec, &transform);
	if (rc < 0)
		die("encode", rc);
	if (places[idx])
		writer->end_off = places[idx];
	rc = stoup_vol_add_block(writer, 0, RAW_LEN, codec, transform, stoup_vol_hash(stored, len),
		stoup_vol_hash(ticks, RAW_LEN), (uint32_t)len, &off);
	if (rc == idx)
		rc = stoup_vol_add_segment(
			writer, 0, idx, 0, RECORD_CNT, ticks[0].key, ticks[RECORD_CNT - 1].key);
	if (rc < 0)
		die("place", rc);
	put(fd, stored, len, off);
	fprintf(stderr, "block %u: %s, %zu bytes at %" PRIu64 "\n", idx, codecs[idx], len, off);
	stoup_encoder_destroy(encoder);
	free(stored);
}

static void declare(struct stoup_vol_writer *writer)
{
	struct stoup_vol_schema schema = {
		.name = "far", .stride = sizeof(struct tick), .align = 8, .field_cnt = 3};

	schema.hash = stoup_vol_schema_hash(&schema, fields);
	if (stoup_vol_add_schema(writer, &schema, fields) != 0 ||
		stoup_vol_add_series(writer, "XTST.TEST/FAR/far", 0, 0) != 0)
		die("schema", -EINVAL);
}

static void print_expected(void)
{
	struct tick ticks[RECORD_CNT];
	int64_t price = 0, qty = 0;

	for (uint32_t b = 0; b < BLOCK_CNT; b++) {
		fill(ticks, b);
		for (uint32_t i = 0; i < RECORD_CNT; i++) {
			price += ticks[i].price;
			qty += ticks[i].qty;
		}
	}
	printf("{\"records\": %u, \"price\": %" PRId64 ", \"size\": %" PRId64
	       ", \"first_key\": %" PRId64 ", \"last_key\": %" PRId64 "}\n",
		BLOCK_CNT * RECORD_CNT, price, qty, KEY0,
		KEY0 + 1000 * ((int64_t)BLOCK_CNT * RECORD_CNT - 1));
}

int main(int argc, char **argv)
{
	struct stoup_vol_header header = {
		.created_ns = KEY0, .ingest_seq = 1, .batch_idx = 0, .batch_cnt = 1};
	struct stoup_vol_writer *writer;
	char name[STOUP_STORE_NAME_CAP], path[4096];
	uint8_t head[STOUP_VOL_HEADER_LEN];
	const uint8_t *tail;
	size_t tail_len;
	struct stat st;
	uint64_t off;
	int fd, rc;

	if (argc != 2 || stoup_store_id_make(header.id) < 0)
		return 2;
	stoup_store_name(&header, name);
	snprintf(path, sizeof(path), "%s/%s", argv[1], name);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || stoup_vol_writer_create(&header, &writer) < 0)
		die(path, -errno);
	declare(writer);
	for (uint32_t i = 0; i < BLOCK_CNT; i++)
		add_block(fd, writer, i);
	rc = stoup_vol_finish(writer, &header, head, &tail, &tail_len, &off);
	if (rc < 0)
		die(stoup_vol_writer_fault(writer)->what, rc);
	put(fd, tail, tail_len, off);
	put(fd, head, sizeof(head), 0);
	stoup_vol_writer_destroy(writer);
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_blocks * 512 > GIB) {
		fprintf(stderr, "files have no holes here\n");
		unlink(path);
		return 77;
	}
	print_expected();
	return 0;
}
