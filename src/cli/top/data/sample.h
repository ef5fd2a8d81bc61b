/* One sample of the daemon: its replies to `list` and `tasks`, and the snapshot made of them. */
#pragma once

#include "cli/daemon.h"
#include "cli/top/data/snapshot.h"

struct sample {
	bool is_answered; /* a daemon runs and replied */
	json_t *list;     /* the reply to `list`; NULL if not wanted or not answered */
	json_t *tasks;    /* the reply to `tasks`; NULL also if the daemon is too old for `tasks` */
	struct snapshot *snapshot;
	/* why is_answered is false */
	struct error trouble;
};

/*
 * Asks the daemon over *client; connects first if *client is NULL. If the daemon can't be asked, frees the client and sets
 * *client to NULL. If no daemon runs, or the daemon ends meanwhile, returns 0 with is_answered false. Returns -errno
 * after other failures. `wants_list`: also keep the list as a tree. Free the sample with sample_free().
 */
int sample_take(const struct daemon_target *target, struct client **client, bool wants_list,
		struct sample *ret_sample, struct error *err);
void sample_free(struct sample *sample);
