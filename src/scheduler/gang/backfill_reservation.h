/*
 * A lone pod (one outside gangs) takes room as soon as there is some. A gang needs room for all its pods at once, so lone pods
 * could keep it waiting forever. Therefore a gang that has waited long gets a backfill reservation: nodes where it would have
 * room without lone pods, at most one node per pod. Until the gang is placed, these nodes accept only pods
 * that outrank the gang, besides the gang's own. Lone pods that already run there are not evicted.
 *
 * If the deadlines of running pods (activeDeadlineSeconds, which Kubernetes enforces) say by when the gang will have room, these
 * nodes also accept lone pods that Kubernetes ends by then. So such a pod delays the gang past
 * that time only by the time that its own binding and starting take.
 *
 * One gang at a time has a backfill reservation, for at most RESERVATION_MOST_NS. Afterwards that gang must wait for
 * patience_ns again before it gets another. A gang that would have no room even without lone pods gets no backfill reservation.
 *
 * These pure functions decide when; model_backfill.c decides which gang and nodes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RESERVATION_MOST_S 3600
#define RESERVATION_MOST_NS (UINT64_C(1000000000) * RESERVATION_MOST_S)

/*
 * Whether a gang has waited for patience_ns and so may get a backfill reservation. since_ns: begin of the wait; 0: the gang has
 * room, or never searched. The wait begins when the gang first finds no room. It begins anew when nodes for a reservation are
 * searched, and when a reservation ends. Always false if patience_ns is 0.
 */
static inline bool reservation_is_due(uint64_t since_ns, uint64_t now_ns, uint64_t patience_ns)
{
	return patience_ns && since_ns && now_ns >= since_ns && now_ns - since_ns >= patience_ns;
}

static inline bool reservation_is_over(uint64_t is_reserved_since_ns, uint64_t now_ns)
{
	return now_ns - is_reserved_since_ns >= RESERVATION_MOST_NS;
}
