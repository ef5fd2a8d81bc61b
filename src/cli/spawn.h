/*
 * Starts a server that outlives this program: in a session of its own, not our child, standard input
 * from /dev/null, its output appended to a log file, no other file descriptor of ours.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* The descriptor number on which a server finds its --ready-fd: it writes there once it answers. */
#define SPAWN_READY_FD 3
#define SPAWN_READY_FD_STRING "3"

/*
 * Runs argv[0] (a path) and waits until it reports readiness. Returns 0; or -errno when it could not
 * be run, ended before that (then the text is the last line of its log), or took longer than
 * timeout_ms (it is killed). ret_pid may be NULL.
 */
int spawn_server(char *const argv[], const char *log_path, int timeout_ms, pid_t *ret_pid,
		 struct error *err);
