/* Between group.c, which starts and ends a group's control daemon, and watch.c, which looks at it. */
#pragma once

#include "daemon/space/group_state.h"

/* Handlers of the group's timer and of its control daemon's pidfd. */
void mps_watch_due(void *data, uint32_t events);
void mps_control_gone(void *data, uint32_t events);

/* Whom to ask, and as whom. */
struct mps_spawn mps_group_spawn(const struct mps_group *group, const char *pipe_dir);

/* Tells of a fault; what ends the start as well. */
void mps_fail(struct mps_group *group, const char *why);
void mps_tell(struct mps_group *group, enum mps_fault fault, int pid, const char *what);

/* Ends by force: the servers, then the control daemon. */
void mps_kill(struct mps_group *group);
/* What is left of it takes no new client for sure: it is ended by force, and the group gets another one. */
void mps_renew(struct mps_group *group);
/* A server that is not to be seen any more, but perhaps not over. */
void mps_keep_old(struct mps_group *group, const struct mps_server *server);
/* The control daemon is gone: what is next. */
void mps_gone(struct mps_group *group);
/* Starts again once what was before is over; not yet: is called again by the group's timer. */
void mps_start_again(struct mps_group *group);
/* What fails now may be for what was before: it is tried again. */
bool mps_is_settling(const struct mps_group *group);
