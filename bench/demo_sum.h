/* SPDX-License-Identifier: Apache-2.0 */
/* demo_sum.h - what each worker of the demo computes, the same code in every mode.
 *
 *      record --> records + 1, price + price, size + size, check + sum of (8-byte word i) * odd(i)
 *
 * The sums are modulo 2^64 and do not depend on the order of the records, so that a worker that
 * walks a file and one that walks it series by series must end with the same numbers. The check
 * covers every byte of every record.
 *
 * A worker prints its result as one line on stdout, then waits for the end of its stdin: while all
 * workers wait, their memory is measured.
 */
#ifndef STOUP_BENCH_DEMO_SUM_H
#define STOUP_BENCH_DEMO_SUM_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct demo_sum {
	uint64_t records, price, size, check;
};

#define DEMO_NO_FIELD UINT32_MAX

/* Where a record has its price (64 bits) and its size. */
struct demo_layout {
	uint32_t price_off; /* DEMO_NO_FIELD: none */
	uint32_t size_off;  /* DEMO_NO_FIELD: none */
	uint32_t size_len;  /* bytes: 4 or 8 */
};

static inline uint64_t demo_load(const uint8_t *src, size_t len)
{
	uint64_t value = 0;

	memcpy(&value, src, len);
	return value;
}

/* Records are multiples of 8 bytes, or of 4 (a last half word). */
static inline uint64_t demo_check(const uint8_t *record, size_t len)
{
	uint64_t check = 0, factor = 0x9e3779b97f4a7c15u;
	size_t at = 0;

	for (; at + 8 <= len; at += 8, factor += 0xd1b54a32d192ed02u)
		check += demo_load(record + at, 8) * factor;
	if (at < len)
		check += demo_load(record + at, len - at) * factor;
	return check;
}

static inline void demo_add(struct demo_sum *sum, const uint8_t *record, size_t len,
	uint32_t price_off, uint32_t size_off, uint32_t size_len)
{
	sum->records++;
	sum->check += demo_check(record, len);
	if (price_off != DEMO_NO_FIELD)
		sum->price += demo_load(record + price_off, 8);
	if (size_off != DEMO_NO_FIELD)
		sum->size += size_len == 8 ? demo_load(record + size_off, 8)
		                           : demo_load(record + size_off, 4);
}

/* MBO, the demo's own data: all numbers are constants, so the loop is as one would write it. */
static inline void demo_add_mbo(struct demo_sum *sum, const uint8_t *record)
{
	demo_add(sum, record, 56, 24, 32, 4);
}

static inline int demo_is_mbo(size_t len, const struct demo_layout *layout)
{
	return len == 56 && layout->price_off == 24 && layout->size_off == 32 &&
	       layout->size_len == 4;
}

/* Print the result, then wait until stdin ends. Returns the exit status. */
static inline int demo_finish(const struct demo_sum *sum)
{
	char byte;

	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", sum->records, sum->price,
		sum->size, sum->check);
	if (fflush(stdout))
		return 1;
	while (read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	return 0;
}

#endif
