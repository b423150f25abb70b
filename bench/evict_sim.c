/* SPDX-License-Identifier: Apache-2.0 */
/* evict_sim.c - how good is the ring's eviction? Workers read blocks in simulated time over the
 * very code of producer/ring.c, and over textbook policies for comparison; a table says how often
 * each block had to be decoded, and how long it all took.
 *
 *      worker   needs block b:  ready  -> leases it, reads for len x READ_COST, goes on
 *                               absent -> room, decode on one of DECODER_CNT, then as above
 *               asks DEPTH blocks ahead when it reads in order
 *
 * LRU, CLOCK and SIEVE count bytes only: no addresses, so no fragmentation and no windows; the ring
 * has both. OPT is Belady's rule (evict what is needed last) on the order of uses that the ring's
 * own run produced: an estimate of the bound, for blocks of unequal length and without leases.
 * Deterministic: the same seed prints the same table. Time is in units of one page read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "producer/ring.h"

#define BLOCK_CAP   4096u
#define WORKER_CAP  16u
#define DEPTH_CAP   8u
#define DECODER_CNT 2u
#define READ_COST   1u /* per page */
#define DECODE_COST 3u
#define RETRY_TIME  64u
#define SEED_CNT    5
#define USE_CAP     400000u
#define NONE        UINT32_MAX
#define NEVER       UINT64_MAX
#define PAGE        ((uint64_t)STOUP_RING_PAGE_LEN)

enum policy {
	RING,
	RING_BLIND,
	LRU,
	CLOCK,
	SIEVE,
	POLICY_CNT
};

static const char *const policy_name[POLICY_CNT] = {"ring", "ring-blind", "lru", "clock", "sieve"};

enum pattern {
	SCAN,
	ZIPF
};

struct worker_plan {
	enum pattern pattern;
	uint32_t first, cnt; /* blocks */
	uint32_t laps;       /* SCAN: passes; ZIPF: uses / cnt */
	uint64_t start;      /* time */
	uint32_t pace;       /* time per page read */
};

struct workload {
	const char *name;
	uint32_t block_cnt;
	uint64_t len_min, len_max; /* pages */
	uint64_t pool_part;        /* pool = all blocks x this / 64 */
	uint32_t worker_cnt;
	struct worker_plan worker[WORKER_CAP];
};

struct block {
	uint64_t len, off; /* off: bytes of all blocks before it, the cursor's measure */
	uint32_t idx;      /* ring */
	uint32_t lru_prev, lru_next;
	uint32_t leases;
	uint8_t resident, loading, queued, unread, used, marked;
};

struct worker {
	uint64_t at;  /* time of its next step */
	uint32_t pos; /* uses done */
	uint32_t block;
	uint8_t reading, waiting, done;
};

struct sim {
	const struct workload *load;
	enum policy policy;
	struct block block[BLOCK_CAP];
	struct worker worker[WORKER_CAP];
	uint32_t zipf[BLOCK_CAP];
	double zipf_sum[BLOCK_CAP];
	uint32_t job[BLOCK_CAP]; /* blocks waiting for a decoder */
	uint32_t job_cnt;
	uint32_t decoding[DECODER_CNT];
	uint64_t decoder_at[DECODER_CNT];
	uint32_t owner[BLOCK_CAP * 2]; /* ring index -> block */
	uint32_t use[USE_CAP];
	uint32_t use_cnt;
	uint32_t head, tail, hand; /* textbook policies */
	uint64_t pool_len, used_len, unread_len, all_len;
	uint64_t now, hit_cnt, decode_len, decode_cnt, seed;
	struct stoup_ring *ring;
};

static uint64_t next_random(struct sim *s)
{
	s->seed ^= s->seed << 13;
	s->seed ^= s->seed >> 7;
	s->seed ^= s->seed << 17;
	return s->seed;
}

/* ---- textbook policies: one list of resident blocks, newest at the head ---- */

static void list_push(struct sim *s, uint32_t b)
{
	s->block[b].lru_prev = NONE;
	s->block[b].lru_next = s->head;
	if (s->head != NONE)
		s->block[s->head].lru_prev = b;
	else
		s->tail = b;
	s->head = b;
}

static void list_cut(struct sim *s, uint32_t b)
{
	uint32_t prev = s->block[b].lru_prev, next = s->block[b].lru_next;

	if (s->hand == b)
		s->hand = prev;
	if (prev != NONE)
		s->block[prev].lru_next = next;
	else
		s->head = next;
	if (next != NONE)
		s->block[next].lru_prev = prev;
	else
		s->tail = prev;
}

static int evictable(const struct sim *s, uint32_t b, int unread_too)
{
	return !s->block[b].leases && !s->block[b].loading && (unread_too || !s->block[b].unread);
}

/* The block to evict, or NONE. LRU: the oldest use; CLOCK: marked ones go to the head once; SIEVE:
 * the hand walks towards the head and unmarks in place. */
static uint32_t victim(struct sim *s, int unread_too)
{
	uint32_t b = s->policy == SIEVE && s->hand != NONE ? s->hand : s->tail, prev;

	for (uint32_t look = 0; look < 3 * BLOCK_CAP && s->tail != NONE; look++, b = prev) {
		if (b == NONE)
			b = s->tail;
		prev = s->block[b].lru_prev;
		if (!evictable(s, b, unread_too))
			continue;
		if (s->policy == LRU || !s->block[b].marked) {
			s->hand = b;
			return b;
		}
		s->block[b].marked = 0;
		if (s->policy == CLOCK) {
			list_cut(s, b);
			list_push(s, b);
		}
	}
	return NONE;
}

static void unread_end(struct sim *s, uint32_t b)
{
	if (s->block[b].unread)
		s->unread_len -= s->block[b].len;
	s->block[b].unread = 0;
}

static int list_room(struct sim *s, uint32_t b, enum stoup_ring_class class)
{
	struct block *n = &s->block[b];

	if (class == STOUP_RING_READAHEAD && s->unread_len + n->len > s->pool_len / 4)
		return 0;
	while (s->used_len + n->len > s->pool_len) {
		uint32_t v = victim(s, 0);

		if (v == NONE && class == STOUP_RING_DEMAND)
			v = victim(s, 1);
		if (v == NONE)
			return 0;
		unread_end(s, v);
		list_cut(s, v);
		s->block[v].resident = 0;
		s->used_len -= s->block[v].len;
	}
	s->used_len += n->len;
	n->marked = 0;
	n->used = 0;
	n->unread = class == STOUP_RING_READAHEAD;
	s->unread_len += n->unread ? n->len : 0;
	list_push(s, b);
	return 1;
}

static void list_use(struct sim *s, uint32_t b)
{
	/* The use that a block was loaded for marks nothing, as in the textbooks. */
	s->block[b].marked = s->block[b].used;
	s->block[b].used = 1;
	unread_end(s, b);
	if (s->policy == LRU) {
		list_cut(s, b);
		list_push(s, b);
	}
}

/* ---- the ring ---- */

static uint32_t worker_block(struct sim *s, uint32_t w, uint32_t pos)
{
	const struct worker_plan *p = &s->load->worker[w];

	return p->first + pos % p->cnt;
}

/* What a daemon can know: where the cursors are that read in order, not whether they will turn. */
static uint64_t next_use(void *arg, uint32_t idx)
{
	struct sim *s = arg;
	uint32_t b = s->owner[idx];
	uint64_t best = STOUP_RING_USE_UNKNOWN;

	for (uint32_t w = 0; w < s->load->worker_cnt; w++) {
		const struct worker_plan *p = &s->load->worker[w];
		uint32_t at = worker_block(s, w, s->worker[w].pos);

		if (p->pattern != SCAN || s->worker[w].done || p->start > s->now)
			continue;
		if (b >= at && b < p->first + p->cnt && s->block[b].off - s->block[at].off < best)
			best = s->block[b].off - s->block[at].off;
	}
	return best;
}

static int ring_room(struct sim *s, uint32_t b, enum stoup_ring_class class)
{
	struct stoup_ring_plan plan;
	enum stoup_ring_outcome outcome;

	for (;;) {
		outcome = stoup_ring_alloc(s->ring, s->block[b].len, class, &plan);
		if (outcome != STOUP_RING_EVICT)
			break;
		for (uint32_t i = 0; i < plan.evict_cnt; i++) {
			s->block[s->owner[plan.evict[i]]].resident = 0;
			stoup_ring_evicted(s->ring, plan.evict[i]);
		}
	}
	if (outcome != STOUP_RING_FIT)
		return 0;
	s->block[b].idx = plan.idx;
	s->owner[plan.idx] = b;
	return 1;
}

/* ---- the machine ---- */

static int is_ring(const struct sim *s)
{
	return s->policy == RING || s->policy == RING_BLIND;
}

/* Bring block `b` in; 0 when there is no room for it now. */
static int fetch(struct sim *s, uint32_t b, enum stoup_ring_class class)
{
	int fits = is_ring(s) ? ring_room(s, b, class) : list_room(s, b, class);

	if (!fits)
		return 0;
	s->block[b].resident = 1;
	s->block[b].loading = 1;
	s->block[b].queued = 1;
	s->decode_cnt++;
	s->decode_len += s->block[b].len;
	memmove(s->job + 1, s->job, s->job_cnt++ * sizeof(*s->job));
	s->job[0] = b;
	if (class == STOUP_RING_READAHEAD) { /* behind everything */
		memmove(s->job, s->job + 1, (s->job_cnt - 1) * sizeof(*s->job));
		s->job[s->job_cnt - 1] = b;
	}
	return 1;
}

static void begin_read(struct sim *s, uint32_t w, uint32_t b)
{
	const struct worker_plan *p = &s->load->worker[w];

	s->block[b].leases++;
	if (is_ring(s))
		stoup_ring_granted(s->ring, s->block[b].idx, w);
	else
		list_use(s, b);
	if (s->use_cnt < USE_CAP)
		s->use[s->use_cnt++] = b;
	s->worker[w].reading = 1;
	s->worker[w].waiting = 0;
	s->worker[w].at = s->now + s->block[b].len / PAGE * p->pace;
	for (uint32_t i = 1; p->pattern == SCAN && i <= DEPTH_CAP; i++) {
		uint32_t pos = s->worker[w].pos + i, ahead = worker_block(s, w, pos);

		if (pos / p->cnt != s->worker[w].pos / p->cnt)
			break;
		if (!s->block[ahead].resident && !fetch(s, ahead, STOUP_RING_READAHEAD))
			break;
	}
}

static void end_read(struct sim *s, uint32_t w)
{
	struct worker *k = &s->worker[w];
	const struct worker_plan *p = &s->load->worker[w];
	uint32_t idx = s->block[k->block].idx;

	s->block[k->block].leases--;
	if (is_ring(s))
		stoup_ring_leased(s->ring, idx, stoup_ring_refs(s->ring, idx) - 1);
	k->reading = 0;
	k->done = ++k->pos == p->cnt * p->laps;
}

static uint32_t choose(struct sim *s, uint32_t w)
{
	const struct worker_plan *p = &s->load->worker[w];
	double r;
	uint32_t low = 0, high = p->cnt - 1;

	if (p->pattern == SCAN)
		return worker_block(s, w, s->worker[w].pos);
	r = (double)(next_random(s) >> 11) / 9007199254740992.0 * s->zipf_sum[p->cnt - 1];
	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (s->zipf_sum[mid] < r)
			low = mid + 1;
		else
			high = mid;
	}
	return p->first + s->zipf[low] % p->cnt;
}

/* A waiting demand makes its block the next to be decoded. */
static void hurry(struct sim *s, uint32_t b)
{
	uint32_t i = 0;

	while (i < s->job_cnt && s->job[i] != b)
		i++;
	if (i == s->job_cnt)
		return;
	memmove(s->job + 1, s->job, i * sizeof(*s->job));
	s->job[0] = b;
}

static void step_worker(struct sim *s, uint32_t w)
{
	struct worker *k = &s->worker[w];
	uint32_t b;

	if (k->reading) {
		end_read(s, w);
		if (k->done)
			return;
	}
	if (!k->waiting) {
		k->block = choose(s, w);
		s->hit_cnt += s->block[k->block].resident;
	}
	b = k->block;
	if (s->block[b].resident && !s->block[b].loading) {
		begin_read(s, w, b);
		return;
	}
	k->waiting = 1;
	k->at = NEVER;
	if (s->block[b].resident)
		hurry(s, b);
	else if (!fetch(s, b, STOUP_RING_DEMAND))
		k->at = s->now + RETRY_TIME;
}

static void step_decoder(struct sim *s, uint32_t d)
{
	uint32_t b = s->decoding[d];

	s->decoding[d] = NONE;
	s->decoder_at[d] = NEVER;
	s->block[b].loading = 0;
	if (is_ring(s))
		stoup_ring_loaded(s->ring, s->block[b].idx);
	for (uint32_t w = 0; w < s->load->worker_cnt; w++)
		if (s->worker[w].waiting && s->worker[w].block == b)
			begin_read(s, w, b);
}

static void start_decoders(struct sim *s)
{
	for (uint32_t d = 0; d < DECODER_CNT && s->job_cnt; d++) {
		if (s->decoding[d] != NONE)
			continue;
		s->decoding[d] = s->job[0];
		memmove(s->job, s->job + 1, --s->job_cnt * sizeof(*s->job));
		s->decoder_at[d] = s->now + s->block[s->decoding[d]].len / PAGE * DECODE_COST;
	}
}

static int step(struct sim *s)
{
	uint64_t best = NEVER;
	uint32_t who = NONE;

	start_decoders(s);
	for (uint32_t w = 0; w < s->load->worker_cnt; w++)
		if (!s->worker[w].done && s->worker[w].at < best) {
			best = s->worker[w].at;
			who = w;
		}
	for (uint32_t d = 0; d < DECODER_CNT; d++)
		if (s->decoder_at[d] < best) {
			best = s->decoder_at[d];
			who = WORKER_CAP + d;
		}
	if (who == NONE)
		return 0;
	s->now = best;
	if (who < WORKER_CAP)
		step_worker(s, who);
	else
		step_decoder(s, who - WORKER_CAP);
	return 1;
}

/* ---- runs ---- */

static void make_blocks(struct sim *s)
{
	const struct workload *l = s->load;
	double sum = 0;

	for (uint32_t b = 0; b < l->block_cnt; b++) {
		uint64_t pages = l->len_min;

		if (l->len_max > l->len_min)
			pages += next_random(s) % (l->len_max - l->len_min + 1);
		s->block[b].len = pages * PAGE;
		s->block[b].off = s->all_len;
		s->all_len += pages * PAGE;
		s->zipf[b] = b;
		sum += 1.0 / (b + 1);
		s->zipf_sum[b] = sum;
	}
	for (uint32_t b = l->block_cnt - 1; b > 0; b--) {
		uint32_t other = (uint32_t)(next_random(s) % (b + 1)), keep = s->zipf[b];

		s->zipf[b] = s->zipf[other];
		s->zipf[other] = keep;
	}
	s->pool_len = s->all_len * l->pool_part / 64 / PAGE * PAGE;
}

static void run(struct sim *s, const struct workload *load, enum policy policy, uint64_t seed)
{
	struct stoup_ring_config config = {.reserve_len = UINT64_MAX};

	memset(s, 0, sizeof(*s));
	s->load = load;
	s->policy = policy;
	s->seed = seed * 0x9e3779b97f4a7c15u;
	s->head = s->tail = s->hand = NONE;
	make_blocks(s);
	config.region_len = s->pool_len;
	config.largest_len = load->len_max * PAGE;
	config.buffer_cap = 2 * BLOCK_CAP;
	config.next_use = policy == RING ? next_use : NULL;
	config.next_use_arg = s;
	if (stoup_ring_create(&config, &s->ring) < 0) {
		fprintf(stderr, "evict_sim: cannot make the ring of workload %s\n", load->name);
		exit(1);
	}
	for (uint32_t d = 0; d < DECODER_CNT; d++) {
		s->decoding[d] = NONE;
		s->decoder_at[d] = NEVER;
	}
	for (uint32_t w = 0; w < load->worker_cnt; w++)
		s->worker[w].at = load->worker[w].start;
	while (step(s))
		;
	stoup_ring_destroy(s->ring);
}

/* Belady on the recorded uses: bytes loaded. */
static uint64_t run_opt(struct sim *s)
{
	static uint32_t next[USE_CAP], last[BLOCK_CAP], due[BLOCK_CAP];
	uint64_t used_len = 0, loaded_len = 0;

	for (uint32_t b = 0; b < BLOCK_CAP; b++) {
		last[b] = NONE;
		s->block[b].resident = 0;
	}
	for (uint32_t i = s->use_cnt; i-- > 0;) {
		next[i] = last[s->use[i]];
		last[s->use[i]] = i;
	}
	for (uint32_t i = 0; i < s->use_cnt; i++) {
		uint32_t b = s->use[i];

		due[b] = next[i];
		if (s->block[b].resident)
			continue;
		used_len += s->block[b].len;
		loaded_len += s->block[b].len;
		s->block[b].resident = 1;
		while (used_len > s->pool_len) {
			uint32_t v = NONE;

			for (uint32_t c = 0; c < s->load->block_cnt; c++)
				if (c != b && s->block[c].resident &&
					(v == NONE || due[c] > due[v]))
					v = c;
			s->block[v].resident = 0;
			used_len -= s->block[v].len;
		}
	}
	return loaded_len;
}

/* `cnt` workers over all blocks, one behind the other by `lag` blocks' reading time. */
static struct workload farm(const char *name, uint32_t worker_cnt, uint32_t lag, uint64_t pool_part)
{
	struct workload l = {name, 1024, 192, 320, pool_part, worker_cnt, {{0}}};

	for (uint32_t w = 0; w < worker_cnt; w++)
		l.worker[w] = (struct worker_plan){
			SCAN, 0, l.block_cnt, 1, (uint64_t)w * lag * 256 * READ_COST, READ_COST};
	return l;
}

static uint32_t make_workloads(struct workload *l)
{
	uint32_t n = 0;

	l[n++] = farm("scan", 1, 0, 16);
	l[n] = farm("loop 4x, pool 1/4", 1, 0, 16);
	l[n++].worker[0].laps = 4;
	l[n] = farm("loop 4x, pool 7/8", 1, 0, 56);
	l[n++].worker[0].laps = 4;
	l[n++] = farm("farm 8, lag 1/64", 8, 16, 16);
	l[n++] = farm("farm 8, lag 1/16", 8, 64, 16);
	l[n++] = farm("farm 8, lag 1/8", 8, 128, 16);
	l[n++] = farm("farm 8, lag 1/4", 8, 256, 16);
	l[n++] = farm("farm 8, lag 1/8, pool 1/8", 8, 128, 8);
	l[n] = farm("farm 8, uneven pace", 8, 64, 16);
	for (uint32_t w = 0; w < 8; w++)
		l[n].worker[w].pace = 1 + w % 4;
	n++;
	l[n] = farm("farm 8 slow, lag 1/8", 8, 128, 16);
	for (uint32_t w = 0; w < 8; w++) {
		l[n].worker[w].pace = 16;
		l[n].worker[w].start *= 16;
	}
	n++;
	l[n] = farm("loops, 8 workers x 3", 8, 50, 16);
	for (uint32_t w = 0; w < 8; w++)
		l[n].worker[w].laps = 3;
	n++;
	l[n] = farm("zipf, 4 workers", 4, 0, 16);
	for (uint32_t w = 0; w < 4; w++)
		l[n].worker[w] = (struct worker_plan){ZIPF, 0, 1024, 8, 0, READ_COST};
	n++;
	l[n] = farm("zipf, 1 worker", 1, 0, 16);
	l[n++].worker[0] = (struct worker_plan){ZIPF, 0, 1024, 16, 0, READ_COST};
	l[n] = farm("hot set + scans", 3, 0, 16);
	l[n].worker[0] = (struct worker_plan){ZIPF, 0, 128, 80, 0, READ_COST};
	l[n].worker[1] = (struct worker_plan){SCAN, 128, 896, 4, 0, READ_COST};
	l[n++].worker[2] = (struct worker_plan){SCAN, 128, 896, 2, 400000, READ_COST};
	l[n] = farm("zipf + farm 6", 8, 64, 16);
	l[n].worker[0] = (struct worker_plan){ZIPF, 0, 1024, 4, 0, READ_COST};
	l[n++].worker[1] = (struct worker_plan){ZIPF, 0, 1024, 4, 0, READ_COST};
	l[n] = farm("farm 8, lag 1/8, 4K-4M", 8, 128, 16);
	l[n].len_min = 1;
	l[n++].len_max = 1024;
	l[n] = farm("zipf 4K-4M", 4, 0, 16);
	for (uint32_t w = 0; w < 4; w++)
		l[n].worker[w] = (struct worker_plan){ZIPF, 0, 1024, 8, 0, READ_COST};
	l[n].len_min = 1;
	l[n++].len_max = 1024;
	return n;
}

int main(void)
{
	static struct sim sim;
	static struct workload load[32];
	uint32_t cnt = make_workloads(load);

	printf("bytes decoded / distinct bytes (time in 1000 page reads)\n%-26s", "");
	for (int p = 0; p < POLICY_CNT; p++)
		printf(" %13s", policy_name[p]);
	printf(" %6s\n", "opt");
	for (uint32_t i = 0; i < cnt; i++) {
		double opt = 0;

		printf("%-26s", load[i].name);
		for (int p = 0; p < POLICY_CNT; p++) {
			double decoded = 0, ends = 0;

			for (uint64_t seed = 1; seed <= SEED_CNT; seed++) {
				run(&sim, &load[i], (enum policy)p, seed);
				decoded += (double)sim.decode_len / (double)sim.all_len / SEED_CNT;
				ends += (double)sim.now / 1000.0 / SEED_CNT;
				if (p == RING)
					opt += (double)run_opt(&sim) / (double)sim.all_len /
					       SEED_CNT;
			}
			printf(" %6.2f (%4.0f)", decoded, ends);
		}
		printf(" %6.2f\n", opt);
		fflush(stdout);
	}
	return 0;
}
