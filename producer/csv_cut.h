/* SPDX-License-Identifier: Apache-2.0 */
/* csv_cut.h - a text cut into pieces of whole rows, so that several threads can read it.
 *
 *      stream  | row row row | row row "quoted
 *      pieces  |<--- 0 ----->|<---- 1 --- text" row |<-- 2 ...       cut behind a line end
 *
 * Whether a line end lies inside quotes is told by the number of quotes before it alone: in a text that
 * keeps to the grammar of csv.h that is exact. In one that does not, the piece that holds the first
 * misplaced quote is whole up to there, and who reads it finds the error before any wrong cut counts.
 *
 * Concurrency: one thread cuts; a piece belongs to who has it.
 */
#ifndef STOUP_PRODUCER_CSV_CUT_H
#define STOUP_PRODUCER_CSV_CUT_H

#include "producer/csv.h"

#define STOUP_CSV_PIECE_LEN                                                                        \
	(512u << 10) /* about so many bytes; a row that is longer makes it longer */

struct stoup_csv_piece {
	char *text; /* on the heap */
	size_t len;
	uint64_t line;     /* of its first row, 1-based */
	uint64_t file_off; /* of its first byte */
};

struct stoup_csv_cut;

/* 0 or -ENOMEM. */
int stoup_csv_cut_create(
	stoup_csv_read_fn *read, void *source, struct stoup_csv_cut **ret, struct stoup_error *err);
void stoup_csv_cut_destroy(struct stoup_csv_cut *cut);

/* The next piece: 1, and `ret` is the caller's (free its text); 0 at the end; -ENOMEM or what `read`
 * gives. */
int stoup_csv_cut_next(
	struct stoup_csv_cut *cut, struct stoup_csv_piece *ret, struct stoup_error *err);

#endif
