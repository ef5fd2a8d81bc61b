/*
 * The node's part of HAMi's protocol with a GPU scheduler (setting kube_api): publishes this node's GPUs on its Node object,
 * tracks the node's pods, and answers the scheduler's handshake. With the DRA driver alone (kube_dra on, kube_plugin off)
 * there is only the API client and the watch of the Node object, for its uid. Nothing here blocks on the API server, and the
 * daemon works without it. Main thread only.
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

/* Checks the settings. Returns -EINVAL if one is invalid; `err` then says what would be right. Pure. */
int node_kube_check(const struct config *config, struct error *err);

/*
 * Starts the API client and the watches. Leaves *ret as it is if kube_api is off. Returns -errno if no API client can be made
 * (kubeconfig, libcurl). Does not wait for the server.
 */
int node_kube_start(struct node *node, struct node_kube **ret, struct error *err);

/*
 * Call before the daemon ends: removes our annotations, such as the list of GPUs, from the Node object, so that no more pods
 * are placed here. Returns false if there is nothing to remove or `kube` is NULL; else node_kube_withdrawal() tells when the
 * daemon may end.
 */
bool node_kube_withdraw(struct node_kube *kube);
enum kube_withdrawal {
	KUBE_WITHDRAWING, /* the API server has not answered yet */
	/* a pod is being bound to this node, or the kubelet has not called Allocate for a bound pod yet */
	KUBE_PODS_ON_WAY,
	KUBE_MAY_END,
};
enum kube_withdrawal node_kube_withdrawal(const struct node_kube *kube);

/* Stops the API client and the watches, and leaves the Node object as it is. NULL is allowed; returns NULL. */
struct node_kube *node_kube_stop(struct node_kube *kube);

/* Call when the cards, or the shares that ResourceClaims have, may have changed. Updates the Node object without a wait. */
void node_kube_refresh(struct node_kube *kube);

/* Call when claims were made or their containers became known: applies pods' annotations that change terms (live_terms.h). */
void node_kube_claims_changed(struct node_kube *kube);

const char *node_kube_name(const struct node_kube *kube);
struct kube_client *node_kube_client(struct node_kube *kube);
struct node_object *node_kube_object(struct node_kube *kube);
struct node_pods *node_kube_pods(struct node_kube *kube); /* NULL if only the DRA driver is on */
