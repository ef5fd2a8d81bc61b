/*
 * The socket on which the kubelet calls a plugin, and its gRPC server. The kubelet removes such sockets when it starts, and
 * others may remove them at any time: plugin_socket_is_there() detects that. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "net/grpc_server.h"

#define PLUGIN_SOCKET_MAX 108 /* bytes of the path, including the NUL */

struct plugin_socket {
	char path[PLUGIN_SOCKET_MAX]; /* to be filled in by the caller */
	struct grpc_server *server;   /* NULL if not open */
	dev_t device;                 /* device and inode identify the socket's file */
	ino_t inode;
};

/*
 * Replaces the file at the path, unless another program serves it (-EADDRINUSE): two plugins with one socket name would otherwise
 * replace each other's socket and register in turns, forever. `service` is as for grpc_server_new().
 */
int plugin_socket_open(struct plugin_socket *s, struct loop *loop,
		       const struct grpc_service *service, struct error *err);
/* Returns true if the socket is open and its file is still in place. */
bool plugin_socket_is_there(const struct plugin_socket *s);
/* Removes the file if it is ours, and stops the server. Fine if the socket is not open. */
void plugin_socket_close(struct plugin_socket *s);
