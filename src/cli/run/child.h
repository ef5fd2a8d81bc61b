/*
 * The command that `allot run` runs: found as a shell would, started in the same process group,
 * waited for, signals passed on. Once it runs, the two look like one process to who started us.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/paths.h"

/* Exit statuses of `allot run`, beside the command's own. */
#define EXIT_OWN_FAILURE 125
#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND 127
#define EXIT_SIGNAL_OFFSET 128

/*
 * Looks a command up on PATH (or takes it as a path if it has a '/'), without running it. -ENOENT
 * when there is none, -EACCES (-EISDIR) when it may not be run.
 */
int child_find(const char *name, char ret_path[PATHS_MAX], struct error *err);

/* The exit status for child_find's and child_start's failures. */
int child_exit_status(int result);

struct child {
	pid_t pid;
	int signal_fd;        /* readable: call child_handle() */
	bool is_asked_to_end; /* set when a signal asks the command to end; the caller clears it */
};

/*
 * Blocks the signals that are to be passed on and starts path with argv and environment. The command
 * gets the signal mask and actions that we were given. -ENOENT, -EACCES, -ENOEXEC ... when it can't be
 * executed. Call once, from a program of one thread.
 */
int child_start(const char *path, char **argv, char **environment, struct child *ret_child,
		struct error *err);

/*
 * Passes pending signals on and looks whether the command has ended. True when it has: *ret_status
 * is then the exit status, as a shell gives it.
 */
bool child_handle(struct child *child, int *ret_status);
