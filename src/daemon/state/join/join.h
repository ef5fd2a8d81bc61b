/* How a process comes to its slot, once it is known who it is. Main thread only. */
#pragma once

#include "daemon/state/tenant.h"
#include "daemon/util/peer.h"

/*
 * Gives the peer a slot. What the same pid had goes first, unless it moves over from an earlier daemon
 * (previous_epoch); a process that asks again for the slot that it has gets that one, and *ret_is_new
 * is false. Takes the peer's pidfd over when the slot is new.
 */
int join_tenant(struct tenant *tenant, struct peer *peer, uint64_t previous_epoch,
		struct process **ret, bool *ret_is_new, struct error *err);
