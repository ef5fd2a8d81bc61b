/*
 * An override replaces terms (quotas, shares, ...) of a claim. This file applies overrides, and keeps the original terms to
 * undo them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/terms_change.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/containers/claims/claims_inside.h"

#define SAME_PCT 0.005 /* shares that differ by less are equal: shares have two decimals */

static bool is_same_pct(double a, double b)
{
	return a - b < SAME_PCT && b - a < SAME_PCT;
}

static bool is_same(const struct promise *a, const struct promise *b)
{
	return a->memory_given == b->memory_given &&
	       (!a->memory_given || a->quota_bytes == b->quota_bytes) &&
	       is_same_pct(a->cores_pct, b->cores_pct) && is_same_pct(a->limit_pct, b->limit_pct);
}

static bool is_same_memory(const struct promise *now, const struct promise_request *request)
{
	return now->memory_given == !request->memory_is_unpromised &&
	       (!now->memory_given || now->quota_bytes == request->memory_bytes);
}

static bool is_empty(const struct claim_override *override, unsigned device_count)
{
	bool is_any = override->has_on_full || override->has_priority;
	for (unsigned i = 0; i < device_count; i++)
		is_any |= override->device[i].has_memory || override->device[i].has_cores ||
			  override->device[i].has_limit;
	return !is_any;
}

static struct claim_original original_of(const struct claim *claim)
{
	const struct tenant_terms *terms = claim_terms(claim);
	struct claim_original original = { .on_full = terms->on_full, .priority = terms->priority };
	if (claim->original)
		return *claim->original;
	for (unsigned i = 0; i < terms->device_count; i++)
		original.promise[i] = terms->device[i].promise;
	return original;
}

int claims_load_original(struct claim *claim, const struct store_claim *written, struct error *err)
{
	if (!written->original_count)
		return 0;
	claim->original = malloc(sizeof(*claim->original));
	if (!claim->original)
		return error_set_errno(err, ENOMEM, "claim '%s'", written->terms.claim.key);
	*claim->original = written->original;
	return 0;
}

/*
 * Makes a request for all terms of a device: the override's terms, and the original value of each term that the override
 * lacks. If the original limit equals the original cores_pct, the limit follows an overridden cores_pct.
 */
static struct promise_request request_of(const struct promise *original,
					 const struct promise_request *override)
{
	struct promise_request r = *override;
	bool is_capped = original->limit_given &&
			 is_same_pct(original->limit_pct, original->cores_pct);
	if (!r.has_memory) {
		r.memory_is_unpromised = !original->memory_given;
		r.memory_bytes = original->quota_bytes;
	}
	if (!r.has_cores)
		r.cores_pct = original->cores_pct;
	if (!r.has_limit && original->limit_given) {
		r.has_limit = true;
		r.limit_pct = is_capped && r.has_cores && r.cores_pct > 0 ? r.cores_pct
									  : original->limit_pct;
	}
	r.has_memory = r.has_cores = true;
	return r;
}

static int plan_change(struct claim *claim, const struct claim_original *original,
		       const struct claim_override *override, struct terms_change *change,
		       bool *ret_changes, struct error *err)
{
	struct tenant *tenant = claim->tenant;
	bool changes = false;
	int r = terms_change_on_full(
		tenant, change, override->has_on_full ? override->on_full : original->on_full, err);
	change->priority = override->has_priority ? override->priority : original->priority;
	changes = change->on_full != tenant->terms.on_full ||
		  change->priority != tenant->terms.priority;
	for (unsigned i = 0; r >= 0 && i < tenant->terms.device_count; i++) {
		struct promise_request request = request_of(&original->promise[i],
							    &override->device[i]);
		struct promise now = tenant->terms.device[i].promise, from = original->promise[i];
		/* Do not request an unchanged quota again: it might not fit any more, although the tenant has it. */
		if (is_same_memory(&now, &request) && change->on_full == tenant->terms.on_full) {
			from.memory_given = now.memory_given;
			from.quota_bytes = now.quota_bytes;
			request.has_memory = false;
		}
		r = terms_change_device(tenant, change, i, &from, &request, err);
		changes |= r >= 0 && !is_same(&change->promise[i], &now);
	}
	*ret_changes = changes;
	return r;
}

static int override_terms(struct claim *claim, const struct claim_override *override,
			  bool *ret_changed, struct error *err)
{
	struct terms_change change = terms_change_of(claim->tenant);
	struct claim_original original = original_of(claim), *before = claim->original;
	bool is_nothing = is_empty(override, claim->tenant->terms.device_count), changes;
	*ret_changed = false;
	if (is_nothing && !before)
		return 0;
	int r = plan_change(claim, &original, override, &change, &changes, err);
	/*
	 * Save nothing if no term changes and claim->original (NULL while the claim has its original terms) need be neither set
	 * nor cleared.
	 */
	if (r < 0 || (!changes && !is_nothing == (before != NULL)))
		return r;
	struct claim_original *kept = is_nothing ? NULL : malloc(sizeof(*kept));
	if (!is_nothing && !kept)
		return error_set_errno(err, ENOMEM, "claim '%s'", claim_terms(claim)->claim.key);
	if (kept)
		*kept = original;
	/* set this first, because terms_change_make() saves claim->original with the terms */
	claim->original = kept;
	r = terms_change_make(claim->tenant, &change, err);
	claim->original = r < 0 ? before : kept;
	free(r < 0 ? kept : before);
	*ret_changed = r >= 0 && changes;
	return r;
}

int claims_override_terms(struct claim *claim, const struct claim_override *override,
			  bool *ret_changed, struct error *err)
{
	int r = claim_check_in_force(claim, err);
	return r < 0 ? r : override_terms(claim, override, ret_changed, err);
}

/* Returns true if the kubelet may request the claim again with its original terms, even after a user has changed the terms. */
static bool is_requested_again(const struct claim *claim)
{
	return !strncmp(claim_terms(claim)->claim.key, CLAIM_KEY_DRA, strlen(CLAIM_KEY_DRA));
}

int claims_set_terms(struct claims *claims, struct tenant *tenant,
		     const struct terms_change *change, struct error *err)
{
	struct claim *claim = claims ? claims_of_tenant(claims, tenant) : NULL;
	if (!claim || claim->original || !is_requested_again(claim))
		return terms_change_make(tenant, change, err);
	struct claim_original *original = malloc(sizeof(*original));
	if (!original)
		return error_set_errno(err, ENOMEM, "claim '%s'", claim_terms(claim)->claim.key);
	*original = original_of(claim);
	/* set this first, because terms_change_make() saves claim->original with the terms */
	claim->original = original;
	int r = terms_change_make(tenant, change, err);
	if (r < 0) {
		claim->original = NULL;
		free(original);
	}
	return r;
}
