/* SPDX-License-Identifier: Apache-2.0 */
/* csv_route.h - from the symbol of a row to the series it belongs to.
 *
 *      exchange, symbol of the row --same as before?--> slot
 *                                  \--look up, or make: EXCHANGE/SYMBOL/kind--> slot
 *
 * Slots are numbered from 0 in the order of their first rows. A row whose symbol is that of the row before
 * costs two comparisons of texts.
 *
 * Concurrency: one route, one thread; each table has its own.
 */
#ifndef STOUP_PRODUCER_CSV_ROUTE_H
#define STOUP_PRODUCER_CSV_ROUTE_H

#include "producer/csv_plan.h"

struct stoup_csv_route;

int stoup_csv_route_create(
	const struct stoup_csv_plan *plan, struct stoup_csv_route **ret, struct stoup_error *err);

/* The series of a row: 1, and its name (valid as long as the route) and slot; 0: its symbol is not asked
 * for; -EINVAL, -EBADMSG with text ("line N..."), -ENOMEM. */
int stoup_csv_route_row(struct stoup_csv_route *route, const struct stoup_csv_row *row,
	const char **ret_series, uint32_t *ret_slot, struct stoup_error *err);

/* NULL is allowed. */
void stoup_csv_route_destroy(struct stoup_csv_route *route);

#endif
