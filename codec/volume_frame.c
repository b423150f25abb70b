/* SPDX-License-Identifier: Apache-2.0 */
/* volume_frame.c - the first and the last 64 bytes of a volume, and the texts of faults.
 *
 *      header    [magic][version][flags][id][created][ingest][batch][checksum over what precedes]
 *      trailer   [footer place and hash][file length][header's checksum][zero][checksum][magic]
 *
 * The magic is the last thing written and the last thing in the file, so a file that was cut short
 * has no trailer. The checksum is looked at before the version: a flipped bit in the version number
 * is damage, not another version. For that, places of magic, version and checksum are the same in
 * every major version.
 *
 * Concurrency: pure functions.
 */
#include "codec/volume_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#define FRAME_LEN_MIN       ((uint64_t)STOUP_VOL_HEADER_LEN + STOUP_VOL_TRAILER_LEN)
#define HEADER_FLAGS_REFUSE 0xffff0000u /* the upper half: a reader must know them */

uint64_t stoup_vol_hash(const void *bytes, size_t len)
{
	return XXH3_64bits(bytes, len);
}

/* ---- faults ---------------------------------------------------------------------------------- */

const char *stoup_vol_region_name(uint32_t region)
{
	switch (region) {
	case STOUP_VOL_REGION_HEADER:
		return "header";
	case STOUP_VOL_REGION_BLOCK:
		return "block";
	case STOUP_VOL_REGION_PADDING:
		return "padding";
	case STOUP_VOL_REGION_FOOTER:
		return "footer";
	case STOUP_VOL_REGION_TRAILER:
		return "trailer";
	default:
		return "unknown region";
	}
}

int stoup_vol_fault_set(struct stoup_vol_fault *fault, int code, uint32_t region, uint64_t file_off,
	const char *fmt, ...)
{
	va_list args;

	if (!fault)
		return code;
	memset(fault, 0, sizeof(*fault));
	fault->code = code;
	fault->region = region;
	fault->file_off = file_off;
	va_start(args, fmt);
	vsnprintf(fault->what, sizeof(fault->what), fmt, args);
	va_end(args);
	return code;
}

static int checksum_fault(struct stoup_vol_fault *fault, uint32_t region, uint64_t file_off,
	uint64_t stored, uint64_t computed)
{
	return stoup_vol_fault_set(fault, -EBADMSG, region, file_off,
		"damaged: the checksum says 0x%016" PRIx64 " but the bytes give 0x%016" PRIx64,
		stored, computed);
}

/* ---- header ---------------------------------------------------------------------------------- */

static int header_version_check(
	const struct stoup_vol_disk_header *disk, struct stoup_vol_fault *fault)
{
	uint32_t unknown = disk->flags & HEADER_FLAGS_REFUSE;

	if (disk->major != STOUP_VOL_MAJOR)
		return stoup_vol_fault_set(fault, -ENOTSUP, STOUP_VOL_REGION_HEADER,
			offsetof(struct stoup_vol_disk_header, major),
			"format version %u.%u, but this program reads version %u: "
			"use a program that reads %u.x",
			disk->major, disk->minor, STOUP_VOL_MAJOR, disk->major);
	if (unknown)
		return stoup_vol_fault_set(fault, -ENOTSUP, STOUP_VOL_REGION_HEADER,
			offsetof(struct stoup_vol_disk_header, flags),
			"feature flags 0x%08x (version %u.%u) are unknown to this program, "
			"which reads %u.%u",
			unknown, disk->major, disk->minor, STOUP_VOL_MAJOR, STOUP_VOL_MINOR);
	return 0;
}

static int header_fields_check(
	const struct stoup_vol_disk_header *disk, struct stoup_vol_fault *fault)
{
	static const uint8_t no_id[16];

	if (!memcmp(disk->id, no_id, sizeof(no_id)))
		return stoup_vol_fault_set(fault, -EBADMSG, STOUP_VOL_REGION_HEADER,
			offsetof(struct stoup_vol_disk_header, id), "the id is all zero");
	if (!disk->batch_cnt || disk->batch_idx >= disk->batch_cnt)
		return stoup_vol_fault_set(fault, -EBADMSG, STOUP_VOL_REGION_HEADER,
			offsetof(struct stoup_vol_disk_header, batch_cnt),
			"number %u of a batch of %u volumes", disk->batch_idx, disk->batch_cnt);
	return 0;
}

int stoup_vol_header_parse(const uint8_t bytes[STOUP_VOL_HEADER_LEN], struct stoup_vol_header *ret,
	struct stoup_vol_fault *fault)
{
	struct stoup_vol_disk_header disk;
	uint64_t checksum = stoup_vol_hash(bytes, offsetof(struct stoup_vol_disk_header, checksum));
	int rc;

	memcpy(&disk, bytes, sizeof(disk));
	if (memcmp(disk.magic, STOUP_VOL_MAGIC, STOUP_VOL_MAGIC_LEN))
		return stoup_vol_fault_set(fault, -EBADMSG, STOUP_VOL_REGION_HEADER, 0,
			"not a stoup volume: the first 8 bytes are not its magic");
	if (disk.checksum != checksum)
		return checksum_fault(fault, STOUP_VOL_REGION_HEADER,
			offsetof(struct stoup_vol_disk_header, checksum), disk.checksum, checksum);
	rc = header_version_check(&disk, fault);
	if (!rc)
		rc = header_fields_check(&disk, fault);
	if (rc)
		return rc;
	memset(ret, 0, sizeof(*ret));
	ret->major = disk.major;
	ret->minor = disk.minor;
	ret->flags = disk.flags;
	memcpy(ret->id, disk.id, sizeof(ret->id));
	ret->created_ns = disk.created_ns;
	ret->ingest_seq = disk.ingest_seq;
	ret->batch_idx = disk.batch_idx;
	ret->batch_cnt = disk.batch_cnt;
	return 0;
}

void stoup_vol_header_build(
	const struct stoup_vol_header *header, uint8_t ret[STOUP_VOL_HEADER_LEN])
{
	struct stoup_vol_disk_header disk = {
		.major = STOUP_VOL_MAJOR,
		.minor = STOUP_VOL_MINOR,
		.flags = header->flags,
		.created_ns = header->created_ns,
		.ingest_seq = header->ingest_seq,
		.batch_idx = header->batch_idx,
		.batch_cnt = header->batch_cnt,
	};

	memcpy(disk.magic, STOUP_VOL_MAGIC, STOUP_VOL_MAGIC_LEN);
	memcpy(disk.id, header->id, sizeof(disk.id));
	disk.checksum = stoup_vol_hash(&disk, offsetof(struct stoup_vol_disk_header, checksum));
	memcpy(ret, &disk, sizeof(disk));
}

/* ---- trailer --------------------------------------------------------------------------------- */

/* -EBADMSG, region TRAILER, at a member of the trailer, which begins at `at`. */
#define TRAILER_FAULT(member, ...)                                                                 \
	stoup_vol_fault_set(fault, -EBADMSG, STOUP_VOL_REGION_TRAILER,                             \
		at + offsetof(struct stoup_vol_disk_trailer, member), __VA_ARGS__)

/* Header, blocks, footer and trailer follow each other and fill the file. */
static int trailer_places_check(
	const struct stoup_vol_disk_trailer *disk, uint64_t file_len, struct stoup_vol_fault *fault)
{
	uint64_t at = file_len - STOUP_VOL_TRAILER_LEN;

	if (disk->file_len != file_len)
		return TRAILER_FAULT(file_len,
			"the file has %" PRIu64 " bytes, but was written with %" PRIu64, file_len,
			disk->file_len);
	if (disk->footer_len < sizeof(struct stoup_vol_disk_footer) ||
		disk->footer_len > STOUP_VOL_FOOTER_CAP || disk->footer_len % 8 ||
		disk->footer_len > at - STOUP_VOL_HEADER_LEN)
		return TRAILER_FAULT(footer_len,
			"a footer of %" PRIu64
			" bytes is not a multiple of 8 that fits into the file "
			"and the limit of %u",
			disk->footer_len, STOUP_VOL_FOOTER_CAP);
	if (disk->footer_off != at - disk->footer_len || disk->footer_off % STOUP_VOL_BLOCK_ALIGN)
		return TRAILER_FAULT(footer_off,
			"a footer at %" PRIu64 " with %" PRIu64
			" bytes does not begin at a multiple of 64 and end at the trailer",
			disk->footer_off, disk->footer_len);
	return 0;
}

int stoup_vol_trailer_parse(const uint8_t bytes[STOUP_VOL_TRAILER_LEN], uint64_t file_len,
	uint64_t *ret_footer_off, uint64_t *ret_footer_len, struct stoup_vol_fault *fault)
{
	struct stoup_vol_disk_trailer disk;
	uint64_t checksum =
		stoup_vol_hash(bytes, offsetof(struct stoup_vol_disk_trailer, checksum));
	int rc;

	if (file_len < FRAME_LEN_MIN || file_len > INT64_MAX)
		return stoup_vol_fault_set(fault, -ENODATA, STOUP_VOL_REGION_TRAILER, file_len,
			"too short: the file has %" PRIu64
			" bytes, header and trailer alone %" PRIu64,
			file_len, FRAME_LEN_MIN);
	memcpy(&disk, bytes, sizeof(disk));
	if (memcmp(disk.magic, STOUP_VOL_TRAILER_MAGIC, STOUP_VOL_MAGIC_LEN))
		return stoup_vol_fault_set(fault, -EBADMSG, STOUP_VOL_REGION_TRAILER,
			file_len - STOUP_VOL_MAGIC_LEN,
			"the last 8 bytes are not the trailer's magic: the file was cut short, was "
			"never completed, or is damaged there");
	if (disk.checksum != checksum)
		return checksum_fault(fault, STOUP_VOL_REGION_TRAILER,
			file_len - STOUP_VOL_TRAILER_LEN +
				offsetof(struct stoup_vol_disk_trailer, checksum),
			disk.checksum, checksum);
	rc = trailer_places_check(&disk, file_len, fault);
	if (rc)
		return rc;
	*ret_footer_off = disk.footer_off;
	*ret_footer_len = disk.footer_len;
	return 0;
}

void stoup_vol_trailer_build(const uint8_t header[STOUP_VOL_HEADER_LEN], uint64_t footer_off,
	const uint8_t *footer, uint64_t footer_len, uint8_t ret[STOUP_VOL_TRAILER_LEN])
{
	struct stoup_vol_disk_trailer disk = {
		.footer_off = footer_off,
		.footer_len = footer_len,
		.footer_hash = stoup_vol_hash(footer, (size_t)footer_len),
		.file_len = footer_off + footer_len + STOUP_VOL_TRAILER_LEN,
	};

	memcpy(&disk.header_checksum, header + offsetof(struct stoup_vol_disk_header, checksum),
		sizeof(disk.header_checksum));
	disk.checksum = stoup_vol_hash(&disk, offsetof(struct stoup_vol_disk_trailer, checksum));
	memcpy(disk.magic, STOUP_VOL_TRAILER_MAGIC, STOUP_VOL_MAGIC_LEN);
	memcpy(ret, &disk, sizeof(disk));
}
