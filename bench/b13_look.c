/* SPDX-License-Identifier: Apache-2.0 */
/* b13_look.c - B13: what a monitor costs the hot path: scans of a resident series while `stoup stat --watch 0.01`
 * looks a hundred times a second, against the same scans while it is stopped.
 *
 *      before each sample: the monitor goes on and has looked; for one of the sides it is stopped then (not timed,
 *                          and the same waits for both: what they leave in caches is no difference)
 *      the sample:         scans, a hit and a release for each block
 *
 * The smallest blocks, so that what is counted for each of them weighs. One process and one cursor's way through one run: the
 * ratio is of pairs that follow each other.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/harness.h"
#include "bench/rig.h"

#define SERIES    "BENCH/ONE/keys"
#define INTERVAL  "0.01"
#define BLOCK_LEN 65536u
#define PASS_CNT  50u
#define WAIT_US   1000

struct looker {
	pid_t pid;
	const char *path;                     /* what it writes: a line for each look */
	uint64_t begin_lines, lines, samples; /* of the samples beside which it looked */
};

struct side {
	struct bench_scan scan;
	struct looker *looker;
	int looks;
};

static uint64_t lines_of(const char *path)
{
	FILE *file = fopen(path, "re");
	uint64_t cnt = 0;

	if (!file)
		bench_die("%s: %s", path, strerror(errno));
	for (int c; (c = getc(file)) != EOF;)
		cnt += c == '\n';
	fclose(file);
	return cnt;
}

static void looker_stop(const struct looker *looker)
{
	int status;

	kill(looker->pid, SIGSTOP);
	if (waitpid(looker->pid, &status, WUNTRACED) < 0 || !WIFSTOPPED(status))
		bench_die("B13: the monitor has ended: see the log in the work directory");
}

/* Going on, and seen to look. */
static void looker_go(const struct looker *looker)
{
	uint64_t seen = lines_of(looker->path);

	kill(looker->pid, SIGCONT);
	while (lines_of(looker->path) < seen + 2)
		usleep(WAIT_US);
}

static void before(void *arg)
{
	struct side *side = arg;

	looker_go(side->looker);
	if (side->looks)
		side->looker->begin_lines = lines_of(side->looker->path);
	else
		looker_stop(side->looker);
}

static void after(void *arg)
{
	struct side *side = arg;

	if (!side->looks)
		return;
	side->looker->lines += lines_of(side->looker->path) - side->looker->begin_lines;
	side->looker->samples++;
	looker_stop(side->looker);
}

static uint64_t pass(void *arg)
{
	struct side *side = arg;

	return bench_scan_pass(&side->scan);
}

static void run(const char *pool, struct looker *looker, const struct bench_records *records)
{
	static struct side none, beside;
	const struct bench_contender contenders[] = {
		{.name = "nobody looks",
			.pass = pass,
			.arg = &none,
			.pass_cnt = PASS_CNT,
			.before = before,
			.after = after},
		{.name = "stoup stat --watch " INTERVAL,
			.pass = pass,
			.arg = &beside,
			.pass_cnt = PASS_CNT,
			.before = before,
			.after = after},
	};
	const struct bench_case what = {.row = "B13",
		.name = "scan of a resident series",
		.data = "keys of 8 bytes, blocks of 64 KiB",
		.record_cnt = records->cnt,
		.byte_cnt = records->len,
		.reference = "nobody looks"};
	struct bench_value value = {"looks beside a sample", 0};

	none.scan.st = bench_attach(pool, NULL, SERIES, &none.scan.series);
	none.scan.loop = bench_loop_of(BENCH_KEYS, 0);
	none.looker = looker;
	beside = none;
	beside.looks = 1;
	bench_interleave(&what, contenders, 2, bench_rounds());
	value.value = (double)looker->lines / (double)looker->samples;
	bench_values("B13", what.name, &value, 1);
	stoup_detach(none.scan.st);
}

void bench_b13_look(void)
{
	struct bench_records records = bench_records_make(BENCH_KEYS, bench_scale(4000000, 100000));
	struct bench_daemon daemon = {0};
	struct looker looker = {.path = bench_path("b13.looks")};

	bench_store_make(bench_path("b13.store"), SERIES, "none", BLOCK_LEN, &records);
	bench_daemon_start(&daemon, bench_path("b13.store"), records.len + (32u << 20), NULL);
	const char *const args[] = {"stat", "--watch=" INTERVAL, daemon.pool, NULL};

	looker.pid = bench_program_start("stoup", args, looker.path);
	looker_stop(&looker);
	run(daemon.pool, &looker, &records);
	kill(looker.pid, SIGKILL);
	waitpid(looker.pid, NULL, 0);
	bench_daemon_stop(&daemon);
	bench_remove(bench_path("b13.store"));
	bench_free(records.bytes, records.len);
}
