/* Pausing a tenant or a container, and letting it go on, until there is an outcome. */
#pragma once

#include <stdbool.h>

#include "client/client.h"

struct client_pause_options {
	bool swap_out;
	bool no_wait; /* return when the daemon has accepted the request, not when it is carried out */
	/* May be NULL. Gets each reply, the first and the last too; false: wait no longer. */
	bool (*watch)(void *data, const json_t *reply);
	void *data;
};

/*
 * op: "pause" or "resume", as in docs/reference/protocol.md. Where memory leaves, or comes back by checkpoint, this waits
 * until that is over, which takes as long as the bytes take; the move goes on in the daemon when the
 * caller ends meanwhile. 0, or the daemon's refusal; -ESRCH: it ended meanwhile; -EINTR: `watch` said false.
 */
int client_pause(struct client *client, const char *op, const char *name,
		 const struct client_pause_options *options, struct error *err);
