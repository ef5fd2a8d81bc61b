/*
 * Compares three sources of which container holds which devices: the kubelet's list (pod_resources.h), the pods' annotations,
 * and our claims. Each container is compared by itself, after each new answer of the kubelet. One answer may be taken in the
 * middle of an allocation, so a difference counts only if two answers in a row show it. It is then logged once, as an error
 * that names both sides, and once more when it is over. Claims that no pod needs are released elsewhere (sync_loop.c,
 * allocate_annotated.h). Only one thing is corrected here: a claim of gpu-manager's vocabulary moves to the container that
 * holds the claim's device, if that container asked for the same amounts (allocate_vcuda.h). Main thread only.
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
	uint64_t now,
		ever; /* logged differences: those that exist now, and all since the daemon started */
	uint64_t reattributions; /* claims that moved to another container (allocate_vcuda.h) */
};

/* Returns NULL if out of memory. */
struct reconciler *reconcile_new(void);
struct reconciler *reconcile_free(struct reconciler *r); /* NULL is fine; returns NULL */
/* Makes the comparison. Does nothing if `r` is NULL, or if the kubelet's list was not read. */
void reconcile_run(struct reconciler *r, struct plugin *plugin);
struct reconcile_figures reconcile_figures(const struct reconciler *r);

/*
 * Checks one container whose ids are slices. Returns 0 if one claim has exactly these slices; *ret_claim is that claim. Returns
 * -EEXIST, naming both sides, if there is no such claim or if other claims have the slices.
 */
int reconcile_slices(const struct slices *slices, struct claims *claims,
		     const struct pod_holder *holder, struct claim **ret_claim, struct error *err);
/*
 * Checks one container whose ids are only counted: compares the pod's hami.io/vgpu-devices-allocated with the container's claim.
 * Results are as for reconcile_slices(), but *ret_claim is set also after an error if the container has a claim.
 */
int reconcile_shares(const struct kube_pod *pod, struct claims *claims,
		     const struct pod_holder *holder, struct claim **ret_claim, struct error *err);

/*
 * Checks one container that holds hundredths of cards' time: finds the claim that has the container's first device. Results are
 * as for reconcile_slices(), but *ret_claim is set also if the claim belongs to another container. *ret_container is the
 * holder's index in the pod.
 */
int reconcile_cores(const struct slices *slices, const struct vcuda_names *names,
		    const struct kube_pod *pod, struct claims *claims,
		    const struct pod_holder *holder, struct claim **ret_claim,
		    size_t *ret_container, struct error *err);
