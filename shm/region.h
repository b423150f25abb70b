/* SPDX-License-Identifier: Apache-2.0 */
/* region.h - create, reserve, touch and map the shared memory objects of a pool.
 *
 *      create (named or memfd) --reserve--> every page there --collapse--> 2 MiB pages --touch--> pass fd
 *
 * Invariant: a region that was created has all its pages: shortage is an error here, never a SIGBUS
 * later. A region is never resized or punched while it lives.
 *
 * If the process dies: a POSIX object that is still named stays; the next daemon of the name unlinks
 * all names with its prefix under the lock. Unnamed ones go with their last mapping and descriptor.
 */
#ifndef STOUP_SHM_REGION_H
#define STOUP_SHM_REGION_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

#define STOUP_BACKING_POSIX   0u
#define STOUP_BACKING_MEMFD   1u
#define STOUP_BACKING_HUGETLB 2u

struct stoup_region {
	void *base;
	size_t len;           /* bytes, whole pages */
	int fd;               /* read-write; -1 in consumers */
	int ro_fd;            /* read-only descriptor to pass on; -1 when none was asked for */
	size_t huge_len;      /* created: bytes in 2 MiB pages */
	char huge_reason[64]; /* created: why not all; else empty */
};

/* Create an object of len bytes, reserve every page and map it read-write. `name` ("/...") names it
 * with `mode` (umask ignored); memfd and hugetlb use it as a label. Anything of that name is replaced:
 * call under the pool's lock. With unlink_now the name is gone on return: nothing can leak it.
 * With want_ro a read-only descriptor is made. memfd: sealed against resizing, and against new
 * writable mappings. threads > 1 touches in parallel.
 * 0; -ENOSPC with needed, available and the setting that mends it; other negative errnos. */
int stoup_region_create(struct stoup_region *region, uint32_t backing, const char *name,
	uint32_t mode, size_t len, int unlink_now, int want_ro, uint32_t threads,
	struct stoup_error *err);

/* Bytes that an object of this backing can take now; UINT64_MAX where nothing but memory itself limits it. */
uint64_t stoup_region_available(uint32_t backing);

/* A small page that its consumer may write: memfd of len bytes, sealed against resizing. */
int stoup_region_create_page(
	struct stoup_region *region, const char *label, size_t len, struct stoup_error *err);

/* Map a received descriptor: its real length must be at least min_len and is returned. `writable`
 * maps read-write. MADV_DONTDUMP always; dont_fork: MADV_DONTFORK. 0 or negative errno with text. */
int stoup_region_map(int fd, size_t min_len, int writable, int dont_fork, struct stoup_region *ret,
	struct stoup_error *err);

/* Unmap and close. Accepts a zeroed region with fds -1. Does not unlink. */
void stoup_region_fini(struct stoup_region *region);

/* Remove all POSIX names of a pool: those that begin with "stoup.UID.POOL." Returns how many. */
int stoup_region_unlink_stale(uint32_t uid, const char *pool);

#endif
