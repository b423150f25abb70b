/* SPDX-License-Identifier: Apache-2.0 */
/* helper_intruder.c - a consumer that keeps every descriptor it was given and tries what it may not.
 *
 * usage: helper_intruder SOCKET POOL MODE SECONDS
 *   refused  each forbidden thing once: prints what was not refused; exit status 1 if there is any
 *   own      the same for data and catalogs alone: what seals keep from the daemon's own user as well
 *   storm    doorbell, socket and attach floods, locks and flags on shared descriptors
 *   full     attaches until it is refused, prints "full" and waits for the end of standard input
 *   stop     names all cells, prints "stopped" and stops itself (SIGSTOP)
 *   pass     gives all descriptors to another process, which writes to the page and outlives it;
 *            prints the pid of the other one and ends
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <signal.h>
#include "shm/control.h"
#include "shm/lease.h"
#include "shm/page.h"
#include "shm/wire.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

#define FLOOD_CNT 32 /* connections of one wave */

static const char *sock_path, *pool;
static int refused_cnt, allowed_cnt;

struct session {
	int sock_fd;
	int fds[STOUP_WIRE_FD_CAP];
	uint32_t fd_cnt;
	struct stoup_wire_reply reply;
	const struct stoup_control *control;
	struct stoup_page *page;
	size_t page_len;
};

static uint64_t state = 88172645463325252u;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* ---- attaching by hand ------------------------------------------------------------------------ */

static int dial(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(addr.sun_path, sock_path, strlen(sock_path) + 1);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int say_hello(int fd)
{
	struct stoup_wire_hello hello = {.magic = STOUP_HELLO_MAGIC,
		.kind = STOUP_WIRE_HELLO,
		.abi_major = STOUP_ABI_MAJOR,
		.abi_minor = STOUP_ABI_MINOR,
		.fingerprint = stoup_abi_fingerprint()};

	return stoup_wire_send(fd, &hello, sizeof(hello), NULL, 0);
}

/* 0, or the errno of the refusal. Waits for the answer. */
static int attach(struct session *s)
{
	struct timeval limit = {.tv_sec = 20};
	int64_t len;

	s->sock_fd = dial();
	if (s->sock_fd < 0)
		return errno;
	fcntl(s->sock_fd, F_SETFL, 0);
	setsockopt(s->sock_fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (say_hello(s->sock_fd) < 0)
		return EPIPE;
	len = stoup_wire_recv(
		s->sock_fd, &s->reply, sizeof(s->reply), s->fds, STOUP_WIRE_FD_CAP, &s->fd_cnt);
	if (len != (int64_t)sizeof(s->reply) || s->reply.error < 0) {
		close(s->sock_fd);
		return len == (int64_t)sizeof(s->reply) ? -s->reply.error : EPROTO;
	}
	return 0;
}

static void map(struct session *s)
{
	struct stat st;

	fstat(s->fds[STOUP_WIRE_FD_PAGE], &st);
	s->page_len = (size_t)st.st_size;
	s->page = mmap(NULL, s->page_len, PROT_READ | PROT_WRITE, MAP_SHARED,
		s->fds[STOUP_WIRE_FD_PAGE], 0);
	s->control = mmap(
		NULL, sizeof(*s->control), PROT_READ, MAP_SHARED, s->fds[STOUP_WIRE_FD_CONTROL], 0);
	if (s->page == MAP_FAILED || s->control == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
}

/* ---- what must be refused --------------------------------------------------------------------- */

/* `rc` as of a system call: negative is the refusal that is wanted. */
static void must_fail(const char *object, const char *what, long rc)
{
	if (rc < 0) {
		refused_cnt++;
		return;
	}
	allowed_cnt++;
	printf("NOT REFUSED: %s: %s\n", object, what);
}

static long map_writable(int fd, size_t len)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? -1 : 0;
}

static long reopen(int fd, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC);
}

/* A descriptor of somebody's that was opened again for writing: may it be written through? */
static long reopen_and_write(int fd)
{
	long again = reopen(fd, O_RDWR);
	long rc;

	if (again < 0)
		return -1;
	rc = pwrite((int)again, "x", 1, 4096);
	if (rc < 0)
		rc = map_writable((int)again, 4096);
	if (rc < 0)
		rc = ftruncate((int)again, 0);
	if (rc < 0)
		rc = fallocate((int)again, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096);
	close((int)again);
	return rc;
}

static void try_mapping(const char *name, int fd, size_t len)
{
	void *at = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED) {
		must_fail(name, "a read-only mapping, which is what it is for", 0);
		return;
	}
	must_fail(name, "mprotect writable", mprotect(at, len, PROT_READ | PROT_WRITE));
	must_fail(name, "MADV_REMOVE", madvise(at, len, MADV_REMOVE));
	must_fail(name, "MADV_POPULATE_WRITE", madvise(at, 4096, MADV_POPULATE_WRITE));
	must_fail(name, "MADV_HWPOISON", madvise(at, 4096, MADV_HWPOISON));
	munmap(at, len);
}

/* An object that was given read-only. `foreign`: of another user. */
static void try_object(const char *name, int fd, int foreign)
{
	struct stat st;
	size_t len;

	fstat(fd, &st);
	len = (size_t)st.st_size;
	must_fail(name, "write", write(fd, "x", 1));
	must_fail(name, "pwrite", pwrite(fd, "x", 1, 4096));
	must_fail(name, "ftruncate shorter", ftruncate(fd, 0));
	must_fail(name, "ftruncate longer", ftruncate(fd, st.st_size * 2));
	must_fail(name, "punch a hole",
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
	must_fail(name, "fallocate longer", fallocate(fd, 0, st.st_size, 4096));
	must_fail(name, "mmap writable", map_writable(fd, len));
	must_fail(name, "seal", fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE));
	must_fail(name, "truncate through /proc", reopen(fd, O_WRONLY | O_TRUNC));
	must_fail(name, "open again and write", reopen_and_write(fd));
	try_mapping(name, fd, len);
	if (!foreign)
		return;
	must_fail(name, "open again for writing", reopen(fd, O_RDWR));
	must_fail(name, "fchmod", fchmod(fd, 0777));
	must_fail(name, "fchown", fchown(fd, geteuid(), (gid_t)-1));
	must_fail(name, "futimens", futimens(fd, NULL));
	must_fail(name, "an attribute", fsetxattr(fd, "user.x", "x", 1, 0));
	must_fail(name, "a lease of the file", fcntl(fd, F_SETLEASE, F_WRLCK));
}

static void try_page(const struct session *s)
{
	int fd = s->fds[STOUP_WIRE_FD_PAGE];

	must_fail("page", "ftruncate shorter", ftruncate(fd, 0));
	must_fail("page", "ftruncate longer", ftruncate(fd, (off_t)s->page_len * 2));
	must_fail("page", "seal", fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	must_fail("page", "fchmod", fchmod(fd, 0777));
	/* Its own page may be holed: the daemon then finds zeros. */
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)s->page_len) < 0)
		perror("punching one's own page");
}

static void try_names(void)
{
	const struct dirent *entry;
	char name[NAME_MAX + 32];
	DIR *dir = opendir("/dev/shm");

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "stoup.", 6) != 0 || !strstr(entry->d_name, pool))
			continue;
		snprintf(name, sizeof(name), "/%s", entry->d_name);
		must_fail(name, "shm_open for writing", shm_open(name, O_RDWR, 0));
		must_fail(name, "shm_open to replace",
			shm_open(name, O_RDWR | O_CREAT | O_TRUNC, 0666));
		must_fail(name, "shm_unlink", shm_unlink(name));
	}
	if (dir)
		closedir(dir);
	must_fail(sock_path, "unlink", unlink(sock_path));
	must_fail(sock_path, "chmod", chmod(sock_path, 0777));
	snprintf(name, sizeof(name), "%.*s.lock", (int)(strlen(sock_path) - 5), sock_path);
	must_fail(name, "open", open(name, O_RDWR | O_CLOEXEC));
	must_fail(name, "open to read", open(name, O_RDONLY | O_CLOEXEC));
}

static void try_daemon(pid_t pid)
{
	struct rlimit none = {0, 0};
	struct iovec iov = {.iov_base = &none, .iov_len = sizeof(none)};
	int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	char path[64];

	must_fail("daemon", "ptrace", ptrace(PTRACE_SEIZE, pid, NULL, NULL));
	must_fail("daemon", "process_vm_writev", process_vm_writev(pid, &iov, 1, &iov, 1, 0));
	must_fail("daemon", "process_vm_readv", process_vm_readv(pid, &iov, 1, &iov, 1, 0));
	must_fail("daemon", "kill", kill(pid, SIGTERM));
	must_fail("daemon", "stop", kill(pid, SIGSTOP));
	must_fail("daemon", "prlimit", prlimit(pid, RLIMIT_NOFILE, &none, NULL));
	for (int fd = 0; fd < 64; fd++) {
		must_fail("daemon", "pidfd_getfd", syscall(SYS_pidfd_getfd, pid_fd, fd, 0));
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		must_fail("daemon", path, open(path, O_RDWR | O_CLOEXEC));
	}
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	must_fail("daemon", path, open(path, O_RDWR | O_CLOEXEC));
	snprintf(path, sizeof(path), "/proc/%d/map_files", (int)pid);
	must_fail("daemon", path, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	close(pid_fd);
}

static int refused(int foreign)
{
	struct session s;

	if (attach(&s) != 0)
		return 2;
	map(&s);
	try_object("data", s.fds[STOUP_WIRE_FD_DATA], foreign);
	for (uint32_t i = STOUP_WIRE_FD_FIXED; i < s.fd_cnt; i++)
		try_object("catalog", s.fds[i], foreign);
	if (foreign) {
		try_object("control", s.fds[STOUP_WIRE_FD_CONTROL], foreign);
		try_names();
		try_daemon((pid_t)s.control->daemon_pid);
		try_page(&s);
	}
	printf("%d refused, %d not\n", refused_cnt, allowed_cnt);
	return allowed_cnt > 0;
}

/* ---- disturbance ------------------------------------------------------------------------------ */

static void bell_storm(int fd)
{
	uint64_t value = UINT64_MAX - 1;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 200; i++) {
		if (write(fd, &value, sizeof(value)) < 0 && read(fd, &value, sizeof(value)) < 0)
			break;
		value = next() & 1 ? 1 : UINT64_MAX - 1;
	}
	/* For all who share the descriptor: nobody may rely on it. */
	fcntl(fd, F_SETFL, 0);
}

/* Flags, positions and locks are shared by all who hold the descriptor. */
static void descriptor_storm(int fd)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	lseek(fd, (off_t)(next() % 100000), SEEK_SET);
	fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK | O_ASYNC);
	fcntl(fd, F_SETOWN, getpid());
	flock(fd, LOCK_EX | LOCK_NB);
	fcntl(fd, F_OFD_SETLK, &lock);
}

/* Connections that say hello, junk, or nothing, and never read an answer. */
static void attach_flood(void)
{
	int fds[FLOOD_CNT];

	for (int i = 0; i < FLOOD_CNT; i++) {
		fds[i] = dial();
		if (fds[i] < 0)
			continue;
		if (i % 4 < 2)
			say_hello(fds[i]);
		else if (i % 4 == 2 && send(fds[i], &state, sizeof(state), MSG_NOSIGNAL) < 0)
			continue;
	}
	usleep(20000);
	for (int i = 0; i < FLOOD_CNT; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Questions, more than are read; then junk, for which one is hung up upon. */
static void socket_flood(struct session *s)
{
	struct stoup_wire_volumes ask = {
		.magic = STOUP_HELLO_MAGIC, .kind = STOUP_WIRE_VOLUMES, .first = 0};

	for (int i = 0; i < 50; i++) {
		ask.first = (uint32_t)next();
		ask.flags = (uint32_t)next();
		if (send(s->sock_fd, &ask, sizeof(ask), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
	}
	ask.kind = (uint32_t)next();
	if (send(s->sock_fd, &ask, next() % sizeof(ask), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		usleep(100);
}

static void close_session(struct session *s)
{
	for (uint32_t i = 0; i < s->fd_cnt; i++)
		close(s->fds[i]);
	munmap(s->page, s->page_len);
	munmap((void *)(uintptr_t)s->control, sizeof(*s->control));
	shutdown(s->sock_fd, SHUT_RDWR);
	close(s->sock_fd);
}

static int storm(long seconds)
{
	struct timespec now, end;
	struct session s;
	int waves = 0;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
		attach_flood();
		if (attach(&s) != 0)
			continue;
		map(&s);
		for (int i = 0; i < 20; i++)
			bell_storm(s.fds[STOUP_WIRE_FD_DOORBELL]);
		for (uint32_t i = 0; i < s.fd_cnt; i++)
			descriptor_storm(s.fds[i]);
		socket_flood(&s);
		close_session(&s);
		waves++;
	} while (now.tv_sec < end.tv_sec);
	printf("%d waves\n", waves);
	return waves == 0;
}

static int full(void)
{
	struct session s;
	int cnt = 0, rc;
	char byte;

	while ((rc = attach(&s)) == 0)
		cnt++;
	printf("full %d %d\n", cnt, rc);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return rc != EUSERS;
}

/* ---- holding ---------------------------------------------------------------------------------- */

static void name_all(struct session *s)
{
	for (uint32_t i = 0; i < s->control->cell_cap; i++)
		atomic_store(
			&s->page->cells[i], stoup_word(1 + next() % 3, (uint32_t)(next() % 64)));
	atomic_store(&s->page->cell_high, s->control->cell_cap);
}

static int stop(void)
{
	struct session s;

	if (attach(&s) != 0)
		return 2;
	map(&s);
	name_all(&s);
	printf("stopped\n");
	fflush(stdout);
	raise(SIGSTOP);
	return 0;
}

static int pass(void)
{
	struct session s;
	pid_t pid;

	if (attach(&s) != 0)
		return 2;
	map(&s);
	pid = fork();
	if (pid == 0) {
		/* It has the socket too, so that no hang-up tells of the other's end. */
		fclose(stdout);
		for (;;) {
			name_all(&s);
			bell_storm(s.fds[STOUP_WIRE_FD_DOORBELL]);
			usleep(1000);
		}
	}
	printf("%d\n", (int)pid);
	fflush(stdout);
	usleep(300000);
	_exit(0);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	sock_path = argv[1];
	pool = argv[2];
	state ^= (uint64_t)getpid() << 20;
	signal(SIGPIPE, SIG_IGN);
	if (strcmp(argv[3], "refused") == 0)
		return refused(1);
	if (strcmp(argv[3], "own") == 0)
		return refused(0);
	if (strcmp(argv[3], "storm") == 0)
		return storm(strtol(argv[4], NULL, 10));
	if (strcmp(argv[3], "full") == 0)
		return full();
	if (strcmp(argv[3], "stop") == 0)
		return stop();
	return pass();
}
