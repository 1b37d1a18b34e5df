/* Creating processes: a fork alone, with another program, and through a shell. The other program
 * is this one, which then does nothing. */
#define _GNU_SOURCE
#include "micro.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void ended(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			fail("waitpid");
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		errno = 0;
		fail("the child ended with status %#x", status);
	}
}

static void forks(uint64_t reps)
{
	while (reps--) {
		pid_t pid = fork();
		if (pid < 0)
			fail("fork");
		if (!pid)
			_exit(0);
		ended(pid);
	}
}

static void become(char **words)
{
	pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid) {
		execve(words[0], words, environ);
		fail("execve of %s", words[0]);
	}
	ended(pid);
}

static void execs(uint64_t reps)
{
	char *words[] = {"/proc/self/exe", "nothing", NULL};
	while (reps--)
		become(words);
}

/* own returns the path of this program for a shell. In the shell, /proc/self/exe would be the
 * shell itself. */
static char *own(void)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	if (n < 0)
		fail("/proc/self/exe");
	path[n] = 0;
	return path;
}

static char *shell[40], script[5000];

static void make_script(void)
{
	int n = 0;
	for (; n < set.words; n++)
		shell[n] = set.shell[n];
	if (!n)
		shell[n++] = "/bin/sh";
	strcpy(script, "exec '");
	strcat(strcat(script, own()), "' nothing");
	shell[n++] = "-c";
	shell[n++] = script;
	shell[n] = NULL;
}

static void shells(uint64_t reps)
{
	while (reps--)
		become(shell);
}

const measurement process_all[] = {
	{.name = "fork-exit", .about = "fork, exit, wait", .batch = forks},
	{.name = "fork-execve", .about = "fork, execve of this program, exit, wait", .batch = execs},
	{.name = "fork-sh", .about = "fork, a shell that executes this program, exit, wait", .begin = make_script, .batch = shells},
	{0},
};
