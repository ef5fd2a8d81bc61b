/*
 * Shared by the parts of the gRPC server: grpc_server.c (accepting, deadlines), grpc_connection.c (bytes and HTTP/2),
 * grpc_stream.c (a call). grpc_client.c shares grpc_header() and grpc_is_name().
 */
#pragma once

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include "net/grpc.h"
#include "net/grpc_service.h"
#include "net/loop.h"

#define GRPC_HEADERS_MOST_BYTES 8192 /* limit for all headers of one request together */

/* The strings must stay valid until nghttp2 has copied the header. */
static inline nghttp2_nv grpc_header(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
			     .value = (uint8_t *)(uintptr_t)value,
			     .namelen = strlen(name),
			     .valuelen = strlen(value) };
}

static inline bool grpc_is_name(const uint8_t *name, size_t size, const char *wanted)
{
	return size == strlen(wanted) && !memcmp(name, wanted, size);
}

struct grpc_connection;
TAILQ_HEAD(grpc_connections, grpc_connection);
TAILQ_HEAD(grpc_calls, grpc_call);

struct grpc_server {
	struct loop *loop;
	int listen_fd;
	struct grpc_service service;
	struct loop_source *listen_source, *due_timer;
	bool is_armed; /* due_timer is armed, for due_ns */
	uint64_t due_ns;
	bool is_deaf; /* accepting is paused, because the process ran out of descriptors */
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
	const uint8_t *out; /* output of the session that the socket has not taken yet */
	size_t out_size;
	uint64_t out_since_ns; /* when `out` was filled, or the socket last took some of it */
	bool has_begun;        /* the peer's SETTINGS have arrived: it speaks HTTP/2 */
	uint64_t begin_by_ns;
	uint64_t idle_since_ns; /* since when there is no call */
	struct grpc_calls calls;
};

struct grpc_message {
	unsigned references;
	size_t size; /* size of `data`, which includes the head */
	uint8_t data[];
};

/* Faults in a request's headers, the most severe last. */
enum grpc_fault {
	GRPC_FAULT_NONE,
	GRPC_FAULT_TIMEOUT,
	GRPC_FAULT_METHOD,
	GRPC_FAULT_MEDIA,     /* not gRPC: answered with HTTP status 415 */
	GRPC_FAULT_MALFORMED, /* the request breaks the rules of HTTP/2: its stream is reset */
};

struct grpc_call {
	TAILQ_ENTRY(grpc_call) link;
	struct grpc_connection *connection;
	int32_t stream;
	size_t header_bytes;
	bool has_post, has_path, has_type;
	enum grpc_fault fault;
	const struct grpc_method *method;
	struct grpc_inbox in;
	/* the call's part of the server's held_bytes */
	size_t held_bytes;
	bool has_arrived;
	uint64_t arrive_by_ns;
	bool has_deadline;
	uint64_t deadline_ns;
	struct grpc_message *now, *next;
	size_t sent;
	/* when bytes were last sent, or the first message began to wait */
	uint64_t sent_ns;
	bool has_headers, is_deferred;
	/* grpc_call_end() was called, or the stream is being reset because of GRPC_FAULT_MALFORMED */
	bool is_over;
	enum grpc_status status;
	char text[GRPC_CODED_TEXT_MAX];
	bool is_kept;
	void (*gone)(void *data, struct grpc_call *call);
	void *gone_data;
};

/* Makes the server check all deadlines at at_ns or earlier. */
void grpc_server_due(struct grpc_server *server, uint64_t at_ns);

/* Takes ownership of the accepted socket fd, also on failure. */
int grpc_connection_new(struct grpc_server *server, int fd);
void grpc_connection_free(struct grpc_connection *c);
void grpc_connection_wake(struct grpc_connection *c);
/* Checks the connection's deadlines; may free the connection. */
void grpc_connection_look(struct grpc_connection *c, uint64_t now_ns);

struct grpc_call *grpc_call_new(struct grpc_connection *c, int32_t stream);
/* First calls `gone` if a handler kept the call (grpc_call_keep()) and has not ended it. */
void grpc_call_free(struct grpc_call *call);
/* Handles a header or trailer of the request. False if all headers together exceed GRPC_HEADERS_MOST_BYTES. */
bool grpc_call_header(struct grpc_call *call, const uint8_t *name, size_t name_size,
		      const uint8_t *value, size_t value_size, bool is_trailer);
void grpc_call_headers_end(struct grpc_call *call);
void grpc_call_data(struct grpc_call *call, const uint8_t *data, size_t size);
void grpc_call_arrived(struct grpc_call *call);
void grpc_call_look(struct grpc_call *call, uint64_t now_ns);
