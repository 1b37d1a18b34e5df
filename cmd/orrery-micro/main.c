/* The command line: which measurements to run, and for how long. */
#define _GNU_SOURCE
#include "micro.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

settings set = {.seconds = 2, .pin = -1};

static const measurement *const groups[] = {call_all, signal_all, process_all, pipe_all, sum_all, net_all, flow_all};
enum { GROUPS = sizeof groups / sizeof groups[0] };

/* listed reports whether a comma-separated list contains a name. */
static bool listed(const char *list, const char *name)
{
	size_t n = strlen(name);
	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, name, n) && (at[n] == ',' || !at[n]))
			return true;
	}
	return false;
}

static bool wanted(const measurement *m)
{
	if (set.only)
		return listed(set.only, m->name);
	return !m->far || set.peer_size;
}

static bool known(const char *name)
{
	for (int g = 0; g < GROUPS; g++)
		for (const measurement *m = groups[g]; m->name; m++)
			if (!strcmp(m->name, name))
				return true;
	return false;
}

static void check_names(void)
{
	char *all = strdup(set.only ? set.only : "");
	if (!all)
		fail("memory");
	for (char *name = strtok(all, ","); name; name = strtok(NULL, ","))
		if (!known(name))
			usage("there is no measurement %s: see orrery-micro list", name);
	free(all);
}

enum { MOST = 64, PASSES = 3 };
static const measurement *chosen[MOST];
static int number; /* of chosen measurements */

static void choose(void)
{
	for (int g = 0; g < GROUPS; g++)
		for (const measurement *m = groups[g]; m->name; m++) {
			if (!wanted(m))
				continue;
			if (m->far && !set.peer_size)
				usage("%s needs --peer", m->name);
			if (number == MOST)
				usage("too many measurements");
			chosen[number++] = m;
		}
	if (!number)
		usage("nothing to measure");
}

static void run(void)
{
	static result results[MOST];
	check_names();
	choose();
	if (set.dir && chdir(set.dir))
		fail("%s", set.dir);
	if (set.pin >= 0)
		stay_on_one();
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		fail("signal");
	for (int pass = 0; pass < PASSES; pass++)
		for (int i = 0; i < number; i++)
			measure(chosen[i], &results[i], set.seconds / number / PASSES);
	for (int i = 0; i < number; i++)
		print(chosen[i], &results[i]);
}

static void list(void)
{
	for (int g = 0; g < GROUPS; g++)
		for (const measurement *m = groups[g]; m->name; m++)
			printf("%-18s %-4s %s\n", m->name, m->bytes > 0 ? "B/s" : "s", m->about);
}

static const char *value(char **words, int *i)
{
	if (!words[*i + 1])
		usage("%s needs a value", words[*i]);
	return words[++*i];
}

static double seconds(const char *text)
{
	char *end;
	double s = strtod(text, &end);
	if (end == text || *end || !(s > 0 && s <= 3600))
		usage("--time %s: not a number of seconds from 0 to 3600", text);
	return s;
}

static int whole(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);
	if (end == text || *end || n < 0 || n > 1 << 20)
		usage("--pin %s: not the number of a processor", text);
	return (int)n;
}

static void add_word(const char *word)
{
	if (set.words == sizeof set.shell / sizeof set.shell[0])
		usage("--shell: too many words");
	set.shell[set.words++] = (char *)word;
}

static const char *options(char **words)
{
	const char *listen = NULL;
	for (int i = 2; words[i]; i++) {
		const char *o = words[i];
		if (!strcmp(o, "--only"))
			set.only = value(words, &i);
		else if (!strcmp(o, "--time"))
			set.seconds = seconds(value(words, &i));
		else if (!strcmp(o, "--dir"))
			set.dir = value(words, &i);
		else if (!strcmp(o, "--peer"))
			address(value(words, &i), &set.peer, &set.peer_size);
		else if (!strcmp(o, "--shell"))
			add_word(value(words, &i));
		else if (!strcmp(o, "--pin"))
			set.pin = whole(value(words, &i));
		else if (!strcmp(o, "--listen"))
			listen = value(words, &i);
		else
			usage("%s: no such option", o);
	}
	return listen;
}

int main(int n, char **words)
{
	if (n < 2)
		usage("run, list or serve?");
	if (!strcmp(words[1], "nothing")) /* the program that fork-execve and fork-sh execute */
		return 0;
	const char *listen = options(words);
	if (!strcmp(words[1], "list"))
		list();
	else if (!strcmp(words[1], "run"))
		run();
	else if (!strcmp(words[1], "serve") && listen)
		serve(listen);
	else
		usage(!strcmp(words[1], "serve") ? "serve needs --listen" : "%s: no such command", words[1]);
	return 0;
}
