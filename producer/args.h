/* SPDX-License-Identifier: Apache-2.0 */
/* args.h - options of the commands that care for a store: "--name VALUE", "--name=VALUE", "--name".
 *
 * Concurrency: plain functions.
 */
#ifndef STOUP_PRODUCER_ARGS_H
#define STOUP_PRODUCER_ARGS_H

#include <stdint.h>
#include "shm/stoup_types.h"

/* The words of a command, one after the other. */
struct stoup_args {
	int argc, at; /* at: the word that is looked at */
	char **argv;
	const char *value; /* of the last option that was found */
};

/* Is the current word this option, with its value (which may be the next word)? 1 yes; 0 no; -EINVAL where the value
 * is missing, with text. */
int stoup_args_value(struct stoup_args *args, const char *name, struct stoup_error *err);

/* Is it this option, without a value? */
int stoup_args_flag(const struct stoup_args *args, const char *name);

/* An exact time: ISO 8601, or nanoseconds since the epoch (19 digits), as `cat` reads them. 0 or -EINVAL with text. */
int stoup_args_time(const char *name, const char *text, int64_t *ret_ns, struct stoup_error *err);

/* A size from min on. 0 or -EINVAL with text. */
int stoup_args_size(const char *name, const char *text, uint64_t min, uint64_t max,
	uint64_t *ret_len, struct stoup_error *err);

/* A whole number. */
int stoup_args_count(const char *name, const char *text, uint32_t min, uint32_t max,
	uint32_t *ret_cnt, struct stoup_error *err);

#endif
