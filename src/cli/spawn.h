/*
 * Starts a server that outlives this program: in its own session, and not as a child of this program. The server reads
 * /dev/null, appends its output to a log file, and inherits no other file descriptor.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* The descriptor that the server gets as --ready-fd. The server writes a byte to this descriptor once it answers requests. */
#define SPAWN_READY_FD 3
#define SPAWN_READY_FD_STRING "3"

/*
 * Runs argv[0], a path, and waits until the server is ready. Returns -errno if the server could not be run or ended early
 * (`err` has the last line of its log). A server that takes longer than timeout_ms is killed. ret_pid may be NULL.
 */
int spawn_server(char *const argv[], const char *log_path, int timeout_ms, pid_t *ret_pid,
		 struct error *err);
