/*
 * A lone pod (one outside gangs) takes room as soon as there is some. A gang needs room for all its pods at once, so lone pods
 * could keep it waiting forever. Therefore a gang that has waited long gets a backfill reservation: nodes where it would have
 * room without lone pods, at most one node per pod. Until the gang is placed, these nodes accept only the gang's pods, and pods
 * that outrank the gang. Lone pods that already run there are not evicted.
 *
 * Deadlines of running pods (activeDeadlineSeconds, which Kubernetes enforces) may tell by when the gang will have room. Then
 * these nodes also accept lone pods that Kubernetes ends by that time. Such a pod delays the gang only by the time that its own
 * binding and starting take.
 *
 * One gang at a time has a backfill reservation, for at most RESERVATION_MOST_NS. Afterwards it must wait for patience_ns again
 * before it gets another. A gang that would have no room even without lone pods gets none.
 *
 * These pure functions decide when; model_backfill.c decides which gang and nodes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define RESERVATION_MOST_S 3600
#define RESERVATION_MOST_NS (UINT64_C(1000000000) * RESERVATION_MOST_S)

/*
 * since_ns: begin of the gang's wait; 0 if it has room, or never searched. The wait begins when the gang first finds no room,
 * and anew when nodes for a reservation are searched, or a reservation ends. Always false if patience_ns is 0.
 */
static inline bool reservation_is_due(uint64_t since_ns, uint64_t now_ns, uint64_t patience_ns)
{
	return patience_ns && since_ns && now_ns >= since_ns && now_ns - since_ns >= patience_ns;
}

static inline bool reservation_is_over(uint64_t is_reserved_since_ns, uint64_t now_ns)
{
	return now_ns - is_reserved_since_ns >= RESERVATION_MOST_NS;
}
