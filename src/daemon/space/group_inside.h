/*
 * Shared by group.c, which starts and ends a group's control daemon, and watch.c, which watches it.
 */
#pragma once

#include "daemon/space/group_state.h"

/* Handlers of the group's timer and of its control daemon's pidfd. */
void mps_watch_due(void *data, uint32_t events);
void mps_control_gone(void *data, uint32_t events);

/* How to run the tool for this group: which control daemon, and as which user. */
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
/* Remembers a server that the scan no longer lists but that may not have ended. */
void mps_keep_old(struct mps_group *group, const struct mps_server *server);
/* The control daemon is gone: decides what is next. */
void mps_gone(struct mps_group *group);
/* Starts again once the old processes are gone. Until then, the group's timer calls it again. */
void mps_start_again(struct mps_group *group);
/* Whether a failed start may be due to the old processes, so that it should be retried. */
bool mps_is_settling(const struct mps_group *group);
