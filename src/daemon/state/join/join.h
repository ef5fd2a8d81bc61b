/* Gives a registering process its slot. Main thread only. */
#pragma once

#include "daemon/state/tenant.h"
#include "daemon/util/peer.h"

/*
 * Gives the peer a slot, in *ret. If the peer's program was never registered (previous_epoch is 0), first frees the slots that
 * the peer's pid had before an exec. *ret_is_new is false for a process that has its slot already. Takes the peer's pidfd if
 * the slot is new.
 */
int join_tenant(struct tenant *tenant, struct peer *peer, uint64_t previous_epoch,
		struct process **ret, bool *ret_is_new, struct error *err);
