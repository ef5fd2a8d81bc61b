/*
 * The control socket, <run dir>/allotd.sock: connections, lines, limits. session.h handles the requests. No client can block
 * the loop. Sockets are non-blocking, and a line has at most CONTROL_LINE_MAX bytes. Backpressure: a client that does not read
 * its replies is not read from, and is dropped after CONTROL_DEADLINE_NS. A client that sends descriptors is dropped. Users are
 * served in turn, one request each, and the loop handles other events in between. Callers that wait for a list at the same time
 * get the same reply. If all places are taken, the user with the most connections loses one that holds no tenant. If there is
 * none to drop, a user with fewer than CONTROL_ASSURED connections is still accepted.
 */
#pragma once

#include "base/error.h"

#define CONTROL_LINE_MAX 65536
#define CONTROL_DEADLINE_NS UINT64_C(5000000000)
#define CONTROL_MAX_CONNECTIONS 1024
#define CONTROL_MAX_PER_UID 256 /* per user other than root */
#define CONTROL_KEPT_FOR_ROOT 64
#define CONTROL_ASSURED \
	8 /* guaranteed per user, even if other users' connections hold tenants in all places */
#define CONTROL_MAX_ASSURED 1024 /* for such guaranteed connections, all users together */

struct node;
struct control;

/* Starts to listen. All users may connect, unless the daemon is private. */
int control_open(struct node *node, struct control **ret, struct error *err);
/*
 * Closes every connection and removes the socket. Tenants that are held stay: their holders attach to the next daemon. NULL is
 * fine; returns NULL.
 */
struct control *control_close(struct control *control);

/* Number of connections. */
unsigned control_connections(const struct control *control);

/* Serves a connected stream socket, and owns it after success. For the listener and for tests. */
int control_serve(struct control *control, int fd, struct error *err);
