/* SPDX-License-Identifier: Apache-2.0 */
/* b1_rocksdb.c - the records in RocksDB, read by its iterator. */
#include "bench/b1_peers.h"

#include "bench/harness.h"

#ifdef STOUP_BENCH_ROCKSDB

#include <endian.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LEN ((size_t)1 << 30) /* of blocks: all of the data, as it is to be resident */

struct bench_peer {
	enum bench_kind kind;
	rocksdb_t *db;
	rocksdb_options_t *options;
	rocksdb_readoptions_t *read;
};

static void check(char *err, const char *what)
{
	if (err)
		bench_die("RocksDB: %s: %s", what, err);
}

/* Keys are compared as bytes: big-endian, with which ascending numbers ascend. */
static void write_table(rocksdb_sstfilewriter_t *writer, const struct bench_records *records)
{
	uint32_t stride = bench_stride(records->kind);
	char *err = NULL;

	for (uint64_t i = 0; i < records->cnt; i++) {
		const char *record = (const char *)records->bytes + i * stride;
		uint64_t number = i;

		if (records->kind == BENCH_KEYS)
			memcpy(&number, record, sizeof(number));
		number = htobe64(number);
		rocksdb_sstfilewriter_put(writer, (const char *)&number, sizeof(number), record,
			records->kind == BENCH_KEYS ? 0 : stride, &err);
		check(err, "writing a table");
	}
	rocksdb_sstfilewriter_finish(writer, &err);
	check(err, "finishing a table");
}

static void fill(struct bench_peer *peer, const char *dir, const struct bench_records *records)
{
	rocksdb_envoptions_t *env = rocksdb_envoptions_create();
	rocksdb_ingestexternalfileoptions_t *ingest = rocksdb_ingestexternalfileoptions_create();
	rocksdb_sstfilewriter_t *writer = rocksdb_sstfilewriter_create(env, peer->options);
	char path[4200];
	const char *paths[1] = {path};
	char *err = NULL;

	snprintf(path, sizeof(path), "%s.sst", dir);
	rocksdb_sstfilewriter_open(writer, path, &err);
	check(err, path);
	write_table(writer, records);
	rocksdb_ingestexternalfileoptions_set_move_files(ingest, 1);
	rocksdb_ingest_external_file(peer->db, paths, 1, ingest, &err);
	check(err, "taking a table in");
	rocksdb_sstfilewriter_destroy(writer);
	rocksdb_ingestexternalfileoptions_destroy(ingest);
	rocksdb_envoptions_destroy(env);
}

struct bench_peer *bench_rocksdb_make(const char *dir, const struct bench_records *records)
{
	struct bench_peer *peer = calloc(1, sizeof(*peer));
	rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
	char *err = NULL;

	if (!peer)
		bench_die("no memory");
	peer->kind = records->kind;
	peer->options = rocksdb_options_create();
	rocksdb_options_set_create_if_missing(peer->options, 1);
	rocksdb_options_set_compression(peer->options, rocksdb_no_compression);
	rocksdb_block_based_options_set_block_size(table, 64u << 10);
	rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(CACHE_LEN));
	rocksdb_options_set_block_based_table_factory(peer->options, table);
	peer->db = rocksdb_open(peer->options, dir, &err);
	check(err, "opening");
	fill(peer, dir, records);
	peer->read = rocksdb_readoptions_create();
	rocksdb_readoptions_set_verify_checksums(peer->read, 0);
	return peer;
}

static uint64_t pass(void *arg)
{
	const struct bench_peer *peer = arg;
	struct bench_loop loop = bench_loop_begin(0);
	enum bench_kind kind = peer->kind;
	rocksdb_iterator_t *it = rocksdb_create_iterator(peer->db, peer->read);
	char *err = NULL;

	for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
		size_t len;

		if (kind == BENCH_KEYS) {
			uint64_t number;

			memcpy(&number, rocksdb_iter_key(it, &len), sizeof(number));
			number = be64toh(number);
			bench_step(kind, &loop, &number);
		} else {
			/* A value may lie at any address; 64 bytes on the stack are aligned. */
			_Alignas(8) char record[64];

			memcpy(record, rocksdb_iter_value(it, &len), bench_stride(kind));
			bench_step(kind, &loop, record);
		}
	}
	rocksdb_iter_get_error(it, &err);
	check(err, "next");
	rocksdb_iter_destroy(it);
	return bench_loop_result(&loop);
}

uint64_t (*const bench_rocksdb_pass)(void *peer) = pass;

void bench_rocksdb_close(struct bench_peer *peer)
{
	rocksdb_readoptions_destroy(peer->read);
	rocksdb_close(peer->db);
	rocksdb_options_destroy(peer->options);
	free(peer);
}

const char *bench_rocksdb_version(void)
{
	return STOUP_BENCH_ROCKSDB;
}

#else

uint64_t (*const bench_rocksdb_pass)(void *peer) = NULL;

struct bench_peer *bench_rocksdb_make(const char *dir, const struct bench_records *records)
{
	(void)dir;
	(void)records;
	return NULL;
}

void bench_rocksdb_close(struct bench_peer *peer)
{
	(void)peer;
}

const char *bench_rocksdb_version(void)
{
	return "";
}

#endif
