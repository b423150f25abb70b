/* SPDX-License-Identifier: Apache-2.0 */
/* tool_columns.c - see tool_columns.h. */
#include "consumer/tool_columns.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/near.h"

#define LIST_CAP 160u /* bytes of names in an error's text */

/* ---- what was said ------------------------------------------------------------------------------ */

static int is_said(const struct stoup_select *select, const char *name)
{
	for (uint32_t i = 0; i < select->cnt; i++)
		if (strcmp(select->names[i], name) == 0)
			return 1;
	return 0;
}

static char *trimmed(char *text)
{
	size_t len;

	text += strspn(text, " \t");
	len = strlen(text);
	while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		text[--len] = 0;
	return text;
}

int stoup_select_add(struct stoup_select *select, char *text, struct stoup_error *err)
{
	char *name;

	while ((name = strsep(&text, ",")) != NULL) {
		name = trimmed(name);
		if (!*name)
			return stoup_error_set(
				err, -EINVAL, "a column's name is missing: say them as price,size");
		if (is_said(select, name))
			return stoup_error_set(err, -EINVAL, "%.40s is said twice", name);
		if (select->cnt == STOUP_SELECT_CAP)
			return stoup_error_set(
				err, -EINVAL, "more than %u columns", STOUP_SELECT_CAP);
		select->names[select->cnt++] = name;
	}
	return 0;
}

/* ---- names that are not there --------------------------------------------------------------------- */

/* Names of the union, as many as there is room for. */
static void list(const struct stoup_columns *all, char *dst)
{
	size_t used = 0;

	*dst = 0;
	for (uint32_t i = 0; i < all->cnt; i++) {
		if (used + strlen(all->names[i]) + 8 > LIST_CAP) {
			snprintf(dst + used, LIST_CAP - used, ", ...");
			return;
		}
		used += (size_t)snprintf(
			dst + used, LIST_CAP - used, "%s%s", i ? ", " : "", all->names[i]);
	}
}

static int tell_unknown(const struct stoup_columns *all, const char *name, struct stoup_error *err)
{
	struct stoup_near near = {.asked = name};
	char text[LIST_CAP];

	for (uint32_t i = 0; i < all->cnt; i++)
		stoup_near_offer(&near, all->names[i]);
	if (stoup_near_text(&near, text, sizeof(text)) > 0)
		return stoup_error_set(
			err, -EINVAL, "--select: there is no column %.40s; near: %s", name, text);
	list(all, text);
	return stoup_error_set(
		err, -EINVAL, "--select: there is no column %.40s; there are %s", name, text);
}

/* ---- the union -------------------------------------------------------------------------------------- */

const struct stoup_field *stoup_columns_field(const struct stoup_schema *schema, const char *name)
{
	const struct stoup_field *field = stoup_schema_field(schema, name);

	return field && !(field->flags & STOUP_FIELD_HIDDEN) ? field : NULL;
}

static int has(const struct stoup_columns *columns, const char *name)
{
	for (uint32_t i = 0; i < columns->cnt; i++)
		if (strcmp(columns->names[i], name) == 0)
			return 1;
	return 0;
}

static int add(struct stoup_columns *columns, const char *name)
{
	const char **names = reallocarray(columns->names, (size_t)columns->cnt + 1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	columns->names = names;
	names[columns->cnt++] = name;
	return 0;
}

static int add_schema(struct stoup_columns *columns, const struct stoup_schema *schema)
{
	int rc = 0;

	for (uint32_t i = 0; i < schema->field_cnt && rc == 0; i++) {
		const struct stoup_field *field = &schema->fields[i];

		if (!(field->flags & STOUP_FIELD_HIDDEN) && !has(columns, field->name))
			rc = add(columns, field->name);
	}
	return rc;
}

/* Schemas that a source before it has are looked at once. */
static int add_all(struct stoup_columns *columns, const struct stoup_source *sources, size_t cnt)
{
	int rc = 0;

	for (size_t i = 0; i < cnt && rc == 0; i++)
		if (!(sources[i].schema->flags & STOUP_SCHEMA_VARIABLE) &&
			(i == 0 || sources[i].schema != sources[i - 1].schema))
			rc = add_schema(columns, sources[i].schema);
	return rc;
}

int stoup_columns_make(const struct stoup_source *sources, size_t cnt,
	const struct stoup_select *select, struct stoup_columns *ret, struct stoup_error *err)
{
	struct stoup_columns all = {0}, said = {0};
	int rc = add_all(&all, sources, cnt);

	for (size_t i = 0; i < cnt && rc == 0 && select->cnt > 0; i++)
		if (sources[i].schema->flags & STOUP_SCHEMA_VARIABLE)
			rc = stoup_error_set(err, -EINVAL,
				"--select: %.140s holds messages, which have no columns%s",
				sources[i].series.name,
				strcmp(sources[i].schema->name, "bipf") == 0
					? ": --path takes values out of documents"
					: "");
	for (uint32_t i = 0; i < select->cnt && rc == 0; i++)
		rc = has(&all, select->names[i]) ? add(&said, select->names[i])
		                                 : tell_unknown(&all, select->names[i], err);
	if (rc == -ENOMEM)
		stoup_error_set(err, rc, "no memory for columns");
	if (rc == 0) {
		*ret = select->cnt > 0 ? said : all;
		*(select->cnt > 0 ? &said : &all) = (struct stoup_columns){0};
	}
	stoup_columns_fini(&all);
	stoup_columns_fini(&said);
	return rc;
}

void stoup_columns_fini(struct stoup_columns *columns)
{
	free(columns->names);
	*columns = (struct stoup_columns){0};
}

/* ---- arrays ----------------------------------------------------------------------------------------- */

struct stoup_schema *stoup_columns_pack(
	const struct stoup_schema *schema, const struct stoup_select *select)
{
	struct stoup_schema *ret =
		malloc(sizeof(*ret) + (size_t)select->cnt * sizeof(struct stoup_field));
	struct stoup_field *fields = (struct stoup_field *)(void *)(ret + 1);

	if (!ret)
		return NULL;
	*ret = *schema;
	ret->stride = 0;
	ret->align = 1;
	ret->field_cnt = select->cnt;
	ret->fields = fields;
	for (uint32_t i = 0; i < select->cnt; i++) {
		fields[i] = *stoup_schema_field(schema, select->names[i]);
		fields[i].off = ret->stride;
		ret->stride += stoup_type_len(fields[i].type) * fields[i].cnt;
	}
	return ret;
}
