/* SPDX-License-Identifier: Apache-2.0 */
/* b9_peers.h - other programs' ways to find the messages where `data.T` has a value: parsers of JSON.
 *
 * Both come from Debian's packages and are optional at build time. Each is used in its fastest way: simdjson
 * on demand, with its parser kept, looking for the field in its order and at nothing else.
 */
#ifndef STOUP_BENCH_B9_PEERS_H
#define STOUP_BENCH_B9_PEERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The texts, and the value that is looked for. A text is bytes[off[i] .. off[i + 1]); behind the last one
 * there are 256 bytes more. */
struct bench_b9 {
	const char *bytes;
	const uint64_t *off;
	uint64_t cnt;
	int64_t wanted;
};

/* How many messages have the value. bench_pass functions of a struct bench_b9; NULL where the library is absent. */
extern uint64_t (*const bench_b9_jansson)(void *b9);
extern uint64_t (*const bench_b9_simdjson)(void *b9);      /* message by message */
extern uint64_t (*const bench_b9_simdjson_many)(void *b9); /* its iterate_many, in one thread */

/* Versions for the document; "" where absent. */
const char *bench_jansson_version(void);
const char *bench_simdjson_version(void);

#ifdef __cplusplus
}
#endif

#endif
