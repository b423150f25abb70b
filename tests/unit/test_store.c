/* SPDX-License-Identifier: Apache-2.0 */
/* test_store.c - which files make up a store, and how a writer changes it. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "codec/block.h"
#include "inject.h"
#include "producer/store.h"
#include "producer/volume_file.h"

static char dir_path[256];

static void setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir_path, sizeof(dir_path), "%s/stoup-store-XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir_path));
}

static void teardown(void)
{
	char path[600];
	struct dirent *entry;
	DIR *dir = opendir(dir_path);

	inject_stop();
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", dir_path, entry->d_name);
		unlink(path);
	}
	if (dir)
		closedir(dir);
	rmdir(dir_path);
}

/* ---- making volumes -------------------------------------------------------------------------- */

/* One record: its key and nothing else. */
static const struct stoup_vol_field key_field = {
	.name = "key", .type = STOUP_TYPE_I64, .flags = STOUP_FIELD_KEY, .cnt = 1};

struct spec {
	uint64_t seq;
	uint32_t batch_idx, batch_cnt;
	uint8_t mark; /* the id's first bytes */
	uint8_t (*superseded)[16];
	size_t superseded_cnt;
	int64_t first, last; /* keys of its two records; 0: one record, its key from seq */
};

static void spec_id(const struct spec *spec, uint8_t id[16])
{
	memset(id, spec->mark, 14);
	id[14] = (uint8_t)spec->batch_idx;
	id[15] = (uint8_t)(spec->batch_idx >> 8);
}

static struct stoup_vol_header spec_header(const struct spec *spec)
{
	struct stoup_vol_header header = {.major = STOUP_VOL_MAJOR,
		.minor = STOUP_VOL_MINOR,
		.created_ns = 1,
		.ingest_seq = spec->seq,
		.batch_idx = spec->batch_idx,
		.batch_cnt = spec->batch_cnt};

	spec_id(spec, header.id);
	return header;
}

/* Write a volume with one series "S" of one record or two under its temporary name. */
static struct stoup_vol_header temp_make(
	const struct stoup_store_lock *lock, const struct spec *spec)
{
	struct stoup_vol_header header = spec_header(spec);
	struct stoup_vol_schema schema = {.name = "k", .stride = 8, .align = 8, .field_cnt = 1};
	struct stoup_field field;
	struct stoup_schema plain = {
		.name = "k", .stride = 8, .align = 8, .field_cnt = 1, .fields = &field};
	struct stoup_volume_file file;
	int64_t key = (int64_t)spec->seq * 1000 + spec->batch_idx, block, series;
	int64_t keys[2] = {spec->first ? spec->first : key, spec->last};
	uint32_t cnt = spec->first ? 2 : 1;
	int schema_idx;
	size_t i;

	memcpy(&field, &key_field, sizeof(field));
	schema.hash = stoup_schema_hash(&plain);
	ck_assert_int_eq(stoup_volume_file_create(lock, &header, &file, NULL), 0);
	schema_idx = stoup_vol_add_schema(file.writer, &schema, &key_field);
	ck_assert_int_ge(schema_idx, 0);
	series = stoup_vol_add_series(file.writer, "S", (uint32_t)schema_idx, 0);
	ck_assert_int_ge(series, 0);
	for (i = 0; i < spec->superseded_cnt; i++)
		ck_assert_int_eq(stoup_vol_add_superseded(file.writer, spec->superseded[i]), 0);
	block = stoup_volume_file_block(&file,
		&(struct stoup_volume_block){.schema_idx = (uint32_t)schema_idx,
			.raw_len = cnt * 8,
			.stored_len = cnt * 8,
			.stored = keys,
			.stored_hash = stoup_vol_hash(keys, cnt * 8),
			.raw_hash = stoup_vol_hash(keys, cnt * 8)},
		NULL);
	ck_assert_int_ge(block, 0);
	ck_assert_int_eq(stoup_vol_add_segment(file.writer, (uint32_t)series, (uint32_t)block, 0,
				 cnt, keys[0], keys[cnt - 1]),
		0);
	ck_assert_int_eq(stoup_volume_file_finish(&file, NULL), 0);
	return header;
}

static void volume_make(const struct spec *spec)
{
	struct stoup_store_lock lock;
	struct stoup_vol_header header;

	ck_assert_int_eq(stoup_store_lock(dir_path, &lock, NULL), 0);
	header = temp_make(&lock, spec);
	ck_assert_int_eq(stoup_store_publish(&lock, &header, 1, NULL), 0);
	stoup_store_unlock(&lock, 0);
}

static void path_of(const struct spec *spec, char path[600])
{
	char name[STOUP_STORE_NAME_CAP];
	struct stoup_vol_header header = spec_header(spec);

	stoup_store_name(&header, name);
	snprintf(path, 600, "%s/%s", dir_path, name);
}

/* Flip one byte; a negative offset counts from the end. */
static void damage(const struct spec *spec, int off)
{
	char path[600];
	uint8_t byte;
	struct stat st;
	int fd;

	path_of(spec, path);
	fd = open(path, O_RDWR);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	if (off < 0)
		off += (int)st.st_size;
	ck_assert_int_eq(pread(fd, &byte, 1, off), 1);
	byte ^= 0x40;
	ck_assert_int_eq(pwrite(fd, &byte, 1, off), 1);
	close(fd);
}

/* ---- looking --------------------------------------------------------------------------------- */

static struct stoup_store *store_open(void)
{
	struct stoup_store *store = NULL;
	struct stoup_error err = {0};

	ck_assert_msg(stoup_store_open(dir_path, &store, &err) == 0, "%s", err.text);
	return store;
}

/* Check that just these marks are served, in this order. */
static void check_served(const char *marks, uint32_t fault_cnt, uint32_t stale_cnt)
{
	struct stoup_store *store = store_open();
	char found[64] = "";
	uint32_t i;

	for (i = 0; i < store->volume_cnt; i++)
		found[i] = (char)store->volumes[i]->index->header.id[0];
	ck_assert_str_eq(found, marks);
	ck_assert_uint_eq(store->fault_cnt, fault_cnt);
	ck_assert_uint_eq(store->stale_cnt, stale_cnt);
	stoup_store_close(store);
}

static int file_cnt(const char *prefix)
{
	struct dirent *entry;
	DIR *dir = opendir(dir_path);
	int cnt = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)))
		cnt += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
	closedir(dir);
	return cnt;
}

static void sweep(void)
{
	struct stoup_store_lock lock;

	ck_assert_int_eq(stoup_store_lock(dir_path, &lock, NULL), 0);
	stoup_store_sweep(&lock);
	stoup_store_unlock(&lock, 0);
}

/* ---- which files count ----------------------------------------------------------------------- */

START_TEST(an_empty_directory_is_a_store_without_volumes)
{
	struct stoup_store *store = store_open();

	ck_assert_uint_eq(store->volume_cnt, 0);
	ck_assert_uint_eq(store->next_seq, 1);
	stoup_store_close(store);
}
END_TEST

START_TEST(an_absent_store_and_a_file_are_told_apart_with_advice)
{
	struct stoup_error err = {0};
	struct stoup_store *store = NULL;
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/none", dir_path);
	ck_assert_int_eq(stoup_store_open(path, &store, &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.text, "stoup ingest --store"));
	fd = open(path, O_CREAT | O_WRONLY, 0644);
	close(fd);
	ck_assert_int_eq(stoup_store_open(path, &store, &err), -ENOTDIR);
	ck_assert_ptr_nonnull(strstr(err.text, "no directory"));
	ck_assert_ptr_null(store);
}
END_TEST

START_TEST(volumes_are_sorted_by_ingest_and_batch_not_by_name)
{
	/* By name 100000000-... comes before 00000002-...'s neighbours only by chance: nine digits. */
	volume_make(&(struct spec){.seq = 100000000, .batch_cnt = 1, .mark = 'z'});
	volume_make(&(struct spec){.seq = 2, .batch_idx = 1, .batch_cnt = 2, .mark = 'c'});
	volume_make(&(struct spec){.seq = 2, .batch_idx = 0, .batch_cnt = 2, .mark = 'c'});
	volume_make(&(struct spec){.seq = 99999999, .batch_cnt = 1, .mark = 'y'});
	check_served("ccyz", 0, 0);
}
END_TEST

START_TEST(dotted_and_foreign_names_are_no_volumes)
{
	struct stoup_store_lock lock;
	char path[300];

	volume_make(&(struct spec){.seq = 1, .batch_cnt = 1, .mark = 'a'});
	ck_assert_int_eq(stoup_store_lock(dir_path, &lock, NULL), 0);
	temp_make(&lock, &(struct spec){.seq = 2, .batch_cnt = 1, .mark = 'b'});
	stoup_store_unlock(&lock, 0);
	snprintf(path, sizeof(path), "%s/notes.txt", dir_path);
	close(open(path, O_CREAT | O_WRONLY, 0644));
	check_served("a", 0, 0);
}
END_TEST

START_TEST(a_superseded_volume_is_left_out_and_swept)
{
	uint8_t ids[1][16];
	struct spec old = {.seq = 1, .batch_cnt = 1, .mark = 'a'};

	spec_id(&old, ids[0]);
	volume_make(&old);
	volume_make(&(struct spec){.seq = 2, .batch_cnt = 1, .mark = 'b'});
	volume_make(&(struct spec){
		.seq = 3, .batch_cnt = 1, .mark = 'c', .superseded = ids, .superseded_cnt = 1});
	check_served("bc", 0, 1);
	sweep();
	check_served("bc", 0, 0);
	ck_assert_int_eq(file_cnt("00000001"), 0);
}
END_TEST

START_TEST(an_incomplete_batch_is_left_out_and_supersedes_nothing)
{
	uint8_t ids[1][16];
	struct spec old = {.seq = 1, .batch_cnt = 1, .mark = 'a'};
	struct stoup_store *store;

	spec_id(&old, ids[0]);
	volume_make(&old);
	volume_make(&(struct spec){
		.seq = 2, .batch_cnt = 2, .mark = 'b', .superseded = ids, .superseded_cnt = 1});
	check_served("a", 1, 0);
	store = store_open();
	ck_assert_uint_eq(store->faults[0].fault.region, 0);
	ck_assert_ptr_nonnull(
		strstr(store->faults[0].text, "wrote 2 volumes, of which 1 are here"));
	ck_assert_uint_eq(store->next_seq, 3);
	stoup_store_close(store);
	/* Nothing proves a crash, so that a sweep keeps it: its other half may be on its way. */
	sweep();
	ck_assert_int_eq(file_cnt("00000002"), 1);
	volume_make(&(struct spec){.seq = 2,
		.batch_idx = 1,
		.batch_cnt = 2,
		.mark = 'b',
		.superseded = ids,
		.superseded_cnt = 1});
	check_served("bb", 0, 1);
}
END_TEST

START_TEST(a_damaged_member_leaves_its_batch_served)
{
	struct spec second = {.seq = 1, .batch_idx = 1, .batch_cnt = 3, .mark = 'a'};

	volume_make(&(struct spec){.seq = 1, .batch_idx = 0, .batch_cnt = 3, .mark = 'a'});
	volume_make(&second);
	volume_make(&(struct spec){.seq = 1, .batch_idx = 2, .batch_cnt = 3, .mark = 'a'});
	damage(&second, -1); /* trailer: the header still tells what it is */
	check_served("aa", 1, 0);
	damage(&second, 0); /* header, too: now only the name does */
	check_served("aa", 1, 0);
}
END_TEST

START_TEST(a_superseded_member_leaves_its_batch_complete)
{
	uint8_t ids[1][16];
	struct spec second = {.seq = 1, .batch_idx = 1, .batch_cnt = 2, .mark = 'a'};

	spec_id(&second, ids[0]);
	volume_make(&(struct spec){.seq = 1, .batch_idx = 0, .batch_cnt = 2, .mark = 'a'});
	volume_make(&second);
	volume_make(&(struct spec){
		.seq = 2, .batch_cnt = 1, .mark = 'b', .superseded = ids, .superseded_cnt = 1});
	check_served("ab", 0, 1);
	sweep(); /* the superseded member is gone now, and only its id tells of it */
	check_served("ab", 0, 0);
}
END_TEST

START_TEST(a_damaged_volume_is_a_fault_alone_with_its_region)
{
	static const struct {
		int off;
		uint32_t region;
		const char *word;
	} cases[] = {
		{3, STOUP_VOL_REGION_HEADER, "header"},
		{-1, STOUP_VOL_REGION_TRAILER, "trailer"},
		{-80, STOUP_VOL_REGION_FOOTER, "footer"},
	};
	struct spec spec = {.seq = 2, .batch_cnt = 1, .mark = 'b'};
	size_t i;

	volume_make(&(struct spec){.seq = 1, .batch_cnt = 1, .mark = 'a'});
	volume_make(&spec);
	volume_make(&(struct spec){.seq = 3, .batch_cnt = 1, .mark = 'c'});
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stoup_store *store;
		char path[600];

		damage(&spec, cases[i].off);
		check_served("ac", 1, 0);
		store = store_open();
		path_of(&spec, path);
		ck_assert_uint_eq(store->faults[0].fault.region, cases[i].region);
		ck_assert_str_eq(store->faults[0].path, path);
		ck_assert_ptr_nonnull(strstr(store->faults[0].text, cases[i].word));
		ck_assert_ptr_nonnull(strstr(store->faults[0].text, path));
		ck_assert_ptr_nonnull(strstr(store->faults[0].text, "; remove 0000"));
		ck_assert_ptr_nonnull(strstr(store->faults[0].text, " and ingest its range again"));
		stoup_store_close(store);
		damage(&spec, cases[i].off); /* the same flip mends it */
	}
	check_served("abc", 0, 0);
}
END_TEST

START_TEST(empty_and_short_files_directories_and_pipes_are_faults)
{
	char path[300];
	int fd;

	volume_make(&(struct spec){.seq = 1, .batch_cnt = 1, .mark = 'a'});
	snprintf(path, sizeof(path), "%s/empty.stoup", dir_path);
	close(open(path, O_CREAT | O_WRONLY, 0644));
	snprintf(path, sizeof(path), "%s/short.stoup", dir_path);
	fd = open(path, O_CREAT | O_WRONLY, 0644);
	ck_assert_int_eq(write(fd, "0123456789", 10), 10);
	close(fd);
	snprintf(path, sizeof(path), "%s/pipe.stoup", dir_path);
	ck_assert_int_eq(mkfifo(path, 0644), 0);
	snprintf(path, sizeof(path), "%s/nowhere.stoup", dir_path);
	ck_assert_int_eq(symlink("absent", path), 0);
	check_served("a", 4, 0);
}
END_TEST

START_TEST(a_copy_of_a_volume_is_not_served_twice)
{
	struct spec spec = {.seq = 1, .batch_cnt = 1, .mark = 'a'};
	char path[600], copy[600];

	volume_make(&spec);
	path_of(&spec, path);
	snprintf(copy, sizeof(copy), "%s/copy.stoup", dir_path);
	ck_assert_int_eq(link(path, copy), 0);
	check_served("a", 1, 0);
}
END_TEST

/* A volume whose series S spans first..last. */
static void range_make(char mark, uint64_t seq, int64_t first, int64_t last)
{
	volume_make(&(struct spec){
		.seq = seq, .batch_cnt = 1, .mark = (uint8_t)mark, .first = first, .last = last});
}

START_TEST(of_two_volumes_that_overlap_the_later_is_refused_and_both_are_named)
{
	struct stoup_store *store;
	struct stoup_store_fault *fault;

	range_make('a', 1, 1000000000, 9000000000);
	range_make('b', 2, 2000000000, 10000000000);
	check_served("a", 1, 0);
	store = store_open();
	fault = &store->faults[0];
	ck_assert_uint_eq(fault->fault.region, 0);
	ck_assert_int_eq(fault->fault.code, -EEXIST);
	ck_assert_ptr_nonnull(strstr(fault->path, "/00000002-00-62626262.stoup"));
	ck_assert_ptr_nonnull(strstr(fault->text, "/00000002-00-62626262.stoup: left out: it "
						  "overlaps 00000001-00-61616161.stoup; remove "
						  "one of them, or ingest the range again with "
						  "--replace (series S: "));
	ck_assert_ptr_nonnull(strstr(fault->text, "1970-01-01T00:00:02.000000000Z to "
						  "1970-01-01T00:00:10.000000000Z, there "
						  "1970-01-01T00:00:01.000000000Z to "
						  "1970-01-01T00:00:09.000000000Z)"));
	ck_assert_uint_eq(store->overlap_cnt, 1);
	ck_assert_uint_eq(store->overlaps[0]->index->header.id[0], 'b');
	ck_assert_uint_eq(store->next_seq, 3);
	stoup_store_close(store);
}
END_TEST

START_TEST(what_is_refused_is_in_nobodys_way)
{
	range_make('a', 1, 10, 20);
	range_make('b', 2, 5, 90); /* spans all: refused because of a */
	range_make('c', 3, 20, 30);
	range_make('d', 4, 50, 60);
	range_make('e', 5, 30, 50);
	range_make('f', 6, 1, 10);
	range_make('g', 7, 15, 16); /* inside a, whose neighbours it does not meet */
	range_make('h', 8, 55, 70);
	check_served("acdef", 3, 0);
}
END_TEST

START_TEST(one_single_key_twice_is_an_overlap_but_not_inside_a_batch)
{
	range_make('a', 1, 10, 10);
	range_make('b', 2, 10, 10);
	range_make('c', 3, 10, 20);
	check_served("ac", 1, 0);
	for (uint32_t i = 0; i < 3; i++)
		volume_make(&(struct spec){.seq = 4,
			.batch_idx = i,
			.batch_cnt = 3,
			.mark = 'd',
			.first = 20,
			.last = 20});
	check_served("acddd", 1, 0);
}
END_TEST

START_TEST(a_superseded_volume_overlaps_nothing)
{
	uint8_t ids[1][16];

	spec_id(&(struct spec){.mark = 'a'}, ids[0]);
	range_make('a', 1, 10, 20);
	volume_make(&(struct spec){.seq = 2,
		.batch_cnt = 1,
		.mark = 'b',
		.superseded = ids,
		.superseded_cnt = 1,
		.first = 10,
		.last = 20});
	check_served("b", 0, 1);
}
END_TEST

START_TEST(a_rescan_shares_what_it_knows_and_the_old_snapshot_stays)
{
	struct spec spec = {.seq = 1, .batch_cnt = 1, .mark = 'a'};
	struct stoup_store *old, *now = NULL;
	char path[600];
	uint8_t bytes[STOUP_VOL_HEADER_LEN];

	volume_make(&spec);
	old = store_open();
	volume_make(&(struct spec){.seq = 2, .batch_cnt = 1, .mark = 'b'});
	ck_assert_int_eq(stoup_store_rescan(old, -1, &now, NULL), 0);
	ck_assert_uint_eq(old->volume_cnt, 1);
	ck_assert_uint_eq(now->volume_cnt, 2);
	ck_assert_ptr_eq(old->volumes[0], now->volumes[0]);
	ck_assert_uint_eq(old->volumes[0]->refs, 2);
	path_of(&spec, path);
	ck_assert_int_eq(unlink(path), 0);
	stoup_store_close(old);
	/* Unlinked, and still readable through the snapshot that holds it. */
	ck_assert_int_eq(stoup_file_read(now->volumes[0]->fd, bytes, sizeof(bytes), 0), 0);
	stoup_store_close(now);
	check_served("b", 0, 0);
}
END_TEST

/* ---- order of parts -------------------------------------------------------------------------- */

START_TEST(ranges_may_touch_and_not_overlap)
{
	static const struct {
		int64_t a, b, c, d;
		int overlaps;
	} cases[] = {
		{10, 20, 21, 30, 0},
		{10, 20, 20, 30, 0},
		{10, 20, 19, 30, 1},
		{10, 20, 10, 20, 1},
		{10, 30, 15, 20, 1},
		{10, 30, 10, 15, 1},
		{10, 10, 10, 10, 1},
		{10, 10, 10, 20, 0},
		{10, 10, 5, 10, 0},
		{10, 10, 5, 15, 1},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_int_eq(
			stoup_store_range_overlaps(cases[i].a, cases[i].b, cases[i].c, cases[i].d),
			cases[i].overlaps);
		ck_assert_int_eq(
			stoup_store_range_overlaps(cases[i].c, cases[i].d, cases[i].a, cases[i].b),
			cases[i].overlaps);
	}
}
END_TEST

START_TEST(parts_follow_each_other_by_key_and_then_by_ingest)
{
	struct stoup_vol_index first = {.header = {.ingest_seq = 1}},
			       second = {.header = {.ingest_seq = 2}};
	struct stoup_vol_series a = {.first_key = 10, .last_key = 20},
				b = {.first_key = 5, .last_key = 10},
				c = {.first_key = 10, .last_key = 10};

	ck_assert_int_lt(stoup_store_part_cmp(&second, &b, &first, &a), 0);
	/* Ingested later, and yet before it: else the keys would step back. */
	ck_assert_int_lt(stoup_store_part_cmp(&second, &c, &first, &a), 0);
	ck_assert_int_lt(stoup_store_part_cmp(&first, &c, &second, &c), 0);
	ck_assert_int_eq(stoup_store_part_cmp(&first, &c, &first, &c), 0);
}
END_TEST

/* ---- the writer ------------------------------------------------------------------------------ */

START_TEST(a_second_writer_is_refused_until_the_first_has_ended)
{
	struct stoup_store_lock one, two;
	struct stoup_error err = {0};

	ck_assert_int_eq(stoup_store_lock(dir_path, &one, NULL), 0);
	ck_assert_int_eq(stoup_store_lock(dir_path, &two, &err), -EBUSY);
	ck_assert_ptr_nonnull(strstr(err.text, "another writer holds store"));
	ck_assert_ptr_nonnull(strstr(err.text, dir_path));
	stoup_store_unlock(&one, 0);
	ck_assert_int_eq(stoup_store_lock(dir_path, &two, &err), 0);
	stoup_store_unlock(&two, 0);
}
END_TEST

START_TEST(a_dead_writer_holds_nothing)
{
	struct stoup_store_lock lock;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(stoup_store_lock(dir_path, &lock, NULL) == 0 ? 0 : 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(stoup_store_lock(dir_path, &lock, NULL), 0);
	stoup_store_unlock(&lock, 0);
}
END_TEST

START_TEST(a_lock_makes_the_directory_and_can_undo_it)
{
	struct stoup_store_lock lock;
	struct stoup_error err = {0};
	struct stat st;
	char path[300], deep[320];

	snprintf(path, sizeof(path), "%s/new", dir_path);
	ck_assert_int_eq(stoup_store_lock(path, &lock, NULL), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	stoup_store_unlock(&lock, 1);
	ck_assert_int_eq(stat(path, &st), -1);
	snprintf(deep, sizeof(deep), "%s/x/y", path);
	ck_assert_int_eq(stoup_store_lock(deep, &lock, &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.text, "directory above"));
}
END_TEST

START_TEST(undoing_keeps_a_directory_that_was_there)
{
	struct stoup_store_lock lock;
	struct stat st;

	ck_assert_int_eq(stoup_store_lock(dir_path, &lock, NULL), 0);
	stoup_store_unlock(&lock, 1);
	ck_assert_int_eq(stat(dir_path, &st), 0);
}
END_TEST

/* Publish a batch of three while a call fails; the store must be as it was. */
static void check_publish_fails(enum inject_call kind, long nth, int code)
{
	struct stoup_vol_header headers[3];
	struct stoup_store_lock lock;
	struct stoup_error err = {0};
	uint32_t i;

	ck_assert_int_eq(stoup_store_lock(dir_path, &lock, NULL), 0);
	for (i = 0; i < 3; i++)
		headers[i] = temp_make(&lock,
			&(struct spec){.seq = 5, .batch_idx = i, .batch_cnt = 3, .mark = 'n'});
	inject_after(kind, nth, code, 0);
	ck_assert_int_eq(stoup_store_publish(&lock, headers, 3, &err), -code);
	inject_stop();
	stoup_store_unlock(&lock, 0);
	ck_assert_ptr_nonnull(strstr(err.text, dir_path));
	ck_assert_ptr_nonnull(strstr(err.text, "the store is unchanged"));
	check_served("a", 0, 0);
	ck_assert_int_eq(file_cnt(".tmp-"), 0);
}

START_TEST(a_failed_publish_leaves_the_store_as_it_was)
{
	long nth;

	volume_make(&(struct spec){.seq = 1, .batch_cnt = 1, .mark = 'a'});
	for (nth = 1; nth <= 3; nth++)
		check_publish_fails(INJECT_RENAME, nth, ENOSPC);
	check_publish_fails(INJECT_FSYNC, 1, EIO);
}
END_TEST

START_TEST(a_publish_never_overwrites_a_file)
{
	struct spec spec = {.seq = 5, .batch_cnt = 1, .mark = 'n'};
	struct stoup_store_lock lock;
	struct stoup_vol_header header;
	struct stat before, after;
	char path[600];

	volume_make(&spec);
	path_of(&spec, path);
	ck_assert_int_eq(stat(path, &before), 0);
	ck_assert_int_eq(stoup_store_lock(dir_path, &lock, NULL), 0);
	header = temp_make(&lock, &spec);
	ck_assert_int_eq(stoup_store_publish(&lock, &header, 1, NULL), -EEXIST);
	stoup_store_unlock(&lock, 0);
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
}
END_TEST

START_TEST(a_crash_between_two_renames_is_swept_away)
{
	struct stoup_store_lock lock;
	struct stoup_vol_header headers[2];
	uint32_t i;

	volume_make(&(struct spec){.seq = 1, .batch_cnt = 1, .mark = 'a'});
	ck_assert_int_eq(stoup_store_lock(dir_path, &lock, NULL), 0);
	for (i = 0; i < 2; i++)
		headers[i] = temp_make(&lock,
			&(struct spec){.seq = 2, .batch_idx = i, .batch_cnt = 2, .mark = 'b'});
	ck_assert_int_eq(stoup_store_publish(&lock, headers, 1, NULL), 0);
	stoup_store_unlock(&lock, 0);
	check_served("a", 0, 0);
	ck_assert_int_eq(file_cnt("00000002"), 1);
	sweep();
	check_served("a", 0, 0);
	ck_assert_int_eq(file_cnt("00000002"), 0);
	ck_assert_int_eq(file_cnt(".tmp-"), 0);
}
END_TEST

/* A snapshot of a store whose only ingest is not whole: known, and no fault. */
static void check_unfinished(const char *name)
{
	struct stoup_store *store = store_open();
	struct stoup_error err = {0};

	ck_assert_uint_eq(store->volume_cnt, 0);
	ck_assert_uint_eq(store->fault_cnt, 0);
	ck_assert_uint_eq(store->unfinished_cnt, 1);
	ck_assert_str_eq(store->unfinished[0], name);
	ck_assert_uint_eq(store->next_seq, 2);
	ck_assert_int_eq(stoup_store_holds_nothing(store, &err), 1);
	ck_assert_ptr_nonnull(strstr(err.text, STOUP_STORE_UNFINISHED_TEXT));
	stoup_store_close(store);
}

START_TEST(a_publish_that_runs_or_was_cut_short_is_no_fault)
{
	struct spec first = {.seq = 1, .batch_cnt = 2, .mark = 'a'};
	struct spec second = {.seq = 1, .batch_idx = 1, .batch_cnt = 2, .mark = 'a'};
	struct stoup_vol_header headers[2];
	struct stoup_store_lock lock;
	char name[STOUP_STORE_NAME_CAP], temp[STOUP_STORE_NAME_CAP], path[600];

	ck_assert_int_eq(stoup_store_lock(dir_path, &lock, NULL), 0);
	headers[0] = temp_make(&lock, &first);
	headers[1] = temp_make(&lock, &second);
	ck_assert_int_eq(stoup_store_publish(&lock, headers, 1, NULL), 0);
	stoup_store_name(&headers[0], name);
	check_unfinished(name); /* it runs */
	stoup_store_unlock(&lock, 0);
	check_unfinished(name); /* it died, and its temporary file lies there */
	stoup_store_temp_name(&headers[1], temp);
	snprintf(path, sizeof(path), "%s/%s", dir_path, temp);
	ck_assert_int_eq(unlink(path), 0);
	check_served("", 1, 0); /* the other half is truly missing */
	ck_assert_int_eq(stoup_store_lock(dir_path, &lock, NULL), 0);
	check_unfinished(name); /* it may be that writer's, who has just begun to take it back */
	/* Not so where it is not the newest ingest. */
	headers[0] = temp_make(&lock, &(struct spec){.seq = 2, .batch_cnt = 1, .mark = 'b'});
	ck_assert_int_eq(stoup_store_publish(&lock, headers, 1, NULL), 0);
	check_served("b", 1, 0);
	stoup_store_unlock(&lock, 0);
}
END_TEST

START_TEST(ids_are_random_and_end_with_the_first_index)
{
	uint8_t a[16], b[16];

	ck_assert_int_eq(stoup_store_id_make(a), 0);
	ck_assert_int_eq(stoup_store_id_make(b), 0);
	ck_assert_mem_ne(a, b, 14);
	ck_assert_uint_eq(a[14] + a[15], 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store");
	TCase *tc = tcase_create("store");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_empty_directory_is_a_store_without_volumes);
	tcase_add_test(tc, an_absent_store_and_a_file_are_told_apart_with_advice);
	tcase_add_test(tc, volumes_are_sorted_by_ingest_and_batch_not_by_name);
	tcase_add_test(tc, dotted_and_foreign_names_are_no_volumes);
	tcase_add_test(tc, a_superseded_volume_is_left_out_and_swept);
	tcase_add_test(tc, an_incomplete_batch_is_left_out_and_supersedes_nothing);
	tcase_add_test(tc, a_damaged_member_leaves_its_batch_served);
	tcase_add_test(tc, a_superseded_member_leaves_its_batch_complete);
	tcase_add_test(tc, a_damaged_volume_is_a_fault_alone_with_its_region);
	tcase_add_test(tc, empty_and_short_files_directories_and_pipes_are_faults);
	tcase_add_test(tc, a_copy_of_a_volume_is_not_served_twice);
	tcase_add_test(tc, of_two_volumes_that_overlap_the_later_is_refused_and_both_are_named);
	tcase_add_test(tc, what_is_refused_is_in_nobodys_way);
	tcase_add_test(tc, one_single_key_twice_is_an_overlap_but_not_inside_a_batch);
	tcase_add_test(tc, a_superseded_volume_overlaps_nothing);
	tcase_add_test(tc, a_rescan_shares_what_it_knows_and_the_old_snapshot_stays);
	tcase_add_test(tc, ranges_may_touch_and_not_overlap);
	tcase_add_test(tc, parts_follow_each_other_by_key_and_then_by_ingest);
	tcase_add_test(tc, a_second_writer_is_refused_until_the_first_has_ended);
	tcase_add_test(tc, a_dead_writer_holds_nothing);
	tcase_add_test(tc, a_lock_makes_the_directory_and_can_undo_it);
	tcase_add_test(tc, undoing_keeps_a_directory_that_was_there);
	tcase_add_test(tc, a_failed_publish_leaves_the_store_as_it_was);
	tcase_add_test(tc, a_publish_never_overwrites_a_file);
	tcase_add_test(tc, a_crash_between_two_renames_is_swept_away);
	tcase_add_test(tc, a_publish_that_runs_or_was_cut_short_is_no_fault);
	tcase_add_test(tc, ids_are_random_and_end_with_the_first_index);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
