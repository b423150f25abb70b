/* SPDX-License-Identifier: Apache-2.0 */
/* json_doc.h - one JSON text to one document (shm/stoup_doc.h), in one pass.
 *
 *      text --tokens--> [tag, guessed short][payload ...]  --close: length known--> tag, payload moved
 *                                                          where the guess was too short
 *
 * Strict: RFC 8259 and nothing more. Strings are UTF-8, in the text and behind escapes: half of a
 * surrogate pair is refused. Members keep their order, keys that come twice stay twice. Numbers become
 * the shortest form that has their exact value; see docs/document-format.md.
 *
 * Invariant: what comes out passes stoup_doc_valid, and stoup_doc_json prints it with every value equal.
 *
 * Concurrency: a pure function, without allocation.
 * Limits: STOUP_DOC_DEPTH_CAP containers inside each other; STOUP_JSON_LEN_CAP bytes of text.
 */
#ifndef STOUP_PRODUCER_JSON_DOC_H
#define STOUP_PRODUCER_JSON_DOC_H

#include <stddef.h>
#include <stdint.h>
#include "shm/stoup_doc.h"

#define STOUP_JSON_LEN_CAP (16u << 20)

/* Room that a text of `len` bytes may need: "-0," is a double of 9 bytes; strings are copied 8 bytes at
 * a time. */
#define STOUP_JSON_DOC_CAP(len) (3 * (len) + 64)

/* What is wrong with a text, and at which byte of it. */
struct stoup_json_fault {
	size_t off;
	const char *what; /* static: "a colon is missing behind the key" */
};

/* Encode text[0..len), blanks around the value allowed, into `dst`, which has room for
 * STOUP_JSON_DOC_CAP(len) bytes. Returns the length of the document; -EBADMSG for what is no JSON,
 * -ENODATA for a text that ends inside of a value, -EMSGSIZE for one that is too deep or too long; the
 * last three fill `fault`. */
int64_t stoup_json_to_doc(
	const char *text, size_t len, uint8_t *dst, struct stoup_json_fault *fault);

#endif
