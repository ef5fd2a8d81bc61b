/*
 * A scene of the admission of memory, on virtual time: cards, and tenants that come, wait, hold memory,
 * perhaps grow, and end, some of them several times. The rules are checked after each decision.
 */
#pragma once

#include <stdint.h>

struct scene_tally {
	uint64_t decisions, grants, waits, refusals, overdue, growths;
	double wait_of_bound; /* the largest part of its bound that a wait took */
};

/* Plays the scene of `seed`. Returns NULL, or the description of a fault; adds to the tally. */
const char *scene_play(uint64_t seed, struct scene_tally *tally);
