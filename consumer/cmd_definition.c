/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_definition.c - `stoup definition POOL|STORE/ DATASET/SYMBOL`: what was known of an instrument at a time. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "consumer/instrument.h"
#include "consumer/stoup.h"
#include "consumer/tool_args.h"
#include "consumer/tools.h"
#include "shm/format.h"
#include "shm/json.h"

#define TOOL "stoup definition"

static const char usage[] =
	"usage: stoup definition [options] POOL|STORE/ DATASET/SYMBOL\n"
	"Print the last definition of an instrument at or before a time: tick, expiry, multiplier... out of\n"
	"its series definition, definition-v2 and definition-v1, whichever is the latest.\n"
	"\n"
	"  --at TIME        ISO 8601, or ns since the epoch; default: the last one of all\n"
	"  --json           the same as a JSON object\n"
	"\n"
	"What is undefined is left out (--json: null).\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 usage.\n";

static const struct option options[] = {
	{"at", required_argument, NULL, 'a'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int parse(int argc, char **argv, int64_t *ret_at, int *ret_json)
{
	int which;

	optind = 1;
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (which) {
		case 'h':
			fputs(usage, stdout);
			return 1;
		case 'a':
			if (stoup_tool_time(TOOL, optarg, ret_at) < 0)
				return -EINVAL;
			break;
		case 'j':
			*ret_json = 1;
			break;
		default:
			return -EINVAL;
		}
	}
	if (argc - optind == 2)
		return 0;
	fprintf(stderr,
		TOOL ": a pool or store, and DATASET/SYMBOL, are needed, and nothing else\n");
	return -EINVAL;
}

/* ---- printing --------------------------------------------------------------------------------- */

static uint64_t bits_of(const struct stoup_member *member, const struct stoup_instrument *from)
{
	uint64_t bits = 0;

	memcpy(&bits, (const char *)from + member->off, member->len);
	return bits;
}

static int is_undefined(const struct stoup_member *member, const struct stoup_instrument *from)
{
	uint64_t mask = member->len < 8 ? (UINT64_C(1) << 8 * member->len) - 1 : UINT64_MAX;

	if (member->kind == STOUP_MEMBER_TEXT)
		return *((const char *)from + member->off) == '\0';
	if (member->kind == STOUP_MEMBER_CHAR)
		return bits_of(member, from) == 0;
	return member->has_undefined && bits_of(member, from) == (member->undefined & mask);
}

/* Text of a value; 1: a number. */
static int text_of(
	const struct stoup_member *member, const struct stoup_instrument *from, char *dst)
{
	uint64_t bits = bits_of(member, from);
	unsigned shift = 64 - 8 * member->len;

	switch (member->kind) {
	case STOUP_MEMBER_PRICE:
		stoup_format_decimal((int64_t)bits, -9, dst);
		return 1;
	case STOUP_MEMBER_TIME:
		stoup_format_time_u64(bits, dst);
		return 0;
	case STOUP_MEMBER_INT:
		sprintf(dst, "%" PRId64, (int64_t)(bits << shift) >> shift);
		return 1;
	case STOUP_MEMBER_UINT:
		sprintf(dst, "%" PRIu64, bits);
		return 1;
	case STOUP_MEMBER_CHAR:
	case STOUP_MEMBER_TEXT:
		break;
	}
	return 0;
}

static void print_member(
	const struct stoup_member *member, const struct stoup_instrument *from, int json)
{
	char value[STOUP_FORMAT_CAP], one[2] = "";
	const char *text = value;
	int undefined = is_undefined(member, from), number = 0;

	if (undefined && !json)
		return;
	if (member->kind == STOUP_MEMBER_TEXT) {
		text = (const char *)from + member->off;
	} else if (member->kind == STOUP_MEMBER_CHAR) {
		one[0] = (char)bits_of(member, from);
		text = one;
	} else {
		number = text_of(member, from, value);
	}
	if (!json) {
		printf("%-28s%s\n", member->name, text);
		return;
	}
	printf(",\"%s\":", member->name);
	if (undefined)
		fputs("null", stdout);
	else if (number)
		fputs(text, stdout);
	else
		stoup_json_string(stdout, text);
}

static void print_all(const struct stoup_instrument *from, int json)
{
	char key[STOUP_FORMAT_CAP];

	stoup_format_time(from->key, key);
	if (json)
		printf("{\"ts_recv\":\"%s\",\"version\":%u", key, from->version);
	else
		printf("%-28s%s\n%-28s%u\n", "ts_recv", key, "version", from->version);
	for (const struct stoup_member *member = stoup_members; member->name; member++)
		print_member(member, from, json);
	if (json)
		puts("}");
}

int stoup_cmd_definition(int argc, char **argv)
{
	struct stoup_instrument found = {.struct_len = sizeof(found)};
	struct stoup_error err = {0};
	int64_t at = INT64_MAX;
	struct stoup *st;
	int json = 0, rc = parse(argc, argv, &at, &json);

	if (rc < 0)
		fputs("See `stoup help definition`.\n", stderr);
	if (rc)
		return rc < 0 ? 2 : 0;
	rc = stoup_tool_attach(argv[optind], 0, &st, &err);
	if (rc == 0) {
		rc = stoup_definition_at(st, argv[optind + 1], at, &found, &err);
		stoup_detach(st);
	}
	if (rc < 0)
		fprintf(stderr, TOOL ": %s\n", err.text);
	else
		print_all(&found, json);
	return rc < 0;
}
