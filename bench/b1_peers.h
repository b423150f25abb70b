/* SPDX-License-Identifier: Apache-2.0 */
/* b1_peers.h - other programs' ways to iterate the same records: LMDB, RocksDB, heap objects.
 *
 * LMDB and RocksDB come from Debian's packages and are optional at build time. Both are filled in
 * their fastest way (append, sorted table files), uncompressed, and read from memory.
 *
 * Key of a record: its 8-byte ordinal (keys: the key itself), the record is the value.
 *
 * Invariant: a peer is filled once and not changed while it is read.
 */
#ifndef STOUP_BENCH_B1_PEERS_H
#define STOUP_BENCH_B1_PEERS_H

#include "bench/rig.h"

struct bench_peer; /* one data set in one peer */

/* NULL where this build has no such library. `dir` is made. */
struct bench_peer *bench_lmdb_make(const char *dir, const struct bench_records *records);
struct bench_peer *bench_rocksdb_make(const char *dir, const struct bench_records *records);

/* One pass over all records. bench_pass functions; NULL where the library is absent. */
extern uint64_t (*const bench_lmdb_pass)(void *peer);
extern uint64_t (*const bench_rocksdb_pass)(void *peer);
void bench_lmdb_close(struct bench_peer *peer);
void bench_rocksdb_close(struct bench_peer *peer);

/* Versions for the document; "" where absent. */
const char *bench_lmdb_version(void);
const char *bench_rocksdb_version(void);

#endif
