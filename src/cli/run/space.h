/* A tenant that shares by space (--sharing): its command is started when the MPS of its group is there. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "client/client.h"
#include "cli/run/environment.h"

/*
 * Waits until the group's MPS can be used. `tenant`: the reply to create; of one that takes turns this is nothing. -EIO:
 * it could not be started, with the reason.
 */
int space_await(struct client *client, const json_t *tenant, struct error *err);

/* Sets what the reply says that the command's environment needs. */
int space_environment(const json_t *tenant, struct environment *environment, struct error *err);
