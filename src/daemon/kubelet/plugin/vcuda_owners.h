/*
 * Which containers have been given what they ask for, in gpu-manager's vocabulary. Such a container has a claim of its own, or
 * it uses the claim of an init container of its pod, because the kubelet gave it the init container's devices again. Main
 * thread only.
 */
#pragma once

#include <sys/queue.h>

#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/devices/slices.h"
#include "daemon/kubelet/kube/pods.h"
#include "kube/gpu_manager/vcuda_choice.h"

struct plugin;
struct owners_share;

struct vcuda_owners {
	struct plugin *plugin;
	TAILQ_HEAD(, owners_share) shares;
};

void owners_begin(struct vcuda_owners *o, struct plugin *plugin);
struct vcuda_names owners_names(const struct vcuda_owners *o);

/* Returns NULL if the container has no claim of its own. */
struct claim *owners_claim(const struct vcuda_owners *o, const struct kube_pod *pod,
			   size_t container);
/*
 * Returns true if the container has been given what it asks for. Returns false if the kubelet's list is newer than our answer
 * to the container's call, but lacks the claim's device: the kubelet did not record the answer, and will ask again.
 */
bool owners_has(const struct vcuda_owners *o, const struct kube_pod *pod, size_t container);

/*
 * Finds the claim of an init container of the same pod that asked for the same amounts and whose device is in `set`. Returns
 * NULL if there is none.
 */
struct claim *owners_init(const struct vcuda_owners *o, const struct vcuda_choice *choice,
			  const struct slice_set *set);
/*
 * Records that the container uses the claim that owners_init() found. The record is kept until the pod has started, because no
 * more calls for the pod come then. Returns -ENOMEM if out of memory.
 */
int owners_share(struct vcuda_owners *o, const struct vcuda_choice *choice);
/* Forgets what owners_share() recorded for pods that have started or are gone. If `pods` is NULL, forgets all. */
void owners_forget(struct vcuda_owners *o, const struct node_pods *pods);
