/* Error messages: one line on standard error, and status 1, or 2 for a wrong command line. */
#include "micro.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *self = "start";

void fail(const char *format, ...)
{
	int why = errno;
	va_list list;
	fprintf(stderr, "orrery-micro: %s: ", self);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	if (why)
		fprintf(stderr, ": %s", strerror(why));
	fputc('\n', stderr);
	fflush(stdout);
	_Exit(1);
}

void usage(const char *format, ...)
{
	va_list list;
	fputs("orrery-micro: ", stderr);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputs("\nusage: orrery-micro run [--only NAME,…] [--time SECONDS] [--dir DIR] [--peer ADDR:PORT] [--pin N] [--shell WORD]…\n"
	      "       orrery-micro list\n"
	      "       orrery-micro serve --listen ADDR:PORT\n", stderr);
	_Exit(2);
}
