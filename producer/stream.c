/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - positions of scans, guessed from use. */
#include "producer/stream.h"

#include <string.h>

void stoup_streams_init(struct stoup_stream streams[STOUP_STREAM_CNT])
{
	memset(streams, 0, STOUP_STREAM_CNT * sizeof(streams[0]));
}

/* Distance in blocks that a stream has to go to a block of its volume; negative behind it. */
static int64_t apart(const struct stoup_stream *s, uint32_t block_idx)
{
	return ((int64_t)block_idx - (int64_t)s->block_idx) * s->step;
}

static int near(const struct stoup_stream *s, uint32_t volume_idx, uint32_t block_idx)
{
	int64_t d;

	if (!s->live || s->volume_idx != volume_idx)
		return 0;
	d = apart(s, block_idx);
	return d >= -(int64_t)STOUP_STREAM_NEAR && d <= (int64_t)STOUP_STREAM_NEAR;
}

/* step 0: not known. */
static void note(struct stoup_stream streams[STOUP_STREAM_CNT], uint32_t volume_idx,
	uint32_t block_idx, int32_t step, uint64_t now_ns)
{
	struct stoup_stream *oldest = &streams[0];

	for (uint32_t i = 0; i < STOUP_STREAM_CNT; i++) {
		struct stoup_stream *s = &streams[i];

		if (!near(s, volume_idx, block_idx)) {
			if (s->moved_ns < oldest->moved_ns)
				oldest = s;
			continue;
		}
		s->moved_ns = now_ns;
		if (apart(s, block_idx) > 0 || (step != 0 && step != s->step))
			s->block_idx = block_idx;
		if (step != 0)
			s->step = step;
		return;
	}
	*oldest = (struct stoup_stream){.volume_idx = volume_idx,
		.block_idx = block_idx,
		.live = 1,
		.step = step != 0 ? step : 1,
		.moved_ns = now_ns};
}

void stoup_streams_note(struct stoup_stream streams[STOUP_STREAM_CNT], uint32_t volume_idx,
	uint32_t block_idx, uint64_t now_ns)
{
	note(streams, volume_idx, block_idx, 0, now_ns);
}

void stoup_streams_ask(struct stoup_stream streams[STOUP_STREAM_CNT], uint32_t volume_idx,
	uint32_t block_idx, int32_t step, uint64_t now_ns)
{
	note(streams, volume_idx, block_idx, step, now_ns);
}

uint64_t stoup_streams_distance(const struct stoup_stream streams[STOUP_STREAM_CNT],
	uint32_t volume_idx, uint32_t block_idx, uint64_t now_ns)
{
	uint64_t best = STOUP_STREAM_FAR;

	for (uint32_t i = 0; i < STOUP_STREAM_CNT; i++) {
		const struct stoup_stream *s = &streams[i];
		int64_t d;

		if (!s->live || s->volume_idx != volume_idx ||
			now_ns - s->moved_ns > STOUP_STREAM_STALE_NS)
			continue;
		d = apart(s, block_idx);
		if (d >= 0 && (uint64_t)d < best)
			best = (uint64_t)d;
	}
	return best;
}
