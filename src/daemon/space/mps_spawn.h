/*
 * Runs nvidia-cuda-mps-control as another user, without a shell: as control daemon, or to send commands to one. Main thread
 * only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/paths.h"

#define MPS_PROGRAM "nvidia-cuda-mps-control"

/*
 * Finds the program. For a simulated card, this is allot's own program; else the first on PATH or in the usual directories. If
 * there is none, returns -ENOENT, and err says what to do.
 */
int mps_find_program(bool is_simulated, char ret_path[PATHS_MAX], struct error *err);

struct mps_spawn {
	const char *program;
	const char *argument; /* "-f", or NULL for none */
	const char *pipe_dir, *log_dir;
	const char *device;     /* UUID of the only visible card; NULL: not set */
	const char *sim_socket; /* "": not simulated */
	uid_t uid;              /* user to run as: this daemon's; any user if the daemon is root */
	/* in_fd: the program's stdin; out_fd: its stdout and stderr; the caller keeps both open */
	int in_fd, out_fd;
	/* If true, the program may outlive this daemon and leaves no zombie. If false, the caller must wait for its end. */
	bool is_detached;
};

/* Starts the program. Returns its pid or -errno. Its exit status is 127 if it cannot be executed. */
pid_t mps_spawn(const struct mps_spawn *spawn, struct error *err);
