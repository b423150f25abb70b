/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_list.c - reading and printing lists of processors. */
#include "producer/cpu_list.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_CNT (CPU_SETSIZE / 64)

struct list {
	const char *text;
	uint64_t allowed[WORD_CNT];
	uint32_t *cpus;
	uint32_t cnt, cap;
	struct stoup_error *err;
};

static int may_use(const struct list *list, uint64_t cpu)
{
	return cpu < CPU_SETSIZE && (list->allowed[cpu / 64] >> cpu % 64 & 1);
}

static void ask_kernel(struct list *list)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			list->allowed[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

static int add(struct list *list, uint64_t cpu)
{
	uint32_t usable[CPU_SETSIZE], cnt = 0;
	char text[64];

	if (!may_use(list, cpu)) {
		for (uint32_t i = 0; i < CPU_SETSIZE; i++)
			if (may_use(list, i))
				usable[cnt++] = i;
		stoup_cpu_list_text(usable, cnt, text, sizeof(text));
		return stoup_error_set(list->err, -EINVAL,
			"processor %llu is none that this process may use, which are %s; mend: name some of these, or "
			"widen its set (taskset, the container's cpuset)",
			(unsigned long long)cpu, text);
	}
	for (uint32_t i = 0; i < list->cnt; i++)
		if (list->cpus[i] == cpu)
			return stoup_error_set(
				list->err, -EINVAL, "processor %u is named twice", (uint32_t)cpu);
	if (list->cnt == list->cap)
		return stoup_error_set(list->err, -EINVAL, "more than %u processors", list->cap);
	list->cpus[list->cnt++] = (uint32_t)cpu;
	return 0;
}

/* Digits at *at, which moves behind them: 0, or -EINVAL. */
static int number(const char **at, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return -EINVAL;
	errno = 0;
	*ret = strtoull(*at, &end, 10);
	*at = end;
	return errno ? -EINVAL : 0;
}

/* Through the list; `take` its processors. 0, -EINVAL where it is none, or what `add` says. */
static int walk(struct list *list, int take)
{
	const char *at = list->text;
	uint64_t low, high;
	int rc = 0;

	do {
		if (number(&at, &low) < 0)
			return -EINVAL;
		high = low;
		if (*at == '-' && (at++, number(&at, &high) < 0 || high < low))
			return -EINVAL;
		/* The first that is not ours ends it, however long the range. */
		for (uint64_t cpu = low; take && cpu <= high && rc == 0; cpu++)
			rc = add(list, cpu);
	} while (rc == 0 && *at == ',' && at++);
	return rc == 0 && *at ? -EINVAL : rc;
}

int stoup_cpu_list_parse(const char *text, const uint64_t *allowed, size_t allowed_words,
	uint32_t *cpus, uint32_t cap, uint32_t *ret_cnt, struct stoup_error *err)
{
	struct list list = {.text = text, .cpus = cpus, .cap = cap, .err = err};
	int rc;

	/* What is no list at all is told before what it names. */
	if (walk(&list, 0) < 0)
		return stoup_error_set(err, -EINVAL,
			"'%.60s': a list of processors is wanted, such as 2,5-7", text);
	if (!allowed)
		ask_kernel(&list);
	for (size_t i = 0; allowed && i < allowed_words && i < WORD_CNT; i++)
		list.allowed[i] = allowed[i];
	rc = walk(&list, 1);
	if (rc == 0)
		*ret_cnt = list.cnt;
	return rc;
}

void stoup_cpu_list_text(const uint32_t *cpus, uint32_t cnt, char *dst, size_t dst_cap)
{
	size_t used = 0;

	dst[0] = 0;
	for (uint32_t i = 0, last; i < cnt; i = last + 1) {
		char part[32];

		for (last = i; last + 1 < cnt && cpus[last + 1] == cpus[last] + 1;)
			last++;
		if (last == i)
			snprintf(part, sizeof(part), "%s%u", i ? "," : "", cpus[i]);
		else
			snprintf(part, sizeof(part), "%s%u-%u", i ? "," : "", cpus[i], cpus[last]);
		if (used + strlen(part) + 4 > dst_cap) {
			snprintf(dst + used, dst_cap - used, "...");
			return;
		}
		strcpy(dst + used, part);
		used += strlen(part);
	}
}
