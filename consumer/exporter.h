/* SPDX-License-Identifier: Apache-2.0 */
/* exporter.h - `stoup exporter`: what pools show, as metrics for Prometheus and JSON for a page.
 *
 *      /dev/shm, sockets --names--> pools[] --a look each (tool_watch.h)--> metrics, JSON --HTTP or stdout-->
 *
 * Promise: it reads control objects and asks no daemon but for an object that may not be opened by name; it answers
 * while daemons hang, are stopped or dead, and says so. A pool that is not there is a value (stoup_up 0), no
 * error. Of one look at most one wait of 0.9 s for a daemon that does not answer; it is asked again 10 s later.
 *
 * Objects stay mapped from look to look, so that a daemon whose object has no name any more is seen to die.
 *
 * Limits: STOUP_EXPORTER_POOLS pools, those of dead daemons left out first; the number left out is shown.
 *
 * Concurrency: one thread per struct.
 */
#ifndef STOUP_CONSUMER_EXPORTER_H
#define STOUP_CONSUMER_EXPORTER_H

#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include "consumer/tool_watch.h"

#define STOUP_EXPORTER_POOLS 256u /* more daemons than a machine has memory for */
#define STOUP_EXPORTER_SERIES                                                                      \
	64u /* default of --series-max: names of series are Prometheus' memory */

struct stoup_exporter_pool {
	char *name;  /* as stoup_pool_resolve takes it */
	char *label; /* the same in UTF-8; no two are equal */
	struct stoup_watcher watcher;
	struct stoup_watch watch; /* empty where rc < 0 */
	int rc;                   /* of the last look */
	struct stoup_error err;
	uint64_t retry_ns; /* not asked before then; 0 = at once */
	int found;         /* in this look */
};

struct stoup_exporter {
	int named; /* the pools of the command line; else those that are found, anew at each look */
	int consumers; /* show each consumer */
	uint32_t series_max;
	struct stoup_exporter_pool *pools; /* by label */
	uint32_t pool_cnt, left_out;
	int find_rc; /* below 0: which pools there are could not be looked for, those of the look before are shown */
	uint32_t turn;    /* the pool that a look begins with: behind the one that was waited for */
	uint64_t look_ns; /* what the last look took */
	uint64_t look_total; /* looks so far */
};

/* ---- pools ------------------------------------------------------------------------------------ */

/* Watch these pools, or (cnt 0) those that are found. Names given twice count once. 0; -ENOMEM; -EINVAL with text: no
 * name of a pool, or too many. */
int stoup_exporter_init(
	struct stoup_exporter *exporter, char **names, uint32_t cnt, struct stoup_error *err);

/* Look at all of them. A pool that failed says so in its rc; none does when memory runs out. */
void stoup_exporter_look(struct stoup_exporter *exporter);
void stoup_exporter_fini(struct stoup_exporter *exporter);

/* As stoup_watch_state_name, or "absent", "unreadable". */
const char *stoup_exporter_state(const struct stoup_exporter_pool *pool);
/* All of them; NULL behind the last. */
const char *stoup_exporter_state_name(uint32_t idx);

/* Names of the pools of this user, root and the owner of /run/stoup, each once; where there are more than
 * STOUP_EXPORTER_POOLS those of dead daemons last. The caller frees each and the array. *ret_cnt of them. 0; -ENOMEM, -EMFILE or -ENFILE:
 * some of them. */
int stoup_exporter_find(char ***ret, uint32_t *ret_cnt);

/* ---- what is shown of the last look ------------------------------------------------------------- */

/* OpenMetrics 1.0 with `open`, else the text format 0.0.4. */
void stoup_exporter_metrics(const struct stoup_exporter *exporter, FILE *out, int open);

/* {"pools": [...]}, as docs/metrics.md says; of one pool where `label` is not NULL. */
void stoup_exporter_json(const struct stoup_exporter *exporter, FILE *out, const char *label);

/* The page at `/`: HTML that needs nothing from elsewhere. Lives as long as the program. */
const char *stoup_exporter_page(size_t *ret_len);

/* ---- HTTP ------------------------------------------------------------------------------------- */

struct stoup_exporter_listen {
	struct sockaddr_storage address;
	socklen_t address_len;
	int loopback;   /* nobody else can reach it */
	char shown[64]; /* "127.0.0.1:9753", "[::1]:0" */
};

/* HOST:PORT: an IPv4 address, an IPv6 address in brackets, or localhost. 0; -EINVAL with text. */
int stoup_exporter_listen_parse(
	const char *text, struct stoup_exporter_listen *ret, struct stoup_error *err);

/* Serve until SIGTERM or SIGINT; prints where it listens to stdout. 0, or a negative errno with text; -ENOSYS: built
 * without libmicrohttpd. */
int stoup_exporter_serve(struct stoup_exporter *exporter,
	const struct stoup_exporter_listen *listen, struct stoup_error *err);

#endif
