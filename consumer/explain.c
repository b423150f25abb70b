/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - why a request brought no block, in words: which file, who holds the pool, which
 * limit.
 *
 *      slot {error, detail} --+-- the daemon's error log (EBADMSG, EIO): its text, file and offset
 *                             +-- the consumers' table (ENOBUFS): who holds how much
 *                             +-- the catalog and the limits (EFBIG): the numbers
 *
 * Invariant: every text says what happened, to which block or pool, and what mends it. All of it is
 * read from shared memory that the daemon may change meanwhile, so each word is read once and
 * bounded.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "consumer/client.h"
#include "shm/format.h"

#define HOLDERS_SHOWN 3u /* as many as fit into an error text */

static const char *volume_path(const struct stoup_snapshot_volume *vol)
{
	const struct stoup_catalog *c = vol->catalog;

	if (c->path_off >= c->string_len ||
		!memchr(stoup_catalog_string(c, c->path_off), 0, c->string_len - c->path_off))
		return "?";
	return stoup_catalog_string(c, c->path_off);
}

/* The end of a path, which tells more than its beginning. */
static const char *tail(const char *text, size_t cap)
{
	size_t len = strlen(text);

	return len > cap ? text + (len - cap) : text;
}

struct holder {
	uint32_t pid, lease_cnt;
	uint64_t bytes, oldest_ns; /* 0: not looked at yet */
	char comm[17];
};

static void holder_read(struct stoup_control_consumer *c, struct holder *h)
{
	uint64_t comm[2];

	h->pid = atomic_load_explicit(&c->pid, memory_order_relaxed);
	h->lease_cnt = atomic_load_explicit(&c->lease_cnt, memory_order_relaxed);
	h->bytes = atomic_load_explicit(&c->leased_bytes, memory_order_relaxed);
	h->oldest_ns = atomic_load_explicit(&c->oldest_lease_ns, memory_order_relaxed);
	comm[0] = atomic_load_explicit(&c->comm[0], memory_order_relaxed);
	comm[1] = atomic_load_explicit(&c->comm[1], memory_order_relaxed);
	memcpy(h->comm, comm, 16);
	h->comm[16] = 0;
}

/* The largest holders, largest first. Returns how many hold anything. */
static uint32_t holders_read(const struct stoup_control *control, struct holder top[HOLDERS_SHOWN])
{
	struct stoup_control_consumer *consumers = stoup_control_consumers(control);
	uint32_t cnt = 0;

	memset(top, 0, HOLDERS_SHOWN * sizeof(*top));
	for (uint32_t i = 0; i < control->consumer_cap; i++) {
		struct holder h;
		uint32_t at = HOLDERS_SHOWN;

		if (atomic_load_explicit(&consumers[i].state, memory_order_relaxed) ==
			STOUP_CONSUMER_NONE)
			continue;
		holder_read(&consumers[i], &h);
		if (h.lease_cnt == 0)
			continue;
		cnt++;
		while (at > 0 && h.bytes > top[at - 1].bytes)
			at--;
		for (uint32_t j = HOLDERS_SHOWN - 1; j > at && at < HOLDERS_SHOWN; j--)
			top[j] = top[j - 1];
		if (at < HOLDERS_SHOWN)
			top[at] = h;
	}
	return cnt;
}

static int explain_starved(struct stoup_session *ses, struct stoup_error *err)
{
	struct holder top[HOLDERS_SHOWN];
	uint32_t cnt = holders_read(ses->control, top);
	uint64_t now_ns = stoup_client_now();
	static const char mend[] =
		"; mend: release or kill -CONT there, end them, or a larger --size";
	/* The list gives way, not the mend. */
	size_t cap = STOUP_ERROR_TEXT_CAP - sizeof(mend) - 48 - strlen(ses->pool), used = 0;
	char text[STOUP_ERROR_TEXT_CAP] = "";

	for (uint32_t i = 0; i < HOLDERS_SHOWN && top[i].lease_cnt > 0; i++) {
		uint64_t since_ns = top[i].oldest_ns ? top[i].oldest_ns : now_ns;
		double age = now_ns > since_ns ? (double)(now_ns - since_ns) / 1e9 : 0;
		int len = snprintf(text + used, cap - used,
			"%s%u (%s) %u lease%s, %.1f MiB, for %.1f s", i ? "; " : "", top[i].pid,
			top[i].comm, top[i].lease_cnt, STOUP_PLURAL(top[i].lease_cnt),
			(double)top[i].bytes / 1048576.0, age);

		if (len < 0 || (size_t)len >= cap - used) {
			text[used] = 0;
			break;
		}
		used += (size_t)len;
	}
	return stoup_error_set(err, -ENOBUFS, "pool '%s' (%.1f MiB) is starved, held by %u: %s%s",
		ses->pool, (double)ses->data_region.len / 1048576.0, cnt,
		used ? text : "nobody at the last look", mend);
}

const struct stoup_control_quota *stoup_explain_quota(const struct stoup_session *ses)
{
	const struct stoup_control *control = ses->control;
	const struct stoup_control_quota *row;
	uint64_t off = control->quota_off, len = ses->control_region.len;

	if (!ses->asks || ses->quota_idx >= STOUP_QUOTA_CAP || control->quota_len != sizeof(*row) ||
		off > len || off % _Alignof(struct stoup_control_quota) != 0 ||
		(len - off) / sizeof(*row) <= ses->quota_idx)
		return NULL;
	row = (const void *)((uintptr_t)control + off);
	return row + ses->quota_idx;
}

/* That row where requests wait for it: then each further one does, and ours among them. */
static const struct stoup_control_quota *quota_used_up(const struct stoup_session *ses)
{
	const struct stoup_control_quota *row = stoup_explain_quota(ses);

	return row && atomic_load_explicit(&row->waiting_cnt, memory_order_relaxed) > 0 ? row
	                                                                                : NULL;
}

/* Does the pool lack room? Older daemons tell it only while they sleep, and among other waits. */
static int is_starved(const struct stoup_control *control)
{
	const _Atomic uint32_t *word =
		control->abi_minor >= 3 ? &control->starved : &control->starving;

	return atomic_load_explicit(word, memory_order_relaxed) != 0;
}

/* The daemon's own text; 1 when there was one. */
static int from_log(
	const struct stoup_session *ses, uint64_t detail, struct stoup_control_error *entry)
{
	uint64_t idx = detail - 1; /* 0 = no entry */

	return detail != 0 && idx < ses->control->error_cap &&
	       stoup_control_error_read(ses->control, (uint32_t)idx, entry) && entry->text[0] != 0;
}

static int explain_block(struct stoup_session *ses, const struct stoup_snapshot_volume *vol,
	uint32_t block_idx, int code, uint64_t detail, struct stoup_error *err)
{
	const struct stoup_catalog_block *block = &vol->blocks[block_idx];
	struct stoup_control_error entry;

	if (from_log(ses, detail, &entry))
		return stoup_error_set(err, code, "%s", entry.text);
	return stoup_error_set(err, code, "%s: block %u at offset %llu (%u bytes) %s",
		tail(volume_path(vol), 120), block_idx, (unsigned long long)block->stored_off,
		block->stored_len,
		code == -EBADMSG ? "is damaged: run stoup verify on its store"
				 : "could not be read");
}

int stoup_explain_request(struct stoup_session *ses, const struct stoup_snapshot_volume *vol,
	uint32_t block_idx, int32_t error, uint64_t detail, struct stoup_error *err)
{
	struct stoup_control_error entry;

	switch (error) {
	case -ENOBUFS:
		return explain_starved(ses, err);
	case -EBADMSG:
	case -EIO:
		return explain_block(ses, vol, block_idx, error, detail, err);
	case -EFBIG:
		if (from_log(ses, detail, &entry))
			return stoup_error_set(err, -EFBIG, "%s", entry.text);
		return stoup_error_set(err, -EFBIG,
			"block %u of %s has %u decoded bytes, pool '%s' (%llu bytes) serves at "
			"most %u: start "
			"stoupd with a larger --size, or ingest with smaller blocks",
			block_idx, tail(volume_path(vol), 90), vol->blocks[block_idx].raw_len,
			ses->pool, (unsigned long long)ses->data_region.len,
			ses->control->block_len_max);
	case -EBUSY:
		return stoup_error_set(err, -EBUSY,
			"block %u of %s was not asked for: too many requests are in flight in pool "
			"'%s' (one process may have %u): call again, read with fewer threads, or "
			"start stoupd with more --requests (at most %u)",
			block_idx, tail(volume_path(vol), 40), ses->pool, ses->request_cap,
			STOUP_SLOT_CNT);
	case -ESTALE:
		return stoup_error_set(err, -ESTALE,
			"the snapshot of this cursor is so old that volume %s of it is no longer "
			"served by pool '%s': call stoup_refresh and open a new cursor",
			tail(volume_path(vol), 90), ses->pool);
	case -EPIPE:
	case -ESHUTDOWN:
		return stoup_error_set(err, -EPIPE,
			"the daemon of pool '%s' was stopped: start it again and attach anew",
			ses->pool);
	case -ETIMEDOUT:
		return stoup_explain_timeout(ses, vol, block_idx, err);
	case 0:
	case -EPROTO:
		return stoup_error_set(err, -EPROTO,
			"the daemon of pool '%s' ended a request for block %u without granting it: "
			"restart it",
			ses->pool, block_idx);
	default:
		break;
	}
	if (error > 0 || error < -4095)
		error = -EPROTO;
	if (from_log(ses, detail, &entry))
		return stoup_error_set(err, error, "%s", entry.text);
	return stoup_error_set(err, error, "block %u of %s: %s", block_idx,
		tail(volume_path(vol), 120), strerror(-error));
}

int stoup_explain_timeout(struct stoup_session *ses, const struct stoup_snapshot_volume *vol,
	uint32_t block_idx, struct stoup_error *err)
{
	const struct stoup_control_quota *quota;
	int rc = stoup_session_silent(ses, ": stopped, or stuck in a read", err);

	if (rc < 0)
		return rc;
	quota = quota_used_up(ses);
	if (quota)
		return stoup_control_quota_explain(quota, ses->pool,
			atomic_load_explicit(&quota->leased_bytes, memory_order_relaxed),
			(uint32_t)getpid(), vol->blocks[block_idx].raw_len, err);
	if (is_starved(ses->control))
		return explain_starved(ses, err);
	return stoup_error_set(err, -ETIMEDOUT,
		"block %u of %s did not come within %.3f s (pool '%s'): call again, or raise the "
		"time-out",
		block_idx, tail(volume_path(vol), 120), (double)stoup_session_timeout(ses) / 1e9,
		ses->pool);
}
