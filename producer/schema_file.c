/* SPDX-License-Identifier: Apache-2.0 */
/* schema_file.c - drafts of schemas, and the text file that declares one (see schema_file.h).
 *
 *      line = directive | field | nothing, up to a '#' that starts a word
 *      directive = "schema" NAME | "key" FIELD | "align" N | "stride" N | "bar" DURATION
 *      field = ["field"] NAME TYPE { "time" | "duration" | "hidden" | "scale="N | "null="V
 *              | "unit="TEXT | "at="N }
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "producer/cmd.h"
#include "shm/decimal.h"
#include "producer/schema_file.h"

#define WORD_CAP 16 /* words of one line: a field with every attribute has 9 */
#define WORD_LEN 64 /* bytes of one word with its NUL: names have at most 35 */

/* ---- drafts ---------------------------------------------------------------------------------- */

int stoup_schema_draft_create(
	const char *name, struct stoup_schema_draft **ret, struct stoup_error *err)
{
	struct stoup_schema_draft *draft;

	if (strlen(name) >= sizeof draft->schema.name)
		return stoup_error_set(err, -EINVAL,
			"schema name \"%.64s\" is longer than %d characters", name,
			STOUP_SCHEMA_NAME_CAP - 1);
	draft = calloc(1, sizeof *draft);
	if (!draft)
		return stoup_error_set(err, -ENOMEM, "out of memory");
	memcpy(draft->schema.name, name, strlen(name));
	draft->schema.align = 8;
	draft->schema.fields = draft->fields;
	*ret = draft;
	return 0;
}

void stoup_schema_draft_destroy(struct stoup_schema_draft *draft)
{
	free(draft);
}

static uint32_t field_end(const struct stoup_field *field)
{
	return field->off + stoup_type_len(field->type) * field->cnt;
}

int stoup_schema_draft_add(
	struct stoup_schema_draft *draft, const struct stoup_field *field, struct stoup_error *err)
{
	struct stoup_schema *schema = &draft->schema;
	struct stoup_field *added = &draft->fields[schema->field_cnt];
	uint32_t width = stoup_type_len(field->type);
	uint32_t end = 0;

	if (schema->field_cnt == STOUP_SCHEMA_FIELD_CAP)
		return stoup_error_set(err, -E2BIG, "more than %d fields", STOUP_SCHEMA_FIELD_CAP);
	if (width == 0 || field->cnt == 0)
		return stoup_error_set(err, -EINVAL, "field %s has no type", field->name);
	*added = *field;
	if (field->off == STOUP_FIELD_OFF_NATURAL) {
		if (schema->field_cnt)
			end = field_end(added - 1);
		added->off = (end + width - 1) / width * width;
	}
	if (added->off > STOUP_RECORD_LEN_CAP || field_end(added) > STOUP_RECORD_LEN_CAP)
		return stoup_error_set(err, -EINVAL,
			"field %s ends beyond %u bytes, the longest record", field->name,
			STOUP_RECORD_LEN_CAP);
	schema->field_cnt++;
	return 0;
}

int stoup_schema_draft_finish(
	struct stoup_schema_draft *draft, const char *key, struct stoup_error *err)
{
	struct stoup_schema *schema = &draft->schema;
	struct stoup_field *key_field = NULL;
	uint32_t end = 0;
	int rc;

	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		if (field_end(&draft->fields[i]) > end)
			end = field_end(&draft->fields[i]);
		if (!key_field && strcmp(draft->fields[i].name, key) == 0)
			key_field = &draft->fields[i];
	}
	if (!key_field)
		return stoup_error_set(err, -EINVAL,
			"schema %s: the key %s is not one of its fields", schema->name, key);
	key_field->flags |= STOUP_FIELD_KEY | STOUP_FIELD_TIME;
	schema->key_off = key_field->off;
	if (schema->stride == 0 && schema->align)
		schema->stride = (end + schema->align - 1) / schema->align * schema->align;
	rc = stoup_schema_valid(schema, err);
	if (rc)
		return rc;
	schema->hash = stoup_schema_hash(schema);
	return 0;
}

/* ---- types and attributes
 * --------------------------------------------------------------------- */

static uint64_t null_max(const struct stoup_field *field)
{
	uint32_t bits = 8 * stoup_type_len(field->type);
	int is_signed = field->type == STOUP_TYPE_I8 || field->type == STOUP_TYPE_I16 ||
	                field->type == STOUP_TYPE_I32 || field->type == STOUP_TYPE_I64;

	return UINT64_MAX >> (64 - bits + (uint32_t)is_signed);
}

/* char[N] and bytes[N] */
static int array_parse(const char *word, size_t len, struct stoup_field *ret)
{
	const char *open = memchr(word, '[', len);
	size_t base_len = open ? (size_t)(open - word) : len;
	uint64_t cnt = 1;

	if (base_len == 4 && memcmp(word, "char", 4) == 0)
		ret->type = STOUP_TYPE_CHAR;
	else if (base_len == 5 && memcmp(word, "bytes", 5) == 0)
		ret->type = STOUP_TYPE_BYTES;
	else
		return -EINVAL;
	if (open) {
		if (word[len - 1] != ']' ||
			stoup_decimal_parse_u64(open + 1, len - base_len - 2, 0, &cnt))
			return -EINVAL;
	}
	if (cnt == 0 || cnt > UINT16_MAX)
		return -EINVAL;
	ret->cnt = (uint16_t)cnt;
	return 0;
}

int stoup_schema_type_parse(const char *word, size_t len, struct stoup_field *ret)
{
	static const char *const names[] = {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64",
		"f32", "f64", "price", "time"};
	const size_t name_cnt = sizeof names / sizeof names[0];
	size_t i = 0;

	ret->flags = 0;
	ret->exp10 = 0;
	ret->null_bits = 0;
	while (i < name_cnt && (strlen(names[i]) != len || memcmp(names[i], word, len) != 0))
		i++;
	if (i == name_cnt)
		return array_parse(word, len, ret);
	ret->cnt = 1;
	ret->type = (uint8_t)(STOUP_TYPE_U8 + i);
	if (i < name_cnt - 2)
		return 0;
	ret->type = STOUP_TYPE_I64;
	ret->flags = STOUP_FIELD_NULL;
	ret->null_bits = INT64_MAX;
	if (i == name_cnt - 2)
		ret->exp10 = -9;
	else
		ret->flags |= STOUP_FIELD_TIME;
	return 0;
}

/* null=max, min, nan, or an integer of the field's type. */
static int null_parse(const char *text, struct stoup_field *field)
{
	static const uint64_t nan64 = UINT64_C(0x7ff8000000000000);
	uint32_t bits = 8 * stoup_type_len(field->type);
	int64_t value;

	if (field->type == STOUP_TYPE_F64 || field->type == STOUP_TYPE_F32) {
		if (strcmp(text, "nan") != 0)
			return -EINVAL;
		field->null_bits = bits == 64 ? nan64 : 0x7fc00000u;
	} else if (strcmp(text, "max") == 0) {
		field->null_bits = null_max(field);
	} else if (strcmp(text, "min") == 0) {
		/* One past the greatest: the least of a signed type, 0 of an unsigned one. */
		field->null_bits = (null_max(field) + 1) & (UINT64_MAX >> (64 - bits));
	} else if (text[0] == '-') {
		if (null_max(field) == UINT64_MAX >> (64 - bits)) /* unsigned */
			return -EINVAL;
		if (stoup_decimal_parse(text, strlen(text), 0, &value) ||
			value < -(int64_t)null_max(field) - 1)
			return -EINVAL;
		field->null_bits = (uint64_t)value & (UINT64_MAX >> (64 - bits));
	} else if (stoup_decimal_parse_u64(text, strlen(text), 0, &field->null_bits) ||
		   field->null_bits > null_max(field)) {
		return -EINVAL;
	}
	field->flags |= STOUP_FIELD_NULL;
	return 0;
}

/* Returns what is wrong with the word, or NULL. */
static const char *attribute_parse(const char *word, struct stoup_field *field)
{
	const char *equals = strchr(word, '=');
	const char *value = equals ? equals + 1 : "";
	size_t name_len = equals ? (size_t)(value - word) : strlen(word);
	int64_t number;

	if (strcmp(word, "time") == 0) {
		field->flags |= STOUP_FIELD_TIME;
	} else if (strcmp(word, "duration") == 0) {
		field->flags |= STOUP_FIELD_DURATION;
	} else if (strcmp(word, "hidden") == 0) {
		field->flags |= STOUP_FIELD_HIDDEN;
	} else if (strncmp(word, "scale=", name_len) == 0 && equals) {
		if (stoup_decimal_parse(value, strlen(value), 0, &number) || number < -18 ||
			number > 18)
			return "is not a power of ten from scale=-18 to scale=18";
		field->exp10 = (int8_t)number;
	} else if (strncmp(word, "at=", name_len) == 0 && equals) {
		if (stoup_decimal_parse(value, strlen(value), 0, &number) || number < 0 ||
			number > STOUP_RECORD_LEN_CAP)
			return "is not an offset in bytes";
		field->off = (uint32_t)number;
	} else if (strncmp(word, "unit=", name_len) == 0 && equals) {
		if (strlen(value) > sizeof field->unit)
			return "has more than 8 characters of a unit";
		memcpy(field->unit, value, strlen(value));
	} else if (strncmp(word, "null=", name_len) == 0 && equals) {
		if (null_parse(value, field))
			return "is not max, min or a value of the field's type (nan for floats)";
	} else {
		return "is not one of time, duration, hidden, scale=, null=, unit=, at=";
	}
	return NULL;
}

/* ---- the file -------------------------------------------------------------------------------- */

struct parser {
	const char *name; /* of the file */
	unsigned line;
	int has_schema;
	char key[STOUP_FIELD_NAME_CAP];
	struct stoup_schema_draft *draft;
	unsigned word_cnt;
	char words[WORD_CAP][WORD_LEN];
};

static int line_error(const struct parser *parser, struct stoup_error *err, const char *what)
{
	return stoup_error_set(err, -EINVAL, "%s: line %u: %s", parser->name, parser->line, what);
}

/* Cut a line into words. */
static int split(struct parser *parser, const char *at, const char *end, struct stoup_error *err)
{
	parser->word_cnt = 0;
	for (;;) {
		const char *word;
		size_t len;

		while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
			at++;
		if (at == end || *at == '#')
			return 0;
		word = at;
		while (at < end && *at != ' ' && *at != '\t' && *at != '\r')
			at++;
		len = (size_t)(at - word);
		if (memchr(word, '\0', len))
			return line_error(parser, err, "has a NUL byte; is this a text file?");
		if (len >= WORD_LEN)
			return line_error(parser, err, "has a word of more than 63 characters");
		if (parser->word_cnt == WORD_CAP)
			return line_error(parser, err, "has more than 16 words");
		memcpy(parser->words[parser->word_cnt], word, len);
		parser->words[parser->word_cnt++][len] = '\0';
	}
}

static int number_directive(struct parser *parser, uint32_t *ret, struct stoup_error *err)
{
	uint64_t value;

	if (stoup_decimal_parse_u64(parser->words[1], strlen(parser->words[1]), 0, &value) ||
		value == 0 || value > STOUP_RECORD_LEN_CAP)
		return stoup_error_set(err, -EINVAL, "%s: line %u: %s is not a number of bytes",
			parser->name, parser->line, parser->words[1]);
	*ret = (uint32_t)value;
	return 0;
}

static int bar_directive(struct parser *parser, struct stoup_error *err)
{
	struct stoup_schema *schema = &parser->draft->schema;
	int64_t interval_ns;

	if (stoup_duration_parse(parser->words[1], &interval_ns) || interval_ns <= 0)
		return stoup_error_set(err, -EINVAL,
			"%s: line %u: %s is not a length of time such as 1m or 60s", parser->name,
			parser->line, parser->words[1]);
	schema->flags |= STOUP_SCHEMA_BAR;
	schema->interval_ns = (uint64_t)interval_ns;
	return 0;
}

static int schema_directive(struct parser *parser, struct stoup_error *err)
{
	struct stoup_schema *schema = &parser->draft->schema;

	if (parser->has_schema)
		return line_error(parser, err, "a second schema; a file declares one");
	if (strlen(parser->words[1]) >= sizeof schema->name)
		return line_error(parser, err, "the name has more than 31 characters");
	memcpy(schema->name, parser->words[1], strlen(parser->words[1]) + 1);
	parser->has_schema = 1;
	return 0;
}

static int key_directive(struct parser *parser, struct stoup_error *err)
{
	if (parser->key[0])
		return line_error(parser, err, "a second key; a schema has one");
	if (strlen(parser->words[1]) >= sizeof parser->key)
		return line_error(parser, err, "the name has more than 35 characters");
	memcpy(parser->key, parser->words[1], strlen(parser->words[1]) + 1);
	return 0;
}

static int field_line(struct parser *parser, unsigned first, struct stoup_error *err)
{
	struct stoup_field field = {.off = STOUP_FIELD_OFF_NATURAL};
	const char *name = parser->words[first];
	const char *type = parser->words[first + 1];
	int rc;

	if (parser->word_cnt < first + 2)
		return stoup_error_set(err, -EINVAL,
			"%s: line %u: \"%s\" is neither a directive (schema, key, align, stride, "
			"bar) nor "
			"a field with its type",
			parser->name, parser->line, name);
	if (strlen(name) >= sizeof field.name)
		return line_error(parser, err, "the name has more than 35 characters");
	memcpy(field.name, name, strlen(name));
	if (stoup_schema_type_parse(type, strlen(type), &field))
		return stoup_error_set(err, -EINVAL,
			"%s: line %u: %s is not a type: u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 char "
			"char[N] "
			"bytes[N] price time",
			parser->name, parser->line, type);
	for (unsigned i = first + 2; i < parser->word_cnt; i++) {
		const char *fault = attribute_parse(parser->words[i], &field);

		if (fault)
			return stoup_error_set(err, -EINVAL, "%s: line %u: field %s: %s %s",
				parser->name, parser->line, name, parser->words[i], fault);
	}
	rc = stoup_schema_draft_add(parser->draft, &field, err);
	if (rc)
		stoup_error_prefix(err, "%s: line %u", parser->name, parser->line);
	return rc;
}

static int line_parse(struct parser *parser, struct stoup_error *err)
{
	struct stoup_schema *schema = &parser->draft->schema;
	const char *word = parser->words[0];

	if (strcmp(word, "field") == 0) {
		if (parser->word_cnt < 2)
			return line_error(parser, err, "field needs a name and a type");
		return field_line(parser, 1, err);
	}
	/* Directives have one argument; a field of such a name has a type and needs "field". */
	if (parser->word_cnt == 2) {
		if (strcmp(word, "schema") == 0)
			return schema_directive(parser, err);
		if (strcmp(word, "key") == 0)
			return key_directive(parser, err);
		if (strcmp(word, "align") == 0)
			return number_directive(parser, &schema->align, err);
		if (strcmp(word, "stride") == 0)
			return number_directive(parser, &schema->stride, err);
		if (strcmp(word, "bar") == 0)
			return bar_directive(parser, err);
	}
	return field_line(parser, 0, err);
}

static int text_parse(struct parser *parser, const char *text, size_t len, struct stoup_error *err)
{
	const char *at = text, *end = text + len;
	int rc;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *line_end = newline ? newline : end;

		parser->line++;
		rc = split(parser, at, line_end, err);
		if (!rc && parser->word_cnt)
			rc = line_parse(parser, err);
		if (rc)
			return rc;
		at = newline ? newline + 1 : end;
	}
	if (!parser->has_schema)
		return stoup_error_set(
			err, -EINVAL, "%s: no line names the schema (schema NAME)", parser->name);
	if (!parser->key[0])
		return stoup_error_set(
			err, -EINVAL, "%s: no line names the key field (key FIELD)", parser->name);
	rc = stoup_schema_draft_finish(parser->draft, parser->key, err);
	if (rc)
		stoup_error_prefix(err, "%s", parser->name);
	return rc;
}

int stoup_schema_text_parse(const char *text, size_t len, const char *name,
	struct stoup_schema_draft **ret, struct stoup_error *err)
{
	struct parser parser = {.name = name};
	int rc = stoup_schema_draft_create("", &parser.draft, err);

	if (rc)
		return rc;
	rc = text_parse(&parser, text, len, err);
	if (rc) {
		stoup_schema_draft_destroy(parser.draft);
		return rc;
	}
	*ret = parser.draft;
	return 0;
}

/* Read up to `cap` bytes; returns how many, or a negative errno. */
static int64_t file_read(int fd, char *dst, size_t cap)
{
	size_t len = 0;

	while (len < cap) {
		ssize_t got = read(fd, dst + len, cap - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		len += (size_t)got;
	}
	return (int64_t)len;
}

int stoup_schema_file_load(
	const char *path, struct stoup_schema_draft **ret, struct stoup_error *err)
{
	char *text = NULL;
	int64_t len;
	int fd, rc;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return stoup_error_set(err, -errno, "schema file %s: %s", path, strerror(errno));
	text = malloc(STOUP_SCHEMA_FILE_LEN_CAP + 1);
	if (!text) {
		rc = stoup_error_set(err, -ENOMEM, "out of memory");
		goto out_close;
	}
	len = file_read(fd, text, STOUP_SCHEMA_FILE_LEN_CAP + 1);
	if (len < 0)
		rc = stoup_error_set(
			err, (int)len, "schema file %s: %s", path, strerror((int)-len));
	else if (len > STOUP_SCHEMA_FILE_LEN_CAP)
		rc = stoup_error_set(err, -EFBIG, "schema file %s: more than %u bytes", path,
			STOUP_SCHEMA_FILE_LEN_CAP);
	else
		rc = stoup_schema_text_parse(text, (size_t)len, path, ret, err);
	free(text);
out_close:
	close(fd);
	return rc;
}
