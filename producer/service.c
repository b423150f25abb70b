/* SPDX-License-Identifier: Apache-2.0 */
/* service.c - see service.h. */
#include "producer/service.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "shm/json.h"

#define TEXT_CAP      512u
#define READY_WAIT_MS 1000
#define FED_PARTS     3u /* of the watchdog's time: two may be late */
#define WAIT_LEAST_NS                                                                              \
	UINT64_C(5000000) /* a watchdog of some microseconds must not make the conductor spin */

static int connect_to(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len = strlen(path);
	int fd, rc = 0;

	/* '@' stands for the NUL of an abstract name. */
	if ((path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof(addr.sun_path))
		return -EINVAL;
	memcpy(addr.sun_path, path, len);
	if (path[0] == '@')
		addr.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&addr,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

static uint64_t number_of(const char *name)
{
	const char *text = getenv(name);
	char *end = NULL;
	unsigned long long value = text ? strtoull(text, &end, 10) : 0;

	return text && end != text && *end == 0 ? value : 0;
}

int stoup_service_init(struct stoup_service *service)
{
	const char *path = getenv("NOTIFY_SOCKET");
	uint64_t usec = number_of("WATCHDOG_USEC"), pid = number_of("WATCHDOG_PID");
	int rc = 0;

	*service = (struct stoup_service){.fd = -1};
	if (path && path[0]) {
		service->fd = connect_to(path);
		rc = service->fd < 0 ? service->fd : 0;
	}
	if (rc == 0 && service->fd >= 0 && usec > 0 && usec < UINT64_MAX / 1000 &&
		(pid == 0 || pid == (uint64_t)getpid()))
		service->watchdog_ns = usec * 1000;
	if (rc < 0)
		service->fd = -1;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return rc;
}

void stoup_service_fini(struct stoup_service *service)
{
	if (service->fd >= 0)
		close(service->fd);
	service->fd = -1;
}

/* One datagram. What is not taken at once is dropped, unless it is waited for. */
static void tell(struct stoup_service *service, const char *text, int wait_ms)
{
	struct pollfd out = {.fd = service->fd, .events = POLLOUT};

	if (service->fd < 0)
		return;
	if (send(service->fd, text, strlen(text), MSG_NOSIGNAL) >= 0 || errno != EAGAIN ||
		wait_ms == 0)
		return;
	if (poll(&out, 1, wait_ms) == 1)
		send(service->fd, text, strlen(text), MSG_NOSIGNAL);
}

void stoup_service_ready(struct stoup_service *service, const char *status)
{
	char text[TEXT_CAP], plain[TEXT_CAP - 64];

	snprintf(plain, sizeof(plain), "%s", status);
	/* A line end would begin another assignment, and what is not UTF-8 is refused. */
	stoup_utf8_plain(plain);
	snprintf(text, sizeof(text), "READY=1\nSTATUS=%s\nMAINPID=%d", plain, (int)getpid());
	tell(service, text, READY_WAIT_MS);
}

void stoup_service_reloading(struct stoup_service *service, uint64_t now_ns)
{
	char text[96];

	service->reloading = 1;
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_ns / 1000);
	tell(service, text, 0);
}

void stoup_service_reloaded(struct stoup_service *service)
{
	if (!service->reloading)
		return;
	service->reloading = 0;
	tell(service, "READY=1", READY_WAIT_MS);
}

void stoup_service_stopping(struct stoup_service *service)
{
	tell(service, "STOPPING=1", 0);
}

void stoup_service_failed(struct stoup_service *service, int code, const char *text)
{
	char line[TEXT_CAP], plain[TEXT_CAP - 64];

	snprintf(plain, sizeof(plain), "%s", text);
	stoup_utf8_plain(plain);
	snprintf(line, sizeof(line), "STATUS=%s\nERRNO=%d", plain, code < 0 ? -code : code);
	tell(service, line, 0);
}

uint64_t stoup_service_wait(const struct stoup_service *service, uint64_t wait_ns)
{
	uint64_t fed_ns = service->watchdog_ns / FED_PARTS;

	if (service->watchdog_ns == 0 || fed_ns >= wait_ns)
		return wait_ns;
	return fed_ns > WAIT_LEAST_NS ? fed_ns : WAIT_LEAST_NS;
}

void stoup_service_tick(struct stoup_service *service, uint64_t now_ns)
{
	if (service->watchdog_ns == 0 ||
		now_ns - service->fed_ns < service->watchdog_ns / FED_PARTS)
		return;
	service->fed_ns = now_ns;
	tell(service, "WATCHDOG=1", 0);
}
