/*
 * Changes the terms of claims, and keeps the original terms to undo the change.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/api/terms_change.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/containers/claims/claims_inside.h"

#define SAME_PCT 0.005 /* shares have two decimals */

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

static bool is_for_nothing(const struct claim_wish *wish, unsigned device_count)
{
	bool is_any = wish->has_on_full || wish->has_priority;
	for (unsigned i = 0; i < device_count; i++)
		is_any |= wish->device[i].has_memory || wish->device[i].has_cores ||
			  wish->device[i].has_limit;
	return !is_any;
}

static struct claim_asked asked_of(const struct claim *claim)
{
	const struct tenant_terms *terms = claim_terms(claim);
	struct claim_asked asked = { .on_full = terms->on_full, .priority = terms->priority };
	if (claim->asked)
		return *claim->asked;
	for (unsigned i = 0; i < terms->device_count; i++)
		asked.promise[i] = terms->device[i].promise;
	return asked;
}

int claims_take_asked(struct claim *claim, const struct store_claim *written, struct error *err)
{
	if (!written->asked_count)
		return 0;
	claim->asked = malloc(sizeof(*claim->asked));
	if (!claim->asked)
		return error_set_errno(err, ENOMEM, "claim '%s'", written->terms.claim.key);
	*claim->asked = written->asked;
	return 0;
}

/* Makes a request for all terms of a device: those of the wish, and the original ones otherwise. */
static struct promise_request request_of(const struct promise *asked,
					 const struct promise_request *wish)
{
	struct promise_request r = *wish;
	bool is_capped = asked->limit_given && is_same_pct(asked->limit_pct, asked->cores_pct);
	if (!r.has_memory) {
		r.memory_is_unpromised = !asked->memory_given;
		r.memory_bytes = asked->quota_bytes;
	}
	if (!r.has_cores)
		r.cores_pct = asked->cores_pct;
	if (!r.has_limit && asked->limit_given) {
		r.has_limit = true;
		r.limit_pct = is_capped && r.has_cores && r.cores_pct > 0 ? r.cores_pct
									  : asked->limit_pct;
	}
	r.has_memory = r.has_cores = true;
	return r;
}

static int decide(struct claim *claim, const struct claim_asked *asked,
		  const struct claim_wish *wish, struct terms_change *change, bool *ret_changes,
		  struct error *err)
{
	struct tenant *tenant = claim->tenant;
	bool changes = false;
	int r = terms_change_on_full(tenant, change,
				     wish->has_on_full ? wish->on_full : asked->on_full, err);
	change->priority = wish->has_priority ? wish->priority : asked->priority;
	changes = change->on_full != tenant->terms.on_full ||
		  change->priority != tenant->terms.priority;
	for (unsigned i = 0; r >= 0 && i < tenant->terms.device_count; i++) {
		struct promise_request request = request_of(&asked->promise[i], &wish->device[i]);
		struct promise now = tenant->terms.device[i].promise, from = asked->promise[i];
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

static int wish_for(struct claim *claim, const struct claim_wish *wish, bool *ret_changed,
		    struct error *err)
{
	struct terms_change change = terms_change_of(claim->tenant);
	struct claim_asked asked = asked_of(claim), *before = claim->asked;
	bool is_nothing = is_for_nothing(wish, claim->tenant->terms.device_count), changes;
	*ret_changed = false;
	if (is_nothing && !before)
		return 0;
	int r = decide(claim, &asked, wish, &change, &changes, err);
	/*
	 * claim->asked must be set while a wish is in force and NULL otherwise. If that is so and no term changes, nothing
	 * is to be saved.
	 */
	if (r < 0 || (!changes && !is_nothing == (before != NULL)))
		return r;
	struct claim_asked *kept = is_nothing ? NULL : malloc(sizeof(*kept));
	if (!is_nothing && !kept)
		return error_set_errno(err, ENOMEM, "claim '%s'", claim_terms(claim)->claim.key);
	if (kept)
		*kept = asked;
	/* set before the change is made, because that saves claim->asked too */
	claim->asked = kept;
	r = terms_change_make(claim->tenant, &change, err);
	claim->asked = r < 0 ? before : kept;
	free(r < 0 ? kept : before);
	*ret_changed = r >= 0 && changes;
	return r;
}

int claims_wish(struct claim *claim, const struct claim_wish *wish, bool *ret_changed,
		struct error *err)
{
	if (claim->tenant)
		return wish_for(claim, wish, ret_changed, err);
	return error_set(err, ENODEV, "claim '%s' is not in force: %s",
			 claim_terms(claim)->claim.key, claim->parked->why);
}
