/* SPDX-License-Identifier: Apache-2.0 */
/* sum.c - price x size of a series: sum POOL SERIES */
#include <stdio.h>
#include <stoup.h>

static int fail(const struct stoup_error *err)
{
	fprintf(stderr, "sum: %d: %s\n", -err->code, err->text);
	return 1;
}

int main(int argc, char **argv)
{
	struct stoup *st;
	struct stoup_cursor *cur;
	struct stoup_series series;
	struct stoup_span span;
	struct stoup_error err;
	int64_t sum = 0;
	int rc;

	if (argc != 3)
		return 2;
	if (stoup_attach(argv[1], NULL, &st, &err) < 0 ||
		stoup_series_find(st, argv[2], &series, &err) < 0 ||
		stoup_schema_require(&series, "mbo", sizeof(struct stoup_mbo), &err) < 0 ||
		stoup_scan(st, &series, NULL, &cur, &err) < 0)
		return fail(&err);
	while ((rc = stoup_next(cur, &span)) > 0) {
		const struct stoup_mbo *mbo = span.base;

		for (uint64_t i = 0; i < span.record_cnt; i++)
			sum += mbo[i].price * mbo[i].size;
	}
	if (rc < 0)
		return fail(stoup_cursor_error(cur));
	stoup_cursor_close(cur);
	stoup_detach(st);
	printf("%lld\n", (long long)sum);
	return 0;
}
