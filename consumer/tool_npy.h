/* SPDX-License-Identifier: Apache-2.0 */
/* tool_npy.h - the records of a scan as a NumPy file: .npy, or .npz with the one member `data`.
 *
 *      .npy   header {descr, shape}, records as they lie
 *      .npz   local header "data.npy" | .npy, stored | directory | end      (zip; zip64 from 4 GiB)
 *
 * The header has the number of records and the zip a checksum, so that a query of which the index does not tell them
 * is run twice; what the second run finds must be what the first one did.
 *
 * Invariant: the array's records are the series' bytes, hidden fields and gaps included: ingested
 * again with the same schema they are the same. Of chosen fields the array has these alone.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_NPY_H
#define STOUP_CONSUMER_TOOL_NPY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "consumer/stoup.h"
#include "consumer/tool_columns.h"
#include "consumer/tool_query.h"

/* What goes before and behind the array in a .npz of `npy_len` bytes with `crc`. `dst` has
 * STOUP_NPZ_CAP bytes; the length is returned. */
#define STOUP_NPZ_CAP 256u
size_t stoup_npz_head(uint64_t npy_len, uint32_t crc, uint8_t *dst);
size_t stoup_npz_tail(uint64_t npy_len, uint32_t crc, uint8_t *dst);

/* The header of an array of `record_cnt` records; *ret is the caller's to free. Its length, a multiple
 * of 64, or -ENOMEM. */
int64_t stoup_npy_head(const struct stoup_schema *schema, uint64_t record_cnt, char **ret);

/* CRC-32 of zip, going on from `crc` (0 at first). */
uint32_t stoup_npz_crc(uint32_t crc, const void *bytes, size_t len);

/* Write the rows of a query of one source that has records. How many they are, or a negative errno with text; what
 * was written until then is no file. `select`: these fields alone, one behind the other; none: records as they lie. */
int64_t stoup_tool_npy_query(struct stoup_query *query, const struct stoup_select *select, int npz,
	FILE *out, struct stoup_error *err);

/* The same for all records of a range. */
int64_t stoup_tool_npy(struct stoup *st, const struct stoup_series *series,
	const struct stoup_range *range, int npz, FILE *out, struct stoup_error *err);

#endif
