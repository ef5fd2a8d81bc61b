/*
 * Finds the daemon: the system's (unless ALLOT_RUN_DIR names another base directory), else the user's private daemon. Starts a
 * private daemon if none runs. A lock in the run directory keeps two `allot run` from starting two daemons.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/paths.h"
#include "client/client.h"

struct daemon_target {
	const char *sim_spec; /* simulated GPUs; NULL for the machine's real GPUs */
	/* policy of a daemon that is started here, such as "lease"; NULL for the daemon's default */
	const char *policy;
	const char *run_dir; /* named by the user; NULL for the default of base/paths.h */
};

/* Connects to the running daemon. Returns -ENOENT if none runs. The caller owns the client. */
int daemon_find(const struct daemon_target *target, struct client **ret_client, struct error *err);

/* Like daemon_find(), but starts a private daemon (and the simulated GPU, if requested) if none runs. */
int daemon_find_or_start(const struct daemon_target *target, struct client **ret_client,
			 struct error *err);

/*
 * Connects again to the daemon of a run directory after the connection broke. If that daemon was this user's private one and no
 * longer runs, starts a new one. Returns -EAGAIN if the system's daemon is not back yet.
 */
int daemon_reconnect(const struct daemon_target *target, const char *run_dir,
		     struct client **ret_client, struct error *err);

/* Returns true if a private daemon of a simulated GPU runs; writes its run directory. */
bool daemon_find_simulated(char ret_run_dir[PATHS_MAX]);
