/* SPDX-License-Identifier: Apache-2.0 */
/* json_number.h - one number of JSON to the shortest form of a document that has its exact value.
 *
 *      100          i32
 *      1723161256299   i64
 *      18446744073709551615   u64
 *      -0, 1.5, 1e5    double: at most 15 digits, or 17 of which the shortest printing gives the same
 *      all else        the decimal's text
 *
 * Concurrency: a pure function. The rule is in docs/document-format.md.
 */
#ifndef STOUP_PRODUCER_JSON_NUMBER_H
#define STOUP_PRODUCER_JSON_NUMBER_H

#include <stddef.h>
#include <stdint.h>
#include "shm/doc_read.h"

/* Read the number that text[0..len) begins with, and write its value, tag and payload, to `*out`, which
 * is moved behind it; it has room for three times the number's bytes, and 16 more. Returns the number's
 * length; -EBADMSG with what is wrong, and at which byte. */
int64_t stoup_json_number(
	const char *text, size_t len, uint8_t **out, size_t *ret_off, const char **ret_what);

#endif
