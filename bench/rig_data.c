/* SPDX-License-Identifier: Apache-2.0 */
/* rig_data.c - records, stores, and the private forms of the same bytes. */
#include "bench/rig.h"

#include <errno.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "bench/harness.h"
#include "bench/sim.h"
#include "producer/import.h"
#include "producer/store.h"
#include "producer/volume_file.h"

#define SIM_BATCH     8192u
#define SIM_START_NS  INT64_C(1718582400000000000)
#define PRIVATE_LEVEL 3 /* what vendors ship */

/* ---- records --------------------------------------------------------------------------------- */

static void make_keys(struct bench_records *r)
{
	int64_t *keys = (int64_t *)(void *)r->bytes;

	for (uint64_t i = 0; i < r->cnt; i++)
		keys[i] = BENCH_KEY_0 + (int64_t)i * BENCH_KEY_STEP;
}

/* A trade of the order stream in the trades layout. */
static void trade_of(const struct stoup_sim_mbo *from, struct stoup_trade *to)
{
	*to = (struct stoup_trade){.hd = {.length = sizeof(*to) / 4,
					   .rtype = 0,
					   .publisher_id = from->publisher_id,
					   .instrument_id = from->instrument_id,
					   .ts_event = from->ts_event},
		.price = from->price,
		.size = from->size,
		.action = from->action,
		.side = from->side,
		.flags = from->flags,
		.ts_recv = from->ts_recv,
		.ts_in_delta = from->ts_in_delta,
		.sequence = from->sequence};
}

static struct stoup_sim *sim_make(void)
{
	const struct stoup_sim_options options = {
		.seed = 1, .symbol_cnt = 1, .start_ns = SIM_START_NS};
	struct stoup_sim *sim;

	if (stoup_sim_create(&options, &sim) < 0)
		bench_die("no memory for the simulator");
	return sim;
}

static void make_trades(struct bench_records *r)
{
	static struct stoup_sim_mbo batch[SIM_BATCH];
	struct stoup_trade *trades = (struct stoup_trade *)(void *)r->bytes;
	struct stoup_sim *sim = sim_make();
	uint64_t at = 0;

	while (at < r->cnt) {
		stoup_sim_next(sim, batch, SIM_BATCH);
		for (uint32_t i = 0; i < SIM_BATCH && at < r->cnt; i++)
			if (batch[i].action == 'T')
				trade_of(&batch[i], &trades[at++]);
	}
	stoup_sim_destroy(sim);
}

static void make_orders(struct bench_records *r)
{
	struct stoup_sim *sim = sim_make();

	stoup_sim_next(sim, (struct stoup_sim_mbo *)(void *)r->bytes, r->cnt);
	stoup_sim_destroy(sim);
}

struct bench_records bench_records_make(enum bench_kind kind, uint64_t cnt)
{
	struct bench_records r = {.kind = kind, .cnt = cnt, .len = cnt * bench_stride(kind)};

	r.bytes = bench_alloc(r.len);
	if (kind == BENCH_KEYS)
		make_keys(&r);
	else if (kind == BENCH_TRADES)
		make_trades(&r);
	else
		make_orders(&r);
	return r;
}

const struct stoup_schema *bench_schema_of(enum bench_kind kind)
{
	static const struct stoup_field field = {.name = "ts",
		.cnt = 1,
		.type = STOUP_TYPE_I64,
		.flags = STOUP_FIELD_TIME | STOUP_FIELD_KEY};
	static struct stoup_schema keys = {
		.name = "bench-key", .stride = 8, .align = 8, .field_cnt = 1, .fields = &field};

	keys.hash = stoup_schema_hash(&keys);
	return kind == BENCH_KEYS ? &keys
	                          : stoup_schema_by_name(kind == BENCH_TRADES ? "trades" : "mbo");
}

/* ---- stores ---------------------------------------------------------------------------------- */

void bench_store_make(const char *path, const char *series, const char *codec, uint32_t block_len,
	const struct bench_records *records)
{
	struct stoup_import_options options = {.store_path = path,
		.block_len = block_len ? block_len : BENCH_PIECE_LEN,
		.volume_len = UINT64_C(4) << 30,
		.memory_len = 64u << 20,
		.quiet = 1};
	const struct stoup_schema *schema = bench_schema_of(records->kind);
	struct stoup_where where = {.file = "records"};
	struct stoup_import *import = NULL;
	struct stoup_error err = {0};
	int64_t idx;

	if (stoup_encoding_parse(codec, NULL, &options.encoding) < 0)
		bench_die("codec %s is not known", codec);
	if (stoup_import_begin(&options, &import, &err) < 0)
		bench_die("%s: %s", path, err.text);
	idx = stoup_import_series(import, series, schema, &err);
	if (idx < 0)
		bench_die("%s: %s", path, err.text);
	for (uint64_t i = 0; i < records->cnt; i++) {
		const uint8_t *record = records->bytes + i * schema->stride;
		int64_t key;

		memcpy(&key, record + schema->key_off, sizeof(key));
		where.file_off = i * schema->stride;
		if (stoup_import_put(import, (uint32_t)idx, key, record, &where, &err) < 0)
			bench_die("%s: %s", path, err.text);
	}
	if (stoup_import_finish(import, &err) < 0)
		bench_die("%s: %s", path, err.text);
	stoup_import_destroy(import);
}

/* ---- private pieces -------------------------------------------------------------------------- */

static size_t piece_encode(
	const struct bench_pieces *p, const uint8_t *src, size_t len, uint8_t *dst, size_t cap)
{
	size_t n;

	if (p->lz4) {
		int out = LZ4_compress_default((const char *)src, (char *)dst, (int)len, (int)cap);

		return out > 0 ? (size_t)out : 0;
	}
	n = ZSTD_compress(dst, cap, src, len, PRIVATE_LEVEL);
	return ZSTD_isError(n) ? 0 : n;
}

void bench_pieces_make(
	struct bench_pieces *p, const struct bench_records *records, int lz4, bench_loop_fn *loop)
{
	size_t piece_len, bound, at = 0;

	*p = (struct bench_pieces){.lz4 = lz4,
		.loop = loop,
		.stride = bench_stride(records->kind),
		.raw_len = records->len};
	piece_len = BENCH_PIECE_LEN - BENCH_PIECE_LEN % p->stride;
	p->cnt = (records->len + piece_len - 1) / piece_len;
	p->last_len = records->len - (p->cnt - 1) * piece_len;
	bound = lz4 ? (size_t)LZ4_compressBound((int)piece_len) : ZSTD_compressBound(piece_len);
	p->stored_cap = bound * p->cnt;
	p->stored = bench_alloc(p->stored_cap);
	p->off = calloc(p->cnt + 1, sizeof(*p->off));
	p->reader = malloc(sizeof(*p->reader));
	if (!p->off || !p->reader)
		bench_die("no memory for pieces");
	bench_piece_reader_make(p->reader);
	for (size_t i = 0; i < p->cnt; i++) {
		size_t len = i + 1 < p->cnt ? piece_len : p->last_len;
		size_t n =
			piece_encode(p, records->bytes + i * piece_len, len, p->stored + at, bound);

		if (n == 0)
			bench_die("compressing a piece failed");
		p->off[i] = at;
		at += n;
	}
	p->off[p->cnt] = at;
}

void bench_pieces_free(struct bench_pieces *p)
{
	bench_free(p->stored, p->stored_cap);
	bench_piece_reader_free(p->reader);
	free(p->reader);
	free(p->off);
}

void bench_piece_reader_make(struct bench_piece_reader *reader)
{
	*reader = (struct bench_piece_reader){
		.context = ZSTD_createDCtx(), .buffer = bench_alloc(BENCH_PIECE_LEN)};
	if (!reader->context)
		bench_die("no memory for a decoder");
}

void bench_piece_reader_free(struct bench_piece_reader *reader)
{
	ZSTD_freeDCtx(reader->context);
	bench_free(reader->buffer, BENCH_PIECE_LEN);
}

void bench_pieces_walk(const struct bench_pieces *p, const struct bench_piece_reader *reader)
{
	size_t piece_len = BENCH_PIECE_LEN - BENCH_PIECE_LEN % p->stride;

	for (size_t i = 0; i < p->cnt; i++) {
		size_t len = i + 1 < p->cnt ? piece_len : p->last_len, got;
		const uint8_t *src = p->stored + p->off[i];
		size_t src_len = p->off[i + 1] - p->off[i];

		if (p->lz4)
			got = (size_t)LZ4_decompress_safe((const char *)src, (char *)reader->buffer,
				(int)src_len, (int)BENCH_PIECE_LEN);
		else
			got = ZSTD_decompressDCtx(
				reader->context, reader->buffer, BENCH_PIECE_LEN, src, src_len);
		if (got != len)
			bench_die("a private piece does not decode");
		reader->take(reader->arg, reader->buffer, len / p->stride);
	}
}

struct looping {
	bench_loop_fn *loop;
	struct bench_loop state;
};

static void loop_take(void *arg, const void *base, size_t cnt)
{
	struct looping *looping = arg;

	looping->loop(&looping->state, base, cnt);
}

uint64_t bench_pieces_pass(void *arg)
{
	const struct bench_pieces *p = arg;
	struct looping looping = {p->loop, bench_loop_begin(0)};
	struct bench_piece_reader reader = *p->reader;

	reader.take = loop_take;
	reader.arg = &looping;
	bench_pieces_walk(p, &reader);
	return bench_loop_result(&looping.state);
}

/* ---- blocks of a store ----------------------------------------------------------------------- */

static void volume_read(struct bench_blocks *b, const struct stoup_store_volume *volume)
{
	const struct stoup_vol_index *index = volume->index;
	uint64_t file_len = index->file_len;
	uint8_t *bytes = bench_alloc(file_len);
	int rc = stoup_file_read(volume->fd, bytes, file_len, 0);

	if (rc < 0)
		bench_die("%s: %s", volume->path, strerror(-rc));
	if (b->file_cnt == BENCH_VOLUME_CAP)
		bench_die("more than %d volumes", BENCH_VOLUME_CAP);
	b->files[b->file_cnt] = bytes;
	b->file_lens[b->file_cnt++] = file_len;
	b->file_len += file_len;
	for (uint32_t i = 0; i < index->series_cnt; i++)
		b->record_cnt += index->series[i].record_cnt;
	b->blocks = realloc(b->blocks, (b->cnt + index->block_cnt) * sizeof(*b->blocks));
	if (!b->blocks)
		bench_die("no memory for blocks");
	for (uint32_t i = 0; i < index->block_cnt; i++) {
		const struct stoup_vol_block *block = &index->blocks[i];

		b->blocks[b->cnt++] = (struct bench_block){bytes + block->stored_off,
			block->stored_len, block->raw_len, block->codec, block->transform};
		b->raw_len += block->raw_len;
		b->stored_len += block->stored_len;
	}
}

void bench_blocks_read(struct bench_blocks *b, const char *path)
{
	struct stoup_error err = {0};
	struct stoup_store *store;

	*b = (struct bench_blocks){0};
	if (stoup_store_open(path, &store, &err) < 0)
		bench_die("%s", err.text);
	for (uint32_t i = 0; i < store->volume_cnt; i++)
		volume_read(b, store->volumes[i]);
	stoup_store_close(store);
	b->buffer = bench_alloc(STOUP_BLOCK_RAW_CAP);
	b->scratch = bench_alloc(stoup_block_scratch_len());
	stoup_block_scratch_init(b->scratch);
}

void bench_blocks_free(struct bench_blocks *b)
{
	for (size_t i = 0; i < b->file_cnt; i++)
		bench_free(b->files[i], b->file_lens[i]);
	bench_free(b->buffer, STOUP_BLOCK_RAW_CAP);
	bench_free(b->scratch, stoup_block_scratch_len());
	free(b->blocks);
}

/* Decode one block into the buffer. */
static void block_decode(const struct bench_blocks *b, size_t i)
{
	const struct bench_block *block = &b->blocks[i];

	if (stoup_block_decode(block->codec, block->transform, block->stored, block->stored_len,
		    b->buffer, block->raw_len, b->scratch) < 0)
		bench_die("block %zu does not decode", i);
}

uint64_t bench_blocks_pass(void *arg)
{
	const struct bench_blocks *b = arg;
	uint64_t len = 0;

	for (size_t i = 0; i < b->cnt; i++) {
		block_decode(b, i);
		len += b->blocks[i].raw_len;
	}
	return len;
}

void bench_store_dump(const char *path)
{
	struct bench_blocks blocks;

	bench_blocks_read(&blocks, path);
	for (size_t i = 0; i < blocks.cnt; i++) {
		block_decode(&blocks, i);
		if (fwrite(blocks.buffer, 1, blocks.blocks[i].raw_len, stdout) !=
			blocks.blocks[i].raw_len)
			bench_die("standard output: %s", strerror(errno));
	}
	bench_blocks_free(&blocks);
}

void bench_store_sizes(const char *path)
{
	size_t cap = ZSTD_compressBound(STOUP_BLOCK_RAW_CAP), packed = 0;
	void *dst = bench_alloc(cap);
	struct bench_blocks blocks;

	bench_blocks_read(&blocks, path);
	for (size_t i = 0; i < blocks.cnt; i++) {
		size_t n;

		block_decode(&blocks, i);
		n = ZSTD_compress(dst, cap, blocks.buffer, blocks.blocks[i].raw_len, PRIVATE_LEVEL);
		if (ZSTD_isError(n))
			bench_die("zstd: %s", ZSTD_getErrorName(n));
		packed += n;
	}
	printf("{\"records\":%llu,\"raw_bytes\":%llu,\"zstd3_bytes\":%zu}\n",
		(unsigned long long)blocks.record_cnt, (unsigned long long)blocks.raw_len, packed);
	bench_blocks_free(&blocks);
	bench_free(dst, cap);
}
