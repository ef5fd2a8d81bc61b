/*
 * A claim is one container's right to shares of cards, with a tenant of its own. It is stored before its request is answered,
 * and lives until it is released, across restarts of the daemon and the machine. Processes come and go in it.
 *
 * A claim is kept in two places. The store (store.h, SQLite) says which claims exist and what each was promised; a tenant whose
 * claim is not in the store is removed. The tenant's state file (tenant_state.h) says which processes run in it; if that file
 * is lost, the tenant is made again from the store.
 *
 * Callers choose the keys, such as "pod/<UID>/<container>" (daemon/kubelet/devices/pod_key.h) or "cdi/<name>" for `allot cdi`.
 *
 * Main thread of the daemon only. The struct claims owns the claims. A pointer to a claim is valid until the claim is released
 * or claims_close().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "daemon/containers/claims/claim.h"

/*
 * Returns the terms promised to a claim: terms.claim.*, terms.name (of the tenant), terms.device[i].promise and .slots. Never
 * NULL. The cards of a parked claim may be NULL; claim_uuid() identifies them.
 */
const struct tenant_terms *claim_terms(const struct claim *claim);
const char *claim_uuid(const struct claim *claim, unsigned device);
/* Returns the original promise for a device: as made with the claim, before claims_wish(). */
const struct promise *claim_asked_promise(const struct claim *claim, unsigned device);
/* Returns why the claim is parked; "" if it is in force. */
const char *claim_parked_why(const struct claim *claim);

/*
 * Reads the store, if there is one (the first allocation makes it), and puts every claim into
 * force. Call after adopt_all(): a claim gets its tenant that was adopted, or else a new one.
 * Adopted tenants whose claims are not in the store are removed. A store that is torn, foreign or
 * newer than this program is renamed to "<name>.bad-<time>", logged, and rebuilt from the adopted
 * tenants.
 *
 * Returns 0 even if the store cannot be used, for example because the disk is full. Each later
 * allocation then tries again to open the store, and is rejected with the reason if that fails.
 * Returns -ENOMEM if out of memory.
 */
int claims_open(struct node *node, struct claims **ret, struct error *err);
/* Frees the claims in memory. The store and the tenants stay. NULL is allowed; returns NULL. */
struct claims *claims_close(struct claims *claims);

/*
 * Makes a claim: checks whether its terms fit, stores it on disk in one transaction, and makes its
 * tenant; all or nothing. Returns -EINVAL or -ENODEV for a wrong request; -EEXIST if the key is in
 * use (claims_find() finds it) or another claim has a slot (the text names it); -ENOSPC if the card
 * has no room or the disk is full; -EBUSY if the card is cordoned; -EIO if it is unhealthy; or
 * another -errno of the system. On failure nothing has changed.
 */
int claims_allocate(struct claims *claims, const struct claim_request *request, struct claim **ret,
		    struct error *err);
/*
 * Removes the claim from the store and then ends its tenant, at once or with the last of its
 * processes (tenant_retire()). `key` may point to the claim's own text. Returns -ENOENT if there is
 * no such key. On another -errno the store could not be written, and the claim is unchanged.
 */
int claims_release(struct claims *claims, const char *key, const char *why, struct error *err);

/*
 * Takes back a claim whose owner was never told about it. Its promise and its tenant end at once,
 * even if the store cannot be written. In that case its row is deleted as soon as possible; if the
 * daemon ends before that, the next daemon has the claim again. Does nothing if there is no such
 * key.
 */
void claims_undo(struct claims *claims, const char *key, const char *why);

/*
 * Gives the claim another key and its tenant another name (made from `tenant` as in a
 * claim_request), because another container turned out to hold the claim. Its processes continue.
 * Returns -EEXIST if the key is in use, -EINVAL if the key is invalid, -ENODEV if the claim is
 * parked. On another -errno the store could not be written. After an error nothing has changed.
 */
int claims_rename(struct claim *claim, const char *key, const char *tenant, struct error *err);

/* claims_find() finds a claim by its key, claims_of_tenant() by its tenant. Both return NULL if there is none. */
struct claim *claims_find(struct claims *claims, const char *key);
struct claim *claims_of_tenant(struct claims *claims, const struct tenant *tenant);
/*
 * Finds the lowest of these slots of the card that a claim has. Returns that claim, and the slot in *ret_slot; NULL if all of
 * the slots are free.
 */
struct claim *claims_holder(struct claims *claims, const char *uuid, const struct slots *slots,
			    unsigned *ret_slot);
/* Iterate over the claims, oldest first. Both return NULL at the end. */
struct claim *claims_first(struct claims *claims);
struct claim *claims_next(struct claim *claim);
unsigned claims_count(const struct claims *claims);
/* Makes an id that no tenant and no claim has. */
int claims_make_tenant_id(struct node *node, char id[TENANT_ID_MAX], struct error *err);
/*
 * Returns true if a parked claim's tenant has that name or id: both stay taken, although the node does not list the tenant.
 * Returns false if `claims` is NULL.
 */
bool claims_has_parked(const struct claims *claims, const char *name_or_id);
struct claims_counts claims_counts(const struct claims *claims);

/*
 * Adds or removes a callback that decides whether claims are needed. Adding returns -ENOSPC if
 * there are CLAIMS_MAX_KEEPS.
 */
int claims_add_keep(struct claims *claims, claims_keep keep, void *data);
void claims_remove_keep(struct claims *claims, claims_keep keep, void *data);

/*
 * Checks every claim now. Releases a while_wanted claim if it had no live process and nothing
 * needed it at each check for `claim_grace` (a setting). Also called every `claim_look`.
 */
void claims_reconcile(struct claims *claims);

/*
 * Changes the claim's terms to the wish: checks whether they fit, puts them into force and stores
 * them; all or nothing. A limit that equals the guarantee changes with it, unless the wish gives a
 * limit too. *ret_changed is false if the terms were already as wished. Returns -ENODEV if the
 * claim is parked, or the errors of daemon/api/terms_change.h.
 */
int claims_wish(struct claim *claim, const struct claim_wish *wish, bool *ret_changed,
		struct error *err);

/*
 * Stores the terms of a claim's tenant that `set` or claims_wish() changed (quotas, shares,
 * on_full, priority, elastic). Call before replying. On -errno the store could not be written and
 * holds the previous terms. Returns 0 if the tenant has no claim.
 */
int claims_terms_changed(struct claims *claims, const struct tenant *tenant, struct error *err);
