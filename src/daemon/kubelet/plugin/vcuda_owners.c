#include "daemon/kubelet/plugin/vcuda_owners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/kubelet/devices/allocate.h"
#include "daemon/kubelet/devices/pod_key.h"
#include "daemon/kubelet/plugin/plugin_inside.h"
#include "daemon/state/node/node.h"

/* This long after our answer to a call, the kubelet's list contains the call's devices. */
#define BOOKS_NS NSEC_PER_SEC

void owners_begin(struct vcuda_owners *o, struct plugin *plugin)
{
	o->plugin = plugin;
	TAILQ_INIT(&o->shares);
}

struct vcuda_names owners_names(const struct vcuda_owners *o)
{
	const struct config *config = &o->plugin->node->config;
	return (struct vcuda_names){ config->kube_core_resource, config->kube_memory_resource };
}

struct claim *owners_claim(const struct vcuda_owners *o, const struct kube_pod *pod,
			   size_t container)
{
	struct claims *claims = o->plugin->node->claims;
	for (struct claim *c = claims_first(claims); c; c = claims_next(c))
		if (pod_key_is_of(claim_terms(c)->claim.key, pod->uid, pod->container[container]))
			return c;
	return NULL;
}

/*
 * True if the kubelet was restarted before it recorded our answer: its list lacks the claim's device, and it will call again.
 * Not for an init container's claim, because the list omits init containers that ended.
 */
static bool is_void(const struct vcuda_owners *o, const struct claim *claim)
{
	const struct plugin *p = o->plugin;
	struct pod_key key;
	struct slice_set held;
	unsigned card, number;
	return p->pods && !allocate_is_in_use(claim) &&
	       pod_key_parse(claim_terms(claim)->claim.key, &key) && key.device &&
	       pod_resources_get(p->pods, &held) &&
	       pod_resources_time_ns(p->pods) > claim->known_ns + BOOKS_NS &&
	       slice_parse(&p->slices, key.device, &card, &number, NULL) >= 0 &&
	       !slots_has(&held.card[card], number);
}

bool owners_has(const struct vcuda_owners *o, const struct kube_pod *pod, size_t container)
{
	const struct pod_container *s;
	const struct claim *claim = owners_claim(o, pod, container);
	if (claim)
		return container < pod->init_containers || !is_void(o, claim);
	TAILQ_FOREACH(s, &o->shares, link)
		if (pod_container_is(s, pod, container))
			return true;
	return false;
}

void owners_forget(struct vcuda_owners *o, const struct node_pods *pods)
{
	struct pod_container *s, *next;
	for (s = TAILQ_FIRST(&o->shares); s; s = next) {
		const struct kube_pod *pod = pods ? pods_find(pods, s->uid) : NULL;
		next = TAILQ_NEXT(s, link);
		if (pod && !pod->is_started)
			continue;
		TAILQ_REMOVE(&o->shares, s, link);
		free(s);
	}
}

struct claim *owners_init(const struct vcuda_owners *o, const struct vcuda_choice *choice,
			  const struct slice_set *set)
{
	const struct vcuda_names names = owners_names(o);
	if (choice->container < choice->pod->init_containers)
		return NULL;
	for (size_t i = 0; i < choice->pod->init_containers; i++) {
		struct claim *claim = owners_claim(o, choice->pod, i);
		struct vcuda_request ask;
		struct pod_key key;
		unsigned card, number;
		if (claim && claim->tenant && !allocate_is_in_use(claim) &&
		    pod_key_parse(claim_terms(claim)->claim.key, &key) && key.device &&
		    slice_parse(&o->plugin->slices, key.device, &card, &number, NULL) >= 0 &&
		    slots_has(&set->card[card], number) &&
		    vcuda_request_read(choice->pod, i, &names, &ask, NULL) >= 0 &&
		    vcuda_request_is_same(&ask, &choice->request))
			return claim;
	}
	return NULL;
}
