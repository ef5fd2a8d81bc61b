/*
 * Finds the daemon for some hardware. This is the daemon of a given run directory; else the system's, unless ALLOT_RUN_DIR sets
 * another base; else the caller's own. No daemon is started.
 *
 * `hardware` is a name from paths_hardware(). All functions return 0, or -errno with one line in err.
 */
#pragma once

#include "base/error.h"
#include "base/paths.h"
#include "client/client.h"

/* run_dir may be NULL. -ENOENT if no daemon runs. The caller owns the client. */
int client_find(const char *hardware, const char *run_dir, struct client **ret_client,
		struct error *err);

/* Like client_find(), but only the system daemon: -ENOENT if it does not run, or if another daemon is selected. */
int client_find_system(const char *hardware, const char *run_dir, struct client **ret_client,
		       struct error *err);

/* Returns run_dir, or the caller's own run directory if NULL. Creates nothing. */
int client_own_run_dir(const char *hardware, const char *run_dir, char ret_dir[PATHS_MAX],
		       struct error *err);
