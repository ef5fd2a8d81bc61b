/*
 * The terms of turns on a card: how long a turn is, and how much work may be in flight in it.
 *
 * A gang's turn (gang.h) costs more than another's: all of its cards wait for the last of them to be free, and its ranks begin
 * with nothing in flight. Work that waits for another rank counts as in flight too, so the usual depth is soon full of
 * it. So while a gang is among a card's tenants, turns are longer and more may be in flight; one does little without the
 * other (docs/decisions/gang-turns.md).
 *
 * Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct turn_terms {
	uint64_t quantum_ns;     /* length of a turn at most ... */
	uint64_t quantum_min_ns; /* ... and at least */
	uint64_t depth_ns; /* work in flight; by so much CLOSING is sent ahead of a turn's end at most */
};

/* Beside a gang each is what `gang` says, where that is more than `usual`. */
struct turn_terms turn_terms_choose(const struct turn_terms *usual, const struct turn_terms *gang,
				    bool has_gang);
