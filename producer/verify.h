/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - what `stoup verify` finds in a volume, for whoever mends it.
 *
 * Concurrency: plain functions; they print to stdout.
 */
#ifndef STOUP_PRODUCER_VERIFY_H
#define STOUP_PRODUCER_VERIFY_H

#include <stdint.h>
#include "producer/progress.h"
#include "producer/store.h"

/* Which segments of a volume can not be served as they are, and whether its padding is damaged, or a zone map excludes a
 * record that is there: such a volume is written anew with all that it has. */
struct stoup_verify_marks {
	uint8_t *
		segments; /* by segment: 1 damaged; the caller's, zeroed, one per segment and one more */
	uint64_t segment_cnt; /* marked */
	int padding;          /* or a zone map */
};

/* Check every byte of a volume and print each fault. The number of faults, or -ENOMEM. `progress` may be NULL. */
int64_t stoup_volume_verify(const struct stoup_store_volume *volume,
	struct stoup_progress *progress, uint64_t done_len, struct stoup_verify_marks *marks);

/* `stoup verify --repair`: drop what is damaged of a store. 0: it is whole now; else a negative errno with text. */
int stoup_repair(const char *store_path, int dry_run, int quiet, struct stoup_error *err);

#endif
