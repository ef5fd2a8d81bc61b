/*
 * Allocate in HAMi's vocabulary (kube_vocabulary = hami): how much a container gets of which card does not stand in
 * the ids that the kubelet picks, but in the annotations of the pod that a scheduler has bound to this node. So a call
 * waits until the watch shows its pod (kube/hami/choice.h), makes the container's claim, writes to the pod that it has
 * its shares (daemon/kubelet/kube/binding.h), and is answered then. What can't be given is told to the kubelet and, as bind-phase
 * failed, to the scheduler.
 *
 * The claim's key is "pod/<UID>/<container>". It ends when its pod has, or is gone, and no process lives in it.
 * Main thread only.
 */
#pragma once

#include "base/clock.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/devices/pod_key.h"
#include "daemon/kubelet/endpoint/messages.h"

struct plugin;
struct bound;

/* The daemon has its Kubernetes API. -errno. */
int bound_start(struct plugin *plugin, struct bound **ret, struct error *err);
/* After the socket is closed: no call may be under way. NULL is fine; returns NULL. */
struct bound *bound_stop(struct bound *bound);

/*
 * Takes the call over, and ends it when it is decided. -EINVAL: a request of several containers, which no kubelet
 * makes; -ENOMEM: and the call is the caller's.
 */
int bound_allocate(struct bound *bound, struct grpc_call *call,
		   const struct message_request *request, struct error *err);

/* Is it a claim of a pod's container by name (pod_key.h), and does its pod need it, or who has its device? */
bool bound_made(const struct claim *claim);
enum claim_need bound_need(const struct bound *bound, const struct claim *claim);
/* Ends the claims whose pods have ended. */
void bound_sweep(struct bound *bound);
/*
 * May what does not fit soon do so? For BOUND_ENDING_NS from `begun_ns` on, the call's begin, if a claim has outlived its pod:
 * the last of its processes dies just now, or it is not known yet that the kubelet's books are rid of it. For BOUND_LATE_NS in
 * any case: the kubelet gives devices again before the watch tells of the end of the pod that had them.
 */
#define BOUND_ENDING_NS (5 * NSEC_PER_SEC)
#define BOUND_LATE_NS (2 * NSEC_PER_SEC)
bool bound_may_fit_soon(const struct bound *bound, uint64_t begun_ns);

/*
 * May a call that began at `begun_ns`, and was answered with `r`, be answered otherwise soon? The watch of pods may be behind,
 * and that of the node with its lock: for 20 s where no pod is known to wait (-EAGAIN), for BOUND_LATE_NS where several seem
 * to, or the lock is of a pod that ends (-EBUSY), or the binding seems too old (-ETIMEDOUT).
 */
bool bound_may_change(int r, uint64_t begun_ns);
