/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - what was done, what was found, how long it took. */
#include "storm/storm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct sums {
	uint64_t spans, records, bytes, scans, held, wrong, held_wrong, lost, doubled, failed,
		waits;
	uint64_t orphaned, stale, refreshes, children, reattaches, late;
};

static void sum(struct sums *sums, const struct storm_tally *tally)
{
#define ADD(name) sums->name += storm_get(&tally->name)
	ADD(spans);
	ADD(records);
	ADD(bytes);
	ADD(scans);
	ADD(held);
	ADD(wrong);
	ADD(held_wrong);
	ADD(lost);
	ADD(doubled);
	ADD(failed);
	ADD(waits);
	ADD(orphaned);
	ADD(stale);
	ADD(refreshes);
	ADD(children);
	ADD(reattaches);
	ADD(late);
#undef ADD
}

/* ---- going on --------------------------------------------------------------------------------- */

/* The start of the daemon that a worker went on to: the latest one before it came back. */
static const struct storm_gen *gen_of(const struct storm *s, uint64_t resumed_ns)
{
	for (uint32_t i = s->gen; i > 0; i--)
		if (s->gens[i].up_ns && s->gens[i].spawn_ns <= resumed_ns)
			return &s->gens[i];
	return NULL;
}

static void take_resumes(struct storm *s)
{
	for (uint32_t w = s->opt.by_hand_cnt < s->opt.worker_cnt ? s->opt.by_hand_cnt : 0;
		w < s->opt.worker_cnt; w++) {
		const struct storm_worker *worker = &s->board->workers[w];
		uint32_t cnt = atomic_load(&worker->resume_cnt);

		for (uint32_t i = 0; i < cnt; i++) {
			const struct storm_resume *r = &worker->resumes[i];
			const struct storm_gen *gen = gen_of(s, r->resumed_ns);

			if (!gen)
				continue;
			if (r->asked_ns > gen->up_ns)
				storm_sample(&s->resume_late, r->resumed_ns - r->asked_ns);
			else
				storm_sample(&s->resume_wait, r->resumed_ns > gen->up_ns
								      ? r->resumed_ns - gen->up_ns
								      : 0);
		}
	}
}

/* ---- distributions ---------------------------------------------------------------------------- */

static int ns_cmp(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

/* One line. Whether the 99th percentile is within the target is said, and no more: on a machine that others
 * load it tells about them. */
static void distribution(struct storm_samples *samples, const char *what, double target_ms)
{
	uint64_t *ns = samples->ns;
	uint32_t cnt = samples->cnt;
	double p99;

	if (cnt == 0) {
		printf("%-58s %7u\n", what, 0u);
		return;
	}
	qsort(ns, cnt, sizeof(*ns), ns_cmp);
	p99 = (double)ns[(uint64_t)cnt * 99 / 100] / 1e6;
	printf("%-58s %7u %9.2f %9.2f %9.2f", what, cnt, (double)ns[cnt / 2] / 1e6, p99,
		(double)ns[cnt - 1] / 1e6);
	if (target_ms > 0)
		printf("   %s %.0f ms", p99 <= target_ms ? "within" : "MISSES", target_ms);
	printf("\n");
}

/* Who had the processors. */
static void report_processors(const struct storm *s)
{
	double all =
		(double)(storm_clock() - s->begin_ns) / 1e9 * (double)sysconf(_SC_NPROCESSORS_ONLN);
	double busy = storm_busy_s() - s->busy_before_s, own = 0;
	struct rusage usage;

	for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++) {
		getrusage(who, &usage);
		own += (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	}
	printf("processors: %.0f s by this run, %.0f s by others, of %.0f s\n", own,
		busy > own ? busy - own : 0, all);
}

/* ---- the table -------------------------------------------------------------------------------- */

static void line(const char *what, uint64_t value)
{
	printf("  %-44s %14" PRIu64 "\n", what, value);
}

static void report_done(
	const struct storm *s, const struct sums *workers, const struct sums *victims)
{
	printf("\n%s of %.0f s, seed %" PRIu64 "\n", s->opt.soak_s > 0 ? "soak" : "storm",
		(double)(storm_clock() - s->begin_ns) / 1e9, s->opt.seed);
	line("consumers killed, attached", s->consumer_kills);
	line("consumers killed before that", s->early_kills);
	line("daemons killed", s->daemon_kills);
	line("  of those while starting", s->start_kills);
	line("daemons started", s->gen);
	line("checkpoints (all parked, everything counted)", s->checkpoints);
	line("workers", s->opt.worker_cnt);
	line("  spans looked at", workers->spans);
	line("  records looked at, every byte", workers->records);
	line("  MB", workers->bytes / 1000000);
	line("  scans read to their end", workers->scans);
	line("  held spans looked at again", workers->held);
	line("  calls that timed out or starved, retried", workers->waits);
	line("  calls that found no daemon in time, retried", workers->orphaned);
	line("  attached anew by themselves", workers->reattaches);
	line("victims: records looked at", victims->records);
	if (s->opt.soak_s > 0) {
		line("snapshots taken anew", workers->refreshes);
		line("scans given up: the store changed", workers->stale);
		line("children that went on with inherited leases", workers->children);
		storm_fault_report(s);
		line("consumers cut off, as far as was seen", s->cut_cnt);
	}
}

int storm_report(struct storm *s)
{
	struct sums workers = {0}, victims = {0}, all;
	int found;

	for (uint32_t i = 0; i < s->opt.worker_cnt; i++)
		sum(&workers, &s->board->workers[i].tally);
	sum(&victims, &s->board->victims);
	all = victims;
	for (uint32_t i = 0; i < s->opt.worker_cnt; i++)
		sum(&all, &s->board->workers[i].tally);
	take_resumes(s);
	report_done(s, &workers, &victims);
	printf("found\n");
	line("wrong checksums", all.wrong);
	line("  of held spans", all.held_wrong);
	line("records lost", all.lost);
	line("records doubled", all.doubled);
	line("calls with an unexpected result", all.failed);
	line("calls that took 5 s longer than they may", all.late);
	line("leaked leases", s->leaked_leases);
	line("leaked bytes of shared memory", s->bytes_left);
	line("names left", s->names_left);
	line("processes left", s->processes_left);
	line("other violations", s->violations);
	printf("  Shmem of the machine before and after: %" PRIu64 " and %" PRIu64 " KiB%s\n",
		s->shmem_before / 1024, storm_shmem() / 1024,
		s->opt.own_shm ? "" : " (others use it too)");
	printf("\n%-58s %7s %9s %9s %9s\n", "milliseconds", "n", "p50", "p99", "max");
	distribution(&s->free_dead, "a consumer's death seen, until its leases are free",
		s->opt.soak_s > 0 ? 0 : 10);
	distribution(&s->free_killed, "its SIGKILL sent, until its leases are free", 0);
	distribution(&s->resume_wait, "new pool announced, until a waiting worker's next record",
		s->opt.soak_s > 0 ? 0 : 100);
	distribution(
		&s->resume_late, "call of a worker that did not wait then, until its record", 0);
	report_processors(s);
	found = all.wrong || all.held_wrong || all.lost || all.doubled || all.failed || all.late ||
	        s->leaked_leases || s->bytes_left || s->names_left || s->violations;
	printf("\n%s (seed %" PRIu64 ")\n", found ? "VIOLATIONS: see above" : "no violation",
		s->opt.seed);
	return found;
}
