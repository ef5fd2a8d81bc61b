/* For --sharing space: waits until the MPS server of the tenant's group is ready, and sets the environment for MPS. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "client/client.h"
#include "cli/run/environment.h"

/* Returns 0 at once if the tenant shares by time; -EIO if the server could not start; -ETIMEDOUT after 90 s. */
int space_await(struct client *client, const json_t *tenant, struct error *err);

/* Sets the variables that `tenant`, the reply to `create`, lists for the command. */
int space_environment(const json_t *tenant, struct environment *environment, struct error *err);
