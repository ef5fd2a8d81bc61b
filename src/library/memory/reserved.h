/*
 * Shared by memory pools and by graphs that allocate. The driver reserves memory for pools and graphs in steps of
 * its own, and tells how much it has reserved. That figure is charged.
 */
#pragma once

#include "library/memory/ledger.h"

#define RESERVED_STEP (32ULL << 20) /* the driver's step, as measured with pools */
#define RESERVED_REFRESH_NS (20 * NS_PER_MS)

/*
 * Brings *charged on device `index` to `bytes`, the memory that the driver has reserved now. In the same step, gives back
 * reserved_for_it, which the caller had reserved for the driver's call. In two steps the same bytes would count twice for a
 * moment, and other reservations would be refused. The caller holds the lock that guards *charged.
 */
static inline void reserved_settle(int index, uint64_t *charged, uint64_t bytes,
				   uint64_t reserved_for_it)
{
	if (bytes != *charged + reserved_for_it)
		ledger_adjust(index, (int64_t)(bytes - *charged - reserved_for_it));
	*charged = bytes;
}
