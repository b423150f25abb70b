/* SPDX-License-Identifier: Apache-2.0 */
/* codec_data.h - records for the benchmark of the codecs: of a DBN file, or of a store.
 *
 *      DBN file    records of each schema, by instrument, else in their order
 *      store       records of each schema, block after block
 *
 * Concurrency: none.
 */
#ifndef STOUP_BENCH_CODEC_DATA_H
#define STOUP_BENCH_CODEC_DATA_H

#include <stddef.h>
#include <stdint.h>
#include "codec/volume.h"
#include "shm/stoup_types.h"

/* All records of one schema. */
struct codec_data {
	char name[STOUP_SCHEMA_NAME_CAP];
	uint32_t stride, field_cnt;
	struct stoup_vol_field *fields;
	uint8_t *records;
	size_t len, cap;
};

#define CODEC_DATA_CAP 64u /* schemas */

/* Read `path`. Returns the number of schemas (0: no records), or a negative errno with a text. */
int codec_data_read(
	const char *path, struct codec_data ret[CODEC_DATA_CAP], struct stoup_error *err);
void codec_data_free(struct codec_data *data, int cnt);

#endif
