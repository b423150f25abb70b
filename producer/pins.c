/* SPDX-License-Identifier: Apache-2.0 */
/* pins.c - blocks that are kept though nobody leases them: `stoup pin`.
 *
 *      pin {series, [from, to)} --walk: segments of each volume--> count per block --> buffer that has it: kept
 *
 *      block loaded, count > 0  --> kept, flag PINNED        count 0 --> ordinary again
 *      volume retired           --> its part of each pin goes
 *      volume born              --> pins take it in, oldest pin first, while --pin-max has room; else its part is left out
 *      nothing else to evict    --> kept blocks yield (evict.c); loaded again, they are kept again
 *
 * Of a volume a pin has all blocks or none; `on` says which. So what was counted is counted back by the same walk, whatever
 * came between.
 *
 * Invariant: pin_bytes is the pool's bytes of all blocks with a count, loaded or not, and at most the control object's
 * pin_bytes_cap. A buffer is pinned in the ring just when its block has a count and did not yield.
 *
 * Concurrency: the conductor's. If the daemon dies, the pins are gone: the next one says how many there were.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shm/hook.h"

struct stoup_pin {
	char name[STOUP_PIN_NAME_CAP];
	int64_t from_ns, to_ns;
	uint32_t left_cnt;                    /* volumes in `left` */
	uint64_t on[STOUP_VOLUME_CAP / 64];   /* places of volumes whose blocks it counts */
	uint64_t left[STOUP_VOLUME_CAP / 64]; /* ... that found no room */
};

static int bit_has(const uint64_t *bits, uint32_t at)
{
	return (int)(bits[at / 64] >> (at % 64) & 1);
}

static void bit_set(uint64_t *bits, uint32_t at)
{
	bits[at / 64] |= UINT64_C(1) << (at % 64);
}

static void bit_clear(uint64_t *bits, uint32_t at)
{
	bits[at / 64] &= ~(UINT64_C(1) << (at % 64));
}

/* ---- one buffer ------------------------------------------------------------------------------- */

static uint64_t page_up(uint64_t len)
{
	return (len + STOUP_OS_PAGE_LEN - 1) & ~(uint64_t)(STOUP_OS_PAGE_LEN - 1);
}

static uint64_t buffer_bytes(const struct stoup_daemon *d, uint32_t idx)
{
	return page_up(atomic_load_explicit(&d->table[idx].len, memory_order_relaxed));
}

static void show(struct stoup_daemon *d)
{
	stoup_gauge(d, STOUP_COUNTER_PINS, d->pin_cnt);
	stoup_gauge(d, STOUP_COUNTER_PIN_BYTES, d->pin_bytes);
	stoup_gauge(d, STOUP_COUNTER_PINNED_BLOCKS, d->pinned_blocks);
	stoup_gauge(d, STOUP_COUNTER_PINNED_BYTES, d->pinned_bytes);
}

static void buffer_pin(struct stoup_daemon *d, uint32_t idx)
{
	if (d->buffers[idx].pinned || d->buffers[idx].state != STOUP_BUFFER_RESIDENT)
		return;
	stoup_ring_pin(d->ring, idx);
	/* It stays whether it is read or not: it must not take the share of what is read ahead for good. */
	stoup_ring_unwanted(d->ring, idx);
	d->buffers[idx].pinned = 1;
	d->pinned_blocks++;
	d->pinned_bytes += buffer_bytes(d, idx);
	atomic_store_explicit(&d->table[idx].flags, STOUP_BUFFER_PINNED, memory_order_relaxed);
}

void stoup_pin_buffer_end(struct stoup_daemon *d, uint32_t idx)
{
	if (!d->buffers[idx].pinned)
		return;
	stoup_ring_unpin(d->ring, idx);
	d->buffers[idx].pinned = 0;
	d->pinned_blocks--;
	d->pinned_bytes -= buffer_bytes(d, idx);
	atomic_store_explicit(&d->table[idx].flags, 0, memory_order_relaxed);
	show(d);
}

void stoup_pin_buffer_loaded(struct stoup_daemon *d, uint32_t idx)
{
	const struct stoup_buffer *b = &d->buffers[idx];

	if (d->volumes[b->volume_idx].pin_cnt[b->block_idx] == 0)
		return;
	buffer_pin(d, idx);
	show(d);
}

/* ---- the walk --------------------------------------------------------------------------------- */

static const struct stoup_catalog *catalog_of(const struct stoup_daemon *d, uint32_t volume_idx)
{
	return d->volumes[volume_idx].catalog.base;
}

/* Is it of the newest snapshot? */
static int is_served(const struct stoup_volume *v)
{
	return v->file && v->born_seq > 0 && v->retired_seq == 0 && !v->closed;
}

typedef void visit_fn(struct stoup_daemon *d, uint32_t volume_idx, uint32_t block_idx);

/* Each block of the pin in a volume, as often as its segments say. 1: the volume has the series. */
static int walk(
	struct stoup_daemon *d, uint32_t volume_idx, const struct stoup_pin *pin, visit_fn *visit)
{
	const struct stoup_catalog *c = catalog_of(d, volume_idx);
	const struct stoup_catalog_series *series = stoup_catalog_series(c);
	const struct stoup_catalog_segment *segs = stoup_catalog_segments(c);
	const struct stoup_catalog_block *blocks = stoup_catalog_blocks(c);
	int64_t first = stoup_catalog_find(c, pin->name), at = first;

	/* Several of one name in a row have different layouts. */
	for (; at >= 0 && at < c->series_cnt; at++) {
		const struct stoup_catalog_segment *seg = segs + series[at].segment_first;

		if (strcmp(stoup_catalog_string(c, series[at].name_off), pin->name) != 0)
			break;
		for (uint32_t i = 0; visit && i < series[at].segment_cnt; i++) {
			if ((pin->from_ns && seg[i].last_key < pin->from_ns) ||
				(pin->to_ns && seg[i].first_key >= pin->to_ns) ||
				blocks[seg[i].block_idx].raw_len > d->control->block_len_max)
				continue;
			visit(d, volume_idx, seg[i].block_idx);
		}
	}
	return first >= 0;
}

static uint64_t block_bytes(const struct stoup_daemon *d, uint32_t volume_idx, uint32_t block_idx)
{
	return page_up(d->volumes[volume_idx].file->index->blocks[block_idx].raw_len);
}

/* The buffer that has the block, or STOUP_IDX_NONE. */
static uint32_t buffer_of(const struct stoup_daemon *d, uint32_t volume_idx, uint32_t block_idx)
{
	uint64_t w = atomic_load_explicit(
		&d->volumes[volume_idx].residency[block_idx], memory_order_relaxed);

	return w ? stoup_word_idx(w) : STOUP_IDX_NONE;
}

static void count_up(struct stoup_daemon *d, uint32_t volume_idx, uint32_t block_idx)
{
	if (d->volumes[volume_idx].pin_cnt[block_idx]++ == 0)
		d->pin_bytes += block_bytes(d, volume_idx, block_idx);
}

static void count_down(struct stoup_daemon *d, uint32_t volume_idx, uint32_t block_idx)
{
	uint32_t idx;

	if (--d->volumes[volume_idx].pin_cnt[block_idx] > 0)
		return;
	d->pin_bytes -= block_bytes(d, volume_idx, block_idx);
	idx = buffer_of(d, volume_idx, block_idx);
	if (idx != STOUP_IDX_NONE)
		stoup_pin_buffer_end(d, idx);
}

static void settle(struct stoup_daemon *d, uint32_t volume_idx, uint32_t block_idx)
{
	uint32_t idx = buffer_of(d, volume_idx, block_idx);

	if (idx != STOUP_IDX_NONE)
		buffer_pin(d, idx);
}

/* Count each block once: a bit is set by the first walk and cleared by the second. */
static void mark(struct stoup_daemon *d, uint32_t volume_idx, uint32_t block_idx)
{
	uint8_t *bits = d->volumes[volume_idx].pin_seen, bit = (uint8_t)(1u << (block_idx & 7));

	if (bits[block_idx / 8] & bit)
		return;
	bits[block_idx / 8] |= bit;
	d->pin_sum.block_cnt++;
	d->pin_sum.bytes += block_bytes(d, volume_idx, block_idx);
}

static void unmark(struct stoup_daemon *d, uint32_t volume_idx, uint32_t block_idx)
{
	d->volumes[volume_idx].pin_seen[block_idx / 8] &= (uint8_t) ~(1u << (block_idx & 7));
}

/* What a pin has in the volumes that it counts, into d->pin_sum. */
static void sum(struct stoup_daemon *d, const struct stoup_pin *pin)
{
	d->pin_sum.block_cnt = d->pin_sum.bytes = 0;
	for (uint32_t v = 0; v < d->volume_cnt; v++)
		if (bit_has(pin->on, v)) {
			walk(d, v, pin, mark);
			walk(d, v, pin, unmark);
		}
}

/* ---- pins and volumes ------------------------------------------------------------------------- */

static void take_off(struct stoup_daemon *d, struct stoup_pin *pin, uint32_t volume_idx)
{
	if (bit_has(pin->on, volume_idx))
		walk(d, volume_idx, pin, count_down);
	bit_clear(pin->on, volume_idx);
	if (bit_has(pin->left, volume_idx))
		pin->left_cnt--;
	bit_clear(pin->left, volume_idx);
}

/* Count the volume's blocks for the pin if --pin-max has room for all of them: 1, or 0. */
static int take_in(struct stoup_daemon *d, struct stoup_pin *pin, uint32_t volume_idx)
{
	if (!walk(d, volume_idx, pin, count_up))
		return 1;
	if (d->pin_bytes > d->control->pin_bytes_cap) {
		walk(d, volume_idx, pin, count_down);
		return 0;
	}
	walk(d, volume_idx, pin, settle);
	bit_set(pin->on, volume_idx);
	return 1;
}

static void leave_out(struct stoup_daemon *d, struct stoup_pin *pin, uint32_t volume_idx)
{
	if (bit_has(pin->left, volume_idx))
		return;
	bit_set(pin->left, volume_idx);
	pin->left_cnt++;
	stoup_log_error(d, -EDQUOT,
		"%s: new blocks of %.60s are not pinned: pins keep %" PRIu64 " of the %" PRIu64
		" bytes of --pin-max; mend: stoup unpin, or stoupd --pin-max SIZE",
		stoup_path_tail(d->volumes[volume_idx].file->path), pin->name, d->pin_bytes,
		d->control->pin_bytes_cap);
}

void stoup_pins_retired(struct stoup_daemon *d, uint32_t volume_idx)
{
	for (uint32_t p = 0; p < d->pin_cnt; p++)
		take_off(d, &d->pins[p], volume_idx);
	show(d);
}

void stoup_pins_born(struct stoup_daemon *d, uint32_t volume_idx)
{
	for (uint32_t p = 0; p < d->pin_cnt; p++)
		if (!take_in(d, &d->pins[p], volume_idx))
			leave_out(d, &d->pins[p], volume_idx);
	show(d);
}

/* Room came: what was left out is tried again. */
static void left_again(struct stoup_daemon *d)
{
	for (uint32_t p = 0; p < d->pin_cnt; p++) {
		struct stoup_pin *pin = &d->pins[p];

		for (uint32_t v = 0; pin->left_cnt > 0 && v < d->volume_cnt; v++)
			if (bit_has(pin->left, v) && take_in(d, pin, v)) {
				bit_clear(pin->left, v);
				pin->left_cnt--;
			}
	}
}

/* ---- questions -------------------------------------------------------------------------------- */

static int same(const struct stoup_pin *pin, const struct stoup_wire_pin *asked)
{
	return pin->from_ns == asked->from_ns && pin->to_ns == asked->to_ns &&
	       strcmp(pin->name, asked->text) == 0;
}

static void drop(struct stoup_daemon *d, uint32_t idx)
{
	for (uint32_t v = 0; v < d->volume_cnt; v++)
		take_off(d, &d->pins[idx], v);
	d->pin_cnt--;
	memmove(&d->pins[idx], &d->pins[idx + 1], (d->pin_cnt - idx) * sizeof(d->pins[0]));
}

static void answer_of(
	struct stoup_daemon *d, const struct stoup_pin *pin, struct stoup_wire_pin *ret)
{
	sum(d, pin);
	ret->block_cnt = d->pin_sum.block_cnt;
	ret->bytes = d->pin_sum.bytes;
	ret->left_cnt = pin->left_cnt;
	ret->from_ns = pin->from_ns;
	ret->to_ns = pin->to_ns;
}

/* Count all of it, and see then whether it was too much: so the numbers of a refusal are whole. */
static int fill(struct stoup_daemon *d, struct stoup_pin *pin, struct stoup_error *err)
{
	uint64_t before = d->pin_bytes, wanted;
	int found = 0;

	for (uint32_t v = 0; v < d->volume_cnt; v++)
		if (is_served(&d->volumes[v]) && walk(d, v, pin, count_up)) {
			found = 1;
			bit_set(pin->on, v);
		}
	wanted = d->pin_bytes;
	if (found && wanted <= d->control->pin_bytes_cap) {
		for (uint32_t v = 0; v < d->volume_cnt; v++)
			if (bit_has(pin->on, v))
				walk(d, v, pin, settle);
		return 0;
	}
	for (uint32_t v = 0; v < d->volume_cnt; v++)
		take_off(d, pin, v);
	if (!found)
		return stoup_error_set(
			err, -ENOENT, "pool '%s' has no series '%.120s'", d->opt.pool, pin->name);
	return stoup_error_set(err, -EDQUOT,
		"%.60s needs %" PRIu64 " bytes, %" PRIu64
		" are pinned in pool '%s': together more than "
		"the %" PRIu64
		" of --pin-max; mend: a shorter range, stoup unpin, or stoupd --pin-max SIZE",
		pin->name, wanted - before, before, d->opt.pool, d->control->pin_bytes_cap);
}

static int add(struct stoup_daemon *d, const struct stoup_wire_pin *asked,
	struct stoup_wire_pin *ret, struct stoup_error *err)
{
	struct stoup_pin *pin;
	int rc;

	for (uint32_t p = 0; p < d->pin_cnt; p++)
		if (same(&d->pins[p], asked)) {
			answer_of(d, &d->pins[p], ret);
			return 0;
		}
	if (d->pin_cnt == STOUP_PIN_CAP)
		return stoup_error_set(err, -ENOSPC,
			"pool '%s' has %u pins, the most there can be; mend: stoup unpin, or longer ranges",
			d->opt.pool, STOUP_PIN_CAP);
	pin = &d->pins[d->pin_cnt];
	*pin = (struct stoup_pin){.from_ns = asked->from_ns, .to_ns = asked->to_ns};
	memcpy(pin->name, asked->text, sizeof(pin->name));
	rc = fill(d, pin, err);
	if (rc < 0)
		return rc;
	d->pin_cnt++;
	ret->cnt = 1;
	answer_of(d, pin, ret);
	return 0;
}

static uint32_t drop_all(struct stoup_daemon *d, const struct stoup_wire_pin *asked)
{
	uint32_t cnt = 0;

	/* From the last one on: what is behind moves. */
	for (uint32_t p = d->pin_cnt; p-- > 0;) {
		if (asked->op == STOUP_PIN_DROP_SAME
				? !same(&d->pins[p], asked)
				: asked->text[0] && strcmp(d->pins[p].name, asked->text) != 0)
			continue;
		drop(d, p);
		cnt++;
	}
	if (cnt > 0)
		left_again(d);
	return cnt;
}

static int list(struct stoup_daemon *d, uint32_t idx, struct stoup_wire_pin *ret)
{
	if (idx >= d->pin_cnt)
		return -ENOENT;
	answer_of(d, &d->pins[idx], ret);
	memcpy(ret->text, d->pins[idx].name, sizeof(ret->text));
	return 0;
}

static int check(const struct stoup_daemon *d, const struct stoup_consumer *c,
	const struct stoup_wire_pin *asked, struct stoup_error *err)
{
	int named = asked->op == STOUP_PIN_ADD || asked->op == STOUP_PIN_DROP_SAME;

	if (asked->op < STOUP_PIN_ADD || asked->op > STOUP_PIN_LIST)
		return stoup_error_set(err, -EINVAL, "no such question about pins: %u", asked->op);
	if (!memchr(asked->text, 0, sizeof(asked->text)) || (named && !asked->text[0]))
		return stoup_error_set(err, -EINVAL,
			"a name of a series is wanted, of 1 to %u bytes", STOUP_PIN_NAME_CAP - 1);
	if (asked->from_ns < 0 || asked->to_ns < 0 ||
		(asked->from_ns && asked->to_ns && asked->from_ns > asked->to_ns))
		return stoup_error_set(err, -EINVAL, "a range that ends before it begins");
	if (asked->op == STOUP_PIN_LIST || c->uid == 0 || c->uid == d->uid)
		return 0;
	return stoup_error_set(err, -EPERM,
		"pins of pool '%s' are made and removed by its owner (uid %u) or root, not by uid %u; mend: as one "
		"of these",
		d->opt.pool, (unsigned int)d->uid, c->uid);
}

static int answer(struct stoup_daemon *d, const struct stoup_consumer *c,
	const struct stoup_wire_pin *asked, struct stoup_wire_pin *ret, struct stoup_error *err)
{
	int rc = check(d, c, asked, err);

	if (rc < 0)
		return rc;
	if (asked->op == STOUP_PIN_LIST)
		return list(d, asked->idx, ret);
	if (asked->op == STOUP_PIN_ADD)
		rc = add(d, asked, ret, err);
	else
		ret->cnt = drop_all(d, asked);
	show(d);
	STOUP_HOOK("pin.shown");
	if (rc == 0 && ret->cnt > 0)
		stoup_log_info(d,
			"process %u of user %u %s %.120s: pins now: %u, of %" PRIu64 " bytes",
			c->pid, c->uid, asked->op == STOUP_PIN_ADD ? "pins" : "unpins",
			asked->text[0] ? asked->text : "all", d->pin_cnt, d->pin_bytes);
	return rc;
}

int stoup_pin_message(struct stoup_daemon *d, uint32_t idx, const struct stoup_wire_pin *asked)
{
	struct stoup_wire_pin msg = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_PIN,
		.op = asked->op,
		.idx = asked->idx};
	const struct stoup_consumer *c = &d->consumers[idx];
	struct stoup_error err = {0};
	int unread = 0;

	/* A peer that asks again without having read the answer before is none of ours. */
	if (ioctl(c->sock_fd, SIOCOUTQ, &unread) == 0 && unread > 0)
		return -EPROTO;
	msg.error = answer(d, c, asked, &msg, &err);
	if (msg.error < 0)
		snprintf(msg.text, sizeof(msg.text), "%s", err.text);
	msg.all_bytes = d->pin_bytes;
	msg.cap_bytes = d->control->pin_bytes_cap;
	msg.pin_cnt = d->pin_cnt;
	msg.lost_cnt = d->pins_lost;
	return stoup_wire_send(c->sock_fd, &msg, sizeof(msg), NULL, 0);
}

/* ---- begin and end ---------------------------------------------------------------------------- */

int stoup_pins_init(struct stoup_daemon *d, struct stoup_error *err)
{
	uint64_t len = d->data_region.len, most = stoup_part_of(len, STOUP_PIN_PERCENT_MAX);
	uint64_t cap = d->opt.pin_bytes_cap ? d->opt.pin_bytes_cap
	                                    : stoup_part_of(len, d->opt.pin_percent);

	if (cap > most)
		return stoup_error_set(err, -EINVAL,
			"--pin-max %" PRIu64 ": at most %u %% of the pool (%" PRIu64 " of %" PRIu64
			" bytes) may be pinned: the longest block needs a quarter",
			cap, STOUP_PIN_PERCENT_MAX, most, len);
	d->control->pin_bytes_cap = cap;
	d->pins = calloc(STOUP_PIN_CAP, sizeof(d->pins[0]));
	if (!d->pins)
		return stoup_error_set(err, -ENOMEM, "out of memory for the table of pins");
	return 0;
}

void stoup_pins_fini(struct stoup_daemon *d)
{
	char text[96];

	if (d->pin_cnt > 0) {
		snprintf(text, sizeof(text), "pins that end with this daemon: %u", d->pin_cnt);
		stoup_log_line(d->log, STOUP_LOG_WARNING, stoup_now_ns(), text);
	}
	free(d->pins);
	d->pins = NULL;
	d->pin_cnt = 0;
}

void stoup_pins_look_back(struct stoup_daemon *d)
{
	const struct stoup_control *old;
	struct stoup_error err;
	struct stat st;
	char text[128];
	int fd = shm_open(d->control_name, O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_uid == d->uid && st.st_size > 0) {
		old = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		if (old != MAP_FAILED) {
			if (stoup_control_verify(old, (size_t)st.st_size, &err) == 0 &&
				old->counter_cnt > STOUP_COUNTER_PINS)
				d->pins_lost = (uint32_t)atomic_load_explicit(
					&stoup_control_counters(old)[STOUP_COUNTER_PINS].value,
					memory_order_relaxed);
			munmap((void *)(uintptr_t)old, (size_t)st.st_size);
		}
	}
	close(fd);
	if (d->pins_lost == 0)
		return;
	snprintf(text, sizeof(text),
		"pins that ended with the daemon before, which was killed: %u; mend: stoup pin",
		d->pins_lost);
	stoup_log_line(d->log, STOUP_LOG_WARNING, stoup_now_ns(), text);
}
