/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - a progress line on stderr. */
#include "producer/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "producer/cmd.h"

#define REPAINT_NS 100000000 /* ten times a second: smooth to the eye, no cost */

void stoup_progress_begin(
	struct stoup_progress *progress, const char *label, uint64_t total_len, int quiet)
{
	*progress = (struct stoup_progress){
		.label = label,
		.total_len = total_len,
		.on = !quiet && isatty(STDERR_FILENO),
	};
}

void stoup_progress_step(struct stoup_progress *progress, uint64_t done_len, uint64_t record_cnt)
{
	char done[STOUP_SIZE_TEXT_CAP], total[STOUP_SIZE_TEXT_CAP];
	struct timespec now;
	int64_t now_ns;

	if (!progress->on)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	if (now_ns - progress->shown_ns < REPAINT_NS)
		return;
	progress->shown_ns = now_ns;
	progress->dirty = 1;
	stoup_size_format(done_len, done);
	fprintf(stderr, "\r\033[K%s: ", progress->label);
	if (progress->total_len > 0) {
		stoup_size_format(progress->total_len, total);
		fprintf(stderr, "%3.0f %%  %s of %s",
			100 * (double)done_len / (double)progress->total_len, done, total);
	} else {
		fprintf(stderr, "%s", done);
	}
	if (record_cnt > 0)
		fprintf(stderr, ", %.1f M records", (double)record_cnt / 1e6);
	fflush(stderr);
}

void stoup_progress_end(struct stoup_progress *progress)
{
	if (progress->dirty)
		fputs("\r\033[K", stderr);
	progress->dirty = 0;
}
