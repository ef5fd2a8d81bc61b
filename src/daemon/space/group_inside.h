/*
 * Shared by group.c, which starts and ends a group's control daemon, and group_watch.c, which
 * watches it.
 */
#pragma once

#include "daemon/space/group_state.h"

/* Handlers of the group's timer and of its control daemon's pidfd. */
void mps_watch_due(void *data, uint32_t events);
void mps_control_gone(void *data, uint32_t events);

/*
 * Returns how to run the tool for this group: which control daemon it talks to, and as which user
 * it runs.
 */
struct mps_spawn mps_group_spawn(const struct mps_group *group, const char *pipe_dir);

/* mps_fail() ends the start and reports the fault; mps_tell() only reports a fault. */
void mps_fail(struct mps_group *group, const char *why);
void mps_tell(struct mps_group *group, enum mps_fault fault, int pid, const char *what);

/* Kills the servers, then the control daemon. */
void mps_kill(struct mps_group *group);
/*
 * Kills a control daemon that cannot reliably take new clients; the group then starts another one.
 */
void mps_renew(struct mps_group *group);
/*
 * Remembers a server in group->old: mps_scan() no longer lists it, but it may not have ended yet.
 */
void mps_keep_old(struct mps_group *group, const struct mps_server *server);
/* Call when the control daemon has ended: starts another, ends the group or reports a failure. */
void mps_gone(struct mps_group *group);
/*
 * Starts a control daemon again if all old processes have ended. If not, the group's timer calls
 * this again.
 */
void mps_start_again(struct mps_group *group);
/*
 * Whether the group's old processes have only just ended. They may be the cause if a start fails
 * now, so it should be retried.
 */
bool mps_is_settling(const struct mps_group *group);
