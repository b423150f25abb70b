/* SPDX-License-Identifier: Apache-2.0 */
/* give.c - volumes' files for consumers that map them themselves.
 *
 *      volume is made --some block can be mapped?--> opened once more, read-only --> give_fd
 *      consumer -- file, volume, id --> checked --> give_fd
 *
 * A descriptor that is passed on shares its open file description with ours: its flags, which the receiver
 * can change, and its position. So consumers get one of their own kind, that the daemon does not read
 * through, opened when the volume is: a question opens nothing and waits for no disk.
 *
 * Who may ask is who was admitted at its hello; it can read every record of the volume as it is.
 *
 * If the daemon dies: descriptors and mappings of consumers live on.
 */
#include "producer/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/sockios.h>
#include <unistd.h>
#include "codec/block.h"
#include "producer/volume_file.h"

void stoup_give_open(struct stoup_daemon *d, uint32_t volume_idx)
{
	struct stoup_volume *v = &d->volumes[volume_idx];
	const struct stoup_vol_index *index = v->file->index;

	v->give_fd = -ENOTSUP;
	for (uint32_t b = 0; b < index->block_cnt; b++)
		if (index->blocks[b].codec == STOUP_CODEC_NONE &&
			index->blocks[b].transform == STOUP_TRANSFORM_NONE) {
			v->give_fd = stoup_file_reopen(v->file->fd, v->file->path, 0);
			break;
		}
	if (v->give_fd < 0 && v->give_fd != -ENOTSUP)
		stoup_log_error(d, v->give_fd, "%s: can not be opened for direct mode: %s",
			stoup_path_tail(v->file->path), strerror(-v->give_fd));
}

void stoup_give_close(struct stoup_volume *v)
{
	if (v->give_fd >= 0)
		close(v->give_fd);
	v->give_fd = -1;
}

/* The descriptor that answers a question, or why there is none. */
static int answer_fd(const struct stoup_daemon *d, const struct stoup_consumer *c,
	const struct stoup_wire_file *asked)
{
	const struct stoup_volume *v;

	if (asked->volume_idx >= d->volume_cnt)
		return -EINVAL;
	v = &d->volumes[asked->volume_idx];
	if (!v->file || v->closed || c->cut || v->born_seq > c->snapshot_seq ||
		memcmp(asked->id, v->file->index->header.id, sizeof(asked->id)) != 0)
		return -ESTALE;
	return v->give_fd;
}

int stoup_give_message(struct stoup_daemon *d, uint32_t idx, const struct stoup_wire_file *asked)
{
	const struct stoup_consumer *c = &d->consumers[idx];
	struct stoup_wire_file answer = *asked;
	int fd, rc, unread = 0;

	/* A peer that asks again without having read the answer before is none of ours. */
	if (ioctl(c->sock_fd, SIOCOUTQ, &unread) == 0 && unread > 0)
		return -EPROTO;
	fd = answer_fd(d, c, asked);
	answer.error = fd < 0 ? fd : 0;
	rc = stoup_wire_send(c->sock_fd, &answer, sizeof(answer), &fd, fd >= 0);
	if (rc == -ETOOMANYREFS) {
		/* Others do not read what they asked for: this one may go on without. */
		answer.error = rc;
		rc = stoup_wire_send(c->sock_fd, &answer, sizeof(answer), NULL, 0);
	} else if (rc == 0 && fd >= 0) {
		stoup_counter_add(d, STOUP_COUNTER_DIRECT_FILES, 1);
	}
	return rc;
}
