/* Shared by allocate_vcuda.c, which finds a call's container, and vcuda_assign.c, which gives the container its devices. */
#pragma once

#include <sys/queue.h>

#include "daemon/kubelet/devices/slices.h"
#include "daemon/kubelet/endpoint/endpoint.h"
#include "daemon/kubelet/kube/binding.h"
#include "daemon/kubelet/plugin/vcuda_owners.h"
#include "kube/gpu_manager/vcuda_choice.h"
#include "net/loop.h"

struct vcuda_call {
	TAILQ_ENTRY(vcuda_call) link;
	struct vcuda *v;
	struct grpc_call *call; /* NULL if the kubelet has cancelled the call */
	enum endpoint_role role;
	uint64_t begun_ns;
	unsigned count;
	struct slice_set set; /* for a call for cores: the slices that the kubelet picked */
	/* key of the claim that the call hands out; is_new: made for this call */
	char key[TENANT_CLAIM_MAX];
	bool is_new;
	/* for vcuda_owners.shares if the container uses an init container's claim; else NULL */
	struct pod_container *share;
	unsigned cores, units;
	struct grpc_message *reply; /* NULL if refused, or not decided yet */
	/* the write to the pod, after which the call ends; NULL: there is nothing to write */
	struct binding *binding;
};

struct vcuda {
	struct plugin *plugin;
	struct loop_source *timer;
	TAILQ_HEAD(, vcuda_call) calls;
	struct vcuda_owners owners;
	/* The call for memory that is expected after a call for cores. */
	struct {
		/* is_due: the call for memory has not come yet; is_new: the claim was made for the call for cores */
		bool is_due, is_new;
		char key[TENANT_CLAIM_MAX];
		unsigned cores, units;
	} awaited;
	/* A call for memory was answered, but the same container's call for cores has not come yet. */
	bool has_open;
	unsigned open_units;
};

/* allocate_vcuda.c: answer with c->reply or an error. The queue frees `c` once no write to the pod is in progress. */
void vcuda_answer(struct vcuda_call *c);
void vcuda_refuse(struct vcuda_call *c, int r, const struct error *err);
/* Call when a write to a pod has ended: the queue goes on to the next call. */
void vcuda_continue(struct vcuda *v);

/*
 * vcuda_assign.c: gives the container its devices, and answers or refuses the call, at once or after the pod is written.
 * Returns false if there is no room yet.
 */
bool vcuda_assign(struct vcuda_call *c, const struct vcuda_choice *choice);
/* Refuses the call. If a scheduler waits for the pod's shares, starts to write into the pod that its binding failed. */
void vcuda_fail(struct vcuda_call *c, const struct kube_pod *pod, int r, const struct error *err);
/* Annotates the pod, in the background, with its containers' cards and whether all got theirs, for gpu-manager's scheduler. */
void vcuda_patch_pod(struct vcuda *v, const struct kube_pod *pod);
