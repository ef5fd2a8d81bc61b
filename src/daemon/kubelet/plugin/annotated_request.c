#include "daemon/kubelet/plugin/annotated_request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "daemon/kubelet/devices/allocate.h"
#include "daemon/kubelet/devices/pod_key.h"
#include "kube/hami/annotations.h"
#include "kube/hami/priority.h"
#include "kube/own/live.h"

#define MIB (UINT64_C(1) << 20)
#define CORES_MOST_PCT 100

static int add_share(struct node *node, const struct kube_share *share, unsigned borrowed_pct,
		     struct claim_request *request, struct error *err)
{
	struct card *card = node_find_card_text(node, share->card);
	if (!card)
		return error_set(err, ENODEV, "%s is not a GPU of this node", share->card);
	if (share->memory_mib == 0 || share->memory_mib > UINT64_MAX / MIB / 2)
		return error_set(err, EINVAL,
				 "%s: memory of %" PRIu64 " MiB: must be 1 to %" PRIu64 " MiB",
				 share->card, share->memory_mib, UINT64_MAX / MIB / 2);
	struct claim_device_request *d = allocate_add_card(request, card);
	if (!d)
		return error_set(
			err, EINVAL,
			"the scheduler gave shares of too many GPUs: a container may have at most "
			"%d",
			REGION_MAX_DEVICES);
	d->terms.memory_bytes += share->memory_mib * MIB;
	d->terms.cores_pct += share->cores_pct;
	d->terms.limit_pct += borrowed_pct;
	return 0;
}

/*
 * A container without cores and limit gets a fair part of the time that is guaranteed to no tenant. A container with only a
 * limit is opportunistic: it gets the time that all other tenants leave unused.
 */
static void set_limits(const struct node *node, struct claim_request *request)
{
	for (unsigned i = 0; i < request->device_count; i++) {
		struct promise_request *terms = &request->device[i].terms;
		if (terms->cores_pct > CORES_MOST_PCT)
			terms->cores_pct = CORES_MOST_PCT;
		terms->has_cores = terms->cores_pct > 0;
		if (!terms->has_cores && terms->limit_pct > 0) {
			request->priority = KUBE_PRIORITY_OPPORTUNISTIC;
			if (terms->limit_pct > CORES_MOST_PCT)
				terms->limit_pct = CORES_MOST_PCT;
			continue;
		}
		terms->limit_pct = terms->has_cores && node->config.is_kube_slice_hard
					   ? terms->cores_pct
					   : CORES_MOST_PCT;
	}
}

int annotated_request_sharing(const struct kube_pod *pod, const char *container,
			      struct claim_request *ret, struct error *err)
{
	struct kube_live live;
	bool is_space = false;
	int r = live_read_sharing(pod, container, &live, err);
	if (r < 0)
		return r;
	ret->namespace_name = pod->pod_namespace;
	ret->sharing.has_way = live.sharing && parse_sharing(live.sharing, &is_space, NULL) == 0;
	ret->sharing.way = is_space ? SHARING_SPACE : SHARING_TIME;
	snprintf(ret->sharing.group, sizeof(ret->sharing.group), "%s", live.group ? live.group : "");
	return 0;
}

int annotated_request_make(struct node *node, const struct choice *choice,
			   char key[TENANT_CLAIM_MAX], char name[REGION_NAME_MAX],
			   struct claim_request *ret, struct error *err)
{
	const struct kube_pod *pod = choice->pod;
	const char *container = pod->container[choice->container];
	*ret = (struct claim_request){ .key = key, .tenant = name, .while_wanted = true };
	if (node->config.kube_memory_scaling > 1)
		ret->on_full = ON_FULL_SWAP;
	int r = priority_read(pod, choice->container, node->config.kube_priority_resource,
			      &ret->priority, err);
	if (r >= 0)
		r = pod_key_make(pod, choice->container, NULL, key, err);
	if (r < 0)
		return r;
	/* The name is only displayed: it is cut if too long, and gets an id if not unique. */
	snprintf(name, REGION_NAME_MAX, "%s.%s.%s", pod->pod_namespace, pod->name, container);
	r = annotated_request_sharing(pod, container, ret, err);
	if (r < 0)
		return r;
	struct kube_shares borrowed = { 0 };
	const char *text = pod_annotation(pod, KUBE_LIVE_DOMAIN "/" KUBE_BORROWED);
	if (text)
		r = shares_parse(text, &borrowed, err);
	if (r < 0)
		return error_add(err, r, KUBE_LIVE_DOMAIN "/" KUBE_BORROWED);
	for (size_t i = 0; r >= 0 && i < choice->share_count; i++)
		r = add_share(node, &choice->share[i],
			      shares_borrowed(&borrowed, &choice->share[i]), ret, err);
	shares_free(&borrowed);
	if (r < 0)
		return r;
	set_limits(node, ret);
	return 0;
}
