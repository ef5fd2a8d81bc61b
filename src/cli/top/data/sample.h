/* One sample of the daemon: its lists, and the snapshot made of them. */
#pragma once

#include "cli/daemon.h"
#include "cli/top/data/snapshot.h"

struct sample {
	bool is_answered; /* a daemon runs and replied */
	json_t *list;     /* the reply to `list`; NULL if not wanted or not answered */
	json_t *tasks;    /* the reply to `tasks`; NULL also if the daemon has no such operation */
	struct snapshot *snapshot;
	struct error trouble; /* why the sample is not answered */
};

/*
 * Asks the daemon over *client. If *client is NULL, connects first; after a failure, *client is NULL. If no daemon runs
 * or the daemon ended meanwhile, the result is a sample with is_answered false; other failures are errors. If
 * `wants_list` is set, the sample also has the list as a tree. The caller frees the sample.
 */
int sample_take(const struct daemon_target *target, struct client **client, bool wants_list,
		struct sample *ret_sample, struct error *err);
void sample_free(struct sample *sample);
