/*
 * Which pod, and which container of it, a kubelet's Allocate is for, in gpu-manager's vocabulary. The call says of which
 * resource how many devices are wanted, no more. For one container the kubelet calls for each of its resources, in any
 * order, and for the next one afterwards; of a pod's containers in their order; and it writes to a pod, once it is
 * let in, when that was. So it is for the first container without a claim of a pod that is not let in yet, and that asks for
 * just this. Where several do, the oldest pod's is taken only if that can do no harm: both ask for the same, so that it
 * is put right once the kubelet tells whose devices they are; or the call for memory, which comes before anything runs,
 * will tell them apart. Pure; thread safe.
 */
#pragma once

#include "kube/gpu_manager/vcuda.h"

struct vcuda_question {
	const char *node; /* this one's name */
	const struct vcuda_names *names;
	const struct kube_pod *const *pod; /* in any order */
	size_t pod_count;
	/* Has it been given what it asks for? */
	bool (*has_claim)(void *data, const struct kube_pod *pod, size_t container);
	void *data;
	unsigned count; /* devices that the call is for */
	/* A call for memory was answered before, and waits for its container's cores. */
	bool has_open;
	unsigned open_units;
};

struct vcuda_choice {
	const struct kube_pod *pod; /* one of the question's */
	size_t container;           /* its place in pod->container */
	struct vcuda_ask ask;
};

/*
 * Of a call for cores. -EAGAIN: nobody is known to ask for that (a watch may be behind: look again); -EBUSY: several do, and
 * nothing tells which; -EINVAL, -ERANGE: what stands in the pod is wrong, which *ret names then. Each with both sides in the
 * error.
 */
int vcuda_choose(const struct vcuda_question *question, struct vcuda_choice *ret, struct error *err);

/*
 * Of a call for memory: whether any container that is not let in yet asks for so much. *ret_has_unclaimed: one of them has no
 * claim, so that its call for cores is still to come. Errors as above.
 */
int vcuda_check_memory(const struct vcuda_question *question, bool *ret_has_unclaimed,
		       struct error *err);
