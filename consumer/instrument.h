/* SPDX-License-Identifier: Apache-2.0 */
/* instrument.h - the members of struct stoup_instrument as a table: where each comes from, and how it is shown.
 *
 *      field of the record, by name  --->  member at `off`, of `len` bytes
 *
 * Concurrency: constant.
 */
#ifndef STOUP_CONSUMER_INSTRUMENT_H
#define STOUP_CONSUMER_INSTRUMENT_H

#include <stddef.h>
#include <stdint.h>
#include "consumer/stoup.h"

enum stoup_member_kind {
	STOUP_MEMBER_INT,   /* signed, as wide as it is */
	STOUP_MEMBER_UINT,  /* unsigned */
	STOUP_MEMBER_PRICE, /* of 1e-9 */
	STOUP_MEMBER_TIME,
	STOUP_MEMBER_CHAR,
	STOUP_MEMBER_TEXT
};

struct stoup_member {
	const char *name; /* of the record's field, and of the member */
	uint32_t off, len;
	enum stoup_member_kind kind;
	uint64_t
		undefined; /* its bits where a value is undefined, or the record has no such field */
	int has_undefined;
};

/* All but struct_len, key and version; ends with a NULL name. */
extern const struct stoup_member stoup_members[];

#endif
