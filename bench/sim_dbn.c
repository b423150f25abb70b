/* SPDX-License-Identifier: Apache-2.0 */
/* sim_dbn.c - metadata, frames and records of a simulated DBN file. */
#include "bench/sim_dbn.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

#define DATASET            "XSIM.STOUP"
#define SCHEMA_MBO         0u
#define STYPE_INSTRUMENT   0u
#define STYPE_RAW_SYMBOL   1u
#define METADATA_FIXED_LEN 100u /* bytes behind the prelude, before the symbol lists */
#define DAY_NS             86400000000000

struct stoup_sim_dbn {
	FILE *file;
	ZSTD_CCtx *zstd;
	uint8_t *out; /* compressed bytes on their way to the file */
	size_t out_cap;
	uint64_t day; /* of the frame under way */
	int in_frame;
	int failed; /* errno of the first failure */
};

/* ---- bytes out ------------------------------------------------------------------------------ */

static int write_plain(struct stoup_sim_dbn *dbn, const void *src, size_t len)
{
	if (fwrite(src, 1, len, dbn->file) != len)
		dbn->failed = errno ? errno : EIO;
	return -dbn->failed;
}

static int write_zstd(struct stoup_sim_dbn *dbn, const void *src, size_t len, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = {src, len, 0};
	size_t left;

	do {
		ZSTD_outBuffer out = {dbn->out, dbn->out_cap, 0};

		left = ZSTD_compressStream2(dbn->zstd, &out, &in, end);
		if (ZSTD_isError(left)) {
			dbn->failed = EIO;
			return -EIO;
		}
		if (out.pos && write_plain(dbn, dbn->out, out.pos))
			return -dbn->failed;
	} while (in.pos < in.size || (end == ZSTD_e_end && left));
	return 0;
}

static int frame_end(struct stoup_sim_dbn *dbn)
{
	if (!dbn->in_frame)
		return 0;
	dbn->in_frame = 0;
	return write_zstd(dbn, NULL, 0, ZSTD_e_end);
}

/* ---- metadata ------------------------------------------------------------------------------- */

static uint8_t *put(uint8_t *at, const void *src, size_t len)
{
	memcpy(at, src, len);
	return at + len;
}

static uint8_t *put_u32(uint8_t *at, uint32_t value)
{
	return put(at, &value, sizeof(value));
}

static uint8_t *put_u64(uint8_t *at, uint64_t value)
{
	return put(at, &value, sizeof(value));
}

/* A symbol in a field of fixed length; the buffer is zeroed already. */
static uint8_t *put_symbol(uint8_t *at, const char *symbol, size_t field_len)
{
	memcpy(at, symbol, strnlen(symbol, field_len - 1));
	return at + field_len;
}

static uint32_t yyyymmdd(int64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	return (uint32_t)((tm.tm_year + 1900) * 10000 + (tm.tm_mon + 1) * 100 + tm.tm_mday);
}

static uint8_t *put_mappings(
	uint8_t *at, const struct stoup_sim_dbn_options *options, size_t symbol_len)
{
	char id[16];

	at = put_u32(at, options->symbol_cnt); /* symbols as they were asked for */
	for (uint32_t i = 0; i < options->symbol_cnt; i++)
		at = put_symbol(at, stoup_sim_symbol(i), symbol_len);
	at = put_u32(at, 0); /* partial */
	at = put_u32(at, 0); /* not found */
	at = put_u32(at, options->symbol_cnt);
	for (uint32_t i = 0; i < options->symbol_cnt; i++) {
		snprintf(id, sizeof(id), "%u", STOUP_SIM_FIRST_ID + i);
		at = put_symbol(at, stoup_sim_symbol(i), symbol_len);
		at = put_u32(at, 1);
		at = put_u32(at, yyyymmdd(options->start_ns));
		at = put_u32(at, yyyymmdd(options->end_ns + DAY_NS)); /* exclusive */
		at = put_symbol(at, id, symbol_len);
	}
	return at;
}

/* Prelude and metadata in one heap buffer of *len bytes; NULL without memory. */
static uint8_t *metadata(const struct stoup_sim_dbn_options *options, size_t *len)
{
	size_t symbol_len = options->version == 1 ? 22 : 71;
	size_t cap = 8 + METADATA_FIXED_LEN + 16 + 8 + options->symbol_cnt * (3 * symbol_len + 12);
	uint8_t *bytes = calloc(1, cap);
	uint8_t *at = bytes;
	uint16_t schema = SCHEMA_MBO;
	uint16_t symbol_cap = (uint16_t)symbol_len;

	if (!bytes)
		return NULL;
	at = put(at, "DBN", 3);
	*at++ = (uint8_t)options->version;
	at += 4; /* length: known at the end */
	put(at, DATASET, sizeof(DATASET));
	at = put(at + 16, &schema, sizeof(schema));
	at = put_u64(at, (uint64_t)options->start_ns);
	at = put_u64(at, (uint64_t)options->end_ns);
	at = put_u64(at, 0); /* no limit */
	if (options->version == 1)
		at = put_u64(at, UINT64_MAX); /* record count: deprecated */
	*at++ = STYPE_RAW_SYMBOL;
	*at++ = STYPE_INSTRUMENT;
	*at++ = 0; /* no ts_out */
	if (options->version != 1)
		put(at, &symbol_cap, sizeof(symbol_cap));
	at = bytes + 8 + METADATA_FIXED_LEN;
	at = put_u32(at, 0); /* schema definition */
	at = put_mappings(at, options, symbol_len);
	*len = (size_t)(at - bytes);
	if (options->version == 3)
		*len = (*len + 7) & ~(size_t)7;
	put_u32(bytes + 4, (uint32_t)(*len - 8));
	return bytes;
}

/* ---- life ----------------------------------------------------------------------------------- */

static int zstd_begin(struct stoup_sim_dbn *dbn, const struct stoup_sim_dbn_options *options)
{
	dbn->zstd = ZSTD_createCCtx();
	dbn->out_cap = ZSTD_CStreamOutSize();
	dbn->out = malloc(dbn->out_cap);
	if (!dbn->zstd || !dbn->out)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(dbn->zstd, ZSTD_c_compressionLevel, options->zstd_level);
	ZSTD_CCtx_setParameter(dbn->zstd, ZSTD_c_checksumFlag, 1);
	/* A libzstd without threads refuses this, and then compresses in this thread. */
	ZSTD_CCtx_setParameter(dbn->zstd, ZSTD_c_nbWorkers, options->thread_cnt);
	return 0;
}

int stoup_sim_dbn_create(const struct stoup_sim_dbn_options *options, struct stoup_sim_dbn **ret)
{
	struct stoup_sim_dbn *dbn = calloc(1, sizeof(*dbn));
	size_t len = 0;
	uint8_t *head = NULL;
	int rc = -ENOMEM;

	if (!dbn)
		return -ENOMEM;
	if (options->version != 1 && options->version != 3) {
		rc = -EINVAL;
		goto out_close;
	}
	dbn->file = fopen(options->path, "wb");
	if (!dbn->file) {
		rc = -errno;
		goto out_close;
	}
	if (options->zstd_level) {
		rc = zstd_begin(dbn, options);
		if (rc)
			goto out_close;
	}
	head = metadata(options, &len);
	if (!head) {
		rc = -ENOMEM;
		goto out_close;
	}
	rc = dbn->zstd ? write_zstd(dbn, head, len, ZSTD_e_end) : write_plain(dbn, head, len);
	free(head);
	if (rc)
		goto out_close;
	*ret = dbn;
	return 0;
out_close:
	stoup_sim_dbn_close(dbn);
	return rc;
}

int stoup_sim_dbn_write(
	struct stoup_sim_dbn *dbn, const struct stoup_sim_mbo *records, uint64_t cnt)
{
	uint64_t at = 0;

	if (!dbn->zstd)
		return write_plain(dbn, records, cnt * sizeof(*records));
	while (at < cnt) {
		uint64_t day = records[at].ts_recv / DAY_NS;
		uint64_t first = at;
		int rc;

		while (at < cnt && records[at].ts_recv / DAY_NS == day)
			at++;
		if (dbn->in_frame && day != dbn->day && frame_end(dbn))
			return -dbn->failed;
		dbn->day = day;
		dbn->in_frame = 1;
		rc = write_zstd(
			dbn, &records[first], (at - first) * sizeof(*records), ZSTD_e_continue);
		if (rc)
			return rc;
	}
	return 0;
}

int stoup_sim_dbn_close(struct stoup_sim_dbn *dbn)
{
	int rc;

	if (!dbn)
		return 0;
	if (!dbn->failed && dbn->zstd && dbn->file)
		frame_end(dbn);
	if (dbn->file && fclose(dbn->file) && !dbn->failed)
		dbn->failed = errno;
	rc = -dbn->failed;
	ZSTD_freeCCtx(dbn->zstd);
	free(dbn->out);
	free(dbn);
	return rc;
}
