/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_listen.c - HOST:PORT of --listen: numbers alone, so that no name service is asked. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/exporter.h"
#include "consumer/tool_args.h"

static int wrong(const char *text, struct stoup_error *err)
{
	return stoup_error_set(err, -EINVAL,
		"--listen '%.60s': HOST:PORT is wanted, as 127.0.0.1:9753, [::1]:9753 or localhost:0",
		text);
}

static int host_parse(char *host, uint16_t port, struct stoup_exporter_listen *ret)
{
	struct sockaddr_in *v4 = (void *)&ret->address;
	struct sockaddr_in6 *v6 = (void *)&ret->address;
	size_t len = strlen(host);

	if (host[0] == '[' && len > 2 && host[len - 1] == ']') {
		host[len - 1] = 0;
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		ret->address_len = sizeof(*v6);
		if (inet_pton(AF_INET6, host + 1, &v6->sin6_addr) != 1)
			return 0;
		ret->loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
		return 1;
	}
	v4->sin_family = AF_INET;
	v4->sin_port = htons(port);
	ret->address_len = sizeof(*v4);
	if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
		    &v4->sin_addr) != 1)
		return 0;
	ret->loopback = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return 1;
}

int stoup_exporter_listen_parse(
	const char *text, struct stoup_exporter_listen *ret, struct stoup_error *err)
{
	const char *colon = strrchr(text, ':');
	uint64_t port;

	*ret = (struct stoup_exporter_listen){.loopback = 0};
	if (!colon || (size_t)(colon - text) >= sizeof(ret->shown) - 8 || strlen(colon + 1) > 5 ||
		!stoup_tool_number(colon + 1, 0, UINT16_MAX, &port))
		return wrong(text, err);
	memcpy(ret->shown, text, (size_t)(colon - text));
	if (!host_parse(ret->shown, (uint16_t)port, ret))
		return wrong(text, err);
	strcpy(ret->shown, text);
	return 0;
}
