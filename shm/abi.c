/* SPDX-License-Identifier: Apache-2.0 */
/* abi.c - the layout fingerprint. */
#include "shm/abi.h"

#include <stddef.h>
#include "shm/catalog.h"
#include "shm/control.h"
#include "shm/page.h"
#include "shm/stoup_types.h"
#include "shm/wire.h"

/* The numbers that two builds must share. Constants and layouts that static asserts pin already are
 * covered by the sizes; offsets are listed where a field could move inside an unchanged size. */
static const uint64_t layout[] = {
	STOUP_WORD_IDX_BITS,
	STOUP_WORD_GEN_BITS,
	STOUP_SLOT_CNT,
	STOUP_OS_PAGE_LEN,
	sizeof(struct stoup_field),
	offsetof(struct stoup_field, off),
	offsetof(struct stoup_field, null_bits),
	sizeof(struct stoup_slot),
	offsetof(struct stoup_slot, seq),
	offsetof(struct stoup_slot, cell_idx),
	offsetof(struct stoup_slot, ahead_cnt),
	offsetof(struct stoup_slot, error),
	offsetof(struct stoup_slot, deadline_ns),
	sizeof(struct stoup_page),
	offsetof(struct stoup_page, attach_no),
	offsetof(struct stoup_page, cell_high),
	offsetof(struct stoup_page, pending),
	offsetof(struct stoup_page, cells),
	sizeof(struct stoup_catalog),
	offsetof(struct stoup_catalog, residency_off),
	sizeof(struct stoup_catalog_schema),
	sizeof(struct stoup_catalog_series),
	sizeof(struct stoup_catalog_block),
	offsetof(struct stoup_catalog_block, transform),
	sizeof(struct stoup_catalog_segment),
	sizeof(struct stoup_control),
	offsetof(struct stoup_control, lease_bytes_cap),
	offsetof(struct stoup_control, counter_off),
	offsetof(struct stoup_control, request_timeout_ns),
	offsetof(struct stoup_control, page_len),
	offsetof(struct stoup_control, request_cap),
	offsetof(struct stoup_control, spin_ns),
	offsetof(struct stoup_control, state),
	offsetof(struct stoup_control, alive),
	offsetof(struct stoup_control, asleep),
	offsetof(struct stoup_control, starving),
	sizeof(struct stoup_control_buffer),
	sizeof(struct stoup_control_consumer),
	sizeof(struct stoup_control_volume),
	offsetof(struct stoup_control_volume, retired_seq),
	sizeof(struct stoup_control_counter),
	sizeof(struct stoup_control_error),
	sizeof(struct stoup_wire_hello),
	sizeof(struct stoup_wire_reply),
	sizeof(struct stoup_wire_volumes),
	sizeof(struct stoup_wire_fork),
	sizeof(struct stoup_wire_file),
};

uint64_t stoup_abi_fingerprint(void)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < sizeof(layout) / sizeof(layout[0]); i++)
		hash = (hash ^ layout[i]) * UINT64_C(0x100000001b3);
	return hash;
}
