/*
 * The socket on which the kubelet calls a plugin, and its gRPC server. The kubelet removes sockets when it starts, and so may
 * anybody: plugin_socket_is_there() tells. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "net/grpc_server.h"

#define PLUGIN_SOCKET_MAX 108 /* of its path, its NUL included */

struct plugin_socket {
	char path[PLUGIN_SOCKET_MAX]; /* the caller's to fill in */
	struct grpc_server *server;   /* NULL: it is not open */
	dev_t device;                 /* the file's, to know it again by ... */
	ino_t inode;                  /* ... this */
};

/*
 * Replaces what is at the path, unless another program serves it (-EADDRINUSE): two that replace each other's socket would
 * register in turns for ever. The service as for grpc_server_new().
 */
int plugin_socket_open(struct plugin_socket *s, struct loop *loop,
		       const struct grpc_service *service, struct error *err);
/* Is it open, and its file in its place? */
bool plugin_socket_is_there(const struct plugin_socket *s);
/* Removes the file if it is ours, and ends the server. Also when it is not open. */
void plugin_socket_close(struct plugin_socket *s);
