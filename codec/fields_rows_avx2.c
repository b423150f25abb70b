/* SPDX-License-Identifier: Apache-2.0 */
/* fields_rows_avx2.c - the kernel for processors with AVX2: 32 records of one word in 8 registers.
 *
 *      register k   | record 2k | record 2k + 1 | record 16 + 2k | record 17 + 2k |   64 bits each
 *
 * This is the order in which three rounds of unpacking 8 planes of 32 bytes leave the records. It
 * is kept to the end: sums run down each half, and the upper half is then raised by the total of
 * the lower one, which costs eight additions instead of a permutation per register.
 *
 * The registers of a word hold all of its columns. A word of one column is undone as it is; of
 * several, each is shifted down, undone and put back. Rows are written word by word for a batch of
 * some groups, so that what is asked of a column is asked once and its code stays in one place.
 *
 * Seen in the code that gcc 12 -O2 makes of word_single (a step of 8 bytes, four planes live): 185
 * instructions for 32 records, among them 4 loads of planes, 16 unpacks, 32 for the signs, 48 for
 * the sums, 32 stores of 8 bytes (vmovq, vmovhpd) and 8 vextracti128. The eight values stay in ymm
 * registers from the planes to the rows; two totals of the sums and two constants are spilled. The
 * chain from group to group is the base alone: a store, a broadcast, three additions. Until the
 * loops were unrolled, the values went through memory between the steps, at 1.6 times the time.
 *
 * Concurrency: none; it writes the columns' bases of its tile.
 */
#include "codec/fields.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2   __attribute__((target("avx2")))
#define INLINE AVX2 inline __attribute__((always_inline)) static
#define REGS   8
/* Only a loop that is unrolled keeps its array in registers. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif
#define HALF 16u /* records of one half */
/* Rows that are written word by word before the next ones: what the first-level cache holds. */
#define BATCH_LEN 8192u

typedef double unaligned_double __attribute__((aligned(1), may_alias));

/* ---- planes to words ------------------------------------------------------------------------- */

INLINE __m256i plane(const struct stoup_fields_word *word, int i, uint64_t first)
{
	return _mm256_loadu_si256((const void *)(word->at[i] + (first & word->step[i])));
}

/* Four planes to 32-bit values: 8 registers' worth in lo[0..3] (even k) and hi (odd k). */
INLINE void unpack4(const struct stoup_fields_word *word, int i, uint64_t first, __m256i ret[4])
{
	__m256i a = plane(word, i, first), b = plane(word, i + 1, first);
	__m256i c = plane(word, i + 2, first), d = plane(word, i + 3, first);
	__m256i ab0 = _mm256_unpacklo_epi8(a, b), ab1 = _mm256_unpackhi_epi8(a, b);
	__m256i cd0 = _mm256_unpacklo_epi8(c, d), cd1 = _mm256_unpackhi_epi8(c, d);

	ret[0] = _mm256_unpacklo_epi16(ab0, cd0);
	ret[1] = _mm256_unpackhi_epi16(ab0, cd0);
	ret[2] = _mm256_unpacklo_epi16(ab1, cd1);
	ret[3] = _mm256_unpackhi_epi16(ab1, cd1);
}

INLINE void load(const struct stoup_fields_word *word, uint64_t first, __m256i ret[REGS])
{
	__m256i lo[4], hi[4];

	if (!word->live) {
		UNROLL
		for (int k = 0; k < REGS; k++)
			ret[k] = _mm256_set1_epi64x((long long)word->constants);
		return;
	}
	unpack4(word, 0, first, lo);
	if (word->live & 0xf0) {
		unpack4(word, 4, first, hi);
	} else {
		UNROLL
		for (int k = 0; k < 4; k++)
			hi[k] = _mm256_set1_epi32((int)(word->constants >> 32));
	}
	UNROLL
	for (int k = 0; k < 4; k++) {
		ret[2 * k] = _mm256_unpacklo_epi32(lo[k], hi[k]);
		ret[2 * k + 1] = _mm256_unpackhi_epi32(lo[k], hi[k]);
	}
}

/* ---- undoing --------------------------------------------------------------------------------- */

/* u = 0, 1, 2, 3, ... as 0, -1, 1, -2, ... */
INLINE __m256i unfold(__m256i u)
{
	__m256i sign = _mm256_and_si256(u, _mm256_set1_epi64x(1));

	return _mm256_xor_si256(
		_mm256_srli_epi64(u, 1), _mm256_sub_epi64(_mm256_setzero_si256(), sign));
}

/* The low 64 bits of a * b; `swapped` is b with its 32-bit halves exchanged. */
INLINE __m256i multiply(__m256i a, __m256i b, __m256i swapped)
{
	__m256i cross = _mm256_mullo_epi32(a, swapped);
	__m256i high = _mm256_add_epi32(cross, _mm256_slli_epi64(cross, 32));

	high = _mm256_and_si256(high, _mm256_set1_epi64x((long long)0xffffffff00000000ULL));
	return _mm256_add_epi64(_mm256_mul_epu32(a, b), high);
}

INLINE void multiply_all(__m256i s[REGS], uint64_t tick)
{
	__m256i b = _mm256_set1_epi64x((long long)tick);
	__m256i swapped = _mm256_shuffle_epi32(b, 0xb1);

	UNROLL
	for (int k = 0; k < REGS; k++)
		s[k] = multiply(s[k], b, swapped);
}

/* Running sums over the 32 records in their order, from *base on, which ends as the last one. */
INLINE void sum(__m256i s[REGS], uint64_t *base)
{
	__m256i carry = _mm256_set1_epi64x((long long)*base);
	__m256i total = _mm256_setzero_si256(), raise;

	UNROLL
	for (int k = 0; k < REGS; k++) {
		__m256i pair = _mm256_add_epi64(s[k], _mm256_slli_si256(s[k], 8));

		s[k] = _mm256_add_epi64(pair, total);
		total = _mm256_add_epi64(total, _mm256_unpackhi_epi64(pair, pair));
	}
	/* 0x08: zero below, the lower total above. */
	raise = _mm256_add_epi64(carry, _mm256_permute2x128_si256(total, total, 0x08));
	UNROLL
	for (int k = 0; k < REGS; k++)
		s[k] = _mm256_add_epi64(s[k], raise);
	*base = (uint64_t)_mm256_extract_epi64(s[REGS - 1], 3);
}

/* s to the maximum so far + s: the sum of the positive ones, and the negative one itself. */
INLINE void peak(__m256i s[REGS], uint64_t *base)
{
	__m256i below[REGS];

	UNROLL
	for (int k = 0; k < REGS; k++) {
		__m256i negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), s[k]);

		below[k] = _mm256_and_si256(s[k], negative);
		s[k] = _mm256_andnot_si256(negative, s[k]);
	}
	sum(s, base);
	UNROLL
	for (int k = 0; k < REGS; k++)
		s[k] = _mm256_add_epi64(s[k], below[k]);
}

/* A column of 8 bytes of two records at a distance of `stride`. */
INLINE __m128i ref_pair(const uint8_t *at, size_t stride)
{
	__m128i low = _mm_loadl_epi64((const void *)at);

	return _mm_castpd_si128((__m128d){
		_mm_castsi128_pd(low)[0], *(const unaligned_double *)(const void *)(at + stride)});
}

/* Add what the rows hold already in the reference column. */
INLINE void ref_add(__m256i s[REGS], const uint8_t *at, size_t stride)
{
	UNROLL
	for (int k = 0; k < REGS; k++, at += 2 * stride) {
		__m128i low = ref_pair(at, stride);
		__m128i high = ref_pair(at + HALF * stride, stride);

		s[k] = _mm256_add_epi64(s[k], _mm256_set_m128i(high, low));
	}
}

/* The same for a column of fewer than 8 bytes. */
AVX2 __attribute__((noinline)) static void ref_add_short(
	__m256i s[REGS], const uint8_t *at, size_t stride, uint32_t width)
{
	uint64_t values[STOUP_FIELDS_GROUP] = {0};

	for (size_t k = 0; k < REGS; k++, at += 2 * stride) {
		memcpy(&values[4 * k], at, width);
		memcpy(&values[4 * k + 1], at + stride, width);
		memcpy(&values[4 * k + 2], at + HALF * stride, width);
		memcpy(&values[4 * k + 3], at + (HALF + 1) * stride, width);
		s[k] = _mm256_add_epi64(s[k], _mm256_loadu_si256((const void *)&values[4 * k]));
	}
}

/* From u to values before the reference is added. */
INLINE void undo(struct stoup_fields_column *column, __m256i s[REGS])
{
	uint32_t flags = column->flags, mode = column->mode;

	if (mode != STOUP_FIELDS_OFFSET)
		UNROLL
	for (int k = 0; k < REGS; k++)
		s[k] = unfold(s[k]);
	if (flags & STOUP_FIELDS_TICK)
		multiply_all(s, column->tick);
	if (mode == STOUP_FIELDS_STEP)
		sum(s, &column->base);
	else if (mode == STOUP_FIELDS_PEAK)
		peak(s, &column->base);
	else if (flags & STOUP_FIELDS_BASE)
		UNROLL
	for (int k = 0; k < REGS; k++)
		s[k] = _mm256_add_epi64(s[k], _mm256_set1_epi64x((long long)column->base));
}

/* u - 1, and where u was 0. */
INLINE void nulls_take(__m256i s[REGS], __m256i nulls[REGS])
{
	UNROLL
	for (int k = 0; k < REGS; k++) {
		nulls[k] = _mm256_cmpeq_epi64(s[k], _mm256_setzero_si256());
		s[k] = _mm256_andnot_si256(nulls[k], _mm256_sub_epi64(s[k], _mm256_set1_epi64x(1)));
	}
}

INLINE void nulls_put(__m256i s[REGS], const __m256i nulls[REGS], uint64_t null)
{
	UNROLL
	for (int k = 0; k < REGS; k++)
		s[k] = _mm256_blendv_epi8(s[k], _mm256_set1_epi64x((long long)null), nulls[k]);
}

/* ---- words to rows --------------------------------------------------------------------------- */

/* The upper half of a register. The intrinsic for it claims an aligned address. */
INLINE void store_upper(uint8_t *at, __m128i pair)
{
	*(unaligned_double *)(void *)at = _mm_castsi128_pd(pair)[1];
}

/* Eight bytes per record, also of a shorter word: what follows in the row is written after it. */
INLINE void store(const __m256i s[REGS], uint8_t *at, size_t stride)
{
	UNROLL
	for (size_t k = 0; k < REGS; k++, at += 2 * stride) {
		__m128i low = _mm256_castsi256_si128(s[k]);
		__m128i high = _mm256_extracti128_si256(s[k], 1);

		_mm_storel_epi64((void *)at, low);
		store_upper(at + stride, low);
		_mm_storel_epi64((void *)(at + HALF * stride), high);
		store_upper(at + (HALF + 1) * stride, high);
	}
}

/* The last bytes of a row, not one more. */
AVX2 __attribute__((noinline)) static void store_short(
	const __m256i s[REGS], uint8_t *at, size_t stride, uint32_t len)
{
	uint64_t values[STOUP_FIELDS_GROUP];

	memcpy(values, s, sizeof(values));
	UNROLL
	for (size_t k = 0; k < REGS; k++) {
		memcpy(at + 2 * k * stride, &values[4 * k], len);
		memcpy(at + (2 * k + 1) * stride, &values[4 * k + 1], len);
		memcpy(at + (HALF + 2 * k) * stride, &values[4 * k + 2], len);
		memcpy(at + (HALF + 2 * k + 1) * stride, &values[4 * k + 3], len);
	}
}

INLINE void store_word(
	const struct stoup_fields_word *word, const __m256i s[REGS], uint8_t *rows, size_t stride)
{
	__m256i copy[REGS]; /* so that s itself stays in registers */

	if (word->off + 8u <= stride) {
		store(s, rows + word->off, stride);
		return;
	}
	memcpy(copy, s, sizeof(copy));
	store_short(copy, rows + word->off, stride, word->len);
}

/* ---- one word of 32 records ------------------------------------------------------------------ */

/* Bytes that are taken as they are. */
AVX2 __attribute__((noinline)) static void word_plain(const struct stoup_fields_word *word,
	uint64_t first, uint32_t cnt, uint8_t *rows, size_t stride)
{
	__m256i s[REGS];

	for (; cnt; cnt -= STOUP_FIELDS_GROUP, first += STOUP_FIELDS_GROUP) {
		load(word, first, s);
		store_word(word, s, rows, stride);
		rows += STOUP_FIELDS_GROUP * stride;
	}
}

/* A word of one column of 8 bytes without undefined values: the most frequent one. */
AVX2 __attribute__((noinline)) static void word_single(struct stoup_fields_column *column,
	const struct stoup_fields_word *word, uint64_t first, uint32_t cnt, uint8_t *rows,
	size_t stride)
{
	__m256i s[REGS];

	for (; cnt; cnt -= STOUP_FIELDS_GROUP, first += STOUP_FIELDS_GROUP) {
		load(word, first, s);
		undo(column, s);
		if (column->flags & STOUP_FIELDS_REF)
			ref_add(s, rows + column->ref_off, stride);
		store(s, rows + word->off, stride);
		rows += STOUP_FIELDS_GROUP * stride;
	}
}

/* One of the columns of a word, of which `all` are the bytes and `done` the columns before it. */
AVX2 __attribute__((noinline)) static void part_restore(struct stoup_fields_column *column,
	const struct stoup_fields_word *word, const __m256i all[REGS], __m256i done[REGS],
	const uint8_t *rows, size_t stride)
{
	__m256i mask = _mm256_set1_epi64x((long long)column->mask);
	__m128i shift = _mm_cvtsi32_si128(column->shift);
	__m256i s[REGS], nulls[REGS], copy[REGS];

	UNROLL
	for (int k = 0; k < REGS; k++)
		s[k] = _mm256_and_si256(_mm256_srl_epi64(all[k], shift), mask);
	if (column->flags & STOUP_FIELDS_NULL)
		nulls_take(s, nulls);
	undo(column, s);
	if (column->flags & STOUP_FIELDS_REF) {
		memcpy(copy, s, sizeof(copy));
		if (column->ref_off < word->off)
			ref_add_short(copy, rows + column->ref_off, stride, column->width);
		else /* inside the word: not in the rows yet */
			for (int k = 0; k < REGS; k++)
				copy[k] = _mm256_add_epi64(copy[k],
					_mm256_srl_epi64(done[k],
						_mm_cvtsi32_si128(
							8 * (column->ref_off - word->off))));
		memcpy(s, copy, sizeof(copy));
	}
	if (column->flags & STOUP_FIELDS_NULL)
		nulls_put(s, nulls, column->null);
	UNROLL
	for (int k = 0; k < REGS; k++)
		done[k] = _mm256_or_si256(
			done[k], _mm256_sll_epi64(_mm256_and_si256(s[k], mask), shift));
}

/* A word of several columns, of a shorter one, or with undefined values. */
AVX2 __attribute__((noinline)) static void word_parts(struct stoup_fields_tile *tile,
	const struct stoup_fields_word *word, uint64_t first, uint8_t *rows)
{
	__m256i all[REGS], done[REGS];

	load(word, first, all);
	UNROLL
	for (int k = 0; k < REGS; k++)
		done[k] = _mm256_and_si256(all[k], _mm256_set1_epi64x((long long)word->raw_mask));
	for (uint32_t i = 0; i < word->column_cnt; i++) {
		struct stoup_fields_column *column = &tile->columns[word->column_first + i];

		if (column->flags || column->mode)
			part_restore(column, word, all, done, rows, tile->stride);
	}
	store_word(word, done, rows, tile->stride);
}

/* The same with undefined values. */
AVX2 __attribute__((noinline)) static void word_nulls(struct stoup_fields_column *column,
	const struct stoup_fields_word *word, uint64_t first, uint32_t cnt, uint8_t *rows,
	size_t stride)
{
	__m256i s[REGS], nulls[REGS];

	for (; cnt; cnt -= STOUP_FIELDS_GROUP, first += STOUP_FIELDS_GROUP) {
		load(word, first, s);
		nulls_take(s, nulls);
		undo(column, s);
		if (column->flags & STOUP_FIELDS_REF)
			ref_add(s, rows + column->ref_off, stride);
		nulls_put(s, nulls, column->null);
		store(s, rows + word->off, stride);
		rows += STOUP_FIELDS_GROUP * stride;
	}
}

/* ---- words of two columns of 4 bytes --------------------------------------------------------- */

/* As unfold, for each half of a lane. */
INLINE __m256i unfold_halves(__m256i u)
{
	__m256i sign = _mm256_and_si256(u, _mm256_set1_epi32(1));

	return _mm256_xor_si256(
		_mm256_srli_epi32(u, 1), _mm256_sub_epi32(_mm256_setzero_si256(), sign));
}

/* As sum, for each half of a lane. */
INLINE void sum_halves(__m256i s[REGS], uint64_t *base)
{
	__m256i carry = _mm256_set1_epi64x((long long)*base);
	__m256i total = _mm256_setzero_si256(), raise;

	UNROLL
	for (int k = 0; k < REGS; k++) {
		__m256i pair = _mm256_add_epi32(s[k], _mm256_slli_si256(s[k], 8));

		s[k] = _mm256_add_epi32(pair, total);
		total = _mm256_add_epi32(total, _mm256_unpackhi_epi64(pair, pair));
	}
	raise = _mm256_add_epi32(carry, _mm256_permute2x128_si256(total, total, 0x08));
	UNROLL
	for (int k = 0; k < REGS; k++)
		s[k] = _mm256_add_epi32(s[k], raise);
	*base = (uint64_t)_mm256_extract_epi64(s[REGS - 1], 3);
}

/* Two columns of 4 bytes, of which each is a step or an offset, without tick, reference or
 * undefined values: both are undone in one go, then each takes what its mode asks for. */
static int halves_valid(const struct stoup_fields_column *column)
{
	return column[0].width == 4 && column[1].width == 4 &&
	       !((column[0].flags | column[1].flags) & (uint32_t)~STOUP_FIELDS_BASE) &&
	       column[0].mode <= STOUP_FIELDS_STEP && column[1].mode <= STOUP_FIELDS_STEP;
}

AVX2 __attribute__((noinline)) static void word_halves(struct stoup_fields_column *column,
	const struct stoup_fields_word *word, uint64_t first, uint32_t cnt, uint8_t *rows,
	size_t stride)
{
	uint64_t low = column[0].mode == STOUP_FIELDS_STEP ? 0xffffffffu : 0;
	uint64_t high = column[1].mode == STOUP_FIELDS_STEP ? 0xffffffffu : 0;
	uint64_t base = (column[0].base & 0xffffffffu) | column[1].base << 32;
	__m256i steps = _mm256_set1_epi64x((long long)(low | high << 32));
	__m256i offset = _mm256_set1_epi64x((long long)(base & ~(low | high << 32)));
	__m256i s[REGS], u[REGS];

	base &= low | high << 32;
	for (; cnt; cnt -= STOUP_FIELDS_GROUP, first += STOUP_FIELDS_GROUP) {
		load(word, first, u);
		UNROLL
		for (int k = 0; k < REGS; k++)
			s[k] = _mm256_and_si256(unfold_halves(u[k]), steps);
		sum_halves(s, &base);
		UNROLL
		for (int k = 0; k < REGS; k++)
			s[k] = _mm256_add_epi32(
				s[k], _mm256_add_epi32(_mm256_andnot_si256(steps, u[k]), offset));
		store_word(word, s, rows, stride);
		base &= low | high << 32;
		rows += STOUP_FIELDS_GROUP * stride;
	}
	if (low)
		column[0].base = base & low;
	if (high)
		column[1].base = base >> 32;
}

static void word_rows(struct stoup_fields_tile *tile, const struct stoup_fields_word *word,
	uint32_t first, uint32_t cnt, uint8_t *rows)
{
	struct stoup_fields_column *column = &tile->columns[word->column_first];

	if (word->plain) {
		word_plain(word, first, cnt, rows, tile->stride);
		return;
	}
	if (column->width == 8) {
		if (column->flags & STOUP_FIELDS_NULL)
			word_nulls(column, word, first, cnt, rows, tile->stride);
		else
			word_single(column, word, first, cnt, rows, tile->stride);
		return;
	}
	if (word->column_cnt == 2 && halves_valid(column)) {
		word_halves(column, word, first, cnt, rows, tile->stride);
		return;
	}
	for (; cnt; cnt -= STOUP_FIELDS_GROUP, first += STOUP_FIELDS_GROUP) {
		word_parts(tile, word, first, rows);
		rows += STOUP_FIELDS_GROUP * (size_t)tile->stride;
	}
}

/* The rows of the next batch are of memory that nobody has touched for long: to own their lines takes longer
 * than to fill them, and the processor's prefetcher sees 8 bytes a record, not what comes. So part `part` of
 * `parts` of them is asked for while a word of this batch is undone; into a pool that is a third
 * faster. Inlined by order: the calls of a function that returns and writes nothing gcc leaves out. */
__attribute__((always_inline)) static inline void rows_own(
	const uint8_t *rows, size_t len, uint32_t part, uint32_t parts)
{
	size_t share = (len / parts + 64) & ~(size_t)63, end = (part + 1) * share;

	for (size_t at = part * share; at < end && at < len; at += 64)
		__builtin_prefetch(rows + at, 1);
}

void stoup_fields_rows_avx2(
	struct stoup_fields_tile *tile, uint32_t first, uint32_t cnt, uint8_t *rows)
{
	size_t group_len = STOUP_FIELDS_GROUP * (size_t)tile->stride;
	uint32_t batch = group_len < BATCH_LEN ? (uint32_t)(BATCH_LEN / group_len) : 1;

	batch *= STOUP_FIELDS_GROUP;
	while (cnt) {
		uint32_t now = cnt < batch ? cnt : batch;
		uint32_t next = cnt - now < batch ? cnt - now : batch;
		size_t now_len = now * (size_t)tile->stride;

		for (uint32_t w = 0; w < tile->word_cnt; w++) {
			rows_own(rows + now_len, next * (size_t)tile->stride, w, tile->word_cnt);
			word_rows(tile, &tile->words[w], first, now, rows);
		}
		rows += now_len;
		first += now;
		cnt -= now;
	}
}

stoup_fields_kernel *stoup_fields_kernel_best(void)
{
	return __builtin_cpu_supports("avx2") ? stoup_fields_rows_avx2 : stoup_fields_rows;
}

#else

void stoup_fields_rows_avx2(
	struct stoup_fields_tile *tile, uint32_t first, uint32_t cnt, uint8_t *rows)
{
	stoup_fields_rows(tile, first, cnt, rows);
}

stoup_fields_kernel *stoup_fields_kernel_best(void)
{
	return stoup_fields_rows;
}

#endif
