#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/api/topology.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/kube/kube.h"
#include "daemon/kubelet/plugin/allocate_annotated.h"
#include "daemon/kubelet/plugin/plugin_inside.h"
#include "daemon/kubelet/plugin/allocate_vcuda.h"
#include "daemon/kubelet/plugin/vcuda_inside.h"
#include "daemon/kubelet/plugin/vcuda_request.h"
#include "daemon/state/node/node.h"
#include "daemon/state/tenant.h"
#include "kube/client/kube_client.h"
#include "kube/client/patch.h"
#include "kube/gpu_manager/vcuda.h"

/* a pod's annotations name the cards of at most this many of its containers */
#define VCUDA_TELL_MAX 64

struct vcuda_telling {
	const struct kube_pod *pod;
	/* for each container that is no init container; NULL: it has no claim */
	struct claim *const *claim;
	size_t count;
	bool is_assigned; /* every container has got what it asks for */
};

#define CARDS_MAX 96 /* size of a text with REGION_MAX_DEVICES numbers */
#define PATH_MAX_BYTES 640

/* Writes the cards' numbers, like "0,1". False if there are none, one is missing, or they do not fit. */
static bool vcuda_tell_cards(const struct claim *claim, char *ret, size_t size)
{
	const struct tenant_terms *terms = claim_terms(claim);
	size_t at = 0;
	for (unsigned i = 0; i < terms->device_count; i++) {
		const struct card *card = terms->device[i].card;
		if (!card || at >= size)
			return false;
		at += (size_t)snprintf(ret + at, size - at, "%s%u", i ? "," : "",
				       card->info.minor_known ? card->info.minor : card->index);
	}
	return at > 0 && at < size;
}

static void patched(void *data, const struct kube_answer *answer)
{
	/* 404 means that the pod is gone, which is no error. */
	if (answer->err.code && answer->status != 404)
		log_warning("device plugin: a pod can't be annotated with the GPUs that it got: %s",
			    answer->err.text);
}

/*
 * Writes the annotations from which gpu-manager's scheduler computes a node's use: each container's cards
 * (tencent.com/predicate-gpu-idx-N), and whether all containers have theirs (gpu-assigned). Without retries, because the daemon
 * does not need these annotations.
 */
static void vcuda_tell(struct kube_client *client, const struct vcuda_telling *t)
{
	char name[VCUDA_TELL_MAX][sizeof(VCUDA_INDEX) + 4], cards[VCUDA_TELL_MAX][CARDS_MAX];
	struct patch_pair pair[VCUDA_TELL_MAX + 1];
	char path[PATH_MAX_BYTES];
	size_t pairs = 0;
	for (size_t i = 0; i < t->count && i < VCUDA_TELL_MAX; i++) {
		if (!t->claim[i] || !vcuda_tell_cards(t->claim[i], cards[i], sizeof(cards[i])))
			continue;
		snprintf(name[i], sizeof(name[i]), VCUDA_INDEX "%u", (unsigned char)i);
		pair[pairs++] = (struct patch_pair){ name[i], cards[i] };
	}
	pair[pairs++] = (struct patch_pair){ VCUDA_ASSIGNED, t->is_assigned ? "true" : "false" };
	cleanup_free char *body = patch_metadata(pair, pairs, NULL, 0, NULL);
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", t->pod->pod_namespace,
		 t->pod->name);
	struct kube_request request = {
		.method = "PATCH", .path = path, .type = KUBE_MERGE_PATCH, .body = body
	};
	if (!body || !kube_call_start(client, &request, NULL, patched, NULL))
		log_warning("device plugin: a pod can't be annotated with the GPUs that it got: "
			    "out of memory");
}

static int make_claim(struct vcuda_call *c, const struct vcuda_choice *choice, struct claim **ret,
		      struct error *err)
{
	struct plugin *plugin = c->v->plugin;
	struct node *node = plugin->node;
	struct claim_request request;
	char device[SLICE_ID_MAX], name[REGION_NAME_MAX];
	cleanup_free struct place_node *model = calloc(1, sizeof(*model));
	if (!model)
		return error_set_errno(err, ENOMEM, "Allocate");
	annotated_sweep(plugin->annotated);
	struct claim *old = owners_claim(&c->v->owners, choice->pod, choice->container);
	if (old) {
		memcpy(c->key, claim_terms(old)->claim.key, sizeof(c->key));
		int r = claims_release(node->claims, c->key,
				       "the kubelet did not use it, and asks again", err);
		if (r < 0)
			return r;
	}
	slice_set_first(&plugin->slices, &c->set, device);
	int r = pod_key_make(choice->pod, choice->container, device, c->key, err);
	if (r < 0)
		return r;
	topology_model(node, c->key, model);
	r = vcuda_request_make(node, model, choice, device, c->key, name, &request, err);
	if (r >= 0)
		r = claims_allocate(node->claims, &request, ret, err);
	c->is_new = r >= 0;
	return r;
}

/*
 * Makes c->reply from a new claim. If the kubelet gave an init container's devices to this container, makes the reply from the
 * init container's claim instead.
 */
static int make_reply(struct vcuda_call *c, const struct vcuda_choice *choice, struct error *err)
{
	struct vcuda *v = c->v;
	cleanup_injection struct injection injection = { 0 };
	struct claim *claim = owners_init(&v->owners, choice, &c->set);
	bool is_shared = claim != NULL;
	int r = is_shared ? 0 : make_claim(c, choice, &claim, err);
	if (r < 0)
		return r;
	memcpy(c->key, claim_terms(claim)->claim.key, sizeof(c->key));
	r = injection_make(v->plugin->node->claims, claim, &injection, err);
	if (r < 0)
		return r;
	c->reply = message_allocated(&injection, 1);
	if (c->reply && is_shared)
		c->share = pod_container_new(choice->pod, choice->container);
	return c->reply && (c->share || !is_shared) ? 0 : error_set_errno(err, ENOMEM, "Allocate");
}

static void undo_allocation(struct vcuda_call *c, const char *why)
{
	if (c->is_new)
		claims_undo(c->v->plugin->node->claims, c->key, why);
	c->is_new = false;
	free(c->share);
	c->share = NULL;
	c->reply = grpc_message_unref(c->reply);
}

void vcuda_patch_pod(struct vcuda *v, const struct kube_pod *pod)
{
	struct vcuda_names names = vcuda_names(v);
	struct vcuda_telling telling = { .pod = pod, .is_assigned = true };
	struct claim *claims[VCUDA_TELL_MAX];
	for (size_t i = pod->init_containers; i < pod->containers; i++) {
		struct vcuda_request ask;
		size_t at = i - pod->init_containers;
		if (at == VCUDA_TELL_MAX)
			break;
		claims[at] = owners_claim(&v->owners, pod, i);
		telling.is_assigned &= vcuda_request_read(pod, i, &names, &ask, NULL) == -ENODATA ||
				       owners_has(&v->owners, pod, i);
		telling.count = at + 1;
	}
	telling.claim = claims;
	vcuda_tell(node_kube_client(v->plugin->node->kube), &telling);
}

/*
 * Ends a successful call for cores. The kubelet's call for the same container's memory, if it requests any, is expected next,
 * unless it came before.
 */
static void end_well(struct vcuda_call *c)
{
	struct vcuda *v = c->v;
	v->awaited.is_due = c->units > 0 && !v->has_open;
	v->awaited.is_new = c->is_new;
	v->awaited.cores = c->cores;
	v->awaited.units = c->units;
	memcpy(v->awaited.key, c->key, sizeof(v->awaited.key));
	v->has_open = false;
	if (c->share)
		TAILQ_INSERT_TAIL(&v->owners.shares, c->share, link);
	c->share = NULL;
	vcuda_answer(c);
}

static void written(void *data, const struct error *err)
{
	struct vcuda_call *c = data;
	c->binding = NULL;
	if (err->code) {
		log_warning("device plugin: Allocate fails: the GPUs that the container got can't be "
			    "recorded in its pod and node: %s",
			    err->text);
		bool was_given = c->reply != NULL;
		undo_allocation(c, "its pod can't be annotated");
		if (was_given)
			vcuda_refuse(c, -err->code, err);
	} else if (c->reply) {
		end_well(c);
	}
	vcuda_continue(c->v);
}

/* Starts to record in the pod that the container has its shares. A scheduler waits for this record. */
static int begin_binding(struct vcuda_call *c, const struct vcuda_choice *choice, struct error *err)
{
	struct node_kube *kube = c->v->plugin->node->kube;
	struct choice assignment = { .pod = choice->pod, .container = choice->container };
	int r = shares_parse_of(choice->pod->to_allocate, choice->pod->init_containers,
				choice->pod->containers, &assignment.shares, err);
	if (r < 0)
		return r;
	assignment.share = shares_of(&assignment.shares, assignment.container,
				     &assignment.share_count);
	c->binding = binding_take(node_kube_client(kube), node_kube_name(kube), &assignment,
				  written, c);
	shares_free(&assignment.shares);
	return c->binding ? 0 : error_set_errno(err, ENOMEM, "Allocate");
}

void vcuda_fail(struct vcuda_call *c, const struct kube_pod *pod, int r, const struct error *err)
{
	struct node_kube *kube = c->v->plugin->node->kube;
	vcuda_refuse(c, r, err);
	if (pod->bind_phase == BIND_ALLOCATING && pod->to_allocate)
		c->binding = binding_fail(node_kube_client(kube), node_kube_name(kube), pod,
					  written, c);
}

bool vcuda_assign(struct vcuda_call *c, const struct vcuda_choice *choice)
{
	struct error err = { 0 };
	c->cores = choice->request.cores;
	c->units = choice->request.units;
	int r = make_reply(c, choice, &err);
	if (r >= 0 && choice->request.is_by_shares)
		r = begin_binding(c, choice, &err);
	if (r >= 0 && c->binding)
		return true;
	if (r >= 0) {
		end_well(c);
		vcuda_patch_pod(c->v, choice->pod);
		return true;
	}
	if (r == -ENOSPC && !c->is_new &&
	    annotated_may_fit_soon(c->v->plugin->annotated, c->begun_ns))
		return false;
	undo_allocation(c, "its container can't be prepared");
	error_add(&err, r, "pod %.63s/%.63s, container %.63s", choice->pod->pod_namespace,
		  choice->pod->name, choice->pod->container[choice->container]);
	vcuda_fail(c, choice->pod, r, &err);
	return true;
}
