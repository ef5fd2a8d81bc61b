/*
 * A group is the tenants that run on a card at the same time, through NVIDIA's MPS: their processes (clients) connect to an MPS
 * server, which a control daemon starts. This module starts, watches and ends the control daemon of one group.
 *
 *  off --start--> starting --its server is active--> ready <--> hung
 *  starting --> failed
 *  ready, hung --its server or the control daemon ends--> ending; then starting again while the
 *                                                        group has members
 *
 * The control daemon sees one card, by its UUID, and changes no setting of it. When a server ends, the control daemon refuses
 * clients until it has noticed that end. So this code then ends the control daemon too, and starts a new one once both are
 * gone. Main thread only.
 */
#pragma once

#include "daemon/space/group_state.h"

/*
 * Makes a group in state "off". If record.pid, the previous daemon's control daemon, still runs, it is taken over, and the
 * state is "starting". is_open: see mps_make_dirs(); the callbacks: see group_state.h.
 */
int mps_group_new(struct node *node, const struct mps_record *record, bool is_open,
		  mps_faulted faulted, mps_ended ended, struct mps_group **ret, struct error *err);
/*
 * Call when a member joins: starts the group now, or once its earlier processes have ended. A hung control daemon is killed,
 * because its clients hang too.
 */
int mps_group_start(struct mps_group *group, struct error *err);
/* Returns true if a new client has to wait for MPS. Scans the processes first. Calls no callback that frees the group. */
bool mps_group_is_starting(struct mps_group *group);
/* Call when the last member has left. Ends the control daemon, then calls ended(), perhaps before returning. */
void mps_group_end(struct mps_group *group);
/* Call when this daemon ends. A control daemon with members runs on for the next daemon. NULL is allowed; returns NULL. */
struct mps_group *mps_group_free(struct mps_group *group);

const char *mps_state_name(enum mps_state state);
const char *mps_fault_name(enum mps_fault fault);
