/* SPDX-License-Identifier: Apache-2.0 */
/* helper_hostile.c - a consumer that attaches like any other and then writes into its page what it likes.
 *
 * usage: helper_hostile POOL MODE SECONDS
 *   random  random bytes everywhere in the page, the doorbell in between
 *   flood   well-formed requests for random blocks, posted again before they are answered
 *   cells   random words that look like leases in all cells
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "consumer/client.h"
#include "shm/lease.h"

static uint64_t state = 88172645463325252u;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void ring(struct stoup_session *ses)
{
	uint64_t one = 1;

	if (write(ses->bell_fd, &one, sizeof(one)) < 0)
		usleep(100);
}

static void random_bytes(struct stoup_session *ses)
{
	volatile uint64_t *words = (volatile uint64_t *)(void *)ses->page;
	size_t cnt = stoup_page_footprint(ses->page->cell_cap) / sizeof(uint64_t);

	for (int i = 0; i < 1000; i++)
		words[16 + next() % (cnt - 16)] = next() & 1 ? next() : next() % 64;
	ring(ses);
}

static void flood(struct stoup_session *ses, uint32_t block_cnt)
{
	for (uint32_t i = 0; i < STOUP_SLOT_CNT; i++) {
		struct stoup_slot *slot = &ses->page->slots[i];

		slot->kind = STOUP_REQUEST_DEMAND;
		slot->seq = next();
		slot->cell_idx = i;
		slot->volume_idx = 0;
		slot->block_idx = (uint32_t)(next() % block_cnt);
		slot->ahead_cnt = STOUP_AHEAD_CAP;
		slot->ahead_block_idx = (uint32_t)(next() % block_cnt);
		slot->ahead_step = 1;
		slot->deadline_ns = UINT64_MAX;
		ses->page->cells[i] = stoup_ticket(i, slot->seq);
		stoup_request_post(ses->page, i, &ses->control->asleep);
	}
	ring(ses);
}

static void cells(struct stoup_session *ses)
{
	ses->page->cell_high = UINT32_MAX;
	for (uint32_t i = 0; i < ses->page->cell_cap; i++)
		ses->page->cells[i] = stoup_word(1 + next() % 300, (uint32_t)(next() % 64));
	ring(ses);
}

int main(int argc, char **argv)
{
	struct stoup_error err = {0};
	struct timespec now, end;
	struct stoup *st;

	if (argc != 4)
		return 2;
	if (stoup_attach(argv[1], NULL, &st, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	state ^= (uint64_t)getpid() << 20;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += strtol(argv[3], NULL, 10);
	do {
		if (strcmp(argv[2], "random") == 0)
			random_bytes(st->current);
		else if (strcmp(argv[2], "flood") == 0)
			flood(st->current, st->current->newest->volumes[0].catalog->block_cnt);
		else
			cells(st->current);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec);
	/* No orderly detach: it ends as it lived. */
	_exit(0);
}
