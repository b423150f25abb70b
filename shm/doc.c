/* SPDX-License-Identifier: Apache-2.0 */
/* doc.c - opening documents, walking over them, following paths (see stoup_doc.h). */
#include "shm/stoup_doc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "shm/doc_path.h"

int stoup_doc_open(const void *bytes, size_t len, struct stoup_doc *ret)
{
	const uint8_t *at = bytes;
	struct stoup_doc doc;
	int rc;

	if (!at || len > STOUP_DOC_LEN_CAP)
		return -EBADMSG;
	rc = stoup_doc_read(at, at + len, &doc);
	if (rc)
		return rc;
	if (stoup_doc_end(&doc) != at + len)
		return -EBADMSG;
	*ret = doc;
	return 0;
}

/* ---- walking ---------------------------------------------------------------------------------- */

int stoup_doc_iterate(const struct stoup_doc *container, struct stoup_doc_iter *ret)
{
	if (container->type != STOUP_DOC_ARRAY && container->type != STOUP_DOC_OBJECT)
		return -EINVAL;
	*ret = (struct stoup_doc_iter){.at = container->payload,
		.end = stoup_doc_end(container),
		.keyed = container->type == STOUP_DOC_OBJECT};
	return 0;
}

int stoup_doc_next(struct stoup_doc_iter *iter, struct stoup_doc *key, struct stoup_doc *value)
{
	struct stoup_doc name, doc;
	const uint8_t *at = iter->at;
	int rc;

	if (at == iter->end)
		return 0;
	if (iter->keyed) {
		rc = stoup_doc_read(at, iter->end, &name);
		if (rc)
			return rc;
		if (name.type != STOUP_DOC_STRING)
			return -EBADMSG;
		at = stoup_doc_end(&name);
	}
	rc = stoup_doc_read(at, iter->end, &doc);
	if (rc)
		return rc;
	if (iter->keyed && key)
		*key = name;
	iter->at = stoup_doc_end(&doc);
	*value = doc;
	return 1;
}

int64_t stoup_doc_member_long(const uint8_t *at, const uint8_t *end, const uint8_t *limit,
	const struct stoup_doc_step *step, struct stoup_doc *ret)
{
	struct stoup_doc key, value;
	size_t len = stoup_doc_long(at, end, &key, &value);

	if (len == 0 || !stoup_doc_key_is(&key, step, limit))
		return -(int64_t)len;
	*ret = value;
	return (int64_t)len;
}

int stoup_doc_get(
	const struct stoup_doc *object, const char *key, size_t key_len, struct stoup_doc *ret)
{
	struct stoup_doc_step step;
	struct stoup_doc_spot found;
	int rc;

	if (object->type != STOUP_DOC_OBJECT || key_len > STOUP_DOC_LEN_CAP)
		return 0;
	step = stoup_doc_step_of(key, key_len);
	rc = stoup_doc_member(stoup_doc_spot_of(object), &step, stoup_doc_end(object), &found);
	if (rc == 1)
		*ret = stoup_doc_of_spot(found);
	return rc;
}

int stoup_doc_at(const struct stoup_doc *array, uint32_t idx, struct stoup_doc *ret)
{
	const uint8_t *at, *end;
	struct stoup_doc doc;

	if (array->type != STOUP_DOC_ARRAY)
		return 0;
	at = array->payload;
	end = stoup_doc_end(array);
	for (uint32_t i = 0; at < end; i++) {
		if (stoup_doc_read(at, end, &doc))
			return -EBADMSG;
		if (i == idx) {
			*ret = doc;
			return 1;
		}
		at = stoup_doc_end(&doc);
	}
	return 0;
}

/* ---- paths ------------------------------------------------------------------------------------ */

#define PATH_LEN_CAP 4096u

struct parse {
	const char *at;
	char *names; /* where the next name goes */
	struct stoup_doc_path *path;
};

static int parse_index(struct parse *parse, struct stoup_error *err)
{
	const char *at = parse->at + 1;
	uint64_t idx = 0;

	while (*at >= '0' && *at <= '9' && idx <= UINT32_MAX)
		idx = idx * 10 + (uint64_t)(*at++ - '0');
	if (at == parse->at + 1 || *at != ']' || idx > UINT32_MAX)
		return stoup_error_set(err, -EINVAL,
			"at \"%.20s\": an element is a number in brackets, such as [0]", parse->at);
	parse->path->steps[parse->path->step_cnt++] = (struct stoup_doc_step){.idx = (uint32_t)idx};
	parse->at = at + 1;
	return 0;
}

static int parse_name(struct parse *parse, struct stoup_error *err)
{
	const char *at = parse->at, *name = parse->names;
	size_t len;

	for (; *at && *at != '.' && *at != '['; at++) {
		if (*at == '\\' && !*++at)
			return stoup_error_set(err, -EINVAL, "a backslash at its end");
		*parse->names++ = *at;
	}
	if (at == parse->at)
		return stoup_error_set(err, -EINVAL, "a name is missing at \"%.20s\"", parse->at);
	len = (size_t)(parse->names - name);
	parse->path->steps[parse->path->step_cnt++] = stoup_doc_step_of(name, len);
	parse->at = at;
	return 0;
}

static int parse_steps(struct parse *parse, struct stoup_error *err)
{
	int rc = 0;

	if (strcmp(parse->at, ".") == 0)
		return 0;
	if (*parse->at != '[')
		rc = parse_name(parse, err);
	while (rc == 0 && *parse->at) {
		if (*parse->at == '[') {
			rc = parse_index(parse, err);
		} else if (*parse->at == '.') {
			parse->at++;
			rc = parse_name(parse, err);
		} else {
			rc = stoup_error_set(
				err, -EINVAL, "a dot is missing at \"%.20s\"", parse->at);
		}
	}
	return rc;
}

int stoup_doc_path_create(const char *text, struct stoup_doc_path **ret, struct stoup_error *err)
{
	size_t len = strlen(text), step_cap = 1;
	struct parse parse = {.at = text};
	int rc;

	if (len == 0 || len > PATH_LEN_CAP)
		return stoup_error_set(err, -EINVAL,
			"path \"%.40s\": 1 to %u bytes, such as data.b[0][1]; a dot alone is the document",
			text, PATH_LEN_CAP);
	for (const char *at = text; *at; at++)
		step_cap += *at == '.' || *at == '[';
	parse.path =
		malloc(sizeof(*parse.path) + step_cap * sizeof(struct stoup_doc_step) + len + 1);
	if (!parse.path)
		return stoup_error_set(err, -ENOMEM, "no memory for a path");
	parse.path->step_cnt = parse.path->zero = 0;
	parse.names = (char *)&parse.path->steps[step_cap];
	rc = parse_steps(&parse, err);
	if (rc < 0) {
		free(parse.path);
		if (err)
			stoup_error_prefix(err, "path \"%.40s\"", text);
		return rc;
	}
	*ret = parse.path;
	return 0;
}

void stoup_doc_path_destroy(struct stoup_doc_path *path)
{
	free(path);
}

int stoup_doc_seek(
	const struct stoup_doc *doc, const struct stoup_doc_path *path, struct stoup_doc *ret)
{
	const uint8_t *limit = stoup_doc_end(doc);
	struct stoup_doc_spot at = stoup_doc_spot_of(doc);

	for (uint32_t i = 0; i < path->step_cnt; i++) {
		int rc = stoup_doc_step_take(at, &path->steps[i], limit, &at);

		if (rc <= 0)
			return rc;
	}
	*ret = stoup_doc_of_spot(at);
	return 1;
}

/* ---- simple values ----------------------------------------------------------------------------- */

int stoup_doc_string(const struct stoup_doc *value, const char **ret, size_t *ret_len)
{
	if (value->type != STOUP_DOC_STRING)
		return -EINVAL;
	*ret = (const char *)value->payload;
	*ret_len = value->payload_len;
	return 0;
}

int stoup_doc_bool(const struct stoup_doc *value)
{
	if (value->type != STOUP_DOC_ATOM || value->payload_len != 1 || value->payload[0] > 1)
		return -EINVAL;
	return value->payload[0];
}

int stoup_doc_is_null(const struct stoup_doc *value)
{
	return value->type == STOUP_DOC_ATOM &&
	       (value->payload_len == 0 || (value->payload_len == 1 && value->payload[0] == 2));
}
