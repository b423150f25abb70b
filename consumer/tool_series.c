/* SPDX-License-Identifier: Apache-2.0 */
/* tool_series.c - see tool_series.h. */
#include "consumer/tool_series.h"
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct list {
	struct stoup_series *series;
	size_t cnt;
};

static int has(const struct list *list, const struct stoup_series *series)
{
	for (size_t i = 0; i < list->cnt; i++)
		if (list->series[i].schema == series->schema &&
			strcmp(list->series[i].name, series->name) == 0)
			return 1;
	return 0;
}

static int add(struct list *list, const struct stoup_series *series, struct stoup_error *err)
{
	struct stoup_series *all;

	if (has(list, series))
		return 0;
	all = reallocarray(list->series, list->cnt + 1, sizeof(*all));
	if (!all)
		return stoup_error_set(err, -ENOMEM, "no memory for %zu series", list->cnt + 1);
	list->series = all;
	all[list->cnt++] = *series;
	return 0;
}

/* All series that a pattern matches, by name. */
static int add_matching(
	struct list *list, struct stoup *st, const char *pattern, struct stoup_error *err)
{
	int64_t all = stoup_series_cnt(st);
	int rc = all < 0 ? stoup_error_set(err, (int)all, "the series can not be listed") : 0;
	int any = 0;

	for (uint64_t i = 0; rc == 0 && i < (uint64_t)all; i++) {
		struct stoup_series series;

		if (stoup_series_at(st, i, &series) < 0 ||
			fnmatch(pattern, series.name, FNM_NOESCAPE) != 0)
			continue;
		any = 1;
		rc = add(list, &series, err);
	}
	if (rc == 0 && !any)
		rc = stoup_error_set(err, -ENOENT, "no series matches '%.150s'", pattern);
	return rc;
}

int stoup_tool_series(struct stoup *st, char *const *names, size_t name_cnt,
	struct stoup_series **ret, size_t *ret_cnt, int *ret_named, struct stoup_error *err)
{
	struct list list = {0};
	int rc = 0, any_pattern = 0;

	for (size_t i = 0; i < name_cnt && rc == 0; i++) {
		struct stoup_series series;

		rc = stoup_series_find(st, names[i], &series, err);
		if (rc == 0)
			rc = add(&list, &series, err);
		else if (rc == -ENOENT && strpbrk(names[i], "*?[")) {
			any_pattern = 1;
			rc = add_matching(&list, st, names[i], err);
		}
	}
	*ret = list.series;
	*ret_cnt = list.cnt;
	*ret_named = any_pattern || list.cnt > 1;
	return rc;
}
