/* SPDX-License-Identifier: Apache-2.0 */
/* csv_parallel.h - one text read by several threads, its records put in their order.
 *
 *      input --cut--> piece 0 --> table 0 ---------------> lane 0 --+
 *                     piece 1 --> worker: table 1 -------> lane 1 --+--replay--> sink
 *                     piece 2 --> worker: table 2 -------> lane 2 --+
 *
 * The first piece is read by the caller alone: its first row binds the plan, which all tables share.
 *
 * Invariant: the sink sees what it would see if one thread read the text from its beginning, and the
 * error is that of the first row that has one.
 *
 * Concurrency: one call; its threads have ended when it returns. A text of one piece needs none.
 *
 * Limits: two pieces for each worker are in memory, with the records that come out of them.
 */
#ifndef STOUP_PRODUCER_CSV_PARALLEL_H
#define STOUP_PRODUCER_CSV_PARALLEL_H

#include "producer/csv_table.h"
#include "producer/sink.h"

struct stoup_csv_parallel {
	stoup_csv_read_fn *read;
	void *source;
	const char *name; /* the file's */
	const struct stoup_csv_options *options;
	uint32_t threads; /* workers, at least 1 */
	/* Put what is left of a table into a sink: 0, or a negative errno with text. */
	int (*put)(const void *arg, struct stoup_csv_table *table, const struct stoup_sink *sink,
		struct stoup_error *err);
	const void *arg;
};

/* 0, or a negative errno with text. */
int stoup_csv_parallel(const struct stoup_csv_parallel *what, const struct stoup_sink *sink,
	struct stoup_error *err);

#endif
