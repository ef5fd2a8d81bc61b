/*
 * Finds the daemon for some hardware: the daemon of run_dir, if given; otherwise the system's, unless ALLOT_RUN_DIR sets
 * another base directory; otherwise the caller's own. No daemon is started.
 *
 * `hardware` is a name from paths_hardware(). All functions return 0, or -errno with one line in err.
 */
#pragma once

#include "base/error.h"
#include "base/paths.h"
#include "client/client.h"

/* Connects to that daemon. run_dir may be NULL. Returns -ENOENT if no daemon runs. The caller owns the client. */
int client_find(const char *hardware, const char *run_dir, struct client **ret_client,
		struct error *err);

/*
 * Like client_find(), but connects only to the system daemon: returns -ENOENT if that does not run, or if run_dir or
 * ALLOT_RUN_DIR selects another.
 */
int client_find_system(const char *hardware, const char *run_dir, struct client **ret_client,
		       struct error *err);

/* Writes run_dir, or the caller's own run directory if run_dir is NULL, to ret_dir. Creates nothing. */
int client_own_run_dir(const char *hardware, const char *run_dir, char ret_dir[PATHS_MAX],
		       struct error *err);
