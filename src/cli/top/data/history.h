/*
 * Values that need several snapshots: the history of each GPU and share (a tenant's part of one GPU), and rates. The caller
 * passes each snapshot in turn. If a snapshot lacks a share or GPU, its earlier values are dropped. Reads no clock.
 */
#pragma once

#include "cli/top/data/snapshot.h"

#define HISTORY_LENGTH 240 /* number of values kept; no wider history is drawn */

/* Between the last two snapshots. is_set is false for a new share, or after a restart of the daemon. */
struct history_rates {
	bool is_set;
	double interval_s;
	double leases_per_s;
	double waiting; /* mean number of threads that waited for GPU time */
	double got_pct;
	uint64_t denied, expired; /* growth of these counters of struct top_share */
};

/*
 * The values of a share or GPU from 0 to 1, one per snapshot, the newest last. `got` is the part of the GPU's time that the
 * share's tenant used, or in which the GPU was busy. `memory` is the used part of the share's quota, or of the GPU's memory.
 */
struct history_series {
	size_t count;
	float got[HISTORY_LENGTH];
	float memory[HISTORY_LENGTH];
};

struct history;

/* Makes an empty history, or returns -ENOMEM. The caller frees it with history_free(), which accepts NULL. */
int history_make(struct history **ret_history);
struct history *history_free(struct history *history);

/* Adds a snapshot. On -ENOMEM, earlier values of shares or GPUs may be lost. */
int history_update(struct history *history, const struct snapshot *snapshot);

/* Return the values of a share or GPU by its index in the last snapshot. Valid until history_update(). */
const struct history_rates *history_share_rates(const struct history *history, size_t share);
const struct history_series *history_share(const struct history *history, size_t share);
const struct history_series *history_card(const struct history *history, size_t card);

static inline void cleanup_history_pointer(struct history **history)
{
	history_free(*history);
}

#define cleanup_history cleanup(cleanup_history_pointer)
