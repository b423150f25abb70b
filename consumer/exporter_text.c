/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_text.c - see exporter_text.h. */
#include "consumer/exporter_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "shm/json.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static const char *type_name(enum stoup_metric_type type)
{
	return type == STOUP_METRIC_COUNTER     ? "counter"
	       : type == STOUP_METRIC_HISTOGRAM ? "histogram"
	                                        : "gauge";
}

/* Behind the family's name in a counter's samples, and in 0.0.4 also where it is declared. */
static const char *total(const struct stoup_metric *metric, int wanted)
{
	return wanted && metric->type == STOUP_METRIC_COUNTER ? "_total" : "";
}

static void escaped(FILE *out, const char *text, int quotes)
{
	size_t left = strlen(text), len;

	for (; left > 0; text += len, left -= len) {
		len = stoup_utf8_len((const unsigned char *)text, left);
		if (len == 0) {
			len = 1;
			fputs(REPLACEMENT, out);
		} else if (*text == '\n') {
			fputs("\\n", out);
		} else if (*text == '\\' || (quotes && *text == '"')) {
			fprintf(out, "\\%c", *text);
		} else {
			fwrite(text, 1, len, out);
		}
	}
}

char *stoup_label_utf8(const char *text)
{
	size_t left = strlen(text), len, at = 0;
	char *ret = malloc(3 * left + 1);

	if (!ret)
		return NULL;
	for (; left > 0; text += len, left -= len) {
		len = stoup_utf8_len((const unsigned char *)text, left);
		memcpy(ret + at, len ? text : REPLACEMENT, len ? len : 3);
		at += len ? len : 3;
		len = len ? len : 1;
	}
	ret[at] = 0;
	return ret;
}

void stoup_metric_head(const struct stoup_metrics *to, const struct stoup_metric *metric)
{
	const char *suffix = total(metric, !to->open);

	fprintf(to->out, "# HELP %s%s ", metric->name, suffix);
	escaped(to->out, metric->help, to->open);
	fprintf(to->out, "\n# TYPE %s%s %s\n", metric->name, suffix, type_name(metric->type));
	if (to->open && metric->unit[0])
		fprintf(to->out, "# UNIT %s %s\n", metric->name, metric->unit);
}

void stoup_sample_begin(
	struct stoup_metrics *to, const struct stoup_metric *metric, const char *suffix)
{
	fprintf(to->out, "%s%s", metric->name, suffix ? suffix : total(metric, 1));
	to->label_cnt = 0;
}

void stoup_sample_label(struct stoup_metrics *to, const char *name, const char *value)
{
	fprintf(to->out, "%s%s=\"", to->label_cnt++ ? "," : "{", name);
	escaped(to->out, value, 1);
	fputc('"', to->out);
}

void stoup_sample_label_number(struct stoup_metrics *to, const char *name, uint64_t value)
{
	fprintf(to->out, "%s%s=\"%" PRIu64 "\"", to->label_cnt++ ? "," : "{", name, value);
}

void stoup_sample_number(struct stoup_metrics *to, uint64_t value)
{
	fprintf(to->out, "%s %" PRIu64 "\n", to->label_cnt ? "}" : "", value);
}

void stoup_sample_time(struct stoup_metrics *to, uint64_t ns)
{
	fprintf(to->out, "%s %" PRIu64 ".%09" PRIu64 "\n", to->label_cnt ? "}" : "",
		ns / 1000000000, ns % 1000000000);
}

void stoup_sample_value(struct stoup_metrics *to, const struct stoup_metric *metric, uint64_t value)
{
	if (strcmp(metric->unit, "seconds") == 0)
		stoup_sample_time(to, value);
	else
		stoup_sample_number(to, value);
}

void stoup_metrics_end(const struct stoup_metrics *to)
{
	if (to->open)
		fputs("# EOF\n", to->out);
}
