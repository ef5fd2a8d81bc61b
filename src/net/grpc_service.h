/* A service offered by a gRPC server (grpc_server.h): its methods, and its limits on peers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct grpc_call;

/* A handler must call grpc_call_end() or grpc_call_keep() before it returns. `message` is valid until then. */
typedef void (*grpc_handler)(void *data, struct grpc_call *call, const uint8_t *message,
			     size_t size);

struct grpc_method {
	const char *path;
	grpc_handler handler;
};

struct grpc_limits {
	/* a further connection replaces the longest idle one or, if all have calls, is closed at once */
	unsigned connections;
	unsigned calls; /* most calls at a time per connection */
	size_t message_bytes;
	size_t held_bytes; /* most bytes of incomplete requests, of all connections together */
	/* longest time for a request, or a new connection's preface, to arrive */
	uint64_t arrive_ns;
	/* if a peer accepts no bytes for this long, its call or connection is closed */
	uint64_t stall_ns;
};

struct grpc_service {
	/* not copied; must stay unchanged while the server runs */
	const struct grpc_method *methods;
	size_t method_count;
	void *data;
	struct grpc_limits limits;
};
