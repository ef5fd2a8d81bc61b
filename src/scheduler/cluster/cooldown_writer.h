/*
 * Writes the node annotation that lists GPUs in cooldown, which opportunistic pods may not use for a while (cooldown.h).
 * Repeats failed writes. Call from the client's thread.
 */
#pragma once

#include "kube/client/kube_client.h"
#include "scheduler/model/model.h"

struct cooldown_writer;

/* The client and the model must outlive the result. Returns 0 or -ENOMEM. */
int cooldown_writer_new(struct kube_client *client, struct model *model,
			struct cooldown_writer **ret);
/* Abandons writes under way. NULL is allowed; returns NULL. */
struct cooldown_writer *cooldown_writer_free(struct cooldown_writer *writer);
/* Begins the writes that the model asks for. Call about once a second while this replica leads. */
void cooldown_writer_run(struct cooldown_writer *writer);
