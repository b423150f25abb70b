/* SPDX-License-Identifier: Apache-2.0 */
/* test_block.c - block codecs: round trips, and everything that must not decode.
 *
 * Buffers are heap blocks of exactly the length that the contract names, so that a sanitizer sees a
 * byte read or written outside. Stored bytes for the hostile cases come from the libraries' own
 * encoders, called here directly.
 */
#include "codec/block.h"

#include <check.h>
#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static void *scratch;

static void scratch_setup(void)
{
	ck_assert_uint_eq(stoup_block_scratch_len() % 64, 0);
	scratch = aligned_alloc(64, stoup_block_scratch_len());
	ck_assert_ptr_nonnull(scratch);
	stoup_block_scratch_init(scratch);
}

static void scratch_teardown(void)
{
	free(scratch);
}

/* xorshift64: the same bytes in each run. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

enum filling {
	FILL_ZERO,
	FILL_TICKS,
	FILL_NOISE,
	FILL_CNT
};

/* `len` bytes that compress extremely, somewhat, and not at all. */
static uint8_t *bytes_make(enum filling filling, size_t len)
{
	uint8_t *bytes = calloc(1, len);
	uint64_t state = 88172645463325252u, key = 1700000000000000000u;

	ck_assert_ptr_nonnull(bytes);
	for (size_t i = 0; filling == FILL_NOISE && i < len; i++)
		bytes[i] = (uint8_t)next_random(&state);
	for (size_t i = 0; filling == FILL_TICKS && i + 16 <= len; i += 16) {
		key += next_random(&state) % 1000000;
		memcpy(bytes + i, &key, 8);
		bytes[i + 8] = (uint8_t)(next_random(&state) % 5);
	}
	return bytes;
}

/* Stored bytes of `raw` in a buffer of exactly their length. */
static uint8_t *encode(const char *codec, const char *level, const uint8_t *raw, size_t raw_len,
	size_t *ret_len, uint32_t *ret_codec)
{
	struct stoup_encoding encoding;
	struct stoup_encoder *encoder;
	size_t cap = stoup_block_encode_cap(raw_len);
	uint8_t *stored = malloc(cap), *exact;
	uint32_t transform = 99;

	ck_assert_int_eq(stoup_encoding_parse(codec, level, &encoding), 0);
	ck_assert_int_eq(stoup_encoder_create(&encoding, &encoder), 0);
	ck_assert_int_eq(stoup_block_encode(encoder, NULL, raw, raw_len, stored, cap, ret_len,
				 ret_codec, &transform),
		0);
	ck_assert_uint_eq(transform, STOUP_TRANSFORM_NONE);
	ck_assert_uint_le(*ret_len, cap);
	stoup_encoder_destroy(encoder);
	exact = malloc(*ret_len);
	ck_assert_ptr_nonnull(exact);
	memcpy(exact, stored, *ret_len);
	free(stored);
	return exact;
}

static int decode(uint32_t codec, const void *stored, size_t stored_len, size_t raw_len)
{
	uint8_t *raw = malloc(raw_len ? raw_len : 1);
	int rc = stoup_block_decode(
		codec, STOUP_TRANSFORM_NONE, stored, stored_len, raw, raw_len, scratch);

	free(raw);
	return rc;
}

/* ---- round trips ----------------------------------------------------------------------------- */

static const struct {
	const char *codec, *level;
	uint32_t stored_as;
} encodings[] = {
	{"none", "", STOUP_CODEC_NONE},
	{"lz4", "", STOUP_CODEC_LZ4},
	{"lz4", "8", STOUP_CODEC_LZ4},
	{"lz4hc", "", STOUP_CODEC_LZ4},
	{"lz4hc", "12", STOUP_CODEC_LZ4},
	{"zstd", "", STOUP_CODEC_ZSTD},
	{"zstd", "1", STOUP_CODEC_ZSTD},
	{"zstd", "-5", STOUP_CODEC_ZSTD},
	{"zstd", "19", STOUP_CODEC_ZSTD},
};
#define ENCODING_CNT ((int)(sizeof(encodings) / sizeof(encodings[0])))

static void round_trip(int idx, enum filling filling, size_t raw_len)
{
	uint8_t *raw = bytes_make(filling, raw_len), *back = malloc(raw_len), *stored;
	uint32_t codec = 99;
	size_t stored_len = 0;

	stored = encode(
		encodings[idx].codec, encodings[idx].level, raw, raw_len, &stored_len, &codec);
	ck_assert_uint_le(stored_len, raw_len);
	if (filling == FILL_NOISE)
		ck_assert_uint_eq(codec, STOUP_CODEC_NONE);
	else if (raw_len >= 4096)
		ck_assert_uint_eq(codec, encodings[idx].stored_as);
	if (codec != STOUP_CODEC_NONE)
		ck_assert_uint_lt(stored_len, raw_len);
	else
		ck_assert_uint_eq(stored_len, raw_len);
	memset(back, 0xa5, raw_len);
	ck_assert_int_eq(
		stoup_block_decode(codec, 0, stored, stored_len, back, raw_len, scratch), 0);
	ck_assert_mem_eq(back, raw, raw_len);
	free(stored);
	free(back);
	free(raw);
}

START_TEST(every_codec_gives_back_the_bytes_it_was_given)
{
	static const size_t lens[] = {1, 2, 7, 8, 13, 64, 4096, 65536, 524288, 1000003};

	for (int filling = 0; filling < FILL_CNT; filling++)
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
			round_trip(_i, (enum filling)filling, lens[i]);
}
END_TEST

START_TEST(a_block_of_the_largest_length_makes_the_round_trip)
{
	round_trip(1, FILL_TICKS, STOUP_BLOCK_RAW_CAP);
	round_trip(6, FILL_TICKS, STOUP_BLOCK_RAW_CAP);
}
END_TEST

START_TEST(an_encoder_is_used_again_after_data_that_did_not_shrink)
{
	uint8_t *noise = bytes_make(FILL_NOISE, 4096), *ticks = bytes_make(FILL_TICKS, 4096);
	uint8_t stored[4096], back[4096];

	for (int i = 0; i < ENCODING_CNT; i++) {
		struct stoup_encoding encoding;
		struct stoup_encoder *encoder;
		size_t len;
		uint32_t codec, transform;

		ck_assert_int_eq(
			stoup_encoding_parse(encodings[i].codec, encodings[i].level, &encoding), 0);
		ck_assert_int_eq(stoup_encoder_create(&encoding, &encoder), 0);
		ck_assert_int_eq(stoup_block_encode(encoder, NULL, noise, 4096, stored, 4096, &len,
					 &codec, &transform),
			0);
		ck_assert_uint_eq(codec, STOUP_CODEC_NONE);
		ck_assert_mem_eq(stored, noise, 4096);
		ck_assert_int_eq(stoup_block_encode(encoder, NULL, ticks, 4096, stored, 4096, &len,
					 &codec, &transform),
			0);
		ck_assert_uint_eq(codec, encodings[i].stored_as);
		ck_assert_int_eq(stoup_block_decode(codec, 0, stored, len, back, 4096, scratch), 0);
		ck_assert_mem_eq(back, ticks, 4096);
		stoup_encoder_destroy(encoder);
	}
	free(noise);
	free(ticks);
}
END_TEST

START_TEST(lengths_beyond_the_caps_are_refused_by_both_directions)
{
	struct stoup_encoding encoding = {STOUP_CODEC_LZ4, 0, 1, 0};
	struct stoup_encoder *encoder;
	uint8_t src[64] = {0}, dst[64];
	size_t len = 77;
	uint32_t codec = 77, transform = 77;

	ck_assert_int_eq(stoup_encoder_create(&encoding, &encoder), 0);
	ck_assert_int_eq(
		stoup_block_encode(encoder, NULL, src, 0, dst, 64, &len, &codec, &transform),
		-EINVAL);
	ck_assert_int_eq(
		stoup_block_encode(encoder, NULL, src, 64, dst, 63, &len, &codec, &transform),
		-EINVAL);
	ck_assert_int_eq(stoup_block_encode(encoder, NULL, src, STOUP_BLOCK_RAW_CAP + 1, dst,
				 SIZE_MAX, &len, &codec, &transform),
		-EINVAL);
	ck_assert_uint_eq(len, 77);
	ck_assert_uint_eq(codec, 77);
	stoup_encoder_destroy(encoder);
	stoup_encoder_destroy(NULL);
	for (uint32_t i = 0; i <= STOUP_CODEC_LAST; i++) {
		ck_assert_int_eq(stoup_block_decode(i, 0, src, 64, dst, 0, scratch), -EINVAL);
		ck_assert_int_eq(stoup_block_decode(i, 0, src, 0, dst, 64, scratch), -EINVAL);
		ck_assert_int_eq(
			stoup_block_decode(i, 0, src, 64, dst, STOUP_BLOCK_RAW_CAP + 1, scratch),
			-EINVAL);
		ck_assert_int_eq(
			stoup_block_decode(i, 0, src, STOUP_BLOCK_RAW_CAP + 1, dst, 64, scratch),
			-EINVAL);
	}
}
END_TEST

START_TEST(an_unknown_codec_or_transform_is_not_supported)
{
	uint8_t src[8] = {0}, dst[8];

	ck_assert_int_eq(stoup_block_decode(3, 0, src, 8, dst, 8, scratch), -ENOTSUP);
	ck_assert_int_eq(stoup_block_decode(UINT32_MAX, 0, src, 8, dst, 8, scratch), -ENOTSUP);
	ck_assert_int_eq(
		stoup_block_decode(0, STOUP_TRANSFORM_LAST + 1, src, 8, dst, 8, scratch), -ENOTSUP);
	ck_assert_int_eq(stoup_block_decode(0, UINT32_MAX, src, 8, dst, 8, scratch), -ENOTSUP);
}
END_TEST

/* ---- bytes that must not decode -------------------------------------------------------------- */

START_TEST(stored_bytes_that_decode_to_another_length_are_corrupt)
{
	for (size_t at = 0; at < (size_t)ENCODING_CNT; at++) {
		uint8_t *raw = bytes_make(FILL_TICKS, 8192), *stored;
		size_t len;
		uint32_t codec;

		stored = encode(encodings[at].codec, encodings[at].level, raw, 8192, &len, &codec);
		ck_assert_int_eq(decode(codec, stored, len, 8192), 0);
		ck_assert_int_eq(decode(codec, stored, len, 8191), -EBADMSG);
		ck_assert_int_eq(decode(codec, stored, len, 8193), -EBADMSG);
		ck_assert_int_eq(decode(codec, stored, len, 1), -EBADMSG);
		ck_assert_int_eq(decode(codec, stored, len, 65536), -EBADMSG);
		free(stored);
		free(raw);
	}
}
END_TEST

START_TEST(stored_bytes_cut_or_extended_anywhere_are_corrupt)
{
	for (size_t at = 0; at < (size_t)ENCODING_CNT; at++) {
		uint8_t *raw = bytes_make(FILL_TICKS, 2048), *stored, *longer;
		size_t len;
		uint32_t codec;

		stored = encode(encodings[at].codec, encodings[at].level, raw, 2048, &len, &codec);
		for (size_t cut = 1; cut < len; cut++) {
			uint8_t *part = malloc(cut);

			memcpy(part, stored, cut);
			ck_assert_int_eq(decode(codec, part, cut, 2048), -EBADMSG);
			free(part);
		}
		longer = calloc(1, len + 1);
		memcpy(longer, stored, len);
		ck_assert_int_eq(decode(codec, longer, len + 1, 2048), -EBADMSG);
		free(longer);
		free(stored);
		free(raw);
	}
}
END_TEST

/* No checksum here: a changed byte may decode to something. It must decode to the given length
 * or be refused, inside its buffers; the sanitizers watch those. */
START_TEST(changed_stored_bytes_decode_to_the_given_length_or_are_refused)
{
	static const uint8_t changes[] = {0x01, 0x80, 0xff, 0x10};
	int refused = 0;

	for (size_t at = 1; at < (size_t)ENCODING_CNT; at++) {
		uint8_t *raw = bytes_make(FILL_TICKS, 1024), *stored;
		size_t len;
		uint32_t codec;

		stored = encode(encodings[at].codec, encodings[at].level, raw, 1024, &len, &codec);
		for (size_t i = 0; i < len * sizeof(changes); i++) {
			uint8_t change = changes[i % sizeof(changes)];
			int rc;

			stored[i / sizeof(changes)] ^= change;
			rc = decode(codec, stored, len, 1024);
			ck_assert(rc == 0 || rc == -EBADMSG);
			refused += rc != 0;
			stored[i / sizeof(changes)] ^= change;
		}
		ck_assert_int_eq(decode(codec, stored, len, 1024), 0);
		free(stored);
		free(raw);
	}
	ck_assert_int_gt(refused, 1000);
}
END_TEST

START_TEST(random_bytes_are_refused_under_lz4_and_zstd)
{
	uint64_t state = 0x9e3779b97f4a7c15u;
	int refused[2] = {0, 0};

	for (int round = 0; round < 20000; round++) {
		size_t len = 1 + next_random(&state) % 96;
		uint8_t *stored = malloc(len);

		for (size_t i = 0; i < len; i++)
			stored[i] = (uint8_t)next_random(&state);
		refused[0] += decode(STOUP_CODEC_LZ4, stored, len, 256) == -EBADMSG;
		refused[1] += decode(STOUP_CODEC_ZSTD, stored, len, 256) == -EBADMSG;
		free(stored);
	}
	ck_assert_int_ge(refused[0], 19990);
	ck_assert_int_eq(refused[1], 20000);
}
END_TEST

static size_t zstd_frame(uint8_t *dst, size_t cap, const void *raw, size_t raw_len, int with_len)
{
	ZSTD_CCtx *ctx = ZSTD_createCCtx();
	size_t len;

	ZSTD_CCtx_setParameter(ctx, ZSTD_c_contentSizeFlag, with_len);
	len = ZSTD_compress2(ctx, dst, cap, raw, raw_len);
	ck_assert(!ZSTD_isError(len));
	ZSTD_freeCCtx(ctx);
	return len;
}

START_TEST(a_zstd_frame_that_claims_another_length_is_corrupt)
{
	uint8_t *raw = bytes_make(FILL_TICKS, 1000), stored[2048];
	size_t len = zstd_frame(stored, sizeof(stored), raw, 1000, 1);

	/* Single segment, two bytes of content length (less 256) behind magic and descriptor. */
	ck_assert_uint_eq(stored[4] & 0xe0, 0x60);
	ck_assert_uint_eq((unsigned)stored[5] + 256u * stored[6], 1000 - 256);
	ck_assert_int_eq(decode(STOUP_CODEC_ZSTD, stored, len, 1000), 0);
	stored[5]++;
	ck_assert_int_eq(decode(STOUP_CODEC_ZSTD, stored, len, 1000), -EBADMSG);
	ck_assert_int_eq(decode(STOUP_CODEC_ZSTD, stored, len, 1001), -EBADMSG);
	free(raw);
}
END_TEST

START_TEST(a_zstd_frame_without_a_length_is_judged_by_what_it_decodes_to)
{
	uint8_t *raw = bytes_make(FILL_TICKS, 1000), stored[2048];
	size_t len = zstd_frame(stored, sizeof(stored), raw, 1000, 0);

	ck_assert_int_eq(decode(STOUP_CODEC_ZSTD, stored, len, 1000), 0);
	ck_assert_int_eq(decode(STOUP_CODEC_ZSTD, stored, len, 999), -EBADMSG);
	ck_assert_int_eq(decode(STOUP_CODEC_ZSTD, stored, len, 1001), -EBADMSG);
	free(raw);
}
END_TEST

START_TEST(two_zstd_frames_or_a_skippable_one_are_corrupt)
{
	static const uint8_t skippable[12] = {0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0};
	uint8_t *raw = bytes_make(FILL_TICKS, 2000), stored[4096];
	size_t len = zstd_frame(stored, sizeof(stored), raw, 1000, 0), both;

	both = len + zstd_frame(stored + len, sizeof(stored) - len, raw + 1000, 1000, 0);
	ck_assert_int_eq(decode(STOUP_CODEC_ZSTD, stored, both, 2000), -EBADMSG);
	memcpy(stored + len, skippable, sizeof(skippable));
	ck_assert_int_eq(decode(STOUP_CODEC_ZSTD, stored, len, 1000), 0);
	ck_assert_int_eq(decode(STOUP_CODEC_ZSTD, stored, len + sizeof(skippable), 1000), -EBADMSG);
	memmove(stored + sizeof(skippable), stored, len);
	memcpy(stored, skippable, sizeof(skippable));
	ck_assert_int_eq(decode(STOUP_CODEC_ZSTD, stored, len + sizeof(skippable), 1000), -EBADMSG);
	ck_assert_int_eq(decode(STOUP_CODEC_ZSTD, skippable, sizeof(skippable), 1000), -EBADMSG);
	free(raw);
}
END_TEST

START_TEST(an_lz4_match_that_points_before_the_block_is_corrupt)
{
	/* Token: 1 literal, match of 4 + 15; offset 0xffff; then the 5 last literals. */
	static const uint8_t stored[] = {0x1f, 'a', 0xff, 0xff, 10, 0x50, 'b', 'c', 'd', 'e', 'f'};
	static const uint8_t good[] = {0x1f, 'a', 0x01, 0x00, 10, 0x50, 'b', 'c', 'd', 'e', 'f'};
	size_t raw_len = 1 + 4 + 15 + 10 + 5;

	ck_assert_int_eq(decode(STOUP_CODEC_LZ4, good, sizeof(good), raw_len), 0);
	ck_assert_int_eq(decode(STOUP_CODEC_LZ4, stored, sizeof(stored), raw_len), -EBADMSG);
}
END_TEST

/* ---- names of encodings ---------------------------------------------------------------------- */

START_TEST(encodings_are_parsed_with_their_levels)
{
	static const struct {
		const char *name, *level;
		int rc;
		uint32_t codec, hc;
		int32_t ret_level;
		uint32_t transform;
	} cases[] = {
		{"fast", "", 0, STOUP_CODEC_LZ4, 0, 1, STOUP_TRANSFORM_FIELDS},
		{"fast", "1", -EINVAL, 0, 0, 0, 0},
		{"default", NULL, 0, STOUP_CODEC_LZ4, 1, 4, STOUP_TRANSFORM_FIELDS},
		{"default", "12", 0, STOUP_CODEC_LZ4, 1, 12, STOUP_TRANSFORM_FIELDS},
		{"default", "13", -EINVAL, 0, 0, 0, 0},
		{"small", "", 0, STOUP_CODEC_ZSTD, 0, 1, STOUP_TRANSFORM_FIELDS},
		{"small", "22", 0, STOUP_CODEC_ZSTD, 0, 22, STOUP_TRANSFORM_FIELDS},
		{"small", "-1", -EINVAL, 0, 0, 0, 0},
		{"none", "", 0, STOUP_CODEC_NONE, 0, 0, 0},
		{"none", "1", -EINVAL, 0, 0, 0, 0},
		{"lz4", NULL, 0, STOUP_CODEC_LZ4, 0, 1, 0},
		{"lz4", "65537", 0, STOUP_CODEC_LZ4, 0, 65537, 0},
		{"lz4", "65538", -EINVAL, 0, 0, 0, 0},
		{"lz4", "0", -EINVAL, 0, 0, 0, 0},
		{"lz4hc", "", 0, STOUP_CODEC_LZ4, 1, 4, 0},
		{"lz4hc", "12", 0, STOUP_CODEC_LZ4, 1, 12, 0},
		{"lz4hc", "13", -EINVAL, 0, 0, 0, 0},
		{"zstd", "", 0, STOUP_CODEC_ZSTD, 0, 3, 0},
		{"zstd", "22", 0, STOUP_CODEC_ZSTD, 0, 22, 0},
		{"zstd", "-7", 0, STOUP_CODEC_ZSTD, 0, -7, 0},
		{"zstd", "23", -EINVAL, 0, 0, 0, 0},
		{"zstd", "0", -EINVAL, 0, 0, 0, 0},
		{"zstd", "3x", -EINVAL, 0, 0, 0, 0},
		{"zstd", "99999999999999999999", -EINVAL, 0, 0, 0, 0},
		{"gzip", "", -EINVAL, 0, 0, 0, 0},
		{"", "", -EINVAL, 0, 0, 0, 0},
		{NULL, "", -EINVAL, 0, 0, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stoup_encoding encoding = {7, 7, 7, 7};

		ck_assert_int_eq(stoup_encoding_parse(cases[i].name, cases[i].level, &encoding),
			cases[i].rc);
		ck_assert_uint_eq(encoding.codec, cases[i].rc ? 7 : cases[i].codec);
		ck_assert_uint_eq(encoding.hc, cases[i].rc ? 7 : cases[i].hc);
		ck_assert_int_eq(encoding.level, cases[i].rc ? 7 : cases[i].ret_level);
		ck_assert_uint_eq(encoding.transform, cases[i].rc ? 7 : cases[i].transform);
	}
}
END_TEST

START_TEST(an_encoder_for_an_unknown_codec_is_refused)
{
	struct stoup_encoding encoding = {STOUP_CODEC_LAST + 1, 0, 0, 0};
	struct stoup_encoder *encoder = NULL;

	ck_assert_int_eq(stoup_encoder_create(&encoding, &encoder), -EINVAL);
	ck_assert_ptr_null(encoder);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("block");
	TCase *tests = tcase_create("block");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tests, 300);
	tcase_add_checked_fixture(tests, scratch_setup, scratch_teardown);
	suite_add_tcase(suite, tests);
	tcase_add_loop_test(tests, every_codec_gives_back_the_bytes_it_was_given, 0, ENCODING_CNT);
	tcase_add_test(tests, a_block_of_the_largest_length_makes_the_round_trip);
	tcase_add_test(tests, an_encoder_is_used_again_after_data_that_did_not_shrink);
	tcase_add_test(tests, lengths_beyond_the_caps_are_refused_by_both_directions);
	tcase_add_test(tests, an_unknown_codec_or_transform_is_not_supported);
	tcase_add_test(tests, stored_bytes_that_decode_to_another_length_are_corrupt);
	tcase_add_test(tests, stored_bytes_cut_or_extended_anywhere_are_corrupt);
	tcase_add_test(tests, changed_stored_bytes_decode_to_the_given_length_or_are_refused);
	tcase_add_test(tests, random_bytes_are_refused_under_lz4_and_zstd);
	tcase_add_test(tests, a_zstd_frame_that_claims_another_length_is_corrupt);
	tcase_add_test(tests, a_zstd_frame_without_a_length_is_judged_by_what_it_decodes_to);
	tcase_add_test(tests, two_zstd_frames_or_a_skippable_one_are_corrupt);
	tcase_add_test(tests, an_lz4_match_that_points_before_the_block_is_corrupt);
	tcase_add_test(tests, encodings_are_parsed_with_their_levels);
	tcase_add_test(tests, an_encoder_for_an_unknown_codec_is_refused);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
