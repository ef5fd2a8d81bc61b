/*
 * Deletes unused ResourceClaimTemplates of the webhook (claim_reviews.h): no pod of the namespace names them, and none has
 * needed them for an hour. The webhook writes the time of each request on the template before the pod is stored, and the sweep
 * deletes only the version that it read, so a template that a pod is about to name stays. Existing claims need no template.
 * Call from the client's thread.
 */
#pragma once

#include <stdbool.h>

#include "kube/client/kube_client.h"
#include "kube/hami/annotations.h"

/* The time of the template's last request (RFC 3339), in steps of a quarter of an hour, so that few pods change it. */
#define TEMPLATE_REQUESTED KUBE_LIVE_DOMAIN "/asked-at"
#define TEMPLATE_REQUESTED_STEP_S 900
#define TEMPLATE_UNUSED_S 3600

struct template_sweep;

/* Starts regular sweeps. The client must outlive the result. `may_act`: whether this replica leads. NULL if memory runs out. */
struct template_sweep *template_sweep_start(struct kube_client *client, bool (*may_act)(void *data),
					    void *data);
struct template_sweep *template_sweep_stop(
	struct template_sweep *sweep); /* `sweep` may be NULL; returns NULL */
