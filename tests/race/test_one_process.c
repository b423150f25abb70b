/* SPDX-License-Identifier: Apache-2.0 */
/* test_one_process.c - the real daemon and the real library in one address space, on one mapping of each
 * object: a pool much too small, for a thread sanitizer, and a count of every record.
 *
 *      daemon (its own thread)     conductor, decode workers, reader
 *      sharers                     threads of one attachment: scan all, keep some spans
 *      comers                      attach, scan a part, keep some spans, detach, again
 *      releaser                    gives the kept spans of others back, after a look at every byte
 *
 * What must hold: each record is what was put into the store, in order; no report of the sanitizer
 * (one_mapping.h says why it sees what it should); and that the run was one: blocks were evicted, kept
 * because they were held, read ahead, and waited for in a starving pool.
 *
 * A second run begins with generations just before they come round: each buffer's goes from 2^40 - 1 to 1
 * under load.
 *
 * Bounded by rounds, and by a few seconds. STOUP_ROUNDS multiplies both.
 */
#include <check.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include "tests/race/one_mapping.h"
#include "tests/unit/import_fixture.h"
#include "consumer/stoup.h"
#include "producer/daemon.h"

#define SERIES_CNT 3u
#define RECORD_CNT 8000u                 /* of a series: 7 blocks of 64 KiB */
#define POOL_SMALL (UINT64_C(448) << 10) /* 7 blocks: starves, claims */
#define POOL_MORE  (UINT64_C(1) << 20)   /* room to read ahead */
#define BLOCK_LEN  (64u << 10)
#define SHARER_CNT 3u
#define COMER_CNT  2u
#define KEPT_CAP   64u
#define RUN_NS     UINT64_C(3000000000)
#define MORE_NS    UINT64_C(200000000000) /* until what a run is for has happened, by chance */
#define SCANS_MIN  4u                     /* of each thread, however slow the machine */
#define START_KEY  INT64_C(1700000000000000000)

static struct {
	char pool[32];
	struct stoup_daemon_options options;
	pthread_t daemon;
	int daemon_rc;
	struct stoup_error daemon_err;
	int ready_fds[2];
	uint64_t end_ns;
	int (*enough)(void);
	_Atomic uint32_t running; /* scanning threads */
	_Atomic uint64_t record_cnt, scan_cnt, attach_cnt, kept_cnt, full_cnt;

	pthread_mutex_t mutex; /* of the ring below */
	struct stoup_lease kept[KEPT_CAP];
	struct stoup_span spans[KEPT_CAP];
	uint32_t series[KEPT_CAP];
	uint32_t first, cnt;
} run;

static uint64_t factor(void)
{
	const char *text = getenv("STOUP_ROUNDS");

	return text ? strtoull(text, NULL, 10) : 1;
}

/* ---- the store ------------------------------------------------------------------------------- */

static const char *const names[SERIES_CNT] = {"T/A/fx", "T/B/fx", "T/C/fx"};

static uint64_t id_of(uint32_t series, uint64_t ordinal)
{
	return (uint64_t)(series + 1) * 1000000 + ordinal;
}

static void make_store(void)
{
	struct stoup_import_options options = fx_options();
	struct stoup_import *import;

	fx_setup();
	options.block_len = BLOCK_LEN;
	import = fx_begin(&options);
	for (uint32_t s = 0; s < SERIES_CNT; s++) {
		uint32_t idx = fx_series(import, names[s]);

		for (uint64_t i = 0; i < RECORD_CNT; i++)
			fx_put(import, idx, id_of(s, i), START_KEY + (int64_t)i * 1000);
	}
	fx_finish(import);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static void *daemon_main(void *arg)
{
	(void)arg;
	run.daemon_rc = stoup_daemon_run(&run.options, &run.daemon_err);
	return NULL;
}

static void daemon_start(uint64_t pool_len, uint64_t gen_first)
{
	char dir[300], text[256];
	ssize_t len;
	sigset_t set;

	snprintf(dir, sizeof(dir), "%s/run", fx_root);
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	snprintf(run.pool, sizeof(run.pool), "one.%d", (int)getpid());
	ck_assert_int_eq(pipe(run.ready_fds), 0);
	run.options = (struct stoup_daemon_options){.store_path = {fx_store},
		.store_cnt = 1,
		.pool = run.pool,
		.pool_len = pool_len,
		.backing = STOUP_BACKING_MEMFD,
		.consumer_cap = 16,
		.cell_cap = 64,
		.decode_threads = 2,
		.lease_bytes_cap = pool_len,
		.request_timeout_ns = UINT64_C(30000000000),
		.request_cap = STOUP_SLOT_CNT,
		.reader = {.kind = STOUP_READER_PREAD, .depth = 8, .threads = 2},
		.gen_first = gen_first,
		.automatic = 1, /* the private runtime directory, also for root */
		.linger_ns = UINT64_C(3600000000000),
		.ready_fd = run.ready_fds[1],
		.quiet = 1};
	/* The daemon takes SIGTERM from a descriptor: no thread of this process may. */
	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	ck_assert_int_eq(pthread_create(&run.daemon, NULL, daemon_main, NULL), 0);
	len = read(run.ready_fds[0], text, sizeof(text) - 1);
	ck_assert_int_gt(len, 0);
	text[len] = 0;
	ck_assert_str_eq(text, "ready\n");
	close(run.ready_fds[0]);
}

static void daemon_stop(void)
{
	char dir[300], file[400];

	ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
	ck_assert_int_eq(pthread_join(run.daemon, NULL), 0);
	ck_assert_msg(run.daemon_rc == 0, "%s", run.daemon_err.text);
	snprintf(file, sizeof(file), "%s/run/stoup/%s.lock", fx_root, run.pool);
	unlink(file);
	snprintf(dir, sizeof(dir), "%s/run/stoup", fx_root);
	ck_assert_int_eq(rmdir(dir), 0);
	snprintf(dir, sizeof(dir), "%s/run", fx_root);
	ck_assert_int_eq(rmdir(dir), 0);
	fx_teardown();
}

/* ---- consumers ------------------------------------------------------------------------------- */

/* Every byte of every record is what was put. */
static void span_check(const struct stoup_span *span, uint32_t series)
{
	const struct fx_record *records = span->base;

	for (uint64_t i = 0; i < span->record_cnt; i++) {
		uint64_t ordinal = span->ordinal + i;
		struct fx_record expected =
			fx_record_make(id_of(series, ordinal), START_KEY + (int64_t)ordinal * 1000);

		ck_assert_msg(memcmp(&records[i], &expected, sizeof(expected)) == 0,
			"series %u, record %" PRIu64 " is another: id %" PRIu64, series, ordinal,
			records[i].order_id);
	}
}

/* Keep a span for the releaser, if there is room. */
static void keep(const struct stoup_span *span, uint32_t series)
{
	struct stoup_lease lease;
	uint32_t at;

	pthread_mutex_lock(&run.mutex);
	if (run.cnt == KEPT_CAP || stoup_hold(span, &lease) < 0) {
		pthread_mutex_unlock(&run.mutex);
		return;
	}
	at = (run.first + run.cnt++) % KEPT_CAP;
	run.kept[at] = lease;
	run.spans[at] = *span;
	run.series[at] = series;
	pthread_mutex_unlock(&run.mutex);
	atomic_fetch_add_explicit(&run.kept_cnt, 1, memory_order_relaxed);
}

/* Take the oldest kept span of `st` (NULL: of anybody), look at it and give it back. */
static int keep_end(const struct stoup *st)
{
	struct stoup_lease lease = {0};
	struct stoup_span span;
	uint32_t series = 0;

	pthread_mutex_lock(&run.mutex);
	for (uint32_t i = 0; i < run.cnt; i++) {
		uint32_t at = (run.first + i) % KEPT_CAP;

		if (st && run.kept[at].client != st)
			continue;
		lease = run.kept[at];
		span = run.spans[at];
		series = run.series[at];
		run.kept[at] = run.kept[run.first];
		run.spans[at] = run.spans[run.first];
		run.series[at] = run.series[run.first];
		run.first = (run.first + 1) % KEPT_CAP;
		run.cnt--;
		break;
	}
	pthread_mutex_unlock(&run.mutex);
	if (!lease.client)
		return 0;
	span_check(&span, series);
	ck_assert_int_eq(stoup_release(&lease), 0);
	return 1;
}

/* One scan from `from` on; keeps one span in `rate`. Returns how many records there were. */
static uint64_t scan(struct stoup *st, uint32_t which, uint64_t from, uint32_t rate)
{
	struct stoup_range range = {.from_ns = START_KEY + (int64_t)from * 1000};
	uint64_t at = from, spans = 0;
	struct stoup_cursor *cur = NULL;
	struct stoup_series series;
	struct stoup_error err = {0};
	struct stoup_span span;
	int rc;

	ck_assert_int_eq(stoup_series_find(st, names[which], &series, &err), 0);
	ck_assert_msg(stoup_scan(st, &series, &range, &cur, &err) == 0, "%s", err.text);
	while ((rc = stoup_next(cur, &span)) != 0) {
		/* What is kept is given back by another thread, soon. */
		if (rc == -EDQUOT || rc == -EMFILE) {
			atomic_fetch_add_explicit(&run.full_cnt, 1, memory_order_relaxed);
			keep_end(st);
			continue;
		}
		ck_assert_msg(rc == 1, "%d: %s", rc, stoup_cursor_error(cur)->text);
		ck_assert_uint_eq(span.ordinal, at);
		span_check(&span, which);
		at += span.record_cnt;
		if (++spans % rate == 0)
			keep(&span, which);
	}
	ck_assert_uint_eq(at, RECORD_CNT);
	stoup_cursor_close(cur);
	atomic_fetch_add_explicit(&run.record_cnt, at - from, memory_order_relaxed);
	atomic_fetch_add_explicit(&run.scan_cnt, 1, memory_order_relaxed);
	return at - from;
}

static uint64_t counter(enum stoup_counter id)
{
	return atomic_load(&stoup_control_counters(atomic_load(&one_control))[id].value);
}

/* Buffers whose generations began anew. */
static uint32_t came_round(void)
{
	const struct stoup_control_buffer *table = stoup_control_buffers(atomic_load(&one_control));
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < atomic_load(&one_control)->buffer_cap; i++) {
		uint64_t gen = atomic_load(&table[i].gen);

		ck_assert_uint_le(gen, STOUP_WORD_GEN_MASK);
		cnt += gen != 0 && gen < STOUP_WORD_GEN_MASK / 2;
	}
	return cnt;
}

static int enough_with_room(void)
{
	return counter(STOUP_COUNTER_EVICTIONS) > 0 && counter(STOUP_COUNTER_AHEAD_LOADED) > 0 &&
	       atomic_load(&run.kept_cnt) > 0;
}

static int enough_without(void)
{
	return counter(STOUP_COUNTER_STARVED) > 0 && counter(STOUP_COUNTER_CLAIMS) > 0 &&
	       counter(STOUP_COUNTER_EVICT_KEPT) > 0 && atomic_load(&run.kept_cnt) > 0 &&
	       came_round() >= 3;
}

static int goes_on(uint32_t round)
{
	uint64_t now = stoup_now_ns();

	return round < SCANS_MIN || now < run.end_ns ||
	       (now < run.end_ns + MORE_NS && !run.enough());
}

struct sharer {
	pthread_t thread;
	struct stoup *st;
	uint32_t which;
};

static void *sharer_main(void *arg)
{
	const struct sharer *s = arg;

	for (uint32_t round = 0; goes_on(round); round++)
		scan(s->st, (s->which + round) % SERIES_CNT, 0, 3);
	atomic_fetch_sub(&run.running, 1);
	return NULL;
}

static struct stoup *attach(uint32_t spin)
{
	struct stoup_options options;
	struct stoup_error err = {0};
	struct stoup *st = NULL;

	stoup_options_init(&options);
	options.spin_ns = spin;
	options.timeout_ns = UINT64_C(60000000000);
	ck_assert_msg(stoup_attach(run.pool, &options, &st, &err) == 0, "%s", err.text);
	atomic_fetch_add_explicit(&run.attach_cnt, 1, memory_order_relaxed);
	return st;
}

static void *comer_main(void *arg)
{
	const struct sharer *s = arg;

	for (uint32_t round = 0; goes_on(round); round++) {
		struct stoup *st = attach(round % 2 ? 1 : 50000);
		int rc;

		scan(st, (s->which + round) % SERIES_CNT, RECORD_CNT / 3 * (round % 3), 2);
		/* The releaser may just have one of ours in its hand. */
		while ((rc = stoup_detach(st)) == -EBUSY)
			if (!keep_end(st))
				sched_yield();
		ck_assert_int_eq(rc, 0);
	}
	atomic_fetch_sub(&run.running, 1);
	return NULL;
}

static void *releaser_main(void *arg)
{
	(void)arg;
	while (keep_end(NULL) || atomic_load(&run.running) > 0)
		sched_yield();
	return NULL;
}

/* ---- the run --------------------------------------------------------------------------------- */

static void show(void)
{
	printf("%" PRIu64 " records in %" PRIu64 " scans, %" PRIu64 " attachments, %" PRIu64
	       " spans kept, %" PRIu64 " times full; %" PRIu64 " loads, %" PRIu64
	       " evictions, %" PRIu64 " kept, %" PRIu64 " read ahead, %" PRIu64 " starved, %" PRIu64
	       " claims\n",
		run.record_cnt, run.scan_cnt, run.attach_cnt, run.kept_cnt, run.full_cnt,
		counter(STOUP_COUNTER_LOADS), counter(STOUP_COUNTER_EVICTIONS),
		counter(STOUP_COUNTER_EVICT_KEPT), counter(STOUP_COUNTER_AHEAD_LOADED),
		counter(STOUP_COUNTER_STARVED), counter(STOUP_COUNTER_CLAIMS));
	fflush(stdout);
}

static void run_all(int (*enough)(void))
{
	struct sharer sharers[SHARER_CNT], comers[COMER_CNT];
	struct stoup *st = attach(20000);
	pthread_t releaser;

	run.enough = enough;
	run.end_ns = stoup_now_ns() + RUN_NS * factor();
	atomic_store(&run.running, SHARER_CNT + COMER_CNT);
	for (uint32_t i = 0; i < SHARER_CNT; i++) {
		sharers[i] = (struct sharer){.st = st, .which = i};
		ck_assert_int_eq(
			pthread_create(&sharers[i].thread, NULL, sharer_main, &sharers[i]), 0);
	}
	for (uint32_t i = 0; i < COMER_CNT; i++) {
		comers[i] = (struct sharer){.which = i};
		ck_assert_int_eq(
			pthread_create(&comers[i].thread, NULL, comer_main, &comers[i]), 0);
	}
	ck_assert_int_eq(pthread_create(&releaser, NULL, releaser_main, NULL), 0);
	for (uint32_t i = 0; i < SHARER_CNT; i++)
		pthread_join(sharers[i].thread, NULL);
	for (uint32_t i = 0; i < COMER_CNT; i++)
		pthread_join(comers[i].thread, NULL);
	pthread_join(releaser, NULL);
	ck_assert_int_eq(stoup_detach(st), 0);
	show();
	/* Else this was no run of what it is for. */
	/* Control, data, page and catalog of each. */
	ck_assert_uint_ge(one_shared_cnt, 4 * run.attach_cnt);
	ck_assert_uint_gt(counter(STOUP_COUNTER_EVICTIONS), 0);
	ck_assert_uint_gt(run.kept_cnt, 0);
	ck_assert_uint_eq(counter(STOUP_COUNTER_DEATHS), 0);
	ck_assert_uint_eq(counter(STOUP_COUNTER_LOADS_FAILED), 0);
}

START_TEST(daemon_and_threads_in_one_address_space_never_race_and_lose_no_record)
{
	make_store();
	daemon_start(POOL_MORE, 0);
	run_all(enough_with_room);
	ck_assert_uint_gt(counter(STOUP_COUNTER_AHEAD_LOADED), 0);
	daemon_stop();
}
END_TEST

START_TEST(generations_that_come_round_under_load_name_nothing_twice)
{
	make_store();
	daemon_start(POOL_SMALL, STOUP_WORD_GEN_MASK - 2);
	run_all(enough_without);
	ck_assert_uint_gt(counter(STOUP_COUNTER_STARVED), 0);
	ck_assert_uint_gt(counter(STOUP_COUNTER_CLAIMS), 0);
	ck_assert_uint_gt(counter(STOUP_COUNTER_EVICT_KEPT), 0);
	printf("generations of %u buffers came round\n", came_round());
	ck_assert_uint_ge(came_round(), 3);
	daemon_stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("one process");
	TCase *tcase = tcase_create("one process");
	SRunner *runner;
	int failed;

	tcase_add_test(
		tcase, daemon_and_threads_in_one_address_space_never_race_and_lose_no_record);
	tcase_add_test(tcase, generations_that_come_round_under_load_name_nothing_twice);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
