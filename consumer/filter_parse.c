/* SPDX-License-Identifier: Apache-2.0 */
/* filter_parse.c - a filter's text to nodes in postfix order (the language: stoup_filter.h).
 *
 *      not (a > 1 or b = 2) and c is null        reads as      a <= 1 and b != 2 and c is null
 *
 * `not` is a flag that is handed down: it turns comparisons into their opposites, `and` into `or`. That is the
 * three-valued logic of SQL, where what is unknown is left out in the end.
 *
 * Invariant: every node behind another one's side stands behind it, so that the program is run from first to last.
 *
 * Concurrency: a parse lives on its caller's stack.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include "consumer/filter.h"
#include "consumer/near.h"

struct parse {
	const char *begin, *at;
	struct stoup_filter *filter;
	const struct stoup_schema *schema;
	struct stoup_error *err;
	uint32_t test_cnt, nested;
	uint32_t text_len; /* of filter->texts, in use */
};

static int parse_or(struct parse *parse, int negate);

/* ---- words ----------------------------------------------------------------------------------- */

static int fail_at(const struct parse *parse, const char *at, const char *what)
{
	return stoup_error_set(parse->err, -EINVAL, "filter, column %zu: %s",
		(size_t)(at - parse->begin) + 1, what);
}

static int fail(const struct parse *parse, const char *what)
{
	return fail_at(parse, parse->at, what);
}

static void blanks(struct parse *parse)
{
	while (*parse->at && strchr(" \t\r\n", *parse->at))
		parse->at++;
}

static int is_word(char c)
{
	return c && !strchr(" \t\r\n(),=<>!\"'", c);
}

static size_t word_len(const char *at)
{
	size_t len = 0;

	while (is_word(at[len]))
		len++;
	return len;
}

/* Is the next word this one of the language? Takes it then. */
static int take_word(struct parse *parse, const char *word)
{
	size_t len = strlen(word);

	blanks(parse);
	if (word_len(parse->at) != len || strncasecmp(parse->at, word, len) != 0)
		return 0;
	parse->at += len;
	return 1;
}

static int take_char(struct parse *parse, char c)
{
	blanks(parse);
	if (*parse->at != c)
		return 0;
	parse->at++;
	return 1;
}

/* A text in quotes, without them, into filter->texts, which has room for all of the filter's text. */
static int take_quoted(struct parse *parse, struct stoup_filter_word *ret)
{
	const char *begin = parse->at;
	char *dst = parse->filter->texts + parse->text_len;
	char quote = *parse->at++;
	size_t len = 0;

	for (;; parse->at++) {
		char c = *parse->at;

		if (c == quote && parse->at[1] != quote)
			break;
		if (c == quote || (c == '\\' && (parse->at[1] == quote || parse->at[1] == '\\')))
			c = *++parse->at;
		if (!c)
			return fail_at(parse, begin, "the quote has no end");
		dst[len++] = c;
	}
	parse->at++;
	*ret = (struct stoup_filter_word){dst, len};
	parse->text_len += (uint32_t)len;
	return 0;
}

static int take_value(struct parse *parse, struct stoup_filter_word *ret)
{
	size_t len;

	blanks(parse);
	if (*parse->at == '"' || *parse->at == '\'')
		return take_quoted(parse, ret);
	len = word_len(parse->at);
	if (len == 0)
		return fail(parse, "a value is missing here");
	*ret = (struct stoup_filter_word){parse->at, len};
	parse->at += len;
	return 0;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static int unknown_field(const struct parse *parse, const char *at, const char *name)
{
	struct stoup_near near = {.asked = name};
	const struct stoup_field *field = NULL;
	char text[120];

	while ((field = stoup_field_next(parse->schema, field)) != NULL)
		stoup_near_offer(&near, field->name);
	if (stoup_near_text(&near, text, sizeof(text)) > 0)
		return stoup_error_set(parse->err, -EINVAL,
			"filter, column %zu: schema %s has no field '%.40s'; near: %s",
			(size_t)(at - parse->begin) + 1, parse->schema->name, name, text);
	/* None is like it: the first ones say at least how they look. */
	near = (struct stoup_near){.asked = ""};
	while ((field = stoup_field_next(parse->schema, field)) != NULL)
		stoup_near_offer(&near, field->name);
	stoup_near_text(&near, text, sizeof(text));
	return stoup_error_set(parse->err, -EINVAL,
		"filter, column %zu: schema %s has no field '%.40s'; it has %s ...",
		(size_t)(at - parse->begin) + 1, parse->schema->name, name, text);
}

static int take_field(struct parse *parse, const struct stoup_field **ret)
{
	char name[STOUP_FIELD_NAME_CAP + 8];
	const struct stoup_field *field;
	struct stoup_filter_word word;
	const char *begin;
	size_t len;
	int rc = 0;

	blanks(parse);
	begin = parse->at;
	if (*begin == '"')
		rc = take_quoted(parse, &word);
	else if (!is_word(*begin))
		rc = fail(parse, *begin ? "the name of a field is missing here"
					: "the filter ends where a comparison should be");
	else
		rc = take_value(parse, &word);
	if (rc < 0)
		return rc;
	len = word.len < sizeof(name) ? word.len : sizeof(name) - 1;
	memcpy(name, word.text, len);
	name[len] = 0;
	field = stoup_schema_field(parse->schema, name);
	if (!field || (field->flags & STOUP_FIELD_HIDDEN))
		return unknown_field(parse, begin, name);
	*ret = field;
	return 0;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int node_add(
	struct parse *parse, const struct stoup_field *field, const struct stoup_filter_node *node)
{
	struct stoup_filter_node *dst = &parse->filter->nodes[parse->filter->node_cnt];

	if (field && ++parse->test_cnt > STOUP_FILTER_TEST_CAP)
		return fail(parse, "more than 512 comparisons");
	*dst = *node;
	if (field)
		dst->field_idx = (uint32_t)(field - parse->schema->fields);
	parse->filter->node_cnt++;
	return 0;
}

/* The last two that were added, as one. */
static int node_join(struct parse *parse, int is_or)
{
	const struct stoup_filter_node node = {.op = is_or ? STOUP_FILTER_OR : STOUP_FILTER_AND};

	return node_add(parse, NULL, &node);
}

/* Text that a node keeps: those in quotes are in filter->texts already. */
static uint32_t keep_text(struct parse *parse, const struct stoup_filter_word *word)
{
	char *texts = parse->filter->texts;

	if (word->text >= texts && word->text <= texts + STOUP_FILTER_TEXT_CAP)
		return (uint32_t)(word->text - texts);
	memcpy(texts + parse->text_len, word->text, word->len);
	parse->text_len += (uint32_t)word->len;
	return parse->text_len - (uint32_t)word->len;
}

static int bind(struct parse *parse, const struct stoup_field *field,
	enum stoup_filter_compare compare, struct stoup_filter_node *ret)
{
	struct stoup_error err = {0};
	struct stoup_filter_word word;
	const char *begin;
	int rc;

	blanks(parse);
	begin = parse->at;
	rc = take_value(parse, &word);
	if (rc < 0)
		return rc;
	rc = stoup_filter_bind(field, compare, &word, ret, &err);
	if (rc < 0)
		return fail_at(parse, begin, err.text);
	if (ret->op == STOUP_FILTER_TEXT)
		ret->text_off = keep_text(parse, &word);
	return 0;
}

/* ---- comparisons ----------------------------------------------------------------------------- */

static int parse_in(struct parse *parse, const struct stoup_field *field, int negate)
{
	struct stoup_filter_node node;
	int rc = 0, cnt = 0;

	if (!take_char(parse, '('))
		return fail(parse, "`in` wants its values in parentheses: in (1, 2)");
	do {
		rc = bind(parse, field, negate ? STOUP_FILTER_NE : STOUP_FILTER_EQ, &node);
		if (rc == 0)
			rc = node_add(parse, field, &node);
		if (rc == 0 && cnt++ > 0)
			rc = node_join(parse, !negate);
	} while (rc == 0 && take_char(parse, ','));
	if (rc == 0 && !take_char(parse, ')'))
		rc = fail(parse, "a comma or a closing parenthesis is missing here");
	return rc;
}

static int parse_between(struct parse *parse, const struct stoup_field *field, int negate)
{
	int is_text = field->type == STOUP_TYPE_CHAR && field->cnt > 1;
	struct stoup_filter_node low, high, both;
	/* `not` of the pair of texts is the pair of the opposites. */
	int rc = bind(parse, field, is_text && negate ? STOUP_FILTER_LT : STOUP_FILTER_GE, &low);

	if (rc < 0)
		return rc;
	if (!take_word(parse, "and"))
		return fail(parse, "`between` wants two values: between 1 and 2");
	rc = bind(parse, field, is_text && negate ? STOUP_FILTER_GT : STOUP_FILTER_LE, &high);
	if (rc < 0)
		return rc;
	if (stoup_filter_bind_between(field, negate, &low, &high, &both))
		return node_add(parse, field, &both);
	rc = node_add(parse, field, &low);
	if (rc == 0)
		rc = node_add(parse, field, &high);
	return rc == 0 ? node_join(parse, negate) : rc;
}

/* An operator, of which the longer one comes first. */
static int take_compare(struct parse *parse, int negate, enum stoup_filter_compare *ret)
{
	static const struct {
		const char *text;
		enum stoup_filter_compare is, is_not;
	} table[] = {
		{"==", STOUP_FILTER_EQ, STOUP_FILTER_NE},
		{"!=", STOUP_FILTER_NE, STOUP_FILTER_EQ},
		{"<>", STOUP_FILTER_NE, STOUP_FILTER_EQ},
		{"<=", STOUP_FILTER_LE, STOUP_FILTER_GT},
		{">=", STOUP_FILTER_GE, STOUP_FILTER_LT},
		{"=", STOUP_FILTER_EQ, STOUP_FILTER_NE},
		{"<", STOUP_FILTER_LT, STOUP_FILTER_GE},
		{">", STOUP_FILTER_GT, STOUP_FILTER_LE},
	};

	blanks(parse);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		size_t len = strlen(table[i].text);

		if (strncmp(parse->at, table[i].text, len) != 0)
			continue;
		parse->at += len;
		*ret = negate ? table[i].is_not : table[i].is;
		return 1;
	}
	return 0;
}

static int parse_comparison(struct parse *parse, int negate)
{
	const struct stoup_field *field = NULL;
	enum stoup_filter_compare compare;
	struct stoup_filter_node node;
	int rc = take_field(parse, &field);

	if (rc < 0)
		return rc;
	if (take_compare(parse, negate, &compare)) {
		rc = bind(parse, field, compare, &node);
		return rc < 0 ? rc : node_add(parse, field, &node);
	}
	if (take_word(parse, "is")) {
		negate ^= take_word(parse, "not");
		if (!take_word(parse, "null"))
			return fail(parse, "`is` wants `null` or `not null`");
		stoup_filter_bind_null(field, negate, &node);
		return node_add(parse, field, &node);
	}
	negate ^= take_word(parse, "not");
	if (take_word(parse, "in"))
		return parse_in(parse, field, negate);
	if (take_word(parse, "between"))
		return parse_between(parse, field, negate);
	return fail(parse, "one of = != < <= > >= is, in, between is missing here");
}

/* ---- the logic ------------------------------------------------------------------------------- */

/* A field may be called `not`, `in` ... : what it is shows behind it. */
static int is_field_next(const struct parse *parse)
{
	const char *at = parse->at;

	while (*at && strchr(" \t\r\n", *at))
		at++;
	return *at && strchr("=<>!", *at);
}

static int parse_not(struct parse *parse, int negate)
{
	const char *begin;
	int rc;

	blanks(parse);
	begin = parse->at;
	if (parse->nested == STOUP_FILTER_NEST_CAP)
		return fail(parse, "more than 64 parentheses and nots inside each other");
	parse->nested++;
	if (take_word(parse, "not") && !is_field_next(parse)) {
		rc = parse_not(parse, !negate);
	} else {
		parse->at = begin;
		if (take_char(parse, '(')) {
			rc = parse_or(parse, negate);
			if (rc == 0 && !take_char(parse, ')'))
				rc = fail(parse,
					"a closing parenthesis, `and` or `or` is missing here");
		} else {
			rc = parse_comparison(parse, negate);
		}
	}
	parse->nested--;
	return rc;
}

static int parse_and(struct parse *parse, int negate)
{
	int rc = parse_not(parse, negate);

	while (rc == 0 && take_word(parse, "and")) {
		rc = parse_not(parse, negate);
		if (rc == 0)
			rc = node_join(parse, negate);
	}
	return rc;
}

static int parse_or(struct parse *parse, int negate)
{
	int rc = parse_and(parse, negate);

	while (rc == 0 && take_word(parse, "or")) {
		rc = parse_and(parse, negate);
		if (rc == 0)
			rc = node_join(parse, !negate);
	}
	return rc;
}

int stoup_filter_parse(struct stoup_filter *filter, const struct stoup_schema *schema,
	const char *text, struct stoup_error *err)
{
	struct parse parse = {
		.begin = text, .at = text, .filter = filter, .schema = schema, .err = err};
	int rc = parse_or(&parse, 0);

	blanks(&parse);
	if (rc == 0 && *parse.at)
		rc = fail(&parse, "`and` or `or` is missing here");
	return rc;
}
