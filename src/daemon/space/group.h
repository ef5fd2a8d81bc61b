/*
 * One group's MPS control daemon: started, watched and ended.
 *
 *   off --start--> starting --its server is active--> ready <--> hung
 *                     |                                 |
 *                     +--> failed      its server ends, or it does: ending, and starting again while there are members
 *
 * It sees one card, by its UUID, and changes no setting of it. After a server's end it would start another one for the next
 * client, but who comes while it has not heard of that end is refused. So it is ended with its server, and the group has
 * another control daemon once both are over. Main thread only.
 */
#pragma once

#include "daemon/space/group_state.h"

/* Off; record.pid: a control daemon of the daemon before, which is taken over if it still runs. */
int mps_group_new(struct node *node, const struct mps_record *record, bool is_open,
		  mps_faulted faulted, mps_ended ended, struct mps_group **ret, struct error *err);
/*
 * A member came: whatever it was, it is starting, ready, or will be once it has ended. What hangs is ended by force: its
 * clients hang as well.
 */
int mps_group_want(struct mps_group *group, struct error *err);
/*
 * A client that comes now has to wait. It is looked at for this: so what is handed out was there just now. No callback
 * frees the group here.
 */
bool mps_group_is_starting(struct mps_group *group);
/* Nobody is in it any more: ends, and calls ended(), perhaps before it returns. */
void mps_group_end(struct mps_group *group);
/* This daemon ends: what has members runs on, for the next one. NULL is fine; returns NULL. */
struct mps_group *mps_group_free(struct mps_group *group);

const char *mps_state_name(enum mps_state state);
const char *mps_fault_name(enum mps_fault fault);
