/*
 * Writes to each node's annotation which cards are closed to opportunistic pods (cooldown.h), when the model reports a change.
 * Repeats failed writes. Call from the client's thread.
 */
#pragma once

#include "kube/client/kube_client.h"
#include "scheduler/model/model.h"

struct cooldown_notes;

/* The client and the model must outlive the result. Returns 0 or -ENOMEM. */
int cooldown_notes_new(struct kube_client *client, struct model *model, struct cooldown_notes **ret);
/* Abandons writes under way. NULL is allowed; returns NULL. */
struct cooldown_notes *cooldown_notes_free(struct cooldown_notes *notes);
/* Begins the writes that the model asks for. Call about once a second while this replica leads. */
void cooldown_notes_write(struct cooldown_notes *notes);
