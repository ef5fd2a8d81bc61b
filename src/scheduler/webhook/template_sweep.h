/*
 * Deletes unused ResourceClaimTemplates that the webhook created (claim_reviews.h). A template is unused if no pod of its
 * namespace names it and no new pod has needed it for an hour. The webhook writes the time of each request on the template
 * before the pod is stored, and the sweep deletes only the version of the template that it has read. So a template that a pod
 * is about to name is kept. Claims do not need their template after creation. Call from the client's thread.
 */
#pragma once

#include <stdbool.h>

#include "kube/client/kube_client.h"
#include "kube/hami/annotations.h"

/*
 * This annotation has the time of the last request for the template (RFC 3339). The time is rounded to a quarter of an hour,
 * so that few pods change it.
 */
#define TEMPLATE_ASKED KUBE_LIVE_DOMAIN "/asked-at"
#define TEMPLATE_ASKED_STEP_S 900
#define TEMPLATE_UNUSED_S 3600

struct template_sweep;

/*
 * Starts sweeping in regular intervals. The client belongs to the caller, and must outlive the result. `may_act` returns whether
 * this replica is the leader. Returns NULL if memory runs out.
 */
struct template_sweep *template_sweep_start(struct kube_client *client, bool (*may_act)(void *data),
					    void *data);
struct template_sweep *template_sweep_stop(
	struct template_sweep *sweep); /* `sweep` may be NULL; returns NULL */
