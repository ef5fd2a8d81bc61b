/*
 * Allocate in HAMi's vocabulary (kube_vocabulary = hami). The ids that the kubelet picks do not say how much of which card a
 * container gets: the annotations of its pod do, written by the scheduler that bound the pod to this node. So a call waits until
 * the watch shows its pod (kube/hami/choice.h). Then it makes the container's claim, writes to the pod that the container has its
 * shares (daemon/kubelet/kube/binding.h), and is answered. If that cannot be done the kubelet gets an error, and the scheduler
 * finds bind-phase failed.
 *
 * The claim's key is "pod/<UID>/<container>". The claim ends when its pod has ended or is gone, and no process lives in it.
 * Main thread only.
 */
#pragma once

#include "base/clock.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/devices/pod_key.h"
#include "daemon/kubelet/endpoint/messages.h"

struct plugin;
struct annotated;

/* Precondition: the daemon has its Kubernetes API. -errno. */
int annotated_start(struct plugin *plugin, struct annotated **ret, struct error *err);
/* Precondition: the socket is closed, so that no call is under way. NULL is fine; returns NULL. */
struct annotated *annotated_stop(struct annotated *annotated);

/*
 * Takes the call over and ends it once it is decided. -EINVAL: the request has several containers, which no kubelet sends.
 * -ENOMEM. After an error the call is still the caller's.
 */
int annotated_allocate(struct annotated *annotated, struct grpc_call *call,
		       const struct message_request *request, struct error *err);

/* Does the claim belong to a pod's container by name (pod_key.h)? And does its pod, or another that holds its device, need it? */
bool annotated_made(const struct claim *claim);
enum claim_need annotated_need(const struct annotated *annotated, const struct claim *claim);
/* Ends the claims whose pods have ended. */
void annotated_sweep(struct annotated *annotated);
/*
 * Can a request that does not fit become one that fits soon? `begun_ns`: when the call began. Yes for ANNOTATED_ENDING_NS while a
 * claim has outlived its pod: its last process is about to end, or the kubelet may still list its devices. Yes for
 * ANNOTATED_LATE_NS in any case: the kubelet assigns devices again before the watch shows the end of the pod that had them.
 */
#define ANNOTATED_ENDING_NS (5 * NSEC_PER_SEC)
#define ANNOTATED_LATE_NS (2 * NSEC_PER_SEC)
bool annotated_may_fit_soon(const struct annotated *annotated, uint64_t begun_ns);

/*
 * Can the result `r` of a call that began at `begun_ns` change soon, because the watch of pods or of the node and its lock lags?
 * For 20 s while no pod is known to wait (-EAGAIN). For ANNOTATED_LATE_NS while several seem to wait or the lock belongs to a pod
 * that ends (-EBUSY), or the binding seems too old (-ETIMEDOUT).
 */
bool annotated_may_change(int r, uint64_t begun_ns);
