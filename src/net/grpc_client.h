/*
 * Makes one unary gRPC call over a freshly opened link (HTTP/2 with prior knowledge, RFC 9113, 3.3, by nghttp2). `:authority`
 * is "localhost", because servers written in Go refuse a socket's path there. May be used from any thread. Blocks at most as
 * long as the link does.
 */
#pragma once

#include "net/grpc.h"
#include "net/link.h"

struct grpc_request {
	const char *method;
	/* one additional header; NULL: none */
	const char *header, *header_value;
	const void *message;
	size_t size;
	size_t most_bytes; /* longest accepted reply */
};

struct grpc_reply {
	enum grpc_status status;
	char text[GRPC_TEXT_MAX]; /* the server's text for the status; "" if none */
	/* from malloc(), owned by the caller; NULL if the message is empty or the status is not GRPC_OK */
	uint8_t *message;
	size_t size;
};

/*
 * Returns 0 if the server sent a status, whatever it is. -EPROTO if the answer is not gRPC or is incomplete, -EMSGSIZE if the
 * reply exceeds most_bytes, or an error of net_link_read() or net_link_write().
 */
int grpc_call_unary(const struct net_link *link, const struct grpc_request *request,
		    struct grpc_reply *ret);
