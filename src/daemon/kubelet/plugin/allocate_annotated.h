/*
 * Allocate in HAMi's vocabulary (kube_vocabulary = hami). The ids that the kubelet picks do not say how much of which card a
 * container gets. The pod's annotations do: the scheduler that bound the pod to this node wrote them. So a call waits until the
 * watch shows its pod (kube/hami/find_allocating.h). Then the call makes the container's claim, records in the pod that the
 * container has its shares (daemon/kubelet/kube/binding.h), and is answered. On failure the kubelet gets an error, and the pod
 * gets bind-phase failed for the scheduler.
 *
 * The claim's key is "pod/<UID>/<container>". The claim ends when its pod has ended or is gone, and no process lives in the
 * claim. Main thread only.
 */
#pragma once

#include "base/clock.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/devices/pod_key.h"
#include "daemon/kubelet/endpoint/messages.h"

struct plugin;
struct annotated;

/* Precondition: the daemon has its Kubernetes API. Returns 0 or -errno. */
int annotated_start(struct plugin *plugin, struct annotated **ret, struct error *err);
/* Precondition: the socket is closed, so that no call is under way. NULL is fine; returns NULL. */
struct annotated *annotated_stop(struct annotated *annotated);

/*
 * Takes over the call, and answers it once the container has its claim or cannot get one. Returns -EINVAL if the request has
 * several containers, which no kubelet sends. Returns -ENOMEM if out of memory. After an error the caller still owns the call.
 */
int annotated_allocate(struct annotated *annotated, struct grpc_call *call,
		       const struct message_request *request, struct error *err);

/*
 * annotated_made() returns true if the claim was made for a pod's container by name (pod_key.h). annotated_need() returns
 * whether the claim is still needed, by its pod or by another pod that holds the claim's device.
 */
bool annotated_made(const struct claim *claim);
enum claim_need annotated_need(const struct annotated *annotated, const struct claim *claim);
/* Releases the claims made for pods' containers that annotated_need() says are unwanted, and in which no process lives. */
void annotated_sweep(struct annotated *annotated);
/*
 * Returns true if a request that does not fit now may fit soon, so that its call should wait. `begun_ns` is when the call
 * began. For the call's first ANNOTATED_LATE_NS the result is always true: the kubelet reassigns devices before the watch shows
 * that their pod has ended. For its first ANNOTATED_ENDING_NS the result is true if a claim has outlived its pod: the claim's
 * last process may be about to end, or the kubelet may still list the claim's devices.
 */
#define ANNOTATED_ENDING_NS (5 * NSEC_PER_SEC)
#define ANNOTATED_LATE_NS (2 * NSEC_PER_SEC)
bool annotated_may_fit_soon(const struct annotated *annotated, uint64_t begun_ns);

/*
 * Returns true if the result `r` of a call that began at `begun_ns` may change soon, so that the call should wait. The watches
 * of the pods and of the node's lock may lag. True in the call's first 20 s if no pod is known to wait (-EAGAIN). True in its
 * first ANNOTATED_LATE_NS if several pods seem to wait or the lock belongs to a pod that ends (-EBUSY), or if the binding seems
 * too old (-ETIMEDOUT).
 */
bool annotated_may_change(int r, uint64_t begun_ns);
