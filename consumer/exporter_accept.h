/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_accept.h - two headers of a request: which format is wanted, and for whom it is. Pure functions. */
#ifndef STOUP_CONSUMER_EXPORTER_ACCEPT_H
#define STOUP_CONSUMER_EXPORTER_ACCEPT_H

/* Accept: 1 where OpenMetrics is named and no less wanted than text/plain; 0 also for NULL. */
int stoup_accept_open(const char *accept);

/* Host: 1 for localhost, an IPv4 address, an IPv6 address in brackets, each with or without a port, and for NULL
 * (HTTP/1.0). 0 for any other name. */
int stoup_host_local(const char *host);

#endif
