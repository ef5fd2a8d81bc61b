/*
 * Tells the user at a terminal, once, that `allot run --on-full wait` waits for memory. Polls the daemon until the tenant
 * waits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/client.h"

struct waiting {
	bool is_watched;
	uint64_t next_ns;
};

/* Initializes *w. Set is_watched only if the tenant may wait and stderr is a terminal. */
void waiting_begin(struct waiting *w, bool is_watched);

/* Returns the time until the next poll of the daemon, for poll(); -1 if the daemon is not polled. */
int waiting_timeout_ms(const struct waiting *w);

/* If a poll is due, asks the daemon whether tenant `id` waits. If the tenant waits, prints the message and ends the polling. */
void waiting_poll(struct waiting *w, struct client *client, const char *id);

/*
 * Writes the message for a tenant in the reply to `list`: "waiting for 4.0 GiB of GPU memory (place 2 ...)". False if the
 * tenant does not wait. Pure.
 */
bool waiting_describe(const json_t *tenant, char *text, size_t size);
