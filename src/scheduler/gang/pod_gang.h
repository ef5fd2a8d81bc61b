/*
 * Gangs: pods that are placed together or not at all. Decides from the numbers of pods in each state when a gang's pods may go
 * on, and finds room for all of them by the caller's functions (struct gang_trial).
 *
 *     pending -> reserved -> waits to bind -> binding -> bound
 *
 * Room is reserved for as many pods as the gang's size, or for none. No pod is bound until bind calls wait for that many pods,
 * each for its reserved node. By then kube-scheduler has found all other resources for these pods too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gang_state {
	/* a pod that ends or is held by scheduling gates, and is not bound or being bound: does not count for the gang */
	GANG_ABSENT,
	GANG_PENDING,
	GANG_RESERVED,
	GANG_WAITS_TO_BIND, /* reserved, and its bind call waits for the other pods */
	GANG_BINDING,
	GANG_BOUND,          /* bound, with cards */
	GANG_NEEDS_NO_CARDS, /* needs no cards: it counts as soon as it exists */
	GANG_STATES,
};

struct gang_counts {
	unsigned size; /* number of pods that the gang needs; 0 if no pod names a size */
	unsigned count[GANG_STATES];
};

enum gang_verdict {
	GANG_NONE,           /* no gang, because no pod names a size: each pod is placed alone */
	GANG_INCOMPLETE,     /* too few pods exist */
	GANG_PLACE_TOGETHER, /* search for room for gang_count_to_place() pods at once */
	/* Room is reserved for enough pods; a further pod is placed alone. */
	GANG_COMPLETE,
	/*
	 * A pod of the gang was bound (gang_has_begun()), and fewer pods than the size exist now: replacements are placed
	 * alone.
	 */
	GANG_REPLACE_PODS,
};

unsigned gang_count_present(const struct gang_counts *counts);
enum gang_verdict gang_judge(const struct gang_counts *counts);
/* Returns how many pods need no more room, because they are bound, are being bound, or need no cards. */
unsigned gang_count_committed(const struct gang_counts *counts);
/* Returns the gang's size less gang_count_committed(): how many pods need room, or have room that may still be taken back. */
unsigned gang_count_to_place(const struct gang_counts *counts);
/* Whether a pod of the gang is bound or being bound. From then on, the gang's reservations expire one by one. */
bool gang_has_begun(const struct gang_counts *counts);
/* Whether the pods in state GANG_WAITS_TO_BIND may be bound now. */
bool gang_may_bind(const struct gang_counts *counts);

/* ---- room for several pods ---- */

/* Callbacks of gang_place(). The members are the pods to place, numbered from 0. */
struct gang_trial {
	/* Gives member i the best room that the other members leave. False if there is no room for it. */
	bool (*place)(void *data, size_t i);
	void (*unplace)(void *data, size_t i);
	/* Whether two members are alike: if one finds no room, neither does the other. */
	bool (*is_like)(void *data, size_t i, size_t k);
	void *data;
};

struct gang_slot {
	size_t member;
	bool is_placed;
};

/*
 * Places at least `needed` of `count` members, in a few attempts; a member that found no room goes first in the next attempt.
 * Returns how many are placed. On failure none is placed, and the result is the most that any attempt placed. `order`: scratch
 * memory for `count` entries.
 */
size_t gang_place(const struct gang_trial *trial, size_t count, size_t needed,
		  struct gang_slot *order);

/*
 * Returns the pause after a gang's reservations expired before bind calls for all its pods came. During the pause, no room is
 * reserved for the gang. The first pause is one to two times `hold_ns`. Each further failure in a row doubles it, up to a
 * factor of 16. `failures` is at least 1. `salt` differs between gangs, so that two of them do not retry together.
 */
uint64_t gang_backoff_ns(unsigned failures, uint64_t hold_ns, uint32_t salt);
