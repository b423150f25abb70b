/* SPDX-License-Identifier: Apache-2.0 */
/* cmd.h - the commands of the `stoup` executable, and how all programs here read sizes and
 * durations.
 *
 *      stoup COMMAND [options] [arguments]
 *             |
 *             +--> int stoup_cmd_COMMAND(int argc, char **argv)    argv[0] is the command's name
 *
 * A command returns the exit status: 0, 1 for a failure (told on stderr in one line), 2 for wrong
 * usage. Results go to stdout, everything else to stderr.
 *
 * Concurrency: plain functions; the parsers and formatters are thread-safe.
 */
#ifndef STOUP_PRODUCER_CMD_H
#define STOUP_PRODUCER_CMD_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "shm/json.h"

#define STOUP_EXIT_OK    0
#define STOUP_EXIT_FAIL  1
#define STOUP_EXIT_USAGE 2

/* Store commands (producer). */
int stoup_cmd_ingest(int argc, char **argv);
int stoup_cmd_ls(int argc, char **argv);
int stoup_cmd_verify(int argc, char **argv);
int stoup_cmd_compact(int argc, char **argv);
int stoup_cmd_rm(int argc, char **argv);
int stoup_cmd_diff(int argc, char **argv);
int stoup_cmd_info(int argc, char **argv);
int stoup_cmd_check(int argc, char **argv); /* of the machine rather than of a store */

/* Commands that read a pool (consumer; the same prototypes stand there). */
int stoup_cmd_stat(int argc, char **argv);
int stoup_cmd_cat(int argc, char **argv);
int stoup_cmd_replay(int argc, char **argv);
int stoup_cmd_holders(int argc, char **argv);
int stoup_cmd_log(int argc, char **argv);
int stoup_cmd_exporter(int argc, char **argv);
int stoup_cmd_definition(int argc, char **argv);
int stoup_cmd_export(int argc, char **argv);
int stoup_cmd_bench(int argc, char **argv);

/* For stoup_cmd_bench (consumer/tools.h says what it does). */
struct stoup_error;
int stoup_private_decode(const char *store_path, const char *series, uint64_t limit,
	uint64_t *ret_len, uint64_t *ret_ns, struct stoup_error *err);
int stoup_store_decoded_len(const char *store_path, uint64_t *ret_len, struct stoup_error *err);

/* For stoup_cmd_export (likewise). */
struct stoup_pack;
int stoup_pack_create(int (*put)(void *arg, const void *bytes, size_t len), void *arg,
	struct stoup_pack **ret, struct stoup_error *err);
int stoup_pack_write(struct stoup_pack *pack, const void *bytes, size_t len);
int stoup_pack_end(struct stoup_pack *pack);
void stoup_pack_destroy(struct stoup_pack *pack);

/* First thing in each main: descriptors 0 to 2 that are closed are opened on /dev/null, so that no file or
 * socket takes their numbers and is written to by mistake; a file size limit is an error, not a signal. */
void stoup_process_prepare(void);

/* Parse a byte count: digits, optionally a fraction ("1.5G"), optionally K, M, G or T (powers of
 * 1024), optionally "B" or "iB". 0; -EINVAL for another text, -ERANGE beyond 2^63-1. */
int stoup_size_parse(const char *text, uint64_t *ret_len);

/* Parse a duration with its unit: 250ms, 2s, 1.5h; units ns, us, ms, s, m, h, d. "0" needs none.
 * 0; -EINVAL for another text, -ERANGE beyond 2^63-1 ns. */
int stoup_duration_parse(const char *text, int64_t *ret_ns);

/* Print a length of time in a unit that suits it: 1.5 s, 250 ms, 3 d 04:00:00. */
#define STOUP_DURATION_TEXT_CAP 40
void stoup_duration_format(int64_t ns, char ret_text[STOUP_DURATION_TEXT_CAP]);

/* Print a byte count for people: 512 B, 1.5 KiB, 2.3 GiB. */
#define STOUP_SIZE_TEXT_CAP 24
void stoup_size_format(uint64_t len, char ret_text[STOUP_SIZE_TEXT_CAP]);

/* Sums of 64-bit prices and sizes: exact for 2^63 records and more. */
__extension__ typedef __int128 stoup_int128;

/* Print integer * 10^exp10 as an exact decimal without needless zeros: (1234500, -4) is 123.45.
 * exp10 from -128 to 127. */
#define STOUP_DECIMAL_TEXT_CAP 176
void stoup_decimal_format(stoup_int128 integer, int exp10, char ret_text[STOUP_DECIMAL_TEXT_CAP]);

#endif
