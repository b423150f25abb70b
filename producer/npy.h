/* SPDX-License-Identifier: Apache-2.0 */
/* npy.h - the header of a NumPy .npy file: bytes to facts, without I/O.
 *
 *      0          6      8          10 or 12        header_off + header_len
 *      +----------+------+----------+---------------+--------+--------+----
 *      | \x93NUMPY| v.v  | length   | {'descr': ... | record | record | ...
 *      +----------+------+----------+---------------+--------+--------+----
 *                         u16 (1.0)   a Python literal, padded with blanks
 *                         u32 (2.0, 3.0)
 *
 * Of Python's literals only what NumPy writes is read: one dictionary of the three keys, strings
 * without escapes, True and False, tuples of integers, a list of (name, type) pairs.
 *
 * Accepted are one-dimensional structured arrays: records of named little-endian fields. Everything
 * else that such a file can hold is refused with what mends it.
 *
 * Invariant: fields lie one behind the other inside the stride, as NumPy reads them; a field
 * without a name is padding.
 *
 * Concurrency: pure functions.
 * Limits: a header of 256 KiB, STOUP_SCHEMA_FIELD_CAP fields (gaps included), records of
 * STOUP_RECORD_LEN_CAP bytes.
 */
#ifndef STOUP_PRODUCER_NPY_H
#define STOUP_PRODUCER_NPY_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

#define STOUP_NPY_PRELUDE_LEN 12u /* enough of any version */
#define STOUP_NPY_HEADER_CAP  (256u << 10)

struct stoup_npy_prelude {
	uint8_t major, minor;
	uint32_t header_off; /* 10 or 12 */
	uint32_t header_len;
};

/* Does a file begin like one? */
int stoup_npy_is(const uint8_t *bytes, size_t len);

/* Read the first STOUP_NPY_PRELUDE_LEN bytes. 0; -EBADMSG for another kind of file or a longer header; -ENODATA for fewer;
 * -EPROTONOSUPPORT for a version other than 1.0, 2.0 and 3.0. */
int stoup_npy_prelude(
	const uint8_t *bytes, size_t len, struct stoup_npy_prelude *ret, struct stoup_error *err);

struct stoup_npy {
	uint64_t row_cnt;
	uint32_t stride;
	uint32_t field_cnt;
	/* Offset, count and type; times are datetime64[ns] (FIELD_TIME) or timedelta64[ns]
	 * (FIELD_DURATION), with NaT as null value. */
	struct stoup_field fields[STOUP_SCHEMA_FIELD_CAP];
};

/* Read a header of `len` bytes that begins `header_off` bytes into the file (for messages). 0;
 * -EBADMSG for text that is no such header, -ENOTSUP for arrays that are not accepted, each with the
 * offset and what to do. */
int stoup_npy_header(const char *text, size_t len, uint64_t header_off, struct stoup_npy *ret,
	struct stoup_error *err);

#endif
