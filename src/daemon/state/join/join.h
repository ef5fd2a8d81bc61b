/* Gives an identified process its slot. Main thread only. */
#pragma once

#include "daemon/state/tenant.h"
#include "daemon/util/peer.h"

/*
 * Gives the peer a slot. Slots that its pid has already are freed first, unless the process moves
 * over from an earlier daemon (previous_epoch is not 0). If a process asks again for the slot that
 * it has, *ret is that slot's process and *ret_is_new is false. If the slot is new, takes ownership
 * of the peer's pidfd.
 */
int join_tenant(struct tenant *tenant, struct peer *peer, uint64_t previous_epoch,
		struct process **ret, bool *ret_is_new, struct error *err);
