/*
 * Which containers have been given what they ask for, in gpu-manager's vocabulary: who has a claim that the kubelet knows of, or
 * uses the claim of one of its pod's init containers, as the kubelet has given it the same devices again. Main thread only.
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

/* NULL: it has none of its own. */
struct claim *owners_claim(const struct vcuda_owners *o, const struct kube_pod *pod,
			   size_t container);
/* False also where the kubelet's books do not have it, which were read after it was answered: it will ask again. */
bool owners_has(const struct vcuda_owners *o, const struct kube_pod *pod, size_t container);

/*
 * The claim of an init container of the same pod, which asked for the same, and whose device is in the set; NULL: there is
 * none.
 */
struct claim *owners_init(const struct vcuda_owners *o, const struct vcuda_choice *choice,
			  const struct slice_set *set);
/* That one's is the container's as well, until its pod has started: nobody asks for it then. -ENOMEM. */
int owners_share(struct vcuda_owners *o, const struct vcuda_choice *choice);
/* Shares of pods that have started, or are gone; all of them with NULL. */
void owners_forget(struct vcuda_owners *o, const struct node_pods *pods);
