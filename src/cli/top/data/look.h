/* One look at the daemon: its lists, and the snapshot made of them. */
#ifndef ALLOT_CLI_TOP_DATA_LOOK_H
#define ALLOT_CLI_TOP_DATA_LOOK_H

#include "cli/daemon.h"
#include "cli/top/data/snapshot.h"

struct look {
	bool is_answered; /* a daemon runs, and said what it has */
	json_t *list;     /* its reply, where it was wanted; NULL: none */
	json_t *tasks;    /* ...; NULL also where a daemon has no such operation */
	struct snapshot *snapshot;
	struct error trouble; /* why it is not answered */
};

/*
 * Asks over *client, which is connected where it is NULL, and NULL again after a failure. No daemon, and one that went
 * away, is a look that is not answered; other failures are errors. The caller frees the look. `wants_list`: with the
 * list as a tree.
 */
int look_take(const struct daemon_target *target, struct client **client, bool wants_list,
	      struct look *ret_look, struct error *err);
void look_free(struct look *look);

#endif
