/*
 * One unary call of gRPC over a link that has just been opened (HTTP/2 with prior knowledge, RFC 9113, 3.3, by
 * nghttp2). `:authority` is "localhost": servers written in Go refuse the path of a socket there.
 *
 * Any thread; blocks as the link does.
 */
#pragma once

#include "net/grpc.h"
#include "net/link.h"

struct grpc_request {
	const char *method; /* "/package.Service/Method" */
	/* A header beside gRPC's own; NULL: none. */
	const char *header, *header_value;
	const void *message;
	size_t size;
	size_t most_bytes; /* of the reply */
};

struct grpc_reply {
	enum grpc_status status;
	char text[GRPC_TEXT_MAX]; /* what the server says to it; "": nothing */
	uint8_t *message;         /* the caller's, free(); NULL unless the status is GRPC_OK */
	size_t size;
};

/*
 * 0 when the server has told a status, whichever: *ret is written then. -EPROTO: no gRPC, or no whole
 * message; -EMSGSIZE; what the link says.
 */
int grpc_call_unary(const struct net_link *link, const struct grpc_request *request,
		    struct grpc_reply *ret);
