/* SPDX-License-Identifier: Apache-2.0 */
/* spill.h - the temporary file through which an import partitions its records.
 *
 *      run 0: [slice][records....][slice][records..]     one run is written from front to back and
 *      run 1: [slice][records..][slice][records....]     read from front to back; all runs are read
 *      run 2: [slice][records............]               beside each other, each through a window
 *
 * A run is a series of slices in ascending order of series; a slice is consecutive records of one
 * series. There is no directory: a slice's 40 bytes stand in front of its records, so that the
 * memory for a run does not grow with the number of series, nor with the length of the input.
 *
 * The file has no name (O_TMPFILE, or unlinked at once): it is gone with the process.
 *
 * Invariant: what is read back is what was written; an I/O error is an error of the call.
 *
 * Concurrency: one thread. First all writing, then all reading.
 */
#ifndef STOUP_PRODUCER_SPILL_H
#define STOUP_PRODUCER_SPILL_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

/* In front of each slice's records. */
struct stoup_spill_slice {
	uint32_t series_idx;
	uint32_t flags;      /* the caller's */
	uint64_t record_cnt; /* at least 1 */
	uint64_t len;        /* bytes of records that follow */
	int64_t first_key, last_key;
};

_Static_assert(sizeof(struct stoup_spill_slice) == 40, "a slice's head has no holes");

struct stoup_spill;

/* Create the file in directory dir_fd (dir_path is for messages; both are borrowed). 0 or negative
 * errno with text. */
int stoup_spill_create(
	int dir_fd, const char *dir_path, struct stoup_spill **ret, struct stoup_error *err);
void stoup_spill_destroy(struct stoup_spill *spill);

/* ---- writing --------------------------------------------------------------------------------- */

/* Begin the next run. 0 or -ENOMEM. */
int stoup_spill_run_begin(struct stoup_spill *spill, struct stoup_error *err);

/* Begin a slice; exactly slice->len bytes of stoup_spill_write follow. */
int stoup_spill_slice_begin(
	struct stoup_spill *spill, const struct stoup_spill_slice *slice, struct stoup_error *err);

/* Append bytes. 0, -ENOSPC or another errno, with a text that says what to do. */
int stoup_spill_write(
	struct stoup_spill *spill, const void *bytes, size_t len, struct stoup_error *err);

/* ---- reading --------------------------------------------------------------------------------- */

/* End writing and stand before the first slice of every run. memory_len bytes are shared by the
 * windows (each at least 4 KiB and one record of record_cap bytes). */
int stoup_spill_rewind(
	struct stoup_spill *spill, size_t memory_len, size_t record_cap, struct stoup_error *err);

uint32_t stoup_spill_run_cnt(const struct stoup_spill *spill);

/* The slice that a run stands in, or NULL at its end: len and record_cnt are what is left of it.
 * Valid until the next call on this run. */
const struct stoup_spill_slice *stoup_spill_head(const struct stoup_spill *spill, uint32_t run_idx);

/* See whole records of the slice: sets *ret_records and *ret_cnt (at least 1). Valid until the next
 * take on this run. With stride 0 the slice holds messages (shm/message.h), and one is seen. */
int stoup_spill_view(struct stoup_spill *spill, uint32_t run_idx, uint32_t stride,
	const uint8_t **ret_records, uint64_t *ret_cnt, struct stoup_error *err);

/* Go on by cnt records of those seen, len bytes; at the end of a slice to the next one. */
int stoup_spill_take(struct stoup_spill *spill, uint32_t run_idx, uint64_t cnt, uint64_t len,
	struct stoup_error *err);

/* Bytes written so far. */
uint64_t stoup_spill_len(const struct stoup_spill *spill);

#endif
