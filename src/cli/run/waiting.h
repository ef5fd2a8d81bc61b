/*
 * Tells a person at a terminal, once, that the command of `allot run --on-full wait` waits for memory:
 * nothing of it would be seen otherwise. Looks at the tenant now and then until there is something to tell.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/client.h"

struct waiting {
	bool is_watched;
	uint64_t next_ns; /* of the next look */
};

/* Begins; to be watched only where the tenant waits and stderr is a terminal. */
void waiting_begin(struct waiting *w, bool is_watched);

/* How long poll() may sleep for it; -1: it need not wake. */
int waiting_timeout_ms(const struct waiting *w);

/* Looks, when that is due, at the tenant of that id. */
void waiting_look(struct waiting *w, struct client *client, const char *id);

/*
 * What there is to tell of a tenant, as `list` has it: "waits for 4.0 GiB of GPU memory (place 2 ...)". False:
 * it does not wait. Pure.
 */
bool waiting_describe(const json_t *tenant, char *text, size_t size);
