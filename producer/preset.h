/* SPDX-License-Identifier: Apache-2.0 */
/* preset.h - feeds and archives whose columns are known: tables over the CSV reader.
 *
 *      --format NAME ------------+
 *      header, or shape of a row +--choose--> preset --columns--> schema, binds, name of the series
 *      file name ----------------+
 *
 * A preset is a table of columns: the names that a header gives them, the field that each fills and how
 * its text is read. Files without a header have the columns in the table's order.
 *
 * Invariant: a preset is taken unasked only where it is the one whose columns are all there (or, of a file
 * without a header, the one whose columns can hold the first row's texts); where two are, the file's name
 * decides, or the user. What was taken is told.
 *
 * Concurrency: immutable tables.
 * Limits: a book has as many levels as fields fit into a schema: 127 with four fields each.
 */
#ifndef STOUP_PRODUCER_PRESET_H
#define STOUP_PRODUCER_PRESET_H

#include <stdint.h>
#include "producer/csv.h"
#include "producer/ingest_csv.h"

/* What a column holds, and the type of its field. */
enum stoup_preset_type {
	STOUP_PRESET_LEFT,     /* known and of no use: no field */
	STOUP_PRESET_EXCHANGE, /* names the series: no field */
	STOUP_PRESET_SYMBOL,   /* likewise */
	STOUP_PRESET_KEY,      /* i64 time, the key: never empty */
	STOUP_PRESET_TIME,     /* i64 time null=max */
	STOUP_PRESET_PRICE,    /* i64 null=max, of --scale decimals */
	STOUP_PRESET_SIZE,     /* u64 null=max, of --size-scale decimals */
	STOUP_PRESET_ID,       /* u64 */
	STOUP_PRESET_BYTE,     /* u8 */
	STOUP_PRESET_SIGN,     /* i8 */
	STOUP_PRESET_BOOL,     /* u8: 1 is true */
	STOUP_PRESET_WORD,     /* char: the first letter of one of a few words, upper case */
	STOUP_PRESET_TEXT,     /* char[len] */
};

#define STOUP_PRESET_OPTIONAL 0x01u /* the column may be absent: then undefined (u8: 255) */
#define STOUP_PRESET_FULL     0x02u /* its cells are never empty: the field cannot be undefined */
#define STOUP_PRESET_LEVEL    0x04u /* once per level of the book: names and field have a %u */
#define STOUP_PRESET_COUNTS   0x08u /* the text counts units of the scale: 5853300 is 585.33 */
#define STOUP_PRESET_DUMMY    0x10u /* 9999999999 and -9999999999 stand for no price */

struct stoup_preset_column {
	const char *names; /* of the header, '|' between them, the feed's own first */
	const char *field; /* NULL: as the first name */
	uint8_t type;      /* STOUP_PRESET_* */
	uint8_t flags;
	uint8_t scale;     /* decimals; 0: the option's */
	uint8_t len;       /* bytes of a text */
	const char *words; /* of a WORD, '|' between them */
	const char *why;   /* "is not buy or sell" */
};

/* How times are written. */
#define STOUP_PRESET_UNIT_S  0x01u
#define STOUP_PRESET_UNIT_MS 0x02u
#define STOUP_PRESET_UNIT_US 0x04u
#define STOUP_PRESET_UNIT_NS 0x08u

enum stoup_preset_clock {
	STOUP_PRESET_CLOCK_EPOCH, /* whole units since 1970, told apart by magnitude */
	STOUP_PRESET_CLOCK_TEXT,  /* as --time-format auto */
	STOUP_PRESET_CLOCK_DAY, /* seconds after the midnight of New York, the date is elsewhere */
};

#define STOUP_PRESET_BARS    0x01u /* the records are bars: an interval is needed */
#define STOUP_PRESET_BUILTIN 0x02u /* `schema` is a built-in one, else it is made of the columns */
#define STOUP_PRESET_BY_NAME 0x04u /* never by columns alone: too many tables look so */
#define STOUP_PRESET_DBN     0x08u /* columns are those of a DBN schema, which the first row tells */
#define STOUP_PRESET_ALONE   0x10u /* sequential: rows need a second file, no cutting into chunks */
/* Columns that nobody owns: it wins where another fits equally. */
#define STOUP_PRESET_ANYONES 0x40u
#define STOUP_PRESET_UNIQUE                                                                        \
	0x20u /* rows have numbers of their own: a row like the one before is told */

struct stoup_preset {
	const char *name; /* of --format */
	const char *what; /* for people; a %s in it: spot or futures */
	const char *schema;
	const char *kind; /* the last part of the series' name */
	const char
		*exchange; /* where neither column nor path nor --exchange tell; NULL: to be told */
	const struct stoup_preset_column *columns; /* the last one has no names */
	const char *const *paths;    /* patterns of file names (preset_path.h), then NULL */
	uint16_t bare_min, bare_max; /* columns of a file without a header; 0: it has one always */
	uint8_t level_base;          /* number of the first level */
	uint8_t clock;               /* STOUP_PRESET_CLOCK_* */
	uint8_t units;               /* STOUP_PRESET_UNIT_*, of an epoch */
	uint8_t flags;
	char delimiter; /* 0: comma */
	int32_t zone_s; /* of texts without an offset */
};

/* All presets; ends with NULL. */
extern const struct stoup_preset *const stoup_presets[];

extern const struct stoup_preset stoup_preset_binance_trades, stoup_preset_binance_aggtrades,
	stoup_preset_binance_klines, stoup_preset_binance_bookticker, stoup_preset_tardis_trades,
	stoup_preset_tardis_liquidations, stoup_preset_tardis_l2, stoup_preset_tardis_quotes,
	stoup_preset_tardis_book, stoup_preset_tardis_derivative, stoup_preset_lobster,
	stoup_preset_lobster_book, stoup_preset_databento_csv, stoup_preset_truefx,
	stoup_preset_histdata, stoup_preset_histdata_bars, stoup_preset_fxcm_bars,
	stoup_preset_bars, stoup_preset_quotes;

/* The preset of a --format, or NULL. */
const struct stoup_preset *stoup_preset_named(const char *format);

/* Does the options' --format name a preset, or, where no columns are told, may one be found? */
int stoup_preset_wanted(const struct stoup_csv_options *options);

/* Find the preset of a table: `options->preset`, else by first row and file name. Sets `*ret` and whether
 * the row is a header. 0; -ENOENT without text where there is none; -EINVAL with text for several, for a
 * row that is not the preset's, or for columns that are missing (the text says which were found). */
int stoup_preset_choose(const struct stoup_csv_options *options, const char *file,
	const struct stoup_csv_row *row, const struct stoup_preset **ret, int *ret_header,
	struct stoup_error *err);

/* Does the path look like one of the preset's? */
int stoup_preset_path_is(const struct stoup_preset *preset, const char *path);

/* ---- columns ------------------------------------------------------------------------------------ */

/* Is a text of `len` bytes (blanks around it do not count) one of names "a|b|c"? A %u in them is `level`. */
int stoup_preset_name_is(const char *names, uint32_t level, const char *text, size_t len);

/* The column of a row with one of these names: its index, or UINT32_MAX. */
uint32_t stoup_preset_find(const struct stoup_csv_row *row, const char *names, uint32_t level);

/* The names of the column that fills a field, or NULL. */
const char *stoup_preset_names(const struct stoup_preset *preset, const char *field);

/* A row's fields with commas between them, as far as they fit. */
void stoup_preset_list(const struct stoup_csv_row *row, char *dst, size_t cap);

#endif
