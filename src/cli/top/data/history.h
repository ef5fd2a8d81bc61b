/*
 * What one snapshot can't tell: how a share or a card did over the last snapshots, and what happened between two of
 * them. Fed with each snapshot in turn; what a snapshot lacks is forgotten. No clock of its own.
 */
#pragma once

#include "cli/top/data/snapshot.h"

#define HISTORY_LENGTH 240 /* values kept: the widest history that is drawn */

/* Between the last two snapshots that had it. */
struct history_rates {
	bool is_set; /* there were two, and the daemon was not started again between them */
	double interval_s;
	double leases_per_s;
	double waiting; /* threads held at gates, in the mean */
	double got_pct;
	uint64_t denied, expired;
};

/* The values of each snapshot, 0 to 1, the newest last: `count` of them. */
struct history_series {
	size_t count;
	float got[HISTORY_LENGTH];
	float memory[HISTORY_LENGTH];
};

struct history;

/* -ENOMEM. The caller frees it; NULL is fine there. */
int history_make(struct history **ret_history);
struct history *history_free(struct history *history);

/* -ENOMEM: what was kept of shares, or of cards, may be forgotten. */
int history_feed(struct history *history, const struct snapshot *snapshot);

/*
 * Of the i-th share or card of the snapshot that was fed last. Valid until the next one is fed.
 */
const struct history_rates *history_share_rates(const struct history *history, size_t share);
const struct history_series *history_share(const struct history *history, size_t share);
const struct history_series *history_card(const struct history *history, size_t card);

static inline void cleanup_history_pointer(struct history **history)
{
	history_free(*history);
}

#define cleanup_history cleanup(cleanup_history_pointer)
