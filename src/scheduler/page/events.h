/*
 * Sends the cluster's changes to the readers of the page as server-sent events. Each event has what has changed since the
 * previous one, within the reader's view. There are at most EVENTS_HZ events a second, and none while nothing changes. All
 * events together take at most EVENTS_SHARE of the time of this thread, which also places pods: if the events take long to
 * make, they come less often. Call from the main thread only.
 */
#pragma once

#include "scheduler/page/past.h"
#include "scheduler/service/scheduler.h"

#define EVENTS_HZ 4
#define EVENTS_SHARE 0.02
#define EVENTS_READERS_MAX 16

struct events;

int events_new(struct scheduler *scheduler, struct events **ret, struct error *err);
/* Call when the server's streams are gone. `events` may be NULL; returns NULL. */
struct events *events_free(struct events *events);

/*
 * Starts a stream of this view for a call that is answered with a stream. Returns 0, -ENOMEM, or -EBUSY if there are too many
 * streams.
 */
int events_add(struct events *events, struct server_call *call, const struct view *view);
/* Ends the call's stream. Ignores calls without a stream. */
void events_remove(struct events *events, struct server_call *call);

/*
 * Returns the current state of what a view shows, as a JSON object. The caller frees the text. Returns NULL if memory runs
 * out.
 */
char *events_state(struct events *events, const struct view *view);
/* Returns the recent past (past.h) as a JSON object. The caller frees the text. Returns NULL if memory runs out. */
char *events_past(struct events *events);
