/* SPDX-License-Identifier: Apache-2.0 */
/* bench_main.c - stoup-bench: one row of docs/benchmarks.md, as JSON lines on stdout.
 *
 *      stoup-bench [--quick] --work DIR ROW
 *      stoup-bench --versions
 *      stoup-bench --dump STORE     all decoded blocks, one after the other
 *      stoup-bench --sizes STORE    their bytes: raw, and under zstd -3 block by block
 *
 * bench/run.sh runs it row by row; it is no tool for users (that is `stoup bench`).
 */
#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include "bench/b1_peers.h"
#include "bench/b9_peers.h"
#include "bench/harness.h"
#include "bench/rig.h"

static const struct {
	const char *name;
	void (*run)(void);
} rows[] = {
	{"B1", bench_b1_iterate},
	{"B2", bench_b2_cold},
	{"B3", bench_b3_workers},
	{"B4", bench_b4_lease},
	{"B5", bench_b5_miss},
	{"B7", bench_b7_ingest},
	{"B8", bench_b8_text},
	{"B9", bench_b9_documents},
	{"B10", bench_b10_log},
	{"B11", bench_b11_strategy},
	{"B13", bench_b13_look},
};

#define ROW_CNT (sizeof(rows) / sizeof(rows[0]))

static void usage(FILE *out)
{
	fputs("usage: stoup-bench [--quick] --work DIR ROW\n"
	      "       stoup-bench --versions | --dump STORE | --sizes STORE\n"
	      "rows:",
		out);
	for (size_t i = 0; i < ROW_CNT; i++)
		fprintf(out, " %s", rows[i].name);
	fputc('\n', out);
}

static void versions(void)
{
	printf("{\"lz4\":\"%s\",\"zstd\":\"%s\",\"lmdb\":\"%s\",\"rocksdb\":\"%s\","
	       "\"jansson\":\"%s\",\"simdjson\":\"%s\",\"compiler\":\"%s\",\"stoup\":\"%s\"}\n",
		LZ4_versionString(), ZSTD_versionString(), bench_lmdb_version(),
		bench_rocksdb_version(), bench_jansson_version(), bench_simdjson_version(),
		__VERSION__, STOUP_VERSION);
}

/* Where this program lies: stoupd and the worker lie beside it. */
static const char *own_directory(void)
{
	static char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (len <= 0)
		bench_die("/proc/self/exe: %s", strerror(errno));
	path[len] = 0;
	slash = strrchr(path, '/');
	*slash = 0;
	return path;
}

int main(int argc, char **argv)
{
	const char *row = NULL;

	bench_settings.bin = own_directory();
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--quick") == 0) {
			bench_settings.quick = 1;
		} else if (strcmp(argv[i], "--work") == 0 && i + 1 < argc) {
			bench_settings.work = argv[++i];
		} else if (strcmp(argv[i], "--versions") == 0) {
			versions();
			return 0;
		} else if (strcmp(argv[i], "--dump") == 0 && i + 1 < argc) {
			bench_store_dump(argv[i + 1]);
			return 0;
		} else if (strcmp(argv[i], "--sizes") == 0 && i + 1 < argc) {
			bench_store_sizes(argv[i + 1]);
			return 0;
		} else if (strcmp(argv[i], "--help") == 0) {
			usage(stdout);
			return 0;
		} else if (argv[i][0] != '-' && !row) {
			row = argv[i];
		} else {
			usage(stderr);
			return 2;
		}
	}
	for (size_t i = 0; row && bench_settings.work && i < ROW_CNT; i++) {
		if (strcmp(rows[i].name, row) != 0)
			continue;
		rows[i].run();
		return 0;
	}
	usage(stderr);
	return 2;
}
