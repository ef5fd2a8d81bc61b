/*
 * The node's half of HAMi's protocol, enabled by the setting kube_api. It keeps this node's resources on its Node object even if
 * others change them, tracks the node's pods, and answers a scheduler's handshake. With the DRA driver alone (kube_dra on,
 * kube_plugin off) there is only the API client and the watch of the Node object, for its uid. No function here blocks on the API
 * server, and the rest of the daemon works without it. Main thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "kube/client/kube_client.h"

struct node;
struct config;
struct node_kube;
struct node_object;
struct node_pods;

/* Checks the settings that depend on each other. Returns -EINVAL, with what would be right, if they do not fit together. Pure. */
int node_kube_check(const struct config *config, struct error *err);

/*
 * Sets *ret to NULL if kube_api is off. Returns -errno if no API client can be made (kubeconfig, libcurl), but does not wait to
 * see whether the server answers.
 */
int node_kube_start(struct node *node, struct node_kube **ret, struct error *err);

/*
 * To be called before the daemon ends: removes what was published on the Node object, so that no more pods are placed here.
 * Returns false if nothing was published or `kube` is NULL. After true, node_kube_departure() says when the daemon may end.
 */
bool node_kube_withdraw(struct node_kube *kube);
enum kube_departure {
	KUBE_WITHDRAWING, /* the API server has not answered yet */
	KUBE_PODS_ON_WAY, /* a scheduler is binding a pod to this node, or the kubelet has not yet called for a bound pod */
	KUBE_MAY_END,
};
enum kube_departure node_kube_departure(const struct node_kube *kube);

/* Stops this half of the protocol. Leaves the Node object as it is. NULL is fine; returns NULL. */
struct node_kube *node_kube_stop(struct node_kube *kube);

/*
 * To be called when the cards, or the shares of ResourceClaims, may have changed. Updates the Node object now instead of within
 * 30 s.
 */
void node_kube_refresh(struct node_kube *kube);

/*
 * To be called when claims were made, or when it became known which containers hold claims. Applies to those claims the pods'
 * annotations that change terms (live_terms.h).
 */
void node_kube_claims_changed(struct node_kube *kube);

const char *node_kube_name(const struct node_kube *kube); /* name of the node */
struct kube_client *node_kube_client(struct node_kube *kube);
struct node_object *node_kube_object(struct node_kube *kube); /* see node_object.h */
struct node_pods *node_kube_pods(
	struct node_kube *kube); /* see pods.h; NULL if only the DRA driver is on */
