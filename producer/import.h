/* SPDX-License-Identifier: Apache-2.0 */
/* import.h - where importers put records and messages: the sink behind `stoup ingest`.
 *
 *      dbn.c, csv.c ... --series, put--> import --partition by series--> spill file
 *                                                  |  finish
 *                                                  v
 *                                  blocks of one schema -> encoders -> volume(s) -> store
 *
 * An importer opens series and puts records in the order of its input; the sink partitions them by
 * series through a temporary file (bounded memory, whatever the number of series), checks or makes
 * the key order, fills blocks, encodes them on all cores and publishes the volumes when the
 * importer has ended without an error. Nothing is visible in the store before that.
 *
 * Invariant: a record is stored byte for byte as it was put; a failed import leaves the store as
 * it was.
 *
 * Concurrency: one import is used by one thread (it has worker threads of its own).
 */
#ifndef STOUP_PRODUCER_IMPORT_H
#define STOUP_PRODUCER_IMPORT_H

#include <stddef.h>
#include <stdint.h>
#include "codec/block.h"
#include "codec/volume.h"
#include "producer/intake.h"
#include "producer/sink.h"
#include "shm/stoup_types.h"

#define STOUP_ORDER_REFUSE 0 /* a step back in time is an error that names the row */
#define STOUP_ORDER_SORT   1 /* stable sort by key */
#define STOUP_ORDER_KEEP   2 /* record order stays; key = running maximum; steps back are counted */

struct stoup_import_options {
	const char *store_path;
	struct stoup_encoding encoding;
	uint32_t block_len;  /* decoded bytes of a block, 64 KiB to 2 MiB; default 512 KiB */
	uint64_t volume_len; /* decoded bytes per volume; default 4 GiB */
	uint64_t memory_len; /* budget of partition buffers, bytes; default 64 MiB */
	int order;           /* STOUP_ORDER_* */
	int order_given; /* the user chose it: event64 (event64.h) is then kept unchecked with KEEP */
	int replace;     /* records of the new key range take the old ones' place */
	int quiet;
	int dry_run; /* read and check all, show what would be stored; nothing is written */
	struct stoup_intake filter; /* keys outside its range are left out, and counted */
	uint32_t threads;           /* encoders; 0 = one per core */
};

struct stoup_import;
struct stoup_store;

int stoup_import_begin(const struct stoup_import_options *options, struct stoup_import **ret,
	struct stoup_error *err);

/* Open (or find) the series `name` of `schema` (copied). Returns its index (>= 0), or a negative
 * errno: -EINVAL for a name that is empty, too long, or has control bytes or empty parts, and for event64
 * (event64.h), which has two orders, with STOUP_ORDER_SORT. */
int64_t stoup_import_series(struct stoup_import *import, const char *name,
	const struct stoup_schema *schema, struct stoup_error *err);

/* Put one record of schema->stride bytes with its key (> 0). -ERANGE for a key that is not positive
 * or undefined, -EILSEQ for one that steps back (order REFUSE), or an event64 out of its orders, -ENOSPC, -EIO for the spill file.
 */
int stoup_import_put(struct stoup_import *import, uint32_t series_idx, int64_t key,
	const void *record, const struct stoup_where *where, struct stoup_error *err);

/* Put one message of `len` bytes (0 is allowed) into a series of a schema of messages: json, bipf, itch50,
 * frames. The bytes are copied. As stoup_import_put; -EMSGSIZE for more than STOUP_MESSAGE_LEN_CAP
 * bytes. What the bytes must be (JSON in UTF-8) is the caller's to check. */
int stoup_import_put_message(struct stoup_import *import, uint32_t series_idx, int64_t key,
	const void *bytes, uint32_t len, const struct stoup_where *where, struct stoup_error *err);

/* What the volumes will list as files that they were made of (copied): only those whose records were all
 * put. 0 or -ENOMEM. */
int stoup_import_add_source(struct stoup_import *import, const struct stoup_vol_source *source,
	struct stoup_error *err);

/* The store as it is under the lock. */
const struct stoup_store *stoup_import_store(const struct stoup_import *import);

/* Write and publish the volumes, print the summary. -EEXIST for an overlap with the store. */
int stoup_import_finish(struct stoup_import *import, struct stoup_error *err);

/* End an import, finished or not; NULL is allowed. An unfinished one leaves no trace. */
void stoup_import_destroy(struct stoup_import *import);

#endif
