/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_page.c - a consumer that writes into its page what it likes, next to one that keeps the rules.
 *
 *      input: steps      hostile: bytes, words, tickets, leases, requests, pending bits, doorbell,
 *                                 hang-up, detach, attach anew
 *                        legal:   request, hit, release, the newest snapshot, pins
 *                        daemon:  turns, time, a volume comes into the store or goes
 *
 * Checked: the legal one's requests all end, its leases stay leased, and the bytes that it holds stay
 * what the store has, whatever the other one does; afterwards nothing is leased, waiting or loading,
 * and the daemon's own tables are sound.
 */
#include "shm/lease.h"
#include "tests/fuzz/daemon_steps.h"

#define HELD_CAP 4u
#define STEP_CAP 200
#define WAIT_NS  UINT64_C(2000000000) /* time-out of the legal one's requests */

struct held {
	uint32_t volume, block;
	uint64_t word; /* 0: nothing */
};

static struct steps_peer legal, hostile;
static struct held held[HELD_CAP]; /* held[i] is leased through cell i */
static uint64_t legal_seq;
static uint32_t legal_idx;

/* ---- the one that keeps the rules ------------------------------------------------------------- */

static void held_check(void)
{
	struct stoup_daemon *d = steps_daemon;

	for (uint32_t i = 0; i < HELD_CAP; i++) {
		const struct held *h = &held[i];
		uint32_t idx = stoup_word_idx(h->word), len = steps_block_len(h->block) / 16 * 16;
		uint64_t off;

		if (h->word == 0)
			continue;
		MUST(idx < d->buffer_cap && d->buffers[idx].gen == stoup_word_gen(h->word));
		MUST(d->buffers[idx].state >= STOUP_BUFFER_RESIDENT);
		off = atomic_load(&d->table[idx].off);
		MUST(atomic_load(&d->table[idx].len) == len);
		MUST(off + len <= d->data_region.len);
		MUST(memcmp((const char *)d->data_region.base + off,
			     steps_block(h->volume, h->block), len) == 0);
	}
}

/* A cell for a block of `block_len` bytes; HELD_CAP where there is none, or where the block would be
 * more than its share: the library asks for none then, and a page that has more is cut off. */
static uint32_t held_free(uint32_t block_len)
{
	uint64_t bytes = 0;
	uint32_t i = HELD_CAP;

	for (uint32_t at = HELD_CAP; at-- > 0;) {
		if (held[at].word != 0)
			bytes += steps_block_len(held[at].block);
		else
			i = at;
	}
	return bytes == 0 || bytes + block_len <= steps_daemon->control->lease_bytes_cap ? i
	                                                                                 : HELD_CAP;
}

static void legal_release(uint32_t i)
{
	if (held[i].word == 0)
		return;
	held_check();
	MUST(atomic_load(&legal.page->cells[i]) == held[i].word);
	if (stoup_lease_release(
		    &legal.page->cells[i], held[i].word, &steps_daemon->control->starving))
		steps_ring(&legal);
	held[i].word = 0;
}

static void legal_hit(uint32_t volume, uint32_t block)
{
	uint32_t place = steps_place(volume), i = held_free(steps_block_len(block));

	if (i == HELD_CAP || place == STOUP_IDX_NONE)
		return;
	stoup_lease_cell_reach(legal.page, i);
	held[i] = (struct held){volume, block,
		stoup_lease_acquire(
			&steps_daemon->volumes[place].residency[block], &legal.page->cells[i])};
	held_check();
}

/* Wait for the end of the request in slot 0, turning the daemon and letting its time pass. */
static void legal_wait(void)
{
	struct stoup_slot *slot = &legal.page->slots[0];

	for (int i = 0; atomic_load(&slot->state) != STOUP_SLOT_DONE; i++) {
		MUST(i < STEPS_TURN_CAP);
		if (!steps_turn(0) && steps_daemon->in_flight > 0)
			steps_turn(1);
		else if (i > 20)
			steps_skip(WAIT_NS / 50);
	}
}

static void legal_request(uint32_t volume, uint32_t block)
{
	struct stoup_slot *slot = &legal.page->slots[0];
	uint32_t place = steps_place(volume), i = held_free(steps_block_len(block)), error;
	uint64_t ticket;

	if (i == HELD_CAP || place == STOUP_IDX_NONE)
		return;
	stoup_lease_cell_reach(legal.page, i);
	ticket = stoup_ticket(0, ++legal_seq);
	atomic_store(&slot->kind, STOUP_REQUEST_DEMAND);
	atomic_store(&slot->seq, legal_seq);
	atomic_store(&slot->cell_idx, i);
	atomic_store(&slot->volume_idx, place);
	atomic_store(&slot->block_idx, block);
	atomic_store(&slot->ahead_cnt, 0);
	atomic_store(&slot->deadline_ns, stoup_now_ns() + steps_skew_ns + WAIT_NS);
	atomic_store(&slot->state, STOUP_SLOT_WAIT);
	stoup_lease_ticket(&legal.page->cells[i], ticket);
	if (stoup_request_post(legal.page, 0, &steps_daemon->control->asleep))
		steps_ring(&legal);
	legal_wait();
	atomic_store(&slot->state, STOUP_SLOT_FREE);
	error = (uint32_t)-atomic_load(&slot->error);
	if (error == 0) {
		held[i] = (struct held){volume, block, atomic_load(&legal.page->cells[i])};
		MUST(stoup_cell_leased(held[i].word));
		held_check();
		return;
	}
	MUST(atomic_load(&legal.page->cells[i]) == ticket);
	atomic_store(&legal.page->cells[i], 0);
	if (steps_block_len(block) / 16 * 16 > steps_daemon->control->block_len_max)
		MUST(error == EFBIG);
	else
		MUST(error == ENOBUFS);
}

/* The store changes, and the legal one moves to the newest snapshot. */
static void legal_renew(void)
{
	struct stoup_wire_volumes msg = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_VOLUMES,
		.flags = STOUP_VOLUMES_NEWEST};
	int fds[STOUP_WIRE_FD_CAP];
	uint32_t cnt = 0;
	int64_t len = -EAGAIN;

	steps_swap();
	MUST(stoup_wire_send(legal.sock_fd, &msg, sizeof(msg), NULL, 0) == 0);
	for (int i = 0; len == -EAGAIN; i++) {
		MUST(i < STEPS_TURN_CAP);
		steps_turn(0);
		len = stoup_wire_recv(
			legal.sock_fd, &msg, sizeof(msg), fds, STOUP_WIRE_FD_CAP, &cnt);
	}
	MUST(len == sizeof(msg) && msg.error == 0 && msg.cnt == cnt);
	MUST(cnt == STEPS_VOLUME_CNT - !steps_is_in);
	for (uint32_t i = 0; i < cnt; i++)
		close(fds[i]);
	atomic_store(&legal.page->snapshot_seq, msg.snapshot_seq);
}

/* Pin blocks of a series, or remove all pins: what is pinned must be in nobody's way. */
static void legal_pin(uint32_t op, uint32_t volume, uint32_t first)
{
	struct stoup_wire_pin msg = {.magic = STOUP_HELLO_MAGIC, .kind = STOUP_WIRE_PIN, .op = op};
	uint32_t cnt = 0;
	int64_t len = -EAGAIN;
	int fds[1];

	if (op == STOUP_PIN_ADD) {
		snprintf(msg.text, sizeof(msg.text), "%c/A", (int)('A' + volume));
		msg.from_ns = STEPS_KEY + ((int64_t)first << 20);
	}
	MUST(stoup_wire_send(legal.sock_fd, &msg, sizeof(msg), NULL, 0) == 0);
	for (int i = 0; len == -EAGAIN; i++) {
		MUST(i < STEPS_TURN_CAP);
		steps_turn(0);
		len = stoup_wire_recv(legal.sock_fd, &msg, sizeof(msg), fds, 1, &cnt);
	}
	MUST(len == sizeof(msg) && cnt == 0);
	MUST(msg.error == 0 || (op == STOUP_PIN_ADD && msg.error > -4096 && msg.text[0]));
	MUST(msg.all_bytes <= msg.cap_bytes);
	steps_check_pins();
}

/* ---- the one that does not -------------------------------------------------------------------- */

static uint64_t any_word(struct fuzz_in *in)
{
	const struct stoup_daemon *d = steps_daemon;
	uint8_t choice = fuzz_u8(in);
	uint32_t idx = fuzz_u8(in) % d->buffer_cap;
	uint64_t word = stoup_word(d->buffers[idx].gen, idx);

	switch (choice % 8) {
	case 0:
		return word;
	case 1:
		return word | STOUP_WORD_IDLE;
	case 2:
		return word | STOUP_WORD_TICKET;
	case 3:
		return stoup_word(d->buffers[idx].gen + 1, idx);
	case 4:
		return stoup_ticket(idx & 63, fuzz_u8(in));
	case 5:
		return held[idx % HELD_CAP].word;
	case 6:
		return fuzz_u8(in);
	default:
		return fuzz_int(in, 8);
	}
}

static void hostile_bytes(struct fuzz_in *in)
{
	size_t off = fuzz_u16(in) % hostile.page_len;
	const uint8_t *bytes;
	size_t len = fuzz_take(in, fuzz_u8(in), &bytes);

	for (size_t i = 0; i < len && off + i < hostile.page_len; i++)
		((volatile uint8_t *)hostile.page)[off + i] = bytes[i];
}

static void hostile_cells(struct fuzz_in *in)
{
	uint32_t first = fuzz_u8(in), cnt = fuzz_u8(in) % 16 + 1;
	uint64_t word = any_word(in);

	for (uint32_t i = 0; i < cnt; i++)
		atomic_store(&hostile.page->cells[(first + i) % STEPS_CELL_CAP], word);
	if (first & 0x80)
		atomic_store(&hostile.page->cell_high, UINT32_MAX);
	/* The word of each buffer, one after the other. */
	for (uint32_t i = 0; first == 0xff && i < STEPS_CELL_CAP; i++)
		atomic_store(&hostile.page->cells[i], stoup_word(steps_daemon->buffers[i].gen, i));
}

static void hostile_request(struct fuzz_in *in)
{
	uint8_t bits = fuzz_u8(in);
	struct stoup_slot *slot = &hostile.page->slots[bits & 63];
	uint64_t seq = fuzz_u8(in);
	uint32_t cell = fuzz_u8(in);

	atomic_store(&slot->kind, 1 + (bits >> 6 & 1));
	atomic_store(&slot->seq, seq);
	atomic_store(&slot->cell_idx, cell);
	atomic_store(&slot->volume_idx, fuzz_u8(in) % 4);
	atomic_store(&slot->block_idx, fuzz_u8(in) % (STEPS_BLOCK_CNT + 1));
	cell %= STEPS_CELL_CAP;
	seq = stoup_ticket(bits & 63, seq);
	atomic_store(&slot->ahead_cnt, fuzz_u8(in));
	atomic_store(&slot->ahead_volume_idx, fuzz_u8(in) % 4);
	atomic_store(&slot->ahead_block_idx, fuzz_u8(in) % (STEPS_BLOCK_CNT + 1));
	atomic_store(&slot->ahead_step, (int8_t)fuzz_u8(in));
	atomic_store(&slot->deadline_ns,
		bits & 128 ? UINT64_MAX : stoup_now_ns() + steps_skew_ns + fuzz_u8(in) * 10000000u);
	if (atomic_load(&hostile.page->cell_high) <= cell)
		atomic_store(&hostile.page->cell_high, cell + 1);
	atomic_store(&hostile.page->cells[cell], seq);
	atomic_fetch_or(&hostile.page->pending, UINT64_C(1) << (bits & 63));
}

static void hostile_step(struct fuzz_in *in, unsigned what)
{
	if (!hostile.page) {
		steps_attach(&hostile);
		return;
	}
	switch (what) {
	case 0:
		hostile_bytes(in);
		break;
	case 1:
		hostile_cells(in);
		break;
	case 2:
		hostile_request(in);
		break;
	case 3:
		atomic_fetch_or(&hostile.page->pending, fuzz_int(in, 8));
		break;
	case 4:
		atomic_store(&hostile.page->pending, UINT64_MAX);
		steps_ring(&hostile);
		break;
	case 5:
		atomic_store(&hostile.page->state, fuzz_u8(in) % 4);
		break;
	default:
		steps_leave(&hostile, fuzz_u8(in) & 1);
		break;
	}
}

static void step(struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in) % 16, arg;

	if (what < 8) {
		hostile_step(in, what);
		return;
	}
	arg = fuzz_u8(in);
	if (what == 8)
		steps_turn(0);
	else if (what == 9)
		legal_renew();
	else if (what == 10)
		steps_skip(arg * UINT64_C(20000000));
	else if (what < 13)
		legal_request((arg >> 4) % 3u, (arg & 15u) % STEPS_BLOCK_CNT);
	else if (what == 13)
		legal_hit((arg >> 4) % 3u, (arg & 15u) % STEPS_BLOCK_CNT);
	else if (what == 15 && arg >= 240)
		legal_pin(STOUP_PIN_DROP, 0, 0);
	else if (what == 15 && arg >= 128)
		legal_pin(STOUP_PIN_ADD, (arg >> 4) % 3u, arg & 15u);
	else
		legal_release(arg % HELD_CAP);
	held_check();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz_in in = {bytes, len};
	struct stoup_daemon *d;

	steps_start();
	d = steps_daemon;
	if (!legal.page) {
		MUST(steps_attach(&legal) == 0);
		legal_idx = legal.page->consumer_idx;
	}
	MUST(steps_attach(&hostile) == 0);
	for (int i = 0; i < STEP_CAP && in.left > 0; i++)
		step(&in);
	steps_leave(&hostile, 0);
	for (uint32_t i = 0; i < HELD_CAP; i++)
		legal_release(i);
	if (steps_is_in)
		legal_renew();
	steps_bury(legal_idx);
	steps_check();
	for (uint32_t i = 0; i < d->volume_cnt; i++)
		MUST(d->volumes[i].retired_seq == 0 && !d->volumes[i].closed);
	/* With nobody in its way every block comes, and nothing is left. */
	legal_request(0, 1);
	MUST(held[0].word != 0);
	legal_release(0);
	legal_pin(STOUP_PIN_DROP, 0, 0);
	MUST(d->pin_cnt == 0 && d->pin_bytes == 0 && d->pinned_blocks == 0);
	steps_skip(UINT64_C(1000000000));
	steps_settle();
	MUST(d->in_flight == 0 && d->demand.cnt == 0);
	MUST(d->counters[STOUP_COUNTER_LEASES].value == 0);
	return 0;
}
