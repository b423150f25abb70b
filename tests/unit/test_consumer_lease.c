/* SPDX-License-Identifier: Apache-2.0 */
/* test_consumer_lease.c - holds, counts, shares and cells of libstoup, seen from the page as the
 * daemon sees it: which cells name a buffer, after each step.
 *
 *      block 0   A/x [10 20]  B/x [11]      block 2   A/x [50]
 *      block 1   A/x [30 40]                block 3   A/x [60]
 */
#include "tests/unit/test_consumer_fake.h"

static const struct fake_series series[] = {
	{.name = "A/x",
		.schema = "pair",
		.segment_cnt = 4,
		.segments = {{0, 2, {10, 20}}, {1, 2, {30, 40}}, {2, 1, {50}}, {3, 1, {60}}}},
	{.name = "B/x", .schema = "pair", .segment_cnt = 1, .segments = {{0, 1, {11}}}},
};

static const struct stoup_options no_ahead = {.struct_len = sizeof(struct stoup_options),
	.ahead_cnt = UINT32_MAX,
	.timeout_ns = 60000000000};

static struct fake fake;
static struct stoup *st;

static void begin(uint64_t lease_cap, uint32_t cell_cap)
{
	fake_init_cells(&fake, lease_cap, cell_cap);
	fake_volume(&fake, 1, 0, 4, series, 2);
	fake_start(&fake, "p");
	st = fake_attach("p", &no_ahead);
}

static void end(void)
{
	ck_assert_uint_eq(fake_leased(&fake), 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	fake_stop(&fake);
}

static uint64_t value_of(const struct stoup_span *span)
{
	return ((const struct pair *)span->base)->value;
}

START_TEST(a_cursor_holds_one_cell_and_leaves_the_words_of_the_last_uses_idle)
{
	struct stoup_cursor *cur;
	struct stoup_span span;
	uint32_t idle = 0;

	begin(1 << 20, STOUP_CELL_CAP);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_uint_eq(fake_leased(&fake), 0);
	for (uint32_t i = 0; i < 4; i++) {
		ck_assert_int_eq(stoup_next(cur, &span), 1);
		ck_assert_uint_eq(fake_leased(&fake), 1);
	}
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	ck_assert_uint_eq(fake_leased(&fake), 0);
	/* All four blocks are still named: that is how the daemon knows what was used. */
	for (uint32_t b = 0; b < 4; b++) {
		uint64_t word = atomic_load(&fake.volumes[0].residency[b]);

		for (uint32_t i = 0; i < STOUP_CELL_CAP; i++)
			idle += fake_cell(&fake, i) == (word | STOUP_WORD_IDLE);
	}
	ck_assert_uint_eq(idle, 4);
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(a_held_span_stays_leased_until_each_of_its_holders_released_it)
{
	struct stoup_cursor *cur;
	struct stoup_span span, first;
	struct stoup_lease a, b;
	uint64_t word;

	begin(1 << 20, STOUP_CELL_CAP);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next(cur, &first), 1);
	word = atomic_load(&fake.volumes[0].residency[0]);
	ck_assert_int_eq(stoup_hold(&first, &a), 0);
	ck_assert_int_eq(stoup_hold(&first, &b), 0);
	ck_assert_uint_eq(fake_leased(&fake), 1);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(fake_leased(&fake), 2);
	ck_assert_uint_eq(fake_cell(&fake, first.cell_idx), word);
	ck_assert_uint_eq(value_of(&first), 0);
	ck_assert_int_eq(stoup_release(&a), 0);
	ck_assert_uint_eq(fake_cell(&fake, first.cell_idx), word);
	ck_assert_int_eq(stoup_release(&b), 0);
	ck_assert_uint_eq(fake_cell(&fake, first.cell_idx), word | STOUP_WORD_IDLE);
	ck_assert_uint_eq(fake_leased(&fake), 1);
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(the_last_holder_may_go_before_the_cursor)
{
	struct stoup_cursor *cur;
	struct stoup_span span;
	struct stoup_lease lease;
	uint32_t cell_idx;

	begin(1 << 20, STOUP_CELL_CAP);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	cell_idx = span.cell_idx;
	ck_assert_int_eq(stoup_hold(&span, &lease), 0);
	ck_assert_int_eq(stoup_release(&lease), 0);
	ck_assert(stoup_cell_leased(fake_cell(&fake, cell_idx)));
	ck_assert_uint_eq(value_of(&span), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert(!stoup_cell_leased(fake_cell(&fake, cell_idx)));
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(a_second_release_is_refused_and_changes_nothing)
{
	struct stoup_cursor *cur;
	struct stoup_span span;
	struct stoup_lease a, b, copy, never = {0};

	begin(1 << 20, STOUP_CELL_CAP);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(stoup_hold(&span, &a), 0);
	ck_assert_int_eq(stoup_hold(&span, &b), 0);
	copy = a;
	ck_assert_int_eq(stoup_release(&a), 0);
	ck_assert_int_eq(stoup_release(&a), -EINVAL);
	ck_assert_int_eq(stoup_release(&copy), -EINVAL);
	ck_assert_int_eq(stoup_release(&never), -EINVAL);
	ck_assert_int_eq(stoup_release(NULL), 0);
	stoup_cursor_close(cur);
	ck_assert_uint_eq(fake_leased(&fake), 1);
	copy.use += 1000;
	ck_assert_int_eq(stoup_release(&copy), -EINVAL);
	copy.idx = 1u << 30;
	ck_assert_int_eq(stoup_release(&copy), -EINVAL);
	ck_assert_uint_eq(fake_leased(&fake), 1);
	ck_assert_int_eq(stoup_release(&b), 0);
	end();
}
END_TEST

START_TEST(a_span_that_is_gone_cannot_be_held)
{
	struct stoup_cursor *cur;
	struct stoup_span span, next;
	struct stoup_lease lease = {.idx = 5};

	begin(1 << 20, STOUP_CELL_CAP);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(stoup_next(cur, &next), 1);
	ck_assert_int_eq(stoup_hold(&span, &lease), -EINVAL);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_hold(&next, &lease), -EINVAL);
	ck_assert_int_eq(stoup_hold(NULL, &lease), -EINVAL);
	ck_assert_uint_eq(lease.idx, 5);
	end();
}
END_TEST

START_TEST(holders_of_one_block_share_a_cell_across_cursors_and_series)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	struct stoup_lease leases[200];
	struct stoup_span span;

	begin(1 << 20, STOUP_CELL_CAP);
	for (uint32_t i = 0; i < 200; i++) {
		struct stoup_cursor *cur = fake_scan(st, i & 1 ? "A/x" : "B/x", 0, 0);

		ck_assert_int_eq(stoup_next(cur, &span), 1);
		ck_assert_int_eq(stoup_hold(&span, &leases[i]), 0);
		stoup_cursor_close(cur);
	}
	ck_assert_uint_eq(fake_leased(&fake), 1);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.lease_cnt, 1);
	ck_assert_uint_eq(stats.leased_bytes, 48);
	ck_assert_int_eq(stoup_detach(st), -EBUSY);
	for (uint32_t i = 0; i < 200; i++)
		ck_assert_int_eq(stoup_release(&leases[(i * 7) % 200]), 0);
	end();
}
END_TEST

START_TEST(detach_is_refused_while_a_cursor_is_open)
{
	struct stoup_cursor *cur;

	begin(1 << 20, STOUP_CELL_CAP);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_detach(st), -EBUSY);
	stoup_cursor_close(cur);
	stoup_cursor_close(NULL);
	ck_assert_int_eq(stoup_detach(NULL), 0);
	end();
}
END_TEST

START_TEST(detach_says_so_in_the_page_and_hangs_up)
{
	const struct stoup_page *page;

	begin(1 << 20, STOUP_CELL_CAP);
	page = fake.peers[0].page.base;
	ck_assert_uint_eq(atomic_load(&page->state), STOUP_PAGE_ATTACHED);
	ck_assert_int_eq(stoup_detach(st), 0);
	ck_assert_uint_eq(atomic_load(&page->state), STOUP_PAGE_DETACHED);
	fake_stop(&fake);
}
END_TEST

START_TEST(detach_hangs_up_although_a_copy_of_the_socket_is_open_elsewhere)
{
	struct pollfd p = {.events = POLLRDHUP};
	char byte;

	begin(1 << 20, STOUP_CELL_CAP);
	p.fd = dup(st->current->sock_fd); /* as a forked child has it */
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	ck_assert_int_eq(stoup_detach(st), 0);
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	ck_assert_int_ne(p.revents & POLLHUP, 0);
	ck_assert_int_eq(recv(p.fd, &byte, 1, MSG_DONTWAIT), 0);
	close(p.fd);
	fake_stop(&fake);
}
END_TEST

/* ---- the share ------------------------------------------------------------------------------- */

START_TEST(more_than_the_share_is_refused_with_the_numbers_and_goes_on_after_a_release)
{
	struct stoup_cursor *cur;
	struct stoup_span span;
	struct stoup_lease a, b;

	/* Three extents of one page each. */
	begin(3 * 4096, STOUP_CELL_CAP);
	cur = fake_scan(st, "A/x", 0, 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(stoup_hold(&span, &a), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(stoup_hold(&span, &b), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_uint_eq(fake_leased(&fake), 3);
	/* The third span may be held once more bytes are free: the cursor's own share counts as
	 * well. */
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	{
		struct stoup_cursor *other = fake_scan(st, "A/x", 50, 51);
		struct stoup_span more;

		ck_assert_int_eq(stoup_next(other, &more), -EDQUOT);
		ck_assert_int_eq(stoup_cursor_error(other)->code, -EDQUOT);
		ck_assert_ptr_nonnull(strstr(stoup_cursor_error(other)->text, "12288"));
		ck_assert_ptr_nonnull(strstr(stoup_cursor_error(other)->text, "--lease-bytes"));
		ck_assert_uint_eq(atomic_load(&st->current->page->bytes_refused_cnt), 1);
		ck_assert_uint_eq(fake_leased(&fake), 3);
		ck_assert_int_eq(stoup_release(&a), 0);
		ck_assert_int_eq(stoup_next(other, &more), 1);
		ck_assert_int_eq(more.first_key, 50);
		ck_assert_uint_eq(fake_leased(&fake), 3);
		stoup_cursor_close(other);
	}
	ck_assert_int_eq(stoup_release(&b), 0);
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(a_block_larger_than_the_share_can_be_leased_alone)
{
	struct stoup_cursor *cur;
	struct stoup_span span;
	struct stoup_lease lease;
	uint32_t cnt = 0;

	begin(1000, STOUP_CELL_CAP);
	cur = fake_scan(st, "A/x", 0, 0);
	while (stoup_next(cur, &span) > 0) {
		ck_assert_uint_eq(fake_leased(&fake), 1);
		ck_assert_int_eq(stoup_hold(&span, &lease), 0);
		ck_assert_uint_eq(fake_leased(&fake), 1);
		ck_assert_int_eq(stoup_release(&lease), 0);
		cnt++;
	}
	ck_assert_uint_eq(cnt, 4);
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(many_cursors_of_one_block_count_its_bytes_once_when_the_share_is_small)
{
	struct stoup_cursor *cursors[40];
	struct stoup_span spans[40];

	begin(2 * 4096, STOUP_CELL_CAP);
	for (uint32_t i = 0; i < 40; i++) {
		cursors[i] = fake_scan(st, i & 1 ? "A/x" : "B/x", 0, 0);
		ck_assert_int_eq(stoup_next(cursors[i], &spans[i]), 1);
	}
	/* One private cell within half of the share, one shared by the other 39. */
	ck_assert_uint_eq(fake_leased(&fake), 2);
	for (uint32_t i = 0; i < 40; i++) {
		ck_assert_uint_eq(value_of(&spans[i]), i & 1 ? 0 : 6);
		stoup_cursor_close(cursors[i]);
	}
	end();
}
END_TEST

START_TEST(few_cells_serve_many_cursors_of_the_same_blocks)
{
	struct stoup_cursor *cursors[64];
	struct stoup_span span;

	begin(1 << 20, 8);
	for (uint32_t i = 0; i < 64; i++) {
		cursors[i] = fake_scan(st, i & 1 ? "A/x" : "B/x", 0, 0);
		ck_assert_int_eq(stoup_next(cursors[i], &span), 1);
	}
	ck_assert_uint_le(fake_leased(&fake), 8);
	for (uint32_t i = 0; i < 64; i++)
		stoup_cursor_close(cursors[i]);
	end();
}
END_TEST

START_TEST(with_all_cells_in_use_a_new_block_is_refused)
{
	struct stoup_cursor *cur;
	struct stoup_span span;
	struct stoup_lease leases[3];

	begin(1 << 20, 3);
	cur = fake_scan(st, "A/x", 0, 0);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_int_eq(stoup_next(cur, &span), 1);
		ck_assert_int_eq(stoup_hold(&span, &leases[i]), 0);
	}
	ck_assert_int_eq(stoup_next(cur, &span), -EMFILE);
	ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text, "all 3 lease cells"));
	ck_assert_ptr_nonnull(strstr(stoup_cursor_error(cur)->text, "--cells"));
	ck_assert_uint_eq(atomic_load(&st->current->page->cells_refused_cnt), 1);
	ck_assert_int_eq(stoup_release(&leases[1]), 0);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(span.first_key, 60);
	stoup_cursor_close(cur);
	ck_assert_int_eq(stoup_release(&leases[0]), 0);
	ck_assert_int_eq(stoup_release(&leases[2]), 0);
	end();
}
END_TEST

START_TEST(a_release_rings_while_the_pool_starves)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	struct stoup_cursor *cur;
	struct stoup_span span;
	uint64_t before;

	begin(1 << 20, STOUP_CELL_CAP);
	cur = fake_scan(st, "A/x", 0, 11);
	ck_assert_int_eq(stoup_next(cur, &span), 1);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	before = stats.doorbell_cnt;
	atomic_store(&fake.control->starving, 1);
	ck_assert_int_eq(stoup_next(cur, &span), 0);
	atomic_store(&fake.control->starving, 0);
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.doorbell_cnt, before + 1);
	stoup_cursor_close(cur);
	end();
}
END_TEST

START_TEST(an_evicted_block_is_asked_for_again)
{
	struct stoup_stats stats = {.struct_len = sizeof(stats)};
	struct stoup_cursor *cur;
	struct stoup_span span;

	begin(1 << 20, STOUP_CELL_CAP);
	for (uint32_t i = 0; i < 3; i++) {
		cur = fake_scan(st, "A/x", 0, 11);
		ck_assert_int_eq(stoup_next(cur, &span), 1);
		stoup_cursor_close(cur);
		if (i == 1)
			fake_evict(&fake, 0, 0);
	}
	ck_assert_int_eq(stoup_stats(st, &stats), 0);
	ck_assert_uint_eq(stats.miss_cnt, 2);
	ck_assert_uint_eq(stats.hit_cnt, 1);
	ck_assert_int_eq(atomic_load(&fake.volumes[0].blocks[0].load_cnt), 2);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("consumer_lease");
	TCase *hold = tcase_create("hold"), *share = tcase_create("share");

	tcase_add_test(hold, a_cursor_holds_one_cell_and_leaves_the_words_of_the_last_uses_idle);
	tcase_add_test(hold, a_held_span_stays_leased_until_each_of_its_holders_released_it);
	tcase_add_test(hold, the_last_holder_may_go_before_the_cursor);
	tcase_add_test(hold, a_second_release_is_refused_and_changes_nothing);
	tcase_add_test(hold, a_span_that_is_gone_cannot_be_held);
	tcase_add_test(hold, holders_of_one_block_share_a_cell_across_cursors_and_series);
	tcase_add_test(hold, detach_is_refused_while_a_cursor_is_open);
	tcase_add_test(hold, detach_says_so_in_the_page_and_hangs_up);
	tcase_add_test(hold, detach_hangs_up_although_a_copy_of_the_socket_is_open_elsewhere);
	tcase_add_test(
		share, more_than_the_share_is_refused_with_the_numbers_and_goes_on_after_a_release);
	tcase_add_test(share, a_block_larger_than_the_share_can_be_leased_alone);
	tcase_add_test(
		share, many_cursors_of_one_block_count_its_bytes_once_when_the_share_is_small);
	tcase_add_test(share, few_cells_serve_many_cursors_of_the_same_blocks);
	tcase_add_test(share, with_all_cells_in_use_a_new_block_is_refused);
	tcase_add_test(share, a_release_rings_while_the_pool_starves);
	tcase_add_test(share, an_evicted_block_is_asked_for_again);
	suite_add_tcase(suite, hold);
	suite_add_tcase(suite, share);
	return fake_main(suite);
}
