/* Pauses or resumes a tenant or a container, and waits for the outcome. */
#pragma once

#include <stdbool.h>

#include "client/client.h"

struct client_pause_options {
	bool swap_out;
	bool no_wait; /* return once the daemon has accepted the request */
	/* May be NULL. Called with each reply, from the first to the last. Returns false to stop waiting. */
	bool (*watch)(void *data, const json_t *reply);
	void *data;
};

/*
 * `op` is "pause" or "resume" (docs/reference/protocol.md). If the daemon moves memory for the request, waits until the move is
 * over, unless options->no_wait. The daemon continues the move even if the caller ends. Returns 0, or the daemon's error;
 * -ESRCH if the target ended meanwhile; -EINTR if `watch` stopped the wait.
 */
int client_pause(struct client *client, const char *op, const char *name,
		 const struct client_pause_options *options, struct error *err);
