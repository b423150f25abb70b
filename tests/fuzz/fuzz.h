/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - what the fuzz targets share: choices read out of an input, and claims that must hold.
 *
 *      input   [choice][choice][len][bytes ...][choice] ...   --fuzz_u8, fuzz_u16, fuzz_take-->
 *
 * Invariant: an input that ends early reads as zeros, so every prefix of an input is an input.
 */
#ifndef STOUP_TESTS_FUZZ_H
#define STOUP_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct fuzz_in {
	const uint8_t *at;
	size_t left;
};

/* A claim that must hold whatever the input is. */
#define MUST(claim) fuzz_must((claim) ? 1 : 0, #claim, __FILE__, __LINE__)

static inline void fuzz_must(int holds, const char *claim, const char *file, int line)
{
	if (holds)
		return;
	fprintf(stderr, "%s:%d: violated: %s\n", file, line, claim);
	abort();
}

/* Take up to `want` bytes that stay where they are. Returns how many there are. */
static inline size_t fuzz_take(struct fuzz_in *in, size_t want, const uint8_t **ret)
{
	size_t have = want < in->left ? want : in->left;

	*ret = in->at;
	in->at += have;
	in->left -= have;
	return have;
}

static inline uint64_t fuzz_int(struct fuzz_in *in, size_t len)
{
	const uint8_t *bytes;
	uint64_t value = 0;

	for (size_t i = fuzz_take(in, len, &bytes); i-- > 0;)
		value = value << 8 | bytes[i];
	return value;
}

static inline uint8_t fuzz_u8(struct fuzz_in *in)
{
	return (uint8_t)fuzz_int(in, 1);
}

static inline uint16_t fuzz_u16(struct fuzz_in *in)
{
	return (uint16_t)fuzz_int(in, 2);
}

/* Take up to `want` bytes as a NUL-terminated text on the heap (to be freed). */
static inline char *fuzz_text(struct fuzz_in *in, size_t want)
{
	const uint8_t *bytes;
	size_t len = fuzz_take(in, want, &bytes);
	char *text = malloc(len + 1);

	MUST(text != NULL);
	memcpy(text, bytes, len);
	text[len] = 0;
	return text;
}

/* A file in memory that holds the bytes, its position at the start. */
static inline int fuzz_file(const void *bytes, size_t len)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	MUST(fd >= 0);
	MUST(pwrite(fd, bytes, len, 0) == (ssize_t)len);
	return fd;
}

#endif
