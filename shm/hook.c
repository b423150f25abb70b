/* SPDX-License-Identifier: Apache-2.0 */
/* hook.c - die at a named place. */
#include "shm/hook.h"

/* A file with nothing in it is not C. */
typedef int stoup_hook_unused;

#ifdef STOUP_HOOKS
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void stoup_hook(const char *name)
{
	static _Atomic long passed;
	const char *want = getenv("STOUP_HOOK");
	size_t len = strlen(name);
	long at = 1;

	if (!want || strncmp(want, name, len) != 0 || (want[len] != 0 && want[len] != ':'))
		return;
	if (want[len] == ':')
		at = strtol(want + len + 1, NULL, 10);
	if (atomic_fetch_add(&passed, 1) + 1 >= at)
		raise(SIGKILL);
}
#endif
