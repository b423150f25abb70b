/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_list.h - processors as people write them: "2,5-7".
 *
 *      "2,5-7" --parse--> {2, 5, 6, 7} --is each one ours?--> pinned to, in this order
 *              <--text--
 *
 * Concurrency: pure functions, but for the question which processors this process may use.
 */
#ifndef STOUP_PRODUCER_CPU_LIST_H
#define STOUP_PRODUCER_CPU_LIST_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_types.h"

/* Numbers and ranges, separated by commas, each processor once. 0 with *ret_cnt of them in their order; -EINVAL
 * with a text: no such list, more than `cap`, one twice, or one that is not `allowed`.
 * allowed: bit n of word n / 64: this process may use processor n; NULL: ask the kernel. */
int stoup_cpu_list_parse(const char *text, const uint64_t *allowed, size_t allowed_words,
	uint32_t *cpus, uint32_t cap, uint32_t *ret_cnt, struct stoup_error *err);

/* Into a text of dst_cap bytes; what does not fit ends in "...". */
void stoup_cpu_list_text(const uint32_t *cpus, uint32_t cnt, char *dst, size_t dst_cap);

#endif
