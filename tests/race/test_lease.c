/* SPDX-License-Identifier: Apache-2.0 */
/* test_lease.c - the lease protocol under real threads: a conductor that evicts all the time,
 * consumers that scan, hold, release and time out, in a pool of two to eight buffers.
 *
 *      conductor   miss -> a free buffer, else: clear all, fence, scan the cells, put the held back
 *                  overwrite the victim with noise, then with the block; publish; grant
 *      consumers   lease a random block, read every byte twice with a pause between, release or hold
 *
 * What must hold: no byte changes under a lease, every wait ends, no two grants of one request. This
 * exercises the library's whole path; a fault in an order of stores has a window of nanoseconds here,
 * and is the business of test_lease_steps.c. (The two ends map the objects at different addresses, so
 * a thread sanitizer checks the library's own structures only.)
 *
 * The seed is printed; STOUP_SEED repeats it, STOUP_ROUNDS sets the length.
 */
#include <inttypes.h>
#include "tests/unit/test_consumer_fake.h"

#define BLOCK_CNT   15
#define READER_CNT  4
#define WAITING_CAP (READER_CNT * STOUP_SLOT_CNT) /* those that gave up wait here as well */
#define ROUNDS      2000

struct waiting {
	struct fake_peer *peer;
	uint32_t slot_idx;
	uint64_t ticket;
	struct fake_request request;
};

static struct fake fake;
static struct {
	uint32_t buffer_cnt;
	uint64_t gen[FAKE_BUFFER_CAP];
	int block[FAKE_BUFFER_CAP]; /* -1: free */
	struct waiting waiting[WAITING_CAP];
	uint32_t waiting_cnt;
	uint64_t evict_cnt, kept_cnt, starve_cnt, lost_cnt, grant_cnt;
	uint64_t random;
} conductor;

static _Atomic uint64_t foreign_cnt, read_cnt, timeout_cnt, failed_cnt;

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* ---- conductor ------------------------------------------------------------------------------- */

static _Atomic uint64_t *residency_of(uint32_t block)
{
	return &fake.volumes[0].residency[block];
}

static int held(uint64_t word)
{
	for (uint32_t p = 0; p < fake.peer_cnt; p++) {
		struct stoup_page *page = fake.peers[p].page.base;
		uint32_t high = page ? stoup_cell_high(page, fake.control->cell_cap) : 0;

		for (uint32_t i = 0; i < high; i++) {
			if (stoup_cell_read(&page->cells[i]) == word)
				return 1;
		}
	}
	return 0;
}

/* One pass over all buffers, as daemon and protocol have it. */
static void evict_all(void)
{
	for (uint32_t b = 0; b < conductor.buffer_cnt; b++) {
		if (conductor.block[b] >= 0)
			stoup_residency_clear(residency_of((uint32_t)conductor.block[b]));
	}
	stoup_evict_fence();
	for (uint32_t b = 0; b < conductor.buffer_cnt; b++) {
		uint64_t word = stoup_word(conductor.gen[b], b);

		if (conductor.block[b] < 0)
			continue;
		/* Some that nobody holds stay, so that hits happen as well. */
		if (held(word) || (b > 0 && next_random(&conductor.random) % 3 == 0)) {
			stoup_residency_publish(residency_of((uint32_t)conductor.block[b]), word);
			conductor.kept_cnt++;
			continue;
		}
		conductor.block[b] = -1;
		conductor.gen[b] = stoup_gen_next(conductor.gen[b]);
		conductor.evict_cnt++;
	}
}

static int free_buffer(void)
{
	for (uint32_t b = 0; b < conductor.buffer_cnt; b++) {
		if (conductor.block[b] < 0)
			return (int)b;
	}
	return -1;
}

/* A free buffer, evicting where there is none; -1: all are held, and releases ring from now on. */
static int make_room(void)
{
	int b = free_buffer();

	if (b >= 0)
		return b;
	evict_all();
	b = free_buffer();
	if (b < 0) {
		/* [R1] raise, fence, look again. */
		stoup_flag_raise(&fake.control->starving);
		evict_all();
		b = free_buffer();
		conductor.starve_cnt++;
	}
	if (b >= 0)
		stoup_flag_lower(&fake.control->starving);
	return b;
}

static uint64_t fill(uint32_t block)
{
	struct stoup_control_buffer *buffer;
	int b = make_room();
	char *bytes;
	uint64_t word;

	if (b < 0)
		return 0;
	buffer = &stoup_control_buffers(fake.control)[b];
	bytes = (char *)fake.data_region.base + (size_t)b * 4096;
	memset(bytes, 0xee, 4096);
	memcpy(bytes, fake.volumes[0].blocks[block].bytes, fake.volumes[0].blocks[block].len);
	atomic_store_explicit(&buffer->off, (uint64_t)b * 4096, memory_order_relaxed);
	atomic_store_explicit(
		&buffer->len, fake.volumes[0].blocks[block].len, memory_order_relaxed);
	conductor.block[b] = (int)block;
	word = stoup_word(conductor.gen[b], (uint32_t)b);
	stoup_residency_publish(residency_of(block), word);
	return word;
}

static uint64_t word_for(uint32_t block)
{
	uint64_t word = atomic_load_explicit(residency_of(block), memory_order_relaxed);

	return word ? word : fill(block);
}

static void answer(const struct waiting *w, uint64_t word)
{
	struct stoup_page *page = w->peer->page.base;
	struct stoup_slot *slot = &page->slots[w->slot_idx];
	uint32_t cell_idx = atomic_load(&slot->cell_idx);

	if (stoup_lease_grant(&page->cells[cell_idx], w->ticket, word))
		conductor.grant_cnt++;
	else
		conductor.lost_cnt++;
	fake_done(slot, 0, 0);
}

/* A demand: answered here in any case, so that grants can be counted. */
static uint64_t race_load(
	struct fake *f, struct fake_peer *peer, uint32_t slot_idx, const struct fake_request *r)
{
	struct stoup_page *page = peer->page.base;
	struct waiting w = {.peer = peer,
		.slot_idx = slot_idx,
		.request = *r,
		.ticket = stoup_ticket(slot_idx, atomic_load(&page->slots[slot_idx].seq))};
	uint64_t word = word_for(r->block_idx);

	(void)f;
	if (word) {
		answer(&w, word);
		return 0;
	}
	FAKE_MUST(conductor.waiting_cnt < WAITING_CAP);
	conductor.waiting[conductor.waiting_cnt++] = w;
	return 0;
}

/* Those that found the pool full, oldest first. */
static void race_turn(struct fake *f)
{
	(void)f;
	while (conductor.waiting_cnt > 0) {
		uint64_t word = word_for(conductor.waiting[0].request.block_idx);

		if (word == 0)
			return;
		answer(&conductor.waiting[0], word);
		conductor.waiting_cnt--;
		memmove(conductor.waiting, conductor.waiting + 1,
			conductor.waiting_cnt * sizeof(conductor.waiting[0]));
	}
}

/* ---- consumers ------------------------------------------------------------------------------- */

struct reader {
	pthread_t thread;
	struct stoup *st;
	uint64_t random;
	uint32_t rounds;
};

/* Every record of a span is what its series says; `block` is both the series and the value's base. */
static void look(const struct stoup_span *span, uint32_t block)
{
	const struct pair *pairs = span->base;

	for (uint64_t i = 0; i < span->record_cnt; i++) {
		if (pairs[i].key != 10 * (int64_t)(i + 1) || pairs[i].value != 16 * block + i)
			atomic_fetch_add(&foreign_cnt, 1);
	}
	atomic_fetch_add(&read_cnt, 1);
}

static void linger(uint64_t random)
{
	if (random % 4 == 0)
		sched_yield();
	else if (random % 64 == 1)
		usleep(50);
}

/* One lease: a scan of one block, perhaps held beyond its cursor. */
static void visit(struct reader *r, struct stoup_lease *kept, struct stoup_span *kept_span,
	uint32_t *kept_block)
{
	uint64_t random = next_random(&r->random);
	uint32_t block = (uint32_t)(random >> 20) % BLOCK_CNT;
	char name[8] = {'S', (char)('A' + block), 0};
	struct stoup_cursor *cur;
	struct stoup_span span;
	int rc;

	cur = fake_scan(r->st, name, 0, 0);
	rc = stoup_next(cur, &span);
	if (rc == 1) {
		look(&span, block);
		linger(random);
		look(&span, block);
		if (random % 5 == 0 && !kept->client && stoup_hold(&span, kept) == 0) {
			*kept_span = span;
			*kept_block = block;
		}
	} else {
		if (rc != -ETIMEDOUT && rc != -ENOBUFS)
			fprintf(stderr, "%s\n", stoup_cursor_error(cur)->text);
		atomic_fetch_add(
			rc == -ETIMEDOUT || rc == -ENOBUFS ? &timeout_cnt : &failed_cnt, 1);
	}
	stoup_cursor_close(cur);
}

static void *reader_run(void *arg)
{
	struct reader *r = arg;
	struct stoup_lease kept = {0};
	struct stoup_span kept_span;
	uint32_t kept_block = 0;

	for (uint32_t i = 0; i < r->rounds; i++) {
		visit(r, &kept, &kept_span, &kept_block);
		if (kept.client) {
			look(&kept_span, kept_block);
			if (next_random(&r->random) % 3 == 0 && stoup_release(&kept) != 0)
				atomic_fetch_add(&failed_cnt, 1);
		}
	}
	if (kept.client && stoup_release(&kept) != 0)
		atomic_fetch_add(&failed_cnt, 1);
	return NULL;
}

/* ---- the runs -------------------------------------------------------------------------------- */

static uint64_t from_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void make_blocks(void)
{
	static struct fake_series series[BLOCK_CNT];
	static char names[BLOCK_CNT][4];

	for (uint32_t b = 0; b < BLOCK_CNT; b++) {
		names[b][0] = 'S';
		names[b][1] = (char)('A' + b);
		series[b] =
			(struct fake_series){.name = names[b], .schema = "pair", .segment_cnt = 1};
		series[b].segments[0] = (struct fake_segment){.block = b, .cnt = 16};
		for (uint32_t i = 0; i < 16; i++)
			series[b].segments[0].keys[i] = 10 * (int64_t)(i + 1);
	}
	fake_volume(&fake, 1, 0, BLOCK_CNT, series, BLOCK_CNT);
}

/* `shared`: all readers in one attachment, else one each. Short time-outs exercise the cancel. */
static void run(uint32_t buffer_cnt, int shared, uint64_t timeout_ns, uint64_t seed)
{
	struct stoup_options opt;
	struct reader readers[READER_CNT];

	printf("race: %u buffers, %s, time-out %" PRIu64 " us, seed %" PRIu64 "\n", buffer_cnt,
		shared ? "one attachment" : "an attachment each", timeout_ns / 1000, seed);
	memset(&conductor, 0, sizeof(conductor));
	foreign_cnt = read_cnt = timeout_cnt = failed_cnt = 0;
	conductor.buffer_cnt = buffer_cnt;
	conductor.random = seed;
	for (uint32_t b = 0; b < FAKE_BUFFER_CAP; b++) {
		conductor.gen[b] = 1;
		conductor.block[b] = -1;
	}
	fake_init(&fake);
	make_blocks();
	fake.load = race_load;
	fake.turn = race_turn;
	fake_start(&fake, "race");
	stoup_options_init(&opt);
	for (uint32_t i = 0; i < READER_CNT; i++) {
		readers[i].st = i > 0 && shared ? readers[0].st : fake_attach("race", &opt);
		readers[i].st->opt.timeout_ns = timeout_ns;
		readers[i].random = seed * 7919 + i + 1;
		readers[i].rounds = (uint32_t)from_env("STOUP_ROUNDS", ROUNDS);
	}
	for (uint32_t i = 0; i < READER_CNT; i++)
		ck_assert_int_eq(
			pthread_create(&readers[i].thread, NULL, reader_run, &readers[i]), 0);
	for (uint32_t i = 0; i < READER_CNT; i++)
		pthread_join(readers[i].thread, NULL);
	for (uint32_t i = 0; i < (shared ? 1 : READER_CNT); i++)
		ck_assert_int_eq(stoup_detach(readers[i].st), 0);
	fake_stop(&fake);
	printf("      %" PRIu64 " reads, %" PRIu64 " grants, %" PRIu64
	       " lost to a time-out, %" PRIu64 " evictions, %" PRIu64 " kept, %" PRIu64
	       " starved, %" PRIu64 " time-outs\n",
		read_cnt, conductor.grant_cnt, conductor.lost_cnt, conductor.evict_cnt,
		conductor.kept_cnt, conductor.starve_cnt, timeout_cnt);
	ck_assert_uint_eq(foreign_cnt, 0);
	ck_assert_uint_eq(failed_cnt, 0);
}

static uint64_t seed_of_run(void)
{
	return from_env("STOUP_SEED", (uint64_t)getpid() * 2654435761u + 1);
}

START_TEST(no_byte_changes_under_a_lease_and_every_wait_ends)
{
	/* Each reader holds at most two of the buffers, so eight always suffice. */
	run(2 * READER_CNT, 0, UINT64_C(60000000000), seed_of_run());
	ck_assert_uint_eq(timeout_cnt, 0);
	ck_assert_uint_gt(conductor.evict_cnt, 0);
}
END_TEST

START_TEST(a_starved_pool_goes_on_with_each_release_and_loses_no_wake_up)
{
	/* Two buffers: a reader that holds one and wants another waits until somebody gives up. */
	run(2, 0, UINT64_C(3000000), seed_of_run());
	ck_assert_uint_gt(conductor.starve_cnt, 0);
	ck_assert_uint_gt(read_cnt, 0);
}
END_TEST

START_TEST(a_grant_and_a_time_out_never_both_win)
{
	run(3, 0, UINT64_C(30000), seed_of_run());
	ck_assert_uint_gt(timeout_cnt, 0);
}
END_TEST

START_TEST(threads_of_one_attachment_share_cells_rightly)
{
	run(2 * READER_CNT, 1, UINT64_C(60000000000), seed_of_run());
	ck_assert_uint_eq(timeout_cnt, 0);
	ck_assert_uint_gt(conductor.evict_cnt, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("race_lease");
	TCase *tcase = tcase_create("race");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, no_byte_changes_under_a_lease_and_every_wait_ends);
	tcase_add_test(tcase, a_starved_pool_goes_on_with_each_release_and_loses_no_wake_up);
	tcase_add_test(tcase, a_grant_and_a_time_out_never_both_win);
	tcase_add_test(tcase, threads_of_one_attachment_share_cells_rightly);
	suite_add_tcase(suite, tcase);
	return fake_main(suite);
}
