/* SPDX-License-Identifier: Apache-2.0 */
/* chunk.h - the stream of an input in large pieces, for readers of binary messages.
 *
 *      buf  [ taken | whole messages | a message's first bytes ]  --slide to the front, read on
 *                   ^ pos, pos_off                              ^ end
 *
 * Invariant: buf[pos .. end) are the next bytes of the stream, and buf[pos] stands at pos_off in it.
 *
 * Concurrency: one thread's.
 */
#ifndef STOUP_PRODUCER_CHUNK_H
#define STOUP_PRODUCER_CHUNK_H

#include "producer/input.h"
#include "producer/sink.h"

struct stoup_chunk {
	struct stoup_input *input;
	uint8_t *buf;
	size_t cap, pos, end;
	uint64_t pos_off;
	int is_eof;
};

/* A chunk of `cap` bytes: the longest message that is to be seen whole. 0 or -ENOMEM with text. */
int stoup_chunk_init(
	struct stoup_chunk *chunk, struct stoup_input *input, size_t cap, struct stoup_error *err);
void stoup_chunk_fini(struct stoup_chunk *chunk);

/* Read on: more bytes are there afterwards, or is_eof is set. With `allow_partial` a packed file that
 * ends too early ends there, with a note to the sink; without, the text says that it may. */
int stoup_chunk_more(struct stoup_chunk *chunk, int allow_partial, const struct stoup_sink *sink,
	struct stoup_error *err);

static inline size_t stoup_chunk_left(const struct stoup_chunk *chunk)
{
	return chunk->end - chunk->pos;
}

static inline const uint8_t *stoup_chunk_bytes(const struct stoup_chunk *chunk)
{
	return chunk->buf + chunk->pos;
}

static inline void stoup_chunk_take(struct stoup_chunk *chunk, size_t len)
{
	chunk->pos += len;
	chunk->pos_off += len;
}

#endif
