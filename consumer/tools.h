/* SPDX-License-Identifier: Apache-2.0 */
/* tools.h - the commands that only read a pool, as the dispatcher of `stoup` calls them.
 *
 * Each returns the exit status: 0, 1 for a failure (one line on stderr), 2 for wrong usage. Results go
 * to stdout. They use the public library and the control object; no daemon is asked for anything but
 * what every consumer may ask.
 */
#ifndef STOUP_CONSUMER_TOOLS_H
#define STOUP_CONSUMER_TOOLS_H

#include <stddef.h>
#include <stdint.h>

int stoup_cmd_stat(int argc, char **argv);       /* the control object in words or JSON */
int stoup_cmd_top(int argc, char **argv);        /* the same, live on a terminal */
int stoup_cmd_cat(int argc, char **argv);        /* what series are asked, as text or arrays */
int stoup_cmd_replay(int argc, char **argv);     /* records of series as they fall due */
int stoup_cmd_holders(int argc, char **argv);    /* who holds blocks of which series */
int stoup_cmd_log(int argc, char **argv);        /* the daemon's last distinct errors */
int stoup_cmd_exporter(int argc, char **argv);   /* metrics of pools for Prometheus, a page */
int stoup_cmd_definition(int argc, char **argv); /* what was known of an instrument at a time */
int stoup_cmd_export(int argc, char **argv);     /* series as files of other programs */
int stoup_cmd_warm(int argc, char **argv);       /* load series into a pool */
int stoup_cmd_pin(int argc, char **argv);        /* keep blocks in a pool without leases */
int stoup_cmd_unpin(int argc, char **argv);      /* no longer */
int stoup_cmd_bench(int argc, char **argv); /* scan rates, latencies, memory of a store or pool */

/* Of the producer, which alone knows codecs; `stoup bench` calls it (the same prototype stands in
 * producer/cmd.h). Read and decode the blocks of a series of a store, as a program without stoup would, up to
 * `limit` decoded bytes: *ret_len of them in *ret_ns, on one thread. 0, or a negative errno with text. */
struct stoup_error;
int stoup_private_decode(const char *store_path, const char *series, uint64_t limit,
	uint64_t *ret_len, uint64_t *ret_ns, struct stoup_error *err);

/* Likewise: "64M", "4G" to bytes. 0, -EINVAL, -ERANGE. */
int stoup_size_parse(const char *text, uint64_t *ret_len);

/* Likewise: the decoded length of all that a store holds. 0, or a negative errno with text. */
int stoup_store_decoded_len(const char *store_path, uint64_t *ret_len, struct stoup_error *err);

/* Likewise: a zstd stream, level 3 with checksum. What it makes of the bytes written goes to `put`, whose
 * negative errnos it returns; `end` writes what is left. -ENOMEM. */
struct stoup_pack;
int stoup_pack_create(int (*put)(void *arg, const void *bytes, size_t len), void *arg,
	struct stoup_pack **ret, struct stoup_error *err);
int stoup_pack_write(struct stoup_pack *pack, const void *bytes, size_t len);
int stoup_pack_end(struct stoup_pack *pack);
void stoup_pack_destroy(struct stoup_pack *pack);

/* Likewise: which series lie in the blocks of the volume file `path`, which must have so many blocks and series. 0; a negative
 * errno where it can not be read, -ESTALE where it is another one. Names live until the close, which takes NULL. */
struct stoup_block_series;
int stoup_block_series_open(
	const char *path, uint32_t block_cnt, uint32_t series_cnt, struct stoup_block_series **ret);
/* The first series of a block and how many there are; NULL: there is no such block. */
const char *stoup_block_series_name(
	const struct stoup_block_series *series, uint32_t block_idx, uint32_t *ret_cnt);
void stoup_block_series_close(struct stoup_block_series *series);

#endif
