/*
 * Gangs: pods that are placed together or not at all. Decides when a gang's pods may go on, and finds room for all, as pure
 * functions of their states.
 *
 *     waits -> held -> come -> goes -> bound
 *
 * Room is reserved for as many pods as the gang's size, or for none. None is bound before bind calls for as many have come,
 * each for its reserved node: by then kube-scheduler has all other resources for them too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gang_state {
	GANG_ABSENT, /* ending, or not to be scheduled yet; does not count */
	GANG_WAITS,
	GANG_HELD,  /* room is reserved for the pod */
	GANG_COME,  /* held, and its bind call waits for the other pods */
	GANG_GOES,  /* being bound */
	GANG_BOUND, /* bound, with cards */
	GANG_EASY,  /* requests no cards; the pod only has to exist */
	GANG_STATES,
};

struct gang_roll {
	unsigned size; /* number of pods that the gang needs; 0 if no pod names it */
	unsigned count[GANG_STATES];
};

enum gang_verdict {
	GANG_LONE,       /* no gang: each pod is placed alone */
	GANG_INCOMPLETE, /* too few pods exist */
	GANG_JOINTLY,    /* search room for gang_missing() pods at once */
	/* Room is reserved for enough pods; a further pod is placed alone. */
	GANG_WHOLE,
	/* The gang has begun, and some pods have ended: their replacements are placed alone. */
	GANG_SINGLY,
};

unsigned gang_there(const struct gang_roll *roll);
enum gang_verdict gang_judge(const struct gang_roll *roll);
/* Returns how many pods keep their room for good. */
unsigned gang_settled(const struct gang_roll *roll);
/* Returns how many pods must find room together, of those that wait or whose room may be taken back. */
unsigned gang_missing(const struct gang_roll *roll);
/* Whether a pod is bound or being bound; then the gang's room is not taken back as a whole any more. */
bool gang_has_begun(const struct gang_roll *roll);
/* Returns true if the pods in state GANG_COME may be bound. */
bool gang_may_begin(const struct gang_roll *roll);

/* ---- room for several pods ---- */

struct gang_trial {
	/* Gives member i the best room that the others leave. False if none fits. */
	bool (*seat)(void *data, size_t i);
	void (*unseat)(void *data, size_t i);
	/* Whether two members are alike: if one finds no room, neither does the other. */
	bool (*is_like)(void *data, size_t i, size_t k);
	void *data;
};

struct gang_seat {
	size_t member;
	bool is_taken;
};

/*
 * Seats at least `needed` of `count` members, in a few attempts; a member that found no room goes first in the next. Returns
 * how many have a seat. If that fails, none has one, and the result is the most that any attempt seated. `order`: scratch
 * memory for `count` entries.
 */
size_t gang_seat(const struct gang_trial *trial, size_t count, size_t needed,
		 struct gang_seat *order);

/*
 * Returns how long a gang leaves its room to others after its pods did not all come: one to two times `hold_ns` after the first
 * failure in a row, then twice as long each time, up to 16 times. `failures` is at least 1. `salt` differs between gangs, so
 * that two of them do not come back together.
 */
uint64_t gang_pause_ns(unsigned failures, uint64_t hold_ns, uint32_t salt);
