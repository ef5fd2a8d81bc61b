/* Between the parts of the gRPC server: grpc_server.c (who comes, whose time is over), grpc_connection.c (bytes
 * and HTTP/2), grpc_stream.c (a call). */
#pragma once

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "net/grpc.h"
#include "net/grpc_service.h"
#include "net/loop.h"

#define GRPC_HEADERS_MOST_BYTES 8192 /* of a request */

struct grpc_connection;
TAILQ_HEAD(grpc_connections, grpc_connection);
TAILQ_HEAD(grpc_calls, grpc_call);

struct grpc_server {
	struct loop *loop;
	int listen_fd;
	struct grpc_service service;
	struct loop_source *listen_source, *due_timer;
	bool is_armed; /* the timer, for: */
	uint64_t due_ns;
	bool is_deaf; /* no descriptors: nobody is let in for a moment */
	struct grpc_connections connections;
	unsigned connection_count;
	size_t held_bytes;
};

struct grpc_connection {
	TAILQ_ENTRY(grpc_connection) link;
	struct grpc_server *server;
	int fd;
	struct loop_source *source;
	uint32_t watched;
	nghttp2_session *session;
	const uint8_t *out; /* of the session, not taken by the socket yet */
	size_t out_size;
	uint64_t out_since_ns; /* it has not got on since */
	bool has_begun;        /* its SETTINGS came */
	uint64_t begin_by_ns;
	uint64_t idle_since_ns; /* while it has no call */
	struct grpc_calls calls;
};

struct grpc_message {
	unsigned references;
	size_t size;    /* with its head */
	uint8_t data[]; /* head, message */
};

/* What a request's headers say that is wrong, the worst last. */
enum grpc_fault {
	GRPC_FAULT_NONE,
	GRPC_FAULT_TIMEOUT,   /* grpc-timeout is none */
	GRPC_FAULT_METHOD,    /* no such method */
	GRPC_FAULT_MEDIA,     /* not gRPC: HTTP's status 415 */
	GRPC_FAULT_MALFORMED, /* not HTTP/2: the stream is reset */
};

struct grpc_call {
	TAILQ_ENTRY(grpc_call) link;
	struct grpc_connection *connection;
	int32_t stream;
	/* The request. */
	size_t header_bytes;
	bool has_post, has_path, has_type;
	enum grpc_fault fault;
	const struct grpc_method *method;
	struct grpc_inbox in;
	size_t held_bytes; /* of it, counted for the server */
	bool has_arrived;
	uint64_t arrive_by_ns;
	bool has_deadline;
	uint64_t deadline_ns;
	/* The answer. */
	struct grpc_message *now, *next; /* being sent, and the one behind it */
	size_t sent;                     /* of `now` */
	uint64_t sent_ns;                /* it last got on */
	bool has_headers, is_deferred;
	bool is_over; /* its status is told, or about to be */
	enum grpc_status status;
	char text[GRPC_CODED_TEXT_MAX];
	bool is_kept;
	void (*gone)(void *data, struct grpc_call *call);
	void *gone_data;
};

/* ---- grpc_server.c ---- */

/* Something may be due then. */
void grpc_server_due(struct grpc_server *server, uint64_t at_ns);

/* ---- grpc_connection.c ---- */

/* Takes fd over. -ENOMEM, -errno. */
int grpc_connection_new(struct grpc_server *server, int fd);
void grpc_connection_free(struct grpc_connection *c);
/* What the session has to say goes out with the loop's next turn. */
void grpc_connection_wake(struct grpc_connection *c);
/* Looks at its deadlines, and may free it. */
void grpc_connection_look(struct grpc_connection *c, uint64_t now_ns);

/* ---- grpc_stream.c ---- */

struct grpc_call *grpc_call_new(struct grpc_connection *c, int32_t stream);
/* Tells whoever keeps it. */
void grpc_call_free(struct grpc_call *call);
/* A header of the request, trailers too (`is_trailer`). False: they are too many. */
bool grpc_call_header(struct grpc_call *call, const uint8_t *name, size_t name_size,
		      const uint8_t *value, size_t value_size, bool is_trailer);
void grpc_call_headers_end(struct grpc_call *call);
void grpc_call_data(struct grpc_call *call, const uint8_t *data, size_t size);
void grpc_call_arrived(struct grpc_call *call);
/* Looks at its deadlines. */
void grpc_call_look(struct grpc_call *call, uint64_t now_ns);
