/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_bench.c - `stoup bench STORE|POOL`: the main questions, asked of one's own store and machine. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "consumer/tool_bench.h"
#include "consumer/tool_pool.h"
#include "consumer/tools.h"
#include "shm/json.h"

#define LIMIT_DEFAULT (UINT64_C(256) << 20)
#define LIMIT_MIN     (UINT64_C(1) << 20)
#define LIMIT_MAX     (UINT64_C(64) << 30)

static const char usage[] =
	"usage: stoup bench [options] STORE|POOL\n"
	"Measure scans of a series on this machine, in about ten seconds: first scan, warm scans in turn\n"
	"with the same loop over a private copy, memcpy of the same bytes, private decoding, a lone miss,\n"
	"attaching, and the memory of a worker. Let nothing else run meanwhile.\n"
	"\n"
	"A STORE (a directory; a name without a slash is a pool first) gets a daemon of its own, with an\n"
	"empty pool; a running POOL is measured as it is found.\n"
	"\n"
	"  --series NAME    the series (default: the largest)\n"
	"  --limit SIZE     decoded bytes of it that are used, from its begin: 1M to 64G (default 256M);\n"
	"                   the daemon's pool and a private copy take that much memory each\n"
	"  --json           the same as JSON\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 usage.\n";

static const struct option options[] = {
	{"series", required_argument, NULL, 's'},
	{"limit", required_argument, NULL, 'l'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* ---- options --------------------------------------------------------------------------------- */

static int limit_option(const char *text, uint64_t *ret)
{
	if (stoup_size_parse(text, ret) == 0 && *ret >= LIMIT_MIN && *ret <= LIMIT_MAX)
		return 0;
	fprintf(stderr, "stoup bench: --limit %s: 1M to 64G is wanted, such as 256M\n", text);
	return -EINVAL;
}

static int parse(int argc, char **argv, struct stoup_bench *b, int *json, const char **target)
{
	int which;

	optind = 1;
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (which == 'h') {
			fputs(usage, stdout);
			return 1;
		}
		if (which == 's')
			b->series = optarg;
		else if (which == 'j')
			*json = 1;
		else if (which != 'l' || limit_option(optarg, &b->limit) < 0)
			return -EINVAL;
	}
	if (optind != argc - 1) {
		fprintf(stderr, "stoup bench: one STORE or POOL is needed, and nothing else\n");
		return -EINVAL;
	}
	*target = argv[optind];
	return 0;
}

static int is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A text with a slash is a store; else a pool of that name, or a directory where there is none. For a pool,
 * `store` (256 bytes) takes where its data is. */
static int target_find(
	const char *target, struct stoup_bench *b, char store[256], struct stoup_error *err)
{
	const struct stoup_control *control;
	size_t len;
	int rc;

	if (strchr(target, '/')) {
		b->store = b->decode_store = target;
		return is_directory(target) ? 0
		                            : stoup_error_set(err, -ENOENT,
						      "%s is no store: no such directory", target);
	}
	rc = stoup_pool_resolve(target, &control, &len, err);
	if (rc == 0) {
		snprintf(store, 256, "%s", control->store_path);
		stoup_control_close(control, len);
		b->pool = target;
		b->decode_store = store;
		return 0;
	}
	if (!is_directory(target))
		return rc;
	b->store = b->decode_store = target;
	return 0;
}

/* ---- showing --------------------------------------------------------------------------------- */

static double mega(double cnt, uint64_t ns)
{
	return ns ? cnt * 1e3 / (double)ns : 0;
}

static void show_rate(const char *what, const struct stoup_bench *b, struct stoup_bench_rate rate)
{
	printf("%-26s %10.1f %8.2f %10.1f   (median of %u)\n", what,
		mega((double)b->record_cnt, rate.ns), (double)b->len / (double)rate.ns,
		(double)rate.ns / 1e6, rate.pass_cnt);
}

static void show_latency(const char *what, struct stoup_bench_latency latency)
{
	if (latency.cnt > 0)
		printf("%-26s p50 %.1f us, p99 %.1f us, max %.1f us (%u)\n", what,
			(double)latency.p50_ns / 1e3, (double)latency.p99_ns / 1e3,
			(double)latency.max_ns / 1e3, latency.cnt);
}

static void show_text(const struct stoup_bench *b)
{
	char first[64];

	printf("%s: %" PRIu64 " records of %" PRIu64 " bytes, %.1f MiB decoded%s\n\n", b->name,
		b->record_cnt, b->stride, (double)b->len / 1048576,
		b->len < b->series_len ? " (the begin of the series: --limit)" : "");
	printf("%-26s %10s %8s %10s\n", "", "M rec/s", "GB/s", "ms");
	snprintf(
		first, sizeof(first), b->store ? "first scan, pool empty" : "first scan, as found");
	show_rate(first, b, b->first);
	show_rate("warm scan of the pool", b, b->warm);
	show_rate("the loop, private copy", b, b->array);
	show_rate("memcpy out of the pool", b, b->copy);
	if (b->decode_len > 0)
		printf("%-26s %10.1f %8.2f %10.1f   (one core, read and decoded)\n",
			"private decoding",
			mega((double)b->decode_len / (double)b->stride, b->decode_ns),
			(double)b->decode_len / (double)b->decode_ns, (double)b->decode_ns / 1e6);
	else
		printf("%-26s not measured: %s\n", "private decoding", b->decode_err.text);
	printf("\nwarm scan / private copy   %.3f (median of the pairs)\n", b->warm_ratio);
	printf("waited for, first scan     %.0f %% of the segments (others: there, or read ahead)\n",
		b->waited_part * 100);
	show_latency("a lone miss", b->miss);
	if (b->miss.cnt == 0)
		printf("%-26s not measured: a running pool is not emptied for it\n", "a lone miss");
	show_latency("attach", b->attach);
	printf("a worker's own memory      %.2f MiB, and %.2f MiB of page tables (a private copy: "
	       "%.1f MiB)\n",
		(double)b->worker_len / 1048576, (double)b->page_table_len / 1048576,
		(double)b->len / 1048576);
}

static void json_rate(const char *name, const struct stoup_bench *b, struct stoup_bench_rate rate)
{
	printf("  \"%s\": {\"ns\": %" PRIu64 ", \"passes\": %u, \"records_per_s\": %.0f, "
	       "\"gb_per_s\": %.4f},\n",
		name, rate.ns, rate.pass_cnt, mega((double)b->record_cnt, rate.ns) * 1e6,
		(double)b->len / (double)rate.ns);
}

static void json_latency(const char *name, struct stoup_bench_latency latency)
{
	if (latency.cnt == 0)
		printf("  \"%s\": null,\n", name);
	else
		printf("  \"%s\": {\"p50_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64
		       ", \"max_ns\": %" PRIu64 ", \"count\": %u},\n",
			name, latency.p50_ns, latency.p99_ns, latency.max_ns, latency.cnt);
}

static void show_json(const struct stoup_bench *b)
{
	fputs("{\n  \"series\": ", stdout);
	stoup_json_string(stdout, b->name);
	printf(",\n  \"own_daemon\": %s,\n  \"records\": %" PRIu64 ",\n  \"record_bytes\": %" PRIu64
	       ",\n  \"bytes\": %" PRIu64 ",\n  \"series_bytes\": %" PRIu64 ",\n",
		b->store ? "true" : "false", b->record_cnt, b->stride, b->len, b->series_len);
	json_rate("first_scan", b, b->first);
	printf("  \"first_scan_waited\": %.4f,\n", b->waited_part);
	json_rate("warm_scan", b, b->warm);
	json_rate("private_copy", b, b->array);
	json_rate("memcpy", b, b->copy);
	printf("  \"warm_to_private_copy\": %.4f,\n", b->warm_ratio);
	if (b->decode_len > 0)
		printf("  \"private_decode\": {\"ns\": %" PRIu64 ", \"bytes\": %" PRIu64
		       ", \"gb_per_s\": %.4f},\n",
			b->decode_ns, b->decode_len, (double)b->decode_len / (double)b->decode_ns);
	else
		printf("  \"private_decode\": null,\n");
	json_latency("lone_miss", b->miss);
	json_latency("attach", b->attach);
	printf("  \"worker_bytes\": %" PRIu64 ",\n  \"worker_page_table_bytes\": %" PRIu64 "\n}\n",
		b->worker_len, b->page_table_len);
}

int stoup_cmd_bench(int argc, char **argv)
{
	struct stoup_bench bench = {.limit = LIMIT_DEFAULT};
	struct stoup_error err = {0};
	const char *target = NULL;
	char store[256];
	int json = 0, rc = parse(argc, argv, &bench, &json, &target);

	if (rc < 0)
		fputs("See `stoup help bench`.\n", stderr);
	if (rc)
		return rc < 0 ? 2 : 0;
	rc = target_find(target, &bench, store, &err);
	if (rc == 0)
		rc = stoup_bench_run(&bench, &err);
	if (rc < 0) {
		fprintf(stderr, "stoup bench: %s\n", err.text);
		return 1;
	}
	if (json)
		show_json(&bench);
	else
		show_text(&bench);
	return 0;
}
