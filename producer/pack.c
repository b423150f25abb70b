/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - a zstd stream that is written: for `stoup export`, which knows no codec (consumer/tools.h says
 * what these calls do). */
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>
#include "producer/cmd.h"
#include "shm/stoup_types.h"

#define LEVEL 3 /* the zstd tool's own, and Databento's */

struct stoup_pack {
	ZSTD_CCtx *cctx;
	int (*put)(void *arg, const void *bytes, size_t len);
	void *arg;
	void *out;
	size_t out_cap;
};

int stoup_pack_create(int (*put)(void *arg, const void *bytes, size_t len), void *arg,
	struct stoup_pack **ret, struct stoup_error *err)
{
	struct stoup_pack *pack = calloc(1, sizeof(*pack));

	if (pack) {
		pack->put = put;
		pack->arg = arg;
		pack->out_cap = ZSTD_CStreamOutSize();
		pack->out = malloc(pack->out_cap);
		pack->cctx = ZSTD_createCCtx();
	}
	if (!pack || !pack->out || !pack->cctx) {
		stoup_pack_destroy(pack);
		return stoup_error_set(err, -ENOMEM, "no memory to compress");
	}
	ZSTD_CCtx_setParameter(pack->cctx, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(pack->cctx, ZSTD_c_checksumFlag, 1);
	*ret = pack;
	return 0;
}

static int step(
	struct stoup_pack *pack, ZSTD_inBuffer *in, ZSTD_EndDirective mode, size_t *ret_left)
{
	ZSTD_outBuffer out = {pack->out, pack->out_cap, 0};
	size_t left = ZSTD_compressStream2(pack->cctx, &out, in, mode);

	if (ZSTD_isError(left))
		return -ENOMEM;
	*ret_left = left;
	return out.pos > 0 ? pack->put(pack->arg, pack->out, out.pos) : 0;
}

int stoup_pack_write(struct stoup_pack *pack, const void *bytes, size_t len)
{
	ZSTD_inBuffer in = {bytes, len, 0};
	size_t left;
	int rc = 0;

	while (rc == 0 && in.pos < in.size)
		rc = step(pack, &in, ZSTD_e_continue, &left);
	return rc;
}

int stoup_pack_end(struct stoup_pack *pack)
{
	ZSTD_inBuffer in = {NULL, 0, 0};
	size_t left = 1;
	int rc = 0;

	while (rc == 0 && left > 0)
		rc = step(pack, &in, ZSTD_e_end, &left);
	return rc;
}

void stoup_pack_destroy(struct stoup_pack *pack)
{
	if (!pack)
		return;
	ZSTD_freeCCtx(pack->cctx);
	free(pack->out);
	free(pack);
}
