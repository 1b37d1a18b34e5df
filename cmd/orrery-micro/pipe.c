/* A byte that is sent to another process and back through two pipes. */
#define _GNU_SOURCE
#include "micro.h"

#include <sched.h>
#include <unistd.h>

static int there[2], back[2];
static pid_t other;
static cpu_set_t before;

static void echo(void *unused)
{
	(void)unused;
	char c;
	if (close(there[1]) || close(back[0]))
		fail("close");
	while (read(there[0], &c, 1) == 1)
		full_write(back[1], &c, 1);
}

static void open_pipes(void)
{
	if (pipe(there) || pipe(back))
		fail("pipe");
	other = child(echo, NULL);
	if (close(there[0]) || close(back[1]))
		fail("close");
}

static void close_pipes(void)
{
	if (close(there[1]) || close(back[0]))
		fail("close");
	reap(other);
}

static void trips(uint64_t reps)
{
	char c = 0;
	while (reps--) {
		full_write(there[1], &c, 1);
		full_read(back[0], &c, 1);
	}
}

/* Both processes run on one processor. Each round trip has two context switches, two writes and
 * two reads. The time of the writes and reads is subtracted. */
static double alone(void)
{
	int own[2];
	char c = 0;
	double best = 1;
	if (pipe(own))
		fail("pipe");
	for (int batch = 0; batch < 20; batch++) {
		enum { REPS = 2000 };
		double began = now();
		for (int i = 0; i < REPS; i++) {
			full_write(own[1], &c, 1);
			full_read(own[0], &c, 1);
		}
		double each = (now() - began) / REPS;
		best = each < best ? each : best;
	}
	if (close(own[0]) || close(own[1]))
		fail("close");
	return best;
}

static void open_on_one(void)
{
	if (sched_getaffinity(0, sizeof before, &before))
		fail("sched_getaffinity");
	stay_on_one();
	take_off(alone());
	open_pipes();
}

static void close_on_one(void)
{
	close_pipes();
	if (sched_setaffinity(0, sizeof before, &before))
		fail("sched_setaffinity");
}

static void switches(uint64_t reps) { trips((reps + 1) / 2); }

const measurement pipe_all[] = {
	{.name = "pipe-latency", .about = "a byte to another process and back by pipes", .begin = open_pipes, .batch = trips, .end = close_pipes},
	{.name = "context-switch", .about = "between two processes on one processor, less reading and writing of the pipe", .begin = open_on_one,
	 .batch = switches, .end = close_on_one},
	{0},
};
