/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_jsonl.c - see ingest_jsonl.h. */
#include "producer/ingest_jsonl.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/intake.h"
#include "producer/json_doc.h"
#include "producer/jsonl_lines.h"
#include "shm/doc_read.h"

#define NEAR_CAP  24 /* bytes of a text that an error shows */
#define CACHE_CNT 256u
#define VALUE_CAP 120u /* bytes of a value that the cache keeps */

/* A value at --series-path whose series was found lately. */
struct cached {
	uint32_t len; /* 0: none */
	uint32_t series_idx;
	int taken; /* --symbols asks for it */
	char value[VALUE_CAP];
};

struct reader {
	const struct stoup_sink *sink;
	const struct stoup_jsonl_options *options;
	const char *file;
	const struct stoup_schema *schema;
	struct stoup_doc_path *time, *series;
	struct stoup_lines lines;
	struct stoup_line line;
	uint8_t *doc;
	size_t doc_cap;
	int64_t series_idx;           /* of the one series, or of the rest; -1: not opened yet */
	uint64_t rest_cnt, rest_line; /* messages without a value at --series-path; the first one */
	struct cached *cache;
};

/* A part of a line. */
struct part {
	const char *text;
	size_t len;
};

static int is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* ---- faults ----------------------------------------------------------------------------------------- */

/* "FILE: line L, column C: WHAT, at "..."" */
static int fail(
	const struct reader *r, int code, const char *at, const char *what, struct stoup_error *err)
{
	const char *end = r->line.text + r->line.len;
	size_t left = (size_t)(end - at), len = left < NEAR_CAP ? left : NEAR_CAP;
	char near[NEAR_CAP + 1];

	for (size_t i = 0; i < len; i++)
		near[i] = (char)(at[i] >= 0x20 && at[i] < 0x7f ? at[i] : '?');
	near[len] = 0;
	return stoup_error_set(err, code, "%s: line %" PRIu64 ", column %zu: %s%s%s%s", r->file,
		r->line.number, (size_t)(at - r->line.text) + 1, what, len ? ", at \"" : "", near,
		len ? "\"" : "");
}

/* The line ends inside of what it has to have: -ENODATA. */
static int fail_short(const struct reader *r, const char *what, struct stoup_error *err)
{
	if (!r->line.ended)
		return stoup_error_set(err, -ENODATA,
			"%s: line %" PRIu64
			": the file ends inside of a message: is it cut? (--allow-partial takes the "
			"lines before)",
			r->file, r->line.number);
	return fail(r, -EBADMSG, r->line.text + r->line.len, what, err);
}

/* ---- the time in front ------------------------------------------------------------------------------- */

static struct part next_word(struct part *rest)
{
	struct part word = {.text = rest->text};

	while (word.len < rest->len && !is_blank(word.text[word.len]))
		word.len++;
	rest->text += word.len;
	rest->len -= word.len;
	while (rest->len > 0 && is_blank(*rest->text)) {
		rest->text++;
		rest->len--;
	}
	return word;
}

/* YYYY-MM-DD, behind which a time of the day may follow behind a blank. */
static int is_date(const struct part *word)
{
	return word->len == 10 && word->text[4] == '-' && word->text[7] == '-';
}

static int time_parse(const struct reader *r, const char *at, const char *text, size_t len,
	int64_t *ret, struct stoup_error *err)
{
	char what[160];
	const char *why = "";

	if (stoup_timestamp_parse(&r->options->csv->time_format, text, len, ret, &why) == 0)
		return 0;
	snprintf(what, sizeof(what), "\"%.*s\" %s", (int)(len < 40 ? len : 40), text, why);
	for (char *c = what; *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			*c = '?';
	return stoup_error_set(err, -EBADMSG, "%s: line %" PRIu64 ", column %zu: %s", r->file,
		r->line.number, (size_t)(at - r->line.text) + 1, what);
}

/* Take the time off the front of a line. */
static int time_take(
	const struct reader *r, struct part *rest, int64_t *ret_key, struct stoup_error *err)
{
	struct part word, behind = *rest;

	if (rest->len > 0 && (*rest->text == '{' || *rest->text == '['))
		return fail(r, -EBADMSG, rest->text,
			"no time before the message; is it inside? (--time PATH, such as data.T)",
			err);
	word = next_word(&behind);
	if (is_date(&word) && behind.len > 2 && behind.text[2] == ':') {
		next_word(&behind);
		word.len = (size_t)(behind.text - word.text);
		while (is_blank(word.text[word.len - 1]))
			word.len--;
	}
	if (behind.len == 0)
		return fail_short(r, "no message behind the time", err);
	*rest = behind;
	return time_parse(r, word.text, word.text, word.len, ret_key, err);
}

/* ---- the message --------------------------------------------------------------------------------------- */

static int encode(struct reader *r, const struct part *message, struct stoup_doc *ret,
	struct stoup_error *err)
{
	size_t want = STOUP_JSON_DOC_CAP(message->len);
	struct stoup_json_fault fault;
	int64_t len;

	if (want > r->doc_cap) {
		free(r->doc);
		r->doc = malloc(want * 2);
		r->doc_cap = r->doc ? want * 2 : 0;
		if (!r->doc)
			return stoup_error_set(err, -ENOMEM, "no memory for line %" PRIu64 " of %s",
				r->line.number, r->file);
	}
	len = stoup_json_to_doc(message->text, message->len, r->doc, &fault);
	if (len == -ENODATA)
		return fail_short(r,
			"the line ends inside of a value (JSON lines have a whole one each: jq -c "
			"makes them)",
			err);
	if (len < 0)
		return fail(r, (int)len, message->text + fault.off, fault.what, err);
	return stoup_doc_open(r->doc, (size_t)len, ret);
}

/* The time inside of a message. */
static int time_find(const struct reader *r, const struct part *message,
	const struct stoup_doc *doc, int64_t *ret_key, struct stoup_error *err)
{
	char room[STOUP_DOC_NUMBER_CAP];
	struct stoup_doc_number number;
	struct stoup_doc value;

	if (stoup_doc_seek(doc, r->time, &value) != 1)
		return fail(r, -EBADMSG, message->text, "the message has no value at --time", err);
	if (value.type == STOUP_DOC_STRING)
		return time_parse(r, message->text, (const char *)value.payload, value.payload_len,
			ret_key, err);
	stoup_doc_number(&value, &number);
	if (number.form == STOUP_DOC_FORM_NONE)
		return fail(r, -EBADMSG, message->text,
			"what is at --time is neither a number nor a string", err);
	if (number.form == STOUP_DOC_FORM_F64 && fabs(number.f64) < 9e18 &&
		(double)(int64_t)number.f64 == number.f64) {
		number.form = STOUP_DOC_FORM_I64; /* 1e12 is a time as well */
		number.i64 = (int64_t)number.f64;
	}
	stoup_doc_number_text(&number, room);
	return time_parse(r, message->text, number.text, number.text_len, ret_key, err);
}

/* ---- the series ------------------------------------------------------------------------------------------ */

static int series_open(struct reader *r, const char *name, uint32_t *ret, struct stoup_error *err)
{
	int64_t idx = r->sink->series(r->sink->arg, name, r->schema, err);

	if (idx < 0)
		return (int)idx;
	*ret = (uint32_t)idx;
	return 0;
}

/* NAME/VALUE/schema of a value at --series-path. 1: taken; 0: --symbols leaves it out. */
static int series_named(struct reader *r, const struct part *message, const struct stoup_doc *value,
	uint32_t *ret, struct stoup_error *err)
{
	char text[STOUP_SERIES_NAME_CAP], escaped[STOUP_SERIES_NAME_CAP],
		name[STOUP_SERIES_NAME_CAP];
	int n;

	if (value->payload_len == 0 || value->payload_len >= sizeof(text) ||
		memchr(value->payload, 0, value->payload_len))
		return fail(r, -EBADMSG, message->text,
			"what is at --series-path is no name: empty, too long, or with a NUL", err);
	memcpy(text, value->payload, value->payload_len);
	text[value->payload_len] = 0;
	if (!stoup_intake_symbol(r->options->filter, text))
		return 0;
	if (stoup_symbol_escape(text, escaped, sizeof(escaped)) < 0)
		n = (int)sizeof(name);
	else
		n = snprintf(name, sizeof(name), "%s/%s/%s", r->options->series, escaped,
			r->schema->name);
	if (n >= (int)sizeof(name))
		return fail(r, -EBADMSG, message->text,
			"the series' name with what is at --series-path is too long", err);
	n = series_open(r, name, ret, err);
	return n < 0 ? n : 1;
}

static struct cached *cached_of(struct reader *r, const struct stoup_doc *value)
{
	uint32_t hash = 2166136261u;

	for (uint32_t i = 0; i < value->payload_len && i < VALUE_CAP; i++)
		hash = (hash ^ value->payload[i]) * 16777619u;
	return &r->cache[hash % CACHE_CNT];
}

/* The one series, or NAME/schema for what has no value at --series-path: a snapshot among a stream's
 * messages, the answer to a subscription. 1, or 0 where --symbols is said. */
static int series_rest(
	struct reader *r, const struct part *message, uint32_t *ret, struct stoup_error *err)
{
	char name[STOUP_SERIES_NAME_CAP];
	int rc;

	if (r->series) {
		if (r->rest_cnt++ == 0)
			r->rest_line = r->line.number;
		if (r->options->filter && r->options->filter->symbols)
			return 0;
	}
	if (r->series_idx < 0) {
		if (snprintf(name, sizeof(name), "%s%s%s", r->options->series, r->series ? "/" : "",
			    r->series ? r->schema->name : "") >= (int)sizeof(name))
			return fail(
				r, -EINVAL, message->text, "the name of --series is too long", err);
		rc = series_open(r, name, ret, err);
		if (rc < 0)
			return rc;
		r->series_idx = *ret;
	}
	*ret = (uint32_t)r->series_idx;
	return 1;
}

static int series_by_path(struct reader *r, const struct part *message, const struct stoup_doc *doc,
	uint32_t *ret, struct stoup_error *err)
{
	struct stoup_doc value;
	struct cached *cached;
	int rc;

	if (stoup_doc_seek(doc, r->series, &value) != 1 || value.type != STOUP_DOC_STRING)
		return series_rest(r, message, ret, err);
	cached = cached_of(r, &value);
	if (cached->len == value.payload_len && value.payload_len > 0 &&
		memcmp(cached->value, value.payload, value.payload_len) == 0) {
		*ret = cached->series_idx;
		return cached->taken;
	}
	rc = series_named(r, message, &value, ret, err);
	if (rc < 0 || value.payload_len > VALUE_CAP)
		return rc;
	cached->len = value.payload_len;
	cached->series_idx = rc ? *ret : 0;
	cached->taken = rc;
	memcpy(cached->value, value.payload, value.payload_len);
	return rc;
}

/* 1: the message goes into series *ret; 0: it is left out. */
static int series_of(struct reader *r, const struct part *message, const struct stoup_doc *doc,
	uint32_t *ret, struct stoup_error *err)
{
	return r->series ? series_by_path(r, message, doc, ret, err)
	                 : series_rest(r, message, ret, err);
}

/* ---- lines ----------------------------------------------------------------------------------------------- */

static int line_put(struct reader *r, struct part message, struct stoup_error *err)
{
	struct stoup_where where = {
		.file = r->file, .line = r->line.number, .file_off = r->line.file_off};
	struct stoup_doc doc;
	uint32_t series_idx = 0;
	int64_t key = 0;
	int rc = 0;

	if (!r->time)
		rc = time_take(r, &message, &key, err);
	if (rc == 0)
		rc = encode(r, &message, &doc, err);
	if (rc == 0 && r->time)
		rc = time_find(r, &message, &doc, &key, err);
	if (rc == 0)
		rc = series_of(r, &message, &doc, &series_idx, err);
	if (rc <= 0)
		return rc;
	if (!r->options->as_text && message.len <= STOUP_MESSAGE_LEN_CAP &&
		doc.tag_len + doc.payload_len > STOUP_MESSAGE_LEN_CAP)
		return stoup_error_set(err, -EMSGSIZE,
			"%s: line %" PRIu64
			": a message of %zu bytes, which is a document of %u; at most %u are stored: "
			"--as text stores the message as it is",
			r->file, r->line.number, message.len, doc.tag_len + doc.payload_len,
			STOUP_MESSAGE_LEN_CAP);
	if (r->options->as_text)
		return r->sink->message(r->sink->arg, series_idx, key, message.text,
			(uint32_t)message.len, &where, err);
	return r->sink->message(
		r->sink->arg, series_idx, key, r->doc, doc.tag_len + doc.payload_len, &where, err);
}

/* A line without the blanks around what it has. */
static struct part trimmed(const struct stoup_line *line)
{
	struct part part = {.text = line->text, .len = line->len};

	while (part.len > 0 && is_blank(*part.text)) {
		part.text++;
		part.len--;
	}
	while (part.len > 0 &&
		(is_blank(part.text[part.len - 1]) || part.text[part.len - 1] == '\r'))
		part.len--;
	return part;
}

static int lines_put(struct reader *r, struct stoup_error *err)
{
	int rc;

	while ((rc = stoup_lines_next(&r->lines, &r->line, err)) > 0) {
		struct part message = trimmed(&r->line);

		if (message.len == 0)
			continue;
		rc = line_put(r, message, err);
		if (rc == -ENODATA && r->options->allow_partial) {
			stoup_sink_note(r->sink,
				"%s: line %" PRIu64 " is cut by the end of the file: left out",
				r->file, r->line.number);
			return 0;
		}
		if (rc < 0)
			return rc;
	}
	if (rc != -ENODATA || !r->options->allow_partial)
		return rc;
	stoup_sink_note(
		r->sink, "%s: the file is cut behind line %" PRIu64, r->file, r->lines.number);
	return 0;
}

/* What the user should know of the messages without a value at --series-path. */
static void rest_note(const struct reader *r)
{
	int left_out = r->options->filter && r->options->filter->symbols;

	stoup_sink_note(r->sink,
		"%s: messages without a string at --series-path (%" PRIu64
		", the first in line %" PRIu64 "): %s%s%s%s",
		r->file, r->rest_cnt, r->rest_line, left_out ? "left out" : "in ",
		left_out ? "" : r->options->series, left_out ? "" : "/",
		left_out ? "" : r->schema->name);
}

/* ---- the file ---------------------------------------------------------------------------------------------- */

static int options_check(const struct reader *r, struct stoup_error *err)
{
	const struct stoup_csv_options *csv = r->options->csv;
	struct stoup_csv_options unset;

	stoup_csv_options_init(&unset);
	if (csv->schema || csv->columns || csv->map || csv->interval_ns != unset.interval_ns ||
		csv->scale != unset.scale || csv->header != unset.header ||
		csv->delimiter != unset.delimiter)
		return stoup_error_set(err, -EINVAL,
			"%s: JSON lines have --series, --series-path, --as, --time, --time-format and "
			"--time-zone; columns are for CSV",
			r->file);
	if (!r->options->series)
		return stoup_error_set(err, -EINVAL,
			"%s: JSON lines need the name of their series (--series NAME; with "
			"--series-path PATH its first part); of a directory --include '*.jsonl*' takes them "
			"alone, --exclude all others",
			r->file);
	if (r->options->filter && r->options->filter->symbols && !r->options->series_path)
		return stoup_error_set(err, -EINVAL,
			"%s: --symbols chooses JSON lines by what is at --series-path PATH",
			r->file);
	return 0;
}

static int path_make(
	const char *text, const char *option, struct stoup_doc_path **ret, struct stoup_error *err)
{
	int rc = text ? stoup_doc_path_create(text, ret, err) : 0;

	if (rc < 0)
		stoup_error_prefix(err, "--%s", option);
	return rc;
}

int stoup_ingest_jsonl(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_jsonl_options *options, struct stoup_error *err)
{
	struct reader r = {.sink = sink,
		.options = options,
		.file = stoup_input_name(input),
		.schema = stoup_schema_by_name(options->as_text ? "json" : "bipf"),
		.series_idx = -1};
	int rc = options_check(&r, err);

	if (rc == 0)
		rc = path_make(options->csv->time, "time", &r.time, err);
	if (rc == 0)
		rc = path_make(options->series_path, "series-path", &r.series, err);
	if (rc == 0 && r.series && !(r.cache = calloc(CACHE_CNT, sizeof(*r.cache))))
		rc = stoup_error_set(err, -ENOMEM, "no memory to read %s", r.file);
	if (rc == 0)
		rc = stoup_lines_init(&r.lines, input, err);
	if (rc == 0)
		rc = lines_put(&r, err);
	if (rc == 0 && r.rest_cnt > 0)
		rest_note(&r);
	stoup_lines_fini(&r.lines);
	free(r.cache);
	free(r.doc);
	stoup_doc_path_destroy(r.series);
	stoup_doc_path_destroy(r.time);
	return rc;
}

/* ---- options ------------------------------------------------------------------------------------------------ */

int stoup_jsonl_is(const uint8_t *bytes, size_t len)
{
	static const char in_times[] = "0123456789-:.TZ+ \t";
	size_t at = 0, front = 0;

	if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
		at = 3;
	while (at < len && (bytes[at] == '\n' || bytes[at] == '\r'))
		at++;
	while (at < len && front < 48 && bytes[at] && strchr(in_times, bytes[at])) {
		at++;
		front++;
	}
	return at < len && (bytes[at] == '{' || bytes[at] == '[') &&
	       (front == 0 || is_blank((char)bytes[at - 1]));
}

int stoup_jsonl_option(struct stoup_jsonl_options *options, const char *name, const char *value,
	struct stoup_error *err)
{
	if (strcmp(name, "series-path") == 0) {
		options->series_path = value;
		return 0;
	}
	if (strcmp(name, "as") != 0)
		return -ENOENT;
	options->as_text = strcmp(value, "text") == 0;
	if (options->as_text || strcmp(value, "document") == 0)
		return 0;
	return stoup_error_set(err, -EINVAL, "--as %.40s: document or text", value);
}

const char *stoup_jsonl_usage(void)
{
	return "JSON lines: each TIME MESSAGE, or a message with its time inside. --time-format and\n"
	       "--time-zone as of CSV, and\n"
	       "  --series NAME       the series; required\n"
	       "  --time PATH         the time is in the message, such as data.T or data.b[0]\n"
	       "  --series-path PATH  a series for each value there: NAME/VALUE/bipf (json);\n"
	       "                      --symbols chooses by VALUE\n"
	       "  --as document|text  documents that are read in place (default; schema bipf), or the\n"
	       "                      texts as they are (schema json)\n"
	       "  --allow-partial     of a file that is cut at its end take the whole lines\n";
}
