/* SPDX-License-Identifier: Apache-2.0 */
/* sim_dbn.h - write MBO records as a DBN file, plain or zstd.
 *
 *      plain:  prelude, metadata, records
 *      zstd:   frame {prelude, metadata}, then one frame per UTC day of ts_recv
 *
 * The framing is that of files from a vendor's historical service: level 3, content checksum, one
 * frame per day. Version 1 has symbols of 22 bytes and unaligned records; version 3 has symbols of
 * 71 bytes and metadata padded to a multiple of 8.
 *
 * Invariant: a file that was closed with 0 is complete; any failure leaves a file without its end.
 *
 * Concurrency: one writer belongs to one thread.
 */
#ifndef STOUP_BENCH_SIM_DBN_H
#define STOUP_BENCH_SIM_DBN_H

#include <stdint.h>
#include "bench/sim.h"

struct stoup_sim_dbn_options {
	const char *path;
	uint32_t version; /* 1 or 3 */
	uint32_t symbol_cnt;
	int64_t start_ns, end_ns; /* days that the mappings cover: end_ns is inside the last one */
	int zstd_level;           /* 0: plain */
	int thread_cnt;           /* of the compressor; 0: none of its own */
};

struct stoup_sim_dbn;

/* Create the file and write its metadata. -EINVAL, -ENOMEM, or the errno of the file. */
int stoup_sim_dbn_create(const struct stoup_sim_dbn_options *options, struct stoup_sim_dbn **ret);

/* Append records; their ts_recv must not fall. -EIO, -ENOSPC... from the file. */
int stoup_sim_dbn_write(
	struct stoup_sim_dbn *dbn, const struct stoup_sim_mbo *records, uint64_t cnt);

/* End the file and free the writer, also after a failure. NULL is allowed. */
int stoup_sim_dbn_close(struct stoup_sim_dbn *dbn);

#endif
