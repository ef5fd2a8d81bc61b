/*
 * Opportunistic pods use compute of a card that other pods leave. This file defines which compute such a pod sees as free,
 * and when it must be evicted. Its memory is guaranteed like that of all pods, because memory promised twice leads to failed
 * allocations. Compute can be taken back at any moment: on the node, opportunistic pods run at a priority behind all others
 * (KUBE_PRIORITY_OPPORTUNISTIC), so that the guarantees of others hold.
 *
 *     |--- used, at its peak ---|- margin -|--- opportunistic pods ---|---- left ----|
 *     |--- guaranteed to others; counts as used if the use is unknown ---|
 *
 *   Placing    Counts as used what the node has measured of pods that are not opportunistic.
 *   Pressed    The present use leaves opportunistic pods less than they requested. If this lasts, as many of them are evicted
 *              as needed for the rest to have enough: lowest priority first, and among equals the latest first.
 *   Cooldown   After an eviction, a card takes no opportunistic pod for OPPORTUNISTIC_COOLDOWN_NS. The time doubles with each
 *              repetition within OPPORTUNISTIC_FORGIVE_NS, up to OPPORTUNISTIC_COOLDOWN_MOST_NS. So fluctuating use moves pods
 *              to and fro only a few times a day.
 *
 * Pure; thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/opportunistic/node_use.h"

#define OPPORTUNISTIC_MARGIN_PCT 10 /* part of the guaranteed but unused compute that is not lent */
/* A smaller lack does not count, because the measurement is not exact. */
#define OPPORTUNISTIC_SLACK_PCT 2
#define OPPORTUNISTIC_COOLDOWN_NS (UINT64_C(600) * 1000000000)
#define OPPORTUNISTIC_COOLDOWN_MOST_NS (UINT64_C(4 * 3600) * 1000000000)
#define OPPORTUNISTIC_FORGIVE_NS (UINT64_C(12 * 3600) * 1000000000)

/* A card's compute, in percent. */
struct opportunistic_card {
	uint64_t total_pct, guaranteed_pct,
		borrowed_pct; /* borrowed_pct: by all opportunistic pods on the card */
	const struct use_card *use; /* if NULL, the use is unknown, and guaranteed compute counts as used */
};

/*
 * Returns the compute that an opportunistic pod sees as taken. Guarantees that existed all the time while peak_pct was measured
 * (held_pct) count as their measured use plus the margin; newer guarantees count in full. Use above the guarantees counts as
 * measured. Compute that opportunistic pods have borrowed counts too. If the card is closed, all of it is taken.
 */
uint64_t opportunistic_taken_pct(const struct opportunistic_card *card, uint64_t now_ns);

/* Returns how much compute opportunistic pods lack now, compared to their requests; 0 if nothing, or if the use is unknown. */
uint64_t opportunistic_lack_pct(const struct opportunistic_card *card);

/* Call at each check of a card. Returns true if opportunistic pods have lacked compute for at least `after_ns`. */
bool opportunistic_is_due(struct use_card *use, uint64_t lack_pct, uint64_t now_ns,
			  uint64_t after_ns);
/* Call when pods were evicted from the card. Starts or extends the cooldown. */
void opportunistic_cooldown(struct use_card *use, uint64_t now_ns);
/* Returns the time until the card opens; 0 if it is open. If `use` is NULL, the use is unknown and the result is 0. */
uint64_t opportunistic_cooldown_for_ns(const struct use_card *use, uint64_t now_ns);

/* A pod that may be evicted. */
struct opportunistic {
	int32_t priority;
	int64_t since_s; /* when the pod was placed */
	unsigned borrowed_pct;
	void *pod; /* belongs to the caller */
	bool goes; /* result: evict this pod */
};

/* Sorts by order of eviction: lowest priority first, and among equals the latest first. */
void opportunistic_sort(struct opportunistic *list, size_t count);
/*
 * Sorts the list and chooses pods to evict that together have borrowed at least `lack_pct`; all pods if that is not enough.
 * Returns the number of chosen pods.
 */
size_t opportunistic_choose(struct opportunistic *list, size_t count, uint64_t lack_pct);
