/* A request of four bytes and its answer, over UDP and TCP, and the establishment of a TCP
 * connection. Each is measured over loopback and to the peer. */
#define _GNU_SOURCE
#include "micro.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/time.h>
#include <unistd.h>

static struct sockaddr_storage at;
static socklen_t size;
static pid_t server;
static int fd;
static int in_a_row; /* consecutive batches that lost a datagram */

static void to_loopback(void) { server = serve_locally(&at, &size); }

static void to_peer(void)
{
	at = set.peer;
	size = set.peer_size;
	server = 0;
}

static void leave(void)
{
	if (server)
		reap(server);
}

static void open_udp(void)
{
	struct timeval patience = {.tv_usec = 200000};
	in_a_row = 0;
	if ((fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)) < 0)
		fail("socket");
	if (connect(fd, (struct sockaddr *)&at, size) || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience))
		fail("UDP socket");
}

static void open_tcp(void)
{
	int yes = 1;
	struct timeval patience = {.tv_sec = 2};
	if ((fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0)
		fail("socket");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes))
		fail("TCP socket");
	if (connect(fd, (struct sockaddr *)&at, size))
		fail("connect");
}

static void udp_loopback(void)
{
	to_loopback();
	open_udp();
}

static void udp_peer(void)
{
	to_peer();
	open_udp();
}

static void tcp_loopback(void)
{
	to_loopback();
	open_tcp();
}

static void tcp_peer(void)
{
	to_peer();
	open_tcp();
}

static void hang_up(void)
{
	if (close(fd))
		fail("close");
	leave();
}

/* A datagram may be lost. Then the batch does not count. A late answer is recognized by its
 * number. */
static void datagrams(uint64_t reps)
{
	static uint32_t number;
	while (reps--) {
		uint32_t got;
		number++;
		if (send(fd, &number, sizeof number, 0) != sizeof number)
			fail("send");
		do {
			ssize_t n = recv(fd, &got, sizeof got, 0);
			if (n < 0 && errno == EAGAIN) {
				if (++in_a_row > 10)
					fail("no answer by UDP from the other end");
				discard_batch();
				return;
			}
			if (n != sizeof got)
				fail("recv");
		} while (got != number);
	}
	in_a_row = 0;
}

static void words(uint64_t reps)
{
	uint32_t sent = 0, got;
	while (reps--) {
		sent++;
		full_write(fd, &sent, sizeof sent);
		full_read(fd, &got, sizeof got);
		if (got != sent) {
			errno = 0;
			fail("the other end does not send back what it is sent");
		}
	}
}

/* The connection is reset when it is closed. Otherwise each would stay in TIME_WAIT for a
 * minute, and ports would run out. */
static void connections(uint64_t reps)
{
	struct linger at_once = {.l_onoff = 1};
	while (reps--) {
		int one = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (one < 0)
			fail("socket");
		if (setsockopt(one, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once))
			fail("SO_LINGER");
		if (connect(one, (struct sockaddr *)&at, size))
			fail("connect");
		if (close(one))
			fail("close");
	}
}

const measurement net_all[] = {
	{.name = "udp-latency", .about = "a request and its answer by UDP over loopback", .begin = udp_loopback, .batch = datagrams, .end = hang_up},
	{.name = "tcp-latency", .about = "a request and its answer by TCP over loopback", .begin = tcp_loopback, .batch = words, .end = hang_up},
	{.name = "tcp-connect", .about = "socket, connect over loopback, close", .begin = to_loopback, .batch = connections, .end = leave},
	{.name = "far-udp-latency", .about = "a request to the peer and its answer by UDP", .begin = udp_peer, .batch = datagrams,
	 .end = hang_up, .far = true},
	{.name = "far-tcp-latency", .about = "a request to the peer and its answer by TCP", .begin = tcp_peer, .batch = words,
	 .end = hang_up, .far = true},
	{.name = "far-tcp-connect", .about = "socket, connect to the peer, close", .begin = to_peer, .batch = connections, .end = leave, .far = true},
	{0},
};
