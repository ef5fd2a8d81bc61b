/*
 * Sends the page's state (state.h) to clients as server-sent events, EVENTS_HZ times a second. Each state is made once for all
 * clients, and not at all without clients. A client first gets the whole state, then only differences from the previous state.
 * Backpressure: while a client's last event is not sent completely, further events skip that client; it then gets the whole
 * state. A client that does not take an event within SERVER_DEADLINE_NS is dropped. Main thread only.
 */
#pragma once

#include "daemon/export/page/history.h"
#include "daemon/state/node/node.h"
#include "http/http_server.h"

#define EVENTS_HZ 4
#define EVENTS_READERS_MAX 16

struct events;

int events_new(struct node *node, struct events **ret, struct error *err);
/* Frees `events`. All streams of the server must have ended. NULL is allowed; returns NULL. */
struct events *events_free(struct events *events);

/* Starts a stream of events as the answer to the call. Returns -EBUSY if there are EVENTS_READERS_MAX streams, or -ENOMEM. */
int events_add(struct events *events, struct server_call *call);
/* Call when the stream of `call` has ended. Does nothing if `call` has no stream here. */
void events_remove(struct events *events, struct server_call *call);

/*
 * Returns the recent history. Recording starts with the first client and stops ten minutes after the last. Returns NULL while
 * nothing is recorded.
 */
const struct history *events_history(const struct events *events);
