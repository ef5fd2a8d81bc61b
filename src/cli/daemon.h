/*
 * Which daemon answers for some hardware, and starting a private one where none does.
 *
 * The system daemon comes first (unless ALLOT_RUN_DIR names another base), then the caller's own.
 * Two `allot run` at the same moment start one daemon: a lock in the run directory sees to it.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "client/client.h"

struct daemon_target {
	const char *sim_spec; /* NULL: the machine's real GPUs */
	const char *policy;   /* of a daemon that is started; NULL: its own default */
	const char *run_dir;  /* an explicit run directory; NULL: as base/paths.h says */
};

/* Connects to the daemon that answers. -ENOENT when none runs. The caller owns the client. */
int daemon_find(const struct daemon_target *target, struct client **ret_client, struct error *err);

/* The same, but starts a private daemon (and the simulated GPU, where asked for) if none runs. */
int daemon_get(const struct daemon_target *target, struct client **ret_client, struct error *err);

/*
 * Connects again to the daemon of a run directory that a client was connected to; starts it again
 * when it is a private one. -EAGAIN when the system daemon is not back yet.
 */
int daemon_return(const struct daemon_target *target, const char *run_dir,
		  struct client **ret_client, struct error *err);

/* True when some private simulated GPU's daemon answers; writes its directory's name, "sim-h200". */
bool daemon_find_simulated(char *ret_hardware, size_t size);
