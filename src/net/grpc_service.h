/* A service that a gRPC server (grpc_server.h) offers: its methods, and its limits on peers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct grpc_call;

/*
 * A request has arrived. `message` is the server's, and valid only until the handler returns. The handler ends the
 * call, or keeps it (grpc_call_keep()).
 */
typedef void (*grpc_handler)(void *data, struct grpc_call *call, const uint8_t *message,
			     size_t size);

struct grpc_method {
	const char *path; /* "/package.Service/Method" */
	grpc_handler handler;
};

struct grpc_limits {
	unsigned connections; /* when one more comes, the one longest without a call ends */
	unsigned calls;       /* of a connection at a time */
	size_t message_bytes; /* of a request */
	size_t held_bytes;    /* of incomplete requests, of all connections together */
	uint64_t arrive_ns;   /* for a request, and for a new connection's preface, to arrive */
	uint64_t stall_ns;    /* for a peer to take some of what is sent */
};

struct grpc_service {
	const struct grpc_method *methods; /* constant */
	size_t method_count;
	void *data; /* the handlers' */
	struct grpc_limits limits;
};
