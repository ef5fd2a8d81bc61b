/* Renames a claim when the kubelet's list shows that another container holds it. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "daemon/arbitrate/arbitration.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/containers/claims/claims_inside.h"
#include "daemon/state/tenant_state.h"
#include "daemon/tasks/violation/violations.h"
#include "daemon/tasks/watch/gpu_watch.h"

/* Both indexes' entries point to the key or the name: remove them before the change, and add them again after it. */
static void set_terms(struct claim *claim, const char *key, const char *name)
{
	struct tenant *tenant = claim->tenant;
	struct tenant_terms *terms = &tenant->terms;
	text_index_remove(&claim->claims->keys, &claim->by_key);
	text_index_remove(&tenant->node->tenant_names, &tenant->by_name);
	strcpy(terms->claim.key, key);
	strcpy(terms->name, name);
	strcpy(tenant->region.control->tenant_name, name);
	for (unsigned i = 0; i < terms->device_count; i++)
		lessee_rename(tenant->device[i].lessee, name);
	text_index_add(&claim->claims->keys, &claim->by_key, terms->claim.key, claim);
	text_index_add(&tenant->node->tenant_names, &tenant->by_name, terms->name, tenant);
}

int claims_rename(struct claim *claim, const char *key, const char *tenant, struct error *err)
{
	struct claims *claims = claim->claims;
	char old_key[TENANT_CLAIM_MAX], old_name[REGION_NAME_MAX], name[REGION_NAME_MAX];
	struct error why = { 0 };
	int r = claims_check_key(key, err);
	if (r < 0)
		return r;
	r = claim_check_in_force(claim, err);
	if (r < 0)
		return r;
	if (claims_find(claims, key))
		return error_set(err, EEXIST, "claim '%s' already exists", key);
	struct tenant_terms *terms = &claim->tenant->terms;
	strcpy(old_key, terms->claim.key);
	strcpy(old_name, terms->name);
	claims_make_name(claims, tenant, terms->id, name);
	set_terms(claim, key, name);
	r = claims_terms_changed(claims, claim->tenant, err);
	if (r < 0) {
		set_terms(claim, old_key, old_name);
		return error_add(err, r, "claim '%s'", old_key);
	}
	/* The state file can be written later: where file and store differ, the store is right. */
	if (tenant_state_save(claim->tenant, false, &why) < 0) {
		log_warning("tenant '%s': its state can't be saved: %s; trying again", name,
			    why.text);
		tenant_save_soon(claim->tenant);
	}
	gpu_watch_rename_tenant(claims->node->watch, old_name, name);
	violations_rename_tenant(claims->node->violations, old_name, name);
	return 0;
}
