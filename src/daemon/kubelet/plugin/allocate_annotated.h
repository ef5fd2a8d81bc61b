/*
 * Allocate with HAMi's annotations (kube_vocabulary = hami). The scheduler writes into the pod's annotations what each
 * container gets; the device ids in the kubelet's Allocate call are only counted. So a call waits until the watch shows its
 * pod (kube/hami/find_allocating.h). Then it makes the container's claim, records that in the pod
 * (daemon/kubelet/kube/binding.h), and is answered. On failure the kubelet gets an error, and the pod gets bind-phase failed
 * for the scheduler.
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

/* The Kubernetes API must be on (setting kube_api). Returns 0 or -errno. */
int annotated_start(struct plugin *plugin, struct annotated **ret, struct error *err);
/* Call after the socket is closed. NULL is allowed; returns NULL. */
struct annotated *annotated_stop(struct annotated *annotated);

/*
 * Takes over the call, for one container, and answers when the container has its claim or cannot get one. After -ENOMEM the
 * caller still owns the call.
 */
int annotated_allocate(struct annotated *annotated, struct grpc_call *call,
		       const struct message_request *request, struct error *err);

/*
 * annotated_is_own_claim(): whether the claim's key names a pod's container (pod_key.h). annotated_need(): whether that pod, or
 * another pod that holds the claim's device, still needs the claim.
 */
bool annotated_is_own_claim(const struct claim *claim);
enum claim_need annotated_need(const struct annotated *annotated, const struct claim *claim);
/* Releases claims that annotated_need() calls unwanted and in which no process lives. */
void annotated_sweep(struct annotated *annotated);
/*
 * Returns true if a request that does not fit now may fit soon, so its call should wait. Always true until ANNOTATED_LATE_NS
 * after begun_ns: the kubelet may have reassigned devices before the watch shows that their earlier pod ended. From then until
 * ANNOTATED_ENDING_NS, true only if a claim has outlived its pod: the claim's last process may end soon.
 */
#define ANNOTATED_ENDING_NS (5 * NSEC_PER_SEC)
#define ANNOTATED_LATE_NS (2 * NSEC_PER_SEC)
bool annotated_may_fit_soon(const struct annotated *annotated, uint64_t begun_ns);

/* Returns -EAGAIN if the pods were not read from the API server yet. */
int annotated_check_pods(const struct annotated *annotated, struct error *err);
#define ANNOTATED_LOOK_NS (50 * NSEC_PER_MSEC) /* poll interval while a call waits for its pod */
/*
 * Returns true if the call should wait, because its pod could not be chosen (result `r`) but the watches may lag. Waits at most
 * 20 s after begun_ns for -EAGAIN (no pod is known to wait). Waits at most ANNOTATED_LATE_NS for -EBUSY (several pods seem to
 * wait, or an ending pod holds the node's lock) and for -ETIMEDOUT (the binding seems too old).
 */
bool annotated_may_change(int r, uint64_t begun_ns);
