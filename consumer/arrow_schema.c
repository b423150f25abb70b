/* SPDX-License-Identifier: Apache-2.0 */
/* arrow_schema.c - a record schema as an ArrowSchema (see stoup_arrow.h).
 *
 *      parent {format "+s", children} --> child {format, name, metadata}   each with memory of its own,
 *                                                                         so that it may be moved out
 *
 * Metadata as the interface wants it: i32 number of pairs, then i32 length and bytes of each key and
 * value, in the machine's byte order.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/arrow.h"

#define FLAGS_KNOWN                                                                                \
	(STOUP_ARROW_RECORDS | STOUP_ARROW_PRICE_INT | STOUP_ARROW_PRICE_F64 |                     \
		STOUP_ARROW_TIME_INT | STOUP_ARROW_TEXT_BYTES | STOUP_ARROW_HIDDEN)
#define METADATA_CAP 256u

/* ---- forms ------------------------------------------------------------------------------------ */

static int is_integer(const struct stoup_field *field)
{
	return field->type >= STOUP_TYPE_U8 && field->type <= STOUP_TYPE_I64;
}

enum stoup_arrow_form stoup_arrow_form(const struct stoup_field *field, uint32_t flags)
{
	if ((field->flags & STOUP_FIELD_HIDDEN) && !(flags & STOUP_ARROW_HIDDEN))
		return STOUP_ARROW_SKIP;
	if (field->type == STOUP_TYPE_CHAR && !(flags & STOUP_ARROW_TEXT_BYTES))
		return STOUP_ARROW_TEXT;
	if (!is_integer(field))
		return STOUP_ARROW_PLAIN;
	if (field->flags & (STOUP_FIELD_TIME | STOUP_FIELD_DURATION))
		return flags & STOUP_ARROW_TIME_INT ? STOUP_ARROW_PLAIN : STOUP_ARROW_I64;
	if (field->exp10 == 0 || (flags & STOUP_ARROW_PRICE_INT))
		return STOUP_ARROW_PLAIN;
	return flags & STOUP_ARROW_PRICE_F64 ? STOUP_ARROW_FLOAT : STOUP_ARROW_DECIMAL;
}

int stoup_arrow_check(const struct stoup_schema *schema, uint32_t flags, struct stoup_error *err)
{
	if (flags & ~FLAGS_KNOWN)
		return stoup_error_set(err, -EINVAL, "flags %#x of an Arrow export are unknown",
			flags & ~FLAGS_KNOWN);
	if ((flags & STOUP_ARROW_PRICE_INT) && (flags & STOUP_ARROW_PRICE_F64))
		return stoup_error_set(err, -EINVAL,
			"STOUP_ARROW_PRICE_INT and STOUP_ARROW_PRICE_F64 exclude each other");
	if ((flags & STOUP_ARROW_RECORDS) && schema->stride == 0)
		return stoup_error_set(err, -ENOTSUP,
			"schema '%.31s' has messages of variable length, which are no fixed-size binary: "
			"leave STOUP_ARROW_RECORDS out",
			schema->name);
	return 0;
}

int stoup_arrow_message_text(const struct stoup_schema *schema, uint32_t flags)
{
	return strcmp(schema->name, "json") == 0 && !(flags & STOUP_ARROW_TEXT_BYTES);
}

struct stoup_field stoup_arrow_record_field(const struct stoup_schema *schema)
{
	return (struct stoup_field){.name = "record",
		.cnt = (uint16_t)schema->stride, /* at most STOUP_RECORD_LEN_CAP */
		.type = STOUP_TYPE_BYTES};
}

/* ---- one node --------------------------------------------------------------------------------- */

/* What a node's pointers point to. */
struct node {
	char format[16];
	char name[STOUP_SCHEMA_NAME_CAP + STOUP_FIELD_NAME_CAP];
	char metadata[METADATA_CAP];
	size_t metadata_len;
	struct ArrowSchema *children; /* the parent's */
	struct ArrowSchema **pointers;
};

static void release(struct ArrowSchema *schema)
{
	struct node *node = schema->private_data;

	/* A child that was moved out has no release callback here any more. */
	for (int64_t i = 0; i < schema->n_children; i++)
		if (schema->children[i]->release)
			schema->children[i]->release(schema->children[i]);
	free(node->children);
	free(node->pointers);
	free(node);
	schema->release = NULL;
}

static struct node *node_make(const char *name, struct ArrowSchema *ret)
{
	struct node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	snprintf(node->name, sizeof(node->name), "%s", name);
	*ret = (struct ArrowSchema){.format = node->format,
		.name = node->name,
		.release = release,
		.private_data = node};
	return node;
}

static void metadata_bytes(struct node *node, const char *text)
{
	int32_t len = (int32_t)strlen(text);

	memcpy(node->metadata + node->metadata_len, &len, sizeof(len));
	memcpy(node->metadata + node->metadata_len + sizeof(len), text, (size_t)len);
	node->metadata_len += sizeof(len) + (size_t)len;
}

/* Add a pair. The few that there are fit: names have 35 bytes at most. */
static void metadata_add(
	struct node *node, const char *key, const char *value, struct ArrowSchema *schema)
{
	int32_t cnt = 0;

	if (node->metadata_len + strlen(key) + strlen(value) + 3 * sizeof(cnt) > METADATA_CAP)
		return;
	memcpy(&cnt, node->metadata, sizeof(cnt));
	cnt++;
	memcpy(node->metadata, &cnt, sizeof(cnt));
	if (node->metadata_len == 0)
		node->metadata_len = sizeof(cnt);
	metadata_bytes(node, key);
	metadata_bytes(node, value);
	schema->metadata = node->metadata;
}

/* ---- fields ----------------------------------------------------------------------------------- */

static void plain_format(const struct stoup_field *field, char *dst, size_t cap)
{
	static const char letters[] = "?CcSsIiLlfg"; /* by STOUP_TYPE_* */

	if (field->type == STOUP_TYPE_CHAR || field->type == STOUP_TYPE_BYTES)
		snprintf(dst, cap, "w:%u", field->cnt);
	else
		snprintf(dst, cap, "%c", letters[field->type]);
}

static void field_format(
	const struct stoup_field *field, enum stoup_arrow_form form, char *dst, size_t cap)
{
	switch (form) {
	case STOUP_ARROW_I64:
		snprintf(dst, cap, "%s", field->flags & STOUP_FIELD_TIME ? "tsn:UTC" : "tDn");
		break;
	case STOUP_ARROW_DECIMAL:
		/* A scale above zero is multiplied out: few readers take negative ones. */
		snprintf(dst, cap, "d:38,%d", field->exp10 < 0 ? -field->exp10 : 0);
		break;
	case STOUP_ARROW_FLOAT:
		snprintf(dst, cap, "g");
		break;
	case STOUP_ARROW_TEXT:
		snprintf(dst, cap, "u");
		break;
	case STOUP_ARROW_PLAIN:
	case STOUP_ARROW_SKIP:
		plain_format(field, dst, cap);
		break;
	}
}

static int field_make(const struct stoup_field *field, uint32_t flags, struct ArrowSchema *ret)
{
	enum stoup_arrow_form form = stoup_arrow_form(field, flags);
	struct node *node = node_make(field->name, ret);
	char text[STOUP_FIELD_UNIT_CAP + 1];

	if (!node)
		return -ENOMEM;
	field_format(field, form, node->format, sizeof(node->format));
	ret->flags = field->flags & STOUP_FIELD_NULL ? ARROW_FLAG_NULLABLE : 0;
	if (form == STOUP_ARROW_PLAIN && field->exp10 != 0) {
		snprintf(text, sizeof(text), "%d", field->exp10);
		metadata_add(node, "stoup.scale", text, ret);
	}
	snprintf(text, sizeof(text), "%.8s", field->unit);
	if (text[0])
		metadata_add(node, "stoup.unit", text, ret);
	return 0;
}

/* ---- the schema ------------------------------------------------------------------------------- */

static void schema_metadata(const struct stoup_schema *schema, struct ArrowSchema *ret)
{
	struct node *node = ret->private_data;
	char text[24];

	metadata_add(node, "stoup.schema", schema->name, ret);
	for (uint32_t i = 0; i < schema->field_cnt; i++)
		if (schema->fields[i].flags & STOUP_FIELD_KEY)
			metadata_add(node, "stoup.key", schema->fields[i].name, ret);
	if (schema->flags & STOUP_SCHEMA_BAR) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)schema->interval_ns);
		metadata_add(node, "stoup.interval_ns", text, ret);
	}
}

/* Append a child to a parent that has room for it. */
static int child_add(struct ArrowSchema *parent, const struct stoup_field *field, uint32_t flags)
{
	struct node *node = parent->private_data;
	int rc = field_make(field, flags, &node->children[parent->n_children]);

	if (rc < 0)
		return rc;
	node->pointers[parent->n_children] = &node->children[parent->n_children];
	parent->n_children++;
	return 0;
}

/* The two columns of messages. */
static int message_children(
	struct ArrowSchema *parent, const struct stoup_schema *schema, uint32_t flags)
{
	static const struct stoup_field key = {
		.name = "key", .cnt = 1, .type = STOUP_TYPE_I64, .flags = STOUP_FIELD_TIME};
	static const struct stoup_field message = {
		.name = "message", .cnt = 1, .type = STOUP_TYPE_BYTES};
	struct node *node = parent->private_data;
	int rc = child_add(parent, &key, flags);

	if (rc < 0)
		return rc;
	rc = child_add(parent, &message, flags);
	if (rc < 0)
		return rc;
	node = node->children[1].private_data;
	strcpy(node->format, stoup_arrow_message_text(schema, flags) ? "U" : "Z");
	return 0;
}

int stoup_arrow_schema(const struct stoup_schema *schema, uint32_t flags, struct ArrowSchema *ret,
	struct stoup_error *err)
{
	struct ArrowSchema parent;
	struct stoup_field record;
	struct node *node;
	int rc = stoup_arrow_check(schema, flags, err);

	if (rc < 0)
		return rc;
	node = node_make("", &parent);
	if (!node)
		return stoup_error_set(err, -ENOMEM, "no memory for an Arrow schema");
	strcpy(node->format, "+s");
	node->children = calloc((size_t)schema->field_cnt + 2, sizeof(*node->children));
	node->pointers = calloc((size_t)schema->field_cnt + 2, sizeof(*node->pointers));
	parent.children = node->pointers;
	schema_metadata(schema, &parent);
	rc = node->children && node->pointers ? 0 : -ENOMEM;
	if (rc == 0 && schema->stride == 0)
		rc = message_children(&parent, schema, flags);
	if (rc == 0 && (flags & STOUP_ARROW_RECORDS)) {
		record = stoup_arrow_record_field(schema);
		rc = child_add(&parent, &record, flags);
	}
	for (uint32_t i = 0; i < schema->field_cnt && rc == 0; i++) {
		const struct stoup_field *field = &schema->fields[i];

		if (!(flags & STOUP_ARROW_RECORDS) &&
			stoup_arrow_form(field, flags) != STOUP_ARROW_SKIP)
			rc = child_add(&parent, field, flags);
	}
	if (rc < 0) {
		release(&parent);
		return stoup_error_set(err, rc, "no memory for an Arrow schema");
	}
	*ret = parent;
	return 0;
}
