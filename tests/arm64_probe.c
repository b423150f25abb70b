/* SPDX-License-Identifier: Apache-2.0 */
/* arm64_probe.c - what the machine that runs this does of what stoup's tests rely on: a kernel, or an
 * emulator in front of one. tests/arm64.sh leaves out only what a line says "no" to.
 *
 *      ABILITY yes|no WORDS
 *
 * No ability is taken from an emulator's version: each is tried.
 *
 * Concurrency: one thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE_CAP 65536

static void say(const char *ability, int yes, const char *words)
{
	printf("%s %s %s\n", ability, yes ? "yes" : "no", words);
	fflush(stdout); /* before a fork: a child has nothing to say */
}

/* Atomic instructions of their own (ARMv8.1), which the helpers of -moutline-atomics look for. */
static void try_lse(void)
{
#if defined(__aarch64__)
	int has = (getauxval(AT_HWCAP) & (1UL << 8)) != 0;

	say("lse", has, has ? "swpal, casal, ldsetal" : "ldaxr and stlxr");
#else
	say("lse", 0, "not an arm64 program");
#endif
}

static void try_io_uring(void)
{
	unsigned char params[120] = {0};
	long fd = syscall(SYS_io_uring_setup, 4, params);
	int error = errno;

	say("io_uring", fd >= 0, fd >= 0 ? "set up" : strerror(error));
	if (fd >= 0)
		close((int)fd);
}

/* A child without a signal at its end: how libstoup starts the automatic daemon. */
static void try_quiet_clone(void)
{
	long pid = syscall(SYS_clone, 0UL, NULL, NULL, NULL, 0UL);
	int error = errno, status;

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, &status, __WALL);
	say("quiet_clone", pid > 0, pid > 0 ? "made" : strerror(error));
}

/* After a fork: a page that is advised WIPEONFORK is zero, one that is advised DONTFORK is not there. */
static void try_fork_advice(void)
{
	unsigned char *wiped =
		mmap(NULL, PAGE_CAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *absent =
		mmap(NULL, PAGE_CAP, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t pid;

	if (wiped == MAP_FAILED || absent == MAP_FAILED ||
		madvise(wiped, PAGE_CAP, MADV_WIPEONFORK) < 0 ||
		madvise(absent, PAGE_CAP, MADV_DONTFORK) < 0) {
		say("fork_advice", 0, strerror(errno));
		return;
	}
	wiped[0] = 1;
	pid = fork();
	if (pid == 0)
		_exit((wiped[0] != 0) + 2 * (msync(absent, PAGE_CAP, MS_ASYNC) == 0));
	waitpid(pid, &status, 0);
	say("fork_advice", WIFEXITED(status) && WEXITSTATUS(status) == 0,
		WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "followed"
							      : "madvise says done, and it is not");
}

/* A file that can be opened with O_DIRECT tells its alignments, if statx says that it tells any. */
static void try_direct_io(const char *path)
{
	const char *words = "not told by statx";
	int yes = 1, fd = open(path, O_RDONLY | O_DIRECT);

	if (fd < 0) {
		say("direct_io", 0, "the file system of TMPDIR has no O_DIRECT");
		return;
	}
#ifdef STATX_DIOALIGN
	struct statx stx = {0};

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) == 0 &&
		(stx.stx_mask & STATX_DIOALIGN)) {
		yes = stx.stx_dio_offset_align != 0;
		words = yes ? "alignments are told" : "statx says that it tells them, and tells 0";
	}
#endif
	close(fd);
	say("direct_io", yes, words);
}

/* The start time in one's own /proc/self/stat is the one that others see: not when the whole file is
 * made up, in which the program has no size. */
static void try_own_start(void)
{
	char text[1024] = "";
	const char *at;
	FILE *file = fopen("/proc/self/stat", "re");
	int real = 0;

	if (file) {
		text[fread(text, 1, sizeof(text) - 1, file)] = 0;
		fclose(file);
	}
	at = strrchr(text, ')');
	for (int field = 2; at && field < 23; field++)
		at = strchr(at + 1, ' ');
	real = at && strtoull(at, NULL, 10) != 0;
	say("own_start", real, real ? "as the kernel has it" : "/proc/self/stat is made up");
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: arm64_probe FILE\n");
		return 2;
	}
	try_lse();
	try_io_uring();
	try_quiet_clone();
	try_fork_advice();
	try_direct_io(argv[1]);
	try_own_start();
	return 0;
}
