/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_npy.h - structured NumPy arrays to records: .npy, and .npz with one member.
 *
 *      file --input: unzip--> header --npy--> fields --which schema?--> rows --move--> put
 *
 *      the dtype is event64's          -> event64
 *      --schema NAME|FILE              -> its fields, found in the array by name
 *      else                            -> a schema `npy` with the array's own fields and layout;
 *                                         the key is --time FIELD, or the only datetime64[ns]
 *
 * Invariant: a value is stored bit for bit as the array has it; where the schema's layout is the
 * array's, so is the whole record. A field whose type differs from the schema's is an error, not a
 * conversion.
 *
 * Concurrency: one call, one thread.
 */
#ifndef STOUP_PRODUCER_INGEST_NPY_H
#define STOUP_PRODUCER_INGEST_NPY_H

#include "producer/ingest_csv.h"
#include "producer/input.h"
#include "producer/sink.h"

/* Put the rows of an open input, which stays the caller's, into `sink`. Of the options series, schema,
 * time and interval count; others are refused. 0; -EINVAL for options that do not fit the array, -ENOTSUP and -EBADMSG as stoup_npy_header,
 * -ENODATA for a file that ends before its last row, or what input and sink give. Texts name file and offset. */
int stoup_ingest_npy(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_csv_options *options, struct stoup_error *err);

#endif
