/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_metrics.h - the parts of /metrics: each writes its families, all pools of a look in each. */
#ifndef STOUP_CONSUMER_EXPORTER_METRICS_H
#define STOUP_CONSUMER_EXPORTER_METRICS_H

#include "consumer/exporter.h"
#include "consumer/exporter_text.h"

/* The counters of shm/counters.h, by their place there: what an older daemon does not have is not shown. */
void stoup_metrics_counters(struct stoup_metrics *to, const struct stoup_exporter *exporter);
/* The histograms of shm/histogram.h: a bound at each power of two, cumulative. */
void stoup_metrics_histograms(struct stoup_metrics *to, const struct stoup_exporter *exporter);
/* Each consumer; nothing with --no-consumers. */
void stoup_metrics_consumers(struct stoup_metrics *to, const struct stoup_exporter *exporter);
/* What is leased of each series, the most leased bytes first, the rest as "other". */
void stoup_metrics_series(struct stoup_metrics *to, const struct stoup_exporter *exporter);

#endif
