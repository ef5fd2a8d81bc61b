/*
 * Allocate in gpu-manager's vocabulary (kube_vocabulary = gpu-manager): cores and memory are two resources, and the kubelet
 * calls for each by itself, in any order. Which container a call is for is decided by what pods ask for and
 * has not been given yet (kube/gpu_manager/vcuda_choice.h). The call for cores makes the claim, with the memory that stands
 * in the pod, on the cards that its scheduler has chosen or, without one, on the best that have room; the call for memory
 * has to name just as much, or both are refused, and brings nothing else.
 *
 * The claim's key names the container, and the first device that the kubelet has picked (pod_key.h). Where the kubelet's books
 * say later that another container holds it, which had asked for the same, the claim becomes that one's (reconcile.h). It ends
 * with its pod, as in allocate_annotated.h. Main thread only.
 */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/endpoint/endpoint.h"
#include "daemon/kubelet/endpoint/messages.h"
#include "kube/gpu_manager/vcuda.h"

struct vcuda;

/* The daemon has its Kubernetes API. -errno. */
int vcuda_start(struct plugin *plugin, struct vcuda **ret, struct error *err);
/* After the sockets are closed. NULL is fine; returns NULL. */
struct vcuda *vcuda_stop(struct vcuda *v);

/*
 * Takes the call over, and ends it when it is decided. -EINVAL: devices that are not ours, or a request of several
 * containers; -ENOMEM: and the call is the caller's.
 */
int vcuda_allocate(struct vcuda *v, struct grpc_call *call, enum endpoint_role role,
		   const struct message_request *request, struct error *err);

/*
 * The cards that a call for so many cores would be given now: bit i, card i; 0: not known. So that the kubelet may pick
 * devices of just these, and counts rightly when one of them is not well.
 */
uint64_t vcuda_cards(struct vcuda *v, unsigned cores);

/* A kubelet has started: calls that another one left half done have no other half. */
void vcuda_kubelet_came(struct vcuda *v);

struct vcuda_names vcuda_names(const struct vcuda *v);
/* The claim is this container's, by the kubelet's books. 1: it was another's; 0: it is so already; -errno. */
int vcuda_attribute(struct vcuda *v, struct claim *claim, const struct kube_pod *pod,
		    size_t container, struct error *err);
