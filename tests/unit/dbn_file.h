/* SPDX-License-Identifier: Apache-2.0 */
/* dbn_file.h - a file of DBN in a directory of its own, and its import into the sink of dbn_sink.h. */
#ifndef STOUP_TESTS_DBN_FILE_H
#define STOUP_TESTS_DBN_FILE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/unit/dbn_build.h"
#include "tests/unit/dbn_sink.h"

static char dir_path[64];
static char file_path[96];

static inline void setup(void)
{
	snprintf(dir_path, sizeof(dir_path), "/tmp/stoup-dbn-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir_path));
	snprintf(file_path, sizeof(file_path), "%s/file.dbn", dir_path);
	memset(&sink, 0, sizeof(sink));
}

static inline void teardown(void)
{
	sink_reset();
	unlink(file_path);
	rmdir(dir_path);
}

static inline void write_file(const void *bytes, size_t len)
{
	FILE *file = fopen(file_path, "wb");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
	fclose(file);
}

/* Write the file, import it, free the bytes. */
static inline int ingest(
	struct dbn_bytes *dbn, const struct stoup_dbn_options *options, struct stoup_error *err)
{
	write_file(dbn->bytes, dbn->len);
	int rc = ingest_path(file_path, options, err);
	dbn_free(dbn);
	return rc;
}

#endif
