/*
 * Between the parts of claims: claims.c allocates and releases, undo.c takes back, start.c reads the store and
 * puts what it says into force, reconcile.c ends what nobody needs. Main thread only.
 */
#pragma once

#include "daemon/containers/claims/claim.h"
#include "daemon/containers/claims/holders.h"
#include "daemon/containers/claims/library.h"
#include "daemon/containers/claims/state_dir.h"
#include "daemon/containers/claims/store.h"
#include "daemon/containers/trust/trust.h"
#include "daemon/state/node/node.h"

#define CLAIMS_STORE_LEAF "claims.db"

struct parked {
	struct store_claim as_written; /* cards that are there are found, others NULL */
	char why[160];
};

TAILQ_HEAD(claim_list, claim);

struct claims {
	struct node *node;
	struct claim_list list;
	struct text_index keys;
	struct holders holders;
	unsigned count, parked_count;
	char dir[STATE_DIR_MAX];
	char path[STATE_DIR_MAX + 16];
	struct store *store; /* NULL: there is none yet, or it can't be used */
	bool has_complained; /* ... which the log has */
	/* Rows of claims that were taken back while the store could not be written. */
	int64_t *undone;
	size_t undone_count;
	struct loop_source *timer, *checkpoint_timer;
	struct claims_counts counts;
	struct library library; /* name "": not installed yet */
	struct trust *trust;    /* NULL: any library will do */
	struct {
		claims_keep keep;
		void *data;
	} keep[CLAIMS_MAX_KEEPS];
	unsigned keep_count;
};

/*
 * Makes sure that the store is open, and that what it says is in force. make: also makes it where there is
 * none. 0 without a store where there is none and none is made.
 */
int claims_use_store(struct claims *claims, bool make, struct error *err);
/* A store that was found torn while it was in use: sets it aside, and writes all that there is to a new one. */
int claims_renew_store(struct claims *claims, struct error *err);

/*
 * Begins a transaction; the rows of claims that were taken back go with it. Undone by store_rollback() after
 * any error.
 */
int claims_begin(struct claims *claims, struct error *err);
/* Was the claim of this row taken back? */
bool claims_is_undone(const struct claims *claims, int64_t row);
/* Tries to delete what is left of claims that were taken back. */
void claims_delete_undone(struct claims *claims);
/* Commits; the store's log is brought into its file a little later, when nobody waits for it. */
int claims_commit(struct claims *claims, struct error *err);
void claims_checkpoint_due(void *data, uint32_t events);

/* Adds to the list. Takes `parked` over, in any case. NULL: out of memory. */
struct claim *claims_add(struct claims *claims, int64_t row, uint64_t made_s, struct tenant *tenant,
			 struct parked *parked);
/* The claim's slots are its own from here on; no longer. -ENOMEM: some of them may be. */
int claims_hold(struct claim *claim);
void claims_let_go(struct claim *claim);
/* What the store says of what it was made with. -ENOMEM. */
int claims_take_asked(struct claim *claim, const struct store_claim *written, struct error *err);
/* Takes the claim off the list and frees it; its tenant, or what is left of one, is ended. */
void claims_end(struct claim *claim, const char *why);

/* Puts the library where containers have it from, once. */
int claims_install_library(struct claims *claims, struct error *err);
/* The same, where containers do not have it from elsewhere. */
int claims_prepare_library(struct claims *claims, struct error *err);
/* Whether the one that containers would get is as signed: daemon/containers/trust/trust.h. */
int claims_check_library(struct claims *claims, struct error *err);

/* May it be a claim's key? -EINVAL with what would be right. */
int claims_check_key(const char *key, struct error *err);
/* A tenant's name of any text: .tenant of a claim_request; `id` is the tenant's. */
void claims_make_name(const struct claims *claims, const char *wish, const char *id,
		      char name[REGION_NAME_MAX]);

/* What is to be written down of a claim. */
void claims_describe(const struct claim *claim, struct store_claim *ret);
