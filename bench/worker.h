/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - what B3's driver and its worker program say to each other.
 *
 *      driver --exec--> stoup-bench-worker MODE PATH SERIES EXEC_NS
 *         ^                    |  first record, all records
 *         +--- one line -------+  then it waits for the end of its stdin, so that it can be measured
 *
 *      line: FIRST_NS END_NS RESULT     (ns since EXEC_NS, which is CLOCK_MONOTONIC before the exec)
 *
 * Modes: pool (PATH is a pool's name), stream and resident (PATH: zstd of raw records), mmap (PATH:
 * raw records). SERIES is for pool only.
 */
#ifndef STOUP_BENCH_WORKER_H
#define STOUP_BENCH_WORKER_H

#define BENCH_WORKER_LINE "%llu %llu %llu\n"

#endif
