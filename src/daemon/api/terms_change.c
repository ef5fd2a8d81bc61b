#include "daemon/api/terms_change.h"

#include <errno.h>

#include "daemon/containers/claims/claims.h"
#include "daemon/memory/memory_waiters.h"
#include "daemon/state/card_promises.h"
#include "daemon/state/node/subsystem.h"
#include "daemon/state/tenant_state.h"

struct terms_change terms_change_of(const struct tenant *tenant)
{
	struct terms_change c = { .on_full = tenant->terms.on_full,
				  .elastic = tenant->terms.elastic,
				  .on_violation = tenant->terms.on_violation,
				  .priority = tenant->terms.priority };
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		c.promise[i] = tenant->terms.device[i].promise;
	return c;
}

int terms_change_on_full(const struct tenant *tenant, struct terms_change *change,
			 enum on_full on_full, struct error *err)
{
	enum on_full now = tenant->terms.on_full;
	if (on_full != now && (on_full == ON_FULL_SWAP || now == ON_FULL_SWAP))
		return error_set(
			err, EOPNOTSUPP,
			"on_full '%s': must stay '%s': a change to or from swap needs a new tenant or container",
			on_full_name(on_full), on_full_name(now));
	change->on_full = on_full;
	return 0;
}

int terms_change_device(struct tenant *tenant, struct terms_change *change, unsigned device,
			const struct promise *from, const struct promise_request *request,
			struct error *err)
{
	const struct tenant_device_terms *d = &tenant->terms.device[device];
	struct promise_card others = node_promised(tenant->node, d->card, tenant);
	struct promise_request wanted = *request;
	wanted.waits = change->on_full == ON_FULL_WAIT;
	others.is_movable = change->on_full == ON_FULL_SWAP;
	int r = promise_decide(&others, from ? from : &d->promise,
			       tenant_usage(tenant, device).used_bytes, &wanted,
			       &change->promise[device], err);
	if (r >= 0)
		change->changes[device] = true;
	return r;
}

/*
 * Saves the terms at once in the tenant's state file. If the tenant has a claim, saves them at once in the claims store, and a
 * little later in the state file.
 */
static int write_down(struct tenant *tenant, struct error *err)
{
	if (!*tenant->terms.claim.key)
		return tenant_state_save(tenant, true, err);
	tenant_save_soon(tenant);
	return claims_terms_changed(tenant->node->claims, tenant, err);
}

static void apply_terms(struct tenant *tenant, const struct terms_change *c, const bool *changes)
{
	tenant_set_priority(tenant, c->priority);
	for (unsigned i = 0; i < tenant->terms.device_count; i++)
		if (changes[i])
			tenant_set_promise(tenant, i, &c->promise[i]);
	/* Set on_full after the quotas: a tenant that no longer waits may at once allocate up to its quota. */
	memory_wait_set_on_full(tenant, c->on_full);
	tenant_set_elastic(tenant, c->elastic);
	tenant->terms.on_violation = c->on_violation;
}

/* Checks the new quotas again: since promise_decide() checked them, the tenant may have allocated more. */
static int check_held(struct tenant *tenant, const struct terms_change *before, struct error *err)
{
	for (unsigned i = 0; i < tenant->terms.device_count; i++) {
		uint64_t quota = tenant->terms.device[i].promise.quota_bytes;
		uint64_t held = tenant_usage(tenant, i).used_bytes;
		if (held > quota && quota < before->promise[i].quota_bytes)
			return error_set(
				err, EBUSY,
				"GPU %u: the tenant already holds %.1f MiB: the quota must be at least that",
				tenant->terms.device[i].card->index, (double)held / (1 << 20));
	}
	return 0;
}

int terms_change_make(struct tenant *tenant, const struct terms_change *change, struct error *err)
{
	struct terms_change before = terms_change_of(tenant);
	apply_terms(tenant, change, change->changes);
	int r = check_held(tenant, &before, err);
	if (r >= 0)
		r = write_down(tenant, err);
	if (r < 0)
		apply_terms(tenant, &before, change->changes);
	notify_tenants_changed(tenant->node);
	return r;
}
