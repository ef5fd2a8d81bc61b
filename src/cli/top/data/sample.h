/* One sample of the daemon: its replies to `list` and `tasks`, and the snapshot made of them. */
#pragma once

#include "cli/daemon.h"
#include "cli/top/data/snapshot.h"

struct sample {
	bool is_answered; /* a daemon runs and replied */
	json_t *list;     /* the reply to `list`; NULL if not wanted or not answered */
	json_t *tasks;    /* the reply to `tasks`; NULL also if the daemon is too old for it */
	struct snapshot *snapshot;
	/* why the daemon did not reply */
	struct error trouble;
};

/*
 * Asks the daemon over *client; connects first if *client is NULL. Frees the client and sets *client to NULL if that fails.
 * Returns 0 even if no daemon runs: is_answered is false. `wants_list`: keep the list as a tree. Free with sample_free().
 */
int sample_take(const struct daemon_target *target, struct client **client, bool wants_list,
		struct sample *ret_sample, struct error *err);
void sample_free(struct sample *sample);
