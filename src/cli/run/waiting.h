/* Tells the user at a terminal, once, that `allot run --on-full wait` waits for memory. Polls the daemon until then. */
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

/* `tenant` is from a reply to `list`. Writes what it waits for, and its place in the queue. False if it does not wait. Pure. */
bool waiting_describe(const json_t *tenant, char *text, size_t size);
