/*
 * Sends the page's state (state.h) as server-sent events, EVENTS_HZ times a second while there are clients. A client first gets
 * the whole state, then differences. While a client's last event is not sent completely, the client gets no further events; its
 * next event then has the whole state. A client whose event takes longer than SERVER_DEADLINE_NS is dropped. Main thread only.
 */
#pragma once

#include "daemon/export/page/history.h"
#include "daemon/state/node/node.h"
#include "http/http_server.h"

#define EVENTS_HZ 4
#define EVENTS_READERS_MAX 16

struct events;

int events_new(struct node *node, struct events **ret, struct error *err);
/* Frees `events`. All streams must have ended. NULL is allowed; returns NULL. */
struct events *events_free(struct events *events);

/* Starts a stream as the answer to the call. Returns -EBUSY beyond EVENTS_READERS_MAX, or -ENOMEM. */
int events_add(struct events *events, struct server_call *call);
/* Forgets the client of a call whose stream has ended. Does nothing if the call has no stream here. */
void events_remove(struct events *events, struct server_call *call);

/* Returns the history; NULL if none. It is recorded from the first client until ten minutes after the last client has left. */
const struct history *events_history(const struct events *events);
