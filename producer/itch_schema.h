/* SPDX-License-Identifier: Apache-2.0 */
/* itch_schema.h - the records that ITCH 5.0 messages become: their schemas, and the plain conversion.
 *
 *      A F E C X D U     -> itch-mbo         order events with the order they are about \ built in:
 *      E C P Q B         -> itch-trade       all that trades, and what was broken      / stoup_records.h
 *      all other types   -> one schema each  the message's own fields: a table, no code
 *
 * Invariant: a record has every field of its message exactly: integers are the message's (prices with 4 or
 * 8 decimals), texts without the blanks at their ends. seq is the message's number in its file.
 *
 * Concurrency: schemas are immutable once made.
 */
#ifndef STOUP_PRODUCER_ITCH_SCHEMA_H
#define STOUP_PRODUCER_ITCH_SCHEMA_H

#include "producer/schema_file.h"
#include "shm/stoup_records.h"

#define STOUP_ITCH_RECORD_CAP 128u /* bytes of any of these records */

/* A field of a message that is taken over as it is. */
struct stoup_itch_column {
	const char *name;
	uint8_t off, len;
	char how; /* 't' text, 'u' integer, 'p' price of 4 decimals, 'P' of 8 */
};

/* A message type whose record is its own fields. */
struct stoup_itch_kind {
	char type;
	int is_of_stock;    /* a series for each stock; else one for the market */
	const char *schema; /* name */
	const struct stoup_itch_column *columns;
	uint32_t column_cnt;
};

extern const struct stoup_itch_kind stoup_itch_kinds[];
extern const uint32_t stoup_itch_kind_cnt;
#define STOUP_ITCH_KIND_CAP 16u

/* Make the schema of a kind. 0 or -ENOMEM. */
int stoup_itch_kind_schema(const struct stoup_itch_kind *kind, struct stoup_schema_draft **ret,
	struct stoup_error *err);

/* The record of a whole message of that kind, in record[STOUP_ITCH_RECORD_CAP]. */
void stoup_itch_kind_record(const struct stoup_itch_kind *kind, const struct stoup_schema *schema,
	const uint8_t *message, int64_t ts, uint64_t seq, uint8_t *record);

/* A text of the feed without the blanks at its end, NUL-padded. */
void stoup_itch_text(const uint8_t *bytes, size_t len, char *dst);

/* Big-endian integers. */
static inline uint16_t stoup_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t stoup_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t stoup_be48(const uint8_t *p)
{
	return (uint64_t)stoup_be16(p) << 32 | stoup_be32(p + 2);
}

static inline uint64_t stoup_be64(const uint8_t *p)
{
	return (uint64_t)stoup_be32(p) << 32 | stoup_be32(p + 4);
}

#endif
