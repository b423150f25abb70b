/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_jsonl.h - JSON lines, as they are captured from exchanges, to messages.
 *
 *      1723161255088176367 {"stream":"btcusdt@trade","data":{"T":1723161256322,"p":"61800.30"}}
 *      ^key                ^--json_doc--> document (schema bipf); or the text as it is (schema json)
 *
 *      {"stream":...}      with --time data.T the key is in the message
 *
 *      --series NAME                            all lines into NAME
 *      --series NAME --series-path stream       each into NAME/VALUE/bipf (json), VALUE as of the message;
 *                                               those without one into NAME/bipf (json), which is told
 *
 * Invariant: each line that is not empty is one message, or the file is refused with line and column. With
 * --as text the message is stored byte for byte, having been checked as JSON.
 *
 * Concurrency: one call, one thread.
 * Limits: STOUP_LINE_LEN_CAP bytes a line (jsonl_lines.h), STOUP_MESSAGE_LEN_CAP a message.
 */
#ifndef STOUP_PRODUCER_INGEST_JSONL_H
#define STOUP_PRODUCER_INGEST_JSONL_H

#include "producer/ingest_csv.h"
#include "producer/input.h"
#include "producer/sink.h"

struct stoup_intake;

/* Texts are the caller's and must outlive the struct. */
struct stoup_jsonl_options {
	int as_text;             /* the texts themselves, schema json */
	const char *series_path; /* a series for each value there; NULL: one series */
	/* What it shares with others: set by the caller before the call. */
	const char *series;
	const struct stoup_csv_options
		*csv; /* time, time-format and time-zone; no other may be set */
	const struct stoup_intake *filter; /* symbols: of values at series_path */
	int allow_partial;
};

/* Do these first bytes look like JSON lines, with or without a time in front? */
int stoup_jsonl_is(const uint8_t *bytes, size_t len);

/* Set "as" or "series-path". 0; -ENOENT for another name, -EINVAL with text. */
int stoup_jsonl_option(struct stoup_jsonl_options *options, const char *name, const char *value,
	struct stoup_error *err);

/* Help text of these options. Static. */
const char *stoup_jsonl_usage(void);

/* Put the lines of an open input, which stays the caller's, into `sink`. 0, or a negative errno with a
 * text that names file, line and column: -EINVAL for options, -EBADMSG for what is no JSON or no time,
 * -ENODATA for a cut file, and what input and sink give. Blocks. */
int stoup_ingest_jsonl(const struct stoup_sink *sink, struct stoup_input *input,
	const struct stoup_jsonl_options *options, struct stoup_error *err);

#endif
