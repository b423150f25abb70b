/* SPDX-License-Identifier: Apache-2.0 */
/* demo_shared.c - a worker over libstoup: walks every series of a pool in place.
 *
 *      stoup-demo-shared POOL
 *
 * Does what demo_private.c does with its own copy, on the one copy of the pool; it stays attached
 * until its stdin ends, so that its memory can be measured.
 */
#include <stdlib.h>
#include "bench/demo_sum.h"
#include "consumer/stoup.h"

_Noreturn static void die(const char *what, const struct stoup_error *err)
{
	fprintf(stderr, "stoup-demo-shared: %s: %s\n", what, err->text);
	exit(1);
}

static uint32_t offset_of(const struct stoup_schema *schema, const char *name, const char *other)
{
	const struct stoup_field *field = stoup_schema_field(schema, name);

	if (!field && other)
		field = stoup_schema_field(schema, other);
	return field ? field->off : DEMO_NO_FIELD;
}

/* Price and size of a schema: bars have a close and a volume. */
static struct demo_layout layout_of(const struct stoup_schema *schema)
{
	struct demo_layout layout = {
		.price_off = offset_of(schema, "price", "close"),
		.size_off = offset_of(schema, "size", "volume"),
	};
	const struct stoup_field *size = stoup_schema_field(schema, "size");

	if (!size)
		size = stoup_schema_field(schema, "volume");
	layout.size_len = size && stoup_type_len(size->type) == 8 ? 8 : 4;
	return layout;
}

static void add_span(
	struct demo_sum *sum, const struct stoup_span *span, const struct demo_layout *layout)
{
	struct demo_sum local = *sum;
	const uint8_t *record = span->base;

	if (demo_is_mbo(span->stride, layout)) {
		for (uint64_t i = 0; i < span->record_cnt; i++, record += 56)
			demo_add_mbo(&local, record);
	} else {
		for (uint64_t i = 0; i < span->record_cnt; i++, record += span->stride)
			demo_add(&local, record, span->stride, layout->price_off, layout->size_off,
				layout->size_len);
	}
	*sum = local;
}

static void walk(struct stoup *st, const struct stoup_series *series, struct demo_sum *sum)
{
	struct demo_layout layout = layout_of(series->schema);
	struct stoup_error err = {0};
	struct stoup_cursor *cur;
	struct stoup_span span;
	int rc;

	if (stoup_scan(st, series, NULL, &cur, &err) < 0)
		die(series->name, &err);
	while ((rc = stoup_next(cur, &span)) > 0)
		add_span(sum, &span, &layout);
	if (rc < 0)
		die(series->name, stoup_cursor_error(cur));
	stoup_cursor_close(cur);
}

int main(int argc, char **argv)
{
	struct stoup_error err = {0};
	struct demo_sum sum = {0};
	struct stoup_series series;
	struct stoup *st;
	int status;

	if (argc != 2) {
		fprintf(stderr, "Usage: stoup-demo-shared POOL\n");
		return 2;
	}
	if (stoup_attach(argv[1], NULL, &st, &err) < 0)
		die(argv[1], &err);
	for (uint64_t i = 0; stoup_series_at(st, i, &series) == 0; i++)
		walk(st, &series, &sum);
	status = demo_finish(&sum);
	stoup_detach(st);
	return status;
}
