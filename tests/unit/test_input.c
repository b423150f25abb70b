/* SPDX-License-Identifier: Apache-2.0 */
/* test_input.c - every packing gives the same stream, and every cut, flip and tail is told. */
#include "producer/input.h"
#include "producer/input_gzip.h"
#include <archive.h>
#include <archive_entry.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <lz4frame.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define TEXT_LEN   400000u
#define PACKED_CAP 1000000u

static char dir_path[64];
static char file_path[96];
static uint8_t text[TEXT_LEN];
static uint8_t packed[PACKED_CAP];
static size_t packed_len;
static uint8_t unpacked[2 * TEXT_LEN + 16];

/* Rows with some repetition: they shrink to a third, so that a file has many blocks. */
static void setup(void)
{
	uint32_t state = 12345;
	snprintf(dir_path, sizeof(dir_path), "/tmp/stoup-input-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir_path));
	snprintf(file_path, sizeof(file_path), "%s/file", dir_path);
	for (size_t i = 0; i < TEXT_LEN; i++) {
		state = state * 1664525u + 1013904223u;
		text[i] = (uint8_t)(i % 8 == 7 ? '\n' : i % 8 < 4 ? '0' : '0' + (state >> 24) % 10);
	}
	packed_len = 0;
}

static void teardown(void)
{
	unlink(file_path);
	rmdir(dir_path);
}

/* ---- packing --------------------------------------------------------------------------------- */

static void add_bytes(const void *bytes, size_t len)
{
	ck_assert_uint_le(packed_len + len, PACKED_CAP);
	memcpy(packed + packed_len, bytes, len);
	packed_len += len;
}

static void add_plain(const uint8_t *bytes, size_t len)
{
	add_bytes(bytes, len);
}

static void add_zstd(const uint8_t *bytes, size_t len)
{
	ZSTD_CCtx *cctx = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(cctx, ZSTD_c_checksumFlag, 1);
	size_t got = ZSTD_compress2(cctx, packed + packed_len, PACKED_CAP - packed_len, bytes, len);
	ck_assert(!ZSTD_isError(got));
	packed_len += got;
	ZSTD_freeCCtx(cctx);
}

static void add_lz4(const uint8_t *bytes, size_t len)
{
	LZ4F_preferences_t preferences = LZ4F_INIT_PREFERENCES;
	preferences.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
	size_t got = LZ4F_compressFrame(
		packed + packed_len, PACKED_CAP - packed_len, bytes, len, &preferences);
	ck_assert(!LZ4F_isError(got));
	packed_len += got;
}

/* By libarchive's writer: a filter over the raw format, or the zip format with some members. */
static void add_archive(
	int (*set)(struct archive *), const char *const *names, const uint8_t *bytes, size_t len)
{
	struct archive *archive = archive_write_new();
	size_t used = 0;
	if (set) {
		archive_write_set_format_raw(archive);
		set(archive);
	} else {
		archive_write_set_format_zip(archive);
	}
	archive_write_set_bytes_in_last_block(archive, 1);
	ck_assert_int_eq(archive_write_open_memory(
				 archive, packed + packed_len, PACKED_CAP - packed_len, &used),
		ARCHIVE_OK);
	for (; *names; names++) {
		struct archive_entry *entry = archive_entry_new();
		bool is_dir = (*names)[strlen(*names) - 1] == '/';
		archive_entry_set_pathname(entry, *names);
		archive_entry_set_filetype(entry, is_dir ? AE_IFDIR : AE_IFREG);
		archive_entry_set_perm(entry, 0644);
		archive_entry_set_size(entry, is_dir ? 0 : (la_int64_t)len);
		ck_assert_int_eq(archive_write_header(archive, entry), ARCHIVE_OK);
		if (!is_dir)
			ck_assert_int_eq(archive_write_data(archive, bytes, len), (la_ssize_t)len);
		archive_entry_free(entry);
	}
	ck_assert_int_eq(archive_write_close(archive), ARCHIVE_OK);
	archive_write_free(archive);
	packed_len += used;
}

static const char *const one_name[] = {"data", NULL};

static void add_gzip(const uint8_t *bytes, size_t len)
{
	add_archive(archive_write_add_filter_gzip, one_name, bytes, len);
}

static void add_xz(const uint8_t *bytes, size_t len)
{
	add_archive(archive_write_add_filter_xz, one_name, bytes, len);
}

static void add_zip(const uint8_t *bytes, size_t len)
{
	add_archive(NULL, one_name, bytes, len);
}

static const struct {
	const char *packing;
	void (*add)(const uint8_t *bytes, size_t len);
} packings[] = {
	{"plain", add_plain},
	{"zstd", add_zstd},
	{"lz4", add_lz4},
	{"gzip", add_gzip},
	{"xz", add_xz},
	{"zip", add_zip},
};

#define PACKING_CNT  6
#define PACKING_ZSTD 1
#define PACKING_LZ4  2
#define PACKING_GZIP 3
#define PACKING_XZ   4
#define PACKING_ZIP  5

/* ---- reading --------------------------------------------------------------------------------- */

static void write_file(void)
{
	unlink(file_path); /* some file systems flush a file that is truncated and written again */
	FILE *file = fopen(file_path, "wb");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(packed, 1, packed_len, file), packed_len);
	fclose(file);
}

/* Read the whole file into `unpacked` in pieces of `piece_len`. Returns its length or the error;
 * `*ret_len` is what came before it. */
static int64_t read_path(
	const char *path, size_t piece_len, size_t *ret_len, struct stoup_error *err)
{
	struct stoup_input *input;
	int64_t got = stoup_input_open(path, &input, err);
	*ret_len = 0;
	if (got < 0)
		return got;
	do {
		size_t room = sizeof(unpacked) - *ret_len;
		got = stoup_input_read(
			input, unpacked + *ret_len, piece_len < room ? piece_len : room, err);
		*ret_len += got > 0 ? (size_t)got : 0;
		ck_assert_uint_eq(stoup_input_stream_off(input), *ret_len);
	} while (got > 0);
	if (got == 0)
		ck_assert_int_eq(stoup_input_read(input, unpacked, 1, err), 0);
	else
		ck_assert_int_eq(stoup_input_read(input, unpacked, 1, NULL), got);
	stoup_input_close(input);
	return got < 0 ? got : (int64_t)*ret_len;
}

static int64_t read_file(struct stoup_error *err)
{
	size_t len;
	write_file();
	return read_path(file_path, 65536, &len, err);
}

static void assert_refused(int code, const char *part)
{
	struct stoup_error err = {0};
	ck_assert_int_eq(read_file(&err), code);
	ck_assert_int_eq(err.code, code);
	ck_assert_msg(strstr(err.text, part), "'%s' lacks '%s'", err.text, part);
	ck_assert_msg(strstr(err.text, file_path), "'%s' does not name the file", err.text);
}

START_TEST(every_packing_gives_the_same_stream)
{
	static const size_t piece_lens[] = {1000, 65536, TEXT_LEN, 2 * TEXT_LEN};
	packings[_i].add(text, TEXT_LEN);
	write_file();
	for (size_t i = 0; i < sizeof(piece_lens) / sizeof(piece_lens[0]); i++) {
		struct stoup_error err = {0};
		size_t len;
		memset(unpacked, 0, sizeof(unpacked));
		ck_assert_msg(read_path(file_path, piece_lens[i], &len, &err) == TEXT_LEN, "%s",
			err.text);
		ck_assert_mem_eq(unpacked, text, TEXT_LEN);
	}
}
END_TEST

START_TEST(an_input_knows_its_name_packing_and_progress)
{
	struct stoup_input *input;
	packings[_i].add(text, TEXT_LEN);
	write_file();
	ck_assert_int_eq(stoup_input_open(file_path, &input, NULL), 0);
	ck_assert_str_eq(stoup_input_name(input), file_path);
	ck_assert_str_eq(stoup_input_packing(input), packings[_i].packing);
	ck_assert_uint_eq(stoup_input_file_len(input), packed_len);
	ck_assert_uint_eq(stoup_input_stream_off(input), 0);
	while (stoup_input_read(input, unpacked, sizeof(unpacked), NULL) > 0)
		;
	ck_assert_uint_le(stoup_input_file_off(input), packed_len);
	ck_assert_uint_ge(stoup_input_file_off(input), packed_len - 100);
	stoup_input_close(input);
}
END_TEST

START_TEST(a_read_fills_the_buffer_unless_the_stream_ends)
{
	struct stoup_input *input;
	packings[_i].add(text, TEXT_LEN);
	write_file();
	ck_assert_int_eq(stoup_input_open(file_path, &input, NULL), 0);
	ck_assert_int_eq(stoup_input_read(input, unpacked, TEXT_LEN - 10, NULL), TEXT_LEN - 10);
	ck_assert_int_eq(stoup_input_read(input, unpacked, 100, NULL), 10);
	ck_assert_int_eq(stoup_input_read(input, unpacked, 100, NULL), 0);
	stoup_input_close(input);
}
END_TEST

START_TEST(a_peek_takes_nothing)
{
	struct stoup_input *input;
	const uint8_t *bytes;
	packings[_i].add(text, 5000);
	write_file();
	ck_assert_int_eq(stoup_input_open(file_path, &input, NULL), 0);
	ck_assert_int_eq(stoup_input_peek(input, 10, &bytes, NULL), 10);
	ck_assert_mem_eq(bytes, text, 10);
	ck_assert_int_eq(stoup_input_peek(input, 100000, &bytes, NULL), 4096);
	ck_assert_mem_eq(bytes, text, 4096);
	ck_assert_uint_eq(stoup_input_stream_off(input), 0);
	ck_assert_int_eq(stoup_input_read(input, unpacked, 100, NULL), 100);
	ck_assert_mem_eq(unpacked, text, 100);
	ck_assert_int_eq(stoup_input_peek(input, 4096, &bytes, NULL), 4096);
	ck_assert_mem_eq(bytes, text + 100, 4096);
	ck_assert_int_eq(stoup_input_read(input, unpacked, sizeof(unpacked), NULL), 4900);
	ck_assert_mem_eq(unpacked, text + 100, 4900);
	ck_assert_int_eq(stoup_input_peek(input, 10, &bytes, NULL), 0);
	stoup_input_close(input);
}
END_TEST

START_TEST(a_pipe_is_read_like_a_file)
{
	struct stoup_error err = {0};
	int old_fd = dup(STDIN_FILENO);
	int fds[2];
	size_t len;
	packings[_i].add(text, TEXT_LEN);
	ck_assert_int_eq(pipe(fds), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		close(fds[0]);
		for (size_t at = 0; at < packed_len;) {
			ssize_t put = write(
				fds[1], packed + at, packed_len - at < 777 ? packed_len - at : 777);
			at += put > 0 ? (size_t)put : packed_len;
		}
		_exit(0);
	}
	close(fds[1]);
	dup2(fds[0], STDIN_FILENO);
	close(fds[0]);
	int64_t got = read_path("-", 65536, &len, &err);
	dup2(old_fd, STDIN_FILENO);
	close(old_fd);
	ck_assert_msg(got == TEXT_LEN, "%s", err.text);
	ck_assert_mem_eq(unpacked, text, TEXT_LEN);
}
END_TEST

/* ---- several frames -------------------------------------------------------------------------- */

START_TEST(frames_one_after_the_other_are_one_stream)
{
	struct stoup_error err = {0};
	for (size_t at = 0; at < TEXT_LEN; at += TEXT_LEN / 8)
		packings[_i].add(text + at, TEXT_LEN / 8);
	ck_assert_msg(read_file(&err) == TEXT_LEN, "%s", err.text);
	ck_assert_mem_eq(unpacked, text, TEXT_LEN);
}
END_TEST

START_TEST(an_empty_stream_ends_at_once)
{
	struct stoup_error err = {0};
	packings[_i].add(text, 0);
	ck_assert_msg(read_file(&err) == 0, "%s", err.text);
}
END_TEST

START_TEST(skippable_frames_are_passed_over)
{
	static const uint8_t skippable[] = {0x5a, 0x2a, 0x4d, 0x18, 5, 0, 0, 0, 1, 2, 3, 4, 5};
	struct stoup_error err = {0};
	add_bytes(skippable, sizeof(skippable));
	add_zstd(text, 1000);
	add_bytes(skippable, sizeof(skippable));
	add_bytes(skippable, sizeof(skippable));
	add_zstd(text + 1000, 1000);
	add_bytes(skippable, sizeof(skippable));
	ck_assert_msg(read_file(&err) == 2000, "%s", err.text);
	ck_assert_mem_eq(unpacked, text, 2000);
}
END_TEST

START_TEST(a_zstd_frame_without_its_content_length_is_read)
{
	struct stoup_error err = {0};
	ZSTD_CCtx *cctx = ZSTD_createCCtx();
	ZSTD_inBuffer in = {text, TEXT_LEN, 0};
	ZSTD_outBuffer out = {packed, PACKED_CAP, 0};
	ck_assert(!ZSTD_isError(ZSTD_compressStream2(cctx, &out, &in, ZSTD_e_continue)));
	ck_assert_uint_eq(ZSTD_compressStream2(cctx, &out, &in, ZSTD_e_end), 0);
	ZSTD_freeCCtx(cctx);
	packed_len = out.pos;
	ck_assert_uint_eq(ZSTD_getFrameContentSize(packed, packed_len), ZSTD_CONTENTSIZE_UNKNOWN);
	ck_assert_msg(read_file(&err) == TEXT_LEN, "%s", err.text);
	ck_assert_mem_eq(unpacked, text, TEXT_LEN);
}
END_TEST

START_TEST(a_window_beyond_128_mib_is_refused_with_advice)
{
	/* Magic, a descriptor without content length, and a window of 2^28; then one raw block. */
	static const uint8_t frame[] = {
		0x28, 0xb5, 0x2f, 0xfd, 0x00, (28 - 10) << 3, 0x09, 0x00, 0x00, 'x'};
	add_bytes(frame, sizeof(frame));
	assert_refused(-EFBIG, "window of more than 128 MiB");
}
END_TEST

START_TEST(a_window_of_128_mib_is_read)
{
	static const uint8_t frame[] = {
		0x28, 0xb5, 0x2f, 0xfd, 0x00, (27 - 10) << 3, 0x09, 0x00, 0x00, 'x'};
	struct stoup_error err = {0};
	add_bytes(frame, sizeof(frame));
	ck_assert_msg(read_file(&err) == 1, "%s", err.text);
	ck_assert_uint_eq(unpacked[0], 'x');
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

START_TEST(garbage_behind_the_last_frame_is_refused_with_its_offset)
{
	static const char garbage[] = "XYZ garbage";
	for (size_t len = 1; len < sizeof(garbage); len++) {
		char expected[64];
		packed_len = 0;
		packings[_i].add(text, 20000);
		snprintf(expected, sizeof(expected), "at offset %zu", packed_len);
		add_bytes(garbage, len);
		if (_i == PACKING_XZ) /* liblzma does not say which of the two it is */
			assert_refused(-ENODATA, "or has garbage at its end");
		else
			assert_refused(-EBADMSG, expected);
	}
}
END_TEST

START_TEST(a_file_cut_anywhere_is_never_taken_for_whole)
{
	packings[_i].add(text, 1000);
	size_t whole_len = packed_len;
	for (size_t len = 8; len < whole_len; len++) {
		struct stoup_error err = {0};
		packed_len = len;
		int64_t rc = read_file(&err);
		ck_assert_msg(
			rc < 0, "cut at %zu of %zu: read %lld", len, whole_len, (long long)rc);
		ck_assert_ptr_nonnull(strstr(err.text, file_path));
	}
}
END_TEST

START_TEST(a_cut_frame_is_told_with_the_offset_where_it_begins)
{
	char expected[80];
	packings[_i].add(text, 50000);
	size_t first_len = packed_len;
	packings[_i].add(text, 50000);
	packed_len -= 5;
	snprintf(expected, sizeof(expected), "frame that begins at offset %zu", first_len);
	assert_refused(-ENODATA, expected);
}
END_TEST

START_TEST(what_is_whole_before_a_cut_is_read_before_the_error)
{
	struct stoup_error err = {0};
	size_t len;
	packings[_i].add(text, 50000);
	packings[_i].add(text + 50000, 1000);
	packed_len -= 5;
	write_file();
	ck_assert_int_eq(read_path(file_path, 2 * TEXT_LEN, &len, &err), -ENODATA);
	ck_assert_uint_ge(len, 50000);
	ck_assert_mem_eq(unpacked, text, len);
}
END_TEST

/* Flip each bit behind the magic of a small file: an error, or, where the bit says nothing about
 * the data (a time stamp, an operating system), the same stream; never another stream. */
START_TEST(no_flipped_bit_changes_the_stream_unseen)
{
	packings[_i].add(text, 400);
	unsigned seen_cnt = 0;
	for (size_t bit = 48; bit < packed_len * 8; bit++) {
		struct stoup_error err = {0};
		packed[bit / 8] ^= (uint8_t)(1u << bit % 8);
		int64_t rc = read_file(&err);
		packed[bit / 8] ^= (uint8_t)(1u << bit % 8);
		seen_cnt += rc < 0;
		ck_assert_msg(rc < 0 || (rc == 400 && memcmp(unpacked, text, 400) == 0),
			"bit %zu: read %lld bytes", bit, (long long)rc);
	}
	ck_assert_uint_gt(seen_cnt, (unsigned)packed_len * 4);
}
END_TEST

START_TEST(a_flipped_checksum_of_any_gzip_member_is_seen)
{
	size_t ends[4] = {0};
	for (size_t i = 0; i < 4; i++) {
		add_gzip(text + i * 100000, 100000);
		ends[i] = packed_len;
	}
	ck_assert_int_eq(read_file(NULL), 400000);
	for (size_t i = 0; i < 4; i++) {
		char expected[96];
		snprintf(expected, sizeof(expected), "gzip member that begins at offset %zu",
			i ? ends[i - 1] : 0);
		packed[ends[i] - 5] ^= 1; /* crc32 */
		assert_refused(-EBADMSG, expected);
		packed[ends[i] - 5] ^= 1;
		packed[ends[i] - 1] ^= 1; /* length */
		assert_refused(-EBADMSG, expected);
		packed[ends[i] - 1] ^= 1;
	}
}
END_TEST

START_TEST(a_flipped_checksum_of_an_empty_last_gzip_member_is_seen)
{
	add_gzip(text, 1000);
	add_gzip(text, 0);
	ck_assert_int_eq(read_file(NULL), 1000);
	packed[packed_len - 5] ^= 1;
	assert_refused(-EBADMSG, "checksum or length of the gzip member");
}
END_TEST

START_TEST(gzip_members_of_any_length_are_checked)
{
	static const size_t lens[] = {0, 1, 65535, 65536, 65537, 0, 0, 131072, 7};
	struct stoup_error err = {0};
	size_t at = 0;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		add_gzip(text + at, lens[i]);
		at += lens[i];
	}
	ck_assert_msg(read_file(&err) == (int64_t)at, "%s", err.text);
	ck_assert_mem_eq(unpacked, text, at);
}
END_TEST

/* One layer is unpacked, whatever the contents begin with: a packed file, or bytes that look like one. */
START_TEST(contents_that_look_packed_are_left_as_they_are)
{
	static const char *const heads[] = {"\x1f\x8b\x08\0\0\0\0\0\0\3",
		"\xfd\x37zXZ\0\0\4\xe6\xd6", "\x28\xb5\x2f\xfd\x20\5\x29\0\0h"};
	static uint8_t twice[PACKED_CAP];
	struct stoup_error err = {0};
	size_t twice_len;

	for (size_t at = 0; at < sizeof(heads) / sizeof(heads[0]); at++) {
		packed_len = 0;
		memcpy(twice, text, 1000);
		memcpy(twice, heads[at], 10);
		packings[_i].add(twice, 1000);
		ck_assert_int_eq(read_file(&err), 1000);
		ck_assert_mem_eq(unpacked, twice, 1000);
	}
	packed_len = 0;
	packings[_i].add(text, 1000);
	twice_len = packed_len;
	memcpy(twice, packed, twice_len);
	packed_len = 0;
	packings[_i].add(twice, twice_len);
	ck_assert_int_eq(read_file(&err), (int64_t)twice_len);
	ck_assert_mem_eq(unpacked, twice, twice_len);
}
END_TEST

START_TEST(crc32_is_that_of_the_published_check_value)
{
	struct stoup_gzip_check *check = stoup_gzip_check_create();
	const uint8_t *digits = (const uint8_t *)"123456789";
	ck_assert_uint_eq(stoup_gzip_crc32(check, 0, digits, 9), 0xcbf43926);
	uint32_t crc = stoup_gzip_crc32(check, 0, digits, 4);
	ck_assert_uint_eq(stoup_gzip_crc32(check, crc, digits + 4, 5), 0xcbf43926);
	ck_assert_uint_eq(stoup_gzip_crc32(check, 0, digits, 0), 0);
	stoup_gzip_check_destroy(check);
}
END_TEST

/* ---- zip ------------------------------------------------------------------------------------- */

START_TEST(a_zip_of_several_files_is_refused_with_their_names)
{
	static const char *const names[] = {"a.csv", "sub/b.csv", "c.csv", NULL};
	add_archive(NULL, names, text, 1000);
	assert_refused(-E2BIG, "(a.csv, sub/b.csv, c.csv)");
}
END_TEST

START_TEST(folders_and_resource_forks_in_a_zip_are_no_files)
{
	static const char *const names[] = {"sub/", "sub/b.csv", "__MACOSX/sub/._b.csv", NULL};
	struct stoup_error err = {0};
	add_archive(NULL, names, text, 1000);
	ck_assert_msg(read_file(&err) == 1000, "%s", err.text);
	ck_assert_mem_eq(unpacked, text, 1000);
}
END_TEST

START_TEST(a_zip_without_files_is_refused)
{
	static const char *const names[] = {"sub/", NULL};
	add_archive(NULL, names, text, 0);
	assert_refused(-ENODATA, "without a file");
}
END_TEST

/* ---- what is no file ------------------------------------------------------------------------- */

START_TEST(a_missing_file_a_directory_and_an_empty_file_are_told)
{
	struct stoup_error err = {0};
	struct stoup_input *input;
	ck_assert_int_eq(stoup_input_open(file_path, &input, &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.text, file_path));
	ck_assert_int_eq(stoup_input_open(dir_path, &input, &err), -EISDIR);
	ck_assert_ptr_nonnull(strstr(err.text, "is a directory"));
	assert_refused(-ENODATA, "is empty");
}
END_TEST

START_TEST(dbz_is_refused_with_advice)
{
	static const uint8_t dbz[] = {
		0x51, 0x2a, 0x4d, 0x18, 8, 0, 0, 0, 'D', 'B', 'Z', 1, 0, 0, 0, 0};
	add_bytes(dbz, sizeof(dbz));
	assert_refused(-EPROTONOSUPPORT, "before DBN");
}
END_TEST

START_TEST(legacy_lz4_is_refused_with_advice)
{
	static const uint8_t legacy[] = {0x02, 0x21, 0x4c, 0x18, 0, 0, 0, 0, 0, 0, 0, 0};
	add_bytes(legacy, sizeof(legacy));
	assert_refused(-EPROTONOSUPPORT, "without -l");
}
END_TEST

START_TEST(a_file_shorter_than_any_magic_is_plain)
{
	for (size_t len = 1; len < 12; len++) {
		packed_len = 0;
		add_bytes("(\xb5/", len < 3 ? len : 3);
		ck_assert_int_eq(read_file(NULL), len < 3 ? (int64_t)len : 3);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("input");
	TCase *tcase = tcase_create("input");
	tcase_set_timeout(tcase, 0);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, every_packing_gives_the_same_stream, 0, PACKING_CNT);
	tcase_add_loop_test(tcase, an_input_knows_its_name_packing_and_progress, 0, PACKING_CNT);
	tcase_add_loop_test(tcase, a_read_fills_the_buffer_unless_the_stream_ends, 0, PACKING_CNT);
	tcase_add_loop_test(tcase, a_peek_takes_nothing, 0, PACKING_CNT);
	tcase_add_loop_test(tcase, a_pipe_is_read_like_a_file, 0, PACKING_CNT);
	tcase_add_loop_test(
		tcase, frames_one_after_the_other_are_one_stream, PACKING_ZSTD, PACKING_ZIP);
	tcase_add_loop_test(tcase, an_empty_stream_ends_at_once, PACKING_ZSTD, PACKING_CNT);
	tcase_add_test(tcase, skippable_frames_are_passed_over);
	tcase_add_test(tcase, a_zstd_frame_without_its_content_length_is_read);
	tcase_add_test(tcase, a_window_beyond_128_mib_is_refused_with_advice);
	tcase_add_test(tcase, a_window_of_128_mib_is_read);
	tcase_add_loop_test(tcase, garbage_behind_the_last_frame_is_refused_with_its_offset,
		PACKING_ZSTD, PACKING_CNT);
	tcase_add_loop_test(
		tcase, a_file_cut_anywhere_is_never_taken_for_whole, PACKING_ZSTD, PACKING_CNT);
	tcase_add_loop_test(tcase, a_cut_frame_is_told_with_the_offset_where_it_begins,
		PACKING_ZSTD, PACKING_LZ4 + 1);
	tcase_add_loop_test(tcase, what_is_whole_before_a_cut_is_read_before_the_error,
		PACKING_ZSTD, PACKING_LZ4 + 1);
	tcase_add_loop_test(
		tcase, no_flipped_bit_changes_the_stream_unseen, PACKING_ZSTD, PACKING_CNT);
	tcase_add_test(tcase, a_flipped_checksum_of_any_gzip_member_is_seen);
	tcase_add_test(tcase, a_flipped_checksum_of_an_empty_last_gzip_member_is_seen);
	tcase_add_test(tcase, gzip_members_of_any_length_are_checked);
	tcase_add_loop_test(
		tcase, contents_that_look_packed_are_left_as_they_are, PACKING_ZSTD, PACKING_CNT);
	tcase_add_test(tcase, crc32_is_that_of_the_published_check_value);
	tcase_add_test(tcase, a_zip_of_several_files_is_refused_with_their_names);
	tcase_add_test(tcase, folders_and_resource_forks_in_a_zip_are_no_files);
	tcase_add_test(tcase, a_zip_without_files_is_refused);
	tcase_add_test(tcase, a_missing_file_a_directory_and_an_empty_file_are_told);
	tcase_add_test(tcase, dbz_is_refused_with_advice);
	tcase_add_test(tcase, legacy_lz4_is_refused_with_advice);
	tcase_add_test(tcase, a_file_shorter_than_any_magic_is_plain);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed_cnt = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed_cnt == 0 ? 0 : 1;
}
