/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_pool.h - the memory of the small conductor of test_consumer_fake.h: a control object,
 * a data region, and volumes of records that a test writes down.
 *
 * Records are struct pair {key, value}; value counts up over the series of a volume, beginning at
 * the volume's number times 1,000,000. Block b of a volume is made of the segments that name it.
 *
 * Concurrency: made before the conductor starts, but for volumes that the next snapshot brings.
 */
#ifndef STOUP_TEST_CONSUMER_POOL_H
#define STOUP_TEST_CONSUMER_POOL_H

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <linux/sockios.h>
#include <unistd.h>
#include "consumer/client.h"
#include "shm/futex.h"
#include "shm/lease.h"
#include "shm/message.h"
#include "shm/wire.h"

#define FAKE_VOLUME_CAP  80
#define FAKE_BLOCK_CAP   16
#define FAKE_SEGMENT_CAP 64
#define FAKE_SERIES_CAP  16
#define FAKE_PEER_CAP    40
#define FAKE_LOG_CAP     256
#define FAKE_BUFFER_CAP  512
#define FAKE_SCHEMA_CNT  4
#define FAKE_INTERVAL    7 /* of a bar */

/* What a demand for a block does. */
enum fake_act {
	FAKE_GRANT,
	FAKE_NEVER,
	FAKE_FAIL,
	FAKE_EMPTY,
	FAKE_BAD_BUFFER,
	FAKE_HANG_UP
};

struct pair {
	int64_t key;
	uint64_t value;
};

struct fake_segment {
	uint32_t block;
	uint32_t cnt;
	int64_t keys[16];
};

struct fake_series {
	const char *name;
	const char *
		schema; /* "pair" or "other": two layouts; "bar": pairs that are FAKE_INTERVAL long; "json": messages
	                       whose bytes are the value */
	uint32_t flags, segment_cnt;
	struct fake_segment segments[FAKE_SEGMENT_CAP];
};

struct fake_block {
	uint8_t bytes[4096];
	uint32_t len;         /* so far, and what the catalog says when not overridden */
	uint32_t claimed_len; /* 0 = len */
	_Atomic int act;
	_Atomic int error;
	_Atomic uint64_t detail;
	_Atomic int load_cnt;
};

struct fake_volume {
	struct stoup_region region;
	struct stoup_catalog *catalog;
	_Atomic uint64_t *residency;
	struct fake_block blocks[FAKE_BLOCK_CAP];
	uint32_t block_cnt;
	uint64_t ingest_seq;
	uint32_t batch_idx;
	uint64_t born_seq, retired_seq; /* as in the daemon: 0 = not retired */
	int file_fd;                    /* of fake_file; 0 = none */
};

struct fake_peer {
	int sock_fd, bell_fd;
	struct stoup_region page;
	uint64_t snapshot_seq; /* that it was given */
	uint64_t ticket;       /* this page is a copy for a child that has not come yet */
};

struct fake_request {
	uint32_t kind, volume_idx, block_idx, ahead_cnt, ahead_volume_idx, ahead_block_idx;
	int32_t ahead_step;
};

struct fake {
	char dir[64];
	struct stoup_region control_region, data_region;
	struct stoup_control *control;
	struct fake_volume volumes[FAKE_VOLUME_CAP];
	uint32_t volume_cnt;
	struct fake_peer peers[FAKE_PEER_CAP], copies[FAKE_PEER_CAP];
	uint32_t peer_cnt;
	int listen_fd, stop_fd;
	uint32_t buffer_next;
	pthread_t thread;
	pthread_mutex_t mutex; /* log, loads from the test's thread */
	struct fake_request log[FAKE_LOG_CAP];
	uint32_t log_cnt;
	uint64_t attach_seq, snapshot_seq, instance_seq;
	/* misbehaviour of the hello */
	int mute;                        /* accept, say nothing */
	int refuse;                      /* reply with this error */
	int refuse_volumes, refuse_fork; /* answer such questions with this error */
	int cut;                         /* hang up at that many questions for volumes */
	int cut_hello;                   /* and at that many hellos */
	int refuse_file;                 /* the same for those for a file */
	_Atomic uint32_t file_cnt;       /* files that were given */
	int late;                        /* ignore that many questions for volumes, for now */
	int bad_fingerprint;
	uint32_t unasked; /* the reply brings as many volumes, or none when there are more; 0 = 4 */
	uint32_t pull_cnt;
	_Atomic int load_ahead;
	/* Instead of fake_load for a demand; 0 = not now, the hook answers the slot later. */
	uint64_t (*load)(struct fake *f, struct fake_peer *peer, uint32_t slot_idx,
		const struct fake_request *r);
	/* After each turn of the conductor: an event, or a second without one. */
	void (*turn)(struct fake *f);
};

/* ---- making ---------------------------------------------------------------------------------- */

static const struct stoup_field fake_fields[2] = {
	{.name = "key",
		.off = 0,
		.cnt = 1,
		.type = STOUP_TYPE_I64,
		.flags = STOUP_FIELD_KEY | STOUP_FIELD_TIME},
	{.name = "value", .off = 8, .cnt = 1, .type = STOUP_TYPE_U64},
};

/* The conductor may also run where no test does (test_consumer_auto.c), so it does not report to
 * Check. */
static inline void fake_must_at(int fine, const char *what, int line)
{
	if (fine)
		return;
	fprintf(stderr, "test_consumer_fake.h:%d: not so: %s (errno %d)\n", line, what, errno);
	abort();
}
#define FAKE_MUST(condition) fake_must_at((condition) ? 1 : 0, #condition, __LINE__)

static inline void fake_check(int rc, const struct stoup_error *err)
{
	ck_assert_msg(rc >= 0, "%d: %s", rc, err->text);
}

/* The memory of an instance. */
static inline void fake_memory(struct fake *f, uint64_t lease_cap, uint32_t cell_cap)
{
	struct stoup_control_config config = {.consumer_cap = 8,
		.cell_cap = cell_cap,
		.buffer_cap = FAKE_BUFFER_CAP,
		.volume_cap = 128};
	struct stoup_error err;

	FAKE_MUST(stoup_region_create(&f->control_region, STOUP_BACKING_MEMFD, "fake-control", 0600,
			  stoup_control_footprint(&config), 1, 1, 1, &err) == 0);
	FAKE_MUST(stoup_region_create(&f->data_region, STOUP_BACKING_MEMFD, "fake-data", 0600,
			  (size_t)FAKE_BUFFER_CAP * 4096, 1, 1, 1, &err) == 0);
	f->control = f->control_region.base;
	stoup_control_format(f->control, &config);
	f->control->data_len = f->data_region.len;
	f->control->lease_bytes_cap = lease_cap;
	f->control->ahead_bytes_cap = 1 << 20;
	f->control->block_len_max = 4096;
	f->control->daemon_pid = (uint32_t)getpid();
	f->control->daemon_start = stoup_process_start((uint32_t)getpid());
	snprintf((char *)f->control->instance, 16, "instance %llu",
		(unsigned long long)++f->instance_seq);
	/* Nobody writes it anew: it is as young as that for an hour, however slow the machine. */
	atomic_store(&f->control->heartbeat_ns, stoup_client_now() + 3600 * UINT64_C(1000000000));
	atomic_store(&f->control->asleep, 1);
	f->snapshot_seq = 1;
	atomic_store(&f->control->snapshot_seq, 1);
	stoup_control_announce(f->control);
}

/* A pool in a fresh runtime directory; lease_cap is its lease_bytes_cap. */
static inline void fake_init_cells(struct fake *f, uint64_t lease_cap, uint32_t cell_cap)
{
	char path[128];

	memset(f, 0, sizeof(*f));
	pthread_mutex_init(&f->mutex, NULL);
	strcpy(f->dir, "/tmp/stoup-fake-XXXXXX");
	FAKE_MUST((mkdtemp(f->dir)) != NULL);
	setenv("XDG_RUNTIME_DIR", f->dir, 1);
	snprintf(path, sizeof(path), "%s/stoup", f->dir);
	FAKE_MUST(mkdir(path, 0700) == 0);
	fake_memory(f, lease_cap, cell_cap);
}

static inline void fake_init(struct fake *f)
{
	fake_init_cells(f, 1 << 20, STOUP_CELL_CAP);
}

static inline uint32_t fake_schema_idx(const char *name)
{
	static const char *const names[FAKE_SCHEMA_CNT] = {"pair", "other", "bar", "json"};
	uint32_t i = 0;

	while (strcmp(names[i], name) != 0)
		FAKE_MUST(++i < FAKE_SCHEMA_CNT);
	return i;
}

/* The layouts: "other" has its value signed. */
static inline void fake_schemas(struct stoup_catalog *c)
{
	struct stoup_catalog_schema *schemas = (void *)((char *)c + c->schema_off);
	struct stoup_field *fields = (void *)((char *)c + c->field_off);
	const struct stoup_schema *json = stoup_schema_by_name("json");

	for (uint32_t i = 0; i < 3; i++) {
		struct stoup_schema schema = {.stride = 16, .align = 8, .field_cnt = 2};

		fields[2 * i] = fake_fields[0];
		fields[2 * i + 1] = fake_fields[1];
		if (i == 1)
			fields[3].type = STOUP_TYPE_I64;
		if (i == 2) {
			schema.flags = schemas[i].flags = STOUP_SCHEMA_BAR;
			schema.interval_ns = schemas[i].interval_ns = FAKE_INTERVAL;
		}
		strcpy(schema.name, i == 0 ? "pair" : i == 1 ? "other" : "bar");
		schema.fields = &fields[2 * i];
		strcpy(schemas[i].name, schema.name);
		schemas[i].stride = 16;
		schemas[i].align = 8;
		schemas[i].hash = stoup_schema_hash(&schema);
		schemas[i].field_first = 2 * i;
		schemas[i].field_cnt = 2;
	}
	strcpy(schemas[3].name, json->name);
	schemas[3].align = json->align;
	schemas[3].key_off = json->key_off;
	schemas[3].flags = json->flags;
	schemas[3].hash = json->hash;
	schemas[3].field_first = 6;
}

/* Messages; the segment's place is that of their table. */
static inline void fake_messages(
	struct fake_block *block, const struct fake_segment *s, uint64_t value, uint32_t *ret_off)
{
	uint8_t *run = block->bytes + block->len;
	uint32_t len = 0;

	for (uint32_t i = 0; i < s->cnt; i++, value++)
		len += stoup_message_write(run + len, s->keys[i], &value, sizeof(value));
	*ret_off = block->len + len + (s->cnt & 1 ? 4 : 0);
	block->len += stoup_message_run_end(run, len, s->cnt);
}

static inline uint32_t fake_segment_add(struct fake_volume *v, uint32_t series_idx, int messages,
	const struct fake_segment *s, struct stoup_catalog_segment *dst, uint64_t ordinal,
	uint64_t value)
{
	struct fake_block *block = &v->blocks[s->block];

	*dst = (struct stoup_catalog_segment){.block_idx = s->block,
		.raw_off = block->len,
		.record_cnt = s->cnt,
		.series_idx = series_idx,
		.ordinal = ordinal};
	if (messages)
		fake_messages(block, s, value, &dst->raw_off);
	for (uint32_t i = 0; i < s->cnt; i++) {
		struct pair pair = {.key = s->keys[i], .value = value + i};

		if (!messages) {
			memcpy(block->bytes + block->len, &pair, sizeof(pair));
			block->len += (uint32_t)sizeof(pair);
		}
		if (i == 0 || s->keys[i] > dst->last_key)
			dst->last_key = s->keys[i];
	}
	FAKE_MUST(block->len <= sizeof(block->bytes));
	dst->first_key = s->cnt ? s->keys[0] : 0;
	return s->cnt;
}

/* Add a volume. Series must be given in the order of their names. */
static inline struct fake_volume *fake_volume(struct fake *f, uint64_t ingest_seq,
	uint32_t batch_idx, uint32_t block_cnt, const struct fake_series *series,
	uint32_t series_cnt)
{
	struct stoup_catalog_counts counts = {.schema_cnt = FAKE_SCHEMA_CNT,
		.field_cnt = 6,
		.series_cnt = series_cnt,
		.block_cnt = block_cnt,
		.string_len = 16};
	struct fake_volume *v = &f->volumes[f->volume_cnt];
	struct stoup_catalog_segment *segments;
	struct stoup_catalog_series *table;
	struct stoup_catalog_block *blocks;
	uint64_t value = (uint64_t)f->volume_cnt * 1000000;
	uint32_t name_off = 16, at = 0;
	struct stoup_error err;
	char *strings;

	for (uint32_t i = 0; i < series_cnt; i++) {
		counts.segment_cnt += series[i].segment_cnt;
		counts.string_len += strlen(series[i].name) + 1;
	}
	FAKE_MUST(stoup_region_create(&v->region, STOUP_BACKING_MEMFD, "fake-catalog", 0600,
			  stoup_catalog_footprint(&counts), 1, 1, 1, &err) == 0);
	v->catalog = v->region.base;
	stoup_catalog_format(v->catalog, &counts, f->volume_cnt);
	v->catalog->ingest_seq = v->ingest_seq = ingest_seq;
	v->catalog->batch_idx = v->batch_idx = batch_idx;
	v->residency = stoup_catalog_residency(v->catalog);
	v->block_cnt = block_cnt;
	v->born_seq = f->thread ? f->snapshot_seq + 1 : 1;
	fake_schemas(v->catalog);
	strings = (char *)v->catalog + v->catalog->string_off;
	strcpy(strings, "/data/fake.svol");
	table = (void *)((char *)v->catalog + v->catalog->series_off);
	segments = (void *)((char *)v->catalog + v->catalog->segment_off);
	blocks = (void *)((char *)v->catalog + v->catalog->block_off);
	for (uint32_t i = 0; i < series_cnt; i++) {
		struct stoup_catalog_series *row = &table[i];

		strcpy(strings + name_off, series[i].name);
		*row = (struct stoup_catalog_series){.name_off = name_off,
			.name_len = (uint32_t)strlen(series[i].name),
			.schema_idx = fake_schema_idx(series[i].schema),
			.flags = series[i].flags,
			.segment_first = at,
			.segment_cnt = series[i].segment_cnt};
		name_off += row->name_len + 1;
		for (uint32_t j = 0; j < series[i].segment_cnt; j++, at++) {
			uint32_t cnt = fake_segment_add(v, i, row->schema_idx == 3,
				&series[i].segments[j], &segments[at], row->record_cnt, value);

			if (row->record_cnt == 0 && cnt > 0)
				row->first_key = segments[at].first_key;
			if (cnt > 0 && segments[at].last_key > row->last_key)
				row->last_key = segments[at].last_key;
			row->record_cnt += cnt;
			value += cnt;
		}
	}
	for (uint32_t b = 0; b < block_cnt; b++) {
		blocks[b].raw_len =
			v->blocks[b].claimed_len ? v->blocks[b].claimed_len : v->blocks[b].len;
		blocks[b].stored_len = 77;
		blocks[b].stored_off = 64 + 4096 * (uint64_t)b;
	}
	atomic_store(&stoup_control_volumes(f->control)[f->volume_cnt].state, STOUP_VOLUME_SERVED);
	f->volume_cnt++;
	atomic_store(&f->control->volume_cnt, f->volume_cnt);
	return v;
}

/* Write the blocks of a volume into a file that consumers may map: one behind the other, with a gap behind
 * block b where bit b of `gaps` is set. Its id is its number's. */
static inline void fake_file(struct fake *f, uint32_t volume_idx, uint32_t gaps)
{
	struct fake_volume *v = &f->volumes[volume_idx];
	struct stoup_catalog_block *blocks = (void *)((char *)v->catalog + v->catalog->block_off);
	uint8_t head[64] = "\x89STOUP\r\n";
	uint64_t at = sizeof(head);

	memset(v->catalog->volume_id, 0x40 + (int)volume_idx, 16);
	memcpy(head + 16, v->catalog->volume_id, 16);
	v->file_fd = memfd_create("fake-file", MFD_CLOEXEC);
	FAKE_MUST(v->file_fd > 0);
	FAKE_MUST(pwrite(v->file_fd, head, sizeof(head), 0) == (ssize_t)sizeof(head));
	for (uint32_t b = 0; b < v->block_cnt; b++) {
		FAKE_MUST(pwrite(v->file_fd, v->blocks[b].bytes, v->blocks[b].len, (off_t)at) ==
			  (ssize_t)v->blocks[b].len);
		blocks[b].stored_off = at;
		blocks[b].stored_len = blocks[b].raw_len;
		at += v->blocks[b].len + (gaps >> b & 1 ? 64 : 0);
	}
}

/* The next snapshot has it no longer. */
static inline void fake_retire(struct fake *f, uint32_t volume_idx)
{
	f->volumes[volume_idx].retired_seq = f->snapshot_seq + 1;
}

/* What was added and retired since is the newest snapshot. The conductor reads the number. */
static inline void fake_rescan(struct fake *f)
{
	pthread_mutex_lock(&f->mutex);
	f->snapshot_seq++;
	pthread_mutex_unlock(&f->mutex);
	atomic_store(&f->control->snapshot_seq, f->snapshot_seq);
}

#endif
