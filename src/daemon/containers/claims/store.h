/*
 * The store of claims: an SQLite file in WAL mode, which only one daemon has open. For each claim it contains the tenant's
 * terms (tenant.h) and the UUIDs of its cards. Statements are prepared once.
 *
 * synchronous is FULL: a commit waits for the disk. The kubelet syncs our answer to an Allocate call to a file of its own, and
 * after a power cut it starts the container again without asking us. So a claim must be on disk before we answer. Writes within
 * a transaction do not wait for the disk. A checkpoint of the log waits for the disk twice, so store_checkpoint() makes it
 * apart from transactions.
 *
 * Errors: -EBADMSG if the file is torn, foreign or written by a newer program (the text says which); -EBUSY if another process
 * has it open; -ENOSPC, -EROFS, -EACCES, -EIO etc. from the disk. After an error nothing is changed. Single-threaded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/gpu/nvml/gpu.h"
#include "daemon/state/tenant.h"

/*
 * Files of older schemas are upgraded. Schema 1 lacks the table of original terms, schema 2 the
 * original priority, schema 3 the group for sharing by space.
 */
#define STORE_SCHEMA 4

struct store;

/* The original terms of a claim whose terms were changed: claims_wish(). */
struct claim_asked {
	enum on_full on_full;
	int priority;
	struct promise promise[REGION_MAX_DEVICES]; /* in the order of the claim's devices */
};

/* A claim as stored. After reading, the cards in its terms are NULL; `uuid` identifies them. */
struct store_claim {
	int64_t row;
	uint64_t made_s; /* seconds since 1970 */
	struct tenant_terms terms;
	char uuid[REGION_MAX_DEVICES][GPU_UUID_TEXT_MAX];
	/* length of asked.promise: the number of devices, or 0 if the terms were not changed */
	unsigned asked_count;
	struct claim_asked asked;
};

/*
 * Opens the file and checks all of it, or makes it. Its directory must exist. *ret_is_new is true if the file was just made, or
 * if the daemon that made it never reached store_set_filled(). Then the file does not say which claims exist, so the caller
 * must fill it.
 */
int store_open(const char *path, struct store **ret, bool *ret_is_new, struct error *err);
/* Rolls back an open transaction, and closes the store. NULL is allowed; returns NULL. */
struct store *store_close(struct store *store);

/* Calls `each` for every claim, oldest first. Stops at the first negative result and returns it. */
typedef int (*store_each)(void *data, const struct store_claim *claim, struct error *err);
int store_read(struct store *store, store_each each, void *data, struct error *err);

/*
 * Begin, commit and undo a transaction: all writes between store_begin() and store_commit() take effect, or none. Call
 * store_rollback() after an error of these functions or of a write.
 */
int store_begin(struct store *store, struct error *err);
int store_commit(struct store *store, struct error *err);
void store_rollback(struct store *store);

/* Preallocates the log file, because commits that lengthen it are slow. Failure is harmless. */
void store_lengthen_log(struct store *store);

/*
 * Copies committed data from the log to the store's file. Call soon after commits, when nothing waits. A commit itself copies
 * only if the log has become very long. After an error the data stays in the log, where it is just as safe.
 */
int store_checkpoint(struct store *store, struct error *err);

/* Marks a new store as complete. Call in the transaction that writes the first claims. */
int store_set_filled(struct store *store, struct error *err);

/*
 * Adds a claim; call in a transaction. *ret_row is the new claim's row. Returns -EEXIST if another
 * claim has the same key, tenant name or id, or one of its slots.
 */
int store_add(struct store *store, const struct store_claim *claim, int64_t *ret_row,
	      struct error *err);
/* Overwrites the terms of a stored claim. */
int store_change(struct store *store, int64_t row, const struct store_claim *claim,
		 struct error *err);
int store_remove(struct store *store, int64_t row, struct error *err);

/*
 * Renames the file and its log to "<path>.bad-<seconds since 1970>", and returns that path in
 * ret_name.
 */
int store_set_aside(const char *path, char *ret_name, size_t size, struct error *err);
