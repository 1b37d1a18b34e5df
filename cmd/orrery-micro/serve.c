/* The peer of network measurements. `orrery-micro serve` sends back what it receives, over UDP
 * and TCP on the same port. It is a single process for all clients. Measurements over loopback
 * run it as a child. */
#define _GNU_SOURCE
#include "micro.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 256 };

void address(const char *text, struct sockaddr_storage *to, socklen_t *size)
{
	char host[64];
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;
	if (n > 1 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	if (!colon || n == 0 || n >= sizeof host)
		usage("%s: not ADDR:PORT", text);
	memcpy(host, text, n);
	host[n] = 0;
	char *end;
	long port = strtol(colon + 1, &end, 10);
	if (*end || end == colon + 1 || port < 0 || port > 65535)
		usage("%s: not a port", colon + 1);
	struct sockaddr_in *four = (struct sockaddr_in *)to;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
	memset(to, 0, sizeof *to);
	if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons((uint16_t)port);
		*size = sizeof *four;
	} else if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons((uint16_t)port);
		*size = sizeof *six;
	} else
		usage("%s: not an IP address", host);
}

/* doors opens a TCP and a UDP socket on the same port. If the port is 0, the kernel chooses one. */
static void doors(struct sockaddr_storage *at, socklen_t size, int *tcp, int *udp)
{
	int yes = 1;
	*tcp = socket(at->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	*udp = socket(at->ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*tcp < 0 || *udp < 0)
		fail("socket");
	if (setsockopt(*tcp, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes))
		fail("SO_REUSEADDR");
	if (bind(*tcp, (struct sockaddr *)at, size) || listen(*tcp, 4096) || getsockname(*tcp, (struct sockaddr *)at, &size))
		fail("listening on TCP");
	if (bind(*udp, (struct sockaddr *)at, size))
		fail("listening on UDP");
}

/* again reports whether a socket error is temporary or concerns only one connection. */
static bool again(void)
{
	return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED || errno == ECONNREFUSED || errno == ENOBUFS;
}

static void answer_datagrams(int udp)
{
	char text[65536];
	struct sockaddr_storage from;
	for (;;) {
		socklen_t size = sizeof from;
		ssize_t n = recvfrom(udp, text, sizeof text, 0, (struct sockaddr *)&from, &size);
		if (n < 0 && again())
			return;
		if (n < 0)
			fail("recvfrom");
		if (sendto(udp, text, (size_t)n, 0, (struct sockaddr *)&from, size) < 0 && !again())
			fail("sendto");
	}
}

/* answer_stream reports whether the connection continues. A few bytes always fit into the buffer
 * of a peer that waits for them. */
static bool answer_stream(int fd)
{
	char text[4096];
	ssize_t n = recv(fd, text, sizeof text, MSG_DONTWAIT);
	if (n < 0 && again())
		return true;
	return n > 0 && send(fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) == n;
}

static void greet(int tcp, struct pollfd *at, int *n)
{
	int yes = 1;
	while (*n < MOST) {
		int fd = accept4(tcp, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && again())
			return;
		if (fd < 0)
			fail("accept");
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* the peer may be gone already */
		at[(*n)++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
}

static void __attribute__((noreturn)) answer(int tcp, int udp)
{
	struct pollfd at[MOST] = {{.fd = tcp, .events = POLLIN}, {.fd = udp, .events = POLLIN}};
	int n = 2;
	for (;;) {
		if (poll(at, (nfds_t)n, -1) < 0) {
			if (errno == EINTR)
				continue;
			fail("poll");
		}
		if (at[1].revents)
			answer_datagrams(udp);
		for (int i = 2; i < n; i++)
			if (at[i].revents && !answer_stream(at[i].fd)) {
				if (close(at[i].fd))
					fail("close");
				at[i--] = at[--n];
			}
		if (at[0].revents)
			greet(tcp, at, &n);
	}
}

void serve(const char *listen_at)
{
	struct sockaddr_storage at;
	socklen_t size;
	int tcp, udp;
	self = "serve";
	address(listen_at, &at, &size);
	doors(&at, size, &tcp, &udp);
	printf("{\"listening\":\"%s\"}\n", listen_at);
	if (fflush(stdout))
		fail("standard output");
	answer(tcp, udp);
}

static int local_tcp, local_udp;

static void answer_locally(void *unused)
{
	(void)unused;
	answer(local_tcp, local_udp);
}

pid_t serve_locally(struct sockaddr_storage *at, socklen_t *size)
{
	address("127.0.0.1:0", at, size);
	doors(at, *size, &local_tcp, &local_udp);
	pid_t pid = child(answer_locally, NULL);
	if (close(local_tcp) || close(local_udp))
		fail("close");
	return pid;
}
