/*
 * Opportunistic pods use compute that other pods leave unused. This module says how much compute is free for them, and when
 * they are evicted. Their memory is guaranteed as for all pods, because memory promised twice makes allocations fail. On the
 * node they run at the lowest priority (KUBE_PRIORITY_OPPORTUNISTIC).
 *
 *     |--- used, at its peak ---|- margin -|--- opportunistic pods ---|---- free ----|
 *     |--- guaranteed to others; counts as used if the use is unknown ---|
 *
 * Placing: other pods count with their use as the node measured it, not with their guarantees.
 *
 * Eviction: if opportunistic pods get less than they requested for longer than the setting filler_patience, as many of them as
 * needed are evicted. The lowest priority goes first; of equal priority, the pod placed last.
 *
 * Cooldown: after an eviction, a card takes no opportunistic pod for OPPORTUNISTIC_COOLDOWN_NS. Another eviction within
 * OPPORTUNISTIC_FORGIVE_NS of the cooldown's end starts a cooldown twice as long, up to OPPORTUNISTIC_COOLDOWN_MOST_NS. So pods
 * move only a few times a day.
 *
 * No I/O, no clock, and no state besides the arguments.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/opportunistic/node_use.h"

#define OPPORTUNISTIC_MARGIN_PCT \
	10 /* percent; this much of the guaranteed but unused compute is not lent */
/* A shortfall up to this does not count, because measurements are not exact. */
#define OPPORTUNISTIC_SLACK_PCT 2
#define OPPORTUNISTIC_COOLDOWN_NS (UINT64_C(600) * 1000000000)
#define OPPORTUNISTIC_COOLDOWN_MOST_NS (UINT64_C(4 * 3600) * 1000000000)
#define OPPORTUNISTIC_FORGIVE_NS (UINT64_C(12 * 3600) * 1000000000)

/* A card's compute, in percent. */
struct opportunistic_card {
	uint64_t total_pct, guaranteed_pct,
		borrowed_pct;       /* requested by all opportunistic pods on the card */
	const struct use_card *use; /* NULL: unknown use, so guaranteed compute counts as used */
};

/*
 * Returns the compute that an opportunistic pod may not use. If the use is unknown: all guarantees and borrowed compute. Else,
 * in a cooldown: all of the card's compute. Otherwise the sum of
 *   - the measured use (peak_pct) plus the margin, but not more than the guarantees at that time (held_pct); only the use, if
 *     that alone is more than these guarantees
 *   - all newer guarantees
 *   - the compute that other opportunistic pods borrowed
 */
uint64_t opportunistic_taken_pct(const struct opportunistic_card *card, uint64_t now_ns);

/* Returns how much less compute opportunistic pods have now than they requested; 0 if the use is unknown. */
uint64_t opportunistic_shortfall_pct(const struct opportunistic_card *card);

/*
 * Returns whether opportunistic pods lacked compute (shortfall_pct above 0) at every call for at least after_ns. Keeps the
 * start of this time in *use.
 */
bool opportunistic_is_due(struct use_card *use, uint64_t shortfall_pct, uint64_t now_ns,
			  uint64_t after_ns);
/* Starts or extends the cooldown. Call when pods were evicted from the card. */
void opportunistic_cooldown(struct use_card *use, uint64_t now_ns);
/* Returns the time until the card's cooldown ends; 0 if it has none, or if its use is unknown (NULL). */
uint64_t opportunistic_cooldown_for_ns(const struct use_card *use, uint64_t now_ns);

/* A pod that may be evicted. since_s: when the pod was placed; borrowed_pct: percent of one card's compute. */
struct opportunistic {
	int32_t priority;
	int64_t since_s;
	unsigned borrowed_pct;
	void *pod;      /* belongs to the caller */
	bool is_victim; /* result: evict this pod */
};

/* Sorts by order of eviction: lowest priority first; of equal priority, the pod placed last. */
void opportunistic_sort(struct opportunistic *list, size_t count);
/*
 * Sorts the list, then marks victims whose borrowed_pct add up to at least `shortfall_pct`, or all pods if that is not enough.
 * Returns the number of victims.
 */
size_t opportunistic_choose(struct opportunistic *list, size_t count, uint64_t shortfall_pct);
