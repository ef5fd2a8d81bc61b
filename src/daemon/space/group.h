/*
 * Starts, watches and ends one group's MPS control daemon.
 *
 *   off --start--> starting --its server is active--> ready <--> hung
 *                     |                                 |
 *                     +--> failed      its server or the control daemon ends: ending, then
 *                                      starting again while the group has members
 *
 * The control daemon sees one card, by its UUID, and changes no setting of it. After a server's
 * end, the control daemon would start another server for the next client, but it refuses clients
 * until it has noticed that end. So this code ends the control daemon together with its server, and
 * starts a new one once both are gone. Main thread only.
 */
#pragma once

#include "daemon/space/group_state.h"

/*
 * Makes a group in state "off". record.pid may name the previous daemon's control daemon, which is
 * taken over if it still runs.
 */
int mps_group_new(struct node *node, const struct mps_record *record, bool is_open,
		  mps_faulted faulted, mps_ended ended, struct mps_group **ret, struct error *err);
/*
 * Call when a member joins. Makes sure that the group is ready, starting, or will start once it has
 * ended. A hung control daemon is killed, because its clients hang too.
 */
int mps_group_want(struct mps_group *group, struct error *err);
/*
 * Whether a new client has to wait. Checks the processes first, so that the answer is up to date.
 * Calls no callback that frees the group.
 */
bool mps_group_is_starting(struct mps_group *group);
/*
 * Call when the group has no member left. Ends the control daemon and calls ended(), perhaps before
 * it returns.
 */
void mps_group_end(struct mps_group *group);
/*
 * Call when this daemon ends. A control daemon with members keeps running for the next daemon. NULL
 * is allowed; returns NULL.
 */
struct mps_group *mps_group_free(struct mps_group *group);

const char *mps_state_name(enum mps_state state);
const char *mps_fault_name(enum mps_fault fault);
