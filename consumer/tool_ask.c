/* SPDX-License-Identifier: Apache-2.0 */
/* tool_ask.c - see tool_ask.h. */
#include "consumer/tool_ask.h"
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "consumer/tool_args.h"
#include "shm/stoup_doc.h"

#define TOOL "stoup cat"

enum {
	FROM,
	AFTER,
	TO,
	UNTIL,
	ORDINAL,
	ASOF,
	FIRST,
	LAST,
	LIMIT,
	REVERSE,
	MERGE,
	WHERE,
	SELECT,
	PATH,
	BARS,
	COUNT,
	FOLLOW,
	NO_HEADER,
	SKIP,
	OPTION_CNT, /* the formats count as options of their own from here on */
	JSONL = OPTION_CNT,
	JSON,
	LINES,
	ARRAY,
};

#define BIT(option) (UINT64_C(1) << (option))

static const char *const names[] = {"--from", "--after", "--to", "--until", "--at-ordinal",
	"--asof", "--first", "--last", "--limit", "--reverse", "--merge", "--where", "--select",
	"--path", "--bars", "--count", "--follow", "--no-header", "--skip-damaged",
	"--format jsonl", "--format json", "--format lines", "--format npy"};

#define RANGE (BIT(FROM) | BIT(AFTER) | BIT(TO) | BIT(UNTIL))

/* Pairs that exclude each other, and why; the first that is met is told. */
static const struct {
	int option;
	uint64_t others;
	const char *why;
} refusals[] = {
	{FROM, BIT(AFTER), "both say where the range begins"},
	{TO, BIT(UNTIL), "both say where the range ends"},
	{ORDINAL, RANGE, "a range is one of time or one of ordinals"},
	{ORDINAL, BIT(MERGE), "ordinals count within one series"},
	{ORDINAL, BIT(FOLLOW), "a range of ordinals is of what is there"},
	{ASOF, RANGE | BIT(ORDINAL), "as of a time, all that is before it counts"},
	{ASOF, BIT(FIRST) | BIT(LAST) | BIT(LIMIT), "as of a time, a series has one record"},
	{ASOF, BIT(REVERSE), "times are answered in the order in which they are said"},
	{ASOF, BIT(MERGE), "all series are told of at each time as it is"},
	{ASOF, BIT(BARS), "bars are made of a range"},
	{ASOF, BIT(COUNT), "as of a time, a series has one record"},
	{ASOF, BIT(FOLLOW), "what is added later does not change what was known"},
	{ASOF, BIT(SKIP), "the record that is asked for may be the one that is left out"},
	{ASOF, BIT(ARRAY), "an array has no place for a time without a record"},
	{FIRST, BIT(LAST), "both say which records"},
	{LIMIT, BIT(FIRST) | BIT(LAST), "both say how many records"},
	{FOLLOW, BIT(TO) | BIT(UNTIL), "what is added later has no end"},
	{FOLLOW, BIT(REVERSE), "what is added later comes last"},
	{FOLLOW, BIT(MERGE),
		"a record that is added later may be earlier than one that is printed"},
	{FOLLOW, BIT(COUNT), "what is added later has no end"},
	{FOLLOW, BIT(JSON), "an array ends: --format jsonl has a line for each record"},
	{FOLLOW, BIT(ARRAY), "an array begins with the number of its records"},
	{BARS, BIT(MERGE), "bars are made of each series by itself"},
	{BARS, BIT(WHERE), "bars are made of all trades"},
	{BARS, BIT(PATH) | BIT(LINES), "bars are no messages"},
	{BARS, BIT(SKIP), "a bar without some of its trades is another one"},
	{COUNT, BIT(REVERSE), "a count has no order"},
	{COUNT, BIT(SELECT) | BIT(PATH), "a count has no columns"},
	{COUNT, BIT(LINES) | BIT(ARRAY), "a count is csv, jsonl or json"},
	{LINES, BIT(SELECT) | BIT(PATH), "lines are whole messages"},
	{LINES, BIT(MERGE) | BIT(ASOF), "lines have no place for the series' name"},
	{ARRAY, BIT(MERGE), "an array has no place for the series' name"},
	{ARRAY, BIT(PATH), "documents are no array"},
	{ARRAY, BIT(SKIP), "an array has no gaps"},
	{SELECT, BIT(PATH), "one is of records, the other of documents"},
};

static const struct option options[] = {
	{"from", required_argument, NULL, FROM},
	{"after", required_argument, NULL, AFTER},
	{"to", required_argument, NULL, TO},
	{"until", required_argument, NULL, UNTIL},
	{"at-ordinal", required_argument, NULL, ORDINAL},
	{"asof", required_argument, NULL, ASOF},
	{"first", required_argument, NULL, FIRST},
	{"last", required_argument, NULL, LAST},
	{"limit", required_argument, NULL, LIMIT},
	{"reverse", no_argument, NULL, REVERSE},
	{"backward", no_argument, NULL, REVERSE},
	{"merge", no_argument, NULL, MERGE},
	{"where", required_argument, NULL, WHERE},
	{"select", required_argument, NULL, SELECT},
	{"path", required_argument, NULL, PATH},
	{"bars", required_argument, NULL, BARS},
	{"count", no_argument, NULL, COUNT},
	{"follow", no_argument, NULL, FOLLOW},
	{"no-header", no_argument, NULL, NO_HEADER},
	{"skip-damaged", no_argument, NULL, SKIP},
	{"format", required_argument, NULL, 'o'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* ---- values --------------------------------------------------------------------------------------- */

static int number(const char *option, const char *text, size_t len, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (!errno && len > 0 && end == text + len && text[0] >= '0' && text[0] <= '9')
		return 0;
	fprintf(stderr, TOOL ": %s %s: a number is wanted\n", option, optarg);
	return -EINVAL;
}

/* A: one record; A:B: those from A on before B; either may be missing. */
static int ordinal_option(const char *text, struct stoup_range *range)
{
	const char *colon = strchr(text, ':');
	uint64_t from = 0, to = 0;
	int rc = 0;

	if (!colon || colon > text)
		rc = number(
			names[ORDINAL], text, colon ? (size_t)(colon - text) : strlen(text), &from);
	if (rc == 0 && !colon)
		to = from + 1;
	if (rc == 0 && colon && colon[1])
		rc = number(names[ORDINAL], colon + 1, strlen(colon + 1), &to);
	if (rc == 0 &&
		(from >= INT64_MAX || to > INT64_MAX || ((!colon || colon[1]) && to <= from))) {
		fprintf(stderr,
			TOOL
			": --at-ordinal %s: records are counted from 0, and A:B is those from A on "
			"before B\n",
			text);
		rc = -EINVAL;
	}
	range->from_ns = (int64_t)from;
	range->to_ns = (int64_t)to;
	range->flags |= STOUP_ORDINALS;
	return rc;
}

static int format_option(const char *text, struct stoup_ask *ask)
{
	static const struct {
		const char *name;
		enum stoup_table_kind kind;
		int option;
	} kinds[] = {{"csv", STOUP_TABLE_CSV, -1}, {"jsonl", STOUP_TABLE_JSONL, JSONL},
		{"json", STOUP_TABLE_JSON, JSON}, {"lines", STOUP_TABLE_LINES, LINES},
		{"npy", STOUP_TABLE_CSV, ARRAY}, {"npz", STOUP_TABLE_CSV, ARRAY}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(text, kinds[i].name) != 0)
			continue;
		ask->given &= BIT(OPTION_CNT) - 1;
		ask->given |= kinds[i].option < 0 ? 0 : BIT(kinds[i].option);
		ask->kind = kinds[i].kind;
		ask->npy = kinds[i].option == ARRAY;
		ask->npz = strcmp(text, "npz") == 0;
		return 0;
	}
	fprintf(stderr, TOOL ": --format %s: none of csv, jsonl, json, lines, npy and npz\n", text);
	return -EINVAL;
}

static int asof_time(const char *tool, const char *text, struct stoup_ask *ask)
{
	int64_t *times = reallocarray(ask->asof, ask->asof_cnt + 1, sizeof(*times));

	if (!times) {
		fprintf(stderr, TOOL ": no memory for %zu times\n", ask->asof_cnt + 1);
		return -EINVAL;
	}
	ask->asof = times;
	return stoup_tool_time(tool, text, &times[ask->asof_cnt++]);
}

/* "-": times from standard input, one a line; what stands behind a comma is not looked at, so that lines of CSV will do. */
static int asof_lines(struct stoup_ask *ask)
{
	size_t cap = 0, no = 0, before = ask->asof_cnt;
	char *line = NULL, tool[64];
	int rc = 0;

	while (rc == 0 && getline(&line, &cap, stdin) > 0) {
		line[strcspn(line, ",\r\n")] = 0;
		snprintf(tool, sizeof(tool), TOOL ": --asof -, line %zu", ++no);
		if (*line)
			rc = asof_time(tool, line, ask);
	}
	free(line);
	if (rc == 0 && ferror(stdin)) {
		fprintf(stderr, TOOL ": --asof -: standard input can not be read: %s\n",
			strerror(errno));
		return -EINVAL;
	}
	if (rc == 0 && ask->asof_cnt == before) {
		fprintf(stderr,
			TOOL ": --asof -: standard input has no times; one a line is read\n");
		return -EINVAL;
	}
	return rc;
}

static int asof_option(const char *text, struct stoup_ask *ask)
{
	return strcmp(text, "-") == 0 ? asof_lines(ask) : asof_time(TOOL, text, ask);
}

/* A text that may be said again. */
static int list_option(const char *option, const char **list, size_t *cnt)
{
	if (*cnt == STOUP_ASK_CAP) {
		fprintf(stderr, TOOL ": %s: said more than %u times\n", option, STOUP_ASK_CAP);
		return -EINVAL;
	}
	list[(*cnt)++] = optarg;
	return 0;
}

static int path_option(struct stoup_ask *ask)
{
	struct stoup_doc_path *path = NULL;
	struct stoup_error err = {0};
	int rc = stoup_doc_path_create(optarg, &path, &err);

	stoup_doc_path_destroy(path);
	if (rc < 0)
		fprintf(stderr, TOOL ": --path: %s\n", err.text);
	return rc < 0 ? rc : list_option(names[PATH], ask->paths, &ask->path_cnt);
}

static int select_option(struct stoup_ask *ask)
{
	struct stoup_error err = {0};
	int rc = stoup_select_add(&ask->select, optarg, &err);

	if (rc < 0)
		fprintf(stderr, TOOL ": --select: %s\n", err.text);
	return rc;
}

static int bars_option(struct stoup_ask *ask)
{
	struct stoup_error err = {0};
	int rc;

	ask->bars.struct_len = sizeof(ask->bars);
	rc = stoup_bars_spec_parse(optarg, &ask->bars, &err);
	if (rc < 0)
		fprintf(stderr, TOOL ": --bars: %s\n", err.text);
	return rc;
}

/* ---- options -------------------------------------------------------------------------------------- */

static int range_option(struct stoup_range *range, int which)
{
	if (which == ORDINAL)
		return ordinal_option(optarg, range);
	if (which == AFTER)
		range->flags |= STOUP_FROM_AFTER;
	if (which == UNTIL)
		range->flags |= STOUP_TO_INCLUDED;
	return stoup_tool_time(
		TOOL, optarg, which == FROM || which == AFTER ? &range->from_ns : &range->to_ns);
}

static int value_option(struct stoup_ask *ask, int which)
{
	switch (which) {
	case FIRST:
	case LAST:
	case LIMIT:
		return number(names[which], optarg, strlen(optarg), &ask->limit);
	case ASOF:
		return asof_option(optarg, ask);
	case WHERE:
		return list_option(names[WHERE], ask->wheres, &ask->where_cnt);
	case SELECT:
		return select_option(ask);
	case PATH:
		return path_option(ask);
	case BARS:
		return bars_option(ask);
	case 'o':
		return format_option(optarg, ask);
	default:
		return range_option(&ask->range, which);
	}
}

static int plain_option(struct stoup_ask *ask, int which)
{
	switch (which) {
	case REVERSE:
		ask->range.flags |= STOUP_BACKWARD;
		return 0;
	case MERGE:
		ask->merge = 1;
		return 0;
	case COUNT:
		ask->count = 1;
		return 0;
	case FOLLOW:
		ask->follow = 1;
		return 0;
	case NO_HEADER:
		ask->header = 0;
		return 0;
	case SKIP:
		ask->skip_damaged = 1;
		return 0;
	default:
		return -EINVAL;
	}
}

static int refuse(void)
{
	fputs("See `stoup help cat`.\n", stderr);
	return -EINVAL;
}

/* The first pair that was given and can not be. */
static int pairs_check(const struct stoup_ask *ask)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		uint64_t both = refusals[i].others & ask->given;
		const char *other;

		if (!(ask->given & BIT(refusals[i].option)) || !both)
			continue;
		other = names[__builtin_ctzll(both)];
		fprintf(stderr, TOOL ": %s and %s exclude each other: %s\n",
			names[refusals[i].option], other, refusals[i].why);
		return -EINVAL;
	}
	if (ask->follow && (ask->given & BIT(LAST)) && ask->where_cnt > 0) {
		fputs(TOOL
			": --last, --follow and --where exclude each other: what the last ones are "
			"is settled before a filter looks at them\n",
			stderr);
		return -EINVAL;
	}
	if (ask->follow && ask->bars.kind && (ask->given & BIT(LAST))) {
		fputs(TOOL
			": --last, --follow and --bars exclude each other: which bars are the last "
			"ones is known at the end\n",
			stderr);
		return -EINVAL;
	}
	if (ask->npy && isatty(STDOUT_FILENO)) {
		fputs(TOOL ": an array is no text: redirect it (> a.npy)\n", stderr);
		return -EINVAL;
	}
	return ask->given & BIT(ORDINAL) ? 0 : stoup_tool_range_valid(TOOL, &ask->range);
}

int stoup_ask_parse(int argc, char **argv, struct stoup_ask *ret)
{
	int which, rc;

	*ret = (struct stoup_ask){.limit = UINT64_MAX, .header = 1};
	optind = 1;
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (which == 'h')
			return 1;
		if (which >= 0 && which < OPTION_CNT)
			ret->given |= BIT(which);
		rc = which == '?'     ? -EINVAL
		     : optarg != NULL ? value_option(ret, which)
		                      : plain_option(ret, which);
		if (rc < 0)
			return refuse();
		optarg = NULL;
	}
	if (argc - optind < 2) {
		fprintf(stderr,
			optind == argc - 1 ? TOOL
				": SERIES is missing; `stoup ls STORE` lists them\n"
					   : TOOL
				": POOL and SERIES are needed; `stoup ls STORE` lists series\n");
		return refuse();
	}
	ret->pool = argv[optind];
	ret->names = argv + optind + 1;
	ret->name_cnt = (size_t)(argc - optind - 1);
	/* Backward, the first ones come last. */
	ret->is_tail = (ret->given & BIT(ret->range.flags & STOUP_BACKWARD ? FIRST : LAST)) != 0;
	return pairs_check(ret) < 0 ? refuse() : 0;
}

void stoup_ask_fini(struct stoup_ask *ask)
{
	free(ask->asof);
	ask->asof = NULL;
}
