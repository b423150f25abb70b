/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - how long a miss took, as its consumer leaves it in the request's slot for the conductor.
 *
 *      conductor: detail = time of the answer -> DONE [M2] -> consumer reads it, and its clock
 *      consumer:  detail = SAMPLE | wait | wake-up         -> conductor takes it (CAS to 0) at the slot's next
 *                                                             request, at its next look, or with the page
 *
 * It is the word that an error's detail goes through, which a grant does not need. A library that knows nothing of it
 * leaves 0 or the time of the answer there: no sample. Whoever writes nonsense spoils a histogram and nothing else.
 *
 *      63       62 .. 25              24 .. 0
 *      SAMPLE | wait, 16 ns a unit  | wake-up, 16 ns a unit; each stops at its highest value
 */
#ifndef STOUP_SHM_SAMPLE_H
#define STOUP_SHM_SAMPLE_H

#include <stdatomic.h>
#include <stdint.h>

#define STOUP_SAMPLE           (UINT64_C(1) << 63)
#define STOUP_SAMPLE_WAKE_BITS 25u
#define STOUP_SAMPLE_WAIT_BITS 38u
#define STOUP_SAMPLE_UNIT_BITS 4u

static inline uint64_t stoup_sample_part(uint64_t ns, uint32_t bits)
{
	uint64_t units = ns >> STOUP_SAMPLE_UNIT_BITS, high = (UINT64_C(1) << bits) - 1;

	return units < high ? units : high;
}

static inline uint64_t stoup_sample_make(uint64_t wait_ns, uint64_t wake_ns)
{
	return STOUP_SAMPLE |
	       stoup_sample_part(wait_ns, STOUP_SAMPLE_WAIT_BITS) << STOUP_SAMPLE_WAKE_BITS |
	       stoup_sample_part(wake_ns, STOUP_SAMPLE_WAKE_BITS);
}

static inline uint64_t stoup_sample_wait_ns(uint64_t sample)
{
	return (sample & ~STOUP_SAMPLE) >> STOUP_SAMPLE_WAKE_BITS << STOUP_SAMPLE_UNIT_BITS;
}

static inline uint64_t stoup_sample_wake_ns(uint64_t sample)
{
	return (sample & ((UINT64_C(1) << STOUP_SAMPLE_WAKE_BITS) - 1)) << STOUP_SAMPLE_UNIT_BITS;
}

/* Take a sample out of a slot's detail: 0 where there is none. Relaxed: it orders nothing. */
static inline uint64_t stoup_sample_take(_Atomic uint64_t *detail)
{
	uint64_t found = atomic_load_explicit(detail, memory_order_relaxed);

	if (!(found & STOUP_SAMPLE) || !atomic_compare_exchange_strong_explicit(detail, &found, 0,
					       memory_order_relaxed, memory_order_relaxed))
		return 0;
	return found;
}

#endif
