/*
 * Writes to each node's annotation which of its cards are closed to opportunistic pods (cooldown.h). Writes as soon as the
 * model reports a change, and repeats failed writes. Call from the client's thread.
 */
#pragma once

#include "kube/client/kube_client.h"
#include "scheduler/model/model.h"

struct cooldown_notes;

/* Prepares for writing. The client and the model must outlive the result. Returns 0 or -ENOMEM. */
int cooldown_notes_new(struct kube_client *client, struct model *model, struct cooldown_notes **ret);
/* Abandons writes under way. `notes` may be NULL; returns NULL. */
struct cooldown_notes *cooldown_notes_free(struct cooldown_notes *notes);
/* Begins writing the annotations that the model reports as changed. Call about once a second while this replica leads. */
void cooldown_notes_write(struct cooldown_notes *notes);
