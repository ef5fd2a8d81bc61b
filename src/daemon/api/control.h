/*
 * The control socket, <run dir>/allotd.sock. dispatch.h handles the requests.
 *
 * No client can block the loop. Sockets do not block, and a request has at most CONTROL_LINE_MAX bytes. While a client does not
 * read its replies, nothing is read from that client; after CONTROL_DEADLINE_NS its connection is closed. So is the connection
 * of a client that sends descriptors. Users are served in turn, one request each. Clients that ask for the list of tenants at
 * the same time get the same reply.
 *
 * If all connections are taken, a new connection replaces an old connection of the user (not root) with the most connections.
 * Connections that hold a tenant or a trace are never replaced. If no connection can be replaced, the daemon accepts a new
 * connection only from a user with fewer than CONTROL_ASSURED connections.
 */
#pragma once

#include "base/error.h"

#define CONTROL_LINE_MAX 65536
#define CONTROL_DEADLINE_NS UINT64_C(5000000000)
#define CONTROL_MAX_CONNECTIONS 1024
#define CONTROL_MAX_PER_UID 256 /* connections of a user other than root */
#define CONTROL_KEPT_FOR_ROOT 64
/* connections that each user gets, even if all other connections are taken and hold tenants */
#define CONTROL_ASSURED 8
/* most connections, over all users, that CONTROL_ASSURED may add to CONTROL_MAX_CONNECTIONS */
#define CONTROL_MAX_ASSURED 1024

struct node;
struct control;

/* Starts to listen. All users may connect to the system's daemon, only its own user to a private one. */
int control_open(struct node *node, struct control **ret, struct error *err);
/*
 * Closes every connection and removes the socket. Tenants that a client holds stay, because that client will attach to the next
 * daemon. NULL is allowed; returns NULL.
 */
struct control *control_close(struct control *control);

unsigned control_connections(const struct control *control);

/* Serves a client on a connected stream socket. On success owns `fd`. */
int control_serve(struct control *control, int fd, struct error *err);
