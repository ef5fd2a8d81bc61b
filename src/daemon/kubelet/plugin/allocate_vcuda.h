/*
 * Allocate with gpu-manager's two resources, cores and memory (kube_vocabulary = gpu-manager). For each container the kubelet
 * makes one call per resource, in any order. A call does not name its container, which is inferred from what pods request and
 * did not get yet (kube/gpu_manager/vcuda_choice.h). The call for cores makes the claim, with the memory that the container
 * requests, on the cards that a scheduler chose or else on the best ones. The call for memory gives nothing more. If its amount
 * is not the one that the container requests, it is refused and the claim undone.
 *
 * The claim's key names the container and the kubelet's first device (pod_key.h). If the kubelet's list later shows the device
 * at another container with the same amounts, the claim moves there (reconcile.h). The claim ends with its pod, as in
 * allocate_annotated.h. Main thread only.
 */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/endpoint/endpoint.h"
#include "daemon/kubelet/endpoint/messages.h"
#include "kube/gpu_manager/vcuda.h"

struct vcuda;

/* The Kubernetes API must be on (setting kube_api). Returns 0 or -errno. */
int vcuda_start(struct plugin *plugin, struct vcuda **ret, struct error *err);
/* Call after the sockets are closed. NULL is allowed; returns NULL. */
struct vcuda *vcuda_stop(struct vcuda *v);

/*
 * Takes over the call, for one container, and answers when the container has its claim or cannot get one. After an error the
 * caller still owns the call: -ENOMEM, or -EINVAL if devices are not ours.
 */
int vcuda_allocate(struct vcuda *v, struct grpc_call *call, enum endpoint_role role,
		   const struct message_request *request, struct error *err);

/*
 * Returns the cards that a call for `cores` cores would get now (bit i is card i); 0 if unknown. If the kubelet then picks
 * devices of these cards, its count of free devices per card is right, which matters when a card becomes unhealthy.
 */
uint64_t vcuda_cards(struct vcuda *v, unsigned cores);

/* Call when a kubelet has started. If the earlier kubelet made only one of a container's two calls, the other will not come. */
void vcuda_kubelet_started(struct vcuda *v);

struct vcuda_names vcuda_names(const struct vcuda *v);
/* Moves the claim to the container that holds its device by the kubelet's list. Returns 1 if moved, 0 if already there. */
int vcuda_attribute(struct vcuda *v, struct claim *claim, const struct kube_pod *pod,
		    size_t container, struct error *err);
