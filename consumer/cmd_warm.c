/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_warm.c - `stoup warm POOL SERIES...`: blocks are in the pool before the workers come.
 *
 *      ranges --index--> blocks --more than the pool?--> refused with numbers, or as many as fit
 *                          `--load, one lease at a time, asking ahead--> look what stayed --> load that again, once
 *
 * It is a consumer like any other, and may be killed like one. Blocks that are used more than once outweigh those that
 * nobody has read yet: what did not stay is told, and only a pin keeps it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>
#include "consumer/tool_load.h"
#include "consumer/tool_pins.h"
#include "consumer/tool_ranges.h"
#include "consumer/tools.h"
#include "shm/format.h"

#define REPAINT_NS UINT64_C(100000000)
#define ROUNDS     2

static const char usage[] =
	"usage: stoup warm [options] POOL SERIES|PATTERN...\n"
	"Load series into a pool before its workers come. POOL is the name of a pool, or the path of a store with a\n"
	"slash (joins its automatic daemon, which is started when there is none, and ends soon after its last\n"
	"consumer). A PATTERN (* ? []) stands for all series whose names it matches.\n"
	"\n"
	"  --from TIME      only blocks with records whose key is TIME or later: ISO 8601, or a count since 1970\n"
	"  --to TIME        only blocks with records whose key is earlier than TIME\n"
	"  --pin            keep what is loaded as `stoup pin` does: all of it is pinned before the first block comes\n"
	"  --best-effort    of more than the pool holds load what fits, from the first series on; else it is refused.\n"
	"                   --force is the same\n"
	"\n"
	"Says how many blocks were there already, how many were loaded, and how fast. Exit status: 0 all of it is in\n"
	"the pool (or what fits, with --best-effort), 1 refused or failed, or some did not stay; 2 usage.\n";

/* ---- progress --------------------------------------------------------------------------------- */

struct progress {
	uint64_t total, shown_ns;
	int on, dirty;
};

static void progress_step(void *arg, uint64_t done)
{
	struct progress *p = arg;
	uint64_t now = p->on ? stoup_client_now() : 0;

	if (!p->on || now - p->shown_ns < REPAINT_NS)
		return;
	p->shown_ns = now;
	p->dirty = 1;
	fprintf(stderr, "\r\033[Kwarm: %3.0f %%  %.1f of %.1f MiB",
		100 * (double)done / (double)p->total, stoup_ranges_mib(done),
		stoup_ranges_mib(p->total));
	fflush(stderr);
}

static void progress_end(struct progress *p)
{
	if (p->dirty)
		fputs("\r\033[K", stderr);
	p->dirty = 0;
}

/* ---- what fits -------------------------------------------------------------------------------- */

/* How many blocks of the set, from the first on, fit into the pool, and their bytes. */
static size_t fitting(const struct stoup_ranges *ranges, uint64_t *ret_bytes)
{
	uint64_t room = ranges->ses->control->data_len, bytes = 0, next;
	size_t cnt = 0;

	for (; cnt < ranges->blocks.cnt; cnt++) {
		next = stoup_tool_block_bytes(&ranges->blocks, cnt);
		if (bytes + next > room)
			break;
		bytes += next;
	}
	*ret_bytes = bytes;
	return cnt;
}

static int refuse(const struct stoup_ranges_args *args, const struct stoup_ranges *ranges)
{
	uint64_t room = ranges->ses->control->data_len;

	fprintf(stderr,
		"%s: %zu block%s of %" PRIu64
		" bytes (%.1f MiB) are more than pool '%s' holds: %" PRIu64
		" bytes (%.1f MiB); mend: stoupd --size %" PRIu64
		", a shorter range, or --best-effort for what fits\n",
		args->tool, ranges->blocks.cnt, STOUP_PLURAL(ranges->blocks.cnt),
		ranges->blocks.bytes, stoup_ranges_mib(ranges->blocks.bytes), ranges->ses->pool,
		room, stoup_ranges_mib(room), ranges->blocks.bytes);
	return 1;
}

/* ---- the run ---------------------------------------------------------------------------------- */

static void print_sum(
	const struct stoup_ranges *ranges, const struct stoup_tool_load *load, uint64_t ns)
{
	double seconds = (double)ns / 1e9;
	size_t left = ranges->blocks.cnt - load->cnt;

	printf("%zu block%s of %zu series: %zu in pool '%s' already (%.1f MiB), %zu loaded (%.1f MiB",
		load->cnt, STOUP_PLURAL(load->cnt), ranges->series_cnt, load->resident_cnt,
		ranges->ses->pool, stoup_ranges_mib(load->resident_bytes), load->loaded_cnt,
		stoup_ranges_mib(load->loaded_bytes));
	if (load->loaded_cnt > 0 && seconds > 0)
		printf(" in %.2f s, %.0f MiB/s", seconds,
			stoup_ranges_mib(load->loaded_bytes) / seconds);
	printf(")\n");
	if (left > 0)
		printf("%zu block%s did not fit: left out\n", left, STOUP_PLURAL(left));
}

static size_t missing(const struct stoup_tool_load *load)
{
	size_t cnt = 0;

	for (size_t i = 0; i < load->cnt; i++)
		cnt += !stoup_tool_block_resident(load->set, i);
	return cnt;
}

/* What went while the rest came is loaded once more, and not counted again. */
static int load_again(struct stoup_tool_load *load, struct stoup_error *err)
{
	struct stoup_tool_load again = *load;
	int rc = 0;

	again.missing_only = 1;
	again.step = NULL;
	for (int i = 1; i < ROUNDS && rc == 0 && missing(load) > load->failed_cnt; i++)
		rc = stoup_tool_load_run(&again, err);
	return rc;
}

static int tell_missing(const struct stoup_ranges_args *args, const struct stoup_tool_load *load)
{
	size_t gone = missing(load);

	if (load->failed_cnt > 0)
		fprintf(stderr, "%s: %zu block%s failed, the first: %s\n", args->tool,
			load->failed_cnt, STOUP_PLURAL(load->failed_cnt), load->first.text);
	if (gone > load->failed_cnt && !args->best_effort)
		fprintf(stderr,
			"%s: %zu of %zu block%s did not stay: others needed the room, or used theirs more "
			"often; --pin keeps them\n",
			args->tool, gone - load->failed_cnt, load->cnt, STOUP_PLURAL(load->cnt));
	return load->failed_cnt > 0 || (gone > 0 && !args->best_effort);
}

static int warm(const struct stoup_ranges_args *args, struct stoup_ranges *ranges)
{
	struct progress progress = {.on = isatty(STDERR_FILENO)};
	struct stoup_tool_load load = {.ses = ranges->ses,
		.set = &ranges->blocks,
		.step = progress_step,
		.arg = &progress};
	struct stoup_wire_pin pins;
	struct stoup_error err = {0};
	uint64_t start;
	int rc;

	load.cnt = fitting(ranges, &progress.total);
	if (load.cnt < ranges->blocks.cnt && !args->best_effort)
		return refuse(args, ranges);
	if (args->pin && stoup_tool_pin_all(ranges->ses, ranges->series, ranges->series_cnt,
				 &args->range, &pins, &err) < 0) {
		fprintf(stderr, "%s: %s\n", args->tool, err.text);
		return 1;
	}
	start = stoup_client_now();
	rc = stoup_tool_load_run(&load, &err);
	if (rc == 0)
		rc = load_again(&load, &err);
	progress_end(&progress);
	print_sum(ranges, &load, stoup_client_now() - start);
	if (rc < 0)
		fprintf(stderr, "%s: %s\n", args->tool, err.text);
	return rc < 0 ? 1 : tell_missing(args, &load);
}

int stoup_cmd_warm(int argc, char **argv)
{
	struct stoup_ranges_args args;
	struct stoup_error err = {0};
	struct stoup_ranges ranges;
	int rc = stoup_ranges_parse(argc, argv, usage, "ftbp", &args), status = 1;

	if (rc)
		return rc - 1;
	if (stoup_ranges_begin(&args, &ranges, &err) < 0)
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
	else
		status = warm(&args, &ranges);
	stoup_ranges_end(&ranges);
	return status;
}
