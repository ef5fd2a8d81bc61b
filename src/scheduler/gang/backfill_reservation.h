/*
 * Pods that come alone take room as soon as there is some, and could keep a gang waiting for ever, which needs room for all of
 * it at a time. So one that has waited for a patience is given a backfill reservation: the nodes where it would sit if no lone pod were there,
 * as many as it has pods at most. Lone pods that do not outrank it are placed elsewhere, until it sits; those that are there
 * end by themselves. One gang has a backfill reservation at a time, for RESERVATION_MOST_NS at most, and waits as long again before it has another one,
 * or never, where it would not sit even so: the cluster stands still for nobody.
 *
 * When, as pure functions; who and where: model_backfill.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RESERVATION_MOST_NS (UINT64_C(3600) * 1000000000)

/* `since_ns`: when it was first told that there is no room; 0: it was not. `patience_ns` 0: never. */
static inline bool reservation_is_due(uint64_t since_ns, uint64_t now_ns, uint64_t patience_ns)
{
	return patience_ns && since_ns && now_ns >= since_ns && now_ns - since_ns >= patience_ns;
}

/* `is_reserved_since_ns`: when it began. */
static inline bool reservation_is_over(uint64_t is_reserved_since_ns, uint64_t now_ns)
{
	return now_ns - is_reserved_since_ns >= RESERVATION_MOST_NS;
}
