/*
 * One unary call of gRPC over a link that has just been opened (grpc.io, "gRPC over HTTP2"; HTTP/2 with
 * prior knowledge, RFC 9113, 3.3, by nghttp2). `:authority` is "localhost": servers written in Go refuse
 * the path of a socket there.
 */
#ifndef ALLOT_NODE_ENGINE_GRPC_H
#define ALLOT_NODE_ENGINE_GRPC_H

#include "node/engine/engine_link.h"

struct engine_grpc_call {
	const char *method; /* "/package.Service/Method" */
	/* A header beside gRPC's own; NULL: none. */
	const char *header, *header_value;
	const void *request; /* the message */
	size_t request_size;
	size_t most_bytes; /* of the reply */
};

/*
 * The reply's message is the caller's. -ENOENT: the engine has no such thing (status 5); -EOPNOTSUPP: no such
 * method (status 12); -EPROTO: another status, or no gRPC; -EMSGSIZE; what the link says.
 */
int engine_grpc_call(const struct engine_link *link, const struct engine_grpc_call *call,
		     unsigned char **ret, size_t *ret_size);

#endif
