/*
 * A claim is one container's right to shares of cards (memory, GPU time), with a tenant of its own. It is stored before its
 * request is answered, and lives until released, across restarts of the daemon and the machine.
 *
 * The store (store.h) decides which claims exist and what each was promised; a tenant whose claim is missing there is removed.
 * The tenant's state file (tenant_state.h) tells which processes run in the tenant. If the file is lost, allotd makes the
 * tenant again from the store.
 *
 * A claim is parked if it cannot be put into force, because a card is missing or has no room. A slot is one of the equal parts
 * of a card that the kubelet counts. Callers choose the keys, such as "pod/<UID>/<container>"
 * (daemon/kubelet/devices/pod_key.h) or "cdi/<name>".
 *
 * Main thread only. Claims belong to struct claims: a pointer is valid until the claim's release or claims_close().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "daemon/containers/claims/claim.h"

struct terms_change; /* daemon/api/terms_change.h */

/* Returns the claim's terms, never NULL. The cards in a parked claim's terms may be NULL; claim_uuid() identifies them. */
const struct tenant_terms *claim_terms(const struct claim *claim);
const char *claim_uuid(const struct claim *claim, unsigned device);
/* Returns the promise made with the claim, before claims_override_terms() and claims_set_terms(). */
const struct promise *claim_original_promise(const struct claim *claim, unsigned device);
/* Returns why the claim is parked, or "". */
const char *claim_parked_reason(const struct claim *claim);
/* Returns -ENODEV if the claim is parked. */
int claim_check_in_force(const struct claim *claim, struct error *err);

/*
 * Reads the store, if there is one, and puts its claims into force. Call after adopt_all() has taken over the former daemon's
 * tenants: these keep their claims, other claims get a new tenant, and a taken-over tenant whose claim is not stored is
 * removed. A store that is damaged, is another program's or has a newer schema is renamed to "<name>.bad-<time>" and rebuilt
 * from the tenants that were taken over.
 *
 * Returns 0 even if the store cannot be used, for example on a full disk: each allocation then tries again to use it. Returns
 * -errno if out of memory, or if no timer can be made.
 */
int claims_open(struct node *node, struct claims **ret, struct error *err);
/* Frees the claims in memory. The store and the tenants stay. NULL is allowed; returns NULL. */
struct claims *claims_close(struct claims *claims);

/*
 * Checks whether the terms fit, stores the claim on disk and makes its tenant: all or nothing. Returns -EINVAL or -ENODEV
 * for a wrong request; -EEXIST if another claim has the key or one of the slots; -ENOSPC if the card or the disk is full;
 * -EBUSY if the card is cordoned; -EIO if it is unhealthy; or another -errno.
 */
int claims_allocate(struct claims *claims, const struct claim_request *request, struct claim **ret,
		    struct error *err);
/*
 * Removes the claim from the store, then ends its tenant, at once or with its last process (tenant_retire()). `key` may point
 * into the claim itself. Returns -ENOENT if no claim has this key. After another -errno the claim is unchanged.
 */
int claims_release(struct claims *claims, const char *key, const char *why, struct error *err);

/*
 * Takes back a claim that was not yet reported to its requester. Its promise and tenant end at once, even if the store cannot
 * be written. Its row is then deleted later; if the daemon ends before that, the claim survives. Ignores an unknown key.
 */
void claims_undo(struct claims *claims, const char *key, const char *why);

/*
 * Gives the claim another key, and its tenant a name made from `tenant` (as in claim_request). Needed when the kubelet's list
 * shows that another container holds the claim's devices. Returns -EEXIST if the key is in use, -EINVAL if the key is
 * malformed, -ENODEV if the claim is parked (not in force, see the top of this file), or an -errno of the store. After an error
 * nothing has changed.
 */
int claims_rename(struct claim *claim, const char *key, const char *tenant, struct error *err);

/* NULL if there is none */
struct claim *claims_find(struct claims *claims, const char *key);
struct claim *claims_of_tenant(struct claims *claims, const struct tenant *tenant);
/* Returns the claim that has the lowest taken slot of `slots` and, in *ret_slot, that slot. NULL if none is taken. */
struct claim *claims_holder(struct claims *claims, const char *uuid, const struct slots *slots,
			    unsigned *ret_slot);
/* oldest first; NULL at the end */
struct claim *claims_first(struct claims *claims);
struct claim *claims_next(struct claim *claim);
unsigned claims_count(const struct claims *claims);
/* Makes an id that no tenant and no parked claim has. Returns 0 or -errno. */
int claims_make_tenant_id(struct node *node, char id[TENANT_ID_MAX], struct error *err);
/*
 * Returns true if a tenant has this name or id, even the tenant of a parked claim, which the node does not list. node->claims
 * may be NULL.
 */
bool claims_has_name(struct node *node, const char *name_or_id);
/* Returns -EEXIST if claims_has_name(). */
int claims_check_name(struct node *node, const char *name, struct error *err);
struct claims_counts claims_counts(const struct claims *claims);

/* Adding returns -ENOSPC beyond CLAIMS_MAX_NEED_CHECKS. */
int claims_add_need_check(struct claims *claims, claims_need_check keep, void *data,
			  struct error *err);
void claims_remove_need_check(struct claims *claims, claims_need_check keep, void *data);

/*
 * Checks each while_wanted claim. Releases it once all checks during `claim_grace` (a setting) have found no live process in it
 * and no need for it. Runs by itself every `claim_look` (a setting).
 */
void claims_reconcile(struct claims *claims);

/*
 * Changes, stores and enforces the terms of the override: all or nothing. A limit that equals the guarantee changes with the
 * guarantee, unless the override sets the limit. *ret_changed is false if nothing differed. Returns -ENODEV if parked, or the
 * errors of daemon/api/terms_change.h.
 */
int claims_override_terms(struct claim *claim, const struct claim_override *override,
			  bool *ret_changed, struct error *err);

/*
 * Changes a tenant's terms for a user (allot set). A claim for a ResourceClaim also keeps its original terms, because later
 * requests for the claim are compared with them. The tenant may have no claim, and `claims` may be NULL. Returns the errors of
 * terms_change_make(); then nothing has changed.
 */
int claims_set_terms(struct claims *claims, struct tenant *tenant,
		     const struct terms_change *change, struct error *err);

/*
 * Stores changed terms of a claim's tenant (quotas, shares, on_full, priority, elastic). Call before replying. On -errno
 * the store holds the previous terms. Returns 0 for a tenant without a claim.
 */
int claims_terms_changed(struct claims *claims, const struct tenant *tenant, struct error *err);
