/* SPDX-License-Identifier: Apache-2.0 */
/* stoup_arrow.h - records as Apache Arrow columns, by the Arrow C data and C stream interfaces.
 *
 *      schema --stoup_arrow_schema--> struct ArrowSchema   one child per field
 *      span ----stoup_arrow_array---> struct ArrowArray    one column per field
 *      cursor --stoup_arrow_stream--> struct ArrowArrayStream    a whole scan, batch by batch
 *
 * pyarrow, polars, pandas, DuckDB and all else that speaks the two interfaces takes these structs
 * as they are; none of them is needed to build or to use this header.
 *
 * What is copied: records lie row by row, Arrow wants columns, so each column is gathered once. Not
 * copied is a column whose values already lie as Arrow wants them, one behind the other and of the
 * same form: the only field of a schema without gaps, and the records themselves as one column of
 * fixed-size binary (STOUP_ARROW_RECORDS). Its buffer points into the pool or the mapped file, and
 * the array holds a lease on it. An array without such a column holds nothing of the pool.
 *
 *      type of a field                  column                        copied
 *      u8 i8 ... u64 i64, f32, f64      the same type                 unless it is the record
 *      with a scale (a price)           decimal128(38, scale)         yes
 *        ... STOUP_ARROW_PRICE_INT      the integer, scale in the metadata   as integers
 *        ... STOUP_ARROW_PRICE_F64      float64, correctly rounded    yes
 *      time (i64, u64)                  timestamp[ns, UTC]            as integers
 *      duration                         duration[ns]                  as integers
 *        ... STOUP_ARROW_TIME_INT       the integer                   as integers
 *      char[N]                          utf8, up to the first NUL     yes
 *        ... STOUP_ARROW_TEXT_BYTES     fixed-size binary(N)          unless it is the record
 *      bytes[N]                         fixed-size binary(N)          unless it is the record
 *      hidden fields                    left out; with STOUP_ARROW_HIDDEN as their type says
 *      messages                         two columns: key, a timestamp, and message, large binary;   yes
 *                                       of schema json large utf8, unless STOUP_ARROW_TEXT_BYTES
 *
 * Undefined values are nulls: a field that has a null value gets a validity bitmap where one of its
 * values is that. The field's metadata has `stoup.scale` (of integers that stand for decimals) and
 * `stoup.unit`; the schema's have `stoup.schema`, `stoup.key` and, for bars, `stoup.interval_ns`.
 *
 * Invariant: a value that comes out is exactly the record's, or the call fails: a time or duration
 * beyond i64 is -ERANGE, a text that is not UTF-8 is -EILSEQ, and the text names the flag that
 * gives the bytes instead. (Float64 prices are the nearest double.)
 *
 * Concurrency: release callbacks may run on any thread. Arrays may outlive the cursor; those that
 * hold a lease keep stoup_detach at -EBUSY. In a child of fork() release frees memory only.
 */
#ifndef STOUP_ARROW_H
#define STOUP_ARROW_H

#include <stdint.h>
#include "stoup.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the interfaces, as Arrow's specification has them --------------------------------------- */

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE           2
#define ARROW_FLAG_MAP_KEYS_SORTED    4

struct ArrowSchema {
	const char *format;
	const char *name;
	const char *metadata;
	int64_t flags;
	int64_t n_children;
	struct ArrowSchema **children;
	struct ArrowSchema *dictionary;
	void (*release)(struct ArrowSchema *);
	void *private_data;
};

struct ArrowArray {
	int64_t length;
	int64_t null_count;
	int64_t offset;
	int64_t n_buffers;
	int64_t n_children;
	const void **buffers;
	struct ArrowArray **children;
	struct ArrowArray *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
	int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
	const char *(*get_last_error)(struct ArrowArrayStream *);
	void (*release)(struct ArrowArrayStream *);
	void *private_data;
};

#endif

/* ---- flags ----------------------------------------------------------------------------------- */

#define STOUP_ARROW_RECORDS    0x01u /* one column `record` of fixed-size binary: no copy */
#define STOUP_ARROW_PRICE_INT  0x02u /* decimals as their integers */
#define STOUP_ARROW_PRICE_F64  0x04u /* decimals as float64 */
#define STOUP_ARROW_TIME_INT   0x08u /* times and durations as their integers */
#define STOUP_ARROW_TEXT_BYTES 0x10u /* texts as fixed-size binary, NUL bytes included */
#define STOUP_ARROW_HIDDEN     0x20u /* reserved and structural fields too */

/* Most rows of one batch of a stream. A pool's span is shorter; those of direct mode are cut. */
#define STOUP_ARROW_BATCH_CAP (1u << 20)

/* ---- calls ----------------------------------------------------------------------------------- */

/* Describe the columns of records of `schema`: a struct with a child per field. The result is the
 * caller's, ended by its release callback, and needs neither `schema` nor an attachment. `ret` is
 * overwritten, and untouched on failure. 0; -EINVAL for unknown flags, or two forms of a price;
 * -ENOTSUP for messages of variable length with STOUP_ARROW_RECORDS; -ENOMEM. Thread-safe. */
STOUP_API int stoup_arrow_schema(const struct stoup_schema *schema, uint32_t flags,
	struct ArrowSchema *ret, struct stoup_error *err);

/* The records of a valid span as columns: a struct array with a child per field, of the schema that
 * stoup_arrow_schema describes with the same flags. Ended by its release callback; a child may be
 * moved out, and is then ended by its own. 0; as above; -ERANGE, -EILSEQ for values that Arrow
 * cannot have; -EFBIG where a text column would exceed 2 GiB; what stoup_hold gives where a column
 * is not copied; -ENOMEM. */
STOUP_API int stoup_arrow_array(const struct stoup_span *span, uint32_t flags,
	struct ArrowArray *ret, struct stoup_error *err);

/* The rest of a forward scan as a stream of such arrays. The cursor is the stream's from then on:
 * releasing the stream closes it. get_next waits as stoup_next does and returns its codes as
 * positive errnos, with the text in get_last_error; a batch that failed to come may be asked for
 * again where stoup_next may be called again. One thread at a time, as with a cursor. 0; as
 * stoup_arrow_schema; -EINVAL for a backward scan, whose records come in no one order; the cursor
 * then stays the caller's. */
STOUP_API int stoup_arrow_stream(struct stoup_cursor *cur, uint32_t flags,
	struct ArrowArrayStream *ret, struct stoup_error *err);

#ifdef __cplusplus
}
#endif

#endif
