/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_accept.c - see exporter_accept.h. */
#include "consumer/exporter_accept.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define OPEN_TYPE "application/openmetrics-text"
#define TEXT_TYPE "text/plain"

/* Thousandths of "0.75" or "1", which end at anything else. */
static int quality(const char *text)
{
	int ret = *text == '1' ? 1000 : 0, part = 100;

	if (text[0] != '0' || text[1] != '.')
		return ret;
	for (text += 2; part > 0 && *text >= '0' && *text <= '9'; text++, part /= 10)
		ret += part * (*text - '0');
	return ret;
}

/* How much one member of the list, `len` bytes long, wants `type`: -1, or thousandths. */
static int member_quality(const char *member, size_t len, const char *type)
{
	size_t type_len = strlen(type);

	if (len < type_len || strncasecmp(member, type, type_len) != 0 ||
		(len > type_len && !strchr("; \t", member[type_len])))
		return -1;
	for (size_t i = type_len; i + 3 <= len; i++)
		if (strchr("; \t", member[i]) && (member[i + 1] == 'q' || member[i + 1] == 'Q') &&
			member[i + 2] == '=')
			return quality(member + i + 3);
	return 1000;
}

/* The most that the list wants it; -1 where it does not name it. */
static int list_quality(const char *accept, const char *type)
{
	int best = -1;

	while (*accept) {
		size_t len;
		int one;

		accept += strspn(accept, ", \t");
		len = strcspn(accept, ",");
		one = member_quality(accept, len, type);
		best = one > best ? one : best;
		accept += len;
	}
	return best;
}

int stoup_accept_open(const char *accept)
{
	int open = accept ? list_quality(accept, OPEN_TYPE) : -1;

	return open > 0 && open >= list_quality(accept, TEXT_TYPE);
}

int stoup_host_local(const char *host)
{
	struct in6_addr room;
	char name[64];
	size_t len;

	if (!host)
		return 1;
	len = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");
	if (len >= sizeof(name))
		return 0;
	memcpy(name, host, len);
	name[len] = 0;
	if (host[len] == ']')
		len++;
	if (host[len] && (host[len] != ':' ||
				 strspn(host + len + 1, "0123456789") != strlen(host + len + 1)))
		return 0;
	if (name[0] == '[')
		return inet_pton(AF_INET6, name + 1, &room) == 1;
	return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, &room) == 1;
}
