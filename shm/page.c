/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - format and verify a consumer page. */
#include "shm/page.h"

#include <errno.h>
#include <string.h>

void stoup_page_format(struct stoup_page *page, const uint8_t instance[16], uint64_t attach_no,
	uint32_t consumer_idx, uint32_t cell_cap)
{
	page->abi_major = STOUP_ABI_MAJOR;
	page->abi_minor = STOUP_ABI_MINOR;
	page->page_len = stoup_page_footprint(cell_cap);
	memcpy(page->instance, instance, sizeof(page->instance));
	page->attach_no = attach_no;
	page->consumer_idx = consumer_idx;
	page->slot_cnt = STOUP_SLOT_CNT;
	page->cell_cap = cell_cap;
	atomic_store_explicit(&page->state, STOUP_PAGE_ATTACHED, memory_order_relaxed);
	/* Nobody else has the descriptor yet: passing it orders all of this. */
	page->magic = STOUP_PAGE_MAGIC;
}

int stoup_page_verify(const struct stoup_page *page, size_t map_len, const uint8_t instance[16],
	uint64_t attach_no)
{
	if (map_len < sizeof(*page) || page->magic != STOUP_PAGE_MAGIC ||
		page->abi_major != STOUP_ABI_MAJOR || page->slot_cnt != STOUP_SLOT_CNT)
		return -EPROTO;
	if (page->cell_cap == 0 || page->cell_cap > STOUP_CELL_CAP ||
		stoup_page_footprint(page->cell_cap) > map_len)
		return -EPROTO;
	if (page->attach_no != attach_no ||
		memcmp(page->instance, instance, sizeof(page->instance)) != 0)
		return -EPROTO;
	return 0;
}
