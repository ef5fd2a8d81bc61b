/*
 * One unary gRPC call over a freshly opened link (HTTP/2 with prior knowledge, RFC 9113, 3.3, by nghttp2). `:authority` is
 * "localhost", since servers written in Go refuse a socket's path there.
 *
 * May be used from any thread. Blocks at most as long as the link does.
 */
#pragma once

#include "net/grpc.h"
#include "net/link.h"

struct grpc_request {
	const char *method; /* "/package.Service/Method" */
	/* An additional header; NULL if none. */
	const char *header, *header_value;
	const void *message;
	size_t size;
	size_t most_bytes; /* limit for the reply */
};

struct grpc_reply {
	enum grpc_status status;
	char text[GRPC_TEXT_MAX]; /* the server's text for the status; "" if none */
	uint8_t *message; /* owned by the caller, to be freed with free(); NULL unless the status is GRPC_OK */
	size_t size;
};

/*
 * Returns 0 if the server sent any status; then *ret is written. -EPROTO if the answer is not gRPC, or a message is incomplete;
 * -EMSGSIZE; the link's errors.
 */
int grpc_call_unary(const struct net_link *link, const struct grpc_request *request,
		    struct grpc_reply *ret);
