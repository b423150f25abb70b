/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_lanes.h - several files read beside each other, and put one after the other.
 *
 *      file 3 --reader thread--> lane 3 --+
 *      file 4 --reader thread--> lane 4 --+--replay in the order of the files--> sink
 *      file 5    (waits for a lane)
 *
 * Invariant: the sink sees what it would see if one thread read the files in their order; the error that
 * is returned is that of the first file that has one.
 *
 * Concurrency: one call; its threads have ended when it returns.
 *
 * Limits: two lanes for each reader, STOUP_LANES_LEN bytes in all lanes together (each at least 512 KiB).
 */
#ifndef STOUP_PRODUCER_INGEST_LANES_H
#define STOUP_PRODUCER_INGEST_LANES_H

#include <stddef.h>
#include "producer/sink.h"

#define STOUP_LANES_LEN (32u << 20)

struct stoup_lanes {
	size_t file_cnt;
	uint32_t threads; /* readers, at least 1 */
	/* Read one file into a sink: 0, or a negative errno with text. Called by several threads. */
	int (*read)(
		void *arg, size_t file_idx, const struct stoup_sink *sink, struct stoup_error *err);
	void *arg;
};

/* 0, or a negative errno with text: what `read` or the sink gave, -ENOMEM, or -EAGAIN where no thread can
 * be started. */
int stoup_lanes_run(
	const struct stoup_lanes *lanes, const struct stoup_sink *sink, struct stoup_error *err);

#endif
