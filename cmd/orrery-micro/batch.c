/* The method. A batch repeats the operation so often that it takes at least a millisecond. The
 * resolution of the clock then matters little, and an interruption spoils only one batch. There
 * are as many batches as the time allows. The result is the best of them, and the median shows
 * how steady they were.
 *
 * The batches are run in passes over all measurements, so that a temporary disturbance of the
 * machine does not affect all batches of one measurement. */
#define _GNU_SOURCE
#include "micro.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LEAST_BATCHES = 5, MOST_BATCHES = 2000, MOST_DISCARDED = 100 }; /* per pass; per measurement; per pass */
static const double least_batch = 1e-3; /* seconds */

static bool discarded;
static double overhead;

void discard_batch(void) { discarded = true; }

void take_off(double seconds) { overhead = seconds; }

double now(void)
{
	struct timespec t;
	if (clock_gettime(CLOCK_MONOTONIC, &t))
		fail("clock_gettime");
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double once(const measurement *m, uint64_t reps)
{
	double began = now();
	m->batch(reps);
	return now() - began;
}

/* length returns how many repetitions make a batch, beginning with reps. The shorter of two
 * attempts must be long enough. */
static uint64_t length(const measurement *m, uint64_t reps)
{
	for (;;) {
		double took = once(m, reps);
		if (took >= least_batch) {
			double again = once(m, reps);
			took = again < took ? again : took;
		}
		if (took >= least_batch)
			return reps;
		double more = took > 0 ? 1.2 * least_batch / took : 10;
		reps = (uint64_t)((double)reps * (more > 10 ? 10 : more < 1.1 ? 1.1 : more)) + 1;
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

void measure(const measurement *m, result *r, double seconds)
{
	self = m->name;
	overhead = 0;
	if (!r->each && !(r->each = calloc(MOST_BATCHES, sizeof *r->each)))
		fail("memory");
	double end = now() + seconds;
	if (m->begin)
		m->begin();
	r->reps = length(m, r->reps ? r->reps : 1);
	for (int n = 0, lost = 0; r->n < MOST_BATCHES && (n < LEAST_BATCHES || now() < end);) {
		discarded = false;
		double took = once(m, r->reps) / (double)r->reps - overhead;
		if (!discarded && took > 0) { /* otherwise it took less than its overhead, and says nothing */
			r->each[r->n++] = took;
			n++;
			continue;
		}
		errno = 0;
		if (++lost > MOST_DISCARDED)
			fail("%d batches were spoilt", lost);
	}
	if (m->end)
		m->end();
}

void print(const measurement *m, result *r)
{
	qsort(r->each, (size_t)r->n, sizeof *r->each, ascending);
	double median = (r->each[(r->n - 1) / 2] + r->each[r->n / 2]) / 2, least = r->each[0], most = r->each[r->n - 1];
	const char *unit = "s";
	if (m->bytes > 0) { /* the shortest time is the highest rate */
		double low = m->bytes / most;
		most = m->bytes / least;
		median = m->bytes / median;
		least = low;
		unit = "B/s";
	}
	printf("{\"name\":\"%s\",\"unit\":\"%s\",\"min\":%.9g,\"median\":%.9g,\"max\":%.9g,\"batches\":%d,\"reps\":%llu}\n", m->name, unit, least,
	       median, most, r->n, (unsigned long long)r->reps);
	if (fflush(stdout))
		fail("standard output");
}
