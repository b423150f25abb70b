/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c - stoup-bench-codec: ratio and speed of the codecs on given records.
 *
 *      round 1:  copy, lz4, ..., default, small     decode all blocks, each in turn
 *      round 2:  copy, lz4, ...                     so that a slow moment hits all of them
 *      ...                                          medians over the rounds
 *
 * Every result is compared with the records first. Blocks are decoded one after the other into one
 * buffer, which stays in the cache, as the buffers of a pool that is read at once do. One core.
 * Speeds count decoded bytes; the ratio is decoded bytes / stored bytes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench/codec_contender.h"
#include "bench/codec_data.h"

#define ROUND_CAP 1001u

struct options {
	const char *path;
	size_t block_len;
	uint32_t rounds, encode_rounds;
	int json;
};

/* A contender on the records of one schema. */
struct lane {
	struct codec_runner *runner;
	uint8_t *stored; /* blocks one after the other */
	uint32_t *lens;
	double encode_ns[ROUND_CAP], decode_ns[ROUND_CAP];
	uint64_t stored_len;
};

static const char usage[] =
	"Usage: stoup-bench-codec [OPTIONS] PATH\n"
	"\n"
	"Ratio, encode and decode speed of stoup's codecs and others on the records of a DBN file or\n"
	"a store, in one run on the same bytes, on one core.\n"
	"\n"
	"  --block BYTES    decoded bytes of a block (default 524288)\n"
	"  --rounds N       decode rounds (default 41)\n"
	"  --encode N       encode rounds (default 3)\n"
	"  --json           one JSON document instead of text\n";

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int double_cmp(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(const double *values, uint32_t cnt)
{
	double sorted[ROUND_CAP];

	memcpy(sorted, values, cnt * sizeof(*sorted));
	qsort(sorted, cnt, sizeof(*sorted), double_cmp);
	return sorted[cnt / 2];
}

/* ---- one schema ------------------------------------------------------------------------------ */

struct job {
	const struct codec_data *data;
	struct stoup_block_layout layout;
	size_t block_len, block_cnt;
	uint8_t *out;
};

static size_t raw_len(const struct job *job, size_t idx)
{
	size_t left = job->data->len - idx * job->block_len;

	return left < job->block_len ? left : job->block_len;
}

static int lane_encode(struct lane *lane, const struct job *job, uint32_t round)
{
	double begin = now_ns();
	uint8_t *at = lane->stored;

	lane->stored_len = 0;
	for (size_t i = 0; i < job->block_cnt; i++) {
		int64_t len = codec_encode(lane->runner, &job->layout,
			job->data->records + i * job->block_len, raw_len(job, i), at);

		if (len < 0)
			return (int)len;
		lane->lens[i] = (uint32_t)len;
		at += len;
		lane->stored_len += (uint64_t)len - 8;
	}
	lane->encode_ns[round] = now_ns() - begin;
	return 0;
}

static int lane_decode(struct lane *lane, const struct job *job, uint32_t round, int compare)
{
	double begin = now_ns();
	const uint8_t *at = lane->stored;

	for (size_t i = 0; i < job->block_cnt; i++) {
		int rc = codec_decode(
			lane->runner, &job->layout, at, lane->lens[i], job->out, raw_len(job, i));

		if (rc)
			return rc;
		if (compare && memcmp(job->out, job->data->records + i * job->block_len,
				       raw_len(job, i)) != 0)
			return -EILSEQ;
		at += lane->lens[i];
	}
	lane->decode_ns[round] = now_ns() - begin;
	return 0;
}

static int lane_create(
	struct lane *lane, const struct codec_contender *contender, const struct job *job)
{
	lane->stored = malloc(job->data->len + job->block_cnt * 1024);
	lane->lens = calloc(job->block_cnt, sizeof(*lane->lens));
	if (!lane->stored || !lane->lens)
		return -ENOMEM;
	return codec_runner_create(contender, &lane->runner);
}

static int rounds_run(struct lane *lanes, const struct job *job, const struct options *options)
{
	int rc = 0;

	for (uint32_t i = 0; i < CODEC_CONTENDER_CNT && !rc; i++)
		rc = lane_create(&lanes[i], &codec_contenders[i], job);
	for (uint32_t round = 0; round < options->encode_rounds && !rc; round++)
		for (uint32_t i = 0; i < CODEC_CONTENDER_CNT && !rc; i++)
			rc = lane_encode(&lanes[i], job, round);
	for (uint32_t i = 0; i < CODEC_CONTENDER_CNT && !rc; i++)
		rc = lane_decode(&lanes[i], job, 0, 1);
	for (uint32_t round = 0; round < options->rounds && !rc; round++)
		for (uint32_t i = 0; i < CODEC_CONTENDER_CNT && !rc; i++)
			rc = lane_decode(&lanes[i], job, round, 0);
	return rc;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void print_lane(
	const struct lane *lane, uint32_t idx, const struct job *job, const struct options *options)
{
	double len = (double)job->data->len;
	double ratio = len / (double)lane->stored_len;
	double encode = len / median(lane->encode_ns, options->encode_rounds) * 1000;
	double decode = len / median(lane->decode_ns, options->rounds);

	if (options->json)
		printf("%s{\"codec\": \"%s\", \"ratio\": %.3f, \"encode_mb_s\": %.1f, "
		       "\"decode_gb_s\": %.3f}",
			idx ? ", " : "", codec_contenders[idx].name, ratio, encode, decode);
	else
		printf("%-16s %8.3f %12.1f %12.3f\n", codec_contenders[idx].name, ratio, encode,
			decode);
}

static void print_schema(
	const struct lane *lanes, const struct job *job, const struct options *options, int first)
{
	const struct codec_data *data = job->data;

	if (options->json)
		printf("%s{\"schema\": \"%s\", \"stride\": %u, \"records\": %zu, \"codecs\": [",
			first ? "" : ", ", data->name, data->stride, data->len / data->stride);
	else
		printf("%s: %zu records of %u bytes, blocks of %zu bytes\n%-16s %8s %12s %12s\n",
			data->name, data->len / data->stride, data->stride, job->block_len, "codec",
			"ratio", "encode MB/s", "decode GB/s");
	for (uint32_t i = 0; i < CODEC_CONTENDER_CNT; i++)
		print_lane(&lanes[i], i, job, options);
	printf(options->json ? "]}" : "\n");
}

static int schema_run(const struct codec_data *data, const struct options *options, int first)
{
	struct lane *lanes = calloc(CODEC_CONTENDER_CNT, sizeof(*lanes));
	struct job job = {.data = data,
		.layout = {data->stride, data->field_cnt, data->fields},
		.block_len = options->block_len / data->stride * data->stride};
	int rc = -ENOMEM;

	if (!job.block_len)
		job.block_len = data->stride;
	job.block_cnt = (data->len + job.block_len - 1) / job.block_len;
	job.out = aligned_alloc(4096, (job.block_len + 4095) & ~(size_t)4095);
	if (lanes && job.out)
		rc = rounds_run(lanes, &job, options);
	if (rc == 0)
		print_schema(lanes, &job, options, first);
	for (uint32_t i = 0; lanes && i < CODEC_CONTENDER_CNT; i++) {
		codec_runner_destroy(lanes[i].runner);
		free(lanes[i].stored);
		free(lanes[i].lens);
	}
	free(lanes);
	free(job.out);
	return rc;
}

/* ---- command line ---------------------------------------------------------------------------- */

/* A number from 1 to cap. */
static int number_parse(const char *text, unsigned long cap, unsigned long *ret)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = text ? strtoul(text, &end, 10) : 0;
	if (!text || errno || *end || !value || value > cap)
		return -EINVAL;
	*ret = value;
	return 0;
}

static int options_parse(int argc, char **argv, struct options *ret)
{
	for (int i = 1; i < argc; i++) {
		unsigned long value = 0;

		if (!strcmp(argv[i], "--json")) {
			ret->json = 1;
		} else if (argv[i][0] != '-') {
			if (ret->path)
				return -EINVAL;
			ret->path = argv[i];
		} else {
			const char *name = argv[i];
			int is_block = !strcmp(name, "--block");

			if (number_parse(
				    argv[++i], is_block ? STOUP_BLOCK_RAW_CAP : ROUND_CAP, &value))
				return -EINVAL;
			if (is_block)
				ret->block_len = value;
			else if (!strcmp(name, "--rounds"))
				ret->rounds = (uint32_t)value;
			else if (!strcmp(name, "--encode"))
				ret->encode_rounds = (uint32_t)value;
			else
				return -EINVAL;
		}
	}
	return ret->path ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
	struct options options = {.block_len = 524288, .rounds = 41, .encode_rounds = 3};
	struct codec_data data[CODEC_DATA_CAP];
	struct stoup_error err = {.text = ""};
	int cnt, rc = 0;

	if (options_parse(argc, argv, &options)) {
		fputs(usage, stderr);
		return 2;
	}
	cnt = codec_data_read(options.path, data, &err);
	if (cnt <= 0) {
		fprintf(stderr, "stoup-bench-codec: %s\n",
			err.text[0] ? err.text : "no records of a known schema");
		return 1;
	}
	if (options.json)
		printf("{\"block_bytes\": %zu, \"rounds\": %u, \"schemas\": [", options.block_len,
			options.rounds);
	for (int i = 0; i < cnt && !rc; i++)
		rc = schema_run(&data[i], &options, i == 0);
	if (options.json)
		printf("]}\n");
	if (rc)
		fprintf(stderr, "stoup-bench-codec: %s\n",
			rc == -EILSEQ ? "a decoded block differs from its records" : strerror(-rc));
	codec_data_free(data, cnt);
	return rc ? 1 : 0;
}
