/* SPDX-License-Identifier: Apache-2.0 */
/* volume.h - the volume file: its bytes, and how to check and build them in memory.
 *
 *      +----------+---------+---------+-- ~ --+---------+--------+---------+
 *      | header   | block 0 | block 1 |       | block n | footer | trailer |
 *      | 64 bytes | 64/4096-aligned, zero-padded        |        | 64 bytes|
 *      +----------+---------+---------+-- ~ --+---------+--------+---------+
 *
 * The reader is handed bytes and never opens a file: the caller reads the header, the trailer and
 * the footer (their places come from each other) and gives them to stoup_vol_index_parse. The
 * writer is a state that turns appended blocks into (bytes, file offset) pairs for the caller to
 * write. docs/volume-format.md specifies each byte.
 *
 * Invariant: an index that parsed has every offset, length, count and cross reference checked, so
 * that its user needs no further checks; block bytes are checked by their own hashes.
 *
 * Concurrency: pure functions on caller's memory. A parsed index is immutable and may be shared.
 */
#ifndef STOUP_CODEC_VOLUME_H
#define STOUP_CODEC_VOLUME_H

#include <stddef.h>
#include <stdint.h>

#define STOUP_VOL_MAJOR       1u
#define STOUP_VOL_MINOR       1u
#define STOUP_VOL_SUFFIX      ".stoup"
#define STOUP_VOL_HEADER_LEN  64u
#define STOUP_VOL_TRAILER_LEN 64u
/* Bytes of a footer: bounds the memory that a hostile file can ask for. */
#define STOUP_VOL_FOOTER_CAP      (1u << 30)
#define STOUP_VOL_BLOCK_ALIGN     64u   /* compressed blocks */
#define STOUP_VOL_BLOCK_ALIGN_RAW 4096u /* codec none and no transform: can be mapped */
#define STOUP_VOL_NAME_CAP        512u  /* bytes of a series name, with the NUL */

/* Where something is wrong: a region of the file, an absolute file offset, and what was found. */
enum stoup_vol_region {
	STOUP_VOL_REGION_HEADER = 1,
	STOUP_VOL_REGION_BLOCK,
	STOUP_VOL_REGION_PADDING,
	STOUP_VOL_REGION_FOOTER,
	STOUP_VOL_REGION_TRAILER,
};

struct stoup_vol_fault {
	int code;          /* -EBADMSG damaged, -ENOTSUP version or codec unknown, -ENODATA short */
	uint32_t region;   /* enum stoup_vol_region */
	uint64_t file_off; /* bytes from the start of the file */
	uint32_t block_idx; /* BLOCK: which */
	char what[160];     /* words, such as "segment 3: first record has ordinal 11, ..." */
};

const char *stoup_vol_region_name(uint32_t region);

/* ---- the index, parsed ----------------------------------------------------------------------- */

struct stoup_vol_header {
	uint32_t major, minor;
	uint32_t flags; /* lower half: may be ignored; upper half: refused when unknown */
	uint8_t id[16];
	int64_t created_ns;  /* since the epoch */
	uint64_t ingest_seq; /* order of volumes in a store; grows with each ingest */
	/* One ingest may write several volumes: this one is batch_idx of batch_cnt. A store ignores
	 * a batch (same ingest_seq) that is not complete. */
	uint32_t batch_idx, batch_cnt;
};

struct stoup_vol_schema { /* fields: fields[field_first .. field_first + field_cnt) */
	const char *name;
	uint32_t stride, align, key_off, flags, field_first, field_cnt;
	uint64_t interval_ns, hash;
};

/* Same 64 bytes as struct stoup_field of shm (asserted where both are known). */
struct stoup_vol_field {
	char name[36];
	uint32_t off;
	uint16_t cnt;
	uint8_t type, flags;
	int8_t exp10;
	uint8_t zero[3];
	uint64_t null_bits;
	char unit[8];
};

#define STOUP_VOL_SERIES_KEEP_ORDER 0x1u /* --order=keep: key = running maximum of the key field */

struct stoup_vol_series { /* sorted by (name, schema hash), strictly ascending */
	const char *name;
	uint32_t name_len;
	uint32_t schema_idx;
	uint32_t segment_first, segment_cnt; /* consecutive, in key order */
	uint32_t flags;
	uint64_t record_cnt;
	int64_t first_key, last_key;
};

struct stoup_vol_block {
	uint32_t schema_idx;
	uint32_t raw_len;
	uint64_t stored_off; /* bytes from the start of the file */
	uint32_t stored_len;
	uint32_t codec, transform;
	uint64_t stored_hash; /* XXH3-64 of the stored bytes */
	uint64_t raw_hash;    /* XXH3-64 of the raw bytes */
};

struct stoup_vol_segment { /* sorted by series, then key order */
	uint32_t series_idx;
	uint32_t block_idx;
	uint32_t raw_off; /* bytes from the start of the decoded block; a multiple of the stride */
	uint32_t raw_len; /* bytes; fixed-length records: record_cnt * stride */
	uint32_t record_cnt; /* at least 1 */
	uint64_t ordinal;    /* of its first record within its series in this volume */
	int64_t first_key, last_key;
};

/* A file that was ingested. Same 128 bytes as in the footer. */
#define STOUP_VOL_SOURCE_NAME_CAP 88u

struct stoup_vol_source {
	uint8_t hash[16]; /* XXH3-128 of the file as it lay on disk, canonical (big-endian) bytes */
	uint64_t file_len;
	uint64_t options_hash; /* of what the user asked for that changes the records */
	int64_t ingested_ns;   /* since the epoch */
	char name[STOUP_VOL_SOURCE_NAME_CAP]; /* the end of its path, NUL-padded; for people */
};

struct stoup_vol_index {
	struct stoup_vol_header header;
	uint32_t schema_cnt, field_cnt, series_cnt, block_cnt, segment_cnt, superseded_cnt;
	const struct stoup_vol_schema *schemas;
	const struct stoup_vol_field *fields;
	const struct stoup_vol_series *series;
	const struct stoup_vol_block *blocks;
	const struct stoup_vol_segment *segments;
	const uint8_t (*superseded)[16];
	const struct stoup_vol_source *sources;
	uint32_t source_cnt;
	/* Zone maps: the rows of zone.h, and for each segment the 8-byte word at which its row begins, plus 1; 0: it has
	 * none. Both NULL where the volume has no zone maps. */
	const uint32_t *zone_words;
	const uint8_t *zones;
	uint64_t zone_len; /* bytes of all rows */
	uint64_t footer_off, footer_len, file_len;
};

/* The row of a segment, NULL where it has none; and how long one is in its schema (0: of messages). */
const uint8_t *stoup_vol_zone(const struct stoup_vol_index *index, uint32_t segment_idx);
uint32_t stoup_vol_zone_len(const struct stoup_vol_index *index, uint32_t segment_idx);

/* ---- reading: the caller does the I/O -------------------------------------------------------- */

/* Check the first 64 bytes of a file. 0 or a negative errno with `fault` filled. */
int stoup_vol_header_parse(const uint8_t bytes[STOUP_VOL_HEADER_LEN], struct stoup_vol_header *ret,
	struct stoup_vol_fault *fault);

/* Check the last 64 bytes of a file of file_len bytes, and say where the footer is. */
int stoup_vol_trailer_parse(const uint8_t bytes[STOUP_VOL_TRAILER_LEN], uint64_t file_len,
	uint64_t *ret_footer_off, uint64_t *ret_footer_len, struct stoup_vol_fault *fault);

/* Check header, trailer and footer together and build the index on the heap (one allocation that
 * stoup_vol_index_destroy frees; strings and superseded ids are copied: `footer` may go
 * afterwards). A block with an unknown codec or transform is not a fault of the index. -ENOMEM
 * besides the faults. */
int stoup_vol_index_parse(const uint8_t header[STOUP_VOL_HEADER_LEN],
	const uint8_t trailer[STOUP_VOL_TRAILER_LEN], const uint8_t *footer, size_t footer_len,
	uint64_t file_len, struct stoup_vol_index **ret, struct stoup_vol_fault *fault);
void stoup_vol_index_destroy(struct stoup_vol_index *index);

/* Check stored bytes of a block against its stored hash; 0 or -EBADMSG with `fault` filled. Works
 * for codecs that this program does not know. Here and below block_idx < block_cnt is the caller's
 * part, and `fault` may be NULL. */
int stoup_vol_block_check(const struct stoup_vol_index *index, uint32_t block_idx,
	const void *stored, struct stoup_vol_fault *fault);

/* Decode into raw_len bytes and check both hashes (`verify`, and readers outside the daemon).
 * `scratch` as for stoup_block_decode. 0, -EBADMSG, or -ENOTSUP for an unknown codec or
 * transform. */
int stoup_vol_block_decode(const struct stoup_vol_index *index, uint32_t block_idx,
	const void *stored, void *raw, void *scratch, struct stoup_vol_fault *fault);

/* The gaps that must be zero: call with pad_idx 0, 1, 2... until it returns 0; 1 = *off, *len
 * (which is often 0). Gap i lies in front of block i, the last one in front of the footer. */
int stoup_vol_padding(
	const struct stoup_vol_index *index, uint32_t pad_idx, uint64_t *off, uint64_t *len);

/* Check that bytes of a gap, read from file_off on, are zero. A long gap may come in pieces. */
int stoup_vol_padding_check(
	uint64_t file_off, const void *bytes, size_t len, struct stoup_vol_fault *fault);

/* ---- writing: the caller does the I/O -------------------------------------------------------- */

struct stoup_vol_writer;
int stoup_vol_writer_create(const struct stoup_vol_header *header, struct stoup_vol_writer **ret);
void stoup_vol_writer_destroy(struct stoup_vol_writer *writer);

/* Declare a schema and its fields (field_first is ignored); returns its index (>= 0) or negative
 * errno: -EINVAL for one that breaks the rules of the format (its hash must be right), -EEXIST for
 * one that is there, -E2BIG. `name` and fields are copied. */
int stoup_vol_add_schema(struct stoup_vol_writer *writer, const struct stoup_vol_schema *schema,
	const struct stoup_vol_field *fields);
/* Declare a series; any order; returns its (writer's) index or negative errno (-EEXIST: same name
 * and schema; -EINVAL: a name that is empty, too long or has control bytes, an unknown schema or
 * flag). A series that gets no segment is left out of the volume. Expected O(1), whatever the
 * number of series. */
int64_t stoup_vol_add_series(
	struct stoup_vol_writer *writer, const char *name, uint32_t schema_idx, uint32_t flags);
/* An id may be given more than once; they are sorted. */
int stoup_vol_add_superseded(struct stoup_vol_writer *writer, const uint8_t id[16]);
/* Name a file whose records are in the volumes of this batch, all of them and as they were. -EINVAL for a
 * name that is empty, has no NUL or control bytes. */
int stoup_vol_add_source(struct stoup_vol_writer *writer, const struct stoup_vol_source *source);

/* Place an encoded block: returns its index, and where the caller must write it: *ret_off (all
 * bytes between the end of what was placed before and *ret_off are padding: zero). -EINVAL for
 * lengths that the format does not allow (a codec must have made the block no longer). */
int64_t stoup_vol_add_block(struct stoup_vol_writer *writer, uint32_t schema_idx, uint32_t raw_len,
	uint32_t codec, uint32_t transform, uint64_t stored_hash, uint64_t raw_hash,
	uint32_t stored_len, uint64_t *ret_off);
/* Segments of one series must come in key order, but those of different series in any order;
 * ordinals are counted here. Blocks must be covered exactly by their segments when the writer is
 * finished. -EINVAL for keys that are not positive and non-decreasing, a place outside the block,
 * or a series of another schema than the block's. Of a schema of messages (stride 0), a block's
 * segments must come by ascending raw_off: each reaches to the next. */
int stoup_vol_add_segment(struct stoup_vol_writer *writer, uint32_t series_idx, uint32_t block_idx,
	uint32_t raw_off, uint32_t record_cnt, int64_t first_key, int64_t last_key);

/* The zone map of the segment that was added last: a row of stoup_zone_make, `len` bytes. -EINVAL where that segment
 * has one, or rows of another length; -ENOMEM. Rows beyond what a footer should hold are left out, which is 0 as well:
 * a reader then looks at the records. */
int stoup_vol_add_zone(struct stoup_vol_writer *writer, const uint8_t *row, uint32_t len);

/* Finish: the tail (padding, footer, trailer) goes to *ret_off; the header (64 bytes) to offset 0.
 * May be called again with another header (batch_cnt known late); NULL: the one given to
 * stoup_vol_writer_create. *ret_tail belongs to the writer, until the next call. Series are sorted
 * and numbered anew here. The result is parsed before it is returned: what a writer hands out is
 * readable. -EINVAL where it is not (stoup_vol_writer_fault says why: a block that is not covered,
 * a header without id or with a wrong batch), -EFBIG for a footer above STOUP_VOL_FOOTER_CAP,
 * -ENOMEM. The format version is always that of this program. */
int stoup_vol_finish(struct stoup_vol_writer *writer, const struct stoup_vol_header *header,
	uint8_t ret_header[STOUP_VOL_HEADER_LEN], const uint8_t **ret_tail, size_t *ret_tail_len,
	uint64_t *ret_off);

/* What the last -EINVAL of stoup_vol_finish or stoup_vol_add_schema was about. */
const struct stoup_vol_fault *stoup_vol_writer_fault(const struct stoup_vol_writer *writer);

/* XXH3-64 with seed 0, the hash of volumes. */
uint64_t stoup_vol_hash(const void *bytes, size_t len);

#endif
