/*
 * Gangs: pods that are placed together or not at all. Decides when the pods of a gang may go on, and finds room for all of
 * them, as pure functions of the pods' states.
 *
 *     waits -> held -> come -> goes -> bound
 *
 * Room is reserved for as many pods as the gang's size at once, or for none. No pod is bound before bind calls for as many
 * pods have come, each for the node of its reservation. By then kube-scheduler, too, has all other resources for each pod.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gang_state {
	GANG_ABSENT, /* ending, or not yet allowed to be scheduled; counts as not there */
	GANG_WAITS,
	GANG_HELD,  /* room is reserved for the pod */
	GANG_COME,  /* held, and a bind call for the reserved node waits for the other pods */
	GANG_GOES,  /* being bound */
	GANG_BOUND, /* bound, with cards */
	GANG_EASY,  /* requests no cards; it only has to exist */
	GANG_STATES,
};

struct gang_roll {
	unsigned size; /* number of pods that the gang needs; 0 if no pod names it */
	unsigned count[GANG_STATES];
};

enum gang_verdict {
	GANG_LONE,       /* not a gang: each pod is placed alone */
	GANG_INCOMPLETE, /* too few pods exist */
	GANG_JOINTLY,    /* search room for gang_missing() pods together */
	/* Room is reserved for enough pods; a pod without a reservation is an extra one and is placed alone. */
	GANG_WHOLE,
	/* The gang has begun and some pods have ended since; their replacements are placed alone. */
	GANG_SINGLY,
};

unsigned gang_there(const struct gang_roll *roll);
enum gang_verdict gang_judge(const struct gang_roll *roll);
/* Returns the number of pods whose room is not taken back any more. */
unsigned gang_settled(const struct gang_roll *roll);
/* Returns how many of the pods that wait, or whose room may be taken back, must find room together. */
unsigned gang_missing(const struct gang_roll *roll);
/* Returns true if a pod is bound or being bound. From then on the gang's room is not taken back as a whole. */
bool gang_has_begun(const struct gang_roll *roll);
/* Returns true if the pods in state GANG_COME may be bound. */
bool gang_may_begin(const struct gang_roll *roll);

/* ---- room for several pods ---- */

struct gang_trial {
	/* Gives member i the best of what the others have left. Returns false if nothing fits. */
	bool (*seat)(void *data, size_t i);
	void (*unseat)(void *data, size_t i);
	/* Returns true if the two members are alike, so that if one finds no room, the other would not either. */
	bool (*is_like)(void *data, size_t i, size_t k);
	void *data;
};

struct gang_seat {
	size_t member;
	bool is_taken;
};

/*
 * Seats at least `needed` of `count` members and returns how many have a seat. If that fails, no member has a seat, and the
 * result is the most that had one in any attempt. There are a few attempts; a member that found no room goes first in the
 * next. `order` is scratch memory for `count` entries.
 */
size_t gang_seat(const struct gang_trial *trial, size_t count, size_t needed,
		 struct gang_seat *order);

/*
 * Returns how long a gang whose pods did not all come leaves its room to others: after the first failure one to two times
 * `hold_ns`, after each further one twice as long, up to a factor of 16. `failures` is the number of failures in a row, at
 * least 1. `salt` differs between gangs, so that two gangs in each other's way come back at different times.
 */
uint64_t gang_pause_ns(unsigned failures, uint64_t hold_ns, uint32_t salt);
