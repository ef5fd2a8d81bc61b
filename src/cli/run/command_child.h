/*
 * The command of `allot run`: finds it as a shell does, starts it in this program's process group, and waits for it. Signals to
 * this program are passed on to the command, so that the two processes look like one to this program's parent.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/paths.h"

/* Exit statuses of `allot run`, besides the command's own. */
#define EXIT_OWN_FAILURE 125
#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND 127
#define EXIT_SIGNAL_OFFSET 128

/* Looks a command up as a shell does. -ENOENT if it is not found; -EACCES, -EISDIR or -ENAMETOOLONG if it can't be run. */
int child_find(const char *name, char ret_path[PATHS_MAX], struct error *err);

/* Returns the exit status for a failure of child_find() or child_start(). */
int child_exit_status(int result);

struct child {
	pid_t pid;
	int signal_fd;        /* when readable, call child_handle() */
	bool is_asked_to_end; /* set when a signal asks the command to end; the caller clears it */
};

/*
 * Starts `path` with the signal mask and actions that this program inherited. Blocks the signals that are passed on in this
 * program only. Returns -ENOENT, -EACCES, -ENOEXEC or the like if `path` can't be executed. Call once, from a single-threaded
 * program.
 */
int child_start(const char *path, char **argv, char **environment, struct child *ret_child,
		struct error *err);

/* Passes pending signals on. Returns true if the command has ended; *ret_status is then its exit status as in a shell. */
bool child_handle(struct child *child, int *ret_status);
