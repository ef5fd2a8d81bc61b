/*
 * A model of cards whose memory tenants take turns on, on virtual time: tenants that work and rest, grow, refuse
 * to move, come and go, and do as policy/memory/swap_schedule.h decides. For the tests of that policy.
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
	unsigned cards; /* mask */
	double weight;
	uint64_t fixed, movable[CARDS], wanted[CARDS];
	uint64_t work_until, rest_until; /* it works, then rests, and so on */
	uint64_t work_ns, rest_ns;       /* means; rest 0: always works */
	enum swap_schedule_place place;
	uint64_t move_ends;
	uint64_t moved_ns, progress;
	bool refuses, has_refused;
	uint64_t needs_since, longest_wait, served_ns;
};

struct model {
	struct swap_schedule r;
	uint64_t now, capacity[CARDS], random;
	double rate;
	struct model_tenant t[TENANTS];
	unsigned refuse_in; /* one of so many moves is refused; 0: none */
	uint64_t moving_ns; /* time in which anybody moves */
	uint64_t most_held[CARDS];
	uint64_t bound_ns; /* on a wait, the greatest that there was */
};

extern struct model m;

/* Below n. */
uint64_t model_random(uint64_t n);

/* Empty cards of so much each. */
void model_start(uint64_t capacity, double rate, uint64_t seed);

/* A tenant with so much on each of its cards; its number. */
int model_add(unsigned cards, uint64_t movable, uint64_t work_ns, uint64_t rest_ns, bool is_in);

/* What a card holds now. */
uint64_t model_held(unsigned card);

void model_tick(void);
void model_run(uint64_t ns);

/* Nothing was ever more than a card has. */
bool model_was_within(void);
