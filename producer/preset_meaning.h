/* SPDX-License-Identifier: Apache-2.0 */
/* preset_meaning.h - what the path of a feed's file says that its bytes do not.
 *
 *      path --patterns--> symbol, exchange, day, length of bars, kind --but for what options or columns say--> text
 *
 * Invariant: two files with the same bytes and options that would be stored differently have different
 * texts.
 *
 * Concurrency: plain functions.
 */
#ifndef STOUP_PRODUCER_PRESET_MEANING_H
#define STOUP_PRODUCER_PRESET_MEANING_H

#include <stddef.h>
#include "producer/importer.h"

/* Print what the path says into dst[cap]: 1; 0: nothing. Of a LOBSTER book the messages beside it are read,
 * since its times are theirs. */
int stoup_preset_meaning(
	const struct stoup_ingest_options *options, const char *path, char *dst, size_t cap);

#endif
