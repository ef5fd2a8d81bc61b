/*
 * Opportunistic pods use compute that other pods leave. Defines how much compute is free for them, and when they are evicted.
 * Their memory is guaranteed as for all pods, because memory promised twice makes allocations fail. Compute can be taken back
 * at any moment: on the node they run at a priority behind all others (KUBE_PRIORITY_OPPORTUNISTIC).
 *
 *     |--- used, at its peak ---|- margin -|--- opportunistic pods ---|---- left ----|
 *     |--- guaranteed to others; counts as used if the use is unknown ---|
 *
 * Placing: what the node measured of other pods counts as used.
 *
 * Pressed: the present use leaves opportunistic pods less than they requested. If that lasts, as many are evicted as needed for
 * the rest: lowest priority first, then the latest.
 *
 * Cooldown: after an eviction a card takes no opportunistic pod for OPPORTUNISTIC_COOLDOWN_NS, doubled with each repetition
 * within OPPORTUNISTIC_FORGIVE_NS, up to OPPORTUNISTIC_COOLDOWN_MOST_NS. So pods move only a few times a day.
 *
 * Pure; thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/opportunistic/node_use.h"

#define OPPORTUNISTIC_MARGIN_PCT \
	10 /* of the guaranteed but unused compute, this much is not lent */
/* Measurements are not exact, so a smaller lack does not count. */
#define OPPORTUNISTIC_SLACK_PCT 2
#define OPPORTUNISTIC_COOLDOWN_NS (UINT64_C(600) * 1000000000)
#define OPPORTUNISTIC_COOLDOWN_MOST_NS (UINT64_C(4 * 3600) * 1000000000)
#define OPPORTUNISTIC_FORGIVE_NS (UINT64_C(12 * 3600) * 1000000000)

/* A card's compute, in percent. */
struct opportunistic_card {
	uint64_t total_pct, guaranteed_pct,
		borrowed_pct;       /* borrowed_pct: of all opportunistic pods on the card */
	const struct use_card *use; /* NULL: unknown use, so guaranteed compute counts as used */
};

/*
 * Returns the compute that is taken for an opportunistic pod. Guarantees as old as peak_pct's measurement (held_pct) count as
 * measured plus the margin, newer ones in full; use above the guarantees counts as measured. Borrowed compute counts too. All
 * is taken if the card is closed.
 */
uint64_t opportunistic_taken_pct(const struct opportunistic_card *card, uint64_t now_ns);

/* Returns how much less compute opportunistic pods have now than they requested; 0 if the use is unknown. */
uint64_t opportunistic_shortfall_pct(const struct opportunistic_card *card);

/* Call at each check. Whether opportunistic pods have lacked compute for after_ns. */
bool opportunistic_is_due(struct use_card *use, uint64_t shortfall_pct, uint64_t now_ns,
			  uint64_t after_ns);
/* Call when pods were evicted from the card: starts or extends the cooldown. */
void opportunistic_cooldown(struct use_card *use, uint64_t now_ns);
/* Returns the time until the card opens; 0 if it is open, or `use` is NULL (unknown). */
uint64_t opportunistic_cooldown_for_ns(const struct use_card *use, uint64_t now_ns);

struct opportunistic {
	int32_t priority;
	int64_t since_s;
	unsigned borrowed_pct;
	void *pod;      /* belongs to the caller */
	bool is_victim; /* result: evict this pod */
};

/* Sorts by order of eviction: lowest priority first, then the latest. */
void opportunistic_sort(struct opportunistic *list, size_t count);
/* Sorts the list and chooses pods that together borrowed at least `shortfall_pct`, or all. Returns the number chosen. */
size_t opportunistic_choose(struct opportunistic *list, size_t count, uint64_t shortfall_pct);
