/*
 * Finds the running daemon for some hardware. If run_dir is given, only the daemon of that directory counts. If run_dir is
 * NULL, two daemons are tried: first the system's daemon, unless ALLOT_RUN_DIR is set; then the daemon in the user's own run
 * directory (under $ALLOT_RUN_DIR if set; see base/paths.h). No daemon is started.
 *
 * `hardware` is a name from paths_hardware(). All functions return 0, or -errno with one line in err.
 */
#pragma once

#include "base/error.h"
#include "base/paths.h"
#include "client/client.h"

/*
 * Finds a running daemon, in the order that the start of this file gives, and connects to it. Returns -ENOENT if none runs.
 * The caller owns the client.
 */
int client_find(const char *hardware, const char *run_dir, struct client **ret_client,
		struct error *err);

/*
 * Like client_find(), but connects only to the system daemon: returns -ENOENT if the system daemon does not run, or if run_dir
 * or ALLOT_RUN_DIR selects another daemon.
 */
int client_find_system(const char *hardware, const char *run_dir, struct client **ret_client,
		       struct error *err);

/* Writes run_dir, or the caller's own run directory if run_dir is NULL, to ret_dir. Creates nothing. */
int client_own_run_dir(const char *hardware, const char *run_dir, char ret_dir[PATHS_MAX],
		       struct error *err);
