/* Pausing a tenant or a container, and letting it go on, until there is an outcome. */
#ifndef ALLOT_CLIENT_PAUSE_H
#define ALLOT_CLIENT_PAUSE_H

#include <stdbool.h>

#include "client/client.h"

/*
 * op: "pause" or "resume", as in docs/protocol.md. Where memory is checkpointed or comes back, this waits
 * until that is over, which takes as long as the bytes take; the move goes on in the daemon when the
 * caller ends meanwhile. 0, or the daemon's refusal.
 */
int client_pause(struct client *client, const char *op, const char *name, bool swap_out,
		 struct error *err);

#endif
