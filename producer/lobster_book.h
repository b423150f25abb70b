/* SPDX-License-Identifier: Apache-2.0 */
/* lobster_book.h - LOBSTER's order book with the times of its messages, as one text.
 *
 *      AAPL_2012-06-21_..._message_10.csv      34200.004241176,1,16113575,18,5853300,1
 *      AAPL_2012-06-21_..._orderbook_10.csv    5859400,200,5853300,18,...
 *                          --joined-->         34200.004241176,5859400,200,5853300,18,...
 *
 * Row i of the book is what message i left behind. The message file is found by name, beside the book.
 *
 * Invariant: as many rows as messages, or an error; no row is joined with another's time.
 *
 * Concurrency: one book, one thread. It is a sequential text: it can not be cut into chunks of the file.
 */
#ifndef STOUP_PRODUCER_LOBSTER_BOOK_H
#define STOUP_PRODUCER_LOBSTER_BOOK_H

#include "producer/ingest_csv.h"
#include "producer/input.h"

struct stoup_lobster_book;

/* Is a file one, by --format or by its name? */
int stoup_lobster_book_is(const struct stoup_csv_options *options, const char *path);

/* The path of the messages of a book, to be freed; NULL where the name has no "orderbook_", or no memory. */
char *stoup_lobster_book_messages(const char *path);

/* Open the message file beside an open book, whose input stays the caller's. 0; -EINVAL with text for a
 * name without "_orderbook_" or "-orderbook_", or what opening gives. */
int stoup_lobster_book_open(
	struct stoup_input *input, struct stoup_lobster_book **ret, struct stoup_error *err);

/* Reads the joined text; a stoup_csv_read_fn. -EBADMSG where the two files do not have as many rows. */
int64_t stoup_lobster_book_read(void *book, void *dst, size_t len, struct stoup_error *err);

/* NULL is allowed. */
void stoup_lobster_book_close(struct stoup_lobster_book *book);

#endif
