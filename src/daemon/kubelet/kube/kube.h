/*
 * The node half of HAMi's protocol, with the setting kube_api: what this node has stands on its Node object,
 * whoever changes it; its pods are known; a scheduler's handshake is answered. With the DRA driver alone (kube_dra on, kube_plugin
 * off) the client and the Node's identity are all that there is. Belongs to the main thread;
 * nothing here waits for the API server, and without it everything else goes on.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "kube/client/client.h"

struct node;
struct config;
struct node_kube;
struct node_object;
struct node_pods;

/* Checks what the settings' own rows can't. -EINVAL with what would be right. Pure. */
int node_kube_check(const struct config *config, struct error *err);

/* *ret is NULL where kube_api is off. Whether the server answers is found out later. -errno where it can't be
 * asked at all: the kubeconfig, libcurl. */
int node_kube_start(struct node *node, struct node_kube **ret, struct error *err);

/*
 * Before an end: what stands on the Node object is taken back, so that no pod is placed here any more. false: there is nothing,
 * or NULL. From then on node_kube_departure() says whether the daemon may end.
 */
bool node_kube_withdraw(struct node_kube *kube);
enum kube_departure {
	KUBE_WITHDRAWING, /* the API server has not answered yet */
	KUBE_PODS_ON_WAY, /* a scheduler is binding a pod to this node, or the kubelet has not asked for one that is bound */
	KUBE_MAY_END,
};
enum kube_departure node_kube_departure(const struct node_kube *kube);

/* What stands on the Node object stays there. NULL is fine; returns NULL. */
struct node_kube *node_kube_stop(struct node_kube *kube);

/* What the cards are, or what ResourceClaims have of them, may have changed: looked at now, not within 30 s. */
void node_kube_refresh(struct node_kube *kube);

/* Claims came, or it is known of more of them whose they are: pods' annotations may be meant for them. */
void node_kube_claims_changed(struct node_kube *kube);

const char *node_kube_name(const struct node_kube *kube); /* of the node */
struct kube_client *node_kube_client(struct node_kube *kube);
struct node_object *node_kube_object(struct node_kube *kube); /* node_object.h */
struct node_pods *node_kube_pods(
	struct node_kube *kube); /* pods.h; NULL where the DRA driver is there alone */
