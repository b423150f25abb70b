/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_block.c - any bytes as a stored block, and any bytes as the records of one.
 *
 *      bytes[0..1]  codec, transform; bytes[1] & 128: encode the rest instead
 *      bytes[2..4]  decode: raw length (u16, times 16 with bytes[1] & 64); encode: level
 *      the rest     stored bytes; or records, in front of which a layout stands for the levels
 *                   fast, default and small
 *
 * Checked beside the sanitizers: a decoder writes into its output alone and all of it, allocates
 * nothing, and gives the same twice and with each kernel; what was encoded decodes to itself, and
 * to no other length.
 */
#include <errno.h>
#include "codec/block.h"
#include "codec/fields.h"
#include "codec/volume.h"
#include "tests/fuzz/fuzz.h"

#define GUARD_LEN 64u
#define RAW_CAP   (16u << 16) /* bytes: what bytes[1..4] can ask for */
#define FIELD_CAP 32u

/* Of the sanitizers' runtime, where there is one. */
extern int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t),
	void (*)(const volatile void *)) __attribute__((weak));

static int watched;        /* allocations are counted now */
static unsigned alloc_cnt; /* while they were */

static void on_malloc(const volatile void *at, size_t len)
{
	(void)at;
	(void)len;
	alloc_cnt += watched != 0;
}

static void on_free(const volatile void *at)
{
	(void)at;
}

static void *scratch(void)
{
	static void *area;

	if (!area) {
		area = aligned_alloc(64, (stoup_block_scratch_len() + 63) & ~(size_t)63);
		MUST(area != NULL);
		stoup_block_scratch_init(area);
		if (__sanitizer_install_malloc_and_free_hooks)
			__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
	}
	MUST(area != NULL);
	return area;
}

/* Decode between two guards; the area is 0 or 0xff before, so that bytes left out show. */
static int decode_by(int portable, uint32_t codec, uint32_t transform, const uint8_t *src,
	size_t src_len, uint8_t *dst, size_t raw_len, int before)
{
	void *work = scratch();
	int rc;

	memset(dst, before, raw_len);
	memset(dst - GUARD_LEN, 0xa5, GUARD_LEN);
	memset(dst + raw_len, 0xa5, GUARD_LEN);
	watched = 1;
	if (portable)
		rc = stoup_fields_decode(
			codec, src, src_len, dst, raw_len, work, stoup_fields_rows);
	else
		rc = stoup_block_decode(codec, transform, src, src_len, dst, raw_len, work);
	watched = 0;
	MUST(alloc_cnt == 0);
	for (unsigned i = 0; i < GUARD_LEN; i++)
		MUST(dst[-1 - (int)i] == 0xa5 && dst[raw_len + i] == 0xa5);
	MUST(rc == 0 || rc == -EBADMSG || rc == -ENOTSUP || rc == -EINVAL);
	return rc;
}

static int decode(uint32_t codec, uint32_t transform, const uint8_t *src, size_t src_len,
	uint8_t *dst, size_t raw_len, int before)
{
	return decode_by(0, codec, transform, src, src_len, dst, raw_len, before);
}

static void try_decode(
	uint32_t codec, uint32_t transform, size_t raw_len, const uint8_t *bytes, size_t len)
{
	static uint8_t one[RAW_CAP + 2 * GUARD_LEN], two[RAW_CAP + 2 * GUARD_LEN];
	uint8_t *stored = malloc(len ? len : 1);
	int rc;

	MUST(stored != NULL);
	memcpy(stored, bytes, len);
	rc = decode(codec, transform, stored, len, one + GUARD_LEN, raw_len, 0);
	MUST(decode(codec, transform, stored, len, two + GUARD_LEN, raw_len, 0xff) == rc);
	if (codec > STOUP_CODEC_LAST || transform > STOUP_TRANSFORM_LAST)
		MUST(rc == -ENOTSUP || rc == -EINVAL);
	if (rc == 0)
		MUST(memcmp(one + GUARD_LEN, two + GUARD_LEN, raw_len) == 0);
	if (transform == STOUP_TRANSFORM_FIELDS && rc != -EINVAL && rc != -ENOTSUP)
		MUST(decode_by(1, codec, transform, stored, len, two + GUARD_LEN, raw_len, 0) ==
			rc);
	if (rc == 0)
		MUST(memcmp(one + GUARD_LEN, two + GUARD_LEN, raw_len) == 0);
	free(stored);
}

/* A layout out of the input: per field a type, the gap before it, flags, and its null. */
static void layout_take(struct fuzz_in *in, struct stoup_vol_field fields[FIELD_CAP],
	struct stoup_block_layout *ret)
{
	static const uint8_t widths[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1, 1};
	uint8_t what = fuzz_u8(in);
	uint32_t off = 0;

	memset(ret, 0, sizeof(*ret));
	ret->fields = fields;
	for (ret->field_cnt = what % FIELD_CAP; ret->field_cnt > 0; ret->field_cnt--) {
		struct stoup_vol_field *field = &fields[what % FIELD_CAP - ret->field_cnt];
		uint8_t type = fuzz_u8(in), flags = fuzz_u8(in);

		memset(field, 0, sizeof(*field));
		off += type >> 6;
		field->off = off;
		field->type = (uint8_t)(1 + type % 12);
		field->cnt = (uint16_t)(field->type > 10 ? 1 + flags : 1);
		field->flags = flags & 0x03;
		field->exp10 = (int8_t)(flags >> 4 & 1);
		if (flags & 0x01)
			field->null_bits = fuzz_int(in, widths[type % 12]);
		off += (uint32_t)widths[type % 12] * field->cnt;
	}
	ret->field_cnt = what % FIELD_CAP;
	ret->stride = off + (what >> 5);
}

static void try_encode(const char *name, const char *level, const struct stoup_block_layout *layout,
	const uint8_t *bytes, size_t len)
{
	struct stoup_encoding encoding;
	struct stoup_encoder *encoder;
	size_t cap = stoup_block_encode_cap(len), stored_len = 0;
	uint8_t *stored = malloc(cap + 1), *raw = malloc(len + 1 + 2 * GUARD_LEN);
	uint32_t codec = 9, transform = 9;

	MUST(stored && raw);
	if (stoup_encoding_parse(name, level, &encoding) == 0) {
		MUST(stoup_encoder_create(&encoding, &encoder) == 0);
		MUST(stoup_block_encode(encoder, layout, bytes, len, stored, cap, &stored_len,
			     &codec, &transform) == 0);
		MUST(stored_len <= cap && stored_len <= len);
		MUST(decode(codec, transform, stored, stored_len, raw + GUARD_LEN, len, 0) == 0);
		MUST(memcmp(raw + GUARD_LEN, bytes, len) == 0);
		MUST(decode(codec, transform, stored, stored_len, raw + GUARD_LEN, len + 1, 0) < 0);
		MUST(decode(codec, transform, stored, stored_len, raw + GUARD_LEN, len - 1, 0) < 0);
		if (stored_len > 1)
			MUST(decode(codec, transform, stored, stored_len - 1, raw + GUARD_LEN, len,
				     0) < 0);
		stoup_encoder_destroy(encoder);
	}
	free(raw);
	free(stored);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char *const names[] = {
		"none", "lz4", "lz4hc", "zstd", "fast", "default", "small", "default"};
	struct stoup_vol_field fields[FIELD_CAP];
	struct stoup_block_layout layout;
	struct fuzz_in in = {bytes, len};
	uint8_t codec = fuzz_u8(&in), what = fuzz_u8(&in);
	uint32_t number = (uint32_t)fuzz_int(&in, 3);
	char level[16];

	if (in.left == 0)
		return 0;
	if (what & 128) {
		snprintf(level, sizeof(level), "%d", (int8_t)number);
		if ((codec & 7) > 3)
			layout_take(&in, fields, &layout);
		if (in.left)
			try_encode(names[codec & 7], number & 0x100 ? level : "",
				(codec & 7) > 3 ? &layout : NULL, in.at, in.left);
	} else {
		try_decode(codec & 7, what & 3, (number & 0xffff) * (what & 64 ? 16 : 1), in.at,
			in.left);
	}
	return 0;
}
