/*
 * Runs nvidia-cuda-mps-control as another user, without a shell: as the control daemon of a group, and as the tool that
 * asks one. Main thread of the daemon only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/paths.h"

#define MPS_PROGRAM "nvidia-cuda-mps-control"

/*
 * The program's absolute path: the simulated one of this installation, or the first on PATH or in /usr/bin. -ENOENT, with
 * what to do.
 */
int mps_find_program(bool is_simulated, char ret_path[PATHS_MAX], struct error *err);

struct mps_spawn {
	const char *program;
	const char *argument; /* "-f"; NULL: none */
	const char *pipe_dir, *log_dir;
	const char *device;     /* UUID of the one card it sees; NULL: of no matter */
	const char *sim_socket; /* "": not simulated */
	uid_t uid;              /* whose it is: ours, or as root anybody's */
	int in_fd, out_fd;      /* its stdin, and both its stdout and stderr; stay the caller's */
	/*
	 * In a session of its own and no child of ours, so that it outlives us and leaves no zombie; else a child that
	 * the caller waits for.
	 */
	bool is_detached;
};

/* Its pid, or -errno. That it can't be run is seen by its end alone (exit status 127). */
pid_t mps_spawn(const struct mps_spawn *spawn, struct error *err);
