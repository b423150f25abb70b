/* SPDX-License-Identifier: Apache-2.0 */
/* npy.c - the header of a .npy file (see npy.h).
 *
 *      header = '{' [ entry (',' entry)* [','] ] '}'         entry = key ':' value
 *      descr  = '[' [ pair (',' pair)* [','] ] ']'           pair = '(' name ',' type ')'
 *      shape  = '(' [ number (',' number)* [','] ] ')'
 *
 * NumPy itself reads the text by evaluating it as a literal; nothing is evaluated here.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "producer/npy.h"

#define MAGIC     "\x93NUMPY"
#define MAGIC_LEN 6u
#define TYPE_CAP  24 /* the longest: <M8[ns], |S65535 */
#define SHOWN_CAP 41

#define HAVE_DESCR   1u
#define HAVE_FORTRAN 2u
#define HAVE_SHAPE   4u
#define HAVE_ALL     7u

struct parser {
	const char *begin, *at, *end;
	uint64_t header_off;
	struct stoup_npy *npy;
	struct stoup_error *err;
};

/* ---- prelude ---------------------------------------------------------------------------------- */

int stoup_npy_is(const uint8_t *bytes, size_t len)
{
	return len >= MAGIC_LEN && memcmp(bytes, MAGIC, MAGIC_LEN) == 0;
}

int stoup_npy_prelude(
	const uint8_t *bytes, size_t len, struct stoup_npy_prelude *ret, struct stoup_error *err)
{
	struct stoup_npy_prelude prelude;

	if (len < STOUP_NPY_PRELUDE_LEN && stoup_npy_is(bytes, len))
		return stoup_error_set(err, -ENODATA,
			"a .npy file of %zu bytes ends inside its header: it is cut short", len);
	if (!stoup_npy_is(bytes, len))
		return stoup_error_set(
			err, -EBADMSG, "not a .npy file: it does not begin like one");
	prelude.major = bytes[MAGIC_LEN];
	prelude.minor = bytes[MAGIC_LEN + 1];
	if (prelude.major < 1 || prelude.major > 3 || prelude.minor != 0)
		return stoup_error_set(err, -EPROTONOSUPPORT,
			"a .npy file of version %u.%u; 1.0, 2.0 and 3.0 are known", prelude.major,
			prelude.minor);
	prelude.header_len = bytes[8] | (uint32_t)bytes[9] << 8;
	prelude.header_off = 10;
	if (prelude.major > 1) {
		prelude.header_len |= (uint32_t)bytes[10] << 16 | (uint32_t)bytes[11] << 24;
		prelude.header_off = 12;
	}
	if (prelude.header_len > STOUP_NPY_HEADER_CAP)
		return stoup_error_set(err, -EBADMSG,
			"a .npy header of %" PRIu32
			" bytes, at most %u are read: the file is damaged",
			prelude.header_len, STOUP_NPY_HEADER_CAP);
	*ret = prelude;
	return 0;
}

/* ---- words ------------------------------------------------------------------------------------ */

static unsigned long long offset(const struct parser *p)
{
	return (unsigned long long)(p->header_off + (uint64_t)(p->at - p->begin));
}

static int bad(const struct parser *p, const char *what)
{
	return stoup_error_set(p->err, -EBADMSG,
		"the .npy header at offset %llu: %s expected: not written by NumPy, or damaged",
		offset(p), what);
}

static void blanks(struct parser *p)
{
	while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t'))
		p->at++;
}

/* Take one character if it comes next. */
static int take(struct parser *p, char c)
{
	blanks(p);
	if (p->at == p->end || *p->at != c)
		return 0;
	p->at++;
	return 1;
}

static int must(struct parser *p, char c)
{
	char what[4] = {'\'', c, '\'', 0};

	return take(p, c) ? 0 : bad(p, what);
}

static int take_word(struct parser *p, const char *word)
{
	size_t len = strlen(word);

	blanks(p);
	if ((size_t)(p->end - p->at) < len || memcmp(p->at, word, len) != 0)
		return 0;
	p->at += len;
	return 1;
}

/* A quoted string without escapes; its bytes are [*ret, *ret + *ret_len). */
static int string(struct parser *p, const char **ret, size_t *ret_len)
{
	const char *stop;
	char quote;

	blanks(p);
	if (p->at == p->end || (*p->at != '\'' && *p->at != '"'))
		return bad(p, "a quoted text");
	quote = *p->at;
	stop = memchr(p->at + 1, quote, (size_t)(p->end - p->at - 1));
	if (!stop)
		return bad(p, "the end of a quoted text");
	*ret = p->at + 1;
	*ret_len = (size_t)(stop - p->at - 1);
	if (memchr(*ret, '\\', *ret_len))
		return bad(p, "a text without a backslash");
	p->at = stop + 1;
	return 0;
}

static int number(struct parser *p, uint64_t *ret)
{
	uint64_t value = 0;
	const char *first;

	blanks(p);
	first = p->at;
	for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
		if (__builtin_mul_overflow(value, 10u, &value) ||
			__builtin_add_overflow(value, (uint64_t)(*p->at - '0'), &value))
			return bad(p, "a number below 2^64");
	if (p->at == first)
		return bad(p, "a number");
	take(p, 'L'); /* NumPy under Python 2 */
	*ret = value;
	return 0;
}

/* ---- types ------------------------------------------------------------------------------------ */

/* A text of the file as a message may have it: its beginning, without control bytes. */
static const char *shown(const char *text, size_t len, char dst[SHOWN_CAP])
{
	if (len >= SHOWN_CAP)
		len = SHOWN_CAP - 1;
	for (size_t i = 0; i < len; i++)
		dst[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
	dst[len] = 0;
	return dst;
}

static int refuse(const struct parser *p, const char *name, const char *type, const char *advice)
{
	char text[SHOWN_CAP];

	return stoup_error_set(p->err, -ENOTSUP,
		"the .npy header at offset %llu: field '%.40s' has the type '%.24s', %s", offset(p),
		name, shown(type, strlen(type), text), advice);
}

/* Of a type text "<u8": byte order, kind, digits, the rest. */
struct type {
	char order, kind;
	uint64_t len;
	const char *rest;
	char text[TYPE_CAP];
};

static int type_split(struct parser *p, const char *text, size_t len, struct type *ret)
{
	const char *at;

	if (len < 2 || len >= TYPE_CAP)
		return bad(p, "a type such as <i8");
	memcpy(ret->text, text, len);
	ret->text[len] = 0;
	at = ret->text;
	ret->order = strchr("<>|=", *at) ? *at++ : '=';
	ret->kind = *at ? *at++ : 0;
	ret->len = 0;
	for (; *at >= '0' && *at <= '9'; at++)
		ret->len = ret->len * 10 + (uint64_t)(*at - '0'); /* TYPE_CAP digits fit */
	ret->rest = at;
	return 0;
}

static uint8_t integer_type(char kind, uint64_t len)
{
	int sign = kind == 'i';

	switch (len) {
	case 1:
		return sign ? STOUP_TYPE_I8 : STOUP_TYPE_U8;
	case 2:
		return sign ? STOUP_TYPE_I16 : STOUP_TYPE_U16;
	case 4:
		return sign ? STOUP_TYPE_I32 : STOUP_TYPE_U32;
	case 8:
		return sign ? STOUP_TYPE_I64 : STOUP_TYPE_U64;
	default:
		return 0;
	}
}

/* Numbers: 0 and the field's type, or 0 and type 0 for a kind that is none. */
static void number_type(const struct type *type, struct stoup_field *field)
{
	if (type->kind == 'i' || type->kind == 'u')
		field->type = integer_type(type->kind, type->len);
	else if (type->kind == 'b' && type->len == 1)
		field->type = STOUP_TYPE_U8;
	else if (type->kind == 'f' && (type->len == 4 || type->len == 8))
		field->type = type->len == 4 ? STOUP_TYPE_F32 : STOUP_TYPE_F64;
	field->cnt = 1;
}

/* Texts and opaque bytes: of 1 to 65535. */
static int text_type(const struct parser *p, const char *name, const struct type *type,
	struct stoup_field *field)
{
	if (type->len == 0 || type->len > UINT16_MAX)
		return refuse(p, name, type->text, "whose length is not 1 to 65535 bytes");
	field->type = type->kind == 'S' || type->kind == 'a' ? STOUP_TYPE_CHAR : STOUP_TYPE_BYTES;
	field->cnt = (uint16_t)type->len;
	return 0;
}

static int time_type(const struct parser *p, const char *name, const struct type *type,
	struct stoup_field *field)
{
	if (type->len != 8 || strcmp(type->rest, "[ns]") != 0)
		return refuse(p, name, type->text,
			"and only nanoseconds are taken: save the array with it as datetime64[ns] or "
			"timedelta64[ns] (astype)");
	field->type = STOUP_TYPE_I64;
	field->cnt = 1;
	field->flags =
		STOUP_FIELD_NULL | (type->kind == 'M' ? STOUP_FIELD_TIME : STOUP_FIELD_DURATION);
	field->null_bits = (uint64_t)INT64_MIN; /* NaT */
	return 0;
}

static int type_parse(
	struct parser *p, const char *name, const char *text, size_t len, struct stoup_field *field)
{
	struct type type;
	int rc = type_split(p, text, len, &type);

	if (rc < 0)
		return rc;
	if (type.order == '>' && strchr("iufMmcU", type.kind) && type.len > 1)
		return refuse(p, name, type.text,
			"which is big-endian: save the array with "
			"a.astype(a.dtype.newbyteorder('<'))");
	if (type.kind == 'M' || type.kind == 'm')
		return time_type(p, name, &type, field);
	if (*type.rest)
		return bad(p, "a type such as <i8");
	if (type.kind == 'S' || type.kind == 'a' || type.kind == 'V')
		return text_type(p, name, &type, field);
	if (type.kind == 'U')
		return refuse(p, name, type.text,
			"text of 4 bytes a character: save the array with it as bytes (S8)");
	if (type.kind == 'O')
		return refuse(p, name, type.text, "Python objects, which have no bytes");
	number_type(&type, field);
	return field->type ? 0 : refuse(p, name, type.text, "which no record field can have");
}

/* ---- descr ------------------------------------------------------------------------------------ */

static int name_store(struct parser *p, const char *name, size_t len, struct stoup_field *field)
{
	char text[SHOWN_CAP];

	if (len >= STOUP_FIELD_NAME_CAP)
		return stoup_error_set(p->err, -ENOTSUP,
			"the .npy header at offset %llu: the field name '%s' has more than %d bytes",
			offset(p), shown(name, len, text), STOUP_FIELD_NAME_CAP - 1);
	memcpy(field->name, name, len);
	for (size_t i = 0; i < len; i++) {
		char c = name[i];

		if (c == 0 || (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
				      !(c >= '0' && c <= '9') && !strchr("_.[]-", c)))
			return stoup_error_set(p->err, -ENOTSUP,
				"the .npy header at offset %llu: the field name '%s' has other characters than "
				"letters, digits and _ . [ ] -",
				offset(p), shown(name, len, text));
	}
	return 0;
}

/* ('name', 'type') */
static int pair(struct parser *p, struct stoup_field *field)
{
	const char *name, *type;
	size_t name_len, type_len;
	int rc = must(p, '(');

	if (rc == 0 && take(p, '('))
		return stoup_error_set(p->err, -ENOTSUP,
			"the .npy header at offset %llu: a field with a title: save the array without",
			offset(p));
	if (rc == 0)
		rc = string(p, &name, &name_len);
	if (rc == 0)
		rc = name_store(p, name, name_len, field);
	if (rc == 0)
		rc = must(p, ',');
	if (rc == 0 && take(p, '['))
		return refuse(p, field->name, "[...]",
			"fields within a field: save the array with its fields side by side");
	if (rc == 0)
		rc = string(p, &type, &type_len);
	if (rc == 0)
		rc = type_parse(p, field->name, type, type_len, field);
	if (rc == 0 && name_len == 0 && field->type != STOUP_TYPE_BYTES)
		return refuse(p, "", "(without a name)", "and a field needs one");
	if (rc == 0 && take(p, ',') && !take(p, ')'))
		return refuse(p, field->name, "(..., shape)",
			"an array within a record: save its elements as fields of their own");
	else if (rc == 0 && p->at[-1] != ')')
		rc = must(p, ')');
	return rc;
}

static int descr_plain(struct parser *p)
{
	const char *type;
	char text[SHOWN_CAP];
	size_t len;
	int rc = string(p, &type, &len);

	if (rc < 0)
		return rc;
	return stoup_error_set(p->err, -ENOTSUP,
		"the .npy header at offset %llu: a plain array of '%s': records need named fields, one of "
		"them a time; save a structured array",
		offset(p), shown(type, len, text));
}

static int descr(struct parser *p)
{
	struct stoup_npy *npy = p->npy;
	int rc = 0;

	blanks(p);
	if (p->at < p->end && (*p->at == '\'' || *p->at == '"'))
		return descr_plain(p);
	rc = must(p, '[');
	while (rc == 0 && !take(p, ']')) {
		struct stoup_field *field = &npy->fields[npy->field_cnt];

		if (npy->field_cnt == STOUP_SCHEMA_FIELD_CAP)
			return stoup_error_set(p->err, -ENOTSUP,
				"the .npy header at offset %llu: more than %d fields", offset(p),
				STOUP_SCHEMA_FIELD_CAP);
		*field = (struct stoup_field){.off = npy->stride};
		rc = pair(p, field);
		if (rc < 0)
			return rc;
		npy->stride += stoup_type_len(field->type) * field->cnt;
		npy->field_cnt++;
		if (npy->stride > STOUP_RECORD_LEN_CAP)
			return stoup_error_set(p->err, -ENOTSUP,
				"the .npy header at offset %llu: a record of more than %u bytes",
				offset(p), STOUP_RECORD_LEN_CAP);
		if (!take(p, ','))
			return must(p, ']');
	}
	return rc;
}

/* ---- the header ------------------------------------------------------------------------------- */

static int shape(struct parser *p)
{
	uint32_t dimension_cnt = 0;
	int rc = must(p, '(');

	while (rc == 0 && !take(p, ')')) {
		uint64_t cnt = 0;

		rc = number(p, &cnt);
		if (rc < 0)
			return rc;
		if (dimension_cnt++ == 0)
			p->npy->row_cnt = cnt;
		if (!take(p, ',')) {
			rc = must(p, ')');
			break;
		}
	}
	if (rc == 0 && dimension_cnt != 1)
		return stoup_error_set(p->err, -ENOTSUP,
			"the .npy header at offset %llu: an array of %u dimensions: a series has one; "
			"save a.ravel()",
			offset(p), dimension_cnt);
	return rc;
}

/* The order in memory says nothing of an array of one dimension. */
static int fortran(struct parser *p)
{
	return take_word(p, "True") || take_word(p, "False") ? 0 : bad(p, "True or False");
}

static int entry(struct parser *p, unsigned *have)
{
	const char *key;
	size_t len;
	unsigned which;
	int rc = string(p, &key, &len);

	if (rc == 0)
		rc = must(p, ':');
	if (rc < 0)
		return rc;
	which = len == 5 && memcmp(key, "descr", 5) == 0             ? HAVE_DESCR
	        : len == 13 && memcmp(key, "fortran_order", 13) == 0 ? HAVE_FORTRAN
	        : len == 5 && memcmp(key, "shape", 5) == 0           ? HAVE_SHAPE
	                                                             : 0;
	if (which == 0 || (*have & which))
		return bad(p, "each of 'descr', 'fortran_order' and 'shape' once");
	*have |= which;
	return which == HAVE_DESCR ? descr(p) : which == HAVE_SHAPE ? shape(p) : fortran(p);
}

int stoup_npy_header(const char *text, size_t len, uint64_t header_off, struct stoup_npy *ret,
	struct stoup_error *err)
{
	struct parser p = {text, text, text + len, header_off, ret, err};
	unsigned have = 0;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = must(&p, '{');
	while (rc == 0 && !take(&p, '}')) {
		rc = entry(&p, &have);
		if (rc == 0 && !take(&p, ',')) {
			rc = must(&p, '}');
			break;
		}
	}
	if (rc < 0)
		return rc;
	blanks(&p);
	if (p.at != p.end)
		return bad(&p, "the end");
	if (have != HAVE_ALL)
		return bad(&p, "each of 'descr', 'fortran_order' and 'shape' once");
	if (ret->stride == 0)
		return stoup_error_set(
			err, -ENOTSUP, "the .npy header: an array of records without fields");
	return 0;
}
