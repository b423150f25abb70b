/* SPDX-License-Identifier: Apache-2.0 */
/* tool_choose.c - see tool_choose.h. */
#include "consumer/tool_choose.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "consumer/exporter.h"
#include "shm/format.h"
#include "shm/wire.h"

#define DEAD_SHOWN 8u /* what killed daemons left may be hundreds */

/* One that does not answer may well live; of one that cannot be looked at nothing is known. */
static int lives(const struct stoup_exporter_pool *pool)
{
	if (pool->rc < 0)
		return pool->rc == -ETIMEDOUT;
	return pool->watch.state != STOUP_WATCH_STOPPED && pool->watch.state != STOUP_WATCH_DEAD;
}

static void print_pool(const struct stoup_exporter_pool *pool)
{
	const struct stoup_watch *watch = &pool->watch;

	if (pool->rc < 0)
		fprintf(stderr, "  %-10s %s: %s\n", stoup_exporter_state(pool), pool->name,
			pool->err.text);
	else
		fprintf(stderr, "  %-10s %s: %.1f MiB, %u consumer%s, store %s\n",
			stoup_exporter_state(pool), pool->name, (double)watch->data_len / 1048576.0,
			watch->consumer_cnt, STOUP_PLURAL(watch->consumer_cnt), watch->store_path);
}

static void print_all(
	const char *command, const struct stoup_exporter *exporter, uint32_t living_cnt)
{
	uint32_t dead_cnt = exporter->pool_cnt - living_cnt, shown = 0;

	if (exporter->pool_cnt == 0) {
		fprintf(stderr,
			"%s: a POOL is wanted, and there is none of this user or of the system; mend: stoupd --store STORE "
			"--pool NAME, or the path of a store with a slash\n",
			command);
		return;
	}
	fprintf(stderr, "%s: a POOL is wanted, one of these:\n", command);
	for (uint32_t i = 0; i < exporter->pool_cnt; i++)
		if (lives(&exporter->pools[i]))
			print_pool(&exporter->pools[i]);
	for (uint32_t i = 0; i < exporter->pool_cnt && shown < DEAD_SHOWN; i++)
		if (!lives(&exporter->pools[i])) {
			print_pool(&exporter->pools[i]);
			shown++;
		}
	if (dead_cnt + exporter->left_out > shown)
		fprintf(stderr, "  and %u more, whose daemons ended\n",
			dead_cnt + exporter->left_out - shown);
}

int stoup_tool_choose_pool(const char *command, char dst[STOUP_POOL_NAME_CAP])
{
	const struct stoup_exporter_pool *living = NULL, *one;
	struct stoup_exporter exporter;
	struct stoup_error err;
	uint32_t living_cnt = 0;
	int found;

	if (stoup_exporter_init(&exporter, NULL, 0, &err) < 0) {
		fprintf(stderr, "%s: %s\n", command, err.text);
		return 2;
	}
	stoup_exporter_look(&exporter);
	if (exporter.find_rc < 0) {
		fprintf(stderr, "%s: which pools there are: %s\n", command,
			strerror(-exporter.find_rc));
		stoup_exporter_fini(&exporter);
		return 2;
	}
	for (uint32_t i = 0; i < exporter.pool_cnt; i++)
		if (lives(&exporter.pools[i])) {
			living = &exporter.pools[i];
			living_cnt++;
		}
	one = exporter.pool_cnt == 1 && exporter.left_out == 0 ? &exporter.pools[0] : living;
	found = one && (living_cnt == 1 || exporter.pool_cnt == 1);
	if (found) {
		snprintf(dst, STOUP_POOL_NAME_CAP, "%s", one->name);
		fprintf(stderr, "%s: of pool '%s', the only one%s\n", command, dst,
			exporter.pool_cnt > 1 ? " whose daemon lives" : "");
	} else {
		print_all(command, &exporter, living_cnt);
	}
	stoup_exporter_fini(&exporter);
	return found ? 0 : 3;
}

int stoup_tool_pool_valid(const char *command, const char *pool)
{
	struct stoup_error err;

	if (strchr(pool, '/') || stoup_pool_name_valid(pool, &err) == 0)
		return 0;
	fprintf(stderr, "%s: %s\n", command, err.text);
	return 3;
}
