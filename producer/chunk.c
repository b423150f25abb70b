/* SPDX-License-Identifier: Apache-2.0 */
/* chunk.c - see chunk.h. */
#include "producer/chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stoup_chunk_init(
	struct stoup_chunk *chunk, struct stoup_input *input, size_t cap, struct stoup_error *err)
{
	*chunk = (struct stoup_chunk){
		.input = input, .cap = cap, .pos_off = stoup_input_stream_off(input)};
	chunk->buf = malloc(cap);
	if (!chunk->buf)
		return stoup_error_set(
			err, -ENOMEM, "no memory to read %s", stoup_input_name(input));
	return 0;
}

void stoup_chunk_fini(struct stoup_chunk *chunk)
{
	free(chunk->buf);
	chunk->buf = NULL;
}

int stoup_chunk_more(struct stoup_chunk *chunk, int allow_partial, const struct stoup_sink *sink,
	struct stoup_error *err)
{
	struct stoup_error why = {0};
	int64_t got;

	memmove(chunk->buf, chunk->buf + chunk->pos, chunk->end - chunk->pos);
	chunk->end -= chunk->pos;
	chunk->pos = 0;
	got = stoup_input_read(
		chunk->input, chunk->buf + chunk->end, chunk->cap - chunk->end, &why);
	if (got >= 0) {
		chunk->end += (size_t)got;
		chunk->is_eof = got == 0;
		return 0;
	}
	if (why.code != -ENODATA)
		return stoup_error_set(err, why.code, "%s", why.text);
	if (!allow_partial)
		return stoup_error_set(
			err, why.code, "%s; --allow-partial imports what is before it", why.text);
	stoup_sink_note(sink, "%s; imported as far as it goes", why.text);
	chunk->is_eof = 1;
	return 0;
}
