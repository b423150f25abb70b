/* SPDX-License-Identifier: Apache-2.0 */
/* intake.h - which records an ingest takes: symbols by pattern, keys by range.
 *
 *      --symbols 'ES*,NQ?4'  --from 2024-01-02  --to 2024-01-03T12:00Z      from <= key < to
 *
 * An importer asks for a symbol before it makes a series of it, so that what is left out costs nothing;
 * the range of keys is looked at by the import itself, and earlier where that is cheap.
 *
 * Concurrency: immutable while files are read; any thread may ask.
 */
#ifndef STOUP_PRODUCER_INTAKE_H
#define STOUP_PRODUCER_INTAKE_H

#include <stdint.h>
#include "shm/stoup_types.h"

struct stoup_intake {
	const char *symbols; /* globs with commas between them; NULL: all */
	int64_t from_ns;     /* first key; 0: no bound */
	int64_t to_ns;       /* behind the last key; 0: no bound */
};

/* Is a symbol, as the feed writes it, one of those asked for? A NULL filter asks for all. */
int stoup_intake_symbol(const struct stoup_intake *filter, const char *symbol);

/* Is a key inside the range? */
static inline int stoup_intake_key(const struct stoup_intake *filter, int64_t key)
{
	return key >= filter->from_ns && (filter->to_ns == 0 || key < filter->to_ns);
}

/* Does one of the patterns of a checked list match? */
int stoup_intake_match(const char *list, const char *name);

/* Is the value of --option a list of patterns? `what` they are of is told. 0, or -EINVAL with text. */
int stoup_intake_list_check(
	const char *option, const char *what, const char *value, struct stoup_error *err);

/* Set "symbols", "from" or "to". 0; -ENOENT for another name, -EINVAL with text. */
int stoup_intake_option(
	struct stoup_intake *filter, const char *name, const char *value, struct stoup_error *err);

#endif
