/* Ends while_wanted claims when no process runs in them and no claims_need_check callback needs them any more. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/containers/claims/claims_inside.h"

int claims_add_need_check(struct claims *claims, claims_need_check keep, void *data,
			  struct error *err)
{
	if (claims->keep_count == CLAIMS_MAX_NEED_CHECKS)
		return error_set(
			err, ENOSPC,
			"a table of allotd is full (checks of which claims are needed); this is "
			"a fault of allotd: please report it");
	claims->keep[claims->keep_count].keep = keep;
	claims->keep[claims->keep_count++].data = data;
	return 0;
}

void claims_remove_need_check(struct claims *claims, claims_need_check keep, void *data)
{
	for (unsigned i = 0; i < claims->keep_count; i++) {
		if (claims->keep[i].keep != keep || claims->keep[i].data != data)
			continue;
		claims->keep[i] = claims->keep[--claims->keep_count];
		return;
	}
}

/* A process of an earlier daemon's tenant counts even before it reconnects. */
static bool is_lived_in(const struct claim *claim)
{
	return claim->tenant && tenant_living_count(claim->tenant) > 0;
}

static bool is_needed(const struct claims *claims, const struct claim *claim)
{
	if (!claim_terms(claim)->claim.while_wanted || is_lived_in(claim))
		return true;
	for (unsigned i = 0; i < claims->keep_count; i++)
		if (claims->keep[i].keep(claims->keep[i].data, claim) != CLAIM_UNWANTED)
			return true;
	return false;
}

void claims_reconcile(struct claims *claims)
{
	uint64_t now_ns = clock_now_ns();
	struct claim *next;
	if (claims_use_store(claims, false, NULL) < 0)
		return;
	claims_delete_undone(claims);
	for (struct claim *c = claims_first(claims); c; c = next) {
		char key[CLAIM_KEY_MAX];
		struct error err = { 0 };
		next = claims_next(c);
		if (is_needed(claims, c)) {
			c->unwanted_ns = 0;
			continue;
		}
		if (!c->unwanted_ns)
			c->unwanted_ns = now_ns;
		if (now_ns - c->unwanted_ns < claims->node->config.claim_grace_ns)
			continue;
		snprintf(key, sizeof(key), "%s", claim_terms(c)->claim.key);
		if (claims_release(claims, key,
				   "no process runs in it, and no pod needs it any more", &err) < 0) {
			log_warning("claim '%s' can't be released: %s; trying again", key, err.text);
			continue;
		}
		claims->counts.released--;
		claims->counts.expired++;
		log_info("claim '%s': released: no process runs in it, and no pod needs it any more",
			 key);
	}
}
