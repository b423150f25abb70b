/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_pools.c - the pools of an exporter, and a look at each: see exporter.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/exporter.h"
#include "consumer/exporter_text.h"
#include "shm/clock.h"
#include "shm/wire.h"

#define RETRY_NS UINT64_C(10000000000) /* a daemon that does not answer is asked that often */

/* ---- states ----------------------------------------------------------------------------------- */

const char *stoup_exporter_state_name(uint32_t idx)
{
	if (idx < STOUP_WATCH_STATE_CNT)
		return stoup_watch_state_name((enum stoup_watch_state)idx);
	return idx == STOUP_WATCH_STATE_CNT       ? "absent"
	       : idx == STOUP_WATCH_STATE_CNT + 1 ? "unreadable"
	                                          : NULL;
}

const char *stoup_exporter_state(const struct stoup_exporter_pool *pool)
{
	if (pool->rc == 0)
		return stoup_watch_state_name(pool->watch.state);
	if (pool->rc == -EAGAIN)
		return stoup_watch_state_name(STOUP_WATCH_STARTING);
	return stoup_exporter_state_name(STOUP_WATCH_STATE_CNT + (pool->rc != -ENOENT));
}

/* ---- the list --------------------------------------------------------------------------------- */

static void pool_fini(struct stoup_exporter_pool *pool)
{
	stoup_watcher_fini(&pool->watcher);
	stoup_watch_fini(&pool->watch);
	free(pool->name);
	free(pool->label);
}

static int by_label(const void *a, const void *b)
{
	const struct stoup_exporter_pool *x = a, *y = b;

	return strcmp(x->label, y->label);
}

static struct stoup_exporter_pool *pool_of(const struct stoup_exporter *exporter, const char *label)
{
	for (uint32_t i = 0; i < exporter->pool_cnt; i++)
		if (strcmp(exporter->pools[i].label, label) == 0)
			return &exporter->pools[i];
	return NULL;
}

/* The pool of that name, which may be there already. The array has room for all. */
static struct stoup_exporter_pool *pool_add(struct stoup_exporter *exporter, const char *name)
{
	struct stoup_exporter_pool *pool;
	char *label = stoup_label_utf8(name), *copy;

	pool = label ? pool_of(exporter, label) : NULL;
	if (!label || pool) {
		free(label);
		return pool;
	}
	copy = strdup(name);
	if (!copy) {
		free(label);
		return NULL;
	}
	pool = &exporter->pools[exporter->pool_cnt++];
	*pool = (struct stoup_exporter_pool){.name = copy, .label = label};
	pool->watcher.pool = copy;
	return pool;
}

int stoup_exporter_init(
	struct stoup_exporter *exporter, char **names, uint32_t cnt, struct stoup_error *err)
{
	int rc;

	*exporter = (struct stoup_exporter){
		.named = cnt > 0, .consumers = 1, .series_max = STOUP_EXPORTER_SERIES};
	if (cnt > STOUP_EXPORTER_POOLS)
		return stoup_error_set(err, -EINVAL,
			"%u pools: at most %u; start a second exporter for the others", cnt,
			STOUP_EXPORTER_POOLS);
	exporter->pools = calloc(STOUP_EXPORTER_POOLS, sizeof(*exporter->pools));
	if (!exporter->pools)
		return stoup_error_set(
			err, -ENOMEM, "no memory for %u pools", STOUP_EXPORTER_POOLS);
	for (uint32_t i = 0; i < cnt; i++) {
		rc = strchr(names[i], '/') ? 0 : stoup_pool_name_valid(names[i], err);
		if (rc == 0 && !pool_add(exporter, names[i]))
			rc = stoup_error_set(err, -ENOMEM, "no memory for the names of pools");
		if (rc < 0) {
			stoup_exporter_fini(exporter);
			return rc;
		}
	}
	qsort(exporter->pools, exporter->pool_cnt, sizeof(*exporter->pools), by_label);
	return 0;
}

void stoup_exporter_fini(struct stoup_exporter *exporter)
{
	for (uint32_t i = 0; i < exporter->pool_cnt; i++)
		pool_fini(&exporter->pools[i]);
	free(exporter->pools);
	exporter->pools = NULL;
	exporter->pool_cnt = 0;
}

/* Forget those that were not found, or are somebody else's. */
static void list_sweep(struct stoup_exporter *exporter)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < exporter->pool_cnt; i++) {
		struct stoup_exporter_pool *pool = &exporter->pools[i];

		if (pool->found)
			exporter->pools[kept++] = *pool;
		else
			pool_fini(pool);
	}
	exporter->pool_cnt = kept;
}

static int name_in(const char *name, char **names, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++)
		if (strcmp(names[i], name) == 0)
			return 1;
	return 0;
}

/* Which pools there are now. */
static void list_find(struct stoup_exporter *exporter)
{
	char **names = NULL;
	uint32_t cnt = 0, taken;

	/* Short of memory or descriptors: those of the last look are looked at again. */
	exporter->find_rc = stoup_exporter_find(&names, &cnt);
	if (exporter->find_rc == 0) {
		taken = cnt < STOUP_EXPORTER_POOLS ? cnt : STOUP_EXPORTER_POOLS;
		exporter->left_out = cnt - taken;
		for (uint32_t i = 0; i < exporter->pool_cnt; i++)
			exporter->pools[i].found = name_in(exporter->pools[i].name, names, taken);
		list_sweep(exporter);
		for (uint32_t i = 0; i < taken; i++)
			pool_add(exporter, names[i]);
		qsort(exporter->pools, exporter->pool_cnt, sizeof(*exporter->pools), by_label);
	}
	for (uint32_t i = 0; i < cnt; i++)
		free(names[i]);
	free(names);
}

/* ---- a look ----------------------------------------------------------------------------------- */

/* 1 where it waited in vain. */
static int pool_look(struct stoup_exporter_pool *pool, int waited)
{
	int asks = !pool->watcher.control;

	if (asks && pool->rc == -ETIMEDOUT && (waited || stoup_clock_ns() < pool->retry_ns))
		return 0;
	if (asks && waited) {
		pool->rc = stoup_error_set(&pool->err, -ETIMEDOUT,
			"not looked at yet: another daemon does not answer");
		pool->retry_ns = 0;
		return 0;
	}
	pool->rc = stoup_watcher_look(&pool->watcher, &pool->watch, &pool->err);
	if (pool->rc >= 0) {
		pool->rc = 0;
		return 0;
	}
	stoup_watcher_fini(&pool->watcher);
	pool->retry_ns = stoup_clock_ns() + RETRY_NS;
	return pool->rc == -ETIMEDOUT;
}

/* Of pools that were found, not named: one that was gone when it was looked at, and others' pools. */
static int pool_ours(const struct stoup_exporter_pool *pool)
{
	return pool->rc == 0 || pool->rc == -ETIMEDOUT || pool->rc == -EPROTO ||
	       pool->rc == -EAGAIN || pool->rc == -ENOMEM || pool->rc == -EMFILE ||
	       pool->rc == -ENFILE;
}

void stoup_exporter_look(struct stoup_exporter *exporter)
{
	uint64_t start = stoup_clock_ns();
	uint32_t begin = exporter->turn;
	int waited = 0;

	if (!exporter->named)
		list_find(exporter);
	for (uint32_t i = 0; i < exporter->pool_cnt; i++) {
		uint32_t idx = (begin + i) % exporter->pool_cnt;
		struct stoup_exporter_pool *pool = &exporter->pools[idx];

		if (pool_look(pool, waited)) {
			waited = 1;
			exporter->turn = idx + 1;
		}
		pool->found = exporter->named || pool_ours(pool);
	}
	list_sweep(exporter);
	exporter->look_total++;
	exporter->look_ns = stoup_clock_ns() - start;
}
