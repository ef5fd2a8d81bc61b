/*
 * What pools and graphs that allocate have in common: the driver takes memory for them by itself,
 * in steps, and tells how much it has reserved. They are charged by that figure.
 */
#pragma once

#include "library/memory/ledger.h"

#define RESERVED_STEP (32ULL << 20) /* measured, on pools */
#define RESERVED_REFRESH_NS (20 * NS_PER_MS)

/*
 * Brings `*charged` on device `index` to the `bytes` that the driver has reserved now, in one step
 * with giving `reserved_for_it` back: in two, the same bytes would count twice for a moment, and
 * others be refused. The caller holds the lock of that figure.
 */
static inline void reserved_settle(int index, uint64_t *charged, uint64_t bytes,
				   uint64_t reserved_for_it)
{
	if (bytes != *charged + reserved_for_it)
		ledger_adjust(index, (int64_t)(bytes - *charged - reserved_for_it));
	*charged = bytes;
}
