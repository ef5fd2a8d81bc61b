/*
 * Gangs: pods that are placed together or not at all. Whether one's time has come, and how its pods find room together, as
 * pure functions of where they stand.
 *
 *     waits -> held -> come -> goes -> bound
 *
 * Room is kept for as many as the gang's size at once, or for none; nobody is bound before as many are asked to be, each to
 * the node where its room is: by then kube-scheduler, too, has what each of them needs there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gang_state {
	GANG_ABSENT, /* it is ending, or may not be scheduled yet: as if it were not there */
	GANG_WAITS,
	GANG_HELD,  /* room is kept for it */
	GANG_COME,  /* and it is asked to be bound there, and waits for the others */
	GANG_GOES,  /* it is being bound */
	GANG_BOUND, /* with cards */
	GANG_EASY,  /* it asks for no cards: that it is there is enough */
	GANG_STATES,
};

struct gang_roll {
	unsigned size; /* 0: nobody has said */
	unsigned count[GANG_STATES];
};

enum gang_verdict {
	GANG_LONE,       /* no gang: each for itself */
	GANG_INCOMPLETE, /* too few are there */
	GANG_JOINTLY,    /* room is to be found for gang_missing() of them together */
	GANG_WHOLE, /* room is kept for enough; whoever has none is one more, and goes where it fits */
	GANG_SINGLY, /* it has begun, and some have ended since: those that come in their place go where they fit */
};

unsigned gang_there(const struct gang_roll *roll);
enum gang_verdict gang_judge(const struct gang_roll *roll);
/* Those that nothing is taken back from any more. */
unsigned gang_settled(const struct gang_roll *roll);
/* Of those that wait, or have room that may be taken back: so many have to find room together. */
unsigned gang_missing(const struct gang_roll *roll);
/* One of it is bound, or about to be: there is no way back. */
bool gang_has_begun(const struct gang_roll *roll);
/* Those that have come may be bound. */
bool gang_may_begin(const struct gang_roll *roll);

/* ---- room for several ---- */

struct gang_trial {
	/* Member i takes what suits it best of what the others have left. false: nothing does. */
	bool (*seat)(void *data, size_t i);
	void (*unseat)(void *data, size_t i);
	/* Nothing tells these two apart: where one finds nothing the other would not, either. */
	bool (*is_like)(void *data, size_t i, size_t k);
	void *data;
};

struct gang_seat {
	size_t member;
	bool is_taken;
};

/*
 * Seats `needed` or more of `count` members. Returns how many sit; where those are too few, the most that did in any try,
 * and nobody sits. One who finds nothing is seated first in the next try, a few times. `order`: scratch, of `count`.
 */
size_t gang_seat(const struct gang_trial *trial, size_t count, size_t needed,
		 struct gang_seat *order);

/*
 * How long a gang whose pods have not all come leaves its room to others: as long as that was kept or up to twice that, the
 * next time twice as long, up to 16 times. `failures`: how often in a row, 1 or more. `salt`: another one for each gang: two
 * that had what the other needed are to come back at different times.
 */
uint64_t gang_pause_ns(unsigned failures, uint64_t hold_ns, uint32_t salt);
