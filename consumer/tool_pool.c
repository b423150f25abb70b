/* SPDX-License-Identifier: Apache-2.0 */
/* tool_pool.c - which control object a tool's POOL argument means. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "consumer/client.h"
#include "consumer/tool_pool.h"

int stoup_pool_resolve(const char *pool, const struct stoup_control **ret, size_t *ret_len,
	struct stoup_error *err)
{
	char name[STOUP_POOL_NAME_CAP], real[PATH_MAX];
	int rc;

	if (!strchr(pool, '/'))
		return stoup_control_open(pool, ret, ret_len, err);
	rc = stoup_auto_name(pool, name, sizeof(name), real, err);
	if (rc < 0)
		return rc;
	rc = stoup_control_open(name, ret, ret_len, err);
	if (rc == -ENOENT)
		return stoup_error_set(err, rc,
			"the store %.150s has no automatic daemon now; it is started by whoever "
			"attaches",
			real);
	return rc;
}

int stoup_daemon_beside(char *dst, size_t cap)
{
	char own[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;
	int n;

	if (len <= 0)
		return 0;
	own[len] = 0;
	slash = strrchr(own, '/');
	if (!slash)
		return 0;
	*slash = 0;
	n = snprintf(dst, cap, "%s/stoupd", own);
	return n > 0 && (size_t)n < cap && access(dst, X_OK) == 0;
}
