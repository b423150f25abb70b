/* SPDX-License-Identifier: Apache-2.0 */
/* service.h - what the daemon tells a service manager (systemd's protocol of NOTIFY_SOCKET, without its library).
 *
 *      start --> READY=1 --SIGHUP--> RELOADING=1 --stores read--> READY=1 --SIGTERM--> STOPPING=1
 *                  \--each third of WATCHDOG_USEC, by the conductor's loop--> WATCHDOG=1
 *
 * The watchdog is fed by the loop that serves: a conductor that hangs is ended and started anew. Without NOTIFY_SOCKET
 * all of this does nothing, and so it does for an automatic daemon: the variable is that of the program which started it.
 *
 * Concurrency: the conductor's thread. Nothing blocks; only the first READY=1 waits, at most a second, for a full queue.
 */
#ifndef STOUP_PRODUCER_SERVICE_H
#define STOUP_PRODUCER_SERVICE_H

#include <stdint.h>

struct stoup_service {
	int fd;               /* -1: nobody is to be told */
	uint64_t watchdog_ns; /* 0: no watchdog */
	uint64_t fed_ns;
	int reloading;
};

/* Take NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment, in which they are not left. 0, or a negative
 * errno when there is a socket that can not be used. */
int stoup_service_init(struct stoup_service *service);
void stoup_service_fini(struct stoup_service *service);

void stoup_service_ready(struct stoup_service *service, const char *status);
void stoup_service_reloading(struct stoup_service *service, uint64_t now_ns);
void stoup_service_reloaded(struct stoup_service *service); /* does nothing without `reloading` */
void stoup_service_stopping(struct stoup_service *service);
/* Why the daemon ends: errno and text. */
void stoup_service_failed(struct stoup_service *service, int code, const char *text);
/* How long the conductor may sleep so that the watchdog is fed in time: at most `wait_ns`. */
uint64_t stoup_service_wait(const struct stoup_service *service, uint64_t wait_ns);
void stoup_service_tick(struct stoup_service *service, uint64_t now_ns);

#endif
