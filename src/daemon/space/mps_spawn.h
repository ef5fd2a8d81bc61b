/*
 * Runs nvidia-cuda-mps-control as another user, without a shell: as a group's control daemon, or as
 * the tool that sends commands to one. Main thread of the daemon only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/paths.h"

#define MPS_PROGRAM "nvidia-cuda-mps-control"

/*
 * Finds the program's absolute path. For a simulated card: this installation's simulated program.
 * Otherwise the first on PATH or in /usr/bin. Returns -ENOENT with text on what to do.
 */
int mps_find_program(bool is_simulated, char ret_path[PATHS_MAX], struct error *err);

struct mps_spawn {
	const char *program;
	const char *argument; /* "-f", or NULL for none */
	const char *pipe_dir, *log_dir;
	const char *device;     /* UUID of the only visible card; NULL: not set */
	const char *sim_socket; /* "": not simulated */
	uid_t uid;              /* user to run as: this daemon's own or, if it is root, any */
	/* in_fd: its stdin; out_fd: its stdout and stderr; the caller keeps both descriptors */
	int in_fd, out_fd;
	/*
	 * If true, it runs in its own session and is not this daemon's child, so that it outlives
	 * the daemon and leaves no zombie. If false, it is a child, and the caller waits for its
	 * end.
	 */
	bool is_detached;
};

/*
 * Starts the program. Returns the pid or -errno. If the program cannot be executed, its process
 * ends with status 127.
 */
pid_t mps_spawn(const struct mps_spawn *spawn, struct error *err);
