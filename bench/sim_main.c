/* SPDX-License-Identifier: Apache-2.0 */
/* sim_main.c - stoup-sim: write a simulated market as a DBN file.
 *
 *      stoup-sim --records 10M --symbols 8 --seed 1 --out FILE.dbn[.zst]
 *
 * Prints one line of totals, the same that a reader of the file must find: records, sum of price
 * (modulo 2^64, in 1e-9 units), sum of size, first and last ts_recv.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/sim.h"
#include "bench/sim_dbn.h"

#define BATCH_CNT 8192u               /* records: 448 KiB, stays in the second-level cache */
#define START_NS  1718582400000000000 /* 2024-06-17T00:00:00Z, a Monday */
#define DAY_NS    86400000000000

struct sim_totals {
	uint64_t price, size, first_ns, last_ns;
};

static const char usage[] =
	"Usage: stoup-sim --out FILE.dbn[.zst] [options]\n"
	"  --records N    records to write, K/M/G allowed      (default 10M)\n"
	"  --symbols N    1 to 65535                           (default 8)\n"
	"  --seed N       equal seeds give equal files         (default 1)\n"
	"  --dbn N        DBN version: 1 or 3                  (default 1)\n"
	"  --level N      zstd level of a .zst file            (default 3)\n"
	"  --threads N    of the compressor, 0 = none          (default 0)\n"
	"  --start NS     first ts_recv, ns since the epoch    (default 2024-06-17)\n";

/* A count with an optional suffix K, M or G (powers of 1000). Returns 0 or -EINVAL. */
static int parse_count(const char *text, uint64_t *ret)
{
	static const char suffixes[] = "KMG";
	char *end;
	unsigned long long value;
	const char *suffix;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *text == '-')
		return -EINVAL;
	suffix = *end ? strchr(suffixes, *end) : NULL;
	if (*end && (!suffix || end[1]))
		return -EINVAL;
	for (long i = suffix ? suffix - suffixes : -1; i >= 0; i--) {
		if (value > UINT64_MAX / 1000)
			return -EINVAL;
		value *= 1000;
	}
	*ret = value;
	return 0;
}

static void total_up(struct sim_totals *totals, const struct stoup_sim_mbo *records, uint64_t cnt)
{
	if (!totals->first_ns)
		totals->first_ns = records[0].ts_recv;
	totals->last_ns = records[cnt - 1].ts_recv;
	for (uint64_t i = 0; i < cnt; i++) {
		totals->price += (uint64_t)records[i].price;
		totals->size += records[i].size;
	}
}

static int generate(struct stoup_sim *sim, struct stoup_sim_dbn *dbn, uint64_t record_cnt,
	uint64_t end_ns, struct sim_totals *totals)
{
	static struct stoup_sim_mbo batch[BATCH_CNT];
	uint64_t left = record_cnt;
	int rc = 0;

	while (left && !rc) {
		uint64_t cnt = left < BATCH_CNT ? left : BATCH_CNT;

		stoup_sim_next(sim, batch, cnt);
		/* The mappings were written first: a record behind them would have no symbol. */
		if (batch[cnt - 1].ts_recv >= end_ns)
			return -ERANGE;
		total_up(totals, batch, cnt);
		rc = stoup_sim_dbn_write(dbn, batch, cnt);
		left -= cnt;
	}
	return rc;
}

static int run(const struct stoup_sim_options *market, struct stoup_sim_dbn_options *file,
	uint64_t record_cnt)
{
	struct sim_totals totals = {0};
	struct stoup_sim *sim = NULL;
	struct stoup_sim_dbn *dbn = NULL;
	int rc, close_rc;

	file->symbol_cnt = market->symbol_cnt;
	file->start_ns = market->start_ns;
	/* Twice the mean and two days: gaps are capped, so no seed comes near. */
	file->end_ns =
		market->start_ns + 2 * stoup_sim_span(market->symbol_cnt, record_cnt) + 2 * DAY_NS;
	rc = stoup_sim_create(market, &sim);
	if (!rc)
		rc = stoup_sim_dbn_create(file, &dbn);
	if (!rc)
		rc = generate(sim, dbn, record_cnt, (uint64_t)file->end_ns, &totals);
	close_rc = stoup_sim_dbn_close(dbn);
	stoup_sim_destroy(sim);
	if (!rc)
		rc = close_rc;
	if (rc) {
		fprintf(stderr, "stoup-sim: %s: %s\n", file->path, strerror(-rc));
		return 1;
	}
	printf("records %" PRIu64 " price %" PRIu64 " size %" PRIu64 " first %" PRIu64
	       " last %" PRIu64 "\n",
		record_cnt, totals.price, totals.size, totals.first_ns, totals.last_ns);
	return 0;
}

/* One numeric option into its place. Returns 0, or -EINVAL for an option that is none. */
static int option_set(int opt, uint64_t value, struct stoup_sim_options *market,
	struct stoup_sim_dbn_options *file, uint64_t *record_cnt)
{
	switch (opt) {
	case 'n':
		*record_cnt = value;
		return 0;
	case 's':
		market->symbol_cnt = value > UINT32_MAX ? 0 : (uint32_t)value;
		return 0;
	case 'r':
		market->seed = value;
		return 0;
	case 'v':
		file->version = (uint32_t)value;
		return 0;
	case 'l':
		file->zstd_level = value > 22 ? 22 : (int)value;
		return 0;
	case 't':
		file->thread_cnt = value > 64 ? 64 : (int)value;
		return 0;
	case 'b':
		market->start_ns = (int64_t)value;
		return 0;
	default:
		return -EINVAL;
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"records", 1, NULL, 'n'},
		{"symbols", 1, NULL, 's'}, {"seed", 1, NULL, 'r'}, {"dbn", 1, NULL, 'v'},
		{"level", 1, NULL, 'l'}, {"threads", 1, NULL, 't'}, {"start", 1, NULL, 'b'},
		{"out", 1, NULL, 'o'}, {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
	struct stoup_sim_options market = {.seed = 1, .symbol_cnt = 8, .start_ns = START_NS};
	struct stoup_sim_dbn_options file = {.version = 1, .zstd_level = 3};
	uint64_t record_cnt = 10000000, value;
	size_t len;
	int opt;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (opt == 'o') {
			file.path = optarg;
			continue;
		}
		if (opt == '?' || parse_count(optarg, &value) ||
			option_set(opt, value, &market, &file, &record_cnt)) {
			fputs(usage, stderr);
			return 2;
		}
	}
	if (!file.path || optind != argc || (file.version != 1 && file.version != 3)) {
		fputs(usage, stderr);
		return 2;
	}
	len = strlen(file.path);
	if (len < 4 || strcmp(file.path + len - 4, ".zst") != 0)
		file.zstd_level = 0;
	return run(&market, &file, record_cnt);
}
