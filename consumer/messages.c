/* SPDX-License-Identifier: Apache-2.0 */
/* messages.c - messages of a span: the exported form of what stoup.h inlines, and the search by key. */
#include "consumer/stoup.h"

#include "shm/message.h"

struct stoup_message stoup_message_at(const struct stoup_span *span, uint64_t i)
{
	const uint8_t *entry = (const uint8_t *)span->base + i * STOUP_MESSAGE_STRIDE;
	const struct stoup_message_head *head =
		(const void *)(entry - *(const uint32_t *)(const void *)entry);

	return (struct stoup_message){.key = head->key, .bytes = head + 1, .len = head->len};
}

uint64_t stoup_message_bound(const struct stoup_span *span, int64_t key_ns)
{
	uint64_t low = 0, high = span->record_cnt;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (stoup_message_at(span, mid).key < key_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}
