/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_http_none.c - instead of exporter_http.c where stoup is built without libmicrohttpd. */
#include <errno.h>
#include "consumer/exporter.h"

int stoup_exporter_serve(struct stoup_exporter *exporter,
	const struct stoup_exporter_listen *listen, struct stoup_error *err)
{
	(void)exporter;
	(void)listen;
	return stoup_error_set(err, -ENOSYS,
		"this stoup was built without libmicrohttpd: install libmicrohttpd-dev and build it again, or "
		"print the metrics with --once");
}
