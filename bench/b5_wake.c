/* SPDX-License-Identifier: Apache-2.0 */
/* b5_wake.c - the floor under B5: two bare wake-ups between two processes of this machine.
 *
 *      this process: eventfd write --> futex wait ..................... awake     timed
 *      the other:          asleep in epoll_wait --> awake, futex wake
 *
 * The same calls as a miss makes, with nothing between them. Both sleep before each round.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/b5_wake.h"
#include "bench/harness.h"
#include "shm/futex.h"

#define SLICE_NS INT64_C(1000000000)

struct shared {
	_Atomic uint32_t round; /* the other writes the number of the round */
};

_Noreturn static void other_run(struct shared *shared, int bell_fd, uint32_t rounds)
{
	int poll_fd = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	if (poll_fd < 0 || epoll_ctl(poll_fd, EPOLL_CTL_ADD, bell_fd, &event) < 0)
		_exit(1);
	for (uint32_t i = 1; i <= rounds; i++) {
		if (epoll_wait(poll_fd, &event, 1, -1) != 1)
			_exit(1);
		atomic_store_explicit(&shared->round, i, memory_order_release);
		stoup_futex_wake(&shared->round, 1);
	}
	_exit(0);
}

static uint64_t round_trip(struct shared *shared, int bell_fd, uint32_t number)
{
	const uint64_t one = 1;
	uint64_t began = bench_now();

	if (write(bell_fd, &one, sizeof(one)) != sizeof(one))
		bench_die("B5: eventfd");
	while (atomic_load_explicit(&shared->round, memory_order_acquire) < number)
		stoup_futex_wait(&shared->round, number - 1, SLICE_NS);
	return bench_now() - began;
}

void bench_wake_floor(uint32_t rest_us)
{
	uint32_t cnt = (uint32_t)bench_scale(1500, 60);
	uint64_t *samples = calloc(cnt, sizeof(*samples));
	struct shared *shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int bell_fd = eventfd(0, EFD_CLOEXEC), status;
	pid_t pid;

	if (!samples || shared == MAP_FAILED || bell_fd < 0)
		bench_die("B5: no memory or descriptors");
	pid = fork();
	if (pid == 0)
		other_run(shared, bell_fd, cnt);
	if (pid < 0)
		bench_die("B5: fork failed");
	for (uint32_t i = 0; i < cnt; i++) {
		usleep(rest_us);
		samples[i] = round_trip(shared, bell_fd, i + 1);
	}
	if (waitpid(pid, &status, 0) < 0 || status != 0)
		bench_die("B5: the other process failed");
	bench_latency("B5", "the machine's floor: two bare wake-ups", samples, cnt);
	close(bell_fd);
	munmap(shared, sizeof(*shared));
	free(samples);
}
