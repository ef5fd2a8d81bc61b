/*
 * Tells which containers already have what they request, for gpu-manager's resources. A container has a claim of its own, or
 * uses the claim of an init container of its pod, if the kubelet gave both the same devices. Main thread only.
 */
#pragma once

#include <sys/queue.h>

#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/devices/slices.h"
#include "daemon/kubelet/kube/pods.h"
#include "kube/gpu_manager/vcuda_choice.h"

struct plugin;

struct vcuda_owners {
	struct plugin *plugin;
	/* containers that use the claim of an init container (owners_init()); kept until owners_forget() */
	struct pod_container_list shares;
};

void owners_begin(struct vcuda_owners *o, struct plugin *plugin);
struct vcuda_names owners_names(const struct vcuda_owners *o);

/* Finds the container's own claim; NULL if it has none. */
struct claim *owners_claim(const struct vcuda_owners *o, const struct kube_pod *pod,
			   size_t container);
/*
 * True if the container has what it requests. False also if the kubelet's list is newer than our answer but lacks the device:
 * the answer was lost, and the kubelet will call again.
 */
bool owners_has(const struct vcuda_owners *o, const struct kube_pod *pod, size_t container);

/* Finds, in the pod of `choice`, an init container's claim with the same amounts and with a device in `set`; else NULL. */
struct claim *owners_init(const struct vcuda_owners *o, const struct vcuda_choice *choice,
			  const struct slice_set *set);
/*
 * Forgets the containers in `shares` whose pod is gone, or has started, since no more calls come for it. Forgets all if `pods`
 * is NULL.
 */
void owners_forget(struct vcuda_owners *o, const struct node_pods *pods);
