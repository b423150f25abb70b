/* SPDX-License-Identifier: Apache-2.0 */
/* b4_lease.c - B4: acquire and release of a resident block, alone and with a second process at it.
 *
 *      this process:  hit, release, hit, release ...   timed
 *      the other:     asleep | the same on the same block | the same on the shared counter
 *
 * What is timed is the library's own hit path (stoup_grip_hit, stoup_grip_release), as stoup_next
 * runs it. Against it: a fetch-add and a fetch-sub on a counter in shared memory, which is what a
 * plain reference count costs.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/harness.h"
#include "bench/rig.h"
#include "consumer/cursor.h"

#define CONTENDER_CNT 5
#define SERIES        "BENCH/ONE/keys"
#define OP_CNT        200000u
#define OTHER_CNT     1000u /* operations of a round of the other process */
#define SETTLE_US     300   /* until the other process is at work, or asleep */

enum other {
	OTHER_ASLEEP,
	OTHER_LEASES,
	OTHER_COUNTS,
	OTHER_ENDS
};

struct shared { /* one page of both processes */
	_Atomic uint64_t counter;
	uint8_t pad[120];
	_Atomic int other;
	_Atomic uint64_t other_cnt;
	uint8_t pad2[112];
	_Atomic uint64_t own; /* of this process alone */
};

static struct shared *shared;

struct lease {
	struct stoup_session *ses;
	const struct stoup_snapshot_volume *vol;
	struct stoup_hand hand;
	struct stoup_grip grip;
	enum other other; /* while it is timed */
	uint64_t op_cnt;
	/* how much the other did beside it: rounds of OTHER_CNT operations */
	uint64_t other_before, other_rounds, own_cnt;
};

static void lease_make(struct lease *lease, const char *pool)
{
	struct stoup_error err = {0};
	struct stoup_series series;
	struct stoup_cursor *cur;
	struct stoup_span span;
	struct stoup *st = bench_attach(pool, NULL, SERIES, &series);

	/* The cursor stays: its session is in use, and the block was loaded by it. */
	if (stoup_scan(st, &series, NULL, &cur, &err) < 0 || stoup_next(cur, &span) != 1)
		bench_die("B4: %s", err.text);
	lease->ses = cur->ses;
	lease->vol = cur->parts[0].vol;
	lease->grip.cell_idx = STOUP_CELL_NONE;
}

static void lease_ops(struct lease *lease, uint64_t cnt)
{
	struct stoup_error err = {0};

	for (uint64_t i = 0; i < cnt; i++) {
		if (stoup_grip_hit(lease->ses, &lease->hand, lease->vol, 0, &lease->grip, &err) !=
			1)
			bench_die("B4: no hit: %s", err.text);
		stoup_grip_release(lease->ses, &lease->hand, &lease->grip);
	}
}

static void counter_ops(uint64_t cnt)
{
	for (uint64_t i = 0; i < cnt; i++) {
		atomic_fetch_add_explicit(&shared->counter, 1, memory_order_acquire);
		atomic_fetch_sub_explicit(&shared->counter, 1, memory_order_release);
	}
}

/* The floor: what the protocol asks of the processor, without the library around it: two exchanges on a
 * line of one's own, and a load. */
static uint64_t exchange_pass(void *arg)
{
	const struct lease *lease = arg;

	for (uint64_t i = 0; i < lease->op_cnt; i++) {
		atomic_exchange_explicit(&shared->own, i, memory_order_seq_cst);
		(void)atomic_load_explicit(&shared->counter, memory_order_seq_cst);
		atomic_exchange_explicit(&shared->own, 0, memory_order_seq_cst);
	}
	return 1;
}

static uint64_t lease_pass(void *arg)
{
	struct lease *lease = arg;

	lease_ops(lease, lease->op_cnt);
	return 1;
}

static uint64_t counter_pass(void *arg)
{
	const struct lease *lease = arg;

	counter_ops(lease->op_cnt);
	return 1;
}

/* ---- the other process ----------------------------------------------------------------------- */

_Noreturn static void other_run(const char *pool)
{
	struct lease lease = {0};
	int what;

	lease_make(&lease, pool);
	while ((what = atomic_load(&shared->other)) != OTHER_ENDS) {
		if (what == OTHER_LEASES)
			lease_ops(&lease, OTHER_CNT);
		else if (what == OTHER_COUNTS)
			counter_ops(OTHER_CNT);
		else
			usleep(100);
		atomic_fetch_add(&shared->other_cnt, 1);
	}
	_exit(0);
}

/* Let the other process do what belongs to the contender, and wait until it does. */
static void other_set(void *arg)
{
	struct lease *lease = arg;
	uint64_t seen;

	atomic_store(&shared->other, lease->other);
	seen = atomic_load(&shared->other_cnt);
	while (atomic_load(&shared->other_cnt) < seen + 2)
		usleep(SETTLE_US);
	lease->other_before = atomic_load(&shared->other_cnt);
}

static void other_rest(void *arg)
{
	struct lease *lease = arg;

	lease->other_rounds += atomic_load(&shared->other_cnt) - lease->other_before;
	lease->own_cnt += lease->op_cnt;
	atomic_store(&shared->other, OTHER_ASLEEP);
}

/* ---- the row --------------------------------------------------------------------------------- */

/* Was the other process at work? Its operations for each of ours. */
static void report_other(const char *name, const struct lease *lease)
{
	const struct bench_value value = {"its operations / ours",
		(double)(lease->other_rounds * OTHER_CNT) / (double)lease->own_cnt};

	bench_values("B4", name, &value, 1);
}

static void run(const struct bench_daemon *daemon)
{
	static struct lease alone, second, count_alone, count_second, bare;
	uint64_t cnt = bench_scale(OP_CNT, 20000);
	struct bench_contender contenders[CONTENDER_CNT] = {
		{.name = "lease, alone", .pass = lease_pass, .arg = &alone},
		{.name = "lease, second process on the block", .pass = lease_pass, .arg = &second},
		{.name = "shared counter, alone", .pass = counter_pass, .arg = &count_alone},
		{.name = "shared counter, second process",
			.pass = counter_pass,
			.arg = &count_second},
		{.name = "two bare exchanges, own line", .pass = exchange_pass, .arg = &bare},
	};
	struct bench_case what = {.row = "B4",
		.name = "acquire and release",
		.data = "one resident block",
		.record_cnt = cnt,
		.reference = "lease, alone"};

	lease_make(&alone, daemon->pool);
	alone.op_cnt = cnt;
	second = count_alone = count_second = bare = alone;
	second.other = OTHER_LEASES;
	count_second.other = OTHER_COUNTS;
	for (size_t i = 0; i < CONTENDER_CNT; i++) {
		contenders[i].before = other_set;
		contenders[i].after = other_rest;
	}
	bench_interleave(&what, contenders, CONTENDER_CNT, bench_rounds());
	report_other(contenders[1].name, &second);
	report_other(contenders[3].name, &count_second);
}

void bench_b4_lease(void)
{
	struct bench_records records = bench_records_make(BENCH_KEYS, 60000);
	struct bench_daemon daemon = {0};
	pid_t pid;

	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		bench_die("no shared memory");
	bench_store_make(bench_path("b4.store"), SERIES, "none", 0, &records);
	bench_daemon_start(&daemon, bench_path("b4.store"), 32u << 20, NULL);
	pid = fork();
	if (pid == 0)
		other_run(daemon.pool);
	if (pid < 0)
		bench_die("fork failed");
	run(&daemon);
	atomic_store(&shared->other, OTHER_ENDS);
	waitpid(pid, NULL, 0);
	bench_daemon_stop(&daemon);
	bench_remove(bench_path("b4.store"));
	bench_free(records.bytes, records.len);
	bench_b4_asof();
}
