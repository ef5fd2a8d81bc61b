/*
 * Removes the ResourceClaimTemplates that the webhook made (claim_reviews.h) and that nothing uses any more: no pod of the
 * namespace names it, and none has asked for the same for an hour. Each pod that asks writes the time on its template before it is
 * stored, and a template is deleted in the version that was seen alone: so one that a pod is about to name stays. Claims that were
 * made of a template do not need it. The client's thread.
 */
#pragma once

#include <stdbool.h>

#include "kube/client/client.h"
#include "kube/hami/annotations.h"

/* On a template, as RFC 3339 has it: when a pod asked for it last, to a quarter of an hour, so that few pods change it. */
#define TEMPLATE_ASKED KUBE_LIVE_DOMAIN "/asked-at"
#define TEMPLATE_ASKED_STEP_S 900
#define TEMPLATE_UNUSED_S 3600

struct template_sweep;

/* The client stays the caller's. `may_act`: whether it is this replica's to do. NULL: no memory. */
struct template_sweep *template_sweep_start(struct kube_client *client, bool (*may_act)(void *data),
					    void *data);
struct template_sweep *template_sweep_stop(struct template_sweep *sweep); /* NULL is fine; returns NULL */
