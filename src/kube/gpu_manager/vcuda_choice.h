/*
 * Finds the pod and container for which the kubelet calls Allocate, for pods that request gpu-manager's resources. The call
 * only states how many devices of one resource are wanted.
 *
 * The kubelet calls once for each resource of a container, in any order, and handles a pod's containers in order. It sets the
 * pod's start time after admission. So the call is for a pod without start time, and for its first container without a claim.
 * That container must request exactly the number in the call.
 *
 * If several pods match, the oldest is chosen, but only if a wrong choice would be harmless. It is harmless if the pods request
 * the same amounts: allotd corrects the choice later, when the kubelet's pod-resources socket shows which container holds the
 * devices. It is also harmless if the call for memory is still to come and will tell the pods apart: nothing runs before that
 * call. Pure; thread safe.
 */
#pragma once

#include "kube/gpu_manager/vcuda.h"

struct vcuda_query {
	const char *node;
	const struct vcuda_names *names;
	const struct kube_pod *const *pod;
	size_t pod_count;
	/* Whether the container already has a claim on GPUs. */
	bool (*has_claim)(void *data, const struct kube_pod *pod, size_t container);
	void *data;
	unsigned count; /* number of devices in the call */
	/*
	 * The kubelet's last call was for open_units units of memory. The call for the same container's cores is still to come.
	 */
	bool has_open;
	unsigned open_units;
};

struct vcuda_choice {
	const struct kube_pod *pod;
	size_t container;
	struct vcuda_request request;
};

/*
 * Chooses the container for a call for cores. Errors:
 *
 *   -EAGAIN          no known container requests this number; the watch of pods may be late, so try again
 *   -EBUSY           several containers match, and nothing tells them apart
 *   -EINVAL, -ERANGE the pod's request is invalid; *ret then names the container
 */
int vcuda_choose(const struct vcuda_query *query, struct vcuda_choice *ret, struct error *err);

/*
 * Checks a call for memory: some container of a pod that waits to start must request this amount. *ret_has_unclaimed: one of
 * these containers has no claim, so its call for cores is still to come. Errors as in vcuda_choose().
 */
int vcuda_check_memory(const struct vcuda_query *query, bool *ret_has_unclaimed, struct error *err);
