/* Child processes, complete reads and writes, and the choice of a processor. */
#define _GNU_SOURCE
#include "micro.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t child(void (*work)(void *), void *what)
{
	pid_t parent = getpid(), pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid)
		return pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		fail("prctl");
	if (getppid() == parent) /* otherwise the parent has died already */
		work(what);
	_exit(0);
}

void reap(pid_t pid)
{
	if (kill(pid, SIGKILL) && errno != ESRCH)
		fail("kill");
	while (waitpid(pid, NULL, 0) < 0)
		if (errno != EINTR)
			fail("waitpid");
}

void full_read(int fd, void *to, size_t n)
{
	for (char *p = to; n;) {
		ssize_t got = read(fd, p, n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			errno = EPIPE;
		if (got <= 0)
			fail("read");
		p += got;
		n -= (size_t)got;
	}
}

void full_write(int fd, const void *from, size_t n)
{
	for (const char *p = from; n;) {
		ssize_t put = write(fd, p, n);
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			fail("write");
		p += put;
		n -= (size_t)put;
	}
}

void stay_on_one(void)
{
	cpu_set_t may, one;
	if (sched_getaffinity(0, sizeof may, &may))
		fail("sched_getaffinity");
	size_t skip = (size_t)(set.pin < 0 ? 0 : set.pin) % (size_t)CPU_COUNT(&may), cpu = 0;
	while (!CPU_ISSET(cpu, &may) || skip--)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one))
		fail("sched_setaffinity to processor %zu", cpu);
}
