/* The objects of liballot-client, and the functions that its files share. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "client/allot-client.h"
#include "client/client.h"

/* Exports a function; all others are hidden. Each exported function must also be listed in liballot-client.map. */
#define ALLOT_PUBLIC __attribute__((visibility("default")))

struct allot_client {
	struct client *connection;
	char *daemon;
	char *warnings;
};

/* `members` are the JSON members that the change adds to the request "set". */
struct allot_change {
	json_t *members;
};

/* Makes the request "set" for a tenant. The caller owns it. Returns NULL if out of memory. */
json_t *change_to_request(const struct allot_change *change, const char *tenant);

/* Makes a list from the reply to a request "list". Takes ownership of `reply`, also on failure. NULL if out of memory. */
struct allot_list *list_new(json_t *reply);
