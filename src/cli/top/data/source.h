/* A thread asks the daemon, so that keys work while the daemon does not answer. Call all functions from one thread. */
#pragma once

#include "cli/top/data/sample.h"

struct source;

struct source_outcome {
	bool is_set;
	struct error error; /* code 0 if the change was done */
	char warning[ERROR_TEXT_MAX];
};

/* Starts the thread. Takes ownership of `client` (may be NULL), also on failure. The target must outlive the source. */
int source_open(const struct daemon_target *target, struct client *client, uint64_t interval_ns,
		struct source **ret_source, struct error *err);

/* Ends the thread. A thread that still waits for the daemon's answer runs on until the process ends. */
struct source *source_close(struct source *source);

/* Returns a descriptor that is readable when source_take() has something new. */
int source_fd(const struct source *source);

/*
 * Returns true if there is a new sample, which the caller frees. If sampling failed, it has `trouble` and no snapshot.
 * *ret_outcome is the result of a change that ended since the last call; is_set is false if none ended.
 */
bool source_take(struct source *source, struct sample *ret_sample,
		 struct source_outcome *ret_outcome);

/* Requests a change; the source takes ownership of `body`. Returns -EBUSY if the previous change is not done yet. */
int source_change(struct source *source, const char *op, json_t *body, struct error *err);
