/*
 * A gRPC server on a unix socket, for one service. It supports unary calls, and calls that answer one request with a stream of
 * messages. All of it belongs to the loop's thread.
 *
 * Peers must be root or the user of this process; connections of others are closed at once. No peer can block the loop or
 * exhaust memory: connections, calls, sizes and times have limits, and about 64 KiB are read from a connection per turn of the
 * loop. `:authority` may have any value, because older kubelets send the socket's path, which nghttp2's own check would refuse.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "net/grpc.h"
#include "net/grpc_service.h"
#include "net/loop.h"

struct grpc_server;
struct grpc_message;

struct grpc_limits grpc_limits_default(void);

/* listen_fd is a non-blocking listening socket, owned by the server after success. service->methods is not copied. */
int grpc_server_new(struct loop *loop, int listen_fd, const struct grpc_service *service,
		    struct grpc_server **ret, struct error *err);

/* Does not wait for peers; calls `gone` for each kept call. Handlers must not call it. NULL is allowed; returns NULL. */
struct grpc_server *grpc_server_free(struct grpc_server *server);

unsigned grpc_server_connections(const struct grpc_server *server);

/* Several calls may send the same message. Returns NULL if out of memory. */
struct grpc_message *grpc_message_new(size_t size);
/* The caller fills these bytes in before it sends the message. */
uint8_t *grpc_message_data(struct grpc_message *message);
/* Releases the caller's reference. NULL is allowed; returns NULL. */
struct grpc_message *grpc_message_unref(struct grpc_message *message);

/*
 * For a handler: keeps the call open after the handler returns. `gone` is called if the call ends without grpc_call_end(): the
 * peer left, cancelled or stalled, the deadline passed, or the server ends. Then the call must not be used any more.
 */
void grpc_call_keep(struct grpc_call *call, void (*gone)(void *data, struct grpc_call *call),
		    void *data);

/*
 * Sends a message. If an earlier message still waits with none of its bytes sent, the new one replaces it, so a slow peer costs
 * at most two messages. Meant for streams whose newest message says everything. The caller keeps its reference.
 */
void grpc_call_send(struct grpc_call *call, struct grpc_message *message);

/* Ends the call after its messages were sent. `text` explains the status to people; NULL if none. */
void grpc_call_end(struct grpc_call *call, enum grpc_status status, const char *text);
