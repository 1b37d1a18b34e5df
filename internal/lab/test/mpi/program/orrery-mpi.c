/* orrery-mpi: how long messages of MPI take between ranks, of which the first half is at the near end and the rest at the far end. What is measured
 * is what Intel's MPI Benchmarks call PingPong, Sendrecv, Exchange, Bcast, Reduce, Allreduce, Allgather and Alltoall ("Intel MPI Benchmarks User
 * Guide", chapter MPI-1 Benchmarks); the program is Orrery's own.
 *
 *   orrery-mpi SECONDS BENCHMARK:BYTES…      such as: orrery-mpi 3 pingpong:0 bcast:1024
 *
 * Rank 0 prints a line of JSON for each, and at the end one with the payload that went each way between the two ends at the least, whatever
 * algorithm MPI uses. A batch is a number of repetitions between two barriers that takes a millisecond or more; its time is that of the slowest
 * rank, by repetition. */
#include <mpi.h>

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_BATCHES = 5, MOST_BATCHES = 2000, MOST_REPS = 1 << 20, MOST_RANKS = 64, MOST_BYTES = 1 << 28 };
static const double least_batch = 1e-3; /* seconds */

static int rank, ranks, near; /* near: how many ranks are at the near end, and the first of the far end */
static char *out, *in;        /* the largest size for each rank */
static double sent, got;      /* payload that left the near end, and that came to it: bytes */

static void stop(const char *format, ...)
{
	va_list list;
	fputs("orrery-mpi: ", stderr);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

/* A message there and back, between the first ranks of both ends; others wait. Its time is half of that, as in the benchmark of that name. */
static void pingpong(int bytes)
{
	if (rank == 0) {
		MPI_Send(out, bytes, MPI_BYTE, near, 1, MPI_COMM_WORLD);
		MPI_Recv(in, bytes, MPI_BYTE, near, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == near) {
		MPI_Recv(in, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
	}
	sent += bytes;
	got += bytes;
}

/* All ranks in a ring: each sends to the next one and receives from the one before. The ring leaves an end once and comes to it once. */
static void ring(int bytes)
{
	MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % ranks, 1, in, bytes, MPI_BYTE, (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	sent += bytes;
	got += bytes;
}

/* The ring in both directions at once. */
static void exchange(int bytes)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	MPI_Request asked[2];
	MPI_Isend(out, bytes, MPI_BYTE, next, 1, MPI_COMM_WORLD, &asked[0]);
	MPI_Isend(out, bytes, MPI_BYTE, before, 2, MPI_COMM_WORLD, &asked[1]);
	MPI_Recv(in, bytes, MPI_BYTE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Recv(in, bytes, MPI_BYTE, next, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Waitall(2, asked, MPI_STATUSES_IGNORE);
	sent += 2. * bytes;
	got += 2. * bytes;
}

/* The root takes turns, the ends by turns, so that no rank runs ahead of the others. */
static int turn(void)
{
	static int turns;
	int n = turns++ % ranks;
	return n % 2 ? near + n / 2 : n / 2;
}

static void bcast(int bytes)
{
	int root = turn();
	MPI_Bcast(out, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
	if (root < near)
		sent += bytes;
	else
		got += bytes;
}

static void reduce(int bytes)
{
	int root = turn();
	MPI_Reduce(out, in, bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM, root, MPI_COMM_WORLD);
	if (root < near)
		got += bytes / (int)sizeof(float) * (int)sizeof(float);
	else
		sent += bytes / (int)sizeof(float) * (int)sizeof(float);
}

static void allgather(int bytes)
{
	MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
	sent += (double)near * bytes;
	got += (double)near * bytes;
}

static void allreduce(int bytes)
{
	MPI_Allreduce(out, in, bytes / (int)sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	sent += bytes / (int)sizeof(float) * (int)sizeof(float);
	got += bytes / (int)sizeof(float) * (int)sizeof(float);
}

static void alltoall(int bytes)
{
	MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
	sent += (double)near * near * bytes; /* each rank has something for each */
	got += (double)near * near * bytes;
}

typedef struct {
	const char *name;
	void (*once)(int bytes);
	double share; /* of the time of a repetition that is told */
} benchmark;

static const benchmark benchmarks[] = {{"pingpong", pingpong, 0.5}, {"sendrecv", ring, 1}, {"exchange", exchange, 1}, {"bcast", bcast, 1},
				       {"reduce", reduce, 1}, {"allreduce", allreduce, 1}, {"allgather", allgather, 1}, {"alltoall", alltoall, 1}};

/* batch gives the seconds that reps repetitions took, the same on all ranks. */
static double batch(const benchmark *b, int bytes, int reps)
{
	MPI_Barrier(MPI_COMM_WORLD);
	double began = MPI_Wtime();
	for (int i = 0; i < reps; i++)
		b->once(bytes);
	double took = MPI_Wtime() - began, most;
	MPI_Allreduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return most;
}

static int length(const benchmark *b, int bytes)
{
	for (int reps = 2;;) {
		double took = batch(b, bytes, reps);
		if (took >= least_batch || reps >= MOST_REPS)
			return reps;
		double more = took > 0 ? 1.2 * least_batch / took : 10;
		reps = (int)(reps * (more > 10 ? 10 : more < 1.1 ? 1.1 : more)) + 1;
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void measure(const benchmark *b, int bytes, double seconds)
{
	static double each[MOST_BATCHES];
	double end = MPI_Wtime() + seconds;
	int reps = length(b, bytes), n = 0;
	for (int more = 1; more;) {
		each[n++] = batch(b, bytes, reps) / reps * b->share;
		more = n < MOST_BATCHES && (n < LEAST_BATCHES || MPI_Wtime() < end);
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD); /* rank 0 has the clock */
	}
	if (rank)
		return;
	qsort(each, n, sizeof *each, ascending);
	printf("{\"benchmark\":\"%s\",\"bytes\":%d,\"min\":%.9g,\"median\":%.9g,\"max\":%.9g,\"batches\":%d,\"reps\":%d}\n", b->name, bytes, each[0],
	       (each[(n - 1) / 2] + each[n / 2]) / 2, each[n - 1], n, reps);
	fflush(stdout);
}

/* parse finds benchmark and size of a word such as bcast:1024. */
static const benchmark *parse(const char *word, int *bytes)
{
	const char *colon = strchr(word, ':');
	char *end;
	long n = colon ? strtol(colon + 1, &end, 10) : -1;
	if (n < 0 || n > MOST_BYTES || *end || end == colon + 1)
		stop("%s: not BENCHMARK:BYTES", word);
	*bytes = (int)n;
	for (size_t i = 0; i < sizeof benchmarks / sizeof *benchmarks; i++)
		if (strlen(benchmarks[i].name) == (size_t)(colon - word) && !strncmp(benchmarks[i].name, word, colon - word))
			return &benchmarks[i];
	stop("%s: no such benchmark", word);
	return NULL;
}

static void take_memory(int n, char **words)
{
	size_t most = sizeof(float);
	for (int i = 2; i < n; i++) {
		int bytes;
		parse(words[i], &bytes);
		most = (size_t)bytes > most ? (size_t)bytes : most;
	}
	most *= (size_t)ranks;
	out = malloc(most);
	in = malloc(most);
	if (!out || !in)
		stop("no memory for messages of %zu bytes", most);
	memset(out, 0, most); /* as floats: zeros */
	memset(in, 1, most);
}

int main(int n, char **words)
{
	MPI_Init(&n, &words); /* an error of MPI ends the program: MPI_ERRORS_ARE_FATAL is the default */
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	double seconds = n > 2 ? atof(words[1]) : 0;
	if (ranks < 2 || ranks > MOST_RANKS || ranks % 2)
		stop("there are %d ranks, and not an even number up to %d", ranks, MOST_RANKS);
	near = ranks / 2;
	if (!(seconds > 0))
		stop("usage: orrery-mpi SECONDS BENCHMARK:BYTES…");
	take_memory(n, words);
	for (int i = 2; i < n; i++) {
		int bytes;
		const benchmark *b = parse(words[i], &bytes);
		measure(b, bytes, seconds / (n - 2));
	}
	if (rank == 0)
		printf("{\"sent\":%.0f,\"received\":%.0f}\n", sent, got);
	MPI_Finalize();
	return 0;
}
