/*
 * Compares who holds which devices by three sources, container by container and never by count alone: the kubelet's list
 * (pod_resources.h), the pods' annotations, and our claims. This happens after each new answer of the kubelet. A difference that
 * two answers in a row show is logged once as an error with both sides named, and once more when it is over; one answer alone may
 * show a moment between two steps. Claims that no pod needs end elsewhere (sync_loop.c, allocate_annotated.h). The one correction
 * made here: a claim of gpu-manager's vocabulary goes to the container that holds its device, if that one asked for the same
 * (vcuda.h). Main thread only.
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
	uint64_t now, ever;      /* logged differences */
	uint64_t reattributions; /* claims that went to another container: vcuda.h */
};

/* NULL: no memory. */
struct reconciler *reconcile_new(void);
struct reconciler *reconcile_free(struct reconciler *r); /* NULL is fine; returns NULL */
/* Does nothing where `r` is NULL, or the kubelet's list is not read. */
void reconcile_run(struct reconciler *r, struct plugin *plugin);
struct reconcile_figures reconcile_figures(const struct reconciler *r);

/*
 * One container, where ids are slices. 0: one claim has just these; *ret_claim is it. -EEXIST, with both sides: no
 * claim, or others.
 */
int reconcile_slices(const struct slices *slices, struct claims *claims,
		     const struct pod_holder *holder, struct claim **ret_claim, struct error *err);
/*
 * One container whose ids are only counted: what its pod's hami.io/vgpu-devices-allocated gave it, and its claim. As above;
 * *ret_claim also where the annotation differs.
 */
int reconcile_shares(const struct kube_pod *pod, struct claims *claims,
		     const struct pod_holder *holder, struct claim **ret_claim, struct error *err);

/*
 * One container that holds hundredths of cards' time: which claim has its first device. As above; *ret_claim also where the
 * claim is another container's, and *ret_container is which of its pod's the holder is.
 */
int reconcile_cores(const struct slices *slices, const struct vcuda_names *names,
		    const struct kube_pod *pod, struct claims *claims,
		    const struct pod_holder *holder, struct claim **ret_claim,
		    size_t *ret_container, struct error *err);
