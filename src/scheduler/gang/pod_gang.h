/*
 * Gangs: pods that are placed together or not at all. The numbers of pods in each state decide when a gang's pods may go on.
 * Room for all of them is found by the caller's functions (struct gang_trial).
 *
 *     pending -> reserved -> waits to bind -> binding -> bound
 *
 * Room is reserved for as many pods as the gang's size, or for none. No pod is bound until that many pods have a waiting bind
 * call, each for its reserved node. By then kube-scheduler has found all other resources for them too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gang_state {
	/* ends or is held by scheduling gates, and is not bound or being bound: does not count for the gang */
	GANG_ABSENT,
	GANG_PENDING,
	GANG_RESERVED,
	GANG_WAITS_TO_BIND, /* reserved, and its bind call waits for the other pods */
	GANG_BINDING,
	GANG_BOUND,          /* bound, with cards */
	GANG_NEEDS_NO_CARDS, /* counts as soon as it exists */
	GANG_STATES,
};

struct gang_counts {
	unsigned size; /* pods that the gang needs; 0 if no pod names a size */
	unsigned count[GANG_STATES];
};

enum gang_verdict {
	GANG_NONE,           /* no pod names a size: each pod is placed alone */
	GANG_INCOMPLETE,     /* too few pods exist */
	GANG_PLACE_TOGETHER, /* search for room for gang_count_to_place() pods at once */
	/* room is reserved for enough pods; a further pod is placed alone */
	GANG_COMPLETE,
	/* a pod of the gang was bound, and now fewer pods than the size exist: replacements are placed alone */
	GANG_REPLACE_PODS,
};

unsigned gang_count_present(const struct gang_counts *counts);
enum gang_verdict gang_judge(const struct gang_counts *counts);
/* Returns how many pods need no more room: bound, being bound, or without need of cards. */
unsigned gang_count_committed(const struct gang_counts *counts);
/* Returns how many pods need room, or have room that may still be taken back: the size less gang_count_committed(). */
unsigned gang_count_to_place(const struct gang_counts *counts);
/* Whether a pod of the gang is bound or being bound. From then on, the gang's reservations expire one by one. */
bool gang_has_begun(const struct gang_counts *counts);
/* Whether the pods in state GANG_WAITS_TO_BIND may be bound now. */
bool gang_may_bind(const struct gang_counts *counts);

/* Callbacks of gang_place(). Members are the pods to place, numbered from 0. */
struct gang_trial {
	/* Gives member i the best room that other members leave. Returns false if there is none. */
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
 * Places at least `needed` of `count` members, in a few attempts; a member that found no room goes first in the next one.
 * Returns how many are placed; on failure none is, and the result is the most of any attempt. `order`: memory for `count`
 * entries.
 */
size_t gang_place(const struct gang_trial *trial, size_t count, size_t needed,
		  struct gang_slot *order);

/*
 * Returns how long no room is reserved for a gang after its reservations expired before bind calls for all its pods came. The
 * first pause is one to two times `hold_ns`. Each further failure in a row doubles it, up to a factor of 16. `failures` is at
 * least 1. `salt` differs between gangs, so that two of them do not retry together.
 */
uint64_t gang_backoff_ns(unsigned failures, uint64_t hold_ns, uint32_t salt);
