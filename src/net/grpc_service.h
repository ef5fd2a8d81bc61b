/* A service offered by a gRPC server (grpc_server.h): its methods, and its limits on peers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct grpc_call;

/*
 * Called when a request has arrived. `message` belongs to the server, and is valid until the handler returns. The handler ends
 * the call, or keeps it (grpc_call_keep()).
 */
typedef void (*grpc_handler)(void *data, struct grpc_call *call, const uint8_t *message,
			     size_t size);

struct grpc_method {
	const char *path; /* "/package.Service/Method" */
	grpc_handler handler;
};

struct grpc_limits {
	unsigned connections; /* if exceeded, the connection that was longest without a call is closed */
	unsigned calls;       /* at a time per connection */
	size_t message_bytes; /* per request */
	size_t held_bytes;    /* incomplete requests of all connections together */
	uint64_t arrive_ns;   /* time for a request, or a new connection's preface, to arrive */
	uint64_t stall_ns;    /* time for a peer to take some of the sent bytes */
};

struct grpc_service {
	const struct grpc_method *methods; /* constant */
	size_t method_count;
	void *data; /* passed to the handlers */
	struct grpc_limits limits;
};
