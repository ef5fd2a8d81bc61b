/*
 * Allocate in HAMi's vocabulary (kube_vocabulary = hami). Not the kubelet's ids but the pod's annotations, by the scheduler
 * that bound the pod, tell what a container gets. So a call waits until the watch shows its pod (kube/hami/find_allocating.h), makes
 * the container's claim, records that in the pod (daemon/kubelet/kube/binding.h), and is answered. On failure the kubelet
 * gets an error, and the pod gets bind-phase failed for the scheduler.
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

/* The daemon must have its Kubernetes API. Returns 0 or -errno. */
int annotated_start(struct plugin *plugin, struct annotated **ret, struct error *err);
/* Call after the socket is closed. NULL is allowed; returns NULL. */
struct annotated *annotated_stop(struct annotated *annotated);

/*
 * Takes over the call, and answers when the container has its claim or cannot get one. Returns -EINVAL for several
 * containers, which no kubelet sends, or -ENOMEM; the caller then still owns the call.
 */
int annotated_allocate(struct annotated *annotated, struct grpc_call *call,
		       const struct message_request *request, struct error *err);

/*
 * Whether the claim was made for a pod's container by name (pod_key.h); whether its pod, or another one that holds its
 * device, still needs it.
 */
bool annotated_is_own_claim(const struct claim *claim);
enum claim_need annotated_need(const struct annotated *annotated, const struct claim *claim);
/* Releases claims that annotated_need() calls unwanted and in which no process lives. */
void annotated_sweep(struct annotated *annotated);
/*
 * Returns true if a request that does not fit now may fit soon, so its call should wait: for ANNOTATED_LATE_NS after
 * begun_ns, because the kubelet reassigns devices before the watch shows that their pod ended; and for ANNOTATED_ENDING_NS
 * if a claim has outlived its pod, whose last process or listed devices may go soon.
 */
#define ANNOTATED_ENDING_NS (5 * NSEC_PER_SEC)
#define ANNOTATED_LATE_NS (2 * NSEC_PER_SEC)
bool annotated_may_fit_soon(const struct annotated *annotated, uint64_t begun_ns);

/*
 * Returns true if the result `r` may change soon, so the call should wait, since the watches may lag: for 20 s after
 * begun_ns if no pod is known to wait (-EAGAIN); for ANNOTATED_LATE_NS if several pods seem to wait or the lock is an
 * ending pod's (-EBUSY), or the binding seems too old (-ETIMEDOUT).
 */
bool annotated_may_change(int r, uint64_t begun_ns);
