/* SPDX-License-Identifier: Apache-2.0 */
/* b5_wake.h - what two wake-ups between two sleeping processes cost on this machine.
 *
 * Concurrency: starts a process of its own and waits for its end.
 */
#ifndef STOUP_BENCH_B5_WAKE_H
#define STOUP_BENCH_B5_WAKE_H

#include <stdint.h>

/* Measure, resting `rest_us` before each round so that both sides sleep, and print the latency. */
void bench_wake_floor(uint32_t rest_us);

#endif
