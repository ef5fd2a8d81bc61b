/*
 * A gRPC server on a unix socket, for one service: calls with one message each way, and streams of answers. On
 * the loop; all of it belongs to the loop's thread.
 *
 * Peers must be root or the user of this process; others are let go at once. None holds the loop or memory:
 * connections, calls, sizes and times have limits, and of a connection some 64 KiB are read in a turn.
 * `:authority` may be whatever the peer likes: older kubelets say the socket's path there, which nghttp2's own
 * check would refuse.
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

/* 32 connections, 32 calls each, 1 MiB a request, 8 MiB in all, 5 s, 10 s. */
struct grpc_limits grpc_limits_default(void);

/*
 * listen_fd: a listening socket, non-blocking; the server's on success. The service is copied, its methods
 * are not.
 */
int grpc_server_new(struct loop *loop, int listen_fd, const struct grpc_service *service,
		    struct grpc_server **ret, struct error *err);

/*
 * Says goodbye to all, without waiting for anyone. Calls that are kept are gone (see below). NULL is fine;
 * returns NULL. Not from a handler.
 */
struct grpc_server *grpc_server_free(struct grpc_server *server);

unsigned grpc_server_connections(const struct grpc_server *server);

/* ---- messages ---- */

/* One to be filled by the caller; several calls may send the same. NULL: no memory. */
struct grpc_message *grpc_message_new(size_t size);
/* Where its bytes go, before it is sent. */
uint8_t *grpc_message_data(struct grpc_message *message);
/* Gives the caller's reference back. NULL is fine; returns NULL. */
struct grpc_message *grpc_message_unref(struct grpc_message *message);

/* ---- calls ---- */

/*
 * The call goes on after its handler has returned. `gone` is told when it ends other than by
 * grpc_call_end(): the peer left or took it back, it did not get on, its time is over, the server ends. The
 * call must not be used from then on.
 */
void grpc_call_keep(struct grpc_call *call, void (*gone)(void *data, struct grpc_call *call),
		    void *data);

/*
 * Sends a message. A message that waits, with nothing of it sent yet, is replaced by it: for streams whose
 * newest message says all, so a slow peer costs no more than two. The message stays the caller's.
 */
void grpc_call_send(struct grpc_call *call, struct grpc_message *message);

/* Ends the call once what was sent is out. `text` (NULL: none) is for who reads the error. */
void grpc_call_end(struct grpc_call *call, enum grpc_status status, const char *text);
