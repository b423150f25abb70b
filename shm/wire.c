/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - packets with descriptors, runtime directories, pool names. */
#include "shm/wire.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control_space {
	char bytes[CMSG_SPACE(sizeof(int) * STOUP_WIRE_FD_CAP)];
	struct cmsghdr align;
};

int stoup_wire_send(int sock_fd, const void *msg, size_t len, const int *fds, uint32_t fd_cnt)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)msg, .iov_len = len};
	union control_space space;
	struct msghdr hdr = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cmsg;
	ssize_t rc;

	if (fd_cnt > STOUP_WIRE_FD_CAP)
		return -EINVAL;
	if (fd_cnt > 0) {
		memset(&space, 0, sizeof(space));
		hdr.msg_control = space.bytes;
		hdr.msg_controllen = CMSG_SPACE(sizeof(int) * fd_cnt);
		cmsg = CMSG_FIRSTHDR(&hdr);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * fd_cnt);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * fd_cnt);
	}
	do
		rc = sendmsg(sock_fd, &hdr, MSG_NOSIGNAL);
	while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return -errno;
	return (size_t)rc == len ? 0 : -EPROTO;
}

static void close_all(const int *fds, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++)
		close(fds[i]);
}

/* Collect descriptors of a received message. Those beyond fd_cap are closed and make it an error. */
static int take_fds(struct msghdr *hdr, int *fds, uint32_t fd_cap, uint32_t *ret_cnt)
{
	/* The kernel cuts the list of descriptors when the receiver has no number left for them. */
	int rc = hdr->msg_flags & MSG_CTRUNC ? -EMFILE : hdr->msg_flags & MSG_TRUNC ? -EPROTO : 0;
	uint32_t cnt = 0;

	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(hdr); cmsg; cmsg = CMSG_NXTHDR(hdr, cmsg)) {
		size_t here;

		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		here = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < here; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(fd));
			if (cnt < fd_cap) {
				fds[cnt++] = fd;
			} else {
				close(fd);
				rc = -EPROTO;
			}
		}
	}
	if (rc < 0) {
		close_all(fds, cnt);
		cnt = 0;
	}
	*ret_cnt = cnt;
	return rc;
}

int64_t stoup_wire_recv(
	int sock_fd, void *msg, size_t cap, int *fds, uint32_t fd_cap, uint32_t *ret_fd_cnt)
{
	struct iovec iov = {.iov_base = msg, .iov_len = cap};
	union control_space space;
	struct msghdr hdr = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = space.bytes,
		.msg_controllen = sizeof(space.bytes)};
	ssize_t len;
	int rc;

	do
		len = recvmsg(sock_fd, &hdr, MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	rc = take_fds(&hdr, fds, fd_cap, ret_fd_cnt);
	return rc < 0 ? rc : len;
}

int64_t stoup_wire_recv_plain(int sock_fd, void *msg, size_t cap)
{
	struct iovec iov = {.iov_base = msg, .iov_len = cap};
	struct msghdr hdr = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t len;

	do
		len = recvmsg(sock_fd, &hdr, MSG_PEEK);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	/* Without room for them, descriptors show as a cut list. */
	if (hdr.msg_flags & (MSG_CTRUNC | MSG_TRUNC))
		return -EPROTO;
	do
		len = recv(sock_fd, msg, cap, 0);
	while (len < 0 && errno == EINTR);
	return len < 0 ? -errno : len;
}

int stoup_runtime_dir(uint32_t idx, char *dst, size_t cap)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	int len;

	if (idx >= STOUP_RUNTIME_DIR_CNT)
		return -ENOENT;
	if (idx == 1)
		len = snprintf(dst, cap, "/run/stoup");
	else if (idx == 2)
		len = snprintf(dst, cap, "/run/user/%u/stoup", (unsigned int)geteuid());
	else if (idx == 0 && xdg && xdg[0] == '/')
		len = snprintf(dst, cap, "%s/stoup", xdg);
	else
		len = snprintf(dst, cap, "/tmp/stoup-%u", (unsigned int)geteuid());
	return len > 0 && (size_t)len < cap ? 0 : -ENAMETOOLONG;
}

int stoup_pool_name_valid(const char *name, struct stoup_error *err)
{
	size_t len = strlen(name);
	int fine = len >= 1 && len <= 48 && name[0] != '.' && name[0] != '-';

	for (size_t i = 0; fine && i < len; i++)
		fine = isalnum((unsigned char)name[i]) || strchr("_.-", name[i]) != NULL;
	if (!fine)
		return stoup_error_set(err, -EINVAL,
			"'%.60s' is no name of a pool: 1 to 48 letters, digits, '_', '.', '-', not "
			"beginning with "
			"'.' or '-'",
			name);
	return 0;
}
