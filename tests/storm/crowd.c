/* SPDX-License-Identifier: Apache-2.0 */
/* crowd.c - hundreds of small volumes that come and go: places run short, and who has an old snapshot is cut off.
 *
 *      crowd/  V1 V2 ... V70  --link--> row0 row1 ... row7 --SIGHUP--> 560 places --unlink, SIGHUP--> retired
 *
 * Nobody reads them. One in two comes while the crowd before is kept by somebody's snapshot.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "storm/record.h"
#include "storm/storm.h"

static void row_path(const struct storm *s, uint32_t row, const char *name, char path[512])
{
	snprintf(path, 512, "%s/../row%" PRIu32 "/%s", s->opt.store, row, name);
}

/* Link (1) or unlink all of them. */
static void rows_change(struct storm *s, int come)
{
	DIR *dir = opendir(s->opt.crowd);
	const struct dirent *entry;
	char from[512], path[512];

	while (dir && (entry = readdir(dir))) {
		if (!strstr(entry->d_name, ".stoup") || entry->d_name[0] == '.')
			continue;
		snprintf(from, sizeof(from), "%s/%s", s->opt.crowd, entry->d_name);
		for (uint32_t row = 0; row < STORM_ROW_CNT; row++) {
			row_path(s, row, entry->d_name, path);
			if ((come ? link(from, path) : unlink(path)) < 0)
				storm_fail(s, "%s: %s", path, strerror(errno));
		}
	}
	if (dir)
		closedir(dir);
	if (s->daemon.state == STORM_UP)
		storm_signal(s->daemon.pid_fd, SIGHUP);
}

static void cuts_count(struct storm *s)
{
	uint64_t cnt;

	if (s->daemon.state != STORM_UP || !s->daemon.control)
		return;
	cnt = storm_counter(s, "laggards_cut");
	s->cut_cnt += cnt > s->cut_seen ? cnt - s->cut_seen : 0;
	s->cut_seen = cnt;
}

int storm_crowd_begin(struct storm *s)
{
	if (!s->opt.crowd)
		return 0;
	cuts_count(s);
	rows_change(s, 1);
	return 1;
}

void storm_crowd_end(struct storm *s)
{
	cuts_count(s);
	rows_change(s, 0);
}
