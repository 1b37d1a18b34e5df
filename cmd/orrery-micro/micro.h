/* orrery-micro measures the cost of single operations of the kernel and the processor. It is
 * static and needs only a kernel, so that the same program runs everywhere. The measurements are
 * defined as in L. McVoy and C. Staelin, "lmbench: portable tools for performance analysis",
 * USENIX 1996. The program is Orrery's own, and its figures are not lmbench's. */
#ifndef MICRO_H
#define MICRO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* A measurement is one repeated operation. begin prepares it, batch runs it reps times, and end
 * cleans up. begin and end may be NULL. All three end the program if something fails. */
typedef struct {
	const char *name;
	const char *about;
	void (*begin)(void);
	void (*batch)(uint64_t reps);
	void (*end)(void);
	double bytes; /* moved by one repetition, or 0 if its time is the result */
	bool far;     /* it needs --peer */
} measurement;

/* A result has the batches of a measurement so far. */
typedef struct {
	double *each;  /* seconds per repetition, by batch */
	int n;         /* number of batches */
	uint64_t reps; /* in the last batch */
} result;

/* The settings of a run, from the command line. */
typedef struct {
	double seconds;               /* of the whole run */
	const char *only;             /* comma-separated names, or NULL for all */
	const char *dir;              /* work directory */
	char *shell[32];              /* the words that start a shell */
	int words;
	int pin;                      /* index of the allowed processor to run on (modulo their number), or -1 for any */
	struct sockaddr_storage peer; /* where `serve` runs */
	socklen_t peer_size;          /* 0 if there is none */
} settings;

extern settings set;
extern const char *self; /* the measurement under way, for messages */

extern const measurement call_all[], signal_all[], process_all[], pipe_all[], sum_all[], net_all[], flow_all[];

void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));  /* a measurement failed; prints errno, too */
void usage(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn)); /* the command line is wrong */

void measure(const measurement *m, result *r, double seconds); /* one pass */
void print(const measurement *m, result *r);        /* a line of JSON */
double now(void);                                   /* seconds of a clock that is never set */
void discard_batch(void);                           /* ignore the time of this batch */
void take_off(double seconds);                      /* subtract the overhead of the measurement from each repetition */

pid_t child(void (*work)(void *), void *what); /* a process that does not outlive this one */
void reap(pid_t pid);                          /* kill it and wait for it */
void full_read(int fd, void *to, size_t n);
void full_write(int fd, const void *from, size_t n);
void address(const char *text, struct sockaddr_storage *to, socklen_t *size); /* ADDR:PORT, [ADDR]:PORT */
void serve(const char *listen);
pid_t serve_locally(struct sockaddr_storage *at, socklen_t *size); /* serve in a child over loopback; returns its address in at */
void stay_on_one(void); /* run only on the processor of set.pin, or on the first */

#endif
