/* SPDX-License-Identifier: Apache-2.0 */
/* args.c - options and their values. */
#include "producer/args.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "producer/cmd.h"
#include "shm/timestamp.h"

int stoup_args_value(struct stoup_args *args, const char *name, struct stoup_error *err)
{
	const char *word = args->argv[args->at];
	size_t len = strlen(name);

	if (strncmp(word, name, len) != 0 || (word[len] != '\0' && word[len] != '='))
		return 0;
	if (word[len] == '=') {
		args->value = word + len + 1;
		return 1;
	}
	if (args->at + 1 >= args->argc)
		return stoup_error_set(err, -EINVAL, "%s needs a value", name);
	args->value = args->argv[++args->at];
	return 1;
}

int stoup_args_flag(const struct stoup_args *args, const char *name)
{
	return strcmp(args->argv[args->at], name) == 0;
}

int stoup_args_time(const char *name, const char *text, int64_t *ret_ns, struct stoup_error *err)
{
	struct stoup_timestamp_format format = {.kind = STOUP_TIMESTAMP_AUTO};
	const char *why = "";

	if (strlen(text) == 19 && strspn(text, "0123456789") == 19)
		format.kind = STOUP_TIMESTAMP_NS;
	if (stoup_timestamp_parse(&format, text, strlen(text), ret_ns, &why) < 0)
		return stoup_error_set(err, -EINVAL, "%s: '%.60s' %s", name, text, why);
	if (*ret_ns <= 0)
		return stoup_error_set(
			err, -EINVAL, "%s: '%.60s' is no time after 1970", name, text);
	return 0;
}

int stoup_args_size(const char *name, const char *text, uint64_t min, uint64_t max,
	uint64_t *ret_len, struct stoup_error *err)
{
	char low[STOUP_SIZE_TEXT_CAP], high[STOUP_SIZE_TEXT_CAP];

	if (stoup_size_parse(text, ret_len) == 0 && *ret_len >= min && *ret_len <= max)
		return 0;
	stoup_size_format(min, low);
	stoup_size_format(max, high);
	return stoup_error_set(err, -EINVAL, "%s %.60s: a size from %s to %s, such as 512K", name,
		text, low, high);
}

int stoup_args_count(const char *name, const char *text, uint32_t min, uint32_t max,
	uint32_t *ret_cnt, struct stoup_error *err)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno == 0 && *text >= '0' && *text <= '9' && *end == '\0' && value >= min &&
		value <= max) {
		*ret_cnt = (uint32_t)value;
		return 0;
	}
	return stoup_error_set(err, -EINVAL, "%s %.60s: a number from %" PRIu32 " to %" PRIu32,
		name, text, min, max);
}
