/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - how a scan begins: its range, its parts in the newest snapshot, the files of direct mode.
 *
 *      range --can it be?--> cursor --parts of the series--> bounds --direct: files mapped--> given out
 *
 * Nothing is leased here, and nobody is asked but for a file that is not mapped yet.
 */
#include <errno.h>
#include <stdlib.h>
#include "consumer/cursor.h"
#include "consumer/direct.h"

static void explain_no_cursor(const struct stoup_cursor *cur, int rc, struct stoup_error *err)
{
	const char *pool = cur->ses->pool;

	if (rc == -ENOENT)
		stoup_error_set(err, rc,
			"this series is not of pool '%s', or no longer: find it through the attachment "
			"that scans it",
			pool);
	else
		stoup_error_set(err, rc, "no memory for a cursor of '%s'", pool);
}

/* A cursor over the parts that the newest snapshot has. */
static int cursor_make(struct stoup *st, const struct stoup_series *series, int needs_anchor,
	struct stoup_cursor **ret, struct stoup_error *err)
{
	struct stoup_cursor *cur = calloc(1, sizeof(*cur));
	int rc;

	if (!cur)
		return stoup_error_set(err, -ENOMEM, "no memory for a cursor");
	cur->st = st;
	cur->snap = stoup_snapshot_current(st);
	cur->ses = cur->snap->session;
	cur->grip.cell_idx = STOUP_CELL_NONE;
	cur->look_in = cur->look_every = 1;
	rc = stoup_registry_entry(st, series->id, &cur->name, &cur->schema);
	/* Another attachment gives the same numbers to other series, and that one may be gone: compare the
	 * pointers, do not follow them. */
	if (rc == 0 && (cur->name != series->name || cur->schema != series->schema))
		rc = -ENOENT;
	if (rc == 0)
		cur->stride = cur->schema->stride ? cur->schema->stride : STOUP_MESSAGE_STRIDE;
	if (rc == 0)
		rc = stoup_series_parts(
			cur->snap, cur->name, cur->schema, &cur->parts, &cur->part_cnt);
	if (rc == 0 && needs_anchor &&
		!(cur->anchor.bytes = malloc(stoup_record_copy_len(cur->schema))))
		rc = -ENOMEM;
	if (rc == 0) {
		*ret = cur;
		return 0;
	}
	rc = rc == -ENOTUNIQ ? -ENOENT : rc;
	explain_no_cursor(cur, rc, err);
	stoup_snapshot_release(cur->snap);
	stoup_session_release(cur->ses);
	free(cur->parts);
	free(cur);
	return rc;
}

int stoup_cursor_files(struct stoup_cursor *cur, struct stoup_error *err)
{
	struct stoup_options *opt = &cur->st->opt;
	struct stoup_error why = {0};
	uint64_t until_ns = stoup_client_now() + opt->reconnect_ns;
	int rc;

	while ((rc = stoup_direct_open(cur, stoup_client_now() + opt->timeout_ns, &why)) ==
		-EPIPE) {
		rc = stoup_cursor_renew(cur, until_ns);
		if (rc < 0) {
			why = cur->error;
			break;
		}
	}
	/* Gone is gone, whatever one may do without. */
	if (rc == 0 || ((cur->range.flags & STOUP_DIRECT_OR_POOL) && !cur->failed)) {
		cur->pending &= ~STOUP_PENDING_FILES;
		return 0;
	}
	return stoup_error_set(err, rc, "%s", why.text);
}

int stoup_scan(struct stoup *st, const struct stoup_series *series, const struct stoup_range *range,
	struct stoup_cursor **ret, struct stoup_error *err)
{
	struct stoup_cursor *cur = NULL;
	uint32_t flags = range ? range->flags : 0;
	int rc;

	if (!stoup_client_own(st))
		return stoup_client_refused(st, err);
	if (!series)
		return stoup_error_set(err, -EINVAL, "no series was given");
	/* The range by itself first: whatever the series is, a range that can not be is told. */
	rc = stoup_bounds_check(range, err);
	if (rc < 0)
		return rc;
	rc = cursor_make(st, series,
		(flags & STOUP_FOLLOW) || !(st->opt.flags & STOUP_NO_RECONNECT), &cur, err);
	if (rc < 0)
		return rc;
	stoup_bounds_make(range, cur->schema, &cur->range);
	stoup_cursor_bound(cur);
	pthread_mutex_lock(&st->mutex);
	st->cursor_cnt++;
	pthread_mutex_unlock(&st->mutex);
	if (flags & (STOUP_DIRECT | STOUP_DIRECT_OR_POOL))
		rc = stoup_cursor_files(cur, err);
	if (rc < 0) {
		stoup_cursor_close(cur);
		return rc;
	}
	*ret = cur;
	return 0;
}
