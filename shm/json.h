/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - texts as JSON strings, for every tool that prints JSON. */
#ifndef STOUP_SHM_JSON_H
#define STOUP_SHM_JSON_H

#include <stddef.h>
#include <stdio.h>

/* Bytes of the UTF-8 sequence at `bytes`, of which there are at least one and at most `cap`; 0 for bytes that
 * are none. */
size_t stoup_utf8_len(const unsigned char *bytes, size_t cap);

/* Make a text plain, in place and of the same length: '?' for control characters (C0, DEL, C1) and for bytes that are
 * not UTF-8. No terminal is commanded by it, and every protocol takes it. */
void stoup_utf8_plain(char *text);

/* Is the text one JSON value of RFC 8259 in UTF-8, blanks around it allowed? Nested deeper than 512 levels it
 * is none. Reads nothing outside; never fails. */
int stoup_json_valid(const void *text, size_t len);

/* The same as below for `len` bytes, which may hold NUL bytes. */
void stoup_json_string_of(FILE *out, const void *text, size_t len);

/* Write a text as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD. */
void stoup_json_string(FILE *out, const char *text);

#endif
