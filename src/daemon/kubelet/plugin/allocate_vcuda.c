#include "daemon/kubelet/plugin/allocate_vcuda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/kubelet/devices/pod_key.h"
#include "daemon/kubelet/kube/kube.h"
#include "daemon/kubelet/kube/pods.h"
#include "kube/gpu_manager/vcuda_choice.h"
#include "daemon/api/topology.h"
#include "daemon/kubelet/plugin/allocate_annotated.h"
#include "daemon/kubelet/plugin/plugin_inside.h"
#include "daemon/kubelet/plugin/vcuda_inside.h"
#include "daemon/kubelet/plugin/vcuda_request.h"

/*
 * A call for memory waits this long if its amount is not the one that the container of the last call for cores requests. By
 * then the watch shows whether that container's pod (awaited_pod()) has ended without a call for memory.
 */
#define OTHER_HALF_NS (5 * NSEC_PER_SEC)

static struct node_pods *pods_of(const struct vcuda *v)
{
	return node_kube_pods(v->plugin->node->kube);
}

struct vcuda_names vcuda_names(const struct vcuda *v)
{
	return owners_names(&v->owners);
}

static bool has_claim(void *data, const struct kube_pod *pod, size_t container)
{
	return owners_has(data, pod, container);
}

static struct vcuda_query question_of(struct vcuda *v, const struct vcuda_names *names,
				      unsigned count)
{
	struct vcuda_query q = { .node = node_kube_name(v->plugin->node->kube),
				 .names = names,
				 .has_claim = has_claim,
				 .data = &v->owners,
				 .count = count,
				 .has_open = v->has_open,
				 .open_units = v->open_units };
	q.pod = pods_all(pods_of(v), &q.pod_count);
	return q;
}

static void vcuda_forget(struct vcuda_call *c)
{
	TAILQ_REMOVE(&c->v->calls, c, link);
	binding_drop(c->binding);
	grpc_message_unref(c->reply);
	free(c->share);
	free(c);
}

void vcuda_refuse(struct vcuda_call *c, int r, const struct error *err)
{
	c->v->plugin->refused++;
	if (c->call)
		plugin_refuse(c->call, "Allocate", r == -EAGAIN ? -ENODEV : r, err);
	c->call = NULL;
}

void vcuda_answer(struct vcuda_call *c)
{
	struct plugin *plugin = c->v->plugin;
	struct grpc_call *call = c->call;
	c->call = NULL;
	if (!call)
		return;
	grpc_call_send(call, c->reply);
	grpc_call_end(call, GRPC_OK, NULL);
	plugin->allocations++;
	plugin->pods_requested_ns = 0; /* ask soon which container holds the devices */
	plugin->allocate_ns += clock_now_ns() - c->begun_ns;
}

/*
 * has_open: a call for memory was answered, and the same container's call for cores is still expected. This clears has_open
 * once every container that requests open_units of memory has a claim.
 */
static void close_open(struct vcuda *v, const struct vcuda_names *names)
{
	struct vcuda_query q = question_of(v, names, v->open_units);
	bool has_unclaimed;
	struct error err;
	int r = v->has_open ? vcuda_check_memory(&q, &has_unclaimed, &err) : 0;
	if (r < 0 || !has_unclaimed)
		v->has_open = false;
}

/* Returns false if the call must wait. */
static bool try_cores(struct vcuda_call *c)
{
	struct vcuda *v = c->v;
	struct vcuda_names names = vcuda_names(v);
	struct vcuda_choice choice = { 0 };
	struct error err = { 0 };
	if (v->has_open)
		close_open(v, &names);
	struct vcuda_query q = question_of(v, &names, c->count);
	int r = vcuda_choose(&q, &choice, &err);
	if (annotated_may_change(r, c->begun_ns))
		return false;
	if (r < 0 && choice.pod)
		vcuda_fail(c, choice.pod, r, &err);
	else if (r < 0)
		vcuda_refuse(c, r, &err);
	else
		return vcuda_assign(c, &choice);
	return true;
}

uint64_t vcuda_cards(struct vcuda *v, unsigned cores)
{
	struct vcuda_names names = vcuda_names(v);
	struct vcuda_query q = question_of(v, &names, cores);
	struct node *node = v->plugin->node;
	struct vcuda_choice choice;
	struct claim_request request;
	struct error err;
	char key[TENANT_CLAIM_MAX], name[REGION_NAME_MAX];
	uint64_t cards = 0;
	cleanup_free struct place_node *model = calloc(1, sizeof(*model));
	if (!model || vcuda_choose(&q, &choice, &err) < 0)
		return 0;
	if (pod_key_make(choice.pod, choice.container, NULL, key, &err) < 0)
		return 0;
	topology_model(node, key, model);
	if (vcuda_request_make(node, model, &choice, NULL, key, name, &request, &err) < 0)
		return 0;
	for (unsigned i = 0; i < request.device_count; i++)
		cards |= UINT64_C(1) << request.device[i].card->index;
	return cards;
}

/* The pod whose call for cores was answered last, if its call for memory may still come; else NULL. */
static const struct kube_pod *awaited_pod(const struct vcuda *v, struct pod_key *ret_key)
{
	const struct kube_pod *pod = pod_key_parse(v->awaited.key, ret_key)
					     ? pods_find(pods_of(v), ret_key->uid)
					     : NULL;
	return pod && !pod->is_started && !pod->is_terminating && pod->phase != POD_ENDED ? pod
											  : NULL;
}

static void refuse_half(struct vcuda_call *c, const struct kube_pod *pod, const struct pod_key *key)
{
	struct vcuda *v = c->v;
	struct vcuda_names names = vcuda_names(v);
	struct error err = { 0 };
	error_set(&err, EINVAL,
		  "the kubelet asks for %u %s, but its previous call, for %u %s, was answered for "
		  "pod %.63s/%.63s, container %.63s. That container requests %u %s, so the new call "
		  "does not match it and is refused: if a pod fails, create it anew",
		  c->count, names.memory, v->awaited.cores, names.cores, pod->pod_namespace,
		  pod->name, key->container, v->awaited.units, names.memory);
	if (v->awaited.is_new)
		claims_undo(v->plugin->node->claims, v->awaited.key,
			    "the kubelet did not ask for its memory");
	vcuda_refuse(c, -EINVAL, &err);
}

static int check_memory(struct vcuda_call *c, struct error *err)
{
	struct vcuda *v = c->v;
	struct vcuda_names names = vcuda_names(v);
	struct vcuda_query q = question_of(v, &names, c->count);
	bool has_unclaimed;
	int r = vcuda_check_memory(&q, &has_unclaimed, err);
	if (r < 0)
		return r;
	v->has_open = has_unclaimed;
	v->open_units = c->count;
	return 0;
}

static bool try_memory(struct vcuda_call *c)
{
	struct vcuda *v = c->v;
	struct pod_key key;
	const struct injection nothing = { 0 };
	struct error err = { 0 };
	bool is_half = v->awaited.is_due && v->awaited.units == c->count;
	const struct kube_pod *pod = v->awaited.is_due && !is_half ? awaited_pod(v, &key) : NULL;
	if (pod && clock_now_ns() - c->begun_ns < OTHER_HALF_NS)
		return false;
	v->awaited.is_due = false;
	if (pod) {
		refuse_half(c, pod, &key);
		return true;
	}
	int r = is_half ? 0 : check_memory(c, &err);
	if (annotated_may_change(r, c->begun_ns))
		return false;
	c->reply = r < 0 ? NULL : message_allocated(&nothing, 1);
	if (r >= 0 && !c->reply)
		r = error_set_errno(&err, ENOMEM, "Allocate");
	if (r < 0) {
		vcuda_refuse(c, r, &err);
		return true;
	}
	log_debug("device plugin: Allocate of %u units of memory, for %s", c->count,
		  is_half ? v->awaited.key
			  : "a container that gets its cores by another Allocate call");
	vcuda_answer(c);
	return true;
}

/* Returns false if the call must wait. */
static bool try_call(struct vcuda_call *c)
{
	struct vcuda *v = c->v;
	struct error err = { 0 };
	int r = annotated_check_pods(v->plugin->annotated, &err);
	if (r >= 0)
		return c->role == ENDPOINT_SHARES ? try_cores(c) : try_memory(c);
	if (annotated_may_change(r, c->begun_ns))
		return false;
	vcuda_refuse(c, r, &err);
	return true;
}

/* One call after the other, because a call's meaning depends on the calls before it. */
static void retry_calls(void *data, uint32_t events)
{
	struct vcuda *v = data;
	struct vcuda_call *c;
	owners_forget(&v->owners, pods_of(v));
	while ((c = TAILQ_FIRST(&v->calls))) {
		if (c->call && !c->binding && !try_call(c)) {
			plugin_request_pods(v->plugin);
			loop_arm(v->timer, ANNOTATED_LOOK_NS, 0);
			return;
		}
		if (c->binding)
			return; /* continues in vcuda_continue() once the pod is written */
		vcuda_forget(c);
	}
}

void vcuda_continue(struct vcuda *v)
{
	loop_arm(v->timer, 0, 0);
}

static void call_cancelled(void *data, struct grpc_call *call)
{
	struct vcuda_call *c = data;
	c->call = NULL;
}

int vcuda_allocate(struct vcuda *v, struct grpc_call *call, enum endpoint_role role,
		   const struct message_request *request, struct error *err)
{
	const struct message_container *container = request->container;
	if (!container->count)
		return error_set(err, EINVAL, "the request names no devices");
	struct vcuda_call *c = calloc(1, sizeof(*c));
	if (!c)
		return error_set_errno(err, ENOMEM, "request");
	*c = (struct vcuda_call){ .v = v,
				  .call = call,
				  .role = role,
				  .begun_ns = clock_now_ns(),
				  .count = (unsigned)container->count };
	int r = role == ENDPOINT_MEMORY
			? units_check(&v->plugin->units, container->ids, container->count, err)
			: slice_set_parse(&v->plugin->slices, container->ids, container->count,
					  &c->set, err);
	if (r < 0) {
		free(c);
		return r;
	}
	grpc_call_keep(call, call_cancelled, c);
	TAILQ_INSERT_TAIL(&v->calls, c, link);
	/* Handle the call in the timer's handler: a call must not be answered within its own handler. */
	loop_arm(v->timer, 0, 0);
	return 0;
}

void vcuda_kubelet_started(struct vcuda *v)
{
	v->has_open = v->awaited.is_due = false;
}

int vcuda_attribute(struct vcuda *v, struct claim *claim, const struct kube_pod *pod,
		    size_t container, struct error *err)
{
	char key[TENANT_CLAIM_MAX], name[REGION_NAME_MAX], before[TENANT_CLAIM_MAX];
	struct pod_key was;
	memcpy(before, claim_terms(claim)->claim.key, sizeof(before));
	if (pod_key_is_of(before, pod->uid, pod->container[container]))
		return 0;
	if (!pod_key_parse(before, &was))
		return -EINVAL;
	int r = pod_key_make(pod, container, was.device, key, err);
	vcuda_request_name(pod, container, name);
	if (r >= 0)
		r = claims_rename(claim, key, name, err);
	if (r < 0)
		return r;
	log_info("device plugin: claim '%s' is now '%s': the kubelet gave its devices to that "
		 "container; the former container requests the same amounts, so nothing else "
		 "changes",
		 before, key);
	vcuda_patch_pod(v, pod);
	return 1;
}

int vcuda_start(struct plugin *plugin, struct vcuda **ret, struct error *err)
{
	struct vcuda *v = calloc(1, sizeof(*v));
	if (!v)
		return error_set_errno(err, ENOMEM, "device plugin");
	v->plugin = plugin;
	TAILQ_INIT(&v->calls);
	owners_begin(&v->owners, plugin);
	int r = loop_add_timer(plugin->node->loop, retry_calls, v, &v->timer);
	if (r < 0) {
		free(v);
		return error_set_errno(err, -r, "can't make a timer");
	}
	*ret = v;
	return 0;
}

struct vcuda *vcuda_stop(struct vcuda *v)
{
	if (!v)
		return NULL;
	while (!TAILQ_EMPTY(&v->calls))
		vcuda_forget(TAILQ_FIRST(&v->calls));
	owners_forget(&v->owners, NULL);
	loop_remove(v->timer);
	free(v);
	return NULL;
}
