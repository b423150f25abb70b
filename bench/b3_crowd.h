/* SPDX-License-Identifier: Apache-2.0 */
/* b3_crowd.h - many workers at once, measured while all of them live.
 *
 *      start 1..n (some apart in time) --> each writes its line --> memory of all --> stdin ends
 *
 * Invariant: all workers of a crowd came to the same result, or the run ends with an error.
 */
#ifndef STOUP_BENCH_B3_CROWD_H
#define STOUP_BENCH_B3_CROWD_H

#include <stdint.h>
#include <sys/types.h>

#define BENCH_CROWD_CAP 64u

struct bench_memory { /* KiB, from smaps and status */
	uint64_t pss, private, pte;
	uint64_t objects; /* the part of pss that is of shared-memory objects */
};

struct bench_crowd {
	const char *mode, *path, *series; /* worker.h */
	uint32_t cnt;
	uint32_t apart_us; /* between the starts of two workers */
	pid_t daemon;      /* counted in, where there is one */
	/* results */
	struct bench_memory workers, daemon_memory;
	uint64_t wall_ns, cpu_ns;
	uint64_t first_ns[BENCH_CROWD_CAP]; /* from exec to the first record */
	uint64_t result;
};

void bench_crowd_run(struct bench_crowd *crowd);

/* Memory of one process. */
struct bench_memory bench_memory_of(pid_t pid);

/* Bytes that processes may still take: of the machine and of the control group. */
uint64_t bench_memory_free(void);

#endif
