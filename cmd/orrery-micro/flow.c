/* Bandwidth: to another process through a pipe and a socket, and from memory to memory. */
#define _GNU_SOURCE
#include "micro.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIECE = 64 << 10, MEMORY = 32 << 20 }; /* bytes of a read or write; bytes of a copy, more than most caches hold */

static int ends[2]; /* for reading, for writing */
static pid_t writer;
static char piece[PIECE];

static void pour(void *unused)
{
	(void)unused;
	memset(piece, 1, sizeof piece);
	if (close(ends[0]))
		fail("close");
	for (;;)
		full_write(ends[1], piece, sizeof piece);
}

static void start_writer(void)
{
	memset(piece, 0, sizeof piece); /* allocate real memory instead of the zero page */
	writer = child(pour, NULL);
	if (close(ends[1]))
		fail("close");
}

static void open_pipe(void)
{
	if (pipe(ends))
		fail("pipe");
	start_writer();
}

static void open_pair(void)
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		fail("socketpair");
	start_writer();
}

static void close_both(void)
{
	reap(writer);
	if (close(ends[0]))
		fail("close");
}

static void drink(uint64_t reps)
{
	while (reps--)
		full_read(ends[0], piece, sizeof piece);
}

static char *from, *to;

static char *some(int with)
{
	char *p = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		fail("%d MiB of memory", MEMORY >> 20);
	memset(p, with, MEMORY);
	return p;
}

static void take_memory(void)
{
	from = some(1);
	to = some(2);
}

static void give_memory(void)
{
	if (munmap(from, MEMORY) || munmap(to, MEMORY))
		fail("munmap");
}

static void copies(uint64_t reps)
{
	while (reps--) {
		memcpy(to, from, MEMORY);
		__asm__ volatile("" : : "r"(to) : "memory"); /* the compiler must not omit the copy */
	}
}

const measurement flow_all[] = {
	{.name = "pipe-bandwidth", .about = "through a pipe, in pieces of 64 KiB", .begin = open_pipe, .batch = drink, .end = close_both,
	 .bytes = PIECE},
	{.name = "unix-bandwidth", .about = "through an AF_UNIX stream, in pieces of 64 KiB", .begin = open_pair, .batch = drink,
	 .end = close_both, .bytes = PIECE},
	{.name = "memory-copy", .about = "memcpy of 32 MiB", .begin = take_memory, .batch = copies, .end = give_memory,
	 .bytes = MEMORY},
	{0},
};
