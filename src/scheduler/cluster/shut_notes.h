/* Writes on nodes which of their cards are shut to opportunistic pods (shut.h), as soon as the model says so, and again until it is done. The client's thread. */
#ifndef ALLOT_SCHEDULER_CLUSTER_SHUT_NOTES_H
#define ALLOT_SCHEDULER_CLUSTER_SHUT_NOTES_H

#include "kube/client/client.h"
#include "scheduler/model/model.h"

struct shut_notes;

/* Both are the caller's, and live longer. -ENOMEM. */
int shut_notes_new(struct kube_client *client, struct model *model, struct shut_notes **ret);
/* What is under way is left as it is. NULL is fine; returns NULL. */
struct shut_notes *shut_notes_free(struct shut_notes *notes);
/* To be called each second or so, by who leads. */
void shut_notes_write(struct shut_notes *notes);

#endif
