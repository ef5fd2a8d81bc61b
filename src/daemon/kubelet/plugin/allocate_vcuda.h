/*
 * Allocate in gpu-manager's vocabulary (kube_vocabulary = gpu-manager). Cores and memory are two resources, and the kubelet
 * makes a separate call for each, in any order. The container of a call is found from what pods ask for and have not been given
 * yet (kube/gpu_manager/vcuda_choice.h). The call for cores makes the claim, with the memory that the pod asks for. It uses the
 * cards that the pod's scheduler has chosen or, without such a choice, the best cards that have room. The call for memory gives
 * the container nothing more. It must ask for the amount that the pod asks for, or it is refused and the claim undone.
 *
 * The claim's key names the container and the first device that the kubelet picked (pod_key.h). If the kubelet's list later
 * shows that another container with the same amounts holds the device, the claim moves to that container (reconcile.h). The
 * claim ends with its pod, as in allocate_annotated.h. Main thread only.
 */
#pragma once

#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/endpoint/endpoint.h"
#include "daemon/kubelet/endpoint/messages.h"
#include "kube/gpu_manager/vcuda.h"

struct vcuda;

/* Precondition: the daemon has its Kubernetes API. Returns 0 or -errno. */
int vcuda_start(struct plugin *plugin, struct vcuda **ret, struct error *err);
/* Precondition: the sockets are closed. NULL is fine; returns NULL. */
struct vcuda *vcuda_stop(struct vcuda *v);

/*
 * Takes over the call, and answers it once the container has its claim or cannot get one. Returns -EINVAL if devices are not
 * ours, or the request has several containers. Returns -ENOMEM if out of memory. After an error the caller still owns the call.
 */
int vcuda_allocate(struct vcuda *v, struct grpc_call *call, enum endpoint_role role,
		   const struct message_request *request, struct error *err);

/*
 * Returns the cards that a call for `cores` cores would get now (bit i is card i); 0 if unknown. The caller tells the kubelet
 * to prefer devices of these cards, so that the kubelet counts each card's devices rightly when a card becomes unhealthy.
 */
uint64_t vcuda_cards(struct vcuda *v, unsigned cores);

/*
 * To be called when a kubelet has started. If the previous kubelet made only one of a container's two calls, the other is no
 * longer expected.
 */
void vcuda_kubelet_came(struct vcuda *v);

struct vcuda_names vcuda_names(const struct vcuda *v);
/*
 * Moves the claim to this container, which holds it according to the kubelet. Returns 1 if the claim was moved, 0 if it was
 * this container's already, or -errno.
 */
int vcuda_attribute(struct vcuda *v, struct claim *claim, const struct kube_pod *pod,
		    size_t container, struct error *err);
