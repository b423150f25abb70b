/* SPDX-License-Identifier: Apache-2.0 */
/* tool_watch_words.c - what a look means: words for states, quantiles, rates between two looks, and the way from one
 * daemon to its successor. See tool_watch.h.
 */
#include <stdio.h>
#include <string.h>
#include "consumer/tool_pool.h"
#include "consumer/tool_watch.h"

/* ---- states ----------------------------------------------------------------------------------- */

const char *stoup_watch_state_name(enum stoup_watch_state state)
{
	static const char *const names[STOUP_WATCH_STATE_CNT] = {
		[STOUP_WATCH_RUNNING] = "running",
		[STOUP_WATCH_STARTING] = "starting",
		[STOUP_WATCH_SILENT] = "silent",
		[STOUP_WATCH_SUSPENDED] = "suspended",
		[STOUP_WATCH_STOPPED] = "stopped",
		[STOUP_WATCH_DEAD] = "dead",
	};

	return (uint32_t)state < STOUP_WATCH_STATE_CNT ? names[state] : "?";
}

const char *stoup_watch_state_text(const struct stoup_watch *watch, char *dst, size_t cap)
{
	*dst = 0;
	switch (watch->state) {
	case STOUP_WATCH_RUNNING:
	case STOUP_WATCH_STATE_CNT:
		break;
	case STOUP_WATCH_STARTING:
		snprintf(dst, cap, "the daemon is starting: wait a moment");
		break;
	case STOUP_WATCH_SILENT:
		snprintf(dst, cap,
			"no heartbeat for %.1f s: the daemon is %sstuck or the machine is overloaded; mend: look at "
			"process %u",
			(double)watch->heartbeat_ns / 1e9,
			watch->life < 0
				? "dead (its process is not seen here: another PID namespace, or hidepid), stopped, "
				: "",
			watch->daemon_pid);
		break;
	case STOUP_WATCH_SUSPENDED:
		snprintf(dst, cap,
			"the daemon is stopped by a signal or a debugger, no heartbeat for %.1f s: what is in the pool "
			"is served, the rest waits; mend: kill -CONT %u",
			(double)watch->heartbeat_ns / 1e9, watch->daemon_pid);
		break;
	case STOUP_WATCH_STOPPED:
		snprintf(dst, cap, "the daemon ended in order: start it again");
		break;
	case STOUP_WATCH_DEAD:
		snprintf(dst, cap,
			"the daemon was killed, its last look was %.1f s ago: consumers keep what they hold; start it "
			"again, nothing needs cleaning",
			(double)watch->heartbeat_ns / 1e9);
		break;
	}
	return dst;
}

/* ---- a pool that is looked at again and again ------------------------------------------------- */

void stoup_watcher_fini(struct stoup_watcher *watcher)
{
	stoup_control_close(watcher->control, watcher->len);
	watcher->control = NULL;
	watcher->len = 0;
}

/* The daemon is gone: is there another one of its name? 1 = its object is mapped now. */
static int successor(struct stoup_watcher *watcher, const struct stoup_watch *last)
{
	const struct stoup_control *control;
	size_t len;

	if (stoup_pool_resolve(watcher->pool, &control, &len, NULL) < 0)
		return 0;
	if (memcmp(control->instance, last->instance, sizeof(last->instance)) == 0) {
		stoup_control_close(control, len);
		return 0;
	}
	stoup_watcher_fini(watcher);
	watcher->control = control;
	watcher->len = len;
	return 1;
}

int stoup_watcher_look(
	struct stoup_watcher *watcher, struct stoup_watch *ret, struct stoup_error *err)
{
	int rc = 0, fresh = !watcher->control;

	if (fresh)
		rc = stoup_pool_resolve(watcher->pool, &watcher->control, &watcher->len, err);
	if (rc < 0) {
		watcher->control = NULL;
		stoup_watch_fini(ret);
		return rc;
	}
	rc = stoup_watch_read(watcher->control, watcher->len, ret, err);
	/* The next look opens it anew: by then there may be a good one of that name. */
	if (rc < 0)
		stoup_watcher_fini(watcher);
	if (rc < 0 || fresh)
		return rc;
	if ((ret->state == STOUP_WATCH_DEAD || ret->state == STOUP_WATCH_STOPPED) &&
		successor(watcher, ret))
		return stoup_watch_read(watcher->control, watcher->len, ret, err);
	return 0;
}

/* ---- words and rates -------------------------------------------------------------------------- */

const char *stoup_watch_consumer_name(uint32_t state)
{
	return state == STOUP_CONSUMER_DEAF     ? "deaf"
	       : state == STOUP_CONSUMER_TICKET ? "forking"
	                                        : "attached";
}

const char *stoup_watch_consumer_word(const struct stoup_watch_consumer *consumer)
{
	return consumer->gone        ? "ended"
	       : consumer->suspended ? "suspended"
	                             : stoup_watch_consumer_name(consumer->state);
}

const char *stoup_watch_buffer_name(uint32_t state)
{
	return state == STOUP_BUFFER_LOADING    ? "loading"
	       : state == STOUP_BUFFER_RESIDENT ? "resident"
	       : state == STOUP_BUFFER_DRAINING ? "draining"
	                                        : "free";
}

const char *stoup_watch_volume_name(uint32_t state)
{
	return state == STOUP_VOLUME_SERVED ? "served" : "retired";
}

uint64_t stoup_watch_value(const struct stoup_watch *watch, enum stoup_counter id)
{
	return (uint32_t)id < watch->counter_cnt ? watch->counters[id].value : 0;
}

double stoup_watch_ratio(uint64_t hits, uint64_t misses)
{
	return hits + misses == 0 ? -1 : (double)hits / ((double)hits + (double)misses);
}

double stoup_watch_seconds(const struct stoup_watch *before, const struct stoup_watch *now)
{
	if (before->taken_ns == 0 || before->taken_ns >= now->taken_ns ||
		memcmp(before->instance, now->instance, sizeof(now->instance)) != 0)
		return 0;
	return (double)(now->taken_ns - before->taken_ns) / 1e9;
}

double stoup_watch_per_second(uint64_t before, uint64_t now, double seconds)
{
	return seconds > 0 && now > before ? (double)(now - before) / seconds : 0;
}

double stoup_watch_rate(
	const struct stoup_watch *before, const struct stoup_watch *now, enum stoup_counter id)
{
	return stoup_watch_per_second(stoup_watch_value(before, id), stoup_watch_value(now, id),
		stoup_watch_seconds(before, now));
}

uint64_t stoup_watch_quantile(const struct stoup_watch_histogram *histogram, double q)
{
	uint64_t rank, seen = 0, high;

	if (histogram->count == 0)
		return 0;
	/* The smallest rank whose part is at least q. */
	rank = (uint64_t)(q * (double)histogram->count);
	if ((double)rank < q * (double)histogram->count)
		rank++;
	for (uint32_t i = 0; i < STOUP_HISTOGRAM_BUCKETS; i++) {
		seen += histogram->buckets[i];
		if (seen < rank || seen == 0)
			continue;
		/* The last bucket has no upper end. */
		high = i + 1 < STOUP_HISTOGRAM_BUCKETS ? stoup_histogram_low(i + 1) - 1
		                                       : histogram->max;
		return high < histogram->max ? high : histogram->max;
	}
	return histogram->max;
}

const struct stoup_watch_consumer *stoup_watch_same(
	const struct stoup_watch *watch, const struct stoup_watch_consumer *consumer)
{
	for (uint32_t i = 0; i < watch->consumer_cnt; i++)
		if (watch->consumers[i].idx == consumer->idx &&
			watch->consumers[i].attach_no == consumer->attach_no)
			return &watch->consumers[i];
	return NULL;
}
