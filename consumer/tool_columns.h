/* SPDX-License-Identifier: Apache-2.0 */
/* tool_columns.h - the columns of several series of records in one table.
 *
 *      trades   ts_recv price size side        -->   ts_recv price size side open close
 *      bar      ts_recv open close                   the union, in the order in which they first come
 *
 * or those that were chosen, in the order in which they were said.
 *
 * Concurrency: one thread.
 */
#ifndef STOUP_CONSUMER_TOOL_COLUMNS_H
#define STOUP_CONSUMER_TOOL_COLUMNS_H

#include <stddef.h>
#include <stdint.h>
#include "consumer/stoup.h"
#include "consumer/tool_query.h"

#define STOUP_SELECT_CAP 256u /* columns that can be said */

/* Columns said on the command line; the texts are the caller's. */
struct stoup_select {
	char *names[STOUP_SELECT_CAP];
	uint32_t cnt;
};

/* Add "price,size", to those said before; the text is cut into its names. 0, or -EINVAL with text: nothing said,
 * said twice, too many. */
int stoup_select_add(struct stoup_select *select, char *text, struct stoup_error *err);

struct stoup_columns {
	const char **names; /* they live as long as the schemas and what was said */
	uint32_t cnt;
};

/* The union over the sources that are no messages, or what was said. 0; -EINVAL with text: no source has the column
 * (near ones are named), or a source that has no columns is there; -ENOMEM. */
int stoup_columns_make(const struct stoup_source *sources, size_t cnt,
	const struct stoup_select *select, struct stoup_columns *ret, struct stoup_error *err);

/* A field that is shown, by its name; NULL where there is none. */
const struct stoup_field *stoup_columns_field(const struct stoup_schema *schema, const char *name);

void stoup_columns_fini(struct stoup_columns *columns);

/* A schema of the chosen fields alone, one behind the other, for arrays: free() it. NULL: no memory. */
struct stoup_schema *stoup_columns_pack(
	const struct stoup_schema *schema, const struct stoup_select *select);

#endif
