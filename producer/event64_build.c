/* SPDX-License-Identifier: Apache-2.0 */
/* event64_build.c - events per series, and their two orders (see event64_build.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/cmd.h"
#include "producer/event64_build.h"
#include "shm/format.h"

#define NOTE_CAP   512
#define WHERE_CAP  200
#define EVENTS_CAP (UINT64_C(1) << 31)

struct series {
	char *name;
	struct stoup_event64 *events;
	uint64_t cnt, cap;
	int64_t latency_ns;    /* the smallest: local_ts - exch_ts */
	char where[WHERE_CAP]; /* of the event that has it, where it is negative */
	struct stoup_event64_claims claims;
	struct stoup_event64_side bids, asks;
	int64_t book_exch_ns, book_local_ns; /* of the last change of a book that is told by them */
	uint64_t moved_cnt;                  /* changes that were moved to these */
};

struct stoup_event64_build {
	struct stoup_import *import;
	const struct stoup_event64_options *options;
	struct series *series;
	uint32_t series_cnt, series_cap;
	const char *file; /* in hand, and how many came so far */
	uint32_t file_no;
};

/* ---- life ------------------------------------------------------------------------------------- */

void stoup_event64_options_init(struct stoup_event64_options *options)
{
	*options = (struct stoup_event64_options){
		.feed_latency_ns = -1, .max_shift_ns = STOUP_EVENT64_SHIFT_CAP_NS};
}

void stoup_event64_note(const struct stoup_event64_options *options, const char *fmt, ...)
{
	char text[NOTE_CAP];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (options->note)
		options->note(options->note_arg, text);
	else
		fprintf(stderr, "%s\n", text);
}

int stoup_event64_build_create(struct stoup_import *import,
	const struct stoup_event64_options *options, struct stoup_event64_build **ret,
	struct stoup_error *err)
{
	struct stoup_event64_build *build = calloc(1, sizeof(*build));

	if (!build)
		return stoup_error_set(err, -ENOMEM, "no memory for events");
	build->import = import;
	build->options = options;
	*ret = build;
	return 0;
}

void stoup_event64_build_destroy(struct stoup_event64_build *build)
{
	if (!build)
		return;
	for (uint32_t i = 0; i < build->series_cnt; i++) {
		free(build->series[i].name);
		free(build->series[i].events);
		stoup_event64_claims_fini(&build->series[i].claims);
	}
	free(build->series);
	free(build);
}

/* ---- collecting ------------------------------------------------------------------------------- */

int64_t stoup_event64_build_series(
	struct stoup_event64_build *build, const char *name, struct stoup_error *err)
{
	struct series *grown;

	/* Asked once per symbol and file; feeds of many symbols keep what they got. */
	for (uint32_t i = build->series_cnt; i-- > 0;)
		if (strcmp(build->series[i].name, name) == 0)
			return i;
	if (build->series_cnt == build->series_cap) {
		uint32_t cap = build->series_cap ? build->series_cap * 2 : 16;

		grown = realloc(build->series, cap * sizeof(*grown));
		if (!grown)
			goto out_memory;
		build->series = grown;
		build->series_cap = cap;
	}
	build->series[build->series_cnt] = (struct series){.name = strdup(name)};
	if (!build->series[build->series_cnt].name)
		goto out_memory;
	return build->series_cnt++;
out_memory:
	return stoup_error_set(err, -ENOMEM, "no memory for the series %.100s", name);
}

static int grow(struct series *series, struct stoup_error *err)
{
	uint64_t cap = series->cap ? series->cap * 2 : 256;
	struct stoup_event64 *grown = NULL;

	if (cap <= EVENTS_CAP)
		grown = realloc(series->events, cap * sizeof(*grown));
	if (!grown)
		return stoup_error_set(err, -ENOMEM,
			"no memory for more than %" PRIu64
			" events of %.100s: give a day at a time",
			series->cnt, series->name);
	series->events = grown;
	series->cap = cap;
	return 0;
}

static void where_text(const struct stoup_where *where, char dst[WHERE_CAP])
{
	if (where->line > 0)
		snprintf(dst, WHERE_CAP, "%.150s:%" PRIu64, where->file, where->line);
	else
		snprintf(dst, WHERE_CAP, "%.150s, offset %" PRIu64, where->file, where->file_off);
}

/* The clear that opens a session may be hours old, and its times may be of another clock: it happens with
 * what follows. Is this what follows? */
static int open_clear(struct series *series, const struct stoup_event64 *event)
{
	struct stoup_event64 *clear = series->events;

	if (series->cnt != 1 || (clear->ev & 0xff) != STOUP_EV_CLEAR ||
		clear->local_ts > event->local_ts || clear->exch_ts > event->exch_ts)
		return 0;
	clear->exch_ts = event->exch_ts;
	clear->local_ts = event->local_ts;
	return 1;
}

int stoup_event64_build_add(struct stoup_event64_build *build, uint32_t series_idx,
	const struct stoup_event64 *event, const struct stoup_where *where, struct stoup_error *err)
{
	struct series *series = &build->series[series_idx];
	char text[WHERE_CAP];
	int64_t latency_ns;
	int rc, opens;

	if (event->exch_ts <= 0 || event->local_ts <= 0) {
		where_text(where, text);
		return stoup_error_set(err, -ERANGE,
			"%s: a time that is not after 1970 (exchange %" PRId64 ", local %" PRId64
			")",
			text, event->exch_ts, event->local_ts);
	}
	if (series->cnt == series->cap) {
		rc = grow(series, err);
		if (rc < 0)
			return rc;
	}
	latency_ns = event->local_ts - event->exch_ts;
	opens = open_clear(series, event);
	if (series->cnt == 0 || opens || latency_ns < series->latency_ns) {
		series->latency_ns = latency_ns;
		if (latency_ns < 0)
			where_text(where, series->where);
	}
	series->events[series->cnt++] = *event;
	stoup_event64_claims_time(&series->claims, event->local_ts, opens);
	return 0;
}

void stoup_event64_build_file(struct stoup_event64_build *build, const char *file)
{
	build->file = file;
	build->file_no++;
}

int stoup_event64_build_claim(struct stoup_event64_build *build, uint32_t series_idx,
	const char *feed, uint32_t tells, struct stoup_error *err)
{
	struct series *series = &build->series[series_idx];

	return stoup_event64_claims_file(
		&series->claims, series->name, build->file, build->file_no, feed, tells, err);
}

int stoup_event64_build_source(struct stoup_event64_build *build, uint32_t series_idx,
	const char *source, struct stoup_error *err)
{
	struct series *series = &build->series[series_idx];

	return stoup_event64_claims_source(&series->claims, series->name, source, err);
}

/* ---- times ------------------------------------------------------------------------------------ */

/* No event is known here before it happened. */
static int shift(
	const struct stoup_event64_build *build, struct series *series, struct stoup_error *err)
{
	const struct stoup_event64_options *options = build->options;
	char by[STOUP_DURATION_TEXT_CAP], most[STOUP_DURATION_TEXT_CAP];
	int64_t shift_ns = -series->latency_ns;

	if (shift_ns <= 0)
		return 0;
	stoup_duration_format(shift_ns, by);
	if (shift_ns > options->max_shift_ns) {
		stoup_duration_format(options->max_shift_ns, most);
		return stoup_error_set(err, -ERANGE,
			"%s: the local time is %s before the exchange's; at most %s are made up for by moving the "
			"local times of the series: mend the row, or say --max-shift",
			series->where, by, most);
	}
	shift_ns += options->base_latency_ns;
	for (uint64_t i = 0; i < series->cnt; i++)
		if (__builtin_add_overflow(
			    series->events[i].local_ts, shift_ns, &series->events[i].local_ts))
			return stoup_error_set(err, -ERANGE,
				"%.100s: a local time ends beyond the year 2262", series->name);
	stoup_event64_note(options,
		"%s: local times were up to %s before the exchange's (%s): all were moved %" PRId64
		" ns later",
		series->name, by, series->where, shift_ns);
	return 0;
}

/* ---- order ------------------------------------------------------------------------------------ */

struct sorting {
	const struct stoup_event64 *events;
	int by_local;
};

static int64_t time_of(const struct sorting *sorting, uint32_t idx)
{
	return sorting->by_local ? sorting->events[idx].local_ts : sorting->events[idx].exch_ts;
}

/* By time, then as they came. */
static int sort_cmp(const void *a, const void *b, void *arg)
{
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
	int64_t ta = time_of(arg, ia), tb = time_of(arg, ib);

	if (ta != tb)
		return ta < tb ? -1 : 1;
	return ia < ib ? -1 : ia > ib;
}

static uint32_t *sorted(const struct series *series, int by_local)
{
	struct sorting sorting = {series->events, by_local};
	uint32_t *order = malloc(series->cnt * sizeof(*order));

	if (!order)
		return NULL;
	for (uint64_t i = 0; i < series->cnt; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, series->cnt, sizeof(*order), sort_cmp, &sorting);
	return order;
}

struct output {
	struct stoup_import *import;
	struct stoup_where where;
	uint32_t series_idx;
};

static int put(struct output *out, const struct stoup_event64 *event, uint64_t flags,
	struct stoup_error *err)
{
	struct stoup_event64 copy = *event;

	copy.ev |= flags;
	return stoup_import_put(
		out->import, out->series_idx, copy.local_ts, &copy, &out->where, err);
}

/* Weave the two orders: the earlier head comes first, and an event that is the head of both comes once. */
static int weave(struct output *out, const struct series *series, const uint32_t *exch,
	const uint32_t *local, struct stoup_error *err)
{
	uint64_t i = 0, j = 0;
	int rc = 0;

	while (rc == 0 && (i < series->cnt || j < series->cnt)) {
		const struct stoup_event64 *a = &series->events[exch[i < series->cnt ? i : 0]];
		const struct stoup_event64 *b = &series->events[local[j < series->cnt ? j : 0]];
		int exch_first = i < series->cnt &&
		                 (j == series->cnt || a->exch_ts < b->exch_ts ||
					 (a->exch_ts == b->exch_ts && a->local_ts <= b->local_ts));

		if (i < series->cnt && j < series->cnt && a == b) {
			rc = put(out, a, STOUP_EV_EXCH | STOUP_EV_LOCAL, err);
			i++;
			j++;
		} else if (exch_first) {
			rc = put(out, a, STOUP_EV_EXCH, err);
			i++;
		} else {
			rc = put(out, b, STOUP_EV_LOCAL, err);
			j++;
		}
	}
	return rc;
}

static int is_sorted(const struct series *series)
{
	const struct stoup_event64 *events = series->events;

	for (uint64_t i = 1; i < series->cnt; i++)
		if (events[i].exch_ts < events[i - 1].exch_ts ||
			events[i].local_ts < events[i - 1].local_ts)
			return 0;
	return 1;
}

static int put_sorted(struct output *out, const struct series *series, struct stoup_error *err)
{
	int rc = 0;

	for (uint64_t i = 0; i < series->cnt && rc == 0; i++)
		rc = put(out, &series->events[i], STOUP_EV_EXCH | STOUP_EV_LOCAL, err);
	return rc;
}

static int put_woven(struct output *out, const struct series *series, struct stoup_error *err)
{
	uint32_t *exch = sorted(series, 0), *local = sorted(series, 1);
	int rc = exch && local ? weave(out, series, exch, local, err)
	                       : stoup_error_set(err, -ENOMEM,
					 "no memory to sort %" PRIu64 " events of %.100s",
					 series->cnt, series->name);

	free(exch);
	free(local);
	return rc;
}

static int series_finish(
	struct stoup_event64_build *build, struct series *series, struct stoup_error *err)
{
	struct output out = {.import = build->import, .where = {.file = series->name}};
	int64_t series_idx;
	int rc;

	if (series->cnt == 0)
		return 0;
	rc = stoup_event64_claims_check(&series->claims, series->name, err);
	if (rc < 0)
		return rc;
	series_idx = stoup_import_series(
		build->import, series->name, stoup_schema_by_name("event64"), err);
	if (series_idx < 0)
		return (int)series_idx;
	out.series_idx = (uint32_t)series_idx;
	if (series->moved_cnt > 0)
		stoup_event64_note(build->options,
			"%s: %" PRIu64
			" changes of the book came with an earlier time than the one before: they were "
			"moved to its time",
			series->name, series->moved_cnt);
	rc = shift(build, series, err);
	if (rc == 0)
		rc = is_sorted(series) ? put_sorted(&out, series, err)
		                       : put_woven(&out, series, err);
	free(series->events);
	series->events = NULL;
	series->cnt = series->cap = 0;
	return rc;
}

int stoup_event64_build_finish(struct stoup_event64_build *build, struct stoup_error *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < build->series_cnt && rc == 0; i++)
		rc = series_finish(build, &build->series[i], err);
	return rc;
}

/* ---- books ------------------------------------------------------------------------------------ */

static const struct stoup_event64_level *level_find(
	const struct stoup_event64_side *side, double px)
{
	for (uint32_t i = 0; i < side->cnt; i++)
		if (side->levels[i].px == px)
			return &side->levels[i];
	return NULL;
}

static int side_changed(
	const struct stoup_event64_side *before, const struct stoup_event64_side *now)
{
	if (before->cnt != now->cnt)
		return 1;
	for (uint32_t i = 0; i < now->cnt; i++) {
		const struct stoup_event64_level *old = level_find(before, now->levels[i].px);

		if (!old || old->qty != now->levels[i].qty)
			return 1;
	}
	return 0;
}

int stoup_event64_book_times(struct stoup_event64_build *build, uint32_t series_idx,
	struct stoup_event64 *event, const struct stoup_where *where, struct stoup_error *err)
{
	struct series *series = &build->series[series_idx];
	int64_t back_ns = series->book_local_ns - event->local_ts;
	char text[WHERE_CAP], now[STOUP_FORMAT_CAP], before[STOUP_FORMAT_CAP];

	if (event->exch_ts <= 0 || event->local_ts <= 0)
		return 0; /* refused when it is added */
	if (back_ns > build->options->max_shift_ns) {
		where_text(where, text);
		stoup_format_time(event->local_ts, now);
		stoup_format_time(series->book_local_ns, before);
		return stoup_error_set(err, -EILSEQ,
			"%.120s: the local time of a book steps back from %s to %s: give files in the order of "
			"time, sort the rows, or say --max-shift",
			text, before, now);
	}
	if (back_ns > 0 || event->exch_ts < series->book_exch_ns) {
		series->moved_cnt++;
		if (back_ns > 0)
			event->local_ts = series->book_local_ns;
		if (event->exch_ts < series->book_exch_ns)
			event->exch_ts = series->book_exch_ns;
	}
	series->book_exch_ns = event->exch_ts;
	series->book_local_ns = event->local_ts;
	return 0;
}

int stoup_event64_side_add(struct stoup_event64_build *build, uint32_t series_idx,
	const struct stoup_event64 *event, const struct stoup_event64_side *now,
	const struct stoup_where *where, struct stoup_error *err)
{
	struct series *series = &build->series[series_idx];
	struct stoup_event64_side *before =
		event->ev & STOUP_EV_BUY ? &series->bids : &series->asks;
	struct stoup_event64 depth = *event;
	int rc = 0;

	if (!side_changed(before, now))
		return 0;
	rc = stoup_event64_book_times(build, series_idx, &depth, where, err);
	for (uint32_t i = 0; i < before->cnt && rc == 0; i++) {
		if (level_find(now, before->levels[i].px))
			continue;
		depth.px = before->levels[i].px;
		depth.qty = 0;
		rc = stoup_event64_build_add(build, series_idx, &depth, where, err);
	}
	for (uint32_t i = 0; i < now->cnt && rc == 0; i++) {
		const struct stoup_event64_level *old = level_find(before, now->levels[i].px);

		if (old && old->qty == now->levels[i].qty)
			continue;
		depth.px = now->levels[i].px;
		depth.qty = now->levels[i].qty;
		rc = stoup_event64_build_add(build, series_idx, &depth, where, err);
	}
	*before = *now;
	return rc;
}

void stoup_event64_book_clear(struct stoup_event64_build *build, uint32_t series_idx)
{
	build->series[series_idx].bids.cnt = build->series[series_idx].asks.cnt = 0;
}
