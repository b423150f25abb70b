/* SPDX-License-Identifier: Apache-2.0 */
/* b9_simdjson_absent.c - what stands for simdjson where this build has no such library. */
#include "bench/b9_peers.h"

#ifndef STOUP_BENCH_SIMDJSON

uint64_t (*const bench_b9_simdjson)(void *b9) = NULL;
uint64_t (*const bench_b9_simdjson_many)(void *b9) = NULL;

const char *bench_simdjson_version(void)
{
	return "";
}

#endif
