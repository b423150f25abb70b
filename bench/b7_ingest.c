/* SPDX-License-Identifier: Apache-2.0 */
/* b7_ingest.c - B7: DBN, CSV and raw 8-byte keys to a store.
 *
 *      DBN, CSV   the program `stoup ingest` on a file in the page cache, from exec to exit
 *      raw keys   the importer's sink in this process, from begin to finish: no text, no DBN
 *
 * Each sample makes a new store. Bytes are those of the input as it lies there; for keys, 8 each.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "bench/harness.h"
#include "bench/rig.h"

#define ROUNDS      5u /* absolute numbers, shown with their spread */
#define CSV_ROW_CAP 64
#define ARG_CAP     20

struct ingest {
	const char *args[ARG_CAP];
	char store[4096];
	const char *codec;
	const struct bench_records *records;
};

static void ingest_before(void *arg)
{
	bench_remove(((struct ingest *)arg)->store);
}

static uint64_t program_pass(void *arg)
{
	const struct ingest *ingest = arg;

	if (bench_run_program("stoup", ingest->args) != 0)
		bench_die("B7: stoup ingest failed, see the log in the work directory");
	return 1;
}

static uint64_t keys_pass(void *arg)
{
	const struct ingest *ingest = arg;

	bench_store_make(ingest->store, "BENCH/ONE/keys", ingest->codec, 0, ingest->records);
	return 1;
}

static uint64_t file_len(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		bench_die("%s: is not there", path);
	return (uint64_t)st.st_size;
}

static void run_case(const char *name, const char *data, const char *contender, bench_pass pass,
	struct ingest *ingest, uint64_t record_cnt, uint64_t byte_cnt)
{
	struct bench_contender c = {
		.name = contender, .pass = pass, .arg = ingest, .before = ingest_before};
	struct bench_case what = {.row = "B7",
		.name = name,
		.data = data,
		.record_cnt = record_cnt,
		.byte_cnt = byte_cnt,
		.reference = contender};

	bench_interleave(&what, &c, 1, bench_settings.quick ? 1 : ROUNDS);
	bench_remove(ingest->store);
}

/* ---- DBN ------------------------------------------------------------------------------------- */

static void run_dbn(const char *file, const char *name)
{
	uint64_t cnt = bench_scale(4000000, 50000);
	struct ingest ingest = {0};
	char count[32], path[4096];
	const char *sim[] = {"--records", count, "--symbols", "8", "--out", path, NULL};
	const char *args[] = {"ingest", "--quiet", "--store", ingest.store, path, NULL};

	snprintf(count, sizeof(count), "%" PRIu64, cnt);
	snprintf(path, sizeof(path), "%s", bench_path(file));
	snprintf(ingest.store, sizeof(ingest.store), "%s", bench_path("b7.store"));
	memcpy(ingest.args, args, sizeof(args));
	if (bench_run_program("stoup-sim", sim) != 0)
		bench_die("B7: stoup-sim failed, see the log in the work directory");
	run_case(name, "simulated orders of 8 symbols", "stoup ingest", program_pass, &ingest, cnt,
		file_len(path));
	bench_remove(path);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

/* Time in ns, price with two decimals, size: what a tick table looks like. */
static uint64_t csv_write(const char *path, const struct bench_records *trades)
{
	const struct stoup_trade *trade = (const struct stoup_trade *)(const void *)trades->bytes;
	char *text = malloc(trades->cnt * CSV_ROW_CAP + CSV_ROW_CAP);
	size_t at = 0;

	if (!text)
		bench_die("no memory for a CSV file");
	at += (size_t)snprintf(text, CSV_ROW_CAP, "ts,price,size\n");
	for (uint64_t i = 0; i < trades->cnt; i++)
		at += (size_t)snprintf(text + at, CSV_ROW_CAP,
			"%" PRIu64 ",%" PRId64 ".%02" PRId64 ",%u\n", trade[i].ts_recv,
			trade[i].price / 1000000000, trade[i].price % 1000000000 / 10000000,
			trade[i].size);
	bench_write_file(path, text, at);
	free(text);
	return at;
}

static void run_csv(void)
{
	struct bench_records trades = bench_records_make(BENCH_TRADES, bench_scale(1000000, 5000));
	struct ingest ingest = {0};
	char path[4096];
	const char *args[] = {"ingest", "--quiet", "--store", ingest.store, "--series",
		"BENCH/ONE/ticks", "--columns", "ts:time,price:price,size:u32", path, NULL};
	uint64_t len;

	snprintf(path, sizeof(path), "%s", bench_path("b7.csv"));
	snprintf(ingest.store, sizeof(ingest.store), "%s", bench_path("b7.store"));
	memcpy(ingest.args, args, sizeof(args));
	len = csv_write(path, &trades);
	run_case("CSV", "ticks: time, price, size", "stoup ingest", program_pass, &ingest,
		trades.cnt, len);
	bench_remove(path);
	bench_free(trades.bytes, trades.len);
}

/* ---- raw keys -------------------------------------------------------------------------------- */

static void run_keys(void)
{
	struct bench_records keys = bench_records_make(BENCH_KEYS, bench_scale(10000000, 100000));
	/* The published rates are of no, fast and high compression. */
	const char *fast = bench_codec_known("fast") ? "fast" : "lz4";
	const char *high = bench_codec_known("small") ? "small" : "zstd";
	const struct {
		const char *name, *codec;
	} kinds[] = {{"keys, none", "none"}, {"keys, fast", fast}, {"keys, high", high}};

	for (size_t i = 0; i < 3; i++) {
		struct ingest ingest = {.codec = kinds[i].codec, .records = &keys};

		snprintf(ingest.store, sizeof(ingest.store), "%s", bench_path("b7.store"));
		run_case(kinds[i].name, "8-byte keys 1 ms apart", "importer's sink", keys_pass,
			&ingest, keys.cnt, keys.len);
	}
	bench_note("B7",
		"Keys: none is `--codec none`, fast is %s, high is %s. Each number is the "
		"median of %u ingests, each into a new store, fsync included.",
		fast, high, bench_settings.quick ? 1 : ROUNDS);
	bench_free(keys.bytes, keys.len);
}

void bench_b7_ingest(void)
{
	run_dbn("b7.dbn", "DBN");
	run_dbn("b7.dbn.zst", "DBN in zstd");
	run_csv();
	run_keys();
}
