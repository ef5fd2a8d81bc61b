/*
 * Which daemon answers for some hardware: a run directory's where one is named; else the system's (unless
 * ALLOT_RUN_DIR names another base); else the caller's own. Nothing is started.
 *
 * `hardware` is a name by paths_hardware(). All return 0, or -errno with one line in err.
 */
#pragma once

#include "base/error.h"
#include "base/paths.h"
#include "client/client.h"

/* run_dir NULL: none is named. -ENOENT when no daemon runs. The caller owns the client. */
int client_find(const char *hardware, const char *run_dir, struct client **ret_client,
		struct error *err);

/* Of client_find() the system daemon alone: -ENOENT when there is none, or it is not meant. */
int client_find_system(const char *hardware, const char *run_dir, struct client **ret_client,
		       struct error *err);

/* run_dir, or else the caller's own run directory. Touches nothing. */
int client_own_run_dir(const char *hardware, const char *run_dir, char ret_dir[PATHS_MAX],
		       struct error *err);
