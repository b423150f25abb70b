/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_page.c - the page at `/`: where to find what. */
#include "consumer/exporter.h"

const char *stoup_exporter_page(size_t *ret_len)
{
	static const char page[] =
		"<!doctype html>\n"
		"<html lang=\"en\"><head><meta charset=\"utf-8\"><title>stoup</title></head><body>\n"
		"<h1>stoup exporter</h1>\n"
		"<ul>\n"
		"<li><a href=\"/metrics\">/metrics</a>: for Prometheus</li>\n"
		"<li><a href=\"/stat.json\">/stat.json</a>: all of each pool; ?pool=NAME of one</li>\n"
		"<li><a href=\"/healthz\">/healthz</a>: does the exporter live?</li>\n"
		"</ul>\n"
		"</body></html>\n";

	*ret_len = sizeof(page) - 1;
	return page;
}
