/* SPDX-License-Identifier: Apache-2.0 */
/* input.c - open a file, find out how it is packed, and hand out its stream. */
#include "producer/input.h"
#include "producer/input_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define LZMA_HEADER_LEN  13
#define LZMA_LEN_LOG_CAP 40 /* 1 TiB unpacked: more is no length */

struct stoup_input {
	struct stoup_input_raw raw;
	const struct stoup_input_decoder *decoder;
	void *state;
	bool is_stdin;
	bool is_ended;
	struct stoup_error failure; /* code 0: none so far */
	uint64_t stream_off;
	size_t peek_pos;
	size_t peek_end;
	char *path;
	uint8_t peek[STOUP_INPUT_PEEK_CAP];
	uint8_t raw_buf[STOUP_INPUT_RAW_CAP];
};

/* ---- raw bytes ------------------------------------------------------------------------------- */

int64_t stoup_input_raw_need(struct stoup_input_raw *raw, size_t len, struct stoup_error *err)
{
	if (raw->end - raw->pos < len && raw->pos > 0) {
		memmove(raw->buf, raw->buf + raw->pos, raw->end - raw->pos);
		raw->end -= raw->pos;
		raw->pos = 0;
	}
	while (raw->end - raw->pos < len && !raw->is_eof) {
		ssize_t got = read(raw->fd, raw->buf + raw->end, STOUP_INPUT_RAW_CAP - raw->end);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return stoup_error_set(err, -errno, "%s: cannot read at offset %llu: %s",
				raw->name, (unsigned long long)(raw->off + raw->end - raw->pos),
				strerror(errno));
		raw->is_eof = got == 0;
		raw->end += (size_t)got;
	}
	return (int64_t)(raw->end - raw->pos);
}

void stoup_input_raw_take(struct stoup_input_raw *raw, size_t len)
{
	raw->pos += len;
	raw->off += len;
}

/* ---- plain ----------------------------------------------------------------------------------- */

static int plain_open(struct stoup_input_raw *raw, void **ret, struct stoup_error *err)
{
	(void)err;
	*ret = raw;
	return 0;
}

static int64_t plain_read(void *state, void *buf, size_t len, struct stoup_error *err)
{
	struct stoup_input_raw *raw = state;
	int64_t have = stoup_input_raw_need(raw, 1, err);
	if (have <= 0)
		return have;
	if ((uint64_t)have < len)
		len = (size_t)have;
	memcpy(buf, raw->buf + raw->pos, len);
	stoup_input_raw_take(raw, len);
	return (int64_t)len;
}

static void plain_close(void *state)
{
	(void)state;
}

static const struct stoup_input_decoder input_plain = {
	"plain", plain_open, plain_read, plain_close};

/* ---- what is it? ----------------------------------------------------------------------------- */

static bool starts(const uint8_t *bytes, size_t len, const char *magic, size_t magic_len)
{
	return len >= magic_len && memcmp(bytes, magic, magic_len) == 0;
}

static bool is_skippable(const uint8_t *bytes, size_t len)
{
	return len >= 4 && (bytes[0] & 0xf0) == 0x50 && memcmp(bytes + 1, "\x2a\x4d\x18", 3) == 0;
}

/* The old LZMA container has no magic, but a header that hardly anything else begins with: properties 5D,
 * a dictionary of 2^n or 2^n + 2^(n-1) bytes, and a length that is unknown (all ones) or no nonsense.
 * Returns the dictionary's bytes, 0 for what is no lzma. */
static uint32_t lzma_dictionary(const uint8_t *bytes, size_t len)
{
	uint64_t unpacked_len = 0;
	uint32_t dictionary = 0;

	if (len < LZMA_HEADER_LEN || bytes[0] != 0x5d)
		return 0;
	for (unsigned i = 0; i < 4; i++)
		dictionary |= (uint32_t)bytes[1 + i] << 8 * i;
	for (unsigned i = 0; i < 8; i++)
		unpacked_len |= (uint64_t)bytes[5 + i] << 8 * i;
	if (unpacked_len != UINT64_MAX && unpacked_len >> LZMA_LEN_LOG_CAP != 0)
		return 0;
	for (unsigned n = 12; n < 32; n++)
		if (dictionary == UINT32_C(1) << n || dictionary == UINT32_C(3) << (n - 1))
			return dictionary;
	return 0;
}

/* An empty file of these names is data: an hour without ticks. */
static bool may_be_empty(const char *name)
{
	size_t len = strlen(name);

	return len >= 4 && strcasecmp(name + len - 4, ".bi5") == 0;
}

/* A skippable frame can open a zstd as well as an lz4 file: zstd writers do it (pzstd, seekable
 * zstd), lz4 ones hardly ever, so it is read as zstd. */
static const struct stoup_input_decoder *decoder_of(const uint8_t *bytes, size_t len)
{
	if (starts(bytes, len, "\x28\xb5\x2f\xfd", 4) || is_skippable(bytes, len))
		return &stoup_input_zstd;
	if (starts(bytes, len, "\x1f\x8b", 2))
		return &stoup_input_gzip;
	if (starts(bytes, len,
		    "\xfd"
		    "7zXZ\0",
		    6))
		return &stoup_input_xz;
	if (starts(bytes, len, "\x04\x22\x4d\x18", 4) || starts(bytes, len, "\x02\x21\x4c\x18", 4))
		return &stoup_input_lz4;
	if (starts(bytes, len, "PK\x03\x04", 4) || starts(bytes, len, "PK\x05\x06", 4))
		return &stoup_input_zip;
	if (lzma_dictionary(bytes, len) > 0)
		return &stoup_input_lzma;
	return &input_plain;
}

static int detect(struct stoup_input *input, struct stoup_error *err)
{
	struct stoup_input_raw *raw = &input->raw;
	int64_t have = stoup_input_raw_need(raw, LZMA_HEADER_LEN, err);
	if (have < 0)
		return (int)have;
	if (have == 0 && may_be_empty(raw->name)) {
		input->decoder = &input_plain;
		return 0;
	}
	if (have == 0)
		return stoup_error_set(err, -ENODATA,
			"%s is empty: was it written whole? Get it again, or leave it out",
			raw->name);
	const uint8_t *bytes = raw->buf + raw->pos;
	if (is_skippable(bytes, (size_t)have) && have >= 12 && memcmp(bytes + 8, "DBZ", 3) == 0)
		return stoup_error_set(err, -EPROTONOSUPPORT,
			"%s is a DBZ file, Databento's format before DBN, which stoup does not read: "
			"convert it (dbn old.dbz -o new.dbn, of Databento's dbn-cli), or download it "
			"again",
			raw->name);
	if (lzma_dictionary(bytes, (size_t)have) > UINT32_C(1) << STOUP_INPUT_WINDOW_LOG_CAP)
		return stoup_error_set(err, -EFBIG,
			"%s: lzma with a dictionary of %u MiB, at most %u are allowed: damaged, or pack it "
			"anew",
			raw->name, lzma_dictionary(bytes, (size_t)have) >> 20,
			1u << (STOUP_INPUT_WINDOW_LOG_CAP - 20));
	input->decoder = decoder_of(bytes, (size_t)have);
	return 0;
}

static int open_file(struct stoup_input *input, const char *path, struct stoup_error *err)
{
	struct stoup_input_raw *raw = &input->raw;
	struct stat st;
	input->is_stdin = strcmp(path, "-") == 0;
	raw->name = input->is_stdin ? "standard input" : input->path;
	raw->fd = input->is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (raw->fd < 0)
		return stoup_error_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	if (fstat(raw->fd, &st) < 0)
		return stoup_error_set(
			err, -errno, "cannot stat %s: %s", raw->name, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return stoup_error_set(
			err, -EISDIR, "%s is a directory: give the files in it", raw->name);
	if (S_ISREG(st.st_mode)) {
		/* Standard input may be a file of which something was read before. */
		raw->is_seekable = lseek(raw->fd, 0, SEEK_CUR) == 0;
		raw->file_len = raw->is_seekable ? (uint64_t)st.st_size : 0;
		posix_fadvise(raw->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	}
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int input_open(const char *path, int64_t member, const char *name, struct stoup_input **ret,
	struct stoup_error *err)
{
	struct stoup_input *input = calloc(1, sizeof(*input));
	int rc;
	if (!input)
		return stoup_error_set(err, -ENOMEM, "no memory to open %s", path);
	input->raw.fd = -1;
	input->raw.buf = input->raw_buf;
	input->raw.member = member;
	input->path = strdup(name);
	if (!input->path) {
		rc = stoup_error_set(err, -ENOMEM, "no memory to open %s", path);
		goto out_close;
	}
	rc = open_file(input, path, err);
	if (rc < 0)
		goto out_close;
	rc = detect(input, err);
	if (rc < 0)
		goto out_close;
	rc = input->decoder->open(&input->raw, &input->state, err);
	if (rc < 0)
		goto out_close;
	*ret = input;
	return 0;
out_close:
	stoup_input_close(input);
	return rc;
}

int stoup_input_open(const char *path, struct stoup_input **ret, struct stoup_error *err)
{
	return input_open(path, -1, path, ret, err);
}

int stoup_input_open_member(const char *path, uint32_t idx, const char *name,
	struct stoup_input **ret, struct stoup_error *err)
{
	return input_open(path, idx, name, ret, err);
}

int stoup_input_zip_members(
	const char *path, char ***ret, uint32_t *ret_cnt, struct stoup_error *err)
{
	static const uint8_t magic[4] = {'P', 'K', 3, 4};
	struct stoup_input *input = calloc(1, sizeof(*input));
	struct stoup_error why = {0};
	int rc = 0;

	*ret = NULL;
	*ret_cnt = 0;
	if (!input)
		return stoup_error_set(err, -ENOMEM, "no memory to open %s", path);
	input->raw.fd = -1;
	input->raw.buf = input->raw_buf;
	input->path = strdup(path);
	if (!input->path)
		rc = stoup_error_set(err, -ENOMEM, "no memory to open %s", path);
	else if (open_file(input, path, &why) == 0 && input->raw.is_seekable &&
		 stoup_input_raw_need(&input->raw, sizeof(magic), &why) >= (int64_t)sizeof(magic) &&
		 memcmp(input->raw.buf + input->raw.pos, magic, sizeof(magic)) == 0)
		rc = stoup_input_zip_list(&input->raw, ret, ret_cnt, err);
	stoup_input_close(input);
	return rc;
}

void stoup_input_close(struct stoup_input *input)
{
	if (!input)
		return;
	if (input->state)
		input->decoder->close(input->state);
	if (input->raw.fd >= 0 && !input->is_stdin)
		close(input->raw.fd);
	free(input->path);
	free(input);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Fill `buf` from the decoder; a failure is kept for the calls that come. */
static size_t pull(struct stoup_input *input, uint8_t *buf, size_t len)
{
	size_t got = 0;
	while (got < len && !input->is_ended && !input->failure.code) {
		struct stoup_error err = {0};
		int64_t rc = input->decoder->read(input->state, buf + got, len - got, &err);
		if (rc > 0)
			got += (size_t)rc;
		else if (rc == 0)
			input->is_ended = true;
		else
			input->failure = err;
	}
	return got;
}

static int64_t end_or_failure(const struct stoup_input *input, struct stoup_error *err)
{
	if (input->failure.code && err)
		*err = input->failure;
	return input->failure.code;
}

int64_t stoup_input_read(struct stoup_input *input, void *buf, size_t len, struct stoup_error *err)
{
	uint8_t *dst = buf;
	size_t got = input->peek_end - input->peek_pos;
	if (got > len)
		got = len;
	memcpy(dst, input->peek + input->peek_pos, got);
	input->peek_pos += got;
	got += pull(input, dst + got, len - got);
	input->stream_off += got;
	if (got == 0)
		return end_or_failure(input, err);
	return (int64_t)got;
}

int64_t stoup_input_peek(
	struct stoup_input *input, size_t len, const uint8_t **ret, struct stoup_error *err)
{
	size_t have = input->peek_end - input->peek_pos;
	if (len > STOUP_INPUT_PEEK_CAP)
		len = STOUP_INPUT_PEEK_CAP;
	if (have < len) {
		memmove(input->peek, input->peek + input->peek_pos, have);
		input->peek_pos = 0;
		input->peek_end = have + pull(input, input->peek + have, len - have);
		have = input->peek_end;
	}
	if (have == 0)
		return end_or_failure(input, err);
	*ret = input->peek + input->peek_pos;
	return (int64_t)(have < len ? have : len);
}

/* ---- facts ----------------------------------------------------------------------------------- */

const char *stoup_input_name(const struct stoup_input *input)
{
	return input->raw.name;
}

const char *stoup_input_packing(const struct stoup_input *input)
{
	return input->decoder->packing;
}

uint64_t stoup_input_file_off(const struct stoup_input *input)
{
	return input->raw.off;
}

uint64_t stoup_input_file_len(const struct stoup_input *input)
{
	return input->raw.file_len;
}

uint64_t stoup_input_stream_off(const struct stoup_input *input)
{
	return input->stream_off;
}
