/*
 * The cluster as it changes, to those who look: server-sent events, each with what is otherwise than the one before, of what its
 * reader looks at; EVENTS_HZ a second at most, and none where nothing has changed. All of it takes EVENTS_SHARE of the thread's
 * time at most, which is the one that places pods: where a state takes long, states are fewer. Main thread only.
 */
#pragma once

#include "scheduler/page/past.h"
#include "scheduler/service/scheduler.h"

#define EVENTS_HZ 4
#define EVENTS_SHARE 0.02
#define EVENTS_READERS_MAX 16

struct events;

int events_new(struct scheduler *scheduler, struct events **ret, struct error *err);
/* The server's streams must be gone. NULL is fine; returns NULL. */
struct events *events_free(struct events *events);

/* A stream of that view begins, of a call that is answered so. -EBUSY: there are enough. */
int events_add(struct events *events, struct server_call *call, const struct view *view);
/* It is over; nothing where it is none of these. */
void events_remove(struct events *events, struct server_call *call);

/* All of what a view shows, once: an object. NULL: out of memory. */
char *events_state(struct events *events, const struct view *view);
/* An object of what was so before. NULL: out of memory. */
char *events_past(struct events *events);
