/* SPDX-License-Identifier: Apache-2.0 */
/* direct.c - spans that lie in the volume's file: which parts can be mapped, mapping, walking.
 *
 *      part --blocks uncompressed?--> mapped already? --no--> question to the daemon --> descriptor
 *                                          | yes                    --long enough, the same id?--> map
 *                                          +----------------------------------------------------> bytes
 *
 * Whoever truncates a volume takes the bytes from under all its readers, with SIGBUS; nothing here can
 * prevent that. So the length is checked once, and the manual says what no writer may do.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include "consumer/direct.h"
#include "shm/message.h"
#include "shm/wire.h"

/* ---- which parts ------------------------------------------------------------------------------ */

static const struct stoup_catalog_segment *part_segment(const struct stoup_part *part, uint32_t seg)
{
	return part->vol->segments + part->series->segment_first + seg;
}

static const struct stoup_catalog_block *segment_block(
	const struct stoup_part *part, const struct stoup_catalog_segment *seg)
{
	return &part->vol->blocks[seg->block_idx];
}

static int is_plain(const struct stoup_catalog_block *block)
{
	return block->codec == STOUP_CATALOG_CODEC_NONE &&
	       block->transform == STOUP_CATALOG_TRANSFORM_NONE;
}

static const char *codec_text(const struct stoup_catalog_block *block)
{
	static const char *const names[][2] = {{"none", "a field transform"},
		{"lz4", "a field transform and lz4"}, {"zstd", "a field transform and zstd"}};

	if (block->codec >= sizeof(names) / sizeof(names[0]) || block->transform > 1)
		return "unknown";
	return names[block->codec][block->transform];
}

/* The end of the path, which tells more than its beginning. */
static const char *volume_name(const struct stoup_snapshot_volume *vol)
{
	const struct stoup_catalog *c = vol->catalog;
	const char *path, *slash;

	if (c->path_off >= c->string_len ||
		!memchr(stoup_catalog_string(c, c->path_off), 0, c->string_len - c->path_off))
		return "?";
	path = stoup_catalog_string(c, c->path_off);
	slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* Is what the range meets of a part uncompressed, and does it lie within its blocks? */
static int part_check(
	const struct stoup_cursor *cur, const struct stoup_part *part, struct stoup_error *err)
{
	uint32_t i, end;

	stoup_part_range(cur, part, &i, &end);
	for (; i < end; i++) {
		const struct stoup_catalog_segment *seg = part_segment(part, i);
		const struct stoup_catalog_block *block = segment_block(part, seg);

		if (!is_plain(block))
			return stoup_error_set(err, -ENOTSUP,
				"'%.70s': block %u of %.40s is compressed (%s), and direct mode maps what is not; mend: "
				"ingest it with --codec none, or use STOUP_DIRECT_OR_POOL",
				cur->name, seg->block_idx, volume_name(part->vol),
				codec_text(block));
		if (block->stored_len != block->raw_len || seg->raw_off > block->raw_len ||
			(uint64_t)seg->record_cnt * cur->stride > block->raw_len - seg->raw_off ||
			((block->stored_off + seg->raw_off) & (stoup_cursor_align(cur) - 1)) != 0)
			return stoup_error_set(err, -EPROTO,
				"pool '%s': a segment at byte %u of block %u does not lie within it, or "
				"not aligned",
				cur->ses->pool, seg->raw_off, seg->block_idx);
	}
	return 0;
}

/* Does the range meet the part at all? */
static int part_met(const struct stoup_cursor *cur, const struct stoup_part *part)
{
	uint32_t begin, end;

	stoup_part_range(cur, part, &begin, &end);
	return begin < end;
}

/* ---- mapping ---------------------------------------------------------------------------------- */

static const struct stoup_direct *direct_find(struct stoup *st, const uint8_t id[16])
{
	const struct stoup_direct *direct;

	pthread_mutex_lock(&st->mutex);
	direct = st->directs;
	while (direct && memcmp(direct->id, id, sizeof(direct->id)) != 0)
		direct = direct->next;
	pthread_mutex_unlock(&st->mutex);
	return direct;
}

/* Is this the volume of the catalog, and does it hold all blocks that can be mapped? */
static int file_check(
	int fd, const struct stoup_snapshot_volume *vol, size_t *ret_len, struct stoup_error *err)
{
	uint8_t head[STOUP_DIRECT_HEAD_LEN];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return stoup_client_errno(err, volume_name(vol));
	if (!S_ISREG(st.st_mode) || pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
		memcmp(head, STOUP_DIRECT_MAGIC, STOUP_DIRECT_MAGIC_LEN) != 0 ||
		memcmp(head + STOUP_DIRECT_ID_OFF, vol->catalog->volume_id, 16) != 0)
		return stoup_error_set(err, -EIO,
			"%.100s is no longer the volume that the daemon serves: it was overwritten; mend: "
			"restore it, and replace volumes by renaming",
			volume_name(vol));
	for (uint32_t b = 0; b < vol->catalog->block_cnt; b++) {
		const struct stoup_catalog_block *block = &vol->blocks[b];

		if (is_plain(block) &&
			(block->stored_off > (uint64_t)st.st_size ||
				block->stored_len > (uint64_t)st.st_size - block->stored_off))
			return stoup_error_set(err, -EIO,
				"%.100s ends at byte %llu, before its block %u does: it was truncated; mend: "
				"restore it, and never truncate a volume: rename another one over it",
				volume_name(vol), (unsigned long long)st.st_size, b);
	}
	*ret_len = (size_t)st.st_size;
	return 0;
}

/* Map the file and keep it. */
static int file_map(struct stoup *st, int fd, const struct stoup_snapshot_volume *vol,
	const struct stoup_direct **ret, struct stoup_error *err)
{
	struct stoup_direct *direct;
	void *base;
	size_t len = 0;
	int rc = file_check(fd, vol, &len, err);

	if (rc < 0)
		return rc;
	direct = calloc(1, sizeof(*direct));
	if (!direct)
		return stoup_error_set(err, -ENOMEM, "no memory for a mapping");
	base = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		rc = stoup_client_errno(err, volume_name(vol));
		free(direct);
		return rc;
	}
	madvise(base, len, MADV_DONTDUMP);
	memcpy(direct->id, vol->catalog->volume_id, sizeof(direct->id));
	direct->base = base;
	direct->len = len;
	pthread_mutex_lock(&st->mutex);
	direct->next = st->directs;
	st->directs = direct;
	pthread_mutex_unlock(&st->mutex);
	*ret = direct;
	return 0;
}

/* With `question`: ask for the file of a volume and map it. */
static int file_ask(struct stoup_cursor *cur, const struct stoup_snapshot_volume *vol,
	uint64_t deadline_ns, const struct stoup_direct **ret, struct stoup_error *err)
{
	struct stoup_session *ses = cur->ses;
	int fd, rc;

	/* Another thread went on to another daemon, or nobody could. */
	if (ses != cur->st->current || stoup_session_check(ses, STOUP_LOOK_ASK) < 0)
		return -EPIPE;
	rc = stoup_hello_file(ses, vol, deadline_ns, &fd, err);
	if (rc < 0)
		return stoup_question_failed(ses, rc, err);
	rc = file_map(cur->st, fd, vol, ret, err);
	close(fd);
	return rc;
}

int stoup_direct_open(struct stoup_cursor *cur, uint64_t deadline_ns, struct stoup_error *err)
{
	const struct stoup_direct *direct;
	int rc = 0;

	cur->direct = 0;
	for (uint32_t i = 0; i < cur->part_cnt && rc == 0; i++)
		rc = part_check(cur, &cur->parts[i], err);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&cur->st->question);
	for (uint32_t i = 0; i < cur->part_cnt && rc == 0; i++) {
		struct stoup_part *part = &cur->parts[i];

		if (!part_met(cur, part))
			continue;
		direct = direct_find(cur->st, part->vol->catalog->volume_id);
		if (!direct)
			rc = file_ask(cur, part->vol, deadline_ns, &direct, err);
		if (rc == 0)
			part->bytes = direct->base;
	}
	pthread_mutex_unlock(&cur->st->question);
	cur->direct = rc == 0;
	return rc;
}

void stoup_direct_fini(struct stoup *st)
{
	while (st->directs) {
		struct stoup_direct *direct = st->directs;

		st->directs = direct->next;
		munmap((void *)(uintptr_t)direct->base, direct->len);
		free(direct);
	}
}

/* ---- walking ---------------------------------------------------------------------------------- */

static uint64_t file_off(const struct stoup_part *part, const struct stoup_catalog_segment *seg)
{
	return segment_block(part, seg)->stored_off + seg->raw_off;
}

/* Does `high` begin in the file where `low` ends? */
static int touches(const struct stoup_cursor *cur, const struct stoup_part *part,
	const struct stoup_catalog_segment *low, const struct stoup_catalog_segment *high)
{
	return file_off(part, low) + (uint64_t)low->record_cnt * cur->stride ==
	               file_off(part, high) &&
	       low->ordinal + low->record_cnt == high->ordinal;
}

/* The segments of one part that lie one behind the other in the file. */
struct run {
	const struct stoup_part *part;
	const struct stoup_catalog_segment *low, *high;
};

/* The next run in the direction of the scan, which moves behind it: 1, or 0 at the end. */
static int run_next(struct stoup_cursor *cur, struct run *run)
{
	const struct stoup_catalog_segment *seg = stoup_place_segment(cur, &cur->at);
	uint32_t part_idx = cur->at.part;
	uint64_t more = 0;

	if (!seg)
		return 0;
	run->part = &cur->parts[part_idx];
	run->low = run->high = seg;
	for (;;) {
		cur->at.seg += (uint32_t)cur->step;
		cur->at.pos++;
		seg = stoup_place_segment(cur, &cur->at);
		/* Behind the limit nothing is wanted. The first segment may be cut. */
		if (!seg || cur->at.part != part_idx || more >= cur->limit)
			return 1;
		if (cur->step > 0 ? !touches(cur, run->part, run->high, seg)
				  : !touches(cur, run->part, seg, run->low))
			return 1;
		more += seg->record_cnt;
		if (cur->step > 0)
			run->high = seg;
		else
			run->low = seg;
	}
}

/* Nobody has decoded these blocks, so nobody has looked at their messages yet. Between the table of one
 * segment and the next one lie messages, so that a run is one segment. */
static int messages_check(struct stoup_cursor *cur, const struct stoup_part *part,
	const struct stoup_catalog_segment *seg)
{
	const struct stoup_catalog_block *block = segment_block(part, seg);
	const struct stoup_message_run bytes = {
		.base = part->bytes + block->stored_off,
		.len = block->raw_len,
		.cnt = seg->record_cnt,
		.first_key = seg->first_key,
		.last_key = seg->last_key,
		.keeps_order = (part->series->flags & STOUP_CATALOG_KEEP_ORDER) != 0,
	};
	struct stoup_error why;

	if (stoup_message_table_check(&bytes, seg->raw_off, &why) == 0)
		return 0;
	return stoup_error_set(&cur->error, -EBADMSG,
		"%.40s: block %u at offset %llu: %s; mend: stoup verify", volume_name(part->vol),
		seg->block_idx, (unsigned long long)block->stored_off, why.text);
}

int stoup_direct_look(struct stoup_cursor *cur, const struct stoup_part *part,
	const struct stoup_catalog_segment *seg, const uint8_t **ret)
{
	if (cur->schema->stride == 0 && messages_check(cur, part, seg) < 0)
		return cur->error.code;
	*ret = part->bytes + file_off(part, seg);
	return 0;
}

/* Cut a run to the range: 1, 0 nothing of it is in the range. */
static int run_cut(struct stoup_cursor *cur, const struct run *run, struct stoup_span *ret)
{
	const uint8_t *base = run->part->bytes + file_off(run->part, run->low);
	const uint8_t *last = run->part->bytes + file_off(run->part, run->high);
	uint64_t ordinal = run->part->ordinal + run->low->ordinal, low, high, unused;

	stoup_segment_cut(cur, run->part, run->low, base, &low, &unused);
	stoup_segment_cut(cur, run->part, run->high, last, &unused, &high);
	high += run->high->ordinal - run->low->ordinal;
	stoup_cursor_clip(cur, ordinal, &low, &high);
	if (low >= high)
		return 0;
	stoup_cursor_count(cur, ordinal, &low, &high);
	*ret = (struct stoup_span){
		.base = base + low * cur->stride,
		.record_cnt = high - low,
		.stride = cur->stride,
		.ordinal = ordinal + low,
		.first_key = run->low->first_key,
		.last_key = run->high->last_key,
		.schema = cur->schema,
		.client = cur->st,
		.cell_idx = STOUP_CELL_NONE,
		.session_no = STOUP_SESSION_NONE,
	};
	return 1;
}

/* A later snapshot begins behind what is handed out now. */
static void run_anchor(
	struct stoup_cursor *cur, const struct run *run, const struct stoup_span *span)
{
	uint32_t part = cur->at.part;

	cur->span_base = span->base;
	cur->span_cnt = span->record_cnt;
	cur->span_ordinal = span->ordinal;
	cur->span_low = span->ordinal - run->part->ordinal - run->low->ordinal;
	cur->at.part = (uint32_t)(run->part - cur->parts);
	stoup_anchor_take(cur);
	cur->at.part = part;
}

int stoup_direct_served(struct stoup *st)
{
	struct stoup_session *ses = stoup_session_current(st);
	struct timespec ts;
	uint64_t now;
	int rc = stoup_session_enter(ses), look;

	if (rc == 0) {
		clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
		now = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
		look = now >=
		       atomic_load_explicit(&ses->pulse_ns, memory_order_relaxed) + STOUP_PULSE_NS;
		if (look)
			atomic_store_explicit(&ses->pulse_ns, now, memory_order_relaxed);
		rc = stoup_session_check(ses, look ? STOUP_LOOK_PULSE : STOUP_LOOK_STATE);
		stoup_session_leave(ses);
	}
	stoup_session_release(ses);
	return rc == 0;
}

void stoup_direct_count(struct stoup *st, uint64_t span_cnt, uint64_t record_cnt)
{
	atomic_fetch_add_explicit(&st->direct_cnt, span_cnt, memory_order_relaxed);
	atomic_fetch_add_explicit(&st->direct_record_cnt, record_cnt, memory_order_relaxed);
	if (!stoup_direct_served(st))
		atomic_fetch_add_explicit(&st->direct_alone_cnt, span_cnt, memory_order_relaxed);
}

int stoup_direct_next(struct stoup_cursor *cur, struct stoup_span *ret)
{
	struct stoup *st = cur->st;
	struct stoup_place before;
	struct run run;
	int rc = cur->pending ? stoup_cursor_settle(cur) : 0;

	if (rc < 0 || !ret)
		return rc;
	for (before = cur->at; run_next(cur, &run); before = cur->at) {
		if (cur->schema->stride == 0 && messages_check(cur, run.part, run.low) < 0) {
			cur->at = before; /* where stoup_cursor_skip goes on */
			return cur->error.code;
		}
		if (!run_cut(cur, &run, ret))
			continue;
		if (cur->range.flags & STOUP_FOLLOW)
			run_anchor(cur, &run, ret);
		stoup_direct_count(st, 1, ret->record_cnt);
		return 1;
	}
	return 0;
}
