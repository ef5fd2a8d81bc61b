/*
 * A model of cards on whose memory tenants take turns, on virtual time. Tenants work and pause, grow, refuse to move, start and
 * end, and follow policy/memory/swap_schedule.h. For the tests of that policy.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/memory/swap_schedule.h"

#define GIB (UINT64_C(1) << 30)
#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define TICK (50 * MS)
#define TENANTS 8
#define CARDS 3

struct model_tenant {
	bool is_there;
	unsigned cards; /* bit i: uses card i */
	double weight;
	/* Bytes on each of its cards: that never move; that a swap moves; that it asks for and has not got yet. */
	uint64_t fixed, movable[CARDS], wanted[CARDS];
	uint64_t work_until, rest_until; /* it works, then pauses, and so on */
	uint64_t work_ns, rest_ns;       /* mean times of work and pause; rest_ns 0: always works */
	enum swap_schedule_place place;
	uint64_t move_ends;
	uint64_t moved_ns, progress;
	bool refuses, has_refused;
	uint64_t needs_since, longest_wait, served_ns;
};

struct model {
	struct swap_schedule r;
	uint64_t now, capacity[CARDS], random;
	double rate; /* of moves, in bytes per second */
	struct model_tenant t[TENANTS];
	unsigned refuse_in; /* refuses one of this many moves; 0: none */
	uint64_t moving_ns; /* time in which some tenant moves */
	uint64_t most_held[CARDS];
	uint64_t bound_ns; /* the largest bound on a wait so far */
};

extern struct model m;

/* Returns a random number below n. */
uint64_t model_random(uint64_t n);

/* Starts anew with empty cards of `capacity` bytes each, and moves at `rate` bytes per second. */
void model_start(uint64_t capacity, double rate, uint64_t seed);

/* Adds a tenant with `movable` bytes on each of its cards, on the cards now if is_in. Returns its number. */
int model_add(unsigned cards, uint64_t movable, uint64_t work_ns, uint64_t rest_ns, bool is_in);

/* Memory that the card holds now. */
uint64_t model_held(unsigned card);

void model_tick(void);
void model_run(uint64_t ns);

/* True if no card ever held more than its capacity. */
bool model_was_within(void);
