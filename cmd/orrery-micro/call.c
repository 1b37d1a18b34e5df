/* The cost of entering the kernel, and of simple work there. */
#define _GNU_SOURCE
#include "micro.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fd = -1;

static void syscalls(uint64_t reps)
{
	while (reps--)
		if (syscall(SYS_getppid) < 0)
			fail("getppid");
}

static void open_zero(void)
{
	if ((fd = open("/dev/zero", O_RDONLY | O_CLOEXEC)) < 0)
		fail("/dev/zero");
}

static void open_null(void)
{
	if ((fd = open("/dev/null", O_WRONLY | O_CLOEXEC)) < 0)
		fail("/dev/null");
}

static void shut(void)
{
	if (close(fd))
		fail("close");
}

static void reads(uint64_t reps)
{
	char c;
	while (reps--)
		if (read(fd, &c, 1) != 1)
			fail("read from /dev/zero");
}

static void writes(uint64_t reps)
{
	while (reps--)
		if (write(fd, "", 1) != 1)
			fail("write to /dev/null");
}

/* The file is in the work directory and named without a path, so the depth of that directory
 * makes no difference. */
static char file[32];

static void make_file(void)
{
	strcpy(file, "micro-XXXXXX");
	if ((fd = mkstemp(file)) < 0)
		fail("a file in the work directory");
	shut();
}

static void remove_file(void)
{
	if (unlink(file))
		fail("%s", file);
}

static void stats(uint64_t reps)
{
	struct stat s;
	while (reps--)
		if (stat(file, &s))
			fail("stat");
}

static void opens(uint64_t reps)
{
	while (reps--) {
		int f = open(file, O_RDONLY);
		if (f < 0 || close(f))
			fail("open and close");
	}
}

enum { FDS = 500 };
static int fds[FDS], highest;

/* connected creates the two ends of a TCP connection over loopback. */
static void connected(int door, const struct sockaddr_in *at, int *one, int *other)
{
	if ((*one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0)
		fail("socket");
	if (connect(*one, (const struct sockaddr *)at, sizeof *at))
		fail("connect over loopback");
	if ((*other = accept4(door, NULL, NULL, SOCK_CLOEXEC)) < 0)
		fail("accept");
}

static void make_fds(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		fail("getrlimit");
	if (limit.rlim_cur < FDS + 50) {
		limit.rlim_cur = FDS + 50;
		if (setrlimit(RLIMIT_NOFILE, &limit))
			fail("a limit of %d open files", FDS + 50);
	}
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof at;
	int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (door < 0 || bind(door, (struct sockaddr *)&at, sizeof at) || listen(door, 8) || getsockname(door, (struct sockaddr *)&at, &size))
		fail("listen on loopback");
	for (int i = 0; i < FDS; i += 2)
		connected(door, &at, &fds[i], &fds[i + 1]);
	for (int i = 0; i < FDS; i++)
		highest = fds[i] > highest ? fds[i] : highest;
	if (close(door))
		fail("close");
	if (highest >= FD_SETSIZE) {
		errno = EMFILE;
		fail("select");
	}
}

static void close_fds(void)
{
	struct linger at_once = {.l_onoff = 1}; /* leave no connections in TIME_WAIT */
	for (int i = 0; i < FDS; i++)
		if (setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) || close(fds[i]))
			fail("close");
}

static void selects(uint64_t reps)
{
	fd_set all, some;
	FD_ZERO(&all);
	for (int i = 0; i < FDS; i++)
		FD_SET(fds[i], &all);
	while (reps--) {
		struct timeval none = {0};
		some = all;
		if (select(highest + 1, &some, NULL, NULL, &none) != 0)
			fail("select: a connection is readable");
	}
}

const measurement call_all[] = {
	{.name = "syscall", .about = "getppid, called by syscall(2)", .batch = syscalls},
	{.name = "read", .about = "read of a byte from /dev/zero", .begin = open_zero, .batch = reads, .end = shut},
	{.name = "write", .about = "write of a byte to /dev/null", .begin = open_null, .batch = writes, .end = shut},
	{.name = "stat", .about = "stat of a file in the work directory", .begin = make_file, .batch = stats, .end = remove_file},
	{.name = "open-close", .about = "open and close of that file", .begin = make_file, .batch = opens, .end = remove_file},
	{.name = "select-500-tcp", .about = "select on 500 TCP sockets, none of them ready", .begin = make_fds, .batch = selects, .end = close_fds},
	{0},
};
