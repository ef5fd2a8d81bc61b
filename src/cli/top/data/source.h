/*
 * Samples the daemon periodically, and does changes, in a separate thread. So the keyboard stays responsive while the
 * daemon does not answer. Thread safety: call all functions from the thread that opened the source.
 */
#pragma once

#include "cli/top/data/sample.h"

struct source;

/* The result of a change. */
struct source_outcome {
	bool is_set;
	struct error error; /* code 0 if the change was done */
	char warning[ERROR_TEXT_MAX];
};

/*
 * Starts the thread. `client` may be NULL; the source takes ownership of it, also on failure. The target must outlive
 * the source.
 */
int source_open(const struct daemon_target *target, struct client *client, uint64_t interval_ns,
		struct source **ret_source, struct error *err);

/* Ends the thread. A thread that still waits for the daemon's answer runs on until the process ends. */
struct source *source_close(struct source *source);

/* Returns a file descriptor that is readable when source_take() has something new. */
int source_fd(const struct source *source);

/*
 * Takes the newest sample and the result of a change. Returns true if there is a new sample; the caller frees it. A
 * sample that failed has no snapshot, and has the error in `trouble`.
 */
bool source_take(struct source *source, struct sample *ret_sample,
		 struct source_outcome *ret_outcome);

/* Requests a change; the source takes ownership of the body. -EBUSY if the previous change is not done yet. */
int source_change(struct source *source, const char *op, json_t *body, struct error *err);
