/*
 * Gangs: pods that are placed together or not at all. Decides when a gang's pods may go on, and finds room for all, as pure
 * functions of their states.
 *
 *     pending -> reserved -> waits to bind -> binding -> bound
 *
 * Room is reserved for as many pods as the gang's size, or for none. None is bound before bind calls for as many wait, each
 * for its reserved node: by then kube-scheduler has all other resources for them too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gang_state {
	GANG_ABSENT, /* ending, or not to be scheduled yet; does not count */
	GANG_PENDING,
	GANG_RESERVED,      /* has room */
	GANG_WAITS_TO_BIND, /* reserved, and its bind call waits for the other pods */
	GANG_BINDING,
	GANG_BOUND,          /* bound, with cards */
	GANG_NEEDS_NO_CARDS, /* the pod only has to exist */
	GANG_STATES,
};

struct gang_counts {
	unsigned size; /* number of pods that the gang needs; 0 if no pod names it */
	unsigned count[GANG_STATES];
};

enum gang_verdict {
	GANG_NONE,           /* no gang: each pod is placed alone */
	GANG_INCOMPLETE,     /* too few pods exist */
	GANG_PLACE_TOGETHER, /* search room for gang_count_to_place() pods at once */
	/* Room is reserved for enough pods; a further pod is placed alone. */
	GANG_COMPLETE,
	/* The gang has begun, and some pods have ended: their replacements are placed alone. */
	GANG_REPLACE_PODS,
};

unsigned gang_count_present(const struct gang_counts *counts);
enum gang_verdict gang_judge(const struct gang_counts *counts);
/* Returns how many pods keep their room for good. */
unsigned gang_count_committed(const struct gang_counts *counts);
/* Pods that wait, or whose room may be taken back. */
unsigned gang_count_to_place(const struct gang_counts *counts);
/* Whether a pod is bound or being bound; then the gang's room is not taken back as a whole any more. */
bool gang_has_begun(const struct gang_counts *counts);
/* For the pods in state GANG_WAITS_TO_BIND. */
bool gang_may_bind(const struct gang_counts *counts);

/* ---- room for several pods ---- */

struct gang_trial {
	/* Gives member i the best room that the others leave. False if none fits. */
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
 * Places at least `needed` of `count` members, in a few attempts; a member that found no room goes first in the next. Returns
 * how many are placed. If that fails, none is, and the result is the most that any attempt placed. `order`: scratch memory for
 * `count` entries.
 */
size_t gang_place(const struct gang_trial *trial, size_t count, size_t needed,
		  struct gang_slot *order);

/*
 * Returns how long a gang leaves its room to others after its pods did not all reach bind: one to two times `hold_ns` after the
 * first failure in a row, then twice as long each time, up to 16 times. `failures` is at least 1. `salt` differs between gangs,
 * so that two of them do not retry together.
 */
uint64_t gang_backoff_ns(unsigned failures, uint64_t hold_ns, uint32_t salt);
