/* The driver reserves memory for pools and graphs in steps of its own, and states the reserved size, which is charged. */
#pragma once

#include "library/memory/ledger.h"

#define RESERVED_STEP (32ULL << 20)          /* the driver's step, as measured with pools */
#define RESERVED_REFRESH_NS (20 * NS_PER_MS) /* time between two updates of the charges */

/*
 * Charges `bytes`, which the driver has reserved now, and gives back reserved_for_it, the quota reserved for the call. Does
 * both at once: otherwise the same bytes would count twice for a moment. The caller holds the lock that guards *charged.
 */
static inline void reserved_update_charge(int index, uint64_t *charged, uint64_t bytes,
					  uint64_t reserved_for_it)
{
	if (bytes != *charged + reserved_for_it)
		ledger_adjust(index, (int64_t)(bytes - *charged - reserved_for_it));
	*charged = bytes;
}
