/*
 * The control socket, <run dir>/allotd.sock: connections, lines, limits. What the lines say is
 * session.h's. No client can hold the loop up: sockets never block, a line has CONTROL_LINE_MAX bytes,
 * a client that does not read its replies is not read from, and after CONTROL_DEADLINE_NS is dropped; one
 * that sends descriptors is dropped. Users take turns, a request each, and the loop sees to others in
 * between; all who wait for a list are told the same. When all places are taken, the user with the most
 * connections loses one that holds no tenant; where none can be lost, whoever has few is let in beyond.
 */
#pragma once

#include "base/error.h"

#define CONTROL_LINE_MAX 65536
#define CONTROL_DEADLINE_NS UINT64_C(5000000000)
#define CONTROL_MAX_CONNECTIONS 1024
#define CONTROL_MAX_PER_UID 256 /* of one user who is not root */
#define CONTROL_KEPT_FOR_ROOT 64
#define CONTROL_ASSURED \
	8 /* so many a user may have, though others hold tenants by all the places */
#define CONTROL_MAX_ASSURED 1024 /* of all users together */

struct node;
struct control;

/* Listens. The socket is open to everyone, unless the daemon is private. */
int control_open(struct node *node, struct control **ret, struct error *err);
/*
 * Closes every connection and removes the socket. Tenants that were held stay: their holders attach to
 * the next daemon. NULL is fine; returns NULL.
 */
struct control *control_close(struct control *control);

/* How many connections there are. */
unsigned control_connections(const struct control *control);

/* Serves a connected stream socket, and takes it over on success; for tests and for the listener. */
int control_serve(struct control *control, int fd, struct error *err);
