/*
 * Shared by the files of claims: claims.c allocates and releases claims, undo.c takes back claims that were not reported yet,
 * rename.c renames claims, start.c reads the store and puts its claims into force, end_unneeded.c ends claims that nothing
 * needs. Main thread only.
 */
#pragma once

#include "daemon/containers/claims/claim.h"
#include "daemon/containers/claims/holders.h"
#include "daemon/containers/claims/library_copy.h"
#include "daemon/containers/claims/state_dir.h"
#include "daemon/containers/claims/store.h"
#include "daemon/containers/trust/trust.h"
#include "daemon/state/node/node.h"

#define CLAIMS_STORE_LEAF "claims.db"

struct parked {
	struct store_claim as_written; /* cards that are missing are NULL */
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
	struct store *store; /* NULL: not made yet, or unusable */
	bool is_failure_logged;
	/* rows still to be deleted, of claims that claims_undo() took back while the store could not be written */
	int64_t *undone;
	size_t undone_count;
	struct loop_source *timer, *checkpoint_timer;
	struct claims_counts counts;
	struct library library; /* name "": not installed yet */
	struct trust *trust;    /* NULL: any library is accepted */
	struct {
		claims_need_check keep;
		void *data;
	} keep[CLAIMS_MAX_NEED_CHECKS];
	unsigned keep_count;
};

/*
 * Opens the store and puts its claims into force, unless an earlier call did so. Makes a missing store only if `make`, or if
 * there are claims to save in it.
 */
int claims_use_store(struct claims *claims, bool make, struct error *err);
/*
 * Renames the damaged store, and writes all claims to a new store. The caller passes in *err why the old store is unusable. On
 * failure no store is open; the next claims_use_store() tries again.
 */
int claims_renew_store(struct claims *claims, struct error *err);

/*
 * Begins a transaction, which also deletes the rows of claims that claims_undo() could not delete. After any error, pass the
 * error to claims_commit(), which rolls back.
 */
int claims_begin(struct claims *claims, struct error *err);
/* Returns true if the row's claim was taken back (claims_undo()). */
bool claims_is_undone(const struct claims *claims, int64_t row);
/* Tries to delete the rows of claims that were taken back while the store could not be written. */
void claims_delete_undone(struct claims *claims);
/*
 * Ends the store's transaction, if one is open. `r`: the result of its statements. If that is an error, rolls back, and returns
 * it. Else commits, that is, adds the transaction to the store's write-ahead log; rolls back if that fails. Copying the log into
 * the store's file is slow, so a timer does the copying later (claims_checkpoint_due()).
 */
int claims_commit(struct claims *claims, int r, struct error *err);
void claims_checkpoint_due(void *data, uint32_t events);

/* Adds a claim to the list. Always takes ownership of `parked`. Returns NULL if out of memory. */
struct claim *claims_add(struct claims *claims, int64_t row, uint64_t made_s, struct tenant *tenant,
			 struct parked *parked);
/* Record in `holders` that the claim has its slots, or that it has them no longer. After -ENOMEM only some may be recorded. */
int claims_reserve_slots(struct claim *claim);
void claims_release_slots(struct claim *claim);
/* Sets claim->original to the original terms in the stored claim, if it has any. Returns 0 or -ENOMEM. */
int claims_load_original(struct claim *claim, const struct store_claim *written, struct error *err);
/* Frees the claim and ends its tenant. For a parked claim, deletes the tenant's files. */
void claims_end(struct claim *claim, const char *why);

/* Installs the library for containers, unless an installed copy is still accepted by `trust`. */
int claims_install_library(struct claims *claims, struct error *err);
/*
 * Like claims_install_library(), but does nothing if containers get a mirror: a copy of the driver's files that includes the
 * library (setting container_driver). Simulated cards never use a mirror.
 */
int claims_prepare_library(struct claims *claims, struct error *err);
/* Applies trust_check() (daemon/containers/trust/trust.h) to the library that containers would get. */
int claims_check_library(struct claims *claims, struct error *err);

/* Returns -EINVAL if the text cannot be a claim's key; err then says what would be accepted. */
int claims_check_key(const char *key, struct error *err);
/* Makes a tenant's name from any text, by the rules of `tenant` in struct claim_request. `id`: the tenant's id. */
void claims_make_name(const struct claims *claims, const char *requested, const char *id,
		      char name[REGION_NAME_MAX]);

void claims_describe(const struct claim *claim, struct store_claim *ret);
