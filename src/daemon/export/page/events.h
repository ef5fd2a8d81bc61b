/*
 * The state as it changes, to those who look: server-sent events, EVENTS_HZ a second. A state is made once for all of
 * them, and not at all while nobody looks: whole at first, then as differences from the one before. Who has not taken the one
 * before misses this one, and is told of the next whole; who does not take one in SERVER_DEADLINE_NS is dropped. Main thread only.
 */
#pragma once

#include "daemon/export/page/history.h"
#include "daemon/state/node/node.h"
#include "http/server.h"

#define EVENTS_HZ 4
#define EVENTS_READERS_MAX 16

struct events;

int events_new(struct node *node, struct events **ret, struct error *err);
/* The server's streams must be gone. NULL is fine; returns NULL. */
struct events *events_free(struct events *events);

/* A stream begins, of a call that is answered so. -EBUSY: there are enough. */
int events_add(struct events *events, struct server_call *call);
/* It is over; nothing where it is none of these. */
void events_remove(struct events *events, struct server_call *call);

/*
 * What was so before. It is written down from the first that looks on, until ten minutes after the last: NULL where nobody
 * has looked for so long.
 */
const struct history *events_history(const struct events *events);
