/* SPDX-License-Identifier: Apache-2.0 */
/* doc_filter.c - questions to documents, compiled once (see stoup_doc.h).
 *
 *      data.e = "trade" and (data.p >= 61800 or not data.m = true)
 *
 *      text -> nodes (here) -> plan (doc_plan.c) -> asked (doc_match.c)
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "shm/decimal.h"
#include "shm/doc_plan.h"
#include "shm/format.h"

#define NEST_CAP   32 /* brackets and nots inside each other */
#define FILTER_CAP 8192u

struct parse {
	const char *begin, *at;
	struct stoup_doc_filter *filter;
	struct stoup_error *err;
	int nested;
};

static int64_t parse_or(struct parse *parse);

/* ---- words ------------------------------------------------------------------------------------------- */

static int fail(struct parse *parse, const char *what)
{
	return stoup_error_set(parse->err, -EINVAL, "filter, at \"%.24s\": %s", parse->at, what);
}

static void blanks(struct parse *parse)
{
	while (*parse->at && strchr(" \t\r\n", *parse->at))
		parse->at++;
}

static int is_name(char c)
{
	return c && !strchr(" \t\r\n()=<>!\"'", c);
}

/* Take a word of the language, in any case, if it comes next. */
static int take_word(struct parse *parse, const char *word)
{
	size_t len = strlen(word);

	blanks(parse);
	if (strncasecmp(parse->at, word, len) != 0 || is_name(parse->at[len]))
		return 0;
	parse->at += len;
	return 1;
}

static int64_t node_add(struct parse *parse, struct stoup_doc_node node)
{
	struct stoup_doc_filter *filter = parse->filter;

	if (filter->node_cnt == STOUP_DOC_NODE_CAP) {
		stoup_doc_path_destroy(node.path);
		free(node.bytes);
		return fail(parse, "more than 256 parts");
	}
	filter->nodes[filter->node_cnt] = node;
	return filter->node_cnt++;
}

/* ---- values ------------------------------------------------------------------------------------------- */

/* A decimal of the wider grammar (+1, .5, 007, 5.) as a number of JSON; its length, at most one above len. */
static size_t number_write(const char *text, size_t len, char *dst)
{
	const char *at = text, *end = text + len;
	char *out = dst;

	if (*at == '-')
		*out++ = '-';
	at += *at == '-' || *at == '+';
	while (at + 1 < end && at[0] == '0' && at[1] >= '0' && at[1] <= '9')
		at++;
	if (*at == '.')
		*out++ = '0';
	for (; at < end; at++)
		if (*at != '.' || (at + 1 < end && at[1] >= '0' && at[1] <= '9'))
			*out++ = *at;
	return (size_t)(out - dst);
}

static void number_value(struct stoup_doc_node *node, const char *from, size_t from_len)
{
	int64_t integer;
	char room[STOUP_FORMAT_CAP], *text = (char *)node->bytes + 16;
	size_t len = number_write(from, from_len, text);
	double nearest = stoup_doc_nearest(text, len);

	node->value = (struct stoup_doc){.payload = node->bytes, .type = STOUP_DOC_EXTENDED};
	node->text = text;
	node->text_len = len;
	if (stoup_decimal_parse(text, len, 0, &integer) == 0) {
		node->bytes[0] = STOUP_DOC_EXTENDED_I64;
		memcpy(node->bytes + 1, &integer, sizeof(integer));
		node->value.payload_len = 9;
	} else if (isfinite(nearest) && stoup_doc_decimal_compare(text, len, room,
						stoup_format_double(nearest, room)) == 0) {
		memcpy(node->bytes, &nearest, sizeof(nearest));
		node->value.payload_len = 8;
		node->value.type = STOUP_DOC_DOUBLE;
	} else {
		node->bytes[15] = STOUP_DOC_EXTENDED_DECIMAL;
		node->value.payload = node->bytes + 15;
		node->value.payload_len = (uint32_t)len + 1;
	}
}

/* A text in quotes, double or single, by the rules of stoup_filter.h: a quote is doubled or stands behind a
 * backslash, a backslash is doubled; any other one is a character like all. */
static int string_value(struct parse *parse, struct stoup_doc_node *node)
{
	char quote = *parse->at;
	const char *at = parse->at + 1;
	uint32_t len = 0;

	for (; *at != quote || at[1] == quote; at++) {
		if (*at == quote || (*at == '\\' && (at[1] == quote || at[1] == '\\')))
			at++;
		if (!*at)
			return fail(parse, "a text without its second quote");
		node->bytes[len++] = (uint8_t)*at;
	}
	node->value = (struct stoup_doc){.payload = node->bytes, .payload_len = len};
	parse->at = at + 1;
	return 0;
}

static int value_parse(struct parse *parse, struct stoup_doc_node *node)
{
	static const char *const words[] = {"false", "true", "null"};
	size_t len = 0;

	blanks(parse);
	node->bytes = calloc(1, strlen(parse->at) + 32);
	if (!node->bytes)
		return stoup_error_set(parse->err, -ENOMEM, "no memory for a filter");
	if (*parse->at == '"' || *parse->at == '\'')
		return string_value(parse, node);
	for (uint8_t i = 0; i < 3; i++) {
		if (!take_word(parse, words[i]))
			continue;
		if (node->op != STOUP_DOC_EQ && node->op != STOUP_DOC_NE)
			return fail(parse, "true, false and null are compared by = and !=");
		node->bytes[0] = i;
		node->value = (struct stoup_doc){
			.payload = node->bytes, .payload_len = i < 2, .type = STOUP_DOC_ATOM};
		return 0;
	}
	while (is_name(parse->at[len]))
		len++;
	if (!stoup_doc_decimal_is(parse->at, len))
		return fail(parse, "a value is a number, true, false, null, or a text in quotes");
	number_value(node, parse->at, len);
	parse->at += len;
	return 0;
}

/* ---- parts ---------------------------------------------------------------------------------------------- */

static int op_parse(struct parse *parse, enum stoup_doc_op *ret)
{
	static const struct {
		const char *text;
		enum stoup_doc_op op;
	} ops[] = {{"==", STOUP_DOC_EQ}, {"=", STOUP_DOC_EQ}, {"!=", STOUP_DOC_NE},
		{"<>", STOUP_DOC_NE}, {"<=", STOUP_DOC_LE}, {"<", STOUP_DOC_LT},
		{">=", STOUP_DOC_GE}, {">", STOUP_DOC_GT}};

	if (take_word(parse, "exists")) {
		*ret = STOUP_DOC_EXISTS;
		return 0;
	}
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		size_t len = strlen(ops[i].text);

		if (strncmp(parse->at, ops[i].text, len) == 0) {
			*ret = ops[i].op;
			parse->at += len;
			return 0;
		}
	}
	return fail(parse, "=, !=, <, <=, >, >= or exists is missing");
}

/* PATH OP VALUE, or PATH exists. */
static int64_t parse_test(struct parse *parse)
{
	const char *from = parse->at;
	struct stoup_doc_node node = {0};
	size_t len = 0;
	char *path;
	int rc;

	while (is_name(from[len])) /* of an escaped character both */
		len += from[len] == '\\' && from[len + 1] ? 2 : 1;
	if (len == 0)
		return fail(parse, "a path is missing, such as data.p");
	path = strndup(from, len);
	if (!path)
		return stoup_error_set(parse->err, -ENOMEM, "no memory for a filter");
	rc = stoup_doc_path_create(path, &node.path, parse->err);
	free(path);
	if (rc < 0)
		return rc;
	parse->at += len;
	rc = op_parse(parse, &node.op);
	if (rc == 0 && node.op != STOUP_DOC_EXISTS)
		rc = value_parse(parse, &node);
	if (rc == 0)
		return node_add(parse, node);
	stoup_doc_path_destroy(node.path);
	free(node.bytes);
	return rc;
}

/* A path may be `not`: then a comparison follows it. */
static int take_not(struct parse *parse)
{
	const char *begin;

	blanks(parse);
	begin = parse->at;
	if (!take_word(parse, "not"))
		return 0;
	blanks(parse);
	if (!*parse->at || !strchr("=<>!", *parse->at))
		return 1;
	parse->at = begin;
	return 0;
}

static int64_t parse_part(struct parse *parse)
{
	int64_t inner;

	if (++parse->nested > NEST_CAP)
		return fail(parse, "more than 32 brackets inside each other");
	if (take_not(parse)) {
		inner = parse_part(parse);
		if (inner >= 0)
			inner = node_add(parse, (struct stoup_doc_node){.op = STOUP_DOC_NOT,
							.left = (uint32_t)inner});
	} else if (*parse->at == '(') {
		parse->at++;
		inner = parse_or(parse);
		blanks(parse);
		if (inner >= 0 && *parse->at != ')')
			return fail(parse, "a bracket is missing");
		parse->at += inner >= 0;
	} else {
		inner = parse_test(parse);
	}
	parse->nested--;
	return inner;
}

/* LEFT word RIGHT word RIGHT ... */
static int64_t parse_chain(struct parse *parse, const char *word, enum stoup_doc_op op,
	int64_t (*side)(struct parse *parse))
{
	int64_t left = side(parse);

	while (left >= 0 && take_word(parse, word)) {
		int64_t right = side(parse);

		if (right < 0)
			return right;
		left = node_add(
			parse, (struct stoup_doc_node){
				       .op = op, .left = (uint32_t)left, .right = (uint32_t)right});
	}
	return left;
}

static int64_t parse_and(struct parse *parse)
{
	return parse_chain(parse, "and", STOUP_DOC_AND, parse_part);
}

static int64_t parse_or(struct parse *parse)
{
	return parse_chain(parse, "or", STOUP_DOC_OR, parse_and);
}

int stoup_doc_filter_create(
	const char *text, struct stoup_doc_filter **ret, struct stoup_error *err)
{
	struct parse parse = {.begin = text, .at = text, .err = err};
	int64_t rc;

	if (strlen(text) > FILTER_CAP)
		return stoup_error_set(
			err, -EINVAL, "a filter has at most %u characters", FILTER_CAP);
	parse.filter = calloc(1, sizeof(*parse.filter));
	if (!parse.filter)
		return stoup_error_set(err, -ENOMEM, "no memory for a filter");
	rc = parse_or(&parse);
	blanks(&parse);
	if (rc >= 0 && *parse.at)
		rc = fail(&parse, "and, or, or the end is missing");
	if (rc >= 0)
		rc = stoup_doc_plan(parse.filter, err);
	if (rc < 0) {
		stoup_doc_filter_destroy(parse.filter);
		return (int)rc;
	}
	*ret = parse.filter;
	return 0;
}

void stoup_doc_filter_destroy(struct stoup_doc_filter *filter)
{
	if (!filter)
		return;
	for (uint32_t i = 0; i < filter->node_cnt; i++) {
		stoup_doc_path_destroy(filter->nodes[i].path);
		free(filter->nodes[i].bytes);
	}
	free(filter->places);
	free(filter);
}
