/*
 * How long a turn on a device is, and how much work may be in flight in it.
 *
 * A gang's turn (device_gang.h) costs more than another tenant's turn: all of the gang's devices wait until the last device is
 * free, and its ranks begin with nothing in flight. Work that waits for another rank also counts as in flight and soon fills
 * the usual depth. So while a device has a gang among its tenants, turns are longer and more work may be in flight. Neither
 * helps much without the other (docs/decisions/gang-turns.md). Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct turn_terms {
	uint64_t quantum_ns;
	uint64_t quantum_min_ns;
	/* most work in flight; also the longest time by which LEASE_CLOSING (launch no more) precedes a turn's end */
	uint64_t depth_ns;
};

/* Returns `usual` or, with has_gang, for each field the larger of `usual` and `gang`. */
struct turn_terms turn_terms_choose(const struct turn_terms *usual, const struct turn_terms *gang,
				    bool has_gang);
