/*
 * The socket on which the kubelet calls a plugin. A starting kubelet removes the plugins' sockets, and other programs may
 * remove them at any time; plugin_socket_exists() detects that. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "net/grpc_server.h"

#define PLUGIN_SOCKET_MAX 108 /* size of the path, with the NUL */

struct plugin_socket {
	char path[PLUGIN_SOCKET_MAX]; /* to be set by the caller */
	struct grpc_server *server;   /* NULL if not open */
	dev_t device;                 /* device and inode identify the socket's file */
	ino_t inode;
};

/*
 * Opens the socket. Replaces an existing file, unless a program serves it (-EADDRINUSE): two plugins of one name would
 * otherwise keep replacing each other's socket. `service` is as for grpc_server_new().
 */
int plugin_socket_open(struct plugin_socket *s, struct loop *loop,
		       const struct grpc_service *service, struct error *err);
/* True if the socket is open and its file in place. */
bool plugin_socket_exists(const struct plugin_socket *s);
/* Stops the server, and removes the file if it is ours. Allowed if not open. */
void plugin_socket_close(struct plugin_socket *s);
