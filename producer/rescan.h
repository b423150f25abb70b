/* SPDX-License-Identifier: Apache-2.0 */
/* rescan.h - what a rescan found: a comparison of the places with the stores as they are now.
 *
 *      places of the newest snapshot     volumes of the stores, read anew
 *      (store, dev, ino, id)   <----->   (store, dev, ino, id)
 *           only here: retired      both: stays       only here: born
 *
 * A function of its arguments alone, without I/O. A volume is the same when its id is and when it is the
 * same file: one that was copied over itself may hold other bytes (it was damaged, and restored).
 */
#ifndef STOUP_PRODUCER_RESCAN_H
#define STOUP_PRODUCER_RESCAN_H

#include <stdint.h>
#include "producer/daemon.h"

struct stoup_rescan_born {
	struct stoup_store_volume *file; /* of the store, not acquired */
	uint32_t store_idx;
	uint32_t place_idx; /* for whoever makes it */
};

struct stoup_rescan_diff {
	struct stoup_rescan_born *born; /* in the order of stores and volumes */
	uint32_t *retired;              /* places */
	uint32_t born_cnt, retired_cnt;
};

/* stores[i] NULL: store i could not be read, its places stay. 0 or -ENOMEM. */
int stoup_rescan_compare(const struct stoup_volume *places, uint32_t place_cnt,
	struct stoup_store *const *stores, uint32_t store_cnt, struct stoup_rescan_diff *ret);
void stoup_rescan_diff_fini(struct stoup_rescan_diff *diff);

#endif
