/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_text.h - metrics as text: OpenMetrics 1.0, and the format 0.0.4 that it grew out of.
 *
 *      family name   unit     type       OpenMetrics             0.0.4
 *      stoup_loads   -        counter    stoup_loads_total       the same, and TYPE and HELP name it so
 *      stoup_x       seconds  gauge      stoup_x_seconds, UNIT   the same without UNIT
 *
 * What goes in may be any bytes: labels are written as UTF-8 (U+FFFD for bytes that are none), with quotes, backslashes
 * and line ends escaped. Times are exact decimals of nanoseconds.
 */
#ifndef STOUP_CONSUMER_EXPORTER_TEXT_H
#define STOUP_CONSUMER_EXPORTER_TEXT_H

#include <stdint.h>
#include <stdio.h>

enum stoup_metric_type {
	STOUP_METRIC_GAUGE,
	STOUP_METRIC_COUNTER,
	STOUP_METRIC_HISTOGRAM
};

struct stoup_metric {
	const char *name; /* with its unit, without _total */
	const char *unit; /* "seconds", "bytes", or empty */
	enum stoup_metric_type type;
	const char *help; /* one sentence */
};

/* Where to, and which of the formats. */
struct stoup_metrics {
	FILE *out;
	int open;
	int label_cnt; /* of the sample that was begun */
};

/* HELP, TYPE and UNIT of a family; all of its samples follow. */
void stoup_metric_head(const struct stoup_metrics *to, const struct stoup_metric *metric);

/* A sample: begin, label..., and one of the values. `suffix`: "_bucket", "_sum", "_count" of histograms, else NULL. */
void stoup_sample_begin(
	struct stoup_metrics *to, const struct stoup_metric *metric, const char *suffix);
void stoup_sample_label(struct stoup_metrics *to, const char *name, const char *value);
void stoup_sample_label_number(struct stoup_metrics *to, const char *name, uint64_t value);
void stoup_sample_number(struct stoup_metrics *to, uint64_t value);
/* Nanoseconds as seconds. */
void stoup_sample_time(struct stoup_metrics *to, uint64_t ns);
/* The value by the metric's unit: seconds are given in nanoseconds. */
void stoup_sample_value(
	struct stoup_metrics *to, const struct stoup_metric *metric, uint64_t value);

/* The end of all. */
void stoup_metrics_end(const struct stoup_metrics *to);

/* A copy of the text in UTF-8, U+FFFD for bytes that are none; the caller frees it. NULL: no memory. */
char *stoup_label_utf8(const char *text);

#endif
