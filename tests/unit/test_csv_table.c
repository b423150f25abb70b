/* SPDX-License-Identifier: Apache-2.0 */
/* test_csv_table.c - options and columns to records: what fills which field, exactly, and what is
 * refused with which words. Real files are read too, where they are there.
 */
#include <check.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "producer/csv_table.h"
#include "producer/input.h"
#include "shm/format.h"

#define OPTION_CAP 8

struct source {
	const char *text;
	size_t left;
};

static int64_t source_read(void *arg, void *dst, size_t len, struct stoup_error *err)
{
	struct source *source = arg;

	(void)err;
	if (len > source->left)
		len = source->left;
	memcpy(dst, source->text, len);
	source->text += len;
	source->left -= len;
	return (int64_t)len;
}

static int64_t input_read(void *arg, void *dst, size_t len, struct stoup_error *err)
{
	return stoup_input_read(arg, dst, len, err);
}

/* Options from pairs of a name and a value. */
static int options_set(
	struct stoup_csv_options *options, const char *const *pairs, struct stoup_error *err)
{
	stoup_csv_options_init(options);
	for (size_t i = 0; pairs[i]; i += 2) {
		int rc = stoup_csv_option(options, pairs[i], pairs[i + 1], err);

		if (rc)
			return rc;
	}
	return 0;
}

/* Append a record's visible fields, comma between them. */
static size_t record_show(const struct stoup_schema *schema, const void *record, char *out)
{
	size_t len = 0, shown_cnt = 0;

	for (uint32_t i = 0; i < schema->field_cnt; i++) {
		if (schema->fields[i].flags & STOUP_FIELD_HIDDEN)
			continue;
		if (shown_cnt++)
			out[len++] = ',';
		len += (size_t)stoup_format_field(&schema->fields[i], record, out + len, 256);
	}
	out[len++] = '\n';
	out[len] = '\0';
	return len;
}

/* All records of a text as text; or the error. Returns the number of records or a negative
 * errno. */
static int table_show(
	const char *text, const char *const *pairs, char *out, struct stoup_error *err)
{
	struct source source = {text, strlen(text)};
	struct stoup_csv_options options;
	struct stoup_csv_table *table;
	struct stoup_csv_record record;
	int rc, cnt = 0;

	*out = '\0';
	rc = options_set(&options, pairs, err);
	if (rc)
		return rc;
	rc = stoup_csv_table_create(source_read, &source, "t.csv", &options, &table, err);
	if (rc)
		return rc;
	while ((rc = stoup_csv_table_next(table, &record, err)) > 0) {
		int64_t key;

		memcpy(&key, (const char *)record.bytes + stoup_csv_table_schema(table)->key_off,
			8);
		ck_assert_int_eq(record.key, key);
		ck_assert_str_eq(record.where.file, "t.csv");
		out += record_show(stoup_csv_table_schema(table), record.bytes, out);
		cnt++;
	}
	stoup_csv_table_destroy(table);
	return rc < 0 ? rc : cnt;
}

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void assert_shows(const char *text, const char *const *pairs, const char *expected)
{
	struct stoup_error err;
	char out[4096];
	int rc = table_show(text, pairs, out, &err);

	ck_assert_msg(rc >= 0, "%s", err.text);
	ck_assert_str_eq(out, expected);
}

static void assert_fails(const char *text, const char *const *pairs, int code, const char *message)
{
	struct stoup_error err = {0};
	char out[4096];
	int rc = table_show(text, pairs, out, &err);

	ck_assert_msg(rc == code, "%d %s", rc, err.text);
	ck_assert_msg(strstr(err.text, message) != NULL, "\"%s\" lacks \"%s\"", err.text, message);
}

/* ---- columns --------------------------------------------------------------------------------- */

#define T0 "2024-01-02T03:04:05.000000000Z"

START_TEST(columns_by_position_make_a_schema)
{
	assert_shows("2024-01-02 03:04:05,1.5,2.25,7\n",
		PAIRS("columns", "ts:time, bid:price,-, size:u32"), T0 ",1.5,7\n");
	assert_shows("1704164645,-3,x,AB,0.1\n",
		PAIRS("columns", "t:time,a:i8,side:char,venue:char[4],f:f64"), T0 ",-3,x,AB,0.1\n");
}
END_TEST

START_TEST(columns_by_name_make_a_schema)
{
	static const char text[] =
		"seq, Time ,Bid,\"Ask,price\",note\n1,1704164645,1.5,2.25,hello\n";

	assert_shows(
		text, PAIRS("time", "Time", "map", "bid:price=Bid,ask:price=#4"), T0 ",1.5,2.25\n");
	assert_shows(text, PAIRS("map", "bid:price=Bid,at:time=Time"), "1.5," T0 "\n");
}
END_TEST

START_TEST(a_builtin_schema_takes_columns_of_its_names)
{
	static const char text[] = "close,open,low,ts,high,count\n4,1,2,1704164645,5,99\n";

	assert_shows(text, PAIRS("schema", "bar", "interval", "1m"), T0 ",1,5,2,4,\n");
	assert_shows(text, PAIRS("schema", "bar", "interval", "1m", "map", "volume=count"),
		T0 ",1,5,2,4,99\n");
	assert_shows("when,price,size\n1704164645,1.5,3\n",
		PAIRS("schema", "tick", "time", "when", "map", "flags=-"), T0 ",1.5,3,0\n");
	assert_shows("1704164645,1.5,3\n",
		PAIRS("schema", "tick", "columns", "ts,price,size,flags=-"), T0 ",1.5,3,0\n");
	assert_shows("1704164645,1.5,3\n",
		PAIRS("schema", "tick", "header", "no", "map", "ts=#1,price=#2,flags=-"),
		T0 ",1.5,,0\n");
}
END_TEST

START_TEST(a_schema_file_takes_columns_too)
{
	static const char schema[] = "schema q\nkey at\nbid i32 scale=-2 null=min\nat u64 time\n";
	char path[] = "/tmp/stoup-test-XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_eq(write(fd, schema, strlen(schema)), (ssize_t)strlen(schema));
	(void)close(fd);
	assert_shows("at,bid\n1704164645,1.25\n1704164645,\n", PAIRS("schema", path),
		"1.25," T0 "\n," T0 "\n");
	assert_fails("at,bid\n1704164645,1.255\n", PAIRS("schema", path), -EBADMSG,
		"t.csv: line 2, column 2 (bid): \"1.255\" has more decimals");
	(void)unlink(path);
}
END_TEST

START_TEST(bars_carry_their_interval)
{
	static const char *const pairs[] = {"schema", "bar", "interval", "5m", NULL};
	struct source source = {"ts,open\n", 8};
	struct stoup_csv_options options;
	struct stoup_csv_table *table;
	const struct stoup_schema *schema;

	ck_assert_int_eq(options_set(&options, pairs, NULL), 0);
	ck_assert_int_eq(
		stoup_csv_table_create(source_read, &source, "t", &options, &table, NULL), 0);
	schema = stoup_csv_table_schema(table);
	ck_assert_str_eq(schema->name, "bar");
	ck_assert_uint_eq(schema->flags, STOUP_SCHEMA_BAR);
	ck_assert_uint_eq(schema->interval_ns, UINT64_C(300000000000));
	ck_assert_uint_eq(schema->hash, stoup_schema_hash(schema));
	ck_assert_uint_ne(schema->hash, stoup_schema_by_name("bar")->hash);
	stoup_csv_table_destroy(table);
	assert_fails("", PAIRS("schema", "bar"), -EINVAL, "say how long the bars are");
	assert_fails("", PAIRS("schema", "ohlcv-1m", "interval", "1h"), -EINVAL, "another length");
	assert_fails("", PAIRS("schema", "tick", "interval", "1h"), -EINVAL, "is for bars");
}
END_TEST

START_TEST(the_header_is_found_or_told)
{
	const char *const columns = "ts:time,name:char[9],bid:price";

	assert_shows("ts,name,bid\n1704164645,x,1\n", PAIRS("columns", columns), T0 ",x,1\n");
	assert_shows("1704164645,name,1\n", PAIRS("columns", columns), T0 ",name,1\n");
	assert_shows("1704164645,x,1\n1704164645,y,2\n", PAIRS("columns", columns, "header", "yes"),
		T0 ",y,2\n");
	assert_shows("ts,name,bid\n", PAIRS("columns", columns), "");
	assert_shows("", PAIRS("columns", columns), "");
	/* One good number makes it a row, and the row is mangled. */
	assert_fails("1704164645,name,bid\n", PAIRS("columns", columns), -EBADMSG,
		"t.csv: line 1, column 3 (bid): \"bid\" is not a decimal number");
	assert_fails("ts,name,bid\n", PAIRS("columns", columns, "header", "no"), -EBADMSG,
		"line 1, column 1 (ts): \"ts\" is not a time");
	assert_fails("ts,bid\n", PAIRS("time", "ts", "map", "bid:price=bid", "header", "no"),
		-EINVAL, "columns have no names");
}
END_TEST

START_TEST(series_of_mistakes_in_options)
{
	static const char head[] = "ts,a,a\n";
	const char *const none = "say what the columns are";

	assert_fails(head, PAIRS("time", "ts"), -EINVAL, none);
	assert_fails(
		head, PAIRS("columns", "ts:time", "map", "a:u8=a"), -EINVAL, "give one of them");
	assert_fails(head, PAIRS("columns", "ts"), -EINVAL, "\"ts\" has no type");
	assert_fails(head, PAIRS("columns", "ts:tyme"), -EINVAL, "\"tyme\" is not a type");
	assert_fails(head, PAIRS("columns", "ts:bytes[3]"), -EINVAL, "is not a type");
	assert_fails(head, PAIRS("columns", ":u8"), -EINVAL, "is not a field's name");
	assert_fails(head, PAIRS("columns", "a b:time"), -EINVAL, "the name of field 0");
	assert_fails(head, PAIRS("columns", "a:u8,b:u8"), -EINVAL, "no column is the key");
	assert_fails(head, PAIRS("columns", "a:time,b:time"), -EINVAL, "both a and b are times");
	assert_fails(head, PAIRS("columns", "a:time,a:u8"), -EINVAL, "two fields are named a");
	assert_fails(head, PAIRS("columns", "a:time,b:u8=c"), -EINVAL, "only field=- may");
	assert_fails(head, PAIRS("columns", "a:time,b:u8=-"), -EINVAL, "only with --schema");
	assert_fails(head, PAIRS("map", "a"), -EINVAL, "not of the form field=column");
	assert_fails(head, PAIRS("schema", "none"), -EINVAL,
		"schema none: no such file, nor built in: mbo, trades, tick, bar and");
	assert_fails(head, PAIRS("schema", "bars"), -EINVAL, "nor built in: did you mean bar?");
	assert_fails(head, PAIRS("schema", "trade"), -EINVAL, "nor built in: did you mean trades?");
	assert_fails(head, PAIRS("schema", "ohlcv"), -EINVAL, "did you mean ohlcv-1s or ohlcv-1m?");
	assert_fails(head, PAIRS("schema", "definitoin"), -EINVAL, "did you mean definition?");
	assert_fails(head, PAIRS("schema", "a-name-that-is-longer-than-any-schemas"), -EINVAL,
		"nor built in: mbo, trades");
	assert_fails(
		head, PAIRS("schema", "no/file"), -ENOENT, "schema file no/file: No such file");
	assert_fails(head, PAIRS("schema", "tick", "columns", "ts:time"), -EINVAL, "--schema says");
	assert_fails(head, PAIRS("schema", "tick", "map", "x=ts"), -EINVAL, "has no field x");
	assert_fails(head, PAIRS("schema", "tick", "map", "ts=a,ts=b"), -EINVAL, "two columns for");
	assert_fails(head, PAIRS("schema", "tick", "scale", "3"), -EINVAL, "has its scales");
	assert_fails(head, PAIRS("schema", "tick", "columns", "ts,-,-", "time", "ts"), -EINVAL,
		"--time is of no use");
}
END_TEST

START_TEST(series_of_mistakes_between_options_and_columns)
{
	static const char head[] = "ts,a,a\n";

	assert_fails(head, PAIRS("columns", "ts:time"), -EINVAL,
		"t.csv: line 1 has 3 columns, but --columns names 1");
	assert_fails(head, PAIRS("time", "t", "map", "a:u8=#2"), -EINVAL,
		"t.csv: line 1: no column is named t; the first row is: ts,a,a");
	assert_fails(head, PAIRS("time", "ts", "map", "a:u8=a"), -EINVAL,
		"line 1: two columns are named a; name it by its number, such as #3");
	assert_fails(head, PAIRS("time", "ts", "map", "a:u8=#4"), -EINVAL,
		"there is no column #4, only 3");
	assert_fails(head, PAIRS("schema", "tick", "time", "ts"), -EINVAL,
		"no column holds flags of schema tick");
	assert_fails(head, PAIRS("schema", "tick", "map", "price=#2,flags=-,ts=-"), -EINVAL,
		"no column holds the key ts");
	assert_fails("x,y\n", PAIRS("schema", "tick"), -EINVAL, "no column holds the key ts");
	assert_fails("ts,price,price\n", PAIRS("schema", "tick", "map", "flags=-"), -EINVAL,
		"two columns are named price");
}
END_TEST

START_TEST(option_values_are_checked_and_others_left_alone)
{
	static const char *const bad[][2] = {{"scale", "19"}, {"scale", "-1"}, {"scale", "x"},
		{"interval", "-1s"}, {"interval", "m"}, {"header", "maybe"}, {"delimiter", ""},
		{"delimiter", ",,"}, {"time-format", "xyz"}, {"time-zone", "CET"}};
	struct stoup_csv_options options;
	struct stoup_error err = {0};

	stoup_csv_options_init(&options);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		err.text[0] = '\0';
		ck_assert_int_eq(stoup_csv_option(&options, bad[i][0], bad[i][1], &err), -EINVAL);
		ck_assert_uint_gt(strlen(err.text), 10);
	}
	ck_assert_int_eq(stoup_csv_option(&options, "codec", "zstd", &err), -ENOENT);
	ck_assert_int_eq(stoup_csv_option(&options, "series", "A/B/c", &err), 0);
	ck_assert_str_eq(options.series, "A/B/c");
	ck_assert_int_eq(stoup_csv_option(&options, "delimiter", "tab", &err), 0);
	ck_assert_int_eq(options.delimiter, '\t');
	ck_assert_int_eq(stoup_csv_option(&options, "delimiter", ";", &err), 0);
	ck_assert_int_eq(options.delimiter, ';');
	for (const char *const *name = PAIRS("series", "columns", "map", "schema", "time",
		     "time-format", "time-zone", "interval", "scale", "header", "delimiter");
		*name; name++)
		ck_assert_msg(strstr(stoup_csv_usage(), *name) != NULL, "help lacks %s", *name);
}
END_TEST

/* ---- values ---------------------------------------------------------------------------------- */

START_TEST(numbers_are_exact_in_every_type)
{
	assert_shows("1704164645,255,-128,65535,-32768,4294967295,-2147483648\n",
		PAIRS("columns", "t:time,a:u8,b:i8,c:u16,d:i16,e:u32,f:i32"),
		T0 ",255,-128,65535,-32768,4294967295,-2147483648\n");
	assert_shows(
		"1704164645,18446744073709551615,-9223372036854775808,9223372036.854775806,1e3\n",
		PAIRS("columns", "t:time,a:u64,b:i64,c:price,d:u16"),
		T0 ",18446744073709551615,-9223372036854775808,9223372036.854775806,1000\n");
	assert_shows("1704164645,true,FALSE, 7 ,\t1.5\n",
		PAIRS("columns", "t:time,a:u8,b:u8,c:u8,d:price"), T0 ",1,0,7,1.5\n");
	assert_shows("1704164645,1.12170,1.5e-5\n",
		PAIRS("columns", "t:time,a:price,b:price", "scale", "6"), T0 ",1.1217,0.000015\n");
	assert_shows("1704164645,1.5e3,-0.25\n", PAIRS("columns", "t:time,a:f64,b:f32"),
		T0 ",1500,-0.25\n");
}
END_TEST

START_TEST(empty_fields_are_undefined_where_that_exists)
{
	assert_shows("1704164645,,\"\",  \n",
		PAIRS("columns", "t:time,a:price,b:char[4],c:time", "time", "t"), T0 ",,,\n");
	assert_fails("1704164645,\n", PAIRS("columns", "t:time,a:u8"), -EBADMSG,
		"line 1, column 2 (a): \"\" is empty, and the field has no value");
	assert_fails(",1\n", PAIRS("columns", "t:time,a:u8"), -EBADMSG,
		"line 1, column 1 (t): \"\" is not a time between 1970 and 2262");
}
END_TEST

START_TEST(values_that_do_not_fit_are_refused)
{
	static const struct {
		const char *type, *text, *message;
	} values[] = {
		{"u8", "256", "does not fit"},
		{"u8", "-1", "does not fit"},
		{"i8", "128", "does not fit"},
		{"i8", "-129", "does not fit"},
		{"u16", "65536", "does not fit"},
		{"u32", "4294967296", "does not fit"},
		{"u64", "18446744073709551616", "does not fit"},
		{"i64", "9223372036854775808", "does not fit"},
		{"u8", "1.5", "is not a whole multiple"},
		{"u16", "true", "is not a decimal number"},
		{"u8", "truth", "is not a decimal number"},
		{"price", "1.0000000001", "more decimals"},
		{"price", "9223372037", "does not fit"},
		{"price", "9223372036.854775807", "stands for \"undefined\""},
		{"price", "1.5x", "is not a decimal number"},
		{"price", "0x10", "is not a decimal number"},
		{"price", "1,5", "columns instead of"},
		{"price", "inf", "is not a decimal number"},
		{"f64", "nan", "is not a decimal number"},
		{"f64", "0x1p3", "is not a decimal number"},
		{"f64", "1e999", "does not fit"},
		{"f32", "1e39", "does not fit"},
		{"f64", "1e", "is not a decimal number"},
		{"char[2]", "abc", "is longer than the field"},
		{"char", "ab", "is longer than the field"},
		{"time", "2024-02-30", "does not exist"},
	};

	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		char columns[64], text[128], place[64];

		(void)snprintf(columns, sizeof columns, "t:time,v:%s", values[i].type);
		(void)snprintf(text, sizeof text, "1704164645,%s\n",
			strchr(values[i].text, ',') ? "1\n1,5,2" : values[i].text);
		assert_fails(text, PAIRS("columns", columns, "header", "no", "time", "t"), -EBADMSG,
			values[i].message);
		if (strchr(values[i].text, ','))
			continue;
		(void)snprintf(place, sizeof place, "t.csv: line 1, column 2 (v): \"%s\" ",
			values[i].text);
		assert_fails(text, PAIRS("columns", columns, "header", "no", "time", "t"), -EBADMSG,
			place);
	}
}
END_TEST

START_TEST(keys_must_be_positive)
{
	const char *const message = "is not a time between 1970 and 2262";

	assert_fails("0\n", PAIRS("columns", "t:time", "time-format", "ns"), -EBADMSG, message);
	assert_fails("-1\n", PAIRS("columns", "t:time", "time-format", "ns"), -EBADMSG, message);
	assert_fails("1969-12-31\n", PAIRS("columns", "t:time"), -EBADMSG, message);
	assert_shows("1\n", PAIRS("columns", "t:time", "time-format", "ns"),
		"1970-01-01T00:00:00.000000001Z\n");
}
END_TEST

START_TEST(mangled_rows_are_told_with_their_place)
{
	const char *const columns = "t:time,v:u8";

	assert_fails("1704164645,1\n1704164645\n", PAIRS("columns", columns), -EBADMSG,
		"t.csv: line 2: 1 columns instead of 2");
	assert_fails("1704164645,1\n\n1704164645,1,1\n", PAIRS("columns", columns), -EBADMSG,
		"t.csv: line 3: 3 columns instead of 2");
	assert_fails("1704164645,\"1\n\"\n1704164645,\"2\n", PAIRS("columns", columns), -EBADMSG,
		"t.csv: line 1, column 2 (v): \"1?\" is not a decimal number");
	assert_fails("1704164645,1\n1704164645,\"2\n", PAIRS("columns", columns), -EBADMSG,
		"t.csv: line 2, column 2: the quote that starts here is not closed");
	assert_fails("1704164645,0123456789012345678901234567890123456789x\n",
		PAIRS("columns", columns), -EBADMSG,
		"(v): \"0123456789012345678901234567890123456789...\" is not");
	assert_fails("1704164645,012345678901234567890123456789012345678\xe2\x82\xac\n",
		PAIRS("columns", columns), -EBADMSG,
		"(v): \"012345678901234567890123456789012345678...\" is not");
}
END_TEST

START_TEST(times_and_delimiters_follow_their_options)
{
	assert_shows("02/01/2024 04:04:05;1\n",
		PAIRS("columns", "t:time,v:u8", "delimiter", ";", "time-zone", "+01:00",
			"time-format", "%d/%m/%Y %H:%M:%S"),
		T0 ",1\n");
	assert_fails("2024-01-02;1\n",
		PAIRS("columns", "t:time,v:u8", "delimiter", ";", "time-format", "ms"), -EBADMSG,
		"line 1, column 1 (t): \"2024-01-02\" is not a number of an epoch");
}
END_TEST

/* ---- real files ------------------------------------------------------------------------------ */

static const struct {
	const char *file;
	const char *const *pairs;
	uint32_t record_cnt;
	uint32_t price_cnt; /* columns 2 to price_cnt + 1 are prices */
} files[] = {
	{"fxcm-gbpusd-m1-bid-2012.csv",
		PAIRS("schema", "bar", "interval", "1m", "time", "timestamp"), 30117, 4},
	{"truefx-usdjpy-ticks.csv",
		PAIRS("time", "timestamp", "map", "bid:price=bid,ask:price=ask"), 1000, 2},
	{"quote_tick_data.csv", PAIRS("columns", "ts:time,bid:price,ask:price,-"), 9500, 2},
	{"6EH4-1min-bars-202401.csv.gz",
		PAIRS("schema", "bar", "interval", "1m", "time", "timestamp_utc"), 29996, 4},
	{"lobster-AAPL-20120621-message_10.csv",
		PAIRS("columns", "ts:time,type:u8,id:u64,size:u32,price:i64,side:i8", "time-format",
			"s"),
		999, 0},
};

#define FILE_CNT (sizeof files / sizeof files[0])

static int data_path(const char *file, char *path, size_t cap)
{
	const char *dir = getenv("STOUP_DATA");
	const char *source = getenv("STOUP_SOURCE_DIR");

	if (dir)
		(void)snprintf(path, cap, "%s/csv/%s", dir, file);
	else
		(void)snprintf(path, cap, "%s/../shared/data/csv/%s", source ? source : ".", file);
	return access(path, R_OK) == 0;
}

/* The same decimal as in a record: the source's text without the zeros behind its fraction. */
static void strip_zeros(char *text)
{
	size_t len = strlen(text);

	if (!strchr(text, '.'))
		return;
	while (text[len - 1] == '0')
		text[--len] = '\0';
	if (text[len - 1] == '.')
		text[len - 1] = '\0';
}

/* Compare a record's prices with the line of the file that it came from. */
static void assert_prices(const struct stoup_schema *schema, const struct stoup_csv_record *record,
	char *line, uint32_t price_cnt)
{
	(void)strsep(&line, ",");
	for (uint32_t i = 1; i <= price_cnt; i++) {
		char *column = strsep(&line, ",\r\n");
		char text[64];

		strip_zeros(column);
		(void)stoup_format_field(&schema->fields[i], record->bytes, text, sizeof text);
		if (strcmp(text, column) != 0)
			ck_abort_msg("line %llu: %s is %s", (unsigned long long)record->where.line,
				column, text);
	}
}

START_TEST(real_files_are_read_whole_and_their_prices_round_trip)
{
	struct stoup_csv_options options;
	struct stoup_csv_table *table;
	struct stoup_csv_record record;
	struct stoup_input *input, *again;
	struct stoup_error err = {0};
	char path[4200];
	uint8_t *text;
	uint32_t cnt = 0;
	int rc;
	const size_t cap = 4u << 20;

	if (!data_path(files[_i].file, path, sizeof path))
		return;
	text = malloc(cap);
	ck_assert_int_eq(stoup_input_open(path, &again, &err), 0);
	rc = (int)stoup_input_read(again, text, cap - 1, &err);
	ck_assert_int_gt(rc, 0);
	text[rc] = '\0';
	stoup_input_close(again);

	ck_assert_int_eq(options_set(&options, files[_i].pairs, &err), 0);
	ck_assert_int_eq(stoup_input_open(path, &input, &err), 0);
	rc = stoup_csv_table_create(input_read, input, path, &options, &table, &err);
	ck_assert_msg(rc == 0, "%s", err.text);
	while ((rc = stoup_csv_table_next(table, &record, &err)) > 0) {
		char line[256];

		(void)snprintf(line, sizeof line, "%.255s", text + record.where.file_off);
		assert_prices(stoup_csv_table_schema(table), &record, line, files[_i].price_cnt);
		cnt++;
	}
	ck_assert_msg(rc == 0, "%s", err.text);
	ck_assert_uint_eq(cnt, files[_i].record_cnt);
	stoup_csv_table_destroy(table);
	stoup_input_close(input);
	free(text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("csv_table");
	TCase *tcase = tcase_create("csv_table");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, columns_by_position_make_a_schema);
	tcase_add_test(tcase, columns_by_name_make_a_schema);
	tcase_add_test(tcase, a_builtin_schema_takes_columns_of_its_names);
	tcase_add_test(tcase, a_schema_file_takes_columns_too);
	tcase_add_test(tcase, bars_carry_their_interval);
	tcase_add_test(tcase, the_header_is_found_or_told);
	tcase_add_test(tcase, series_of_mistakes_in_options);
	tcase_add_test(tcase, series_of_mistakes_between_options_and_columns);
	tcase_add_test(tcase, option_values_are_checked_and_others_left_alone);
	tcase_add_test(tcase, numbers_are_exact_in_every_type);
	tcase_add_test(tcase, empty_fields_are_undefined_where_that_exists);
	tcase_add_test(tcase, values_that_do_not_fit_are_refused);
	tcase_add_test(tcase, keys_must_be_positive);
	tcase_add_test(tcase, mangled_rows_are_told_with_their_place);
	tcase_add_test(tcase, times_and_delimiters_follow_their_options);
	tcase_add_loop_test(
		tcase, real_files_are_read_whole_and_their_prices_round_trip, 0, (int)FILE_CNT);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
