/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - look at every byte of every span, twice where it was held. */
#include "storm/scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "storm/record.h"

#define SLOW_NS UINT64_C(300000) /* a call that took longer may have gone through another daemon */

uint64_t storm_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void storm_violation(
	struct storm_run *run, _Atomic uint64_t *tally, uint64_t n, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	storm_add(tally, n);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "storm: %s %" PRIu32 " (pid %d, seed %" PRIu64 "): %s\n",
		run->self ? "worker" : "victim", run->slot, (int)getpid(), run->seed, text);
}

void storm_progress(struct storm_run *run, uint64_t now_ns)
{
	if (run->self)
		atomic_store_explicit(&run->self->progress_ns, now_ns, memory_order_relaxed);
}

void storm_call_took(struct storm_run *run, const char *call, uint64_t asked_ns)
{
	uint64_t ns = storm_now() - asked_ns;

	if (ns > run->longest_ns + STORM_LATE_NS)
		storm_violation(run, &run->tally->late, 1, "%s took %.1f s, and may take %.1f s",
			call, (double)ns / 1e9, (double)run->longest_ns / 1e9);
}

/* ---- looking ---------------------------------------------------------------------------------- */

/* A record is not what must stand here: is it another one, or damaged? */
static void look_closer(
	struct storm_scan *scan, const struct stoup_mbo *found, uint64_t n, int held)
{
	struct storm_tally *tally = scan->run->tally;
	uint64_t other = storm_ordinal(found);
	int sound = storm_check(found) == found->sequence &&
	            found->order_id >> 48 == scan->series && found->flags == scan->edition;

	if (held || !sound || other == n)
		storm_violation(scan->run, held ? &tally->held_wrong : &tally->wrong, 1,
			"series %" PRIu32 ", ordinal %" PRIu64 "%s: damaged: order_id %" PRIx64
			", edition %u, check %08" PRIx32 " for %08" PRIx32,
			scan->series, n, held ? ", held" : "", found->order_id, found->flags,
			found->sequence, storm_check(found));
	else
		storm_violation(scan->run, other > n ? &tally->lost : &tally->doubled,
			other > n ? other - n : n - other,
			"series %" PRIu32 ": record %" PRIu64 " stands where %" PRIu64 " must",
			scan->series, other, n);
}

/* 1: every byte is right. */
static int look(struct storm_scan *scan, const struct stoup_span *span, int held)
{
	const struct stoup_mbo *found = span->base;
	struct stoup_mbo must;

	if (scan->edition == UINT32_MAX)
		scan->edition = found->flags;
	for (uint64_t i = 0; i < span->record_cnt; i++) {
		storm_record(scan->series, span->ordinal + i, scan->edition, &must);
		if (memcmp(&found[i], &must, sizeof(must)) == 0)
			continue;
		look_closer(scan, &found[i], span->ordinal + i, held);
		return 0;
	}
	return 1;
}

/* ---- holding ---------------------------------------------------------------------------------- */

static void held_end(struct storm_scan *scan, struct storm_held *held)
{
	int rc;

	if (!held->busy)
		return;
	look(scan, &held->span, 1);
	storm_add(&scan->run->tally->held, 1);
	rc = stoup_release(&held->lease);
	if (rc < 0)
		storm_violation(scan->run, &scan->run->tally->failed, 1, "stoup_release: %d", rc);
	held->busy = 0;
}

/* Give one held span back; 0 = there is none. */
static int held_drop(struct storm_scan *scan)
{
	for (uint32_t i = 0; i < STORM_HOLD_CAP; i++)
		if (scan->held[i].busy) {
			held_end(scan, &scan->held[i]);
			return 1;
		}
	return 0;
}

static void hold(struct storm_scan *scan, const struct stoup_span *span)
{
	struct storm_run *run = scan->run;
	struct storm_held *held;
	int rc;

	if (scan->hold_cnt == 0 || storm_below(&run->random, 1000) >= scan->hold_permille)
		return;
	held = &scan->held[storm_below(&run->random, scan->hold_cnt)];
	held_end(scan, held);
	rc = stoup_hold(span, &held->lease);
	if (rc == 0) {
		held->span = *span;
		held->busy = 1;
	} else if (rc != -EDQUOT) {
		storm_violation(run, &run->tally->failed, 1, "stoup_hold: %d", rc);
	}
}

void storm_scan_suspend(struct storm_scan *scan)
{
	while (held_drop(scan))
		;
	stoup_cursor_close(scan->cur);
	scan->cur = NULL;
}

/* ---- opening ---------------------------------------------------------------------------------- */

static int open_failed(struct storm_scan *scan, const char *what, int rc, const char *text)
{
	if (rc != -EPIPE)
		storm_violation(scan->run, &scan->run->tally->failed, 1,
			"series %" PRIu32 ": %s: %d: %s", scan->series, what, rc, text);
	return rc;
}

int storm_scan_open(struct storm_scan *scan)
{
	struct storm_run *run = scan->run;
	struct stoup_range range = {0};
	struct stoup_series series;
	struct stoup_error err = {0};
	char name[64];
	int rc;

	snprintf(name, sizeof(name), STORM_DATASET "/S%" PRIu32 "/mbo", scan->series);
	rc = stoup_series_find(run->st, name, &series, &err);
	if (rc == 0)
		rc = stoup_schema_require(&series, "mbo", sizeof(struct stoup_mbo), &err);
	if (rc < 0)
		return open_failed(scan, "finding it", rc, err.text);
	if (scan->whole && series.record_cnt > scan->end)
		scan->end = series.record_cnt;
	if (series.record_cnt < scan->end) {
		storm_violation(run, &run->tally->lost, scan->end - series.record_cnt,
			"series %" PRIu32 " has %" PRIu64 " records of %" PRIu64, scan->series,
			series.record_cnt, scan->end);
		return -ENODATA;
	}
	if (scan->next > 0)
		range.from_ns = storm_key(scan->series, scan->next);
	if (!scan->whole)
		range.to_ns = storm_key(scan->series, scan->end);
	/* A range begins and ends between keys, not inside a tie. */
	scan->next -= scan->next % storm_tie(scan->series);
	scan->end -= scan->whole ? 0 : scan->end % storm_tie(scan->series);
	rc = stoup_scan(run->st, &series, &range, &scan->cur, &err);
	return rc < 0 ? open_failed(scan, "stoup_scan", rc, err.text) : 0;
}

/* ---- stepping --------------------------------------------------------------------------------- */

/* Note when a call came back from another daemon than the one it began with. */
static void note_resume(struct storm_run *run, uint64_t asked_ns, uint64_t now_ns)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	uint32_t idx;

	if (!run->self || (now_ns - asked_ns < SLOW_NS && run->asked_ns == 0))
		return;
	if (run->by_hand ? run->asked_ns == 0
			 : stoup_stats(run->st, &stats) < 0 ||
				   stats.reconnect_cnt == run->reconnect_cnt)
		return;
	run->reconnect_cnt = stats.reconnect_cnt;
	idx = atomic_load_explicit(&run->self->resume_cnt, memory_order_relaxed);
	if (idx == STORM_RESUME_CAP)
		return;
	run->self->resumes[idx] = (struct storm_resume){
		.asked_ns = run->asked_ns ? run->asked_ns : asked_ns, .resumed_ns = now_ns};
	run->asked_ns = 0;
	atomic_store_explicit(&run->self->resume_cnt, idx + 1, memory_order_release);
}

static int span_seen(struct storm_scan *scan, const struct stoup_span *span)
{
	struct storm_tally *tally = scan->run->tally;

	if (span->ordinal != scan->next) {
		storm_violation(scan->run,
			span->ordinal > scan->next ? &tally->lost : &tally->doubled,
			span->ordinal > scan->next ? span->ordinal - scan->next
						   : scan->next - span->ordinal,
			"series %" PRIu32 ": a span begins at %" PRIu64 ", not at %" PRIu64,
			scan->series, span->ordinal, scan->next);
		return -EBADMSG;
	}
	if (!look(scan, span, 0))
		return -EBADMSG;
	storm_add(&tally->spans, 1);
	storm_add(&tally->records, span->record_cnt);
	storm_add(&tally->bytes, span->record_cnt * span->stride);
	scan->next += span->record_cnt;
	hold(scan, span);
	return 1;
}

static int end_seen(struct storm_scan *scan)
{
	struct storm_tally *tally = scan->run->tally;

	storm_add(&tally->scans, 1);
	if (scan->next >= scan->end && (scan->whole || scan->next == scan->end))
		return 0;
	storm_violation(scan->run, scan->next < scan->end ? &tally->lost : &tally->doubled,
		scan->next < scan->end ? scan->end - scan->next : scan->next - scan->end,
		"series %" PRIu32 ": the scan ended at %" PRIu64 " of %" PRIu64, scan->series,
		scan->next, scan->end);
	return 0;
}

static int error_seen(struct storm_scan *scan, int rc, uint64_t asked_ns)
{
	struct storm_run *run = scan->run;

	switch (rc) {
	case -EDQUOT:
	case -ENOBUFS:
	case -ETIMEDOUT:
		storm_add(&run->tally->waits, 1);
		/* Only what others hold is a reason to have nothing. */
		if (held_drop(scan) || rc != -EDQUOT)
			return -EAGAIN;
		break;
	case -EBUSY:
	case -ETIME:
		storm_add(&run->tally->waits, 1);
		return -EAGAIN;
	case -EPIPE:
		if (!run->self || run->by_hand) {
			run->asked_ns = asked_ns;
			return -EPIPE;
		}
		/* The library has waited its time, and the cursor stays. */
		storm_add(&run->tally->orphaned, 1);
		return -EAGAIN;
	case -ESTALE:
		if (scan->series >= STORM_SHIFT_IDX) {
			storm_add(&run->tally->stale, 1);
			return rc;
		}
		break;
	default:
		break;
	}
	storm_violation(run, &run->tally->failed, 1,
		"series %" PRIu32 ", ordinal %" PRIu64 ": stoup_next: %d: %s", scan->series,
		scan->next, rc, stoup_cursor_error(scan->cur)->text);
	return rc;
}

int storm_scan_step(struct storm_scan *scan)
{
	struct storm_run *run = scan->run;
	uint64_t asked_ns = storm_now(), now_ns;
	struct stoup_span span;
	int rc;

	rc = stoup_next(scan->cur, &span);
	now_ns = storm_now();
	storm_call_took(run, "stoup_next", asked_ns);
	if (rc >= 0) {
		storm_progress(run, now_ns);
		note_resume(run, asked_ns, now_ns);
	}
	if (rc > 0)
		return span_seen(scan, &span);
	return rc == 0 ? end_seen(scan) : error_seen(scan, rc, asked_ns);
}
