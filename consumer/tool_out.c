/* SPDX-License-Identifier: Apache-2.0 */
/* tool_out.c - see tool_out.h. */
#include "consumer/tool_out.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "consumer/tools.h"

#define BUF_LEN (1u << 18) /* bytes that are collected before a write */

static const char *name_of(const struct stoup_out *out)
{
	return out->path ? out->path : "standard output";
}

/* ---- writing ---------------------------------------------------------------------------------- */

static int fd_put(void *arg, const void *bytes, size_t len)
{
	struct stoup_out *out = arg;
	const char *at = bytes;

	while (len > 0 && !out->error) {
		ssize_t got = write(out->fd, at, len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			out->error = errno;
			break;
		}
		at += got;
		len -= (size_t)got;
		out->len += (uint64_t)got;
	}
	errno = out->error;
	return out->error ? -out->error : 0;
}

static ssize_t cookie_write(void *arg, const char *bytes, size_t len)
{
	struct stoup_out *out = arg;
	int rc = out->pack ? stoup_pack_write(out->pack, bytes, len) : fd_put(out, bytes, len);

	if (rc < 0 && !out->error)
		out->error = -rc;
	errno = out->error;
	return rc < 0 ? 0 : (ssize_t)len;
}

int stoup_out_error(const struct stoup_out *out, struct stoup_error *err)
{
	int code = out->error ? out->error : EIO;

	if (code == EPIPE)
		return stoup_error_set(err, -code, "%s: the reader has gone", name_of(out));
	return stoup_error_set(err, -code, "%s: %s%s", name_of(out), strerror(code),
		out->is_new ? "; nothing was left behind" : "");
}

/* ---- opening ---------------------------------------------------------------------------------- */

/* The directory of the target, for the caller to free. */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static int open_temporary(struct stoup_out *out)
{
	const char *slash = strrchr(out->path, '/'), *base = slash ? slash + 1 : out->path;
	int dir_len = (int)(base - out->path);

	if (asprintf(&out->temporary, "%.*s.%s.%ld.tmp", dir_len, out->path, base, (long)getpid()) <
		0) {
		out->temporary = NULL;
		return -ENOMEM;
	}
	out->fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	return out->fd < 0 ? -errno : 0;
}

static int open_new(struct stoup_out *out)
{
	char *dir = directory_of(out->path);

	if (!dir)
		return -ENOMEM;
	out->is_new = 1;
	out->fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	free(dir);
	if (out->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return -errno;
	return open_temporary(out);
}

static int open_target(struct stoup_out *out, struct stoup_error *err)
{
	struct stat st;
	int rc = 0, is_there;

	if (!out->path) {
		out->fd = STDOUT_FILENO;
		return 0;
	}
	is_there = stat(out->path, &st) == 0;
	if (is_there && S_ISDIR(st.st_mode))
		return stoup_error_set(
			err, -EISDIR, "%s is a directory: --directory writes into it", out->path);
	if (is_there && S_ISREG(st.st_mode) && !out->force)
		return stoup_error_set(
			err, -EEXIST, "%s is there already: --force replaces it", out->path);
	if (is_there && !S_ISREG(st.st_mode)) {
		out->fd = open(out->path, O_WRONLY | O_CLOEXEC);
		rc = out->fd < 0 ? -errno : 0;
	} else {
		rc = open_new(out);
	}
	return rc < 0 ? stoup_error_set(err, rc, "%s: %s", out->path, strerror(-rc)) : 0;
}

int stoup_out_open(
	const char *path, int force, int zstd, struct stoup_out *ret, struct stoup_error *err)
{
	cookie_io_functions_t io = {.write = cookie_write};
	int rc;

	*ret = (struct stoup_out){.path = path, .fd = -1, .force = force};
	rc = open_target(ret, err);
	if (rc == 0 && zstd)
		rc = stoup_pack_create(fd_put, ret, &ret->pack, err);
	if (rc == 0) {
		ret->file = fopencookie(ret, "w", io);
		if (!ret->file)
			rc = stoup_error_set(err, -ENOMEM, "no memory to write %s", name_of(ret));
	}
	if (rc < 0) {
		stoup_out_discard(ret);
		return rc;
	}
	setvbuf(ret->file, NULL, _IOFBF, BUF_LEN);
	return 0;
}

/* ---- ending ----------------------------------------------------------------------------------- */

static void close_all(struct stoup_out *out)
{
	stoup_pack_destroy(out->pack);
	if (out->fd > STDERR_FILENO)
		close(out->fd);
	free(out->temporary);
	out->pack = NULL;
	out->temporary = NULL;
	out->fd = -1;
}

/* A name for a nameless file, which must not be there. */
static int give_name(const struct stoup_out *out, const char *name)
{
	char own[64];

	snprintf(own, sizeof(own), "/proc/self/fd/%d", out->fd);
	return linkat(AT_FDCWD, own, AT_FDCWD, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int replace(struct stoup_out *out)
{
	int rc = 0;

	if (!out->temporary) {
		char *dir = NULL;

		if (asprintf(&dir, "%s.%ld.tmp", out->path, (long)getpid()) < 0)
			return -ENOMEM;
		unlink(dir);
		rc = give_name(out, dir);
		out->temporary = dir;
	}
	if (rc == 0 && rename(out->temporary, out->path) < 0)
		rc = -errno;
	if (rc < 0)
		unlink(out->temporary);
	return rc;
}

static int name_it(struct stoup_out *out)
{
	int rc;

	if (out->force)
		return replace(out);
	if (!out->temporary)
		return give_name(out, out->path);
	rc = renameat2(AT_FDCWD, out->temporary, AT_FDCWD, out->path, RENAME_NOREPLACE) < 0 ? -errno
	                                                                                    : 0;
	/* File systems without that flag: the file was not there at the start. */
	if (rc == -EINVAL)
		rc = access(out->path, F_OK) == 0            ? -EEXIST
		     : rename(out->temporary, out->path) < 0 ? -errno
		                                             : 0;
	if (rc < 0)
		unlink(out->temporary);
	return rc;
}

static void sync_directory(const char *path)
{
	char *dir = directory_of(path);
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(dir);
}

int stoup_out_publish(struct stoup_out *out, struct stoup_error *err)
{
	int rc = 0;

	if (fclose(out->file) != 0 && !out->error)
		out->error = errno;
	out->file = NULL;
	if (out->pack && !out->error) {
		rc = stoup_pack_end(out->pack);
		if (rc < 0 && !out->error)
			out->error = -rc;
	}
	if (!out->error && out->is_new && fsync(out->fd) < 0)
		out->error = errno;
	if (out->error) {
		rc = stoup_out_error(out, err);
		stoup_out_discard(out);
		return rc;
	}
	rc = out->is_new ? name_it(out) : 0;
	if (rc == -EEXIST)
		stoup_error_set(err, rc,
			"%s came to be meanwhile: nothing was written; --force replaces it",
			out->path);
	else if (rc < 0)
		stoup_error_set(
			err, rc, "%s: %s; nothing was left behind", out->path, strerror(-rc));
	else if (out->is_new)
		sync_directory(out->path);
	close_all(out);
	return rc;
}

void stoup_out_discard(struct stoup_out *out)
{
	if (out->file) {
		out->error =
			out->error ? out->error : ECANCELED; /* what is collected goes nowhere */
		fclose(out->file);
		out->file = NULL;
	}
	if (out->temporary)
		unlink(out->temporary);
	close_all(out);
}
