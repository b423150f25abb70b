/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_page.c - the page at `/`: exporter_page.html, which embed.cmake makes an array of. */
#include "consumer/exporter.h"
#include "exporter_page_html.h"

const char *stoup_exporter_page(size_t *ret_len)
{
	*ret_len = sizeof(exporter_page_html);
	return (const char *)exporter_page_html;
}
