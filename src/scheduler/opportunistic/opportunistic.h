/*
 * Pods that fill what others leave of a card's time: who is one, what it finds of a card, and when one has to go. Their
 * memory is promised like everybody's, as a byte that is given twice is a failed allocation. Time can be taken back at any
 * moment: on the node they run behind all others (KUBE_PRIORITY_OPPORTUNISTIC), whose guarantees hold whatever they do.
 *
 *     |--- used, at its peak ---|- margin -|--- opportunistic pods ---|---- left ----|
 *     |----------- guaranteed to others: as if it were used, where it is not known ---------|
 *
 *   Placing    Used is what the node has measured of those that are no opportunistic pods.
 *   Pressed    What is used now leaves opportunistic pods less than they asked for. When that has lasted, as many of them go as makes
 *              it suffice for the others: the lowest priority first, and of equals who came last.
 *   Cooldown   A card that they were evicted from takes no opportunistic pod for OPPORTUNISTIC_COOLDOWN_NS, and twice as long each time that it happens
 *              again within OPPORTUNISTIC_FORGIVE_NS, up to OPPORTUNISTIC_COOLDOWN_MOST_NS: use that goes up and down sends them to and fro
 *              a few times a day at most.
 *
 * Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/opportunistic/use.h"

#define OPPORTUNISTIC_MARGIN_PCT 10 /* what is guaranteed and not used is lent but for this */
#define OPPORTUNISTIC_SLACK_PCT 2 /* want so small does not count: what is measured is not exact */
#define OPPORTUNISTIC_COOLDOWN_NS (UINT64_C(600) * 1000000000)
#define OPPORTUNISTIC_COOLDOWN_MOST_NS (UINT64_C(4 * 3600) * 1000000000)
#define OPPORTUNISTIC_FORGIVE_NS (UINT64_C(12 * 3600) * 1000000000)

/* A card's time, in percent. */
struct opportunistic_card {
	uint64_t total_pct, guaranteed_pct,
		borrowed_pct;       /* borrowed: by all opportunistic pods that are there */
	const struct use_card *use; /* NULL: not known: the promises stand */
};

/*
 * What an opportunistic pod finds taken. Of guarantees that its node has measured all along (held) it is the use with the margin, those
 * which came since are whole; use above them counts as it is. A card that is shut is taken whole.
 */
uint64_t opportunistic_taken_pct(const struct opportunistic_card *card, uint64_t now_ns);

/* What opportunistic pods lack of what they have asked for, as the card is used now; 0: nothing, or it is not known. */
uint64_t opportunistic_lack_pct(const struct opportunistic_card *card);

/* To be called with each look at a card. Has it lacked for as long as `after_ns`? */
bool opportunistic_is_due(struct use_card *use, uint64_t lack_pct, uint64_t now_ns,
			  uint64_t after_ns);
/* Some were sent from the card. */
void opportunistic_cooldown(struct use_card *use, uint64_t now_ns);
/* 0: it is open. `use` NULL: it is not known, and that it was shut counts for nothing. */
uint64_t opportunistic_cooldown_for_ns(const struct use_card *use, uint64_t now_ns);

/* One that could go. */
struct opportunistic {
	int32_t priority;
	int64_t since_s; /* when it was placed */
	unsigned borrowed_pct;
	void *pod; /* the caller's */
	bool goes; /* decided */
};

/* In the order in which they go: the lowest priority first, and of equals who came last. */
void opportunistic_sort(struct opportunistic *list, size_t count);
/* Sorts the list, and decides: together they have borrowed what is lacking, or all go. Returns how many go. */
size_t opportunistic_choose(struct opportunistic *list, size_t count, uint64_t lack_pct);
