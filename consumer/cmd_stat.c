/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_stat.c - `stoup stat POOL` and `stoup holders POOL`: the control object in words or JSON.
 *
 * Reads the named control object alone: works while the daemon hangs, is stopped, or is dead and its
 * object still lies there, and says which of these it is. Who may not read it by name, or finds its name
 * removed, gets it from the daemon as a monitor.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "consumer/tool_pool.h"
#include "consumer/tools.h"
#include "shm/clock.h"
#include "shm/control.h"
#include "shm/format.h"
#include "shm/json.h"

#define SILENT_NS UINT64_C(3000000000) /* the heartbeat comes at least once a second */

/* Age of a CLOCK_MONOTONIC moment; 0 for one that is not known or lies ahead. */
static uint64_t age_ns(uint64_t then)
{
	uint64_t now = stoup_clock_ns();

	return then == 0 || then > now ? 0 : now - then;
}

static const char *condition(const struct stoup_control *c)
{
	uint32_t state = atomic_load_explicit(&c->state, memory_order_acquire);

	if (state == STOUP_STATE_STOPPED)
		return "stopped";
	if (stoup_control_life(c) == 0)
		return "dead";
	if (state == STOUP_STATE_STARTING)
		return "starting";
	if (age_ns(atomic_load_explicit(&c->heartbeat_ns, memory_order_acquire)) > SILENT_NS)
		return "silent";
	return "running";
}

static uint64_t counter(const struct stoup_control *c, enum stoup_counter id)
{
	return atomic_load_explicit(&stoup_control_counters(c)[id].value, memory_order_relaxed);
}

static const char *consumer_state(uint32_t state)
{
	return state == STOUP_CONSUMER_DEAF     ? "deaf"
	       : state == STOUP_CONSUMER_TICKET ? "forking"
	                                        : "attached";
}

static void comm_text(const struct stoup_control_consumer *e, char ret[17])
{
	uint64_t comm[2] = {atomic_load_explicit(&e->comm[0], memory_order_relaxed),
		atomic_load_explicit(&e->comm[1], memory_order_relaxed)};

	memcpy(ret, comm, sizeof(comm));
	ret[16] = 0;
}

/* What the kernel keeps to map memory for a process (VmPTE): 0 where /proc does not tell. The pool is most of
 * it, with 8 bytes for each page that was read. */
static uint64_t page_table_bytes(const struct stoup_control *c, uint32_t pid)
{
	unsigned long long kib = 0;
	char path[64], line[128];
	FILE *status;

	if (pid == 0 || !stoup_proc_ours() || (c->pid_ns != 0 && c->pid_ns != stoup_pid_ns()))
		return 0;
	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	status = fopen(path, "re");
	if (!status)
		return 0;
	while (kib == 0 && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmPTE: %llu kB", &kib) != 1)
			kib = 0;
	fclose(status);
	return kib * 1024;
}

/* ---- JSON ------------------------------------------------------------------------------------- */

static void json_text(const char *name, const char *value)
{
	printf("\"%s\": ", name);
	stoup_json_string(stdout, value);
}

static void json_consumers(const struct stoup_control *c)
{
	const char *sep = "";

	printf(",\n\"consumers\": [");
	for (uint32_t i = 0; i < c->consumer_cap; i++) {
		const struct stoup_control_consumer *e = &stoup_control_consumers(c)[i];
		uint32_t state = atomic_load_explicit(&e->state, memory_order_acquire);
		char comm[17];

		if (state == STOUP_CONSUMER_NONE)
			continue;
		comm_text(e, comm);
		printf("%s\n  {\"consumer\": %u, \"pid\": %u, \"uid\": %u, ", sep, i, e->pid,
			e->uid);
		json_text("command", comm);
		printf(", \"state\": \"%s\", \"leases\": %u, \"leased_bytes\": %" PRIu64
		       ", \"oldest_lease_ns\": %" PRIu64 ", \"waiting\": %u, \"hits\": %" PRIu64
		       ", \"misses\": %" PRIu64 ", \"timeouts\": %" PRIu64 ", \"wait_ns\": %" PRIu64
		       ", \"records\": %" PRIu64 ", \"page_table_bytes\": %" PRIu64
		       ", \"limit_cells\": %u, \"limit_bytes\": %u, \"limit_requests\": %u}",
			consumer_state(state), e->lease_cnt, e->leased_bytes,
			age_ns(e->oldest_lease_ns), e->waiting_cnt, e->hit_cnt, e->miss_cnt,
			e->timeout_cnt, e->wait_ns, e->record_cnt, page_table_bytes(c, e->pid),
			e->cells_refused_cnt, e->bytes_refused_cnt, e->requests_refused_cnt);
		sep = ",";
	}
	printf("\n]");
}

static void json_volumes(const struct stoup_control *c)
{
	uint32_t cnt = atomic_load_explicit(&c->volume_cnt, memory_order_acquire);
	const char *sep = "";

	printf(",\n\"volumes\": [");
	for (uint32_t i = 0; i < cnt && i < c->volume_cap; i++) {
		const struct stoup_control_volume *v = &stoup_control_volumes(c)[i];
		uint32_t state = atomic_load_explicit(&v->state, memory_order_acquire);

		if (state == STOUP_VOLUME_ABSENT)
			continue;
		printf("%s\n  {", sep);
		sep = ",";
		json_text("path", v->path);
		printf(", \"state\": \"%s\", \"born\": %" PRIu64 ", \"retired\": %" PRIu64
		       ", \"blocks\": %u, \"series\": %u, \"records\": %" PRIu64
		       ", \"raw_bytes\": %" PRIu64 ", \"stored_bytes\": %" PRIu64 "}",
			state == STOUP_VOLUME_SERVED ? "served" : "retired",
			atomic_load_explicit(&v->born_seq, memory_order_relaxed),
			atomic_load_explicit(&v->retired_seq, memory_order_relaxed), v->block_cnt,
			v->series_cnt, v->record_cnt, v->raw_len, v->stored_len);
	}
	printf("\n]");
}

static void json_counters(const struct stoup_control *c)
{
	printf(",\n\"counters\": {");
	for (uint32_t i = 0; i < c->counter_cnt; i++)
		printf("%s\n  \"%s\": %" PRIu64, i ? "," : "", stoup_control_counters(c)[i].name,
			atomic_load_explicit(
				&stoup_control_counters(c)[i].value, memory_order_relaxed));
	printf("\n}");
}

static void json_errors(const struct stoup_control *c)
{
	struct stoup_control_error error;
	char first[STOUP_FORMAT_CAP], last[STOUP_FORMAT_CAP];
	const char *sep = "";

	printf(",\n\"errors\": [");
	for (uint32_t i = 0; i < c->error_cap; i++) {
		if (!stoup_control_error_read(c, i, &error))
			continue;
		stoup_format_time(error.first_ns, first);
		stoup_format_time(error.last_ns, last);
		printf("%s\n  {\"count\": %" PRIu64
		       ", \"code\": %d, \"first\": \"%s\", \"last\": \"%s\", ",
			sep, error.count, error.code, first, last);
		json_text("text", error.text);
		printf("}");
		sep = ",";
	}
	printf("\n]");
}

static void print_json(const struct stoup_control *c)
{
	printf("{");
	json_text("pool", c->pool_name);
	printf(", ");
	json_text("state", condition(c));
	printf(", \"pid\": %u, \"uid\": %u, ", c->daemon_pid, c->uid);
	json_text("version", c->version);
	printf(", ");
	json_text("store", c->store_path);
	printf(",\n\"size\": %" PRIu64 ", ", c->data_len);
	json_text("backing", c->backing);
	printf(", \"page_bytes\": %" PRIu64 ", \"huge_bytes\": %" PRIu64 ", ", c->page_len,
		c->huge_len);
	json_text("huge_reason", c->huge_reason);
	printf(", \"locked_bytes\": %" PRIu64 ", ", c->locked_len);
	json_text("lock_reason", c->lock_reason);
	printf(",\n");
	json_text("reader", c->reader_kind);
	printf(", ");
	json_text("reader_reason", c->reader_reason);
	printf(", \"reader_depth\": %u, \"decode_threads\": %u, \"spin_ns\": %" PRIu64 ", ",
		c->reader_depth, c->decode_threads, c->spin_ns);
	json_text("decode_cpus", c->decode_cpus);
	printf(",\n\"block_len_max\": %u, \"lease_bytes_max\": %" PRIu64 ", \"consumers_max\": %u"
	       ", \"cells_max\": %u, \"requests_max\": %u, \"heartbeat_age_ns\": %" PRIu64,
		c->block_len_max, c->lease_bytes_cap, c->consumer_cap, c->cell_cap, c->request_cap,
		age_ns(c->heartbeat_ns));
	json_consumers(c);
	json_volumes(c);
	json_counters(c);
	json_errors(c);
	printf("\n}\n");
}

/* ---- words ------------------------------------------------------------------------------------ */

static void print_consumers(const struct stoup_control *c)
{
	int head = 0;

	for (uint32_t i = 0; i < c->consumer_cap; i++) {
		const struct stoup_control_consumer *e = &stoup_control_consumers(c)[i];
		uint32_t state = atomic_load_explicit(&e->state, memory_order_acquire);
		char comm[17];

		if (state == STOUP_CONSUMER_NONE)
			continue;
		if (!head++)
			printf("\n%8s %-16s %-8s %7s %12s %10s %8s %12s %10s %14s %10s\n", "pid",
				"command", "state", "leases", "held bytes", "oldest s", "waiting",
				"hits", "misses", "records", "tables KiB");
		comm_text(e, comm);
		printf("%8u %-16s %-8s %7u %12" PRIu64 " %10.1f %8u %12" PRIu64 " %10" PRIu64
		       " %14" PRIu64 " %10" PRIu64 "\n",
			e->pid, comm, consumer_state(state), e->lease_cnt, e->leased_bytes,
			(double)age_ns(e->oldest_lease_ns) / 1e9, e->waiting_cnt, e->hit_cnt,
			e->miss_cnt, e->record_cnt, page_table_bytes(c, e->pid) / 1024);
	}
}

/* Only where somebody met one: which, how often, and the option that raises it. */
static void print_limits(const struct stoup_control *c)
{
	static const struct {
		enum stoup_counter id;
		const char *what, *option;
	} limits[] = {{STOUP_COUNTER_LIMIT_CONSUMERS, "consumers", "--consumers"},
		{STOUP_COUNTER_LIMIT_CELLS, "leases of one consumer", "--cells"},
		{STOUP_COUNTER_LIMIT_BYTES, "bytes held by one consumer", "--lease-bytes"},
		{STOUP_COUNTER_LIMIT_REQUESTS, "requests of one consumer", "--requests"}};
	const uint64_t values[] = {
		c->consumer_cap, c->cell_cap, c->lease_bytes_cap, c->request_cap};

	for (uint32_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (counter(c, limits[i].id) > 0)
			printf("  limit met %" PRIu64 " times: %s, %" PRIu64 " (stoupd %s)\n",
				counter(c, limits[i].id), limits[i].what, values[i],
				limits[i].option);
}

/* Which consumers met one. */
static void print_consumer_limits(const struct stoup_control *c)
{
	for (uint32_t i = 0; i < c->consumer_cap; i++) {
		const struct stoup_control_consumer *e = &stoup_control_consumers(c)[i];

		if (atomic_load_explicit(&e->state, memory_order_acquire) == STOUP_CONSUMER_NONE ||
			(e->cells_refused_cnt | e->bytes_refused_cnt | e->requests_refused_cnt) ==
				0)
			continue;
		printf("%8u met its limits: %u times of leases, %u of bytes, %u of requests\n",
			e->pid, e->cells_refused_cnt, e->bytes_refused_cnt,
			e->requests_refused_cnt);
	}
}

static void print_errors(const struct stoup_control *c)
{
	struct stoup_control_error error;
	char last[STOUP_FORMAT_CAP];

	for (uint32_t i = 0; i < c->error_cap; i++) {
		if (!stoup_control_error_read(c, i, &error))
			continue;
		stoup_format_time(error.last_ns, last);
		printf("\nerror, %" PRIu64 " times, last %s\n  %s\n", error.count, last,
			error.text);
	}
}

static void print_state(const struct stoup_control *c)
{
	const char *state = condition(c);

	printf("pool %s: %s (pid %u, version %s), store %s\n", c->pool_name, state, c->daemon_pid,
		c->version, c->store_path);
	if (strcmp(state, "dead") == 0)
		printf("  the daemon was killed: consumers keep what they hold; start it again, "
		       "nothing needs cleaning\n");
	if (strcmp(state, "silent") == 0)
		printf("  no heartbeat for %.1f s: the daemon is %sstopped (kill -CONT %u) or the "
		       "machine is overloaded\n",
			(double)age_ns(c->heartbeat_ns) / 1e9,
			stoup_control_life(c) < 0 ? "dead (it ran in another PID namespace), " : "",
			c->daemon_pid);
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

/* What one wants to know first: how full, how used, how well. */
static void print_summary(const struct stoup_control *c)
{
	uint64_t waiting = 0, hits = 0, misses = 0;

	for (uint32_t i = 0; i < c->consumer_cap; i++) {
		const struct stoup_control_consumer *e = &stoup_control_consumers(c)[i];

		if (atomic_load_explicit(&e->state, memory_order_acquire) == STOUP_CONSUMER_NONE)
			continue;
		waiting += e->waiting_cnt;
		hits += e->hit_cnt;
		misses += e->miss_cnt;
	}
	printf("  size %.1f MiB (%s, pages of %" PRIu64
	       " KiB, %.1f in 2 MiB pages%s%s%s): %.1f used by %" PRIu64 " blocks, %.1f leased\n",
		mib(c->data_len), c->backing, c->page_len / 1024, mib(c->huge_len),
		c->huge_reason[0] ? ": " : "", c->huge_reason, c->locked_len ? ", locked" : "",
		mib(counter(c, STOUP_COUNTER_RESIDENT_BYTES)),
		counter(c, STOUP_COUNTER_RESIDENT_BLOCKS),
		mib(counter(c, STOUP_COUNTER_LEASED_BYTES)));
	printf("  loads %" PRIu64 " (%" PRIu64 " different blocks, at most %" PRIu64
	       " times each), evictions %" PRIu64 ", errors %" PRIu64 "\n",
		counter(c, STOUP_COUNTER_LOADS), counter(c, STOUP_COUNTER_LOADS_DISTINCT),
		counter(c, STOUP_COUNTER_LOADS_MAX), counter(c, STOUP_COUNTER_EVICTIONS),
		counter(c, STOUP_COUNTER_ERRORS));
	printf("  consumers %" PRIu64 " now, %" PRIu64 " waiting; their blocks: %" PRIu64
	       " found in the pool, %" PRIu64 " asked for; starved %" PRIu64 "\n",
		counter(c, STOUP_COUNTER_CONSUMERS), waiting, hits, misses,
		counter(c, STOUP_COUNTER_STARVED_FAILED));
	printf("  reads by %s, depth %u; %u decode threads%s%s; blocks of at most %.1f MiB; at most %.1f MiB held by one "
	       "consumer\n",
		c->reader_kind, c->reader_depth, c->decode_threads,
		c->decode_cpus[0] ? " on processors " : "", c->decode_cpus, mib(c->block_len_max),
		mib(c->lease_bytes_cap));
	if (c->spin_ns > 0)
		printf("  the conductor polls for %.1f us before it sleeps\n",
			(double)c->spin_ns / 1e3);
}

static void print_counters(const struct stoup_control *c)
{
	printf("\nreads by %s: %s\n\n", c->reader_kind, c->reader_reason);
	for (uint32_t i = 0; i < c->counter_cnt; i++) {
		const struct stoup_control_counter *k = &stoup_control_counters(c)[i];

		printf("%-20s %16" PRIu64 " %-10s %s\n", k->name,
			atomic_load_explicit(&k->value, memory_order_relaxed), k->unit, k->text);
	}
}

static void print_words(const struct stoup_control *c, int all)
{
	print_state(c);
	print_summary(c);
	/* Why it is not the fast way is for everybody to see; which flags it has is for --all. */
	if (!all && strcmp(c->reader_kind, "io_uring") != 0)
		printf("  not io_uring: %s\n", c->reader_reason);
	print_limits(c);
	print_consumers(c);
	print_consumer_limits(c);
	if (all)
		print_counters(c);
	print_errors(c);
}

/* ---- commands --------------------------------------------------------------------------------- */

static const struct option options[] = {
	{"json", no_argument, NULL, 'j'},
	{"all", no_argument, NULL, 'a'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* Parse [--json|--all] POOL. 0 and *ret_pool, or the exit status + 1. argv[0] is "stoup COMMAND". */
static int parse(int argc, char **argv, const char *usage, int *form, const char **ret_pool)
{
	const char *blank = strchr(argv[0], ' '), *command = blank ? blank + 1 : argv[0];
	int which;

	optind = 1;
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (which == 'j' || which == 'a') {
			*form = which;
		} else if (which == 'h') {
			fputs(usage, stdout);
			return 1;
		} else {
			fprintf(stderr, "See `stoup help %s`.\n", command);
			return 3;
		}
	}
	if (optind != argc - 1) {
		fprintf(stderr, "%s: one POOL is wanted; see `stoup help %s`\n", argv[0], command);
		return 3;
	}
	*ret_pool = argv[optind];
	return 0;
}

static int open_pool(
	const char *command, const char *pool, const struct stoup_control **ret, size_t *ret_len)
{
	struct stoup_error err = {0};

	if (stoup_pool_resolve(pool, ret, ret_len, &err) < 0) {
		fprintf(stderr, "%s: %s\n", command, err.text);
		return -1;
	}
	return 0;
}

int stoup_cmd_stat(int argc, char **argv)
{
	static const char usage[] =
		"usage: stoup stat [--json|--all] POOL\n"
		"Show a pool: state, use, consumers, errors; --all: and each counter with what it means. POOL may be "
		"the path of a store with a slash:\n"
		"its automatic daemon, which is not started. Exit status 1 "
		"when there is no such pool.\n";
	const struct stoup_control *control;
	const char *pool;
	size_t len;
	int form = 0, rc = parse(argc, argv, usage, &form, &pool);

	if (rc)
		return rc - 1;
	if (open_pool(argv[0], pool, &control, &len) < 0)
		return 1;
	if (form == 'j')
		print_json(control);
	else
		print_words(control, form == 'a');
	stoup_control_close(control, len);
	return 0;
}

int stoup_cmd_holders(int argc, char **argv)
{
	static const char usage[] =
		"usage: stoup holders POOL\n"
		"Show who holds leases: process, command, leases, bytes, age of the oldest.\n";
	const struct stoup_control *control;
	const char *pool;
	size_t len;
	int form = 0, rc = parse(argc, argv, usage, &form, &pool);

	if (rc)
		return rc - 1;
	if (open_pool(argv[0], pool, &control, &len) < 0)
		return 1;
	print_state(control);
	printf("  %" PRIu64 " leases on %" PRIu64 " bytes\n",
		counter(control, STOUP_COUNTER_LEASES),
		counter(control, STOUP_COUNTER_LEASED_BYTES));
	print_consumers(control);
	stoup_control_close(control, len);
	return 0;
}
