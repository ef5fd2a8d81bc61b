/*
 * Sends changes of the cluster to the web page's readers as server-sent events. An event has the changes within one reader's
 * view (view.h) since that reader's previous event. There are at most EVENTS_HZ events a second, and none without changes. The
 * same thread places pods, so events take at most EVENTS_SHARE of its time. Main thread only.
 */
#pragma once

#include "scheduler/page/history.h"
#include "scheduler/service/scheduler.h"

#define EVENTS_HZ 4
#define EVENTS_SHARE 0.02
#define EVENTS_READERS_MAX 16

struct events;

int events_new(struct scheduler *scheduler, struct events **ret, struct error *err);
/* Call after the server's streams are gone. NULL is allowed; returns NULL. */
struct events *events_free(struct events *events);

/* Starts a stream of this view for the call. Returns 0, -ENOMEM, or -EBUSY if there are already EVENTS_READERS_MAX streams. */
int events_add(struct events *events, struct server_call *call, const struct view *view);
/* Ends the call's stream, if any. */
void events_remove(struct events *events, struct server_call *call);

/* Return JSON that the caller frees, or NULL if memory runs out: what the view shows now, and the recent past (history.h). */
char *events_state(struct events *events, const struct view *view);
char *events_history(struct events *events);
