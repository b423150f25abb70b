/* SPDX-License-Identifier: Apache-2.0 */
/* event64_claim.c - which files an array of events is made of (see event64_claim.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "producer/event64_claim.h"
#include "shm/format.h"

void stoup_event64_claims_fini(struct stoup_event64_claims *claims)
{
	for (uint32_t i = 0; i < claims->part_cnt; i++)
		free(claims->parts[i].file);
	free(claims->parts);
	*claims = (struct stoup_event64_claims){0};
}

static struct stoup_event64_part *in_hand(struct stoup_event64_claims *claims)
{
	return claims->part_cnt > 0 ? &claims->parts[claims->part_cnt - 1] : NULL;
}

static int part_add(struct stoup_event64_claims *claims, const char *file, uint32_t file_no,
	const char *feed, uint32_t tells)
{
	struct stoup_event64_part *part;
	uint32_t cap = claims->part_cap ? claims->part_cap * 2 : 4;

	if (claims->part_cnt == claims->part_cap) {
		part = realloc(claims->parts, cap * sizeof(*part));
		if (!part)
			return -ENOMEM;
		claims->parts = part;
		claims->part_cap = cap;
	}
	part = &claims->parts[claims->part_cnt];
	*part = (struct stoup_event64_part){.file = strdup(file),
		.file_no = file_no,
		.tells = tells,
		.first_ns = INT64_MAX,
		.last_ns = INT64_MIN};
	if (!part->file)
		return -ENOMEM;
	snprintf(part->feed, sizeof(part->feed), "%s", feed);
	claims->part_cnt++;
	return 0;
}

int stoup_event64_claims_file(struct stoup_event64_claims *claims, const char *series,
	const char *file, uint32_t file_no, const char *feed, uint32_t tells,
	struct stoup_error *err)
{
	const struct stoup_event64_part *part = in_hand(claims);

	for (uint32_t i = 0; i < claims->part_cnt; i++) {
		uint32_t both = claims->parts[i].tells & tells;

		if (both == 0 || strcmp(claims->parts[i].feed, feed) == 0)
			continue;
		return stoup_error_set(err, -EINVAL,
			"%.100s would be made of %.60s and of %.60s, which tell of the same %s: give files of "
			"one kind",
			series, claims->parts[i].feed, feed,
			both & STOUP_EVENT64_TRADES ? "trades" : "book");
	}
	if (part && part->file_no == file_no)
		return 0;
	if (part_add(claims, file, file_no, feed, tells) < 0)
		return stoup_error_set(err, -ENOMEM, "no memory for the series %.100s", series);
	return 0;
}

int stoup_event64_claims_source(struct stoup_event64_claims *claims, const char *series,
	const char *source, struct stoup_error *err)
{
	const struct stoup_event64_part *part = in_hand(claims);
	const char *file = part ? part->file : "?";

	if (!claims->source[0]) {
		snprintf(claims->source, sizeof(claims->source), "%s", source);
		claims->source_file = file;
		return 0;
	}
	if (strncmp(claims->source, source, sizeof(claims->source) - 1) == 0)
		return 0;
	return stoup_error_set(err, -EINVAL,
		"%.60s would have events of %.40s (%.60s) and of %.40s (%.60s), and a book has one: leave "
		"--series out, or ingest them one by one",
		series, claims->source, claims->source_file, source, file);
}

void stoup_event64_claims_time(struct stoup_event64_claims *claims, int64_t local_ts, int anew)
{
	struct stoup_event64_part *part = in_hand(claims);

	if (!part)
		return;
	if (anew || local_ts < part->first_ns)
		part->first_ns = local_ts;
	if (anew || local_ts > part->last_ns)
		part->last_ns = local_ts;
}

/* By feed, then by time, then as they were given. */
static int part_cmp(const void *a, const void *b)
{
	const struct stoup_event64_part *one = a, *two = b;
	int rc = strcmp(one->feed, two->feed);

	if (rc != 0)
		return rc;
	if (one->first_ns != two->first_ns)
		return one->first_ns < two->first_ns ? -1 : 1;
	return one->file_no < two->file_no ? -1 : one->file_no > two->file_no;
}

/* Of two parts in this order: does the second begin inside the first, or is it the same instant? */
static int overlaps(const struct stoup_event64_part *one, const struct stoup_event64_part *two)
{
	if (one->first_ns > one->last_ns || two->first_ns > two->last_ns ||
		strcmp(one->feed, two->feed) != 0)
		return 0;
	return two->first_ns < one->last_ns ||
	       (two->first_ns == one->first_ns && two->last_ns == one->last_ns);
}

int stoup_event64_claims_check(
	struct stoup_event64_claims *claims, const char *series, struct stoup_error *err)
{
	char end[STOUP_FORMAT_CAP], begin[STOUP_FORMAT_CAP];

	if (claims->part_cnt > 1)
		qsort(claims->parts, claims->part_cnt, sizeof(claims->parts[0]), part_cmp);
	for (uint32_t i = 1; i < claims->part_cnt; i++) {
		const struct stoup_event64_part *one = &claims->parts[i - 1];
		const struct stoup_event64_part *two = one + 1;

		if (!overlaps(one, two))
			continue;
		stoup_format_time(one->last_ns, end);
		stoup_format_time(two->first_ns, begin);
		return stoup_error_set(err, -EINVAL,
			"%.60s: %.60s goes on until %s, and %.60s, of %.30s as well, begins at %s: events would "
			"be there twice; give each time once",
			series, one->file, end, two->file, one->feed, begin);
	}
	return 0;
}
