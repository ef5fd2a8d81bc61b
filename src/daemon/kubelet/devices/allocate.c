#include "daemon/kubelet/devices/allocate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "daemon/state/tenant.h"

bool allocate_is_own_claim(const struct claim *claim)
{
	return !strncmp(claim_terms(claim)->claim.key, ALLOCATE_KEY, strlen(ALLOCATE_KEY));
}

bool allocate_has(const struct slices *slices, const struct claim *claim,
		  const struct slice_set *set)
{
	const struct tenant_terms *terms = claim_terms(claim);
	if (!allocate_is_own_claim(claim))
		return false;
	/* Compare slots before UUIDs: that is cheaper, and most claims have other slots. */
	for (unsigned i = 0; i < terms->device_count; i++)
		for (unsigned card = 0; card < slices->card_count; card++)
			if (slots_first_common(&terms->device[i].slots, &set->card[card]) >= 0 &&
			    !strcmp(slices->uuid[card], claim_uuid(claim, i)))
				return true;
	return false;
}

bool allocate_is_in_use(const struct claim *claim)
{
	return claim->tenant && tenant_living_count(claim->tenant) > 0;
}

static int release_one(struct claims *claims, const struct claim *claim, const char *id,
		       struct error *err)
{
	const struct tenant_terms *terms = claim_terms(claim);
	if (allocate_is_in_use(claim))
		return error_set(err, EBUSY,
				 "device '%s' is still used by processes of tenant '%s': end "
				 "them, or wait until they have ended",
				 id, terms->name);
	int r = claims_release(claims, terms->claim.key,
			       "the kubelet gave its devices to another container", err);
	return r < 0 ? error_add(err, r, "device '%s'", id) : 0;
}

static int release_former(struct claims *claims, const struct slices *slices,
			  const struct slice_set *set, struct error *err)
{
	for (unsigned card = 0; card < slices->card_count; card++) {
		struct slots left = set->card[card];
		struct claim *c;
		unsigned slot;
		while ((c = claims_holder(claims, slices->uuid[card], &left, &slot))) {
			char id[SLICE_ID_MAX];
			slots_remove(&left, slot);
			if (!allocate_is_own_claim(c))
				continue;
			slice_format(slices, card, slot, id);
			int r = release_one(claims, c, id, err);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

bool allocate_is_same(const struct claim *claim, const struct claim_request *request)
{
	const struct tenant_terms *terms = claim_terms(claim);
	if (!claim->tenant || terms->device_count != request->device_count)
		return false;
	for (unsigned i = 0; i < terms->device_count; i++) {
		const struct claim_device_request *d = &request->device[i];
		const struct promise *p = claim_original_promise(claim, i);
		if (terms->device[i].card != d->card ||
		    memcmp(&terms->device[i].slots, &d->slots, sizeof(d->slots)) != 0 ||
		    p->quota_bytes != d->terms.memory_bytes || p->cores_pct != d->terms.cores_pct ||
		    p->limit_pct != d->terms.limit_pct)
			return false;
	}
	return true;
}

struct claim_device_request *allocate_add_card(struct claim_request *request, struct card *card)
{
	for (unsigned i = 0; i < request->device_count; i++)
		if (request->device[i].card == card)
			return &request->device[i];
	if (request->device_count == REGION_MAX_DEVICES)
		return NULL;
	struct claim_device_request *d = &request->device[request->device_count++];
	*d = (struct claim_device_request){ .card = card,
					    .terms = { .has_memory = true, .has_limit = true } };
	return d;
}

int allocate_request(struct node *node, const struct claim_request *request, struct claim **ret,
		     bool *ret_is_new, struct error *err)
{
	struct claim *claim = claims_find(node->claims, request->key);
	int r = 0;
	if (claim && allocate_is_same(claim, request)) {
		*ret = claim;
		*ret_is_new = false;
		return 0;
	}
	/*
	 * Replace the claim, if there is one. Either it has other terms: an earlier call made it, the answer to the kubelet was
	 * lost, and the scheduler has chosen again. Or it is parked (not in force, claims.h), so it has no tenant.
	 */
	if (claim && allocate_is_in_use(claim))
		return error_set(
			err, EBUSY,
			"processes still use the previous GPU shares of tenant '%s': end them, or "
			"wait until they have ended",
			claim_terms(claim)->name);
	if (claim)
		r = claims_release(node->claims, request->key, "its container gets other shares",
				   err);
	if (r >= 0)
		r = claims_allocate(node->claims, request, ret, err);
	*ret_is_new = r >= 0;
	return r;
}

/*
 * The kubelet gives an init container's slices also to the pod's other containers. These share the claim, because the init
 * container's mounts must stay valid. The kubelet may instead have given the slices to another pod. So the former pod's changes
 * by claims_override_terms() are undone first. Returns NULL if there is no such claim, or if a change cannot be undone.
 */
static struct claim *find_same(struct claims *claims, const struct claim_request *request)
{
	const struct claim_override nothing = { 0 };
	bool has_changed;
	struct claim *claim = claims_find(claims, request->key);
	if (!claim || !allocate_is_same(claim, request) || allocate_is_in_use(claim))
		return NULL;
	return claims_override_terms(claim, &nothing, &has_changed, NULL) < 0 ? NULL : claim;
}

static void fill_device(const struct node *node, struct card *card, unsigned per_card,
			const struct slots *slots, struct claim_device_request *d)
{
	struct slice_share share = slices_share(per_card, slots_count(slots),
						card->info.memory_bytes,
						node->config.is_kube_slice_hard);
	*d = (struct claim_device_request){ .card = card,
					    .terms = { .has_memory = true,
						       .memory_bytes = share.memory_bytes,
						       .has_cores = true,
						       .cores_pct = share.cores_pct,
						       .has_limit = true,
						       .limit_pct = share.limit_pct },
					    .slots = *slots };
}

static int fill_request(struct node *node, const struct slices *slices, const struct slice_set *set,
			const char *key, struct claim_request *request, struct error *err)
{
	*request = (struct claim_request){ .key = key, .while_wanted = true };
	for (unsigned i = 0; i < slices->card_count; i++) {
		if (!slots_count(&set->card[i]))
			continue;
		if (request->device_count == REGION_MAX_DEVICES)
			return error_set(
				err, EINVAL,
				"the request names devices of too many GPUs: a container may have "
				"at most %d",
				REGION_MAX_DEVICES);
		fill_device(node, &node->card[i], slices->per_card, &set->card[i],
			    &request->device[request->device_count++]);
	}
	return 0;
}

int allocate_slices(struct node *node, const struct slices *slices, const struct slice_set *set,
		    struct claim **ret_new_claim, struct injection *ret_injection, struct error *err)
{
	char key[sizeof(ALLOCATE_KEY) + SLICE_ID_MAX] = ALLOCATE_KEY;
	struct claim_request request;
	struct claim *claim;
	if (!slice_set_first(slices, set, key + strlen(ALLOCATE_KEY)))
		return error_set(err, EINVAL, "the request names no devices");
	int r = fill_request(node, slices, set, key, &request, err);
	if (r < 0)
		return r;
	struct claim *same = find_same(node->claims, &request);
	claim = same;
	if (!same)
		r = release_former(node->claims, slices, set, err);
	if (!same && r >= 0)
		r = claims_allocate(node->claims, &request, &claim, err);
	if (r < 0)
		return r;
	r = injection_make(node->claims, claim, ret_injection, err);
	if (r >= 0) {
		*ret_new_claim = same ? NULL : claim;
		return 0;
	}
	if (!same)
		claims_undo(node->claims, key, "its container can't be prepared");
	return r;
}
