/*
 * Sends the state to clients as server-sent events, EVENTS_HZ times a second. Each state is made once for all clients, and not
 * at all without clients. A client first gets the whole state, then differences from the state before. Backpressure: a client
 * that has not yet taken the last event skips this one, and gets the whole state next. A client that does not take an event
 * within SERVER_DEADLINE_NS is dropped. Main thread only.
 */
#pragma once

#include "daemon/export/page/history.h"
#include "daemon/state/node/node.h"
#include "http/server.h"

#define EVENTS_HZ 4
#define EVENTS_READERS_MAX 16

struct events;

int events_new(struct node *node, struct events **ret, struct error *err);
/* Precondition: the server's streams have ended. NULL is fine; returns NULL. */
struct events *events_free(struct events *events);

/* Answers the call with a stream of events. -EBUSY if there are too many streams. */
int events_add(struct events *events, struct server_call *call);
/* To be called when the stream has ended. No effect if the call has no stream here. */
void events_remove(struct events *events, struct server_call *call);

/*
 * Returns the recent history. Recording starts with the first client and stops ten minutes after the last. Returns NULL while
 * nothing is recorded.
 */
const struct history *events_history(const struct events *events);
