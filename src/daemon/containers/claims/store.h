/*
 * The store of claims (claims.h) is an SQLite file in WAL mode: new data goes to a log, which a checkpoint copies to the file.
 * One daemon has it open. Each claim has its tenant's terms (tenant.h) and its cards' UUIDs.
 *
 * A commit waits for the disk (synchronous = FULL), because a claim must survive a power cut: the kubelet keeps our answer to
 * Allocate, and then starts the container without asking again. Writes within a transaction do not wait. A checkpoint waits for
 * the disk twice, so it runs later than the commit.
 *
 * Errors: -EBADMSG if the file is damaged, is another program's or has a newer schema; -EBUSY if another process has it open;
 * -ENOSPC, -EROFS, -EACCES, -EIO etc. After an error nothing is changed. Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/gpu/nvml/gpu.h"
#include "daemon/state/tenant.h"

/*
 * Version of the tables. store_open() upgrades older versions: version 1 lacks the original terms of changed claims, version 2
 * their original priority, version 3 the group for sharing by space.
 */
#define STORE_SCHEMA 4

struct store;

/* The original terms of a claim that claims_override_terms() or claims_set_terms() changed. */
struct claim_original {
	enum on_full on_full;
	int priority;
	struct promise promise[REGION_MAX_DEVICES]; /* in the order of the claim's devices */
};

/* A claim as stored. After reading, cards in the terms are NULL; `uuid` identifies them. */
struct store_claim {
	int64_t row;
	uint64_t made_s; /* seconds since 1970 */
	struct tenant_terms terms;
	char uuid[REGION_MAX_DEVICES][GPU_UUID_TEXT_MAX];
	/* length of original.promise; 0: the terms were not changed */
	unsigned original_count;
	struct claim_original original;
};

/*
 * Opens and checks the file, or makes it; the directory must exist. If *ret_is_new, the caller must fill the store: it was
 * just made, or an earlier daemon did not reach store_set_filled().
 */
int store_open(const char *path, struct store **ret, bool *ret_is_new, struct error *err);
/* Rolls back an open transaction. NULL is allowed; returns NULL. */
struct store *store_close(struct store *store);

/* Calls `each` for every claim, oldest first. Stops at the first negative result, and returns that. */
typedef int (*store_each)(void *data, const struct store_claim *claim, struct error *err);
int store_read(struct store *store, store_each each, void *data, struct error *err);

/* All writes between store_begin() and store_commit() take effect, or none. After any error call store_rollback(). */
int store_begin(struct store *store, struct error *err);
int store_commit(struct store *store, struct error *err);
void store_rollback(struct store *store);

/* Preallocates the log, because commits that lengthen it are slow. Failure is harmless. */
void store_preallocate_log(struct store *store);

/*
 * Copies committed data from the log to the file. Call soon after commits, when no request waits. After an error the data
 * stays in the log, where it is just as safe.
 */
int store_checkpoint(struct store *store, struct error *err);

/* Marks a new store as complete. Call in the transaction that writes the first claims. */
int store_set_filled(struct store *store, struct error *err);

/* Call in a transaction. Returns -EEXIST if another claim has the key, tenant name, id or a slot. */
int store_add(struct store *store, const struct store_claim *claim, int64_t *ret_row,
	      struct error *err);
int store_change(struct store *store, int64_t row, const struct store_claim *claim,
		 struct error *err);
int store_remove(struct store *store, int64_t row, struct error *err);

/* Renames file and log to "<path>.bad-<seconds since 1970>", which is returned in ret_name. */
int store_set_aside(const char *path, char *ret_name, size_t size, struct error *err);
