/* Between the parts of gpu-manager's vocabulary: vcuda.c has whom calls are for, vcuda_assign.c what they bring. */
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
	struct grpc_call *call; /* NULL: the kubelet has cancelled it */
	enum endpoint_role role;
	uint64_t begun_ns;
	unsigned count;
	struct slice_set set; /* of a call for cores */
	/* The claim that it hands out; is_new: it was made for this call. */
	char key[TENANT_CLAIM_MAX];
	bool is_new;
	unsigned cores, units;
	struct grpc_message *reply; /* NULL: refused, or not decided yet */
	struct binding *binding; /* written to the pod before the call ends; NULL: nothing to write */
};

struct vcuda {
	struct plugin *plugin;
	struct loop_source *timer;
	TAILQ_HEAD(, vcuda_call) calls;
	struct vcuda_owners owners;
	/* The call for memory that belongs to the call for cores before it. */
	struct {
		bool is_due, is_new; /* is_new: the claim was made for it */
		char key[TENANT_CLAIM_MAX];
		unsigned cores, units;
	} awaited;
	/* A call for memory that was answered, and whose cores are still to come. */
	bool has_open;
	unsigned open_units;
};

/* vcuda.c: the kubelet's answer. The call itself is forgotten by the queue, once nothing is being written for it. */
void vcuda_answer(struct vcuda_call *c);
void vcuda_refuse(struct vcuda_call *c, int r, const struct error *err);
/* Something was written: the queue goes on. */
void vcuda_go_on(struct vcuda *v);

/*
 * vcuda_assign.c: gives the container what it asks for; the call is answered or refused, at once or when that is written.
 * False: there is no room yet, and it is to be tried again.
 */
bool vcuda_assign(struct vcuda_call *c, const struct vcuda_choice *choice);
/* The call is refused, and a scheduler that waits for the pod's shares is told. */
void vcuda_fail(struct vcuda_call *c, const struct kube_pod *pod, int r, const struct error *err);
/* What the pod's containers have is written to it, for gpu-manager's scheduler. */
void vcuda_tell_pod(struct vcuda *v, const struct kube_pod *pod);
