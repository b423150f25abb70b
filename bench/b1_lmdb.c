/* SPDX-License-Identifier: Apache-2.0 */
/* b1_lmdb.c - the records in LMDB, read by a cursor in place. */
#include "bench/b1_peers.h"

#include "bench/harness.h"

#ifdef STOUP_BENCH_LMDB

#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct bench_peer {
	enum bench_kind kind;
	MDB_env *env;
	MDB_dbi dbi;
	MDB_txn *txn;
};

static void check(int rc, const char *what)
{
	if (rc)
		bench_die("LMDB: %s: %s", what, mdb_strerror(rc));
}

static void fill(struct bench_peer *peer, const struct bench_records *records)
{
	uint32_t stride = bench_stride(records->kind);
	MDB_cursor *cur;
	MDB_txn *txn;

	check(mdb_txn_begin(peer->env, NULL, 0, &txn), "begin");
	check(mdb_dbi_open(txn, NULL, MDB_INTEGERKEY | MDB_CREATE, &peer->dbi), "open");
	check(mdb_cursor_open(txn, peer->dbi, &cur), "cursor");
	for (uint64_t i = 0; i < records->cnt; i++) {
		uint8_t *record = records->bytes + i * stride;
		uint64_t number = i;
		MDB_val key = {sizeof(number), &number}, value = {stride, record};

		if (records->kind == BENCH_KEYS) {
			memcpy(&number, record, sizeof(number));
			value.mv_size = 0;
		}
		check(mdb_cursor_put(cur, &key, &value, MDB_APPEND), "put");
	}
	mdb_cursor_close(cur);
	check(mdb_txn_commit(txn), "commit");
}

struct bench_peer *bench_lmdb_make(const char *dir, const struct bench_records *records)
{
	struct bench_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		bench_die("no memory");
	mkdir(dir, 0700);
	peer->kind = records->kind;
	check(mdb_env_create(&peer->env), "env");
	check(mdb_env_set_mapsize(peer->env, records->len * 6 + ((size_t)64 << 20)), "map size");
	check(mdb_env_open(peer->env, dir, MDB_NOSYNC | MDB_NORDAHEAD, 0600), "open");
	fill(peer, records);
	check(mdb_txn_begin(peer->env, NULL, MDB_RDONLY, &peer->txn), "begin");
	return peer;
}

static uint64_t pass(void *arg)
{
	const struct bench_peer *peer = arg;
	struct bench_loop loop = bench_loop_begin(0);
	enum bench_kind kind = peer->kind;
	MDB_val key, value;
	MDB_cursor *cur;
	int rc;

	check(mdb_cursor_open(peer->txn, peer->dbi, &cur), "cursor");
	rc = mdb_cursor_get(cur, &key, &value, MDB_FIRST);
	for (; rc == 0; rc = mdb_cursor_get(cur, &key, &value, MDB_NEXT))
		bench_step(kind, &loop, kind == BENCH_KEYS ? key.mv_data : value.mv_data);
	if (rc != MDB_NOTFOUND)
		check(rc, "next");
	mdb_cursor_close(cur);
	return bench_loop_result(&loop);
}

uint64_t (*const bench_lmdb_pass)(void *peer) = pass;

void bench_lmdb_close(struct bench_peer *peer)
{
	mdb_txn_abort(peer->txn);
	mdb_env_close(peer->env);
	free(peer);
}

const char *bench_lmdb_version(void)
{
	static char text[32];
	int major, minor, patch;

	mdb_version(&major, &minor, &patch);
	snprintf(text, sizeof(text), "%d.%d.%d", major, minor, patch);
	return text;
}

#else

uint64_t (*const bench_lmdb_pass)(void *peer) = NULL;

struct bench_peer *bench_lmdb_make(const char *dir, const struct bench_records *records)
{
	(void)dir;
	(void)records;
	return NULL;
}

void bench_lmdb_close(struct bench_peer *peer)
{
	(void)peer;
}

const char *bench_lmdb_version(void)
{
	return "";
}

#endif
