/*
 * Compares the kubelet's list of device holders (pod_resources.h), the pods' annotations and our claims: they must agree which
 * container holds which devices. Runs for each container, after each answer of the kubelet. An answer may come in the middle of
 * an allocation, so a difference counts only if two answers in a row show it. The difference is logged once, with both sides,
 * and once more when it is over.
 *
 * Corrects only one kind of difference: a claim for gpu-manager's resources moves to the container that holds its device, if
 * that container requested the same amounts (allocate_vcuda.h). Unneeded claims are released elsewhere (sync_loop.c,
 * allocate_annotated.h). Main thread only.
 */
#pragma once

#include <stdint.h>

#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/devices/pod_resources.h"
#include "kube/gpu_manager/vcuda.h"
#include "kube/hami/pod.h"

struct plugin;
struct reconciler;

struct reconcile_figures {
	/* numbers of logged differences: of those that exist now, and of all since the daemon started */
	uint64_t now, ever;
	uint64_t reattributions; /* number of claims that moved to another container */
};

struct reconciler *reconcile_new(void);
struct reconciler *reconcile_free(struct reconciler *r); /* NULL is allowed; returns NULL */
/* Compares as the top of this file says. Does nothing if `r` is NULL or the kubelet's list is unknown. */
void reconcile_run(struct reconciler *r, struct plugin *plugin);
struct reconcile_figures reconcile_figures(const struct reconciler *r);

/*
 * Checks a container whose device ids are slices. Returns 0 and the claim that has exactly these slices. If there is none,
 * returns -EEXIST; err then says what the kubelet's list and allotd's claims have.
 */
int reconcile_slices(const struct slices *slices, struct claims *claims,
		     const struct pod_holder *holder, struct claim **ret_claim, struct error *err);
/*
 * Checks a container whose shares are in its pod's annotations (HAMi's vocabulary): compares the annotation
 * hami.io/vgpu-devices-allocated with the container's claim. Returns as reconcile_slices(), but sets *ret_claim also after an
 * error, if there is a claim.
 */
int reconcile_shares(const struct kube_pod *pod, struct claims *claims,
		     const struct pod_holder *holder, struct claim **ret_claim, struct error *err);

/*
 * Checks a container whose device ids are hundredths of cards' time: finds the claim whose key names one of these devices, and
 * compares the claim's amounts with the pod's request. Returns as reconcile_shares(), but the claim may be another container's.
 * *ret_container is the holder's index in the pod.
 */
int reconcile_cores(const struct slices *slices, const struct vcuda_names *names,
		    const struct kube_pod *pod, struct claims *claims,
		    const struct pod_holder *holder, struct claim **ret_claim,
		    size_t *ret_container, struct error *err);
