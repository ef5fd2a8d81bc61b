/*
 * Deletes the webhook's ResourceClaimTemplates (claim_reviews.h) that no pod of the namespace names and no review has needed
 * for an hour. A review writes the time on the template before the pod is stored, and the sweep deletes a template only if it
 * is unchanged since the sweep read it. So a template that a new pod is about to name stays. Call from the client's thread.
 */
#pragma once

#include <stdbool.h>

#include "kube/client/kube_client.h"
#include "kube/hami/annotations.h"

/* Annotation: time of the template's last request (RFC 3339), rounded down, so that few reviews write a new value. */
#define TEMPLATE_REQUESTED KUBE_LIVE_DOMAIN "/asked-at"
#define TEMPLATE_REQUESTED_STEP_S 900
#define TEMPLATE_UNUSED_S 3600

struct template_sweep;

/* Sweeps begin only if may_act(data) says that this replica leads. The client must outlive the result. NULL: no memory. */
struct template_sweep *template_sweep_start(struct kube_client *client, bool (*may_act)(void *data),
					    void *data);
struct template_sweep *template_sweep_stop(
	struct template_sweep *sweep); /* `sweep` may be NULL; returns NULL */
