/*
 * For a tenant with --sharing space: waits until the MPS server of its group is ready, and sets the environment that MPS needs.
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "client/client.h"
#include "cli/run/environment.h"

/*
 * Waits until the group's MPS server is ready. Does nothing if the tenant shares by time. `tenant` is the reply to `create`.
 * -EIO with the reason if the server could not start.
 */
int space_await(struct client *client, const json_t *tenant, struct error *err);

/* Sets the environment variables that the daemon's reply lists for the command. */
int space_environment(const json_t *tenant, struct environment *environment, struct error *err);
