/*
 * Do the kubelet's books (pod_resources.h), the pods' annotations and our claims say the same? Who holds which devices is
 * compared container by container, whenever the kubelet has answered anew: never by count alone. A difference that two
 * answers in a row show is an error, as one may be of a moment between two steps: logged once with both sides named, and
 * again when it is over. Nothing is decided here: claims that nobody needs end elsewhere (look.c, bound.h). But a claim of
 * gpu-manager's vocabulary becomes the container's that holds its device, if that had asked for the same (vcuda.h). Main
 * thread only.
 */
#pragma once

#include <stdint.h>

#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/devices/pod_resources.h"
#include "kube/gpu_manager/vcuda.h"
#include "kube/hami/pod.h"

struct plugin;
struct agreement;

struct agreement_figures {
	uint64_t now, ever;      /* disagreements that were said */
	uint64_t reattributions; /* claims that became another container's: vcuda.h */
};

/* NULL: no memory. */
struct agreement *agreement_new(void);
struct agreement *agreement_free(struct agreement *a); /* NULL is fine; returns NULL */
/* NULL `a` is fine, as are no pod resources. */
void agreement_look(struct agreement *a, struct plugin *plugin);
struct agreement_figures agreement_figures(const struct agreement *a);

/*
 * One container, where ids are slices. 0: one claim has just these; *ret_claim is it. -EEXIST, with both sides: no
 * claim, or others.
 */
int agreement_of_slices(const struct slices *slices, struct claims *claims,
			const struct pod_holder *holder, struct claim **ret_claim,
			struct error *err);
/*
 * One container whose ids are only counted: what its pod's hami.io/vgpu-devices-allocated gave it, and its claim. As above;
 * *ret_claim also where the annotation differs.
 */
int agreement_of_shares(const struct kube_pod *pod, struct claims *claims,
			const struct pod_holder *holder, struct claim **ret_claim,
			struct error *err);

/*
 * One container that holds hundredths of cards' time: which claim has its first device. As above; *ret_claim also where the
 * claim is another container's, and *ret_container is which of its pod's the holder is.
 */
int agreement_of_cores(const struct slices *slices, const struct vcuda_names *names,
		       const struct kube_pod *pod, struct claims *claims,
		       const struct pod_holder *holder, struct claim **ret_claim,
		       size_t *ret_container, struct error *err);
