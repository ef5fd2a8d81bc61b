/*
 * The cost of the library to a process that uses no GPU: /bin/true started and waited for, by turns with the
 * LD_PRELOAD that this program has itself, and without.
 *
 *     start-cost [--pairs N]     1,000 unless said
 */
#include "by_turns.h"
#include "load/clock.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIABLES_MAX 1024

static char *bare[VARIABLES_MAX]; /* the environment without LD_PRELOAD */

static int make_bare(void)
{
	size_t n = 0;
	for (char **v = environ; *v != NULL; v++) {
		if (strncmp(*v, "LD_PRELOAD=", 11) == 0)
			continue;
		if (n + 1 == VARIABLES_MAX)
			return -1;
		bare[n++] = *v;
	}
	return 0;
}

static double time_start(bool is_native, void *context)
{
	static char path[] = "/bin/true";
	char *const argv[] = { path, NULL };
	int status = -1;
	pid_t pid;

	uint64_t begin_ns = clock_now_ns();
	if (posix_spawn(&pid, path, NULL, NULL, argv, is_native ? bare : environ) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0) {
		fprintf(stderr, "start-cost: %s did not run\n", path);
		exit(1);
	}
	return (double)(clock_now_ns() - begin_ns);
}

int main(int argc, char **argv)
{
	unsigned pairs = 1000;
	if (argc == 3 && strcmp(argv[1], "--pairs") == 0)
		pairs = (unsigned)strtoul(argv[2], NULL, 10);
	else if (argc != 1)
		pairs = 0;
	if (getenv("LD_PRELOAD") == NULL) {
		fprintf(stderr, "start-cost: no LD_PRELOAD: both ways would be the same\n");
		return 1;
	}
	if (pairs < 1 || pairs > BY_TURNS_MAX_PAIRS || make_bare() < 0) {
		fprintf(stderr, "usage: start-cost [--pairs N], 1 to %d\n", BY_TURNS_MAX_PAIRS);
		return 2;
	}
	by_turns("start of a process", pairs, time_start, NULL);
	return 0;
}
