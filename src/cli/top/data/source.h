/*
 * Looks at the daemon again and again, and does changes, in a thread of its own: so the keyboard answers at once also
 * while the daemon does not. Thread safety: all functions from the thread that opened it.
 */
#pragma once

#include "cli/top/data/sample.h"

struct source;

/* What came of a change. */
struct source_outcome {
	bool is_set;
	struct error error; /* code 0: it was done */
	char warning[ERROR_TEXT_MAX];
};

/*
 * Begins; `client` may be NULL, and is the source's from here on, in case of failure too. The target must outlive it.
 */
int source_open(const struct daemon_target *target, struct client *client, uint64_t interval_ns,
		struct source **ret_source, struct error *err);

/* Ends the thread; one that waits for a daemon which does not answer is left to the end of the process. */
struct source *source_close(struct source *source);

/* Readable when source_take() has something new. */
int source_fd(const struct source *source);

/*
 * The newest look (true: there is one, which the caller frees), and the outcome of a change. Errors of a look are in
 * its `trouble`; then it has no snapshot.
 */
bool source_take(struct source *source, struct sample *ret_sample,
		 struct source_outcome *ret_outcome);

/* Asks for a change; the body is the source's. -EBUSY: the one before is not done yet. */
int source_change(struct source *source, const char *op, json_t *body, struct error *err);
