/* SPDX-License-Identifier: Apache-2.0 */
/* input_archive.c - gzip, xz, lzma and zip through libarchive.
 *
 *      raw --feed--> libarchive --next_data--> [block] --copy--> caller
 *       |                                         |
 *       +--- bytes fed ---> gzip_check <--- block, raw offset
 *
 * libarchive 3.6 does not look at the checksums of gzip and ends quietly where garbage follows the
 * last member; input_gzip.c makes up for that. Of zip it wants one file inside; for a file on disk
 * all names are read before (a pipe shows further ones only at its end).
 */
#include "producer/input_internal.h"
#include "producer/input_gzip.h"
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_CAP       120 /* bytes of member names in a text: three usual ones */
#define XZ_HEADER_LEN   12  /* of a stream */
#define LZMA_HEADER_LEN 13  /* properties, dictionary, length */
#define ZIP_END_LEN     22u
#define ZIP_TAIL_CAP    (ZIP_END_LEN + 65535u) /* end record and the longest comment */

struct archive_state {
	struct stoup_input_raw *raw;
	struct archive *archive;
	struct stoup_gzip_check *gzip; /* NULL: not gzip */
	struct stoup_error fed;        /* a failed read(2) inside a callback */
	const char *packing;
	const uint8_t *block;
	size_t block_pos;
	size_t block_len;
	uint64_t lzma_len; /* bytes that an lzma header says there are; UINT64_MAX: it says none */
	uint64_t unpacked_len;
	bool is_zip;
	bool is_lzma;
	bool is_empty; /* no byte in it */
	bool is_ended;
	char names[NAMES_CAP]; /* of the files in a zip, as many as fit */
};

/* ---- callbacks ------------------------------------------------------------------------------- */

static la_ssize_t feed(struct archive *archive, void *arg, const void **ret)
{
	struct archive_state *state = arg;
	int64_t have = stoup_input_raw_need(state->raw, 1, &state->fed);
	if (have < 0) {
		archive_set_error(archive, state->fed.code, "%s", state->fed.text);
		return ARCHIVE_FATAL;
	}
	*ret = state->raw->buf + state->raw->pos;
	if (state->gzip)
		stoup_gzip_check_raw(state->gzip, *ret, (size_t)have);
	stoup_input_raw_take(state->raw, (size_t)have);
	return (la_ssize_t)have;
}

static la_int64_t seek_to(struct archive *archive, void *arg, la_int64_t off, int whence)
{
	struct archive_state *state = arg;
	struct stoup_input_raw *raw = state->raw;
	if (whence == SEEK_CUR)
		off += (la_int64_t)raw->off;
	off_t got = lseek(raw->fd, off, whence == SEEK_END ? SEEK_END : SEEK_SET);
	if (got < 0) {
		archive_set_error(archive, errno, "cannot seek: %s", strerror(errno));
		return ARCHIVE_FATAL;
	}
	raw->pos = raw->end = 0;
	raw->off = (uint64_t)got;
	raw->is_eof = false;
	return got;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static uint64_t used_off(const struct archive_state *state)
{
	int64_t used = archive_filter_bytes(state->archive, -1);
	return used < 0 ? 0 : (uint64_t)used;
}

static int refuse(struct archive_state *state, struct stoup_error *err)
{
	const char *why = archive_error_string(state->archive);
	const char *name = state->raw->name;
	unsigned long long off = used_off(state);
	if (state->fed.code) {
		if (err)
			*err = state->fed;
		return state->fed.code;
	}
	if (archive_errno(state->archive) == ENOMEM)
		return stoup_error_set(err, -ENOMEM, "no memory to unpack %s", name);
	/* liblzma does not tell a cut file from one with garbage behind it: nor does the text. */
	if (state->raw->is_eof && state->raw->pos == state->raw->end && !state->is_zip)
		return stoup_error_set(err, -ENODATA,
			"%s ends at offset %llu inside its %s data%s: the file is cut short", name,
			(unsigned long long)state->raw->off, state->packing,
			state->gzip ? "" : ", or has garbage at its end");
	return stoup_error_set(err, -EBADMSG, "%s: %s data damaged near offset %llu: %s", name,
		state->packing, off, why ? why : "no reason given");
}

/* ---- members of a zip ------------------------------------------------------------------------ */

/* Folders, links, and what macOS adds beside each file, are no members to import. Some zip writers
 * give no type at all. */
static bool is_file(struct archive_entry *entry)
{
	const char *path = archive_entry_pathname(entry);
	unsigned type = archive_entry_filetype(entry);
	if (type != AE_IFREG && type != 0)
		return false;
	return !path || strncmp(path, "__MACOSX/", 9) != 0;
}

/* The next file inside: 1, or 0 where there is none. */
static int next_file(
	struct archive_state *state, struct archive_entry **ret, struct stoup_error *err)
{
	for (;;) {
		int rc = archive_read_next_header(state->archive, ret);
		if (rc == ARCHIVE_EOF)
			return 0;
		if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
			return refuse(state, err);
		if (is_file(*ret))
			return 1;
	}
}

static void add_name(char *names, struct archive_entry *entry)
{
	const char *path = archive_entry_pathname(entry);
	size_t len = strlen(names);
	if (len + 4 >= NAMES_CAP)
		return;
	strncat(names, len ? ", " : "", NAMES_CAP - 1 - len);
	strncat(names, path ? path : "?", NAMES_CAP - 1 - strlen(names));
}

static int refuse_none(const char *file, struct stoup_error *err)
{
	return stoup_error_set(err, -ENODATA, "%s is a zip archive without a file in it", file);
}

static int refuse_many(const char *file, const char *names, struct stoup_error *err)
{
	return stoup_error_set(err, -E2BIG,
		"%s is a zip archive of several files (%s%s): unpack it and give the files", file,
		names, strlen(names) + 4 >= NAMES_CAP ? "..." : "");
}

/* List the files of an archive; what is damaged ends the list. */
static int list_members(
	struct archive_state *state, char ***ret, uint32_t *ret_cnt, struct stoup_error *err)
{
	struct stoup_error why = {0};
	struct archive_entry *entry;

	while (next_file(state, &entry, &why) == 1) {
		const char *path = archive_entry_pathname(entry);
		char **grown = realloc(*ret, (*ret_cnt + 1u) * sizeof(*grown));

		if (grown)
			*ret = grown;
		if (!grown || !(grown[*ret_cnt] = strdup(path ? path : "?")))
			return stoup_error_set(
				err, -ENOMEM, "no memory to list %s", state->raw->name);
		++*ret_cnt;
	}
	return 0;
}

/* Stand in front of the file that was asked for. */
static int find_member(struct archive_state *state, struct stoup_error *err)
{
	struct archive_entry *entry;
	int rc = 1;

	for (int64_t i = 0; i <= state->raw->member && rc == 1; i++)
		rc = next_file(state, &entry, err);
	if (rc == 1)
		return 0;
	return rc < 0 ? rc
	              : stoup_error_set(err, -ESTALE, "%s: the archive changed while it was read",
				state->raw->name);
}

/* Count the files of an archive on disk. */
static int check_members(struct archive_state *state, struct stoup_error *err)
{
	struct archive_entry *entry;
	unsigned cnt = 0;
	int rc;
	while ((rc = next_file(state, &entry, err)) == 1) {
		add_name(state->names, entry);
		cnt++;
	}
	if (rc < 0)
		return rc;
	if (cnt == 0)
		return refuse_none(state->raw->name, err);
	return cnt == 1 || state->raw->member >= 0
	               ? 0
	               : refuse_many(state->raw->name, state->names, err);
}

/* Where the archive ends by its end record (which says how long its comment is), 0: there is none.
 * The last one whose comment ends inside the file counts. */
static uint64_t zip_end_off(const uint8_t *tail, size_t len, uint64_t tail_off)
{
	static const uint8_t magic[4] = {'P', 'K', 5, 6};
	for (size_t i = len < ZIP_END_LEN ? 0 : len - ZIP_END_LEN + 1; i-- > 0;) {
		size_t comment_len = tail[i + 20] | (size_t)tail[i + 21] << 8;
		if (memcmp(tail + i, magic, 4) == 0 && i + ZIP_END_LEN + comment_len <= len)
			return tail_off + i + ZIP_END_LEN + comment_len;
	}
	return 0;
}

/* Without this a zip cut inside its directory passes, since libarchive then reads it front to back,
 * and so does one with something behind it. */
static int check_zip_tail(const struct stoup_input_raw *raw, struct stoup_error *err)
{
	size_t len = raw->file_len < ZIP_TAIL_CAP ? (size_t)raw->file_len : ZIP_TAIL_CAP;
	uint64_t tail_off = raw->file_len - len;
	uint8_t *tail = malloc(len);
	if (!tail)
		return stoup_error_set(err, -ENOMEM, "no memory to open %s", raw->name);
	ssize_t got = pread(raw->fd, tail, len, (off_t)tail_off);
	uint64_t end_off = zip_end_off(tail, got < 0 ? 0 : (size_t)got, tail_off);
	free(tail);
	if (end_off == raw->file_len)
		return 0;
	if (end_off > 0)
		return stoup_error_set(err, -EBADMSG,
			"%s: garbage behind the zip archive, at offset %llu", raw->name,
			(unsigned long long)end_off);
	return stoup_error_set(err, -ENODATA,
		"%s ends at offset %llu without a zip end record: the file is cut short", raw->name,
		(unsigned long long)raw->file_len);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void archive_close(void *arg)
{
	struct archive_state *state = arg;
	archive_read_free(state->archive);
	stoup_gzip_check_destroy(state->gzip);
	free(state);
}

/* An lzma stream has a length in its header, or an end mark; this is one without anything before it. */
static bool is_empty_lzma(const struct archive_state *state)
{
	static const uint8_t mark[] = {0, 0x83, 0xff, 0xfb, 0xff, 0xff, 0xc0, 0, 0, 0};
	struct stoup_input_raw *raw = state->raw;
	int64_t have = stoup_input_raw_need(raw, LZMA_HEADER_LEN + sizeof(mark), NULL);

	if (state->lzma_len != UINT64_MAX)
		return state->lzma_len == 0;
	return have >= (int64_t)(LZMA_HEADER_LEN + sizeof(mark)) &&
	       memcmp(raw->buf + raw->pos + LZMA_HEADER_LEN, mark, sizeof(mark)) == 0;
}

/* The raw format wants a byte at least, and the empty one also takes a stream that fails before its first
 * byte. The checksums tell that of gzip; xz says itself whether it holds nothing: its index, which
 * begins with a zero, then follows the header at once. */
static bool may_be_empty(const struct archive_state *state)
{
	struct stoup_input_raw *raw = state->raw;

	if (state->is_lzma)
		return is_empty_lzma(state);
	return state->gzip || (stoup_input_raw_need(raw, XZ_HEADER_LEN + 1, NULL) > XZ_HEADER_LEN &&
				      raw->buf[raw->pos + XZ_HEADER_LEN] == 0);
}

/* The decoder opens it with its whole header in the buffer. */
static uint64_t lzma_len(const struct stoup_input_raw *raw)
{
	uint64_t len = 0;

	for (unsigned i = 0; i < 8; i++)
		len |= (uint64_t)raw->buf[raw->pos + 5 + i] << 8 * i;
	return len;
}

static int filter_of(const struct archive_state *state)
{
	if (state->gzip)
		return ARCHIVE_FILTER_GZIP;
	return state->is_lzma ? ARCHIVE_FILTER_LZMA : ARCHIVE_FILTER_XZ;
}

static int start(struct archive_state *state, struct stoup_error *err)
{
	struct archive *archive = archive_read_new();
	if (!archive)
		return stoup_error_set(err, -ENOMEM, "no memory to unpack %s", state->raw->name);
	archive_read_free(state->archive);
	state->archive = archive;
	if (state->is_zip) {
		archive_read_support_format_zip(archive);
		if (state->raw->is_seekable)
			archive_read_set_seek_callback(archive, seek_to);
	} else {
		archive_read_support_format_raw(archive);
		if (may_be_empty(state))
			archive_read_support_format_empty(archive);
		/* This one layer: left to look for itself, libarchive would also unpack contents that begin
		 * like a packed file. */
		archive_read_append_filter(archive, filter_of(state));
	}
	archive_read_set_callback_data(archive, state);
	archive_read_set_read_callback(archive, feed);
	return archive_read_open1(archive) == ARCHIVE_OK ? 0 : refuse(state, err);
}

static int restart(struct archive_state *state, struct stoup_error *err)
{
	if (seek_to(state->archive, state, 0, SEEK_SET) < 0)
		return refuse(state, err);
	return start(state, err);
}

static int open_first(struct archive_state *state, struct stoup_error *err)
{
	struct archive_entry *entry;
	int rc = start(state, err);
	if (rc < 0)
		return rc;
	if (state->is_zip && state->raw->is_seekable) {
		rc = check_members(state, err);
		if (rc == 0)
			rc = check_zip_tail(state->raw, err);
		if (rc == 0)
			rc = restart(state, err);
		if (rc < 0)
			return rc;
	}
	if (state->is_zip && state->raw->member >= 0)
		return find_member(state, err);
	if (state->is_zip) {
		rc = next_file(state, &entry, err);
		if (rc == 1)
			add_name(state->names, entry);
		return rc == 0 ? refuse_none(state->raw->name, err) : rc;
	}
	rc = archive_read_next_header(state->archive, &entry);
	state->is_empty = rc == ARCHIVE_EOF;
	return rc == ARCHIVE_OK || rc == ARCHIVE_EOF ? 0 : refuse(state, err);
}

static int archive_open(
	struct stoup_input_raw *raw, const char *packing, void **ret, struct stoup_error *err)
{
	struct archive_state *state = calloc(1, sizeof(*state));
	int rc;
	if (!state)
		return stoup_error_set(err, -ENOMEM, "no memory to unpack %s", raw->name);
	state->raw = raw;
	state->packing = packing;
	state->is_zip = strcmp(packing, "zip") == 0;
	state->is_lzma = strcmp(packing, "lzma") == 0;
	if (state->is_lzma)
		state->lzma_len = lzma_len(raw);
	if (strcmp(packing, "gzip") == 0) {
		state->gzip = stoup_gzip_check_create();
		rc = stoup_error_set(err, -ENOMEM, "no memory to unpack %s", raw->name);
		if (!state->gzip)
			goto out_close;
	}
	rc = open_first(state, err);
	if (rc < 0)
		goto out_close;
	*ret = state;
	return 0;
out_close:
	archive_close(state);
	return rc;
}

int stoup_input_zip_list(
	struct stoup_input_raw *raw, char ***ret, uint32_t *ret_cnt, struct stoup_error *err)
{
	struct archive_state *state = calloc(1, sizeof(*state));
	struct stoup_error why = {0};
	int rc = 0;

	if (!state)
		return stoup_error_set(err, -ENOMEM, "no memory to list %s", raw->name);
	state->raw = raw;
	state->packing = "zip";
	state->is_zip = true;
	if (start(state, &why) == 0)
		rc = list_members(state, ret, ret_cnt, err);
	archive_close(state);
	return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The stream is at its end: was that the end of the file too, and did its checksums match? */
static int64_t finish(struct archive_state *state, struct stoup_error *err)
{
	struct stoup_input_raw *raw = state->raw;
	struct archive_entry *entry;
	uint64_t off = used_off(state);
	state->is_ended = true;
	if (state->is_zip) {
		int rc = raw->is_seekable ? 0 : next_file(state, &entry, err);
		if (rc <= 0)
			return rc;
		add_name(state->names, entry);
		return refuse_many(raw->name, state->names, err);
	}
	/* libarchive takes a stream that is shorter than its header says. */
	if (state->is_lzma && state->lzma_len != UINT64_MAX &&
		state->unpacked_len != state->lzma_len)
		return stoup_error_set(err, -ENODATA,
			"%s ends at offset %llu inside its lzma data, %llu bytes short of the %llu that its "
			"header says: the file is cut short",
			raw->name, (unsigned long long)raw->off,
			(unsigned long long)(state->lzma_len - state->unpacked_len),
			(unsigned long long)state->lzma_len);
	if (state->gzip) {
		int rc = stoup_gzip_check_end(state->gzip, off, raw->name, err);
		if (rc < 0)
			return rc;
	}
	int64_t have = stoup_input_raw_need(raw, 1, err);
	if (have < 0)
		return have;
	if (have > 0 || off < raw->off)
		return stoup_error_set(err, -EBADMSG,
			"%s: garbage behind the last %s %s, at offset %llu", raw->name,
			state->packing, state->gzip ? "member" : "stream", (unsigned long long)off);
	return 0;
}

static int64_t next_block(struct archive_state *state, struct stoup_error *err)
{
	const void *block = NULL;
	size_t len = 0;
	la_int64_t block_off = 0;
	int rc = ARCHIVE_EOF;
	if (!state->is_empty)
		rc = archive_read_data_block(state->archive, &block, &len, &block_off);
	if (rc == ARCHIVE_EOF)
		return finish(state, err);
	if (rc != ARCHIVE_OK)
		return refuse(state, err);
	if (state->gzip && len > 0)
		stoup_gzip_check_block(state->gzip, block, len, used_off(state));
	state->unpacked_len += len;
	state->block = block;
	state->block_pos = 0;
	state->block_len = len;
	return 1;
}

static int64_t archive_read(void *arg, void *buf, size_t len, struct stoup_error *err)
{
	struct archive_state *state = arg;
	while (state->block_pos == state->block_len) {
		int64_t rc = state->is_ended ? 0 : next_block(state, err);
		if (rc <= 0)
			return rc;
	}
	if (len > state->block_len - state->block_pos)
		len = state->block_len - state->block_pos;
	memcpy(buf, state->block + state->block_pos, len);
	state->block_pos += len;
	return (int64_t)len;
}

static int gzip_open(struct stoup_input_raw *raw, void **ret, struct stoup_error *err)
{
	return archive_open(raw, "gzip", ret, err);
}

static int xz_open(struct stoup_input_raw *raw, void **ret, struct stoup_error *err)
{
	return archive_open(raw, "xz", ret, err);
}

static int lzma_open(struct stoup_input_raw *raw, void **ret, struct stoup_error *err)
{
	return archive_open(raw, "lzma", ret, err);
}

static int zip_open(struct stoup_input_raw *raw, void **ret, struct stoup_error *err)
{
	return archive_open(raw, "zip", ret, err);
}

const struct stoup_input_decoder stoup_input_gzip = {
	"gzip", gzip_open, archive_read, archive_close};
const struct stoup_input_decoder stoup_input_xz = {"xz", xz_open, archive_read, archive_close};
const struct stoup_input_decoder stoup_input_lzma = {
	"lzma", lzma_open, archive_read, archive_close};
const struct stoup_input_decoder stoup_input_zip = {"zip", zip_open, archive_read, archive_close};
