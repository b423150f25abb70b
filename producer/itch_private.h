/* SPDX-License-Identifier: Apache-2.0 */
/* itch_private.h - what the parts of the ITCH decoder share. */
#ifndef STOUP_PRODUCER_ITCH_PRIVATE_H
#define STOUP_PRODUCER_ITCH_PRIVATE_H

#include "producer/itch.h"
#include "producer/itch_schema.h"

/* Series of a stock, in this order. */
enum {
	STOUP_ITCH_MBO,
	STOUP_ITCH_TRADE,
	STOUP_ITCH_IMBALANCE,
	STOUP_ITCH_STOCK_SERIES_CNT,
};

#define STOUP_ITCH_UNKNOWN  0u
#define STOUP_ITCH_WANTED   1u
#define STOUP_ITCH_UNWANTED 2u

struct stoup_itch_stock {
	uint8_t name[8]; /* as sent, with blanks */
	uint8_t state;
	uint8_t zero[3];
	uint32_t series[STOUP_ITCH_STOCK_SERIES_CNT]; /* index + 1; 0: not opened */
};

struct stoup_itch {
	struct stoup_sink sink;
	struct stoup_itch_setup setup;
	struct stoup_itch_orders orders;
	struct stoup_itch_stock *stocks; /* by locate */
	const struct stoup_schema *mbo, *trade;
	struct stoup_schema_draft *kinds[STOUP_ITCH_KIND_CAP];
	uint32_t market_series[STOUP_ITCH_KIND_CAP]; /* index + 1 */
	uint8_t kind_of[256];                        /* index + 1 into the kinds */
	uint32_t raw_series;                         /* index + 1 */
	char dataset[STOUP_SERIES_NAME_CAP / 2];     /* escaped */
	uint64_t seq;
	uint64_t ts;                     /* of the last message, ns since midnight */
	uint64_t step_cnt, step_off;     /* steps back, and the first one */
	uint64_t orphan_cnt, orphan_off; /* events of orders never seen */
	uint64_t orphan_ref;
	uint64_t unknown_cnt, unknown_off; /* messages of unknown types */
	uint64_t late_cnt;                 /* stocks that no directory message named */
	uint64_t wanted_cnt, stock_cnt;
	uint8_t unknown_type;
	int is_ended; /* the feed said that no more messages come */
};

/* The message at hand. */
struct stoup_itch_at {
	const uint8_t *bytes;
	uint64_t off;
	int64_t key;
	uint16_t locate, tracking;
	struct stoup_itch_stock *stock;
};

/* An error at a message: "FILE: the message at offset N (type 'X'): TEXT". Returns `code`. */
int stoup_itch_bad(const struct stoup_itch *itch, const struct stoup_itch_at *at, int code,
	struct stoup_error *err, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The index of a series of the message's stock, opened when first wanted. */
int64_t stoup_itch_stock_series(struct stoup_itch *itch, const struct stoup_itch_at *at,
	unsigned which, const struct stoup_schema *schema, struct stoup_error *err);

/* Put a record of the message at hand. */
int stoup_itch_put(struct stoup_itch *itch, const struct stoup_itch_at *at, uint32_t series_idx,
	const void *record, struct stoup_error *err);

/* itch_events.c: messages of orders and trades. */
int stoup_itch_event(
	struct stoup_itch *itch, const struct stoup_itch_at *at, struct stoup_error *err);

#endif
