/* SPDX-License-Identifier: Apache-2.0 */
/* The decode pool: blocks encoded here, decoded by its workers, compared with what was encoded. To
 * look at order and limits a worker must be kept busy for a known time: a block of 16 MiB is, for
 * some milliseconds, and where that matters the test waits until it is. */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codec/block.h"
#include "codec/volume.h"
#include "producer/decode.h"

#define RAW_LEN  (200u << 10)
#define BLOCKS   8u /* the last two under the field transform */
#define LONG_LEN (16u << 20)

static struct stoup_decode *pool;
static struct {
	uint8_t *raw, *stored;
	uint32_t raw_len, stored_len, codec, transform;
	uint64_t hash;
} blocks[BLOCKS];

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Records that look like ticks: they compress, and each block is another one. */
static void raw_fill(uint8_t *raw, uint32_t len, uint32_t seed)
{
	uint64_t x = seed + 1;
	for (uint32_t i = 0; i < len; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		raw[i] = i % 16 < 11 ? (uint8_t)(i / 4096 + seed) : (uint8_t)(x >> 60);
	}
}

static void setup(void)
{
	const char *codecs[BLOCKS] = {
		"lz4", "zstd", "none", "lz4hc", "zstd", "lz4", "default", "small"};
	static const struct stoup_vol_field fields[] = {
		{.off = 0, .cnt = 1, .type = 7}, {.off = 8, .cnt = 1, .type = 7}};
	const struct stoup_block_layout layout = {16, 2, fields};

	for (uint32_t i = 0; i < BLOCKS; i++) {
		struct stoup_encoding encoding;
		struct stoup_encoder *encoder = NULL;
		size_t cap, len = 0;
		blocks[i].raw_len = RAW_LEN - i * 999;
		blocks[i].raw_len -= i < BLOCKS - 2 ? 0 : blocks[i].raw_len % layout.stride;
		cap = stoup_block_encode_cap(blocks[i].raw_len);
		blocks[i].raw = malloc(blocks[i].raw_len);
		blocks[i].stored = malloc(cap);
		raw_fill(blocks[i].raw, blocks[i].raw_len, i);
		ck_assert_int_eq(stoup_encoding_parse(codecs[i], NULL, &encoding), 0);
		ck_assert_int_eq(stoup_encoder_create(&encoding, &encoder), 0);
		ck_assert_int_eq(stoup_block_encode(encoder, &layout, blocks[i].raw,
					 blocks[i].raw_len, blocks[i].stored, cap, &len,
					 &blocks[i].codec, &blocks[i].transform),
			0);
		ck_assert_uint_eq(blocks[i].transform,
			i < BLOCKS - 2 ? STOUP_TRANSFORM_NONE : STOUP_TRANSFORM_FIELDS);
		blocks[i].stored_len = (uint32_t)len;
		blocks[i].hash = stoup_vol_hash(blocks[i].stored, len);
		stoup_encoder_destroy(encoder);
	}
}

static void teardown(void)
{
	stoup_decode_destroy(pool);
	pool = NULL;
	for (uint32_t i = 0; i < BLOCKS; i++) {
		free(blocks[i].raw);
		free(blocks[i].stored);
	}
}

static uint64_t rings; /* of the pool's bell, so far */

static uint64_t rings_now(void)
{
	uint64_t value;

	if (read(stoup_decode_poll_fd(pool), &value, sizeof(value)) == (ssize_t)sizeof(value))
		rings += value;
	return rings;
}

static void pool_make(uint32_t threads, uint32_t jobs, uint32_t spin_ns)
{
	struct stoup_decode_options opt = {
		.thread_cnt = threads, .job_cap = jobs, .spin_ns = spin_ns};
	struct stoup_error err = {0};
	ck_assert_msg(stoup_decode_create(&opt, &pool, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(stoup_decode_thread_cnt(pool), threads);
	rings = 0;
}

static struct stoup_decode_job job_of(uint32_t block, uint64_t cookie, void *dst)
{
	struct stoup_decode_job job = {
		.cookie = cookie,
		.stored_hash = blocks[block].hash,
		.src = blocks[block].stored,
		.dst = dst,
		.src_len = blocks[block].stored_len,
		.raw_len = blocks[block].raw_len,
		.codec = blocks[block].codec,
		.transform = blocks[block].transform,
	};
	return job;
}

/* Sleeps on the descriptor as the conductor does. */
static size_t reap_wait(struct stoup_decode_result *results, size_t cap)
{
	for (int turn = 0; turn < 1000; turn++) {
		size_t cnt = stoup_decode_reap(pool, results, cap);
		if (cnt > 0)
			return cnt;
		struct pollfd pfd = {.fd = stoup_decode_poll_fd(pool), .events = POLLIN};
		int rc = poll(&pfd, 1, 120000);
		ck_assert_msg(rc == 1 || (rc < 0 && errno == EINTR), "the descriptor never woke");
		rings_now();
	}
	ck_abort_msg("polled readable a thousand times without a result");
	return 0;
}

static struct stoup_decode_result reap_one(void)
{
	struct stoup_decode_result result;
	memset(&result, 0, sizeof(result));
	ck_assert_uint_eq(reap_wait(&result, 1), 1);
	return result;
}

/* A job that takes a worker milliseconds: a hash over 16 MiB and a copy of them. */
static struct stoup_decode_job long_job(uint64_t cookie, uint8_t *src, uint8_t *dst)
{
	struct stoup_decode_job job = {
		.cookie = cookie, .src = src, .dst = dst, .src_len = LONG_LEN, .raw_len = LONG_LEN};
	job.stored_hash = stoup_vol_hash(src, LONG_LEN);
	return job;
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(every_block_comes_back_as_it_was_encoded)
{
	enum {
		JOBS = 400
	};
	static struct stoup_decode_result results[7];
	uint32_t sent = 0, back = 0;
	uint64_t in = 0, out = 0;
	uint8_t seen[JOBS] = {0};
	uint8_t *dst[16];
	uint32_t free_dst[16], free_cnt = 16, dst_of[JOBS];
	pool_make(3, 16, _i ? 50000 : 0);
	for (uint32_t i = 0; i < 16; i++) {
		dst[i] = malloc(RAW_LEN);
		free_dst[i] = i;
	}
	while (back < JOBS) {
		while (sent < JOBS && free_cnt > 0) {
			uint32_t block = sent % BLOCKS, to = free_dst[--free_cnt];
			struct stoup_decode_job job = job_of(block, sent, dst[to]);
			job.flags = sent % 3 == 0 ? STOUP_DECODE_DEMAND : 0;
			memset(dst[to], 0xee, RAW_LEN);
			ck_assert_int_eq(stoup_decode_submit(pool, &job), 0);
			in += job.src_len;
			out += job.raw_len;
			dst_of[sent++] = to;
		}
		size_t cnt = reap_wait(results, 7);
		for (size_t i = 0; i < cnt; i++) {
			uint32_t k = (uint32_t)results[i].cookie, block = k % BLOCKS;
			ck_assert_uint_lt(k, JOBS);
			ck_assert_int_eq(seen[k]++, 0);
			ck_assert_int_eq(results[i].result, 0);
			ck_assert_int_eq(results[i].detail, STOUP_DECODE_OK);
			ck_assert(memcmp(dst[dst_of[k]], blocks[block].raw,
					  blocks[block].raw_len) == 0);
			free_dst[free_cnt++] = dst_of[k];
		}
		back += (uint32_t)cnt;
	}
	struct stoup_decode_counters counters;
	stoup_decode_counters(pool, &counters);
	ck_assert_uint_eq(counters.jobs, JOBS);
	ck_assert_uint_eq(counters.jobs_inline, 0);
	ck_assert_uint_eq(counters.errors, 0);
	ck_assert_uint_eq(counters.bytes_in, in);
	ck_assert_uint_eq(counters.bytes_out, out);
	ck_assert_uint_gt(counters.busy_ns, 0);
	ck_assert_uint_ge(counters.queue_max, 1);
	ck_assert_uint_le(counters.queue_max, 16);
	ck_assert_uint_eq(counters.busy_ns, stoup_decode_worker_busy_ns(pool, 0) +
						    stoup_decode_worker_busy_ns(pool, 1) +
						    stoup_decode_worker_busy_ns(pool, 2));
	ck_assert_uint_eq(stoup_decode_worker_busy_ns(pool, 3), 0);
	ck_assert_uint_eq(stoup_decode_pending(pool), 0);
	for (uint32_t i = 0; i < 16; i++)
		free(dst[i]);
}
END_TEST

START_TEST(a_changed_byte_is_a_wrong_checksum_and_harms_no_other_job)
{
	uint8_t *dst = malloc(RAW_LEN), *bad = malloc(RAW_LEN * 2);
	pool_make(1, 4, 0);
	for (uint32_t block = 0; block < BLOCKS; block++) {
		struct stoup_decode_job job = job_of(block, block, dst);
		memcpy(bad, blocks[block].stored, blocks[block].stored_len);
		bad[blocks[block].stored_len / 2] ^= 0x10;
		job.src = bad;
		ck_assert_int_eq(stoup_decode_submit(pool, &job), 0);
		struct stoup_decode_result result = reap_one();
		ck_assert_int_eq(result.result, -EBADMSG);
		ck_assert_int_eq(result.detail, STOUP_DECODE_HASH);
		ck_assert_uint_eq(result.found_hash, stoup_vol_hash(bad, blocks[block].stored_len));
		job.src = blocks[block].stored;
		ck_assert_int_eq(stoup_decode_submit(pool, &job), 0);
		ck_assert_int_eq(reap_one().result, 0);
		ck_assert(memcmp(dst, blocks[block].raw, blocks[block].raw_len) == 0);
	}
	struct stoup_decode_counters counters;
	stoup_decode_counters(pool, &counters);
	ck_assert_uint_eq(counters.errors, BLOCKS);
	ck_assert_uint_eq(counters.jobs, 2 * BLOCKS);
	free(bad);
	free(dst);
}
END_TEST

START_TEST(errors_say_what_kind_of_damage_it_is)
{
	uint8_t *dst = malloc(RAW_LEN);
	struct stoup_decode_result result;
	pool_make(1, 4, 0);
	/* The right hash over bytes that do not decode to that length. */
	struct stoup_decode_job job = job_of(0, 1, dst);
	job.raw_len--;
	stoup_decode_inline(pool, &job, &result);
	ck_assert_int_eq(result.result, -EBADMSG);
	ck_assert_int_eq(result.detail, STOUP_DECODE_CONTENT);
	job = job_of(0, 1, dst);
	job.codec = STOUP_CODEC_LAST + 1;
	stoup_decode_inline(pool, &job, &result);
	ck_assert_int_eq(result.result, -ENOTSUP);
	ck_assert_int_eq(result.detail, STOUP_DECODE_UNKNOWN);
	job = job_of(0, 1, dst);
	job.transform = STOUP_TRANSFORM_LAST + 1;
	stoup_decode_inline(pool, &job, &result);
	ck_assert_int_eq(result.result, -ENOTSUP);
	job = job_of(0, 1, dst);
	job.dst = blocks[0].stored; /* no decoder works in place */
	stoup_decode_inline(pool, &job, &result);
	ck_assert_int_eq(result.result, -EINVAL);
	ck_assert_int_eq(result.detail, STOUP_DECODE_LENGTH);
	for (int a = STOUP_DECODE_OK; a <= STOUP_DECODE_LENGTH; a++)
		for (int b = STOUP_DECODE_OK; b < a; b++)
			ck_assert_str_ne(stoup_decode_detail_text((enum stoup_decode_detail)a),
				stoup_decode_detail_text((enum stoup_decode_detail)b));
	free(dst);
}
END_TEST

START_TEST(an_uncompressed_block_in_its_place_is_only_checked)
{
	uint8_t *place = malloc(RAW_LEN);
	ck_assert_uint_eq(blocks[2].codec, STOUP_CODEC_NONE);
	memcpy(place, blocks[2].stored, blocks[2].stored_len);
	pool_make(1, 4, 0);
	struct stoup_decode_job job = job_of(2, 8, place);
	job.src = place;
	ck_assert_int_eq(stoup_decode_submit(pool, &job), 0);
	ck_assert_int_eq(reap_one().result, 0);
	ck_assert(memcmp(place, blocks[2].raw, blocks[2].raw_len) == 0);
	place[17] ^= 1;
	ck_assert_int_eq(stoup_decode_submit(pool, &job), 0);
	ck_assert_int_eq(reap_one().result, -EBADMSG);
	free(place);
}
END_TEST

START_TEST(the_inline_path_does_the_same_on_the_callers_thread)
{
	uint8_t *dst = malloc(RAW_LEN);
	struct stoup_decode_result result;
	struct stoup_decode_counters counters;
	pool_make(1, 4, 0);
	for (uint32_t block = 0; block < BLOCKS; block++) {
		struct stoup_decode_job job = job_of(block, 70 + block, dst);
		memset(dst, 0, RAW_LEN);
		stoup_decode_inline(pool, &job, &result);
		ck_assert_int_eq(result.result, 0);
		ck_assert_uint_eq(result.cookie, 70 + block);
		ck_assert(memcmp(dst, blocks[block].raw, blocks[block].raw_len) == 0);
	}
	stoup_decode_counters(pool, &counters);
	ck_assert_uint_eq(counters.jobs, BLOCKS);
	ck_assert_uint_eq(counters.jobs_inline, BLOCKS);
	ck_assert_uint_eq(stoup_decode_worker_busy_ns(pool, 0), 0);
	ck_assert_uint_eq(rings_now(), 0);
	free(dst);
}
END_TEST

/* That many bells, and no more. */
static void rung_until(uint64_t cnt)
{
	for (int i = 0; i < 120000 && rings_now() < cnt; i++)
		usleep(1000);
	ck_assert_uint_eq(rings, cnt);
}

START_TEST(who_is_awake_is_not_rung_for_and_who_sleeps_is_at_the_end_of_a_queue)
{
	uint8_t *dst = malloc(2 * RAW_LEN);
	struct stoup_decode_result results[4];
	pool_make(1, 4, 0);
	for (uint64_t round = 0; round < 20; round++) {
		size_t cnt = 0;
		stoup_decode_awake(pool);
		for (uint32_t i = 0; i < 2; i++) {
			struct stoup_decode_job job = job_of(i, i, dst + i * RAW_LEN);
			ck_assert_int_eq(stoup_decode_submit(pool, &job), 0);
		}
		while (cnt < 2) {
			while (!stoup_decode_ready(pool))
				sched_yield();
			ck_assert_uint_eq(rings_now(), round);
			cnt += stoup_decode_reap(pool, results, 1);
		}
		ck_assert_uint_eq(cnt, 2);
		/* Results that came before are told of, not rung for. */
		struct stoup_decode_job job = job_of(0, 7, dst);
		ck_assert_int_eq(stoup_decode_submit(pool, &job), 0);
		while (!stoup_decode_ready(pool))
			sched_yield();
		ck_assert_int_eq(stoup_decode_sleep(pool, 3), 1);
		ck_assert_uint_eq(rings_now(), round);
		ck_assert_uint_eq(stoup_decode_reap(pool, results, 4), 1);
		/* Fewer than a batch, and no more to come: rung for all the same. */
		ck_assert_int_eq(stoup_decode_sleep(pool, 3), 0);
		ck_assert_int_eq(stoup_decode_submit(pool, &job), 0);
		ck_assert_uint_eq(reap_one().cookie, 7);
		rung_until(round + 1);
	}
	free(dst);
}
END_TEST

START_TEST(a_full_pool_refuses_until_results_are_reaped)
{
	uint8_t *dst = malloc(4 * RAW_LEN);
	struct stoup_decode_counters counters;
	pool_make(2, 4, 0);
	for (uint32_t i = 0; i < 4; i++) {
		struct stoup_decode_job job = job_of(i, i, dst + i * RAW_LEN);
		job.flags = i & 1 ? STOUP_DECODE_DEMAND : 0;
		ck_assert_int_eq(stoup_decode_submit(pool, &job), 0);
	}
	struct stoup_decode_job more = job_of(0, 9, dst);
	ck_assert_int_eq(stoup_decode_submit(pool, &more), -EAGAIN);
	ck_assert_uint_eq(stoup_decode_pending(pool), 4);
	/* Finished is not reaped: results keep their places. */
	do {
		stoup_decode_counters(pool, &counters);
		sched_yield();
	} while (counters.jobs < 4);
	ck_assert_int_eq(stoup_decode_submit(pool, &more), -EAGAIN);
	uint64_t first = reap_one().cookie;
	more.dst = dst + first * RAW_LEN;
	ck_assert_int_eq(stoup_decode_submit(pool, &more), 0);
	ck_assert_int_eq(stoup_decode_submit(pool, &more), -EAGAIN);
	for (uint32_t i = 0; i < 4; i++)
		ck_assert_int_eq(reap_one().result, 0);
	stoup_decode_counters(pool, &counters);
	ck_assert_uint_eq(counters.refused, 3);
	ck_assert_uint_eq(counters.jobs, 5);
	free(dst);
}
END_TEST

START_TEST(demand_jobs_are_taken_before_read_ahead_and_each_in_order)
{
	uint8_t *src = calloc(2, LONG_LEN), *dst = malloc(8 * RAW_LEN);
	const uint64_t expected[] = {100, 11, 12, 13, 1, 2, 3};
	struct stoup_decode_counters counters;
	pool_make(1, 16, 0);
	/* From when the only worker has begun the long job until it ends, it takes no other. */
	struct stoup_decode_job job = long_job(100, src, src + LONG_LEN);
	ck_assert_int_eq(stoup_decode_submit(pool, &job), 0);
	do {
		stoup_decode_counters(pool, &counters);
		sched_yield();
	} while (counters.queued > 0);
	const uint64_t order[] = {1, 11, 2, 12, 3, 13};
	for (uint32_t i = 0; i < 6; i++) {
		job = job_of(i, order[i], dst + i * RAW_LEN);
		job.flags = order[i] > 10 ? STOUP_DECODE_DEMAND : 0;
		ck_assert_int_eq(stoup_decode_submit(pool, &job), 0);
	}
	stoup_decode_counters(pool, &counters);
	int in_time = counters.jobs == 0;
	for (uint32_t i = 0; i < 7; i++) {
		struct stoup_decode_result result = reap_one();
		ck_assert_int_eq(result.result, 0);
		/* Should this thread have slept for long between two submits, the order is free. */
		if (in_time)
			ck_assert_uint_eq(result.cookie, expected[i]);
	}
	free(dst);
	free(src);
}
END_TEST

START_TEST(the_bell_rings_for_the_first_result_after_the_last_was_reaped)
{
	uint8_t *dst = malloc(RAW_LEN);
	pool_make(1, 4, 0);
	for (uint64_t round = 0; round < 50; round++) {
		struct stoup_decode_job job = job_of(0, round, dst);
		struct stoup_decode_result result;
		ck_assert_uint_eq(rings_now(), round);
		ck_assert_int_eq(stoup_decode_submit(pool, &job), 0);
		rung_until(round + 1);
		ck_assert_uint_eq(stoup_decode_reap(pool, &result, 1), 1);
		ck_assert_uint_eq(result.cookie, round);
	}
	free(dst);
}
END_TEST

START_TEST(destroy_waits_for_what_was_begun_and_drops_the_rest)
{
	uint8_t *src = malloc(LONG_LEN), *dst = malloc(LONG_LEN);
	size_t late = 0;
	memset(src, 0x77, LONG_LEN);
	pool_make(2, 64, 0);
	for (uint32_t i = 0; i < 40; i++) {
		struct stoup_decode_job job = job_of(i % BLOCKS, i, dst);
		job.stored_hash = 0; /* never decoded: one writer of dst is enough */
		if (i == 0)
			job = long_job(i, src, dst);
		ck_assert_int_eq(stoup_decode_submit(pool, &job), 0);
	}
	stoup_decode_destroy(pool);
	pool = NULL;
	memset(dst, 0x11, LONG_LEN);
	usleep(20000);
	for (size_t i = 0; i < LONG_LEN; i++)
		late += dst[i] != 0x11;
	ck_assert_uint_eq(late, 0);
	free(dst);
	free(src);
}
END_TEST

static volatile sig_atomic_t handled_by_main;
static pthread_t main_thread;

static void on_signal(int sig)
{
	(void)sig;
	handled_by_main = pthread_equal(pthread_self(), main_thread) ? 1 : 2;
}

START_TEST(a_signal_of_the_process_is_never_taken_by_a_worker)
{
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t set, before;
	main_thread = pthread_self();
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	pool_make(4, 4, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	/* Blocked here: were it open in a worker, it would be delivered there, now. */
	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
	ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
	usleep(20000);
	ck_assert_int_eq(handled_by_main, 0);
	ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
	ck_assert_int_eq(handled_by_main, 1);
}
END_TEST

START_TEST(workers_can_be_pinned_and_a_cpu_that_is_not_there_is_named)
{
	uint8_t *dst = malloc(RAW_LEN);
	cpu_set_t set;
	uint32_t cpu = 0;
	struct stoup_error err = {0};
	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	struct stoup_decode_options opt = {.thread_cnt = 2, .cpu_cnt = 1, .cpus = &cpu};
	ck_assert_int_eq(stoup_decode_create(&opt, &pool, &err), 0);
	struct stoup_decode_job job = job_of(1, 1, dst);
	ck_assert_int_eq(stoup_decode_submit(pool, &job), 0);
	ck_assert_int_eq(reap_one().result, 0);
	stoup_decode_destroy(pool);
	pool = NULL;
	cpu = CPU_SETSIZE - 1;
	ck_assert_int_eq(stoup_decode_create(&opt, &pool, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "1023"));
	cpu = CPU_SETSIZE;
	ck_assert_int_eq(stoup_decode_create(&opt, &pool, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "1024"));
	free(dst);
}
END_TEST

START_TEST(options_out_of_range_are_refused_and_zeros_are_defaults)
{
	struct stoup_decode_options opt = {.thread_cnt = 257};
	struct stoup_error err = {0};
	cpu_set_t set;
	ck_assert_int_eq(stoup_decode_create(&opt, &pool, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "257 threads"));
	opt = (struct stoup_decode_options){.job_cap = 4097};
	ck_assert_int_eq(stoup_decode_create(&opt, &pool, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "4097 jobs"));
	opt = (struct stoup_decode_options){.spin_ns = 1000001};
	ck_assert_int_eq(stoup_decode_create(&opt, &pool, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "spin"));
	ck_assert_ptr_null(pool);
	/* One for each core that this process may use. */
	CPU_ZERO(&set);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	opt = (struct stoup_decode_options){0};
	ck_assert_int_eq(stoup_decode_create(&opt, &pool, &err), 0);
	int cores = CPU_COUNT(&set);
	ck_assert_int_eq((int)stoup_decode_thread_cnt(pool), cores);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("decode");
	TCase *tcase = tcase_create("decode");
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, every_block_comes_back_as_it_was_encoded, 0, 2);
	tcase_add_test(tcase, a_changed_byte_is_a_wrong_checksum_and_harms_no_other_job);
	tcase_add_test(tcase, errors_say_what_kind_of_damage_it_is);
	tcase_add_test(tcase, an_uncompressed_block_in_its_place_is_only_checked);
	tcase_add_test(tcase, the_inline_path_does_the_same_on_the_callers_thread);
	tcase_add_test(tcase, who_is_awake_is_not_rung_for_and_who_sleeps_is_at_the_end_of_a_queue);
	tcase_add_test(tcase, a_full_pool_refuses_until_results_are_reaped);
	tcase_add_test(tcase, demand_jobs_are_taken_before_read_ahead_and_each_in_order);
	tcase_add_test(tcase, the_bell_rings_for_the_first_result_after_the_last_was_reaped);
	tcase_add_test(tcase, destroy_waits_for_what_was_begun_and_drops_the_rest);
	tcase_add_test(tcase, a_signal_of_the_process_is_never_taken_by_a_worker);
	tcase_add_test(tcase, workers_can_be_pinned_and_a_cpu_that_is_not_there_is_named);
	tcase_add_test(tcase, options_out_of_range_are_refused_and_zeros_are_defaults);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
