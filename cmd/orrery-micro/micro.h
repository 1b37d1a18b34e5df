/* orrery-micro: what single operations of the kernel and the processor cost. It is static and needs nothing but a kernel, so that it is
 * the same program in every place. What is measured is defined as in L. McVoy and C. Staelin, "lmbench: portable tools for performance
 * analysis", USENIX 1996; the program is Orrery's own, and its figures are not lmbench's. */
#ifndef MICRO_H
#define MICRO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* A measurement is one operation that is repeated. begin makes what it needs, batch does it reps times, end takes that away; begin and end
 * may be NULL. All three end the program if something fails. */
typedef struct {
	const char *name;
	const char *about;
	void (*begin)(void);
	void (*batch)(uint64_t reps);
	void (*end)(void);
	double bytes; /* that one repetition moves; 0: what counts is its time */
	bool far;     /* it needs --peer */
} measurement;

/* A result is what the batches of a measurement gave so far. */
typedef struct {
	double *each;  /* seconds of a repetition, by batch */
	int n;         /* batches */
	uint64_t reps; /* in the last batch */
} result;

/* The settings of a run, as the command line gave them. */
typedef struct {
	double seconds;               /* of the whole run */
	const char *only;             /* names, with commas between; NULL: all */
	const char *dir;              /* work directory */
	char *shell[32];              /* the words that start a shell */
	int words;
	int pin;                      /* stay on that one of the processors that are allowed, counted from 0 and around; -1: on any */
	struct sockaddr_storage peer; /* where `serve` runs */
	socklen_t peer_size;          /* 0: there is none */
} settings;

extern settings set;
extern const char *self; /* the measurement under way, for messages */

extern const measurement call_all[], signal_all[], process_all[], pipe_all[], sum_all[], net_all[], flow_all[];

void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));  /* with errno: the work failed */
void usage(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn)); /* the command line is wrong */

void measure(const measurement *m, result *r, double seconds); /* one pass */
void print(const measurement *m, result *r);        /* a line of JSON */
double now(void);                                   /* seconds of a clock that nobody sets */
void discard_batch(void);                           /* what this batch took does not count */
void take_off(double seconds);                      /* from each repetition: the overhead of the measurement itself */

pid_t child(void (*work)(void *), void *what); /* a process that does not outlive this one */
void reap(pid_t pid);                          /* kill it, and wait for its end */
void full_read(int fd, void *to, size_t n);
void full_write(int fd, const void *from, size_t n);
void address(const char *text, struct sockaddr_storage *to, socklen_t *size); /* ADDR:PORT, [ADDR]:PORT */
void serve(const char *listen);
pid_t serve_locally(struct sockaddr_storage *at, socklen_t *size); /* the same in a child, over loopback: where */
void stay_on_one(void); /* processor: that of set.pin, or the first */

#endif
