/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_dbn.c - read a DBN stream in large chunks and hand its records on.
 *
 *      buf  [ done | rest of this chunk | a record's first bytes ]  --slide to the front, read on
 *                  ^ pos                                         ^ end
 */
#include "producer/ingest_dbn.h"
#include "producer/ingest_dbn_route.h"
#include "shm/format.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_LEN (1024u * 1024u) /* holds any table row and any record many times over */

_Static_assert(CHUNK_LEN > STOUP_DBN_FEED_LEN, "the longest table row fits the chunk");

struct reader {
	const struct stoup_sink *sink;
	struct stoup_input *input;
	const struct stoup_dbn_options *options;
	struct stoup_dbn_route *route;
	uint8_t *buf;
	size_t pos;
	size_t end;
	uint64_t pos_off; /* offset of buf[pos] in the stream */
	int is_eof;
	uint64_t file_off; /* where this DBN file begins in the stream */
	uint32_t file_cnt;
	int is_fragment;
	uint64_t record_cnt;
	uint64_t filtered_cnt; /* of those: left out by the filter */
	uint64_t skipped_cnt;
	uint64_t skipped_off;  /* of the first one */
	uint64_t skipped[256]; /* by type */
};

static const char *name_of(const struct reader *reader)
{
	return stoup_input_name(reader->input);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void took(struct reader *reader, size_t len)
{
	reader->pos += len;
	reader->pos_off += len;
}

/* Slide what is left to the front and read behind it. 0, also at the end (is_eof), or an error. */
static int refill(struct reader *reader, struct stoup_error *err)
{
	memmove(reader->buf, reader->buf + reader->pos, reader->end - reader->pos);
	reader->end -= reader->pos;
	reader->pos = 0;
	int64_t got = stoup_input_read(
		reader->input, reader->buf + reader->end, CHUNK_LEN - reader->end, err);
	if (got < 0)
		return (int)got;
	reader->end += (size_t)got;
	reader->is_eof = got == 0;
	return 0;
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* Does what comes next begin like a DBN file? */
static int is_prelude(const struct reader *reader)
{
	const uint8_t *at = reader->buf + reader->pos;
	return reader->end - reader->pos >= 3 && memcmp(at, "DBN", 3) == 0;
}

/* A prelude, or (1) a fragment, which has none. */
static int read_prelude(
	struct reader *reader, struct stoup_dbn_prelude *ret, struct stoup_error *err)
{
	int rc = reader->end - reader->pos < STOUP_DBN_HEADER_LEN ? refill(reader, err) : 0;
	const uint8_t *at = reader->buf + reader->pos;
	size_t len = reader->end - reader->pos;
	if (rc < 0)
		return rc;
	if (len == 0)
		return stoup_error_set(
			err, -ENODATA, "%s: nothing in it but its packing", name_of(reader));
	if (stoup_dbn_is_fragment(at, len))
		return 1;
	rc = stoup_dbn_prelude(at, len, ret, err);
	if (rc < 0) {
		stoup_error_prefix(err, "%s", name_of(reader));
		if (reader->file_off > 0)
			stoup_error_prefix(err,
				"the DBN file that begins at offset %llu of the stream",
				(unsigned long long)reader->file_off);
		return rc;
	}
	took(reader, STOUP_DBN_PRELUDE_LEN);
	return 0;
}

static int feed_parser(
	struct reader *reader, struct stoup_dbn_parser *parser, struct stoup_error *err)
{
	while (stoup_dbn_parser_left(parser) > 0) {
		int64_t got = stoup_dbn_parser_feed(
			parser, reader->buf + reader->pos, reader->end - reader->pos, err);
		if (got < 0) {
			stoup_error_prefix(err, "%s", name_of(reader));
			return (int)got;
		}
		took(reader, (size_t)got);
		if (stoup_dbn_parser_left(parser) == 0)
			break;
		int rc = refill(reader, err);
		if (rc < 0)
			return rc;
		if (reader->is_eof)
			return stoup_error_set(err, -ENODATA,
				"%s ends at offset %llu inside the metadata, of which %llu bytes "
				"are missing: "
				"the file is cut short",
				name_of(reader),
				(unsigned long long)(reader->pos_off + reader->end - reader->pos),
				(unsigned long long)(stoup_dbn_parser_left(parser) - reader->end));
	}
	return 0;
}

/* What the options say of the file must be what it says itself. */
static int check_options(
	const struct reader *reader, const struct stoup_dbn_meta *meta, struct stoup_error *err)
{
	const struct stoup_dbn_options *options = reader->options;
	if (options->version && options->version != meta->version)
		return stoup_error_set(err, -EINVAL,
			"%s says itself that it is DBN version %u: --dbn-version %d is for records "
			"without metadata, leave it out",
			name_of(reader), meta->version, options->version);
	if (options->dataset && *meta->dataset && strcmp(options->dataset, meta->dataset) != 0)
		return stoup_error_set(err, -EINVAL,
			"%s says itself that its dataset is %s: --dataset %.60s is for records without "
			"metadata, leave it out",
			name_of(reader), meta->dataset, options->dataset);
	return 0;
}

static int begin_fragment(struct reader *reader, struct stoup_error *err)
{
	struct stoup_dbn_meta meta = {.schema = STOUP_DBN_SCHEMA_MIXED, .end_ns = UINT64_MAX};
	if (!reader->options->dataset && !reader->options->series)
		return stoup_error_set(err, -EINVAL,
			"%s: a fragment, records without the metadata that name dataset and symbols: "
			"say --dataset NAME (series are then named by symbol mapping records, else by "
			"the instrument's number), or --series NAME",
			name_of(reader));
	reader->is_fragment = 1;
	return stoup_dbn_route_create(reader->sink, reader->options, &meta, &reader->route, err);
}

static int read_metadata(struct reader *reader, struct stoup_error *err)
{
	struct stoup_dbn_prelude prelude;
	struct stoup_dbn_meta meta;
	reader->file_off = reader->pos_off;
	int rc = read_prelude(reader, &prelude, err);
	if (rc != 0)
		return rc < 0 ? rc : begin_fragment(reader, err);
	struct stoup_dbn_parser *parser = stoup_dbn_parser_create(&prelude);
	if (!parser)
		return stoup_error_set(
			err, -ENOMEM, "no memory for the metadata of %s", name_of(reader));
	rc = feed_parser(reader, parser, err);
	if (rc < 0)
		goto out_destroy;
	rc = stoup_dbn_parser_take(parser, &meta, err);
	if (rc < 0) {
		stoup_error_prefix(err, "%s", name_of(reader));
		goto out_destroy;
	}
	rc = check_options(reader, &meta, err);
	if (rc < 0)
		stoup_dbn_meta_fini(&meta);
	else
		rc = stoup_dbn_route_create(
			reader->sink, reader->options, &meta, &reader->route, err);
out_destroy:
	stoup_dbn_parser_destroy(parser);
	return rc;
}

/* ---- records --------------------------------------------------------------------------------- */

static int refuse_length(const struct reader *reader, const struct stoup_dbn_record *record,
	const struct stoup_dbn_kind *kind, struct stoup_error *err)
{
	return stoup_error_set(err, -EBADMSG,
		"%s: the record at offset %llu is %u bytes long, but a %s record has %u: the file "
		"is "
		"damaged",
		name_of(reader), (unsigned long long)reader->pos_off, record->len,
		kind->schema->name, kind->len);
}

static int skip_unknown(struct reader *reader, const struct stoup_dbn_record *record)
{
	if (reader->skipped_cnt++ == 0)
		reader->skipped_off = reader->pos_off;
	reader->skipped[record->rtype]++;
	return 0;
}

/* A key that can not be is not out of range: the sink refuses it. */
static int is_out_of_range(const struct stoup_intake *filter, int64_t key)
{
	return filter && key > 0 && !stoup_intake_key(filter, key);
}

static int put_record(
	struct reader *reader, const struct stoup_dbn_record *record, struct stoup_error *err)
{
	const struct stoup_dbn_kind *kind;
	struct stoup_dbn_targets targets;
	struct stoup_where where = {name_of(reader), 0, reader->pos_off};
	uint64_t key;
	int rc = stoup_dbn_route_kind(reader->route, record, &kind, err);
	if (rc < 0)
		goto out_name;
	if (!kind->schema)
		return skip_unknown(reader, record);
	if (record->len != kind->len)
		return refuse_length(reader, record, kind, err);
	memcpy(&key, record->bytes + kind->key_off, sizeof(key));
	if (record->rtype == STOUP_DBN_RTYPE_SYMBOL_MAPPING)
		rc = stoup_dbn_route_learn(reader->route, record, err);
	reader->record_cnt++;
	if (rc == 0 && is_out_of_range(reader->options->filter, (int64_t)key)) {
		reader->filtered_cnt++;
		return 0;
	}
	if (rc == 0)
		rc = stoup_dbn_route_find(reader->route, record, key, &targets, err);
	if (rc < 0)
		goto out_name;
	reader->filtered_cnt += targets.cnt == 0;
	for (uint32_t i = 0; i < targets.cnt; i++) {
		rc = reader->sink->put(reader->sink->arg, targets.series[i], (int64_t)key,
			record->bytes, &where, err);
		if (rc < 0)
			return rc;
	}
	return 0;
out_name:
	stoup_error_prefix(err, "%s: the record at offset %llu", where.file,
		(unsigned long long)where.file_off);
	return rc;
}

/* All whole records in the buffer. 0: more bytes are needed; 1: another DBN file begins. */
static int put_whole(struct reader *reader, struct stoup_error *err)
{
	struct stoup_dbn_record record;
	for (;;) {
		if (is_prelude(reader))
			return 1;
		int rc = stoup_dbn_record_next(
			reader->buf + reader->pos, reader->end - reader->pos, &record);
		if (rc == 0)
			return 0;
		if (rc < 0)
			return stoup_error_set(err, rc,
				"%s: the record at offset %llu claims %u bytes, fewer than its own "
				"header of "
				"%u: the file is damaged",
				name_of(reader), (unsigned long long)reader->pos_off, record.len,
				STOUP_DBN_HEADER_LEN);
		rc = put_record(reader, &record, err);
		if (rc < 0)
			return rc;
		took(reader, record.len);
	}
}

/* The stream is over: is a part of a record left? */
static int check_end(struct reader *reader, struct stoup_error *err)
{
	size_t have = reader->end - reader->pos;
	if (have == 0)
		return 0;
	unsigned len = reader->buf[reader->pos] * 4u;
	if (!reader->options->allow_partial)
		return stoup_error_set(err, -ENODATA,
			"%s: the record at offset %llu is cut short: %zu of its %u bytes are "
			"missing; "
			"--allow-partial imports what is before it",
			name_of(reader), (unsigned long long)reader->pos_off, len - have, len);
	stoup_sink_note(reader->sink,
		"%s: the record at offset %llu is cut short (%zu of its %u bytes): left out",
		name_of(reader), (unsigned long long)reader->pos_off, have, len);
	return 0;
}

/* With allow_partial a packed file that ends too early is read up to there. */
static int forgive(struct reader *reader, const struct stoup_error *why, struct stoup_error *err)
{
	if (why->code != -ENODATA)
		return stoup_error_set(err, why->code, "%s", why->text);
	if (!reader->options->allow_partial)
		return stoup_error_set(
			err, why->code, "%s; --allow-partial imports what is before it", why->text);
	stoup_sink_note(reader->sink, "%s; imported as far as it goes", why->text);
	reader->is_eof = 1;
	return 0;
}

/* To the end of the stream (0), or to where another DBN file begins (1). */
static int read_records(struct reader *reader, struct stoup_error *err)
{
	for (;;) {
		struct stoup_error why = {0};
		int rc = put_whole(reader, err);
		if (rc != 0)
			return rc;
		if (reader->is_eof)
			return check_end(reader, err);
		if (refill(reader, &why) < 0)
			rc = forgive(reader, &why, err);
		if (rc < 0)
			return rc;
	}
}

/* "3 records of unknown types skipped (2 of 0x42, 1 of 0x43; the first at offset 262)" */
static void tell_skipped(const struct reader *reader)
{
	char types[160] = "";
	size_t len = 0;
	for (unsigned i = 0; i < 256 && len < sizeof(types) - 32; i++) {
		if (reader->skipped[i] > 0)
			len += (size_t)snprintf(types + len, sizeof(types) - len,
				"%s%llu of 0x%02x", len ? ", " : "",
				(unsigned long long)reader->skipped[i], i);
	}
	stoup_sink_note(reader->sink,
		"%s: %llu record%s of unknown types skipped (%s; the first at offset %llu)",
		name_of(reader), (unsigned long long)reader->skipped_cnt,
		STOUP_PLURAL(reader->skipped_cnt), types, (unsigned long long)reader->skipped_off);
}

static void tell_fragment(const struct reader *reader)
{
	static const char *const versions[] = {
		"", "1", "2", "1 or 2", "3", "", "2 or 3", "1, 2 or 3, in which they are the same"};
	stoup_sink_note(reader->sink, "%s: records without metadata, read as DBN version %s",
		name_of(reader), versions[stoup_dbn_route_versions(reader->route) >> 1 & 7]);
}

static void tell(const struct reader *reader)
{
	uint32_t first_id;
	if (reader->is_fragment)
		tell_fragment(reader);
	uint64_t unmapped_cnt = stoup_dbn_route_unmapped(reader->route, &first_id);
	if (unmapped_cnt > 0 && !reader->options->series && !reader->options->one_stream)
		stoup_sink_note(reader->sink,
			"%s: %llu record%s of instruments without a symbol on their day (the first: "
			"%u) went "
			"to series named by the instrument's number",
			name_of(reader), (unsigned long long)unmapped_cnt,
			STOUP_PLURAL(unmapped_cnt), first_id);
	if (reader->skipped_cnt > 0)
		tell_skipped(reader);
	if (reader->filtered_cnt > 0)
		stoup_sink_note(reader->sink,
			"%s: %llu of %llu record%s left out by --symbols, --from or --to",
			name_of(reader), (unsigned long long)reader->filtered_cnt,
			(unsigned long long)reader->record_cnt, STOUP_PLURAL(reader->record_cnt));
	if (reader->record_cnt == 0)
		stoup_sink_note(reader->sink, "%s: holds no records to import", name_of(reader));
}

/* One DBN file of the stream, or a fragment. 1: another one follows. */
static int read_file(struct reader *reader, struct stoup_error *err)
{
	int rc;
	reader->is_fragment = 0;
	reader->record_cnt = reader->filtered_cnt = reader->skipped_cnt = 0;
	memset(reader->skipped, 0, sizeof(reader->skipped));
	rc = read_metadata(reader, err);
	if (rc == 0)
		rc = read_records(reader, err);
	if (rc >= 0)
		tell(reader);
	stoup_dbn_route_destroy(reader->route);
	reader->route = NULL;
	reader->file_cnt++;
	return rc;
}

/* ---- options --------------------------------------------------------------------------------- */

int stoup_dbn_option(struct stoup_dbn_options *options, const char *name, const char *value,
	struct stoup_error *err)
{
	if (strcmp(name, "dataset") == 0) {
		if (!*value)
			return stoup_error_set(err, -EINVAL, "--dataset: a name is wanted");
		options->dataset = value;
		return 0;
	}
	if (strcmp(name, "dbn-version") != 0)
		return -ENOENT;
	if (value[0] < '1' || value[0] > '0' + STOUP_DBN_VERSION_MAX || value[1])
		return stoup_error_set(err, -EINVAL, "--dbn-version %.20s: 1, 2 or 3", value);
	options->version = value[0] - '0';
	return 0;
}

/* ---- entry ----------------------------------------------------------------------------------- */

int stoup_ingest_dbn(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_dbn_options *options, struct stoup_error *err)
{
	struct reader reader = {.sink = sink, .input = input, .options = options};
	int rc;
	if (options->series && options->one_stream)
		return stoup_error_set(err, -EINVAL,
			"--series and --one-stream exclude each other: the former names the one "
			"series");
	reader.pos_off = stoup_input_stream_off(input);
	reader.buf = malloc(CHUNK_LEN);
	if (!reader.buf)
		return stoup_error_set(
			err, -ENOMEM, "no memory to read %s", stoup_input_name(input));
	do {
		rc = read_file(&reader, err);
	} while (rc > 0);
	if (rc == 0 && reader.file_cnt > 1)
		stoup_sink_note(sink, "%s: %u DBN files one after the other, all imported",
			stoup_input_name(input), reader.file_cnt);
	free(reader.buf);
	return rc;
}
