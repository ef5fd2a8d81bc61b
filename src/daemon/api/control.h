/*
 * The control socket, <run dir>/allotd.sock: connections, lines, limits. dispatch.h handles the requests. No client can block
 * the loop: sockets are non-blocking, and a line has at most CONTROL_LINE_MAX bytes. Backpressure: nothing more is read from a
 * client that does not read its replies, and that client is dropped after CONTROL_DEADLINE_NS. A client that sends descriptors
 * is dropped. Users are served in turn, one request each, and the loop handles other events in between. Callers that wait for a
 * list of tenants at the same time get the same reply.
 *
 * If all connections are taken, an old one is closed for a new one: one that holds no tenant, of the user with the most
 * connections. If no connection can be closed, a new one is still accepted from a user with fewer than CONTROL_ASSURED
 * connections.
 */
#pragma once

#include "base/error.h"

#define CONTROL_LINE_MAX 65536
#define CONTROL_DEADLINE_NS UINT64_C(5000000000)
#define CONTROL_MAX_CONNECTIONS 1024
#define CONTROL_MAX_PER_UID 256 /* per user other than root */
#define CONTROL_KEPT_FOR_ROOT 64
#define CONTROL_ASSURED \
	8 /* connections guaranteed to each user, even if all others are taken and hold tenants */
/* most connections beyond CONTROL_MAX_CONNECTIONS that CONTROL_ASSURED may add, for all users together */
#define CONTROL_MAX_ASSURED 1024

struct node;
struct control;

/* Starts to listen. All users may connect, unless the daemon is private. */
int control_open(struct node *node, struct control **ret, struct error *err);
/*
 * Closes every connection and removes the socket. The tenants that connections hold stay, and their holders attach to the next
 * daemon. NULL is fine; returns NULL.
 */
struct control *control_close(struct control *control);

/* Returns the number of connections. */
unsigned control_connections(const struct control *control);

/* Serves a client on a connected stream socket, and owns the socket after success. Called by the listener, and by tests. */
int control_serve(struct control *control, int fd, struct error *err);
