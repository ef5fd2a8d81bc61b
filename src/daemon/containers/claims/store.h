/*
 * Where claims are written down: one SQLite file, in WAL mode, held by one daemon. What it knows of a claim is
 * its tenant's terms (tenant.h) and which cards they are on. A statement is prepared once.
 *
 * synchronous is FULL: a commit waits for the disk. The kubelet keeps the answer to an allocation in a
 * file of its own, which it syncs, and after a power cut starts the container again without asking; so a
 * claim must be there whenever its answer is. Within a transaction nothing waits, and a checkpoint of
 * the log, which waits twice more, comes between transactions: store_checkpoint().
 *
 * Errors: -EBADMSG: the file is torn, foreign or of a newer program, with what it is; -EBUSY: another process
 * holds it; -ENOSPC, -EROFS, -EACCES, -EIO ...: as the disk said; then nothing is changed. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/gpu/nvml/gpu.h"
#include "daemon/state/tenant.h"

/* 1 had no claims whose terms were changed, 2 no priority among what they were made with: both are taken over. */
#define STORE_SCHEMA 4

struct store;

/* What a claim was made with, where its terms are others now: claims_wish(). */
struct claim_asked {
	enum on_full on_full;
	int priority;
	struct promise promise[REGION_MAX_DEVICES]; /* in the order of its devices */
};

/* A claim as written down. The cards of its terms are NULL when it was read: uuid says which they are. */
struct store_claim {
	int64_t row;
	uint64_t made_s; /* since 1970 */
	struct tenant_terms terms;
	char uuid[REGION_MAX_DEVICES][GPU_UUID_TEXT_MAX];
	unsigned asked_count; /* of asked.promise: one for each device, or none: then nothing was changed */
	struct claim_asked asked;
};

/*
 * Opens the file, or makes it; its directory is there. Checks all of it. *ret_is_new: it was made now, or by
 * a daemon that did not come to store_set_filled(), and says nothing of which claims there are.
 */
int store_open(const char *path, struct store **ret, bool *ret_is_new, struct error *err);
/* NULL is fine; returns NULL. A transaction that is open is taken back. */
struct store *store_close(struct store *store);

/* One after the other, in the order in which they were made; ends with what `each` returns, if negative. */
typedef int (*store_each)(void *data, const struct store_claim *claim, struct error *err);
int store_read(struct store *store, store_each each, void *data, struct error *err);

/*
 * All that is written between begin and commit is there, or nothing. After an error of these, or of a
 * write between: store_rollback().
 */
int store_begin(struct store *store, struct error *err);
int store_commit(struct store *store, struct error *err);
void store_rollback(struct store *store);

/* Gives the log the length that it keeps, if it is shorter: then commits need not. Nothing depends on it. */
void store_lengthen_log(struct store *store);

/*
 * Brings what was committed from the log into the file. To be called soon after commits, when nobody waits; a commit
 * does it by itself only when the log has become very long. -errno: it stays in the log, and is as safe there.
 */
int store_checkpoint(struct store *store, struct error *err);

/* In a transaction: a store that is new has, with this, all that there is. */
int store_set_filled(struct store *store, struct error *err);

/* In a transaction. *ret_row is the new claim's. -EEXIST: its key, tenant or a slot is another's. */
int store_add(struct store *store, const struct store_claim *claim, int64_t *ret_row,
	      struct error *err);
/* Writes the terms of a claim that is there anew. */
int store_change(struct store *store, int64_t row, const struct store_claim *claim,
		 struct error *err);
int store_remove(struct store *store, int64_t row, struct error *err);

/* Renames the file and its log to "<path>.bad-<seconds since 1970>"; ret_name: that path. */
int store_set_aside(const char *path, char *ret_name, size_t size, struct error *err);
