/* SPDX-License-Identifier: Apache-2.0 */
/* import_encode.c - a bounded, ordered queue of blocks and the threads that encode them. */
#include "producer/import_encode.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "codec/volume.h"
#include "codec/zone.h"

enum {
	SLOT_FREE,
	SLOT_READY,
	SLOT_DONE
};

struct stoup_encode {
	struct stoup_encode_slot *slots;
	uint32_t slot_cnt;
	uint64_t next_seq;   /* submitted so far: the caller fills slot next_seq % slot_cnt */
	uint64_t taken_seq;  /* taken by workers so far */
	uint64_t oldest_seq; /* retired so far */
	size_t stored_cap;
	struct stoup_encoding encoding;
	pthread_mutex_t mutex;
	pthread_cond_t ready, done;
	int stop;
	pthread_t *threads;
	uint32_t thread_cnt;
};

/* ---- zone maps ------------------------------------------------------------------------------- */

static int zones_room(struct stoup_encode_slot *slot, uint32_t len)
{
	uint64_t need = (uint64_t)slot->zones_len + len,
		 cap = slot->zones_cap ? slot->zones_cap : 4096;
	uint8_t *grown;

	if (need <= slot->zones_cap)
		return 0;
	while (cap < need)
		cap *= 2;
	grown = cap <= UINT32_MAX ? realloc(slot->zones, (size_t)cap) : NULL;
	if (!grown)
		return -ENOMEM;
	slot->zones = grown;
	slot->zones_cap = (uint32_t)cap;
	return 0;
}

int stoup_encode_zones(struct stoup_encode_slot *slot, const uint8_t *raw)
{
	const struct stoup_block_layout *layout = &slot->layout;
	uint32_t len = layout->stride ? stoup_zone_len(layout->fields, layout->field_cnt) : 0;

	slot->zones_len = 0;
	for (uint32_t i = 0; i < slot->segment_cnt; i++) {
		struct stoup_encode_segment *segment = &slot->segments[i];

		segment->zone_at = 0;
		if (len == 0 || segment->record_cnt < STOUP_ZONE_RECORDS_MIN)
			continue;
		if (zones_room(slot, len) < 0)
			return -ENOMEM;
		stoup_zone_make(layout->fields, layout->field_cnt, layout->stride,
			raw + segment->raw_off, segment->record_cnt, slot->zones + slot->zones_len);
		segment->zone_at = slot->zones_len + 1;
		segment->zone_len = len;
		slot->zones_len += len;
	}
	return 0;
}

int stoup_encode_zone_write(const struct stoup_encode_slot *slot,
	const struct stoup_encode_segment *segment, struct stoup_vol_writer *writer)
{
	if (segment->zone_at == 0)
		return 0;
	return stoup_vol_add_zone(writer, slot->zones + segment->zone_at - 1, segment->zone_len);
}

/* ---- workers --------------------------------------------------------------------------------- */

static void slot_encode(
	struct stoup_encode *encode, struct stoup_encoder *encoder, struct stoup_encode_slot *slot)
{
	if (slot->is_encoded)
		return;
	if (!encoder) {
		slot->rc = -ENOMEM;
		return;
	}
	slot->rc = stoup_encode_zones(slot, slot->raw);
	if (slot->rc < 0)
		return;
	slot->raw_hash = stoup_vol_hash(slot->raw, slot->raw_len);
	slot->rc = stoup_block_encode(encoder, slot->layout.stride ? &slot->layout : NULL,
		slot->raw, slot->raw_len, slot->stored, encode->stored_cap, &slot->stored_len,
		&slot->codec, &slot->transform);
	if (slot->rc == 0)
		slot->stored_hash = stoup_vol_hash(slot->stored, slot->stored_len);
}

static void *worker(void *arg)
{
	struct stoup_encode *encode = arg;
	struct stoup_encoder *encoder = NULL;

	if (stoup_encoder_create(&encode->encoding, &encoder) < 0)
		encoder = NULL; /* each block then reports -ENOMEM */
	pthread_mutex_lock(&encode->mutex);
	for (;;) {
		struct stoup_encode_slot *slot;

		while (!encode->stop && encode->taken_seq == encode->next_seq)
			pthread_cond_wait(&encode->ready, &encode->mutex);
		if (encode->stop)
			break;
		slot = &encode->slots[encode->taken_seq++ % encode->slot_cnt];
		pthread_mutex_unlock(&encode->mutex);
		slot_encode(encode, encoder, slot);
		pthread_mutex_lock(&encode->mutex);
		slot->state = SLOT_DONE;
		pthread_cond_signal(&encode->done);
	}
	pthread_mutex_unlock(&encode->mutex);
	stoup_encoder_destroy(encoder);
	return NULL;
}

static int threads_start(struct stoup_encode *encode, uint32_t cnt)
{
	sigset_t all, before;
	int rc = 0;

	/* Signals belong to the caller's thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (encode->thread_cnt < cnt && rc == 0) {
		rc = -pthread_create(&encode->threads[encode->thread_cnt], NULL, worker, encode);
		encode->thread_cnt += rc == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return encode->thread_cnt > 0 ? 0 : rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

int stoup_encode_create(const struct stoup_encoding *encoding, uint32_t threads, size_t raw_cap,
	struct stoup_encode **ret)
{
	struct stoup_encode *encode = calloc(1, sizeof(*encode));
	uint32_t i;
	int rc = -ENOMEM;

	if (!encode)
		return rc;
	pthread_mutex_init(&encode->mutex, NULL);
	pthread_cond_init(&encode->ready, NULL);
	pthread_cond_init(&encode->done, NULL);
	encode->encoding = *encoding;
	encode->stored_cap = stoup_block_encode_cap(raw_cap);
	/* One per worker, one that the caller fills, one that waits. */
	encode->slot_cnt = threads + 2;
	encode->slots = calloc(encode->slot_cnt, sizeof(*encode->slots));
	encode->threads = calloc(threads, sizeof(*encode->threads));
	if (!encode->slots || !encode->threads)
		goto out_destroy;
	for (i = 0; i < encode->slot_cnt; i++) {
		encode->slots[i].raw = malloc(raw_cap);
		encode->slots[i].stored = malloc(encode->stored_cap);
		if (!encode->slots[i].raw || !encode->slots[i].stored)
			goto out_destroy;
	}
	rc = threads_start(encode, threads);
	if (rc < 0)
		goto out_destroy;
	*ret = encode;
	return 0;
out_destroy:
	stoup_encode_destroy(encode);
	return rc;
}

void stoup_encode_destroy(struct stoup_encode *encode)
{
	uint32_t i;

	if (!encode)
		return;
	pthread_mutex_lock(&encode->mutex);
	encode->stop = 1;
	pthread_cond_broadcast(&encode->ready);
	pthread_mutex_unlock(&encode->mutex);
	for (i = 0; i < encode->thread_cnt; i++)
		pthread_join(encode->threads[i], NULL);
	for (i = 0; encode->slots && i < encode->slot_cnt; i++) {
		free(encode->slots[i].raw);
		free(encode->slots[i].stored);
		free(encode->slots[i].segments);
		free(encode->slots[i].zones);
	}
	pthread_cond_destroy(&encode->ready);
	pthread_cond_destroy(&encode->done);
	pthread_mutex_destroy(&encode->mutex);
	free(encode->slots);
	free(encode->threads);
	free(encode);
}

/* ---- the caller's side ----------------------------------------------------------------------- */

struct stoup_encode_slot *stoup_encode_next(struct stoup_encode *encode)
{
	struct stoup_encode_slot *slot = &encode->slots[encode->next_seq % encode->slot_cnt];

	if (encode->next_seq - encode->oldest_seq == encode->slot_cnt)
		return NULL;
	slot->raw_len = 0;
	slot->segment_cnt = 0;
	slot->is_encoded = 0;
	slot->rc = 0;
	slot->state = SLOT_FREE;
	return slot;
}

void stoup_encode_submit(struct stoup_encode *encode)
{
	pthread_mutex_lock(&encode->mutex);
	encode->slots[encode->next_seq++ % encode->slot_cnt].state = SLOT_READY;
	pthread_cond_signal(&encode->ready);
	pthread_mutex_unlock(&encode->mutex);
}

struct stoup_encode_slot *stoup_encode_retire(struct stoup_encode *encode)
{
	struct stoup_encode_slot *slot = &encode->slots[encode->oldest_seq % encode->slot_cnt];

	if (encode->oldest_seq == encode->next_seq)
		return NULL;
	pthread_mutex_lock(&encode->mutex);
	while (slot->state != SLOT_DONE)
		pthread_cond_wait(&encode->done, &encode->mutex);
	pthread_mutex_unlock(&encode->mutex);
	encode->oldest_seq++;
	return slot;
}

int stoup_encode_block(const struct stoup_encode_slot *slot, struct stoup_volume_block *ret,
	struct stoup_error *err)
{
	if (slot->rc < 0)
		return stoup_error_set(err, slot->rc,
			"encoding a block of %" PRIu32 " bytes failed: %s", slot->raw_len,
			strerror(-slot->rc));
	*ret = (struct stoup_volume_block){
		.raw_len = slot->raw_len,
		.codec = slot->codec,
		.transform = slot->transform,
		.stored_len = (uint32_t)slot->stored_len,
		.stored_hash = slot->stored_hash,
		.raw_hash = slot->raw_hash,
		.stored = slot->stored,
	};
	return 0;
}
