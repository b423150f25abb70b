/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_json.c - all pools of a look as one JSON object: docs/metrics.md says of what. */
#include <inttypes.h>
#include <string.h>
#include "consumer/exporter.h"
#include "consumer/tool_stat.h"
#include "shm/json.h"

#define EXTENT_CAP 65536u /* of one pool; those at higher offsets are counted */

/* Rows of numbers: names in each would make it three times as long. */
static void extents(FILE *out, const struct stoup_watch *watch)
{
	uint32_t cnt = watch->extent_cnt < EXTENT_CAP ? watch->extent_cnt : EXTENT_CAP;

	fprintf(out, ",\n\"extents_left_out\": %u, \"extents\": [", watch->extent_cnt - cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		const struct stoup_watch_extent *e = &watch->extents[i];

		fprintf(out, "%s\n  [%" PRIu64 ", %u, \"%s\", %u, %u, %" PRIu64 ", %u, %u]",
			i ? "," : "", e->off, e->len, stoup_watch_buffer_name(e->state), e->refs,
			e->used_cnt, e->loaded_ns, e->volume_idx, e->block_idx);
	}
	fprintf(out, "\n]");
}

static void one(FILE *out, const struct stoup_exporter_pool *pool)
{
	char problem[512];

	fprintf(out, "{\"name\": ");
	stoup_json_string(out, pool->label);
	fprintf(out, ", \"state\": \"%s\", \"problem\": ", stoup_exporter_state(pool));
	if (pool->rc < 0) {
		stoup_json_string(out, pool->err.text);
		fprintf(out, ", \"stat\": null");
	} else {
		stoup_json_string(
			out, stoup_watch_state_text(&pool->watch, problem, sizeof(problem)));
		fprintf(out, ", \"stat\":\n");
		stoup_stat_json(out, &pool->watch, 0);
		extents(out, &pool->watch);
	}
	fprintf(out, "}");
}

void stoup_exporter_json(const struct stoup_exporter *exporter, FILE *out, const char *label)
{
	const char *sep = "";

	fprintf(out, "{\"version\": \"%s\", \"pools_left_out\": %u, \"pools\": [", STOUP_VERSION,
		exporter->left_out);
	for (uint32_t i = 0; i < exporter->pool_cnt; i++) {
		if (label && strcmp(exporter->pools[i].label, label) != 0)
			continue;
		fprintf(out, "%s\n", sep);
		sep = ",";
		one(out, &exporter->pools[i]);
	}
	fprintf(out, "\n]}\n");
}
