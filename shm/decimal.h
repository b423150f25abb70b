/* SPDX-License-Identifier: Apache-2.0 */
/* decimal.h - decimal texts to integers of a fixed scale, exactly.
 *
 *      "1.12170"  at exp10 -9  ->  1121700000        "1.5e-8" at exp10 -9 -> 15
 *      "1.00000000010"         ->  -EDOM: ten decimals, the last one not zero, and room for nine
 *
 * Invariant: the result times 10^exp10 is the text's value, or the call fails; no double is
 * involved. Grammar: [+-] digits [. digits] [e|E [+-] digits], with at least one digit before the
 * exponent; no blanks, no separators, no hexadecimal, no "inf" or "nan".
 *
 * Concurrency: pure functions. Printing is in shm/format.h.
 */
#ifndef STOUP_DECIMAL_H
#define STOUP_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

/* Read text[0..len) as integer * 10^exp10, exp10 from -18 to 18. 0; -EINVAL for a text that is no
 * decimal, -EDOM for digits below 10^exp10 other than zeros, -ERANGE for a value beyond the type
 * (for u64: any negative one but "-0"). `*ret` is untouched on failure. */
int stoup_decimal_parse(const char *text, size_t len, int exp10, int64_t *ret);
int stoup_decimal_parse_u64(const char *text, size_t len, int exp10, uint64_t *ret);

/* The greatest integer whose product with 10^exp10 is at most the text's value, between -STOUP_DECIMAL_FLOOR_CAP and
 * STOUP_DECIMAL_FLOOR_CAP, which stand for all beyond; *ret_exact 1: the product is the value. 0, or -EINVAL for a text
 * that is no decimal. */
__extension__ typedef __int128 stoup_wide;
#define STOUP_DECIMAL_FLOOR_CAP ((stoup_wide)1 << 65)
int stoup_decimal_floor(const char *text, size_t len, int exp10, stoup_wide *ret, int *ret_exact);

/* The double nearest to integer * 10^exp10 (-18 to 18), ties to even: what a correct reader makes of the
 * decimal's text. Independent of the locale. */
double stoup_decimal_double(int64_t integer, int exp10);
double stoup_decimal_double_u64(uint64_t integer, int exp10);

#endif
