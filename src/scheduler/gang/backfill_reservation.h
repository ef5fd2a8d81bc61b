/*
 * Pods outside gangs (lone pods) take room as soon as there is some. A gang needs room for all its pods at once, so lone pods
 * could keep a gang waiting forever. Therefore a gang that has waited long gets a backfill reservation: the nodes where the
 * gang would have room if no lone pods were there, at most one node per pod. Lone pods that do not outrank the gang are not
 * placed on these nodes until the gang is placed; those that are there end by themselves.
 *
 * Only one gang at a time has a backfill reservation, for at most RESERVATION_MOST_NS. Afterwards the gang waits as long
 * again before its next one. A gang that would have no room even without lone pods gets none, so that no nodes are kept free
 * in vain.
 *
 * This file decides when, as pure functions; model_backfill.c decides which gang and which nodes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RESERVATION_MOST_NS (UINT64_C(3600) * 1000000000)

/*
 * Returns true if a gang has waited for room for patience_ns, so that it may get a backfill reservation. since_ns is when the
 * gang first found no room; 0 if it did not. If patience_ns is 0, the result is always false.
 */
static inline bool reservation_is_due(uint64_t since_ns, uint64_t now_ns, uint64_t patience_ns)
{
	return patience_ns && since_ns && now_ns >= since_ns && now_ns - since_ns >= patience_ns;
}

/* Returns true if a backfill reservation that began at is_reserved_since_ns must end. */
static inline bool reservation_is_over(uint64_t is_reserved_since_ns, uint64_t now_ns)
{
	return now_ns - is_reserved_since_ns >= RESERVATION_MOST_NS;
}
