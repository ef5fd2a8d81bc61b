/* One sample of the daemon: its lists, and the snapshot made of them. */
#pragma once

#include "cli/daemon.h"
#include "cli/top/data/snapshot.h"

struct sample {
	bool is_answered; /* a daemon runs, and said what it has */
	json_t *list;     /* its reply, where it was wanted; NULL: none */
	json_t *tasks;    /* ...; NULL also where a daemon has no such operation */
	struct snapshot *snapshot;
	struct error trouble; /* why it is not answered */
};

/*
 * Asks over *client, which is connected where it is NULL, and NULL again after a failure. No daemon, and one that went
 * away, is a sample that is not answered; other failures are errors. The caller frees the sample. `wants_list`: with the
 * list as a tree.
 */
int sample_take(const struct daemon_target *target, struct client **client, bool wants_list,
		struct sample *ret_sample, struct error *err);
void sample_free(struct sample *sample);
