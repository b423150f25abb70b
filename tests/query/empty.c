/* SPDX-License-Identifier: Apache-2.0 */
/* empty.c - a store with series that have no records: the volume's format allows them, ingest never writes them.
 *
 *      series 0   E/NONE/tick    no segment
 *      series 1   E/ONE/tick     one segment of one record
 *      series 2   E/NOTHING/tick no segment
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "codec/block.h"
#include "codec/volume.h"
#include "codec/volume_private.h"
#include "producer/store.h"
#include "query/query.h"

#define KEY INT64_C(1700000000000000000)

static int schema_add(struct stoup_vol_writer *writer)
{
	const struct stoup_schema *tick = stoup_schema_by_name("tick");
	struct stoup_vol_schema schema = {.name = "tick",
		.stride = tick->stride,
		.align = tick->align,
		.key_off = tick->key_off,
		.flags = tick->flags,
		.field_cnt = tick->field_cnt};
	struct stoup_vol_field fields[8] = {0};

	for (uint32_t i = 0; i < tick->field_cnt && i < 8; i++)
		memcpy(&fields[i], &tick->fields[i], sizeof(fields[i]));
	schema.hash = stoup_vol_schema_hash(&schema, fields);
	return (int)stoup_vol_add_schema(writer, &schema, fields);
}

static int contents(struct stoup_vol_writer *writer, int fd)
{
	struct stoup_tick tick = {KEY, 1500000000, 7, 0};
	uint64_t hash = stoup_vol_hash(&tick, sizeof(tick)), off = 0;
	int64_t rc = schema_add(writer);

	if (rc < 0 || stoup_vol_add_series(writer, "E/NONE/tick", 0, 0) < 0 ||
		stoup_vol_add_series(writer, "E/ONE/tick", 0, 0) < 0 ||
		stoup_vol_add_series(writer, "E/NOTHING/tick", 0, 0) < 0)
		return -EINVAL;
	rc = stoup_vol_add_block(writer, 0, sizeof(tick), 0, 0, hash, hash, sizeof(tick), &off);
	if (rc >= 0)
		rc = stoup_vol_add_segment(writer, 1, 0, 0, 1, KEY, KEY);
	if (rc >= 0 && pwrite(fd, &tick, sizeof(tick), (off_t)off) != sizeof(tick))
		rc = -errno;
	return rc < 0 ? (int)rc : 0;
}

int query_empty_store(const char *dir)
{
	struct stoup_vol_header header = {
		.created_ns = KEY, .ingest_seq = 1, .batch_idx = 0, .batch_cnt = 1};
	struct stoup_vol_writer *writer;
	char name[STOUP_STORE_NAME_CAP], path[4096];
	uint8_t head[STOUP_VOL_HEADER_LEN];
	const uint8_t *tail;
	size_t tail_len;
	uint64_t off;
	int fd, rc;

	if (stoup_store_id_make(header.id) < 0)
		return 1;
	stoup_store_name(&header, name);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || stoup_vol_writer_create(&header, &writer) < 0) {
		perror(path);
		return 1;
	}
	rc = contents(writer, fd);
	if (rc >= 0)
		rc = stoup_vol_finish(writer, &header, head, &tail, &tail_len, &off);
	if (rc < 0)
		fprintf(stderr, "%s: %s\n", path, stoup_vol_writer_fault(writer)->what);
	else if (pwrite(fd, tail, tail_len, (off_t)off) != (ssize_t)tail_len ||
		 pwrite(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head))
		rc = -errno;
	stoup_vol_writer_destroy(writer);
	close(fd);
	return rc < 0;
}
