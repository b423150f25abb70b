/* SPDX-License-Identifier: Apache-2.0 */
/* arrow_messages.c - the messages of a span as an ArrowArray (see stoup_arrow.h): a column of keys, one of bytes.
 *
 *      parent --children--> child {keys}
 *                           child {offsets, bytes}      each in one piece of memory of its own
 *
 * Everything is copied: the bytes of messages lie apart in the pool, and Arrow wants them side by side. So a batch
 * holds no lease.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "consumer/arrow.h"
#include "shm/json.h"

#define BUFFER_ALIGN 64u
#define PAD(len)     (((len) + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN)

struct child {
	_Alignas(BUFFER_ALIGN) const void *buffers[3];
};

struct parent {
	const void *buffers[1];
	struct ArrowArray children[2], *pointers[2];
};

static void child_release(struct ArrowArray *array)
{
	free(array->private_data);
	array->release = NULL;
}

static void parent_release(struct ArrowArray *array)
{
	struct parent *parent = array->private_data;

	for (int64_t i = 0; i < array->n_children; i++)
		if (array->children[i]->release)
			array->children[i]->release(array->children[i]);
	free(parent);
	array->release = NULL;
}

/* A child with `len` bytes for its buffers; *ret_bytes is where they are. */
static struct child *child_make(const struct stoup_span *span, uint64_t len, int64_t buffer_cnt,
	struct ArrowArray *ret, void **ret_bytes)
{
	struct child *child = aligned_alloc(BUFFER_ALIGN, sizeof(*child) + PAD(len));

	if (!child)
		return NULL;
	child->buffers[0] = NULL; /* nothing is null */
	*ret = (struct ArrowArray){.length = (int64_t)span->record_cnt,
		.n_buffers = buffer_cnt,
		.buffers = child->buffers,
		.release = child_release,
		.private_data = child};
	*ret_bytes = child + 1;
	/* Padding goes into files that readers write: no stray bytes. */
	memset((uint8_t *)(child + 1) + len, 0, PAD(len) - len);
	return child;
}

static int keys_make(const struct stoup_span *span, struct ArrowArray *ret)
{
	uint64_t len = span->record_cnt * sizeof(int64_t);
	void *bytes;
	struct child *child = child_make(span, len, 2, ret, &bytes);
	int64_t *keys = bytes;

	if (!child)
		return -ENOMEM;
	for (uint64_t i = 0; i < span->record_cnt; i++)
		keys[i] = stoup_message_at(span, i).key;
	child->buffers[1] = keys;
	return 0;
}

static int is_utf8(const struct stoup_message *message)
{
	const uint8_t *at = message->bytes, *end = at + message->len;

	while (at < end) {
		size_t len = stoup_utf8_len(at, (size_t)(end - at));

		if (len == 0)
			return 0;
		at += len;
	}
	return 1;
}

static int bytes_make(
	const struct stoup_span *span, int text, struct ArrowArray *ret, uint64_t *ret_idx)
{
	uint64_t offsets_len = PAD((span->record_cnt + 1) * sizeof(int64_t)), len = 0;
	struct child *child;
	int64_t *offsets;
	uint8_t *bytes;
	void *memory;

	for (uint64_t i = 0; i < span->record_cnt; i++)
		len += stoup_message_at(span, i).len;
	child = child_make(span, offsets_len + len, 3, ret, &memory);
	if (!child)
		return -ENOMEM;
	offsets = memory;
	bytes = (uint8_t *)memory + offsets_len;
	memset(offsets, 0, offsets_len);
	for (uint64_t i = 0; i < span->record_cnt; i++) {
		struct stoup_message message = stoup_message_at(span, i);

		*ret_idx = i;
		if (text && !is_utf8(&message)) {
			child_release(ret);
			return -EILSEQ;
		}
		memcpy(bytes + offsets[i], message.bytes, message.len);
		offsets[i + 1] = offsets[i] + message.len;
	}
	child->buffers[1] = offsets;
	child->buffers[2] = bytes;
	return 0;
}

int stoup_arrow_messages(const struct stoup_span *span, uint32_t flags, struct ArrowArray *ret,
	struct stoup_error *err)
{
	struct parent *parent = calloc(1, sizeof(*parent));
	struct ArrowArray array = {.length = (int64_t)span->record_cnt,
		.n_buffers = 1,
		.release = parent_release,
		.private_data = parent};
	uint64_t idx = 0;
	int rc = parent ? keys_make(span, &parent->children[0]) : -ENOMEM;

	if (rc < 0) {
		free(parent);
		goto out_memory;
	}
	array.buffers = parent->buffers;
	array.children = parent->pointers;
	parent->pointers[0] = &parent->children[0];
	parent->pointers[1] = &parent->children[1];
	array.n_children = 1;
	rc = bytes_make(
		span, stoup_arrow_message_text(span->schema, flags), &parent->children[1], &idx);
	if (rc == 0) {
		array.n_children = 2;
		*ret = array;
		return 0;
	}
	parent_release(&array);
	if (rc == -EILSEQ)
		return stoup_error_set(err, rc,
			"message %llu is not UTF-8; STOUP_ARROW_TEXT_BYTES gives its bytes",
			(unsigned long long)(span->ordinal + idx));
out_memory:
	return stoup_error_set(err, rc, "no memory for the columns of %llu messages",
		(unsigned long long)span->record_cnt);
}
