/*
 * A scene of admission on virtual time: cards, and tenants that come, wait, hold, perhaps grow, and end,
 * some of them several times. After each decision all that must hold is checked.
 */
#pragma once

#include <stdint.h>

struct scene_tally {
	uint64_t decisions, grants, waits, refusals, overdue, growths;
	double wait_of_bound; /* the longest wait as a part of its bound */
};

/* Plays the scene of `seed`. Returns NULL, or the description of a fault; adds to the tally. */
const char *scene_play(uint64_t seed, struct scene_tally *tally);
