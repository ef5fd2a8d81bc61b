/*
 * Claims: one container's right to shares of cards, each with a tenant of its own. A claim is written
 * down before it is answered and lives until it is released, over restarts of the daemon and of the
 * machine; processes come and go in it.
 *
 * Two places, two facts. The store (store.h, SQLite) says which claims there are and what was promised
 * to each: a tenant without a claim in the store is none. The tenant's state file (tenant_state.h)
 * says what runs in it; it may be lost at any time, and the tenant is made anew from the store.
 *
 * Keys are the caller's: "<pod UID>/<container>" for the kubelet's, "cdi/<name>" for `allot cdi`.
 *
 * Main thread of the daemon only. Claims stay the list's; a pointer is good until the claim is released
 * or claims_close().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "daemon/containers/claims/claim.h"

/*
 * What was promised to it: terms.claim.key, terms.claim.*, terms.name (the tenant's), terms.device[i].promise
 * and .slots. A parked claim's cards may be NULL: claim_uuid() says which they are. Never NULL.
 */
const struct tenant_terms *claim_terms(const struct claim *claim);
const char *claim_uuid(const struct claim *claim, unsigned device);
/* What was promised of a device when it was made. */
const struct promise *claim_asked_promise(const struct claim *claim, unsigned device);
/* "": it is in force. */
const char *claim_parked_why(const struct claim *claim);

/*
 * Reads the store, if there is one (it is made by the first allocation), and puts every claim into
 * force: its tenant was adopted (call after adopt_all()) or is made anew. A store that is torn, foreign or
 * newer than this program is renamed to "<name>.bad-<time>", logged, and rebuilt from the tenants that
 * were adopted. Adopted tenants of claims that the store does not have are removed.
 *
 * 0 also when the store can't be used, as for a full disk: allocations are then refused with the reason,
 * and each tries again. -ENOMEM.
 */
int claims_open(struct node *node, struct claims **ret, struct error *err);
/* Forgets all; the store and the tenants stay. NULL is fine; returns NULL. */
struct claims *claims_close(struct claims *claims);

/*
 * Decides, writes down (one transaction, on disk when this returns), and makes the tenant; all or
 * nothing. -EINVAL, -ENODEV: the request; -EEXIST: the key is in use (claims_find() has it), or a slot is
 * another claim's, which the text names; -ENOSPC: the card has no room, or the disk; -EBUSY, -EIO: the card
 * is cordoned, or not well; others as the system said. On any failure the state is as before.
 */
int claims_allocate(struct claims *claims, const struct claim_request *request, struct claim **ret,
		    struct error *err);
/*
 * Takes the claim out of the store, then ends its tenant: at once, or with the processes that still run
 * in it (tenant_retire()). The key may be the claim's own text. -ENOENT: no such key; others: the store
 * could not be written, and the claim is as before.
 */
int claims_release(struct claims *claims, const char *key, const char *why, struct error *err);

/*
 * Takes back a claim whose owner was never told of it. Its promise and its tenant end at once, also when the
 * store can't be written: then its row is deleted as soon as that is possible. A daemon that ends before
 * that comes back with the claim. Nothing happens where there is no such key.
 */
void claims_undo(struct claims *claims, const char *key, const char *why);

/*
 * The claim is another's by now, as who held it was not known for sure: another key, and another name of its tenant, as
 * `tenant` of a claim_request. What runs in it goes on. -EEXIST: the key is in use; -EINVAL: it can't be one; -ENODEV: the
 * claim is parked; others: the store could not be written; and all is as before.
 */
int claims_rename(struct claim *claim, const char *key, const char *tenant, struct error *err);

/* NULL: none of that key; none of that tenant. */
struct claim *claims_find(struct claims *claims, const char *key);
struct claim *claims_of_tenant(struct claims *claims, const struct tenant *tenant);
/* Who has the lowest of these slots of a card that anyone has, and which that is. NULL: nobody has any. */
struct claim *claims_holder(struct claims *claims, const char *uuid, const struct slots *slots,
			    unsigned *ret_slot);
/* The first, and the one after `claim`, in the order in which they were made; NULL at the end. */
struct claim *claims_first(struct claims *claims);
struct claim *claims_next(struct claim *claim);
unsigned claims_count(const struct claims *claims);
/* An id that no tenant and no claim has. */
int claims_make_tenant_id(struct node *node, char id[TENANT_ID_MAX], struct error *err);
/* A parked claim has a tenant of that name or id, of which the node knows nothing. NULL claims have none. */
bool claims_has_parked(const struct claims *claims, const char *name_or_id);
struct claims_counts claims_counts(const struct claims *claims);

int claims_add_keep(struct claims *claims, claims_keep keep, void *data);
void claims_remove_keep(struct claims *claims, claims_keep keep, void *data);

/*
 * Looks at every claim, now; also called every 30 s. A while_wanted claim in which no process
 * lives, and that nobody wants, since `claim_grace` (a setting), is released.
 */
void claims_reconcile(struct claims *claims);

/*
 * Decides, puts into force and writes down; all or nothing. A cap that equals the guarantee follows it, unless it is wished
 * for as well. *ret_changed: false: it was all as wished for. -ENODEV: the claim is parked; errors else: daemon/api/terms_change.h.
 */
int claims_wish(struct claim *claim, const struct claim_wish *wish, bool *ret_changed,
		struct error *err);

/*
 * Writes down what `set` or claims_wish() changed of a claim's tenant (quotas, shares, on_full, priority, elastic), before it is
 * answered. -errno: the store could not be written, and says what it said before. 0 for a tenant of no claim.
 */
int claims_terms_changed(struct claims *claims, const struct tenant *tenant, struct error *err);
