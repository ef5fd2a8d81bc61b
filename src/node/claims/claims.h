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
#ifndef ALLOT_NODE_CLAIMS_CLAIMS_H
#define ALLOT_NODE_CLAIMS_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text_index.h"
#include "node/claims/slots.h"
#include "node/promise.h"
#include "node/tenant.h"

#define CLAIM_KEY_MAX \
	TENANT_CLAIM_MAX /* bytes, the final NUL included: a pod's UID, '/', a container's name */

struct node;
struct claims;

/* What is asked for. Nothing of it is kept by the callee. */
struct claim_request {
	const char *key; /* not empty; graphic ASCII */
	/*
	 * What the tenant is to be called, any text: what is no part of a name becomes '-', what is too
	 * long is cut, and where another tenant has the name its id is added. NULL: the key.
	 */
	const char *tenant;
	uid_t uid; /* whose it is: who may change the tenant. Root for the kubelet's */
	/*
	 * Ended by claims_reconcile() too, when nothing runs in it and nobody wants it any more. false: until
	 * claims_release(), by somebody who wrote it down.
	 */
	bool while_wanted;
	int priority;
	enum on_full on_full;
	uint64_t swap_arena_bytes; /* with ON_FULL_SWAP; 0: as much as the quotas */
	enum elastic_choice elastic;
	struct sharing_wish sharing;
	/* Kubernetes's, or "": its user's. NULL: the pod is not known, and so nobody it might share with by space. */
	const char *namespace_name;
	/*
	 * The container set CUDA_DISABLE_CONTROL. Honoured where the setting `allow_disable_control` is
	 * on; else logged, counted and ignored.
	 */
	bool wants_no_control;
	unsigned device_count; /* 1 to REGION_MAX_DEVICES */
	struct claim_device_request {
		struct card *card;            /* of this node; no card twice */
		struct promise_request terms; /* as a tenant asks; `waits` is set by on_full */
		struct slots slots;           /* none: it is not shown as slots */
	} device[REGION_MAX_DEVICES];
};

/* A claim, in force or parked. */
struct claim {
	TAILQ_ENTRY(claim) link;
	struct text_index_entry by_key; /* in the list's */
	struct claims *claims;
	int64_t row;        /* in the store; negative: not there yet, see claims_open() */
	uint64_t made_s;    /* since 1970 */
	uint64_t wanted_ns; /* when it was last seen to be needed: clock_now_ns() */
	/*
	 * NULL: parked, as a card of it is not there, or by now has no room. It keeps its slots and its key, and
	 * is put into force again by the next daemon that can.
	 */
	struct tenant *tenant;
	struct parked *parked; /* NULL unless parked; the claim's */
	/* What it was made with, while its terms are others by claims_wish(); NULL: they are not. The claim's. */
	struct claim_asked *asked;
};

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

/* Since the daemon started. */
struct claims_counts {
	uint64_t made, released;  /* by a caller */
	uint64_t expired;         /* by claims_reconcile() */
	uint64_t control_refused; /* CUDA_DISABLE_CONTROL asked for and not allowed */
	/* Allocations refused, by reason. */
	uint64_t refused_request; /* -EINVAL, -ENODEV, -EEXIST */
	uint64_t refused_full;    /* -ENOSPC of a card: memory, cores, slots */
	uint64_t refused_store;   /* the store could not be written: disk full, read-only */
	uint64_t refused_other;
	uint64_t stores_set_aside; /* torn, foreign or newer, rebuilt */
	uint64_t library_refused;  /* by node/trust/trust.h */
};

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
/* A parked claim has a tenant of that name or id, of which the node knows nothing. NULL claims have none. */
bool claims_has_parked(const struct claims *claims, const char *name_or_id);
struct claims_counts claims_counts(const struct claims *claims);

/*
 * Who else knows whether a while_wanted claim is needed, as the kubelet's pod-resources does.
 * Called by claims_reconcile() for each that nothing runs in; must not allocate or release. Several may
 * be set; a claim is kept while one of them says CLAIM_WANTED or CLAIM_UNKNOWN (it can't tell now).
 */
enum claim_need { CLAIM_UNWANTED, CLAIM_WANTED, CLAIM_UNKNOWN };
typedef enum claim_need (*claims_keep)(void *data, const struct claim *claim);
#define CLAIMS_MAX_KEEPS 4
int claims_add_keep(struct claims *claims, claims_keep keep, void *data);
void claims_remove_keep(struct claims *claims, claims_keep keep, void *data);

/*
 * Looks at every claim, now; also called every 30 s. A while_wanted claim in which no process
 * lives, and that nobody wants, since `claim_grace` (a setting), is released.
 */
void claims_reconcile(struct claims *claims);

/*
 * Other terms than a claim was made with, in all that is wished for. What is not wished for (has_ is false) is as it was
 * made; a wish for nothing gives all of that back.
 */
struct claim_wish {
	bool has_on_full, has_priority;
	enum on_full on_full;
	int priority;
	struct promise_request
		device[REGION_MAX_DEVICES]; /* in the order of its devices; `waits` does not count */
};
/*
 * Decides, puts into force and writes down; all or nothing. A cap that equals the guarantee follows it, unless it is wished
 * for as well. *ret_changed: false: it was all as wished for. -ENODEV: the claim is parked; errors else: node/terms_change.h.
 */
int claims_wish(struct claim *claim, const struct claim_wish *wish, bool *ret_changed,
		struct error *err);

/*
 * Writes down what `set` or claims_wish() changed of a claim's tenant (quotas, shares, on_full, priority, elastic), before it is
 * answered. -errno: the store could not be written, and says what it said before. 0 for a tenant of no claim.
 */
int claims_terms_changed(struct claims *claims, const struct tenant *tenant, struct error *err);

#endif
