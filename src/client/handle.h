/* What the files of liballot-client share: its objects, and the way of a failure to its caller. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "client/allot-client.h"
#include "client/client.h"

/* All that the library exports; the rest is hidden. Also in liballot-client.map. */
#define ALLOT_PUBLIC __attribute__((visibility("default")))

struct allot_client {
	struct client *connection;
	char *daemon;
	char *warnings; /* NULL: none */
};

/* The request's members that change something. */
struct allot_change {
	json_t *members;
};

/* Hands an error on to the caller, who may not want it; returns `result`. */
int handle_fail(int result, const struct error *from, struct allot_error *err);

/* The request "set" of a tenant; NULL: no memory. The caller owns it. */
json_t *change_to_request(const struct allot_change *change, const char *tenant);

/* The list's own, from a reply and its text, which it takes over, also when it fails: NULL, no memory. */
struct allot_list *list_new(json_t *reply);
