/* Writes on nodes which of their cards are shut to opportunistic pods (cooldown.h), as soon as the model says so, and again until it is done. The client's thread. */
#pragma once

#include "kube/client/client.h"
#include "scheduler/model/model.h"

struct cooldown_notes;

/* Both are the caller's, and live longer. -ENOMEM. */
int cooldown_notes_new(struct kube_client *client, struct model *model, struct cooldown_notes **ret);
/* What is under way is left as it is. NULL is fine; returns NULL. */
struct cooldown_notes *cooldown_notes_free(struct cooldown_notes *notes);
/* To be called each second or so, by who leads. */
void cooldown_notes_write(struct cooldown_notes *notes);
