/* SPDX-License-Identifier: Apache-2.0 */
/* rig.h - what the rows stand on: records, stores, daemons, and the data in its other forms.
 *
 *      simulator --> records --+--> store (as `stoup ingest` writes it) --stoupd--> pool
 *                              +--> raw file --> mmap
 *                              +--> zstd -3 or lz4 pieces in memory, as private readers have them
 *
 * Daemons are real stoupd processes with pools of their own names.
 *
 * Concurrency: as harness.h; a daemon that was started is stopped by bench_daemon_stop, or with the
 * process (it is told to end when its parent does).
 */
#ifndef STOUP_BENCH_RIG_H
#define STOUP_BENCH_RIG_H

#include <stdint.h>
#include <sys/types.h>
#include "bench/loops.h"
#include "codec/block.h"
#include "consumer/stoup.h"

#define BENCH_KEY_0      INT64_C(1700000000000000000)
#define BENCH_KEY_STEP   INT64_C(1000000) /* 1 ms, as in the published iterations */
#define BENCH_VOLUME_CAP 16
#define BENCH_PIECE_LEN  (512u << 10) /* decoded bytes of a private piece: fits the L2 cache */

/* ---- records --------------------------------------------------------------------------------- */

struct bench_records {
	enum bench_kind kind;
	uint8_t *bytes; /* in 2 MiB pages */
	uint64_t cnt;
	size_t len;
};

/* Keys 1 ms apart; orders of one simulated symbol; the trades among those. */
struct bench_records bench_records_make(enum bench_kind kind, uint64_t cnt);

/* The schema of a kind: "trades", "mbo", or one field of 8 bytes. */
const struct stoup_schema *bench_schema_of(enum bench_kind kind);

/* ---- stores ---------------------------------------------------------------------------------- */

/* Write the records into the store `path` (made where absent) as series `series` with a codec of
 * `stoup ingest`, through the importer's sink, in blocks of block_len decoded bytes (0: 512 KiB). */
void bench_store_make(const char *path, const char *series, const char *codec, uint32_t block_len,
	const struct bench_records *records);

/* Run bin/PROGRAM with arguments (NULL at the end), output to WORK/log; its exit status. */
int bench_run_program(const char *program, const char *const *args);

/* Start it, its stdout into a file of that path. It is told to end when this process does; the caller waits for it. */
pid_t bench_program_start(const char *program, const char *const *args, const char *out_path);

/* Does `stoup help ingest` name a codec `name`? */
int bench_codec_known(const char *name);

/* The codec that `stoup ingest` takes when none is said. */
const char *bench_codec_default(void);

/* Does `stoupd --help` name an option? */
int bench_daemon_option_known(const char *option);

/* ---- daemons --------------------------------------------------------------------------------- */

struct bench_daemon {
	pid_t pid;
	char pool[48];
};

/* Start stoupd for a store with a pool of `len` bytes and further options (NULL at the end; may be
 * NULL), and wait until it is ready. The backing is memfd: no need of /dev/shm. */
void bench_daemon_start(
	struct bench_daemon *daemon, const char *store, uint64_t len, const char *const *options);
void bench_daemon_stop(struct bench_daemon *daemon);

/* A counter of a pool, by its name. */
uint64_t bench_counter(const char *pool, const char *name);

/* Attach and find a series; ends the process where that fails. `opt` may be NULL. */
struct stoup *bench_attach(const char *pool, const struct stoup_options *opt, const char *series,
	struct stoup_series *ret);

/* ---- scans ----------------------------------------------------------------------------------- */

struct bench_scan {
	struct stoup *st;
	struct stoup_series series;
	struct stoup_range range; /* with flags where this version has them */
	bench_loop_fn *loop;
	int backward;
};

/* Scan all of the range with the loop; the result. A bench_pass. */
uint64_t bench_scan_pass(void *scan);

/* ---- private forms --------------------------------------------------------------------------- */

/* One thread's decoder: a context, a buffer of BENCH_PIECE_LEN, and what takes each piece. */
struct bench_piece_reader {
	void *context; /* ZSTD_DCtx */
	uint8_t *buffer;
	void (*take)(void *arg, const void *base, size_t cnt);
	void *arg;
};
void bench_piece_reader_make(struct bench_piece_reader *reader);
void bench_piece_reader_free(struct bench_piece_reader *reader);

/* Records compressed in pieces of BENCH_PIECE_LEN, kept in memory, decoded piece by piece into one
 * buffer that stays in the cache: the best that a private reader can do. */
struct bench_pieces {
	int lz4;             /* 0: zstd level 3 */
	bench_loop_fn *loop; /* of bench_pieces_pass */
	uint32_t stride;
	uint8_t *stored;
	size_t stored_cap;
	size_t *off; /* piece i is stored[off[i] .. off[i + 1]) */
	size_t cnt, raw_len, last_len;
	struct bench_piece_reader *reader;
};

void bench_pieces_make(struct bench_pieces *ret, const struct bench_records *records, int lz4,
	bench_loop_fn *loop);

void bench_pieces_free(struct bench_pieces *pieces);

/* Decode all pieces, run the loop over each. A bench_pass. */
uint64_t bench_pieces_pass(void *pieces);

/* Decode all pieces with a reader that the caller made and filled. */
void bench_pieces_walk(const struct bench_pieces *pieces, const struct bench_piece_reader *reader);

/* The blocks of one store's volumes as the daemon would read them: stored bytes in memory. */
struct bench_blocks {
	struct bench_block {
		const uint8_t *stored;
		uint32_t stored_len, raw_len, codec, transform;
	} * blocks;
	void *files[BENCH_VOLUME_CAP]; /* their bytes */
	size_t file_lens[BENCH_VOLUME_CAP];
	size_t cnt, file_cnt;
	uint64_t raw_len, stored_len, file_len, record_cnt;
	uint8_t *buffer;
	void *scratch;
};

void bench_blocks_read(struct bench_blocks *ret, const char *store);
void bench_blocks_free(struct bench_blocks *blocks);

/* Decode every block into one buffer: the decoder alone. A bench_pass (the decoded length). */
uint64_t bench_blocks_pass(void *blocks);

/* For B12: write all decoded blocks to stdout; or their sizes as JSON. */
void bench_store_dump(const char *store);
void bench_store_sizes(const char *store);

#endif
