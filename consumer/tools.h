/* SPDX-License-Identifier: Apache-2.0 */
/* tools.h - the commands that only read a pool, as the dispatcher of `stoup` calls them.
 *
 * Each returns the exit status: 0, 1 for a failure (one line on stderr), 2 for wrong usage. Results go
 * to stdout. They use the public library and the control object; no daemon is asked for anything but
 * what every consumer may ask.
 */
#ifndef STOUP_CONSUMER_TOOLS_H
#define STOUP_CONSUMER_TOOLS_H

int stoup_cmd_stat(int argc, char **argv);    /* the control object in words or JSON */
int stoup_cmd_cat(int argc, char **argv);     /* records of a series as CSV or JSON lines */
int stoup_cmd_holders(int argc, char **argv); /* who holds leases, since when */

#endif
