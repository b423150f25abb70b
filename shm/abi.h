/* SPDX-License-Identifier: Apache-2.0 */
/* abi.h - versions, limits and words that two processes of one pool must agree on.
 *
 *      63     62      61                          22 21                     0
 *      +------+------+------------------------------+-----------------------+
 *      | IDLE |TICKET| generation (40 bits, never 0)| buffer index (22 bits)|   lease word W
 *      +------+------+------------------------------+-----------------------+
 *      |  0   |  1   | sequence of the request      | slot                  |   ticket
 *      +------+------+------------------------------+-----------------------+
 *
 * Residency words are W or 0; lease cells are W, W|IDLE, a ticket or 0. Two tag bits come out of the
 * index because a cell must tell all four apart in the one word that is exchanged.
 *
 * Concurrency: constants and pure functions.
 *
 * Limits: 22 bits of index are 4 M buffers, 64 GiB of pool in extents of 16 KiB; a generation of 40
 * bits comes round after 290 years of a thousand evictions a second of the same buffer.
 */
#ifndef STOUP_SHM_ABI_H
#define STOUP_SHM_ABI_H

#include <stdatomic.h>
#include <stdint.h>

#define STOUP_ABI_MAJOR 1u /* another major: not readable */
#define STOUP_ABI_MINOR                                                                            \
	3u /* a higher minor only adds: 1 zone maps in catalogs, 2 histograms, holders, 3 pins, quotas */

#define STOUP_CONTROL_MAGIC UINT64_C(0x4c43505554533031) /* 1 0 S T U P C L */
#define STOUP_CATALOG_MAGIC UINT64_C(0x54435055544f5331)
#define STOUP_PAGE_MAGIC    UINT64_C(0x45475055544f5331)
#define STOUP_HELLO_MAGIC   UINT64_C(0x4f4c5055544f5331)

#define STOUP_OS_PAGE_LEN 4096u /* alignment of extents and objects; mmap granularity */
#define STOUP_APART_LEN   128u  /* different writers: adjacent-line prefetch pairs two lines */

#define STOUP_CONSUMER_CAP 256u  /* consumers of one pool (upper bound of --consumers) */
#define STOUP_CELL_CAP     1024u /* lease cells of one consumer */
#define STOUP_SLOT_CNT     64u   /* request slots: one bit each in `pending` */
#define STOUP_VOLUME_CAP   4096u /* volumes that one daemon serves */
#define STOUP_ERROR_CAP    64u   /* distinct errors kept in the control object */
#define STOUP_AHEAD_CAP    64u   /* blocks that one read-ahead request may name */

#define STOUP_PIN_CAP      256u /* pins of one pool */
#define STOUP_PIN_NAME_CAP 512u /* bytes of a series name, with the NUL */
#define STOUP_QUOTA_CAP    16u  /* --quota options */

#define STOUP_WORD_IDX_BITS 22u
#define STOUP_WORD_IDX_MASK ((UINT64_C(1) << STOUP_WORD_IDX_BITS) - 1)
#define STOUP_WORD_GEN_BITS 40u
#define STOUP_WORD_GEN_MASK ((UINT64_C(1) << STOUP_WORD_GEN_BITS) - 1)
#define STOUP_WORD_TICKET   (UINT64_C(1) << 62)
#define STOUP_WORD_IDLE     (UINT64_C(1) << 63)
#define STOUP_BUFFER_CAP    (1u << STOUP_WORD_IDX_BITS)

static inline uint64_t stoup_word(uint64_t gen, uint32_t buffer_idx)
{
	return (gen & STOUP_WORD_GEN_MASK) << STOUP_WORD_IDX_BITS |
	       (buffer_idx & STOUP_WORD_IDX_MASK);
}

static inline uint32_t stoup_word_idx(uint64_t word)
{
	return (uint32_t)(word & STOUP_WORD_IDX_MASK);
}

static inline uint64_t stoup_word_gen(uint64_t word)
{
	return word >> STOUP_WORD_IDX_BITS & STOUP_WORD_GEN_MASK;
}

static inline uint64_t stoup_ticket(uint32_t slot_idx, uint64_t seq)
{
	return STOUP_WORD_TICKET | stoup_word(seq, slot_idx);
}

/* The generation after `gen`: never 0, so that no word is ever 0. */
static inline uint64_t stoup_gen_next(uint64_t gen)
{
	gen = (gen + 1) & STOUP_WORD_GEN_MASK;
	return gen ? gen : 1;
}

/* Hash of the size and every offset of every shared structure: two builds that would disagree about
 * a byte refuse each other at attach. Thread-safe. */
uint64_t stoup_abi_fingerprint(void);

_Static_assert(STOUP_WORD_IDX_BITS + STOUP_WORD_GEN_BITS == 62, "two tag bits remain");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
	"shared words must be lock-free: a lock would live in one process only");

#endif
