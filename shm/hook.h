/* SPDX-License-Identifier: Apache-2.0 */
/* hook.h - places between two stores where a test may end the process, as SIGKILL would.
 *
 * Compiled in with STOUP_HOOKS only; otherwise a hook is nothing. The environment says which hook kills,
 * and at which passing: STOUP_HOOK=NAME[:N]. docs/crash-states.md has a row for each place.
 *
 * Concurrency: any thread; the count is atomic.
 */
#ifndef STOUP_SHM_HOOK_H
#define STOUP_SHM_HOOK_H

#ifdef STOUP_HOOKS
/* Die here if the environment says so. */
void stoup_hook(const char *name);
#define STOUP_HOOK(name) stoup_hook(name)
#else
#define STOUP_HOOK(name) ((void)0)
#endif

#endif
