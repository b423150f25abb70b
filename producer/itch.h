/* SPDX-License-Identifier: Apache-2.0 */
/* itch.h - Nasdaq TotalView-ITCH 5.0, message by message: from bytes to records in a sink.
 *
 *      message --type, length, time checked--> stock wanted? --A F E C X D U--> open orders --> itch-mbo
 *                                                             --E C P Q B--------------------> itch-trade
 *                                                             --all others-------------------> one schema each
 *                        '--raw----------------------------------------------> itch50 (messages)
 *
 * Names of series: DATASET/STOCK/schema for orders, trades and imbalances, DATASET/MARKET/schema for all
 * else (records that name their stock themselves). MARKET, since ALL is a stock.
 *
 * Invariant: each record of an order event is what the order was before and is after it; an event that no
 * open order can have had is an error, never a guess.
 *
 * Concurrency: one decoder is one thread's.
 *
 * Limits: 65,536 stock locates (the format's); open orders as in itch_orders.h. Memory: 5 MiB and the
 * orders, whatever the length of the stream.
 */
#ifndef STOUP_PRODUCER_ITCH_H
#define STOUP_PRODUCER_ITCH_H

#include "producer/intake.h"
#include "producer/itch_orders.h"
#include "producer/sink.h"

#define STOUP_ITCH_HEAD_LEN    11u  /* type, locate, tracking, time */
#define STOUP_ITCH_UNKNOWN_CAP 512u /* a message of an unknown type that is longer is no message */

#define STOUP_ITCH_RAW_NO   0
#define STOUP_ITCH_RAW_ALSO 1
#define STOUP_ITCH_RAW_ONLY 2

/* Bytes of a message of that type, 0: unknown. */
uint32_t stoup_itch_len(uint8_t type);

/* How messages follow each other. */
enum stoup_itch_framing {
	STOUP_ITCH_NONE,   /* these bytes are no ITCH 5.0 */
	STOUP_ITCH_FRAMED, /* BinaryFILE: u16 length, big-endian, before each; 0: end of session */
	STOUP_ITCH_BARE,   /* one after the other: the type tells the length */
	STOUP_ITCH_LITTLE, /* a length in the wrong byte order: refused */
	STOUP_ITCH_SOUP,   /* SoupBinTCP packets: refused */
};

/* What do the first bytes of a stream look like? `*ret_cnt`: consistent messages from the
 * front, before the first that is not, or the end of the bytes. */
enum stoup_itch_framing stoup_itch_probe(const uint8_t *bytes, size_t len, uint32_t *ret_cnt);

struct stoup_itch_setup {
	const char *file;                  /* for texts */
	const char *dataset;               /* first part of the series' names */
	const char *series;                /* of the raw messages; NULL: DATASET/MARKET/itch50 */
	const struct stoup_intake *filter; /* symbols; NULL: all */
	int64_t midnight_ns;               /* of the day, in UTC */
	int64_t day_len_ns;
	int raw;         /* STOUP_ITCH_RAW_* */
	int allow_steps; /* times that step back are counted, not refused */
	int allow_partial; /* of a stream that begins late: events of orders never seen are left out */
	size_t order_cap; /* 0: STOUP_ITCH_ORDER_CAP */
};

struct stoup_itch;

/* Texts of `setup` must outlive the decoder. 0, -ENOMEM. */
int stoup_itch_create(const struct stoup_sink *sink, const struct stoup_itch_setup *setup,
	struct stoup_itch **ret, struct stoup_error *err);
void stoup_itch_destroy(struct stoup_itch *itch);

/* Take one message, without its frame; `off` is that of its first byte in the stream. 0, or a negative
 * errno with a text that names file, offset, type and reference: -EBADMSG, -EILSEQ for a step back, -E2BIG
 * for too many open orders, or what the sink gives. */
int stoup_itch_message(struct stoup_itch *itch, const uint8_t *bytes, uint32_t len, uint64_t off,
	struct stoup_error *err);

/* A message that will come soon: get its order into the cache. `bytes` has 19 at least. */
void stoup_itch_prefetch(const struct stoup_itch *itch, const uint8_t *bytes);

/* Tell the user what was left out. `is_ended`: an end of the session was seen. */
void stoup_itch_finish(const struct stoup_itch *itch, int is_ended);

/* Messages taken, and orders open now. */
uint64_t stoup_itch_message_cnt(const struct stoup_itch *itch);
size_t stoup_itch_order_cnt(const struct stoup_itch *itch);

#endif
