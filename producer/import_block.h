/* SPDX-License-Identifier: Apache-2.0 */
/* import_block.h - records of sorted series to blocks, segments and volumes.
 *
 *      put: A A A A | A A B B | B C C | D ...      blocks of one schema: all but the last are full
 *           seg A     seg A,B   seg B,C
 *           +---------- volume 0 ---------+-- volume 1 ...     cut between blocks, at volume_len
 *
 * Messages of a series in a block are a run (shm/message.h), whose table is written when the run ends.
 * How blocks of messages are cut depends on the order of their lengths; so volumes are cut by the sum of
 * the lengths, message by message, and a block ends where its volume does.
 *
 * Invariant: the number of volumes is what was planned from the record counts and lengths, since a
 * volume's header says of how many it is one.
 *
 * Concurrency: one thread; the encoders are inside.
 */
#ifndef STOUP_PRODUCER_IMPORT_BLOCK_H
#define STOUP_PRODUCER_IMPORT_BLOCK_H

#include "producer/import_encode.h"
#include "producer/import_state.h"
#include "producer/volume_file.h"

struct stoup_import_builder {
	struct stoup_import *import;
	struct stoup_encode *encode;
	struct stoup_encode_slot *slot; /* being filled, or NULL */
	uint32_t schema_idx;            /* of the slot */
	uint32_t series_idx;            /* that is being put */
	int64_t key;                    /* effective key of its last record; 0 before the first */
	uint32_t run_off, run_cnt;      /* messages: the run at the slot's end that is still open */
	uint32_t volume_idx;            /* of the blocks that are being submitted */
	uint64_t volume_raw_len;
	uint8_t id[16]; /* of batch_idx 0 */
	int64_t created_ns;
	uint32_t batch_cnt;
	uint8_t (*superseded)[16]; /* sorted, each once */
	size_t superseded_cnt;
	struct stoup_volume_file file; /* volume import->volume_cnt, while file_open */
	int file_open;
	uint64_t raw_len, raw_total,
		written_len; /* decoded bytes written and planned; file bytes */
};

/* Plan the volumes and start the encoders. 0 or negative errno with text; end with fini in any
 * case. */
int stoup_import_builder_init(
	struct stoup_import_builder *builder, struct stoup_import *import, struct stoup_error *err);

/* The next records are those of another series; of the same schema or the next one. */
void stoup_import_builder_series(struct stoup_import_builder *builder, uint32_t series_idx);

/* Put records in key order. */
int stoup_import_builder_put(struct stoup_import_builder *builder, const uint8_t *records,
	uint64_t cnt, struct stoup_error *err);

/* Write all that is left and finish the last volume; import->volumes are complete, not published.
 */
int stoup_import_builder_finish(struct stoup_import_builder *builder, struct stoup_error *err);

/* Stop the encoders; volumes that are not `published` are removed. */
void stoup_import_builder_fini(struct stoup_import_builder *builder, int published);

#endif
