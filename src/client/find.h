/*
 * Finds the running daemon for some hardware, whose name is from paths_hardware(). If run_dir is given, only the daemon of that
 * directory counts. Otherwise two daemons are tried: first the system's daemon, unless ALLOT_RUN_DIR is set; then the daemon in
 * the user's own run directory (base/paths.h). No daemon is started.
 */
#pragma once

#include "base/error.h"
#include "base/paths.h"
#include "client/client.h"

/* Connects to the first running daemon in the order given above. -ENOENT if none runs. The caller owns the client. */
int client_find(const char *hardware, const char *run_dir, struct client **ret_client,
		struct error *err);

/* Tries only the system's daemon. -ENOENT if it does not run, or if run_dir or ALLOT_RUN_DIR selects another daemon. */
int client_find_system(const char *hardware, const char *run_dir, struct client **ret_client,
		       struct error *err);

/* Returns run_dir, or the caller's own run directory if run_dir is NULL. Creates nothing. */
int client_own_run_dir(const char *hardware, const char *run_dir, char ret_dir[PATHS_MAX],
		       struct error *err);
