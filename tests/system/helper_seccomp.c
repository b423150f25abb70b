/* SPDX-License-Identifier: Apache-2.0 */
/* helper_seccomp.c - run a program under a real seccomp filter that refuses io_uring, or inotify, or pidfds.
 *
 * usage: helper_seccomp EPERM|ENOSYS|EMFILE|PIDFD PROGRAM [argument...]
 *   EPERM, ENOSYS  what io_uring answers; EMFILE: what inotify answers
 *   PIDFD          no pidfd to be had, by number or of a socket, as of kernels and namespaces that give none
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* One word per program: what is refused, and how. */
static const struct {
	const char *word;
	unsigned int first, second, code;
} kinds[] = {
	{"EPERM", SYS_io_uring_setup, SYS_io_uring_enter, EPERM},
	{"ENOSYS", SYS_io_uring_setup, SYS_io_uring_enter, ENOSYS},
	{"EMFILE", SYS_inotify_init1, SYS_inotify_init1, EMFILE},
	{"PIDFD", SYS_pidfd_open, SYS_pidfd_open, ENOSYS},
};

int main(int argc, char **argv)
{
	size_t kind = 0;

	while (argc > 2 && kind < sizeof(kinds) / sizeof(kinds[0]) &&
		strcmp(argv[1], kinds[kind].word) != 0)
		kind++;
	if (argc < 3 || kind == sizeof(kinds) / sizeof(kinds[0]))
		return 2;
	/* Of getsockopt, the process behind a socket alone. */
	int pidfd = kinds[kind].first == SYS_pidfd_open;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kinds[kind].first, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kinds[kind].second, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, pidfd ? SO_PEERPIDFD : UINT32_MAX, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(
			BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (kinds[kind].code & SECCOMP_RET_DATA)),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
		perror("seccomp");
		return 77;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 1;
}
