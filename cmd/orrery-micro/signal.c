/* Signals: installing a handler, catching a signal, and catching one that the processor raises. */
#define _GNU_SOURCE
#include "micro.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile sig_atomic_t caught;

static void count(int number)
{
	(void)number;
	caught++;
}

static void install(int number, void (*to)(int))
{
	struct sigaction action = {.sa_handler = to};
	if (sigaction(number, &action, NULL))
		fail("sigaction");
}

static void installs(uint64_t reps)
{
	while (reps--)
		install(SIGUSR1, count);
}

static void ready(void) { install(SIGUSR1, count); }

static void restore(void) { install(SIGUSR1, SIG_DFL); }

static void catches(uint64_t reps)
{
	pid_t me = getpid();
	caught = 0;
	for (uint64_t i = 0; i < reps; i++) {
		sig_atomic_t before = caught;
		if (kill(me, SIGUSR1))
			fail("kill");
		if (caught == before) { /* a signal to oneself is delivered before kill returns: kill(2) */
			errno = 0;
			fail("the signal was not delivered");
		}
	}
}

/* The write to a read-only page is repeated each time its signal was caught, and each time is a
 * fault. The last handler jumps out. */
static char *page;
static volatile uint64_t left;
static sigjmp_buf out;

static void fault(int number)
{
	(void)number;
	if (--left == 0)
		siglongjmp(out, 1);
}

static void protect(void)
{
	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		fail("mmap");
	install(SIGSEGV, fault);
}

static void faults(uint64_t reps)
{
	left = reps;
	if (!sigsetjmp(out, 1)) {
		*(volatile char *)page = 1;
		errno = 0;
		fail("a page that may only be read was written");
	}
}

static void unprotect(void)
{
	install(SIGSEGV, SIG_DFL);
	if (munmap(page, 4096))
		fail("munmap");
}

const measurement signal_all[] = {
	{.name = "signal-install", .about = "sigaction", .batch = installs, .end = restore},
	{.name = "signal-catch", .about = "a signal to oneself: kill, catch, return", .begin = ready, .batch = catches, .end = restore},
	{.name = "protection-fault", .about = "a write to a read-only page: fault, catch, return", .begin = protect, .batch = faults, .end = unprotect},
	{0},
};
