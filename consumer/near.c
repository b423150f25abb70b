/* SPDX-License-Identifier: Apache-2.0 */
/* near.c - see near.h. */
#include "consumer/near.h"
#include <ctype.h>
#include <string.h>

/* Containing what was asked for, whatever the case, beats any common prefix. */
static uint32_t nearness(const char *asked, const char *name)
{
	uint32_t prefix = 0;

	if (strcasestr(name, asked))
		return 1000;
	while (asked[prefix] &&
		tolower((unsigned char)asked[prefix]) == tolower((unsigned char)name[prefix]))
		prefix++;
	return prefix;
}

void stoup_near_offer(struct stoup_near *near, const char *name)
{
	uint32_t score = nearness(near->asked, name), at = STOUP_NEAR_CNT;

	while (at > 0 && score > near->scores[at - 1])
		at--;
	if (at == STOUP_NEAR_CNT)
		return;
	for (uint32_t j = STOUP_NEAR_CNT - 1; j > at; j--) {
		near->names[j] = near->names[j - 1];
		near->scores[j] = near->scores[j - 1];
	}
	near->names[at] = name;
	near->scores[at] = score;
}

size_t stoup_near_text(const struct stoup_near *near, char *dst, size_t cap)
{
	size_t used = 0;

	dst[0] = 0;
	for (uint32_t i = 0; i < STOUP_NEAR_CNT && near->names[i]; i++) {
		size_t len = strlen(near->names[i]);

		if (used + len + 3 > cap)
			break;
		if (used > 0) {
			memcpy(dst + used, ", ", 2);
			used += 2;
		}
		memcpy(dst + used, near->names[i], len + 1);
		used += len;
	}
	return used;
}
