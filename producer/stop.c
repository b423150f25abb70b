/* SPDX-License-Identifier: Apache-2.0 */
/* stop.c - see stop.h. */
#include "producer/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t caught; /* its number */

static void note(int number)
{
	caught = number;
}

void stoup_stop_catch(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = note,
				 .sa_flags = (int)(SA_RESTART | SA_RESETHAND)},
			 old;

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
}

int stoup_stop_asked(struct stoup_error *err)
{
	int number = caught;

	if (!number)
		return 0;
	return stoup_error_set(err, -EINTR, "ended by %s: the store is as it was",
		number == SIGINT    ? "Ctrl-C"
		: number == SIGTERM ? "SIGTERM"
				    : "SIGHUP");
}

void stoup_stop_raise(void)
{
	int number = caught;

	if (!number)
		return;
	fflush(NULL);
	signal(number, SIG_DFL);
	raise(number);
}
