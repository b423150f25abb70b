/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite_report.h - what a rewrite did, so that its user sees that nothing was lost.
 *
 *      series                   records  first   last   sum of price  sum of size
 *      X/AAA/mbo      before      30000  ...     ...    ...           ...
 *                     after       30000  ...     ...    ...           ...
 *
 * Concurrency: plain functions; they print to stdout.
 */
#ifndef STOUP_PRODUCER_REWRITE_REPORT_H
#define STOUP_PRODUCER_REWRITE_REPORT_H

#include "producer/rewrite.h"

#define STOUP_REPORT_SERIES_CAP 50u /* rows of series; the rest is counted */

/* The series of a rewrite that ran: as they were read, and as they were read back. */
void stoup_rewrite_report_series(const struct stoup_rewrite *rewrite);

/* Volumes that were written, bytes before and after. */
void stoup_rewrite_report_volumes(const struct stoup_rewrite *rewrite);

/* What a dry run would write: about how much, and what is free. */
void stoup_rewrite_report_need(const struct stoup_rewrite *rewrite);

/* How many volumes the chosen ones would become. */
uint32_t stoup_rewrite_planned_cnt(const struct stoup_rewrite *rewrite);

#endif
