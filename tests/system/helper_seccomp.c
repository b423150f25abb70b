/* SPDX-License-Identifier: Apache-2.0 */
/* helper_seccomp.c - run a program under a real seccomp filter that refuses io_uring, or inotify.
 *
 * usage: helper_seccomp EPERM|ENOSYS|EMFILE PROGRAM [argument...]
 *   EPERM, ENOSYS  what io_uring answers; EMFILE: what inotify answers
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned int code = argc > 2 && strcmp(argv[1], "ENOSYS") == 0 ? ENOSYS : EPERM;
	int inotify = argc > 2 && strcmp(argv[1], "EMFILE") == 0;
	unsigned int first = inotify ? SYS_inotify_init1 : SYS_io_uring_setup;
	unsigned int second = inotify ? SYS_inotify_init1 : SYS_io_uring_enter;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K,
			SECCOMP_RET_ERRNO | ((inotify ? EMFILE : code) & SECCOMP_RET_DATA)),
	};
	struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

	if (argc < 3)
		return 2;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0) {
		perror("seccomp");
		return 77;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 1;
}
