/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - texts as JSON strings, for every tool that prints JSON. */
#ifndef STOUP_SHM_JSON_H
#define STOUP_SHM_JSON_H

#include <stdio.h>

/* Write a text as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD. */
void stoup_json_string(FILE *out, const char *text);

#endif
