/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_pin.c - `stoup pin`, `stoup unpin`: blocks that stay in the pool though nobody leases them.
 *
 * The daemon keeps the pins; these commands ask it, as an ordinary consumer that leases nothing. So they work as long as
 * the daemon answers, and what they did stays when they end, however they end.
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/tool_args.h"
#include "consumer/tool_pins.h"
#include "consumer/tool_ranges.h"
#include "consumer/tools.h"
#include "shm/format.h"
#include "shm/json.h"

static const char pin_usage[] =
	"usage: stoup pin [--from TIME] [--to TIME] POOL SERIES|PATTERN...\n"
	"       stoup pin --list [--json] POOL\n"
	"Keep blocks of series in the pool though nobody leases them, until `stoup unpin`, until their volume is replaced\n"
	"by another, or until the daemon ends. What is not loaded yet is kept from when it is, which `stoup warm` does at\n"
	"once. New volumes of the series are taken in while the bound that stoupd was given has room. Only the daemon's own user\n"
	"and root may pin; who may attach may list.\n"
	"\n"
	"  --from TIME      only blocks with records whose key is TIME or later: ISO 8601, or a count since 1970\n"
	"  --to TIME        only blocks with records whose key is earlier than TIME\n"
	"  --list           the pins there are, the oldest first\n"
	"  --json           the same as JSON\n"
	"\n"
	"Exit status: 0 all of them are pinned, 1 none of them: refused or failed; 2 usage.\n";

static const char unpin_usage[] =
	"usage: stoup unpin POOL SERIES|PATTERN...\n"
	"       stoup unpin --all POOL\n"
	"Keep these series no longer: all their pins go, whatever their range. Their blocks stay until others need the room.\n"
	"\n"
	"  --all            all pins of the pool\n"
	"\n"
	"Exit status: 0 done, 1 a name or pattern stands for no pin, or it failed; 2 usage.\n";

/* ---- the list --------------------------------------------------------------------------------- */

static void range_text(int64_t ns, char ret[STOUP_FORMAT_CAP])
{
	if (ns)
		stoup_format_time(ns, ret);
	else
		snprintf(ret, STOUP_FORMAT_CAP, "-");
}

static void print_list(const char *pool, const struct stoup_wire_pin *pins, size_t cnt,
	const struct stoup_wire_pin *last)
{
	char from[STOUP_FORMAT_CAP], to[STOUP_FORMAT_CAP], left[48];

	if (last->lost_cnt > 0)
		printf("pins that ended with the daemon before this one, which was killed: %u\n",
			last->lost_cnt);
	if (cnt == 0)
		printf("pool %s has no pins; they may keep %.1f MiB\n", pool,
			stoup_ranges_mib(last->cap_bytes));
	for (size_t i = 0; i < cnt; i++) {
		if (i == 0)
			printf("%8s %10s  %-30s %-30s  %s\n", "blocks", "MiB", "from", "to",
				"series");
		range_text(pins[i].from_ns, from);
		range_text(pins[i].to_ns, to);
		left[0] = 0;
		if (pins[i].left_cnt > 0)
			snprintf(left, sizeof(left), " (new volumes left out: %u)",
				pins[i].left_cnt);
		printf("%8" PRIu64 " %10.1f  %-30s %-30s  %s%s\n", pins[i].block_cnt,
			stoup_ranges_mib(pins[i].bytes), from, to, pins[i].text, left);
	}
	if (cnt > 0)
		printf("pins: %u, of %.1f of at most %.1f MiB\n", last->pin_cnt,
			stoup_ranges_mib(last->all_bytes), stoup_ranges_mib(last->cap_bytes));
}

static void json_time(const char *name, int64_t ns)
{
	char text[STOUP_FORMAT_CAP];

	if (ns == 0) {
		printf("\"%s\": null, ", name);
		return;
	}
	stoup_format_time(ns, text);
	printf("\"%s\": \"%s\", ", name, text);
}

static void print_json(const char *pool, const struct stoup_wire_pin *pins, size_t cnt,
	const struct stoup_wire_pin *last)
{
	printf("{\"pool\": ");
	stoup_json_string(stdout, pool);
	printf(", \"pins\": [");
	for (size_t i = 0; i < cnt; i++) {
		printf("%s\n  {\"series\": ", i ? "," : "");
		stoup_json_string(stdout, pins[i].text);
		printf(", ");
		json_time("from", pins[i].from_ns);
		json_time("to", pins[i].to_ns);
		printf("\"blocks\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"volumes_left_out\": %u}",
			pins[i].block_cnt, pins[i].bytes, pins[i].left_cnt);
	}
	printf("\n], \"bytes\": %" PRIu64 ", \"bytes_max\": %" PRIu64 ", \"lost\": %u}\n",
		last->all_bytes, last->cap_bytes, last->lost_cnt);
}

static int list(
	const struct stoup_ranges_args *args, struct stoup_session *ses, struct stoup_error *err)
{
	struct stoup_wire_pin *pins = NULL, last;
	size_t cnt = 0;
	int rc = stoup_tool_pin_list(ses, &pins, &cnt, &last, err);

	if (rc < 0)
		return rc;
	if (args->json)
		print_json(ses->pool, pins, cnt, &last);
	else
		print_list(ses->pool, pins, cnt, &last);
	free(pins);
	return 0;
}

/* ---- pin -------------------------------------------------------------------------------------- */

/* What the pool never serves is not pinned either: blocks that are longer than a part of it. */
struct too_long {
	size_t cnt;
	uint64_t bytes;
	uint32_t longest;
};

static void too_long(const struct stoup_ranges *ranges, struct too_long *ret)
{
	const struct stoup_tool_blocks *set = &ranges->blocks;

	*ret = (struct too_long){.cnt = 0};
	for (size_t i = 0; i < set->cnt; i++) {
		const struct stoup_tool_block *b = &set->blocks[i];
		uint32_t len = set->snap->volumes[b->volume].blocks[b->block_idx].raw_len;

		if (len <= ranges->ses->control->block_len_max)
			continue;
		ret->cnt++;
		ret->bytes += stoup_tool_block_bytes(set, i);
		ret->longest = len > ret->longest ? len : ret->longest;
	}
}

static int pin(
	const struct stoup_ranges_args *args, struct stoup_ranges *ranges, struct stoup_error *err)
{
	struct stoup_wire_pin all;
	struct too_long left;
	uint64_t bytes;
	size_t there, cnt;
	int rc = stoup_tool_pin_all(
		ranges->ses, ranges->series, ranges->series_cnt, &args->range, &all, err);

	if (rc < 0)
		return rc;
	too_long(ranges, &left);
	cnt = ranges->blocks.cnt - left.cnt;
	there = stoup_tool_blocks_resident(&ranges->blocks, &bytes);
	printf("pinned %zu block%s of %zu series (%.1f MiB) in pool '%s', of them loaded: %zu (%.1f MiB); all "
	       "pins keep %.1f of at most %.1f MiB\n",
		cnt, STOUP_PLURAL(cnt), ranges->series_cnt,
		stoup_ranges_mib(ranges->blocks.bytes - left.bytes), ranges->ses->pool, there,
		stoup_ranges_mib(bytes), stoup_ranges_mib(all.all_bytes),
		stoup_ranges_mib(all.cap_bytes));
	if (left.cnt > 0)
		printf("%zu block%s of up to %u bytes not pinned: this pool serves at most %u; mend: a larger stoupd "
		       "--size\n",
			left.cnt, STOUP_PLURAL(left.cnt), left.longest,
			ranges->ses->control->block_len_max);
	return 0;
}

/* ---- unpin ------------------------------------------------------------------------------------ */

/* Drop the pins of one series name. */
static int drop(
	struct stoup_session *ses, const char *name, uint32_t *total, struct stoup_error *err)
{
	struct stoup_wire_pin msg = {.op = STOUP_PIN_DROP};
	int rc = stoup_tool_pin_name(&msg, name, err);

	if (rc == 0)
		rc = stoup_tool_pin_ask(ses, &msg, err);
	if (rc == 0)
		*total += msg.cnt;
	return rc;
}

static int matches(const char *word, const char *name)
{
	return strcmp(word, name) == 0 ||
	       (strpbrk(word, "*?[") && fnmatch(word, name, FNM_NOESCAPE) == 0);
}

/* The pins that a word stands for: those there are are asked for, since their series need not be in the store any more. */
static int drop_word(struct stoup_session *ses, const char *word, const struct stoup_wire_pin *pins,
	size_t cnt, uint32_t *total, struct stoup_error *err)
{
	int rc = 0, any = 0;

	for (size_t i = 0; i < cnt && rc == 0; i++)
		if (matches(word, pins[i].text)) {
			any = 1;
			rc = drop(ses, pins[i].text, total, err);
		}
	if (rc == 0 && !any)
		return stoup_error_set(
			err, -ENOENT, "pool '%s' has no pin of '%.120s'", ses->pool, word);
	return rc;
}

static int unpin(
	const struct stoup_ranges_args *args, struct stoup_session *ses, struct stoup_error *err)
{
	struct stoup_wire_pin *pins = NULL, msg = {.op = STOUP_PIN_DROP};
	uint32_t total = 0;
	size_t cnt = 0;
	int rc;

	if (args->all) {
		rc = stoup_tool_pin_ask(ses, &msg, err);
		total = rc == 0 ? msg.cnt : 0;
	} else {
		rc = stoup_tool_pin_list(ses, &pins, &cnt, &msg, err);
	}
	for (size_t i = 0; i < args->name_cnt && rc == 0; i++)
		rc = drop_word(ses, args->names[i], pins, cnt, &total, err);
	free(pins);
	if (rc == 0 || total > 0)
		printf("%u pin%s removed in pool '%s'\n", total, STOUP_PLURAL(total), ses->pool);
	return rc;
}

/* ---- commands --------------------------------------------------------------------------------- */

/* --list and unpin: the daemon is asked, no series is looked for. */
static int ask_alone(const struct stoup_ranges_args *args,
	int (*ask)(const struct stoup_ranges_args *, struct stoup_session *, struct stoup_error *),
	struct stoup_error *err)
{
	struct stoup_session *ses;
	struct stoup *st;
	int rc = stoup_tool_attach(args->pool, STOUP_NO_RECONNECT, &st, err);

	if (rc < 0)
		return rc;
	ses = stoup_session_current(st);
	rc = ask(args, ses, err);
	stoup_session_release(ses);
	stoup_detach(st);
	return rc;
}

static int tell(const char *tool, int rc, const struct stoup_error *err)
{
	if (rc < 0)
		fprintf(stderr, "%s: %s\n", tool, err->text);
	return rc < 0;
}

int stoup_cmd_pin(int argc, char **argv)
{
	struct stoup_ranges_args args;
	struct stoup_error err = {0};
	struct stoup_ranges ranges;
	int rc = stoup_ranges_parse(argc, argv, pin_usage, "ftlj", &args);

	if (rc)
		return rc - 1;
	if (args.list)
		return tell(argv[0], ask_alone(&args, list, &err), &err);
	rc = stoup_ranges_begin(&args, &ranges, &err);
	if (rc == 0)
		rc = pin(&args, &ranges, &err);
	stoup_ranges_end(&ranges);
	return tell(argv[0], rc, &err);
}

int stoup_cmd_unpin(int argc, char **argv)
{
	struct stoup_ranges_args args;
	struct stoup_error err = {0};
	int rc = stoup_ranges_parse(argc, argv, unpin_usage, "a", &args);

	return rc ? rc - 1 : tell(argv[0], ask_alone(&args, unpin, &err), &err);
}
