/*
 * Tells the user at a terminal, once, that the command of `allot run --on-full wait` waits for memory.
 * Otherwise the wait would be invisible. Polls the daemon until the tenant waits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/client.h"

struct waiting {
	bool is_watched;
	uint64_t next_ns; /* time of the next poll */
};

/* Prepares *w. Set is_watched only if the tenant may wait and stderr is a terminal. */
void waiting_begin(struct waiting *w, bool is_watched);

/* Returns the timeout for poll(), or -1 if the daemon is not polled. */
int waiting_timeout_ms(const struct waiting *w);

/* Polls the daemon about the tenant with this id, if a poll is due. */
void waiting_look(struct waiting *w, struct client *client, const char *id);

/*
 * Writes the message for a tenant of the reply to `list`: "waiting for 4.0 GiB of GPU memory (place 2 ...)".
 * Returns false if the tenant does not wait. Pure.
 */
bool waiting_describe(const json_t *tenant, char *text, size_t size);
