/*
 * Shared by the parts of the HTTP server: http_server.c (accepting, the loop, certificates), server_call.c (connections and
 * their requests), server_stream.c (streams).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "http/mhd.h"
#include "http/server_config.h"
#include "http/tls.h"

#define SERVER_CHECK_NS (250 * NSEC_PER_MSEC)

/* Each stage has a deadline, except STAGE_HANDLER (waits for the answer) and STAGE_STREAM (for the stream's next part). */
enum stage { STAGE_NEW, STAGE_REQUEST, STAGE_HANDLER, STAGE_ANSWER, STAGE_STREAM, STAGE_IDLE };

/* A peer's address without its port; for IPv6, the /64 network. All zero for a unix socket. */
struct server_peer {
	uint8_t bytes[8];
	uint8_t is_v6;
};

/* A connection and its request: a connection has one request at a time. */
struct server_call {
	struct server_call *next;
	struct generation *generation;
	struct MHD_Connection *at; /* the connection in libmicrohttpd */
	int fd;                    /* owned by libmicrohttpd */
	struct server_peer peer;
	enum stage stage;
	uint64_t since_ns;
	char *body;
	size_t size, room;
	/* HTTP status with which the request will be refused; 0: not refused */
	unsigned refused;
	bool has_headers;
	bool is_suspended;           /* libmicrohttpd waits for server_wake() */
	struct MHD_Response *answer; /* from server_call_answer(); NULL: not called yet */
	unsigned status;
	bool is_stream;
	struct server_part *part; /* NULL if none is being sent */
	size_t part_sent;
	uint64_t authorized_ns;
};

/*
 * A libmicrohttpd daemon with one certificate. A new certificate begins a new generation, which is the first in the server's
 * list and accepts all new connections. Older generations end with their last connection.
 */
struct generation {
	struct generation *next;
	struct server *server;
	struct MHD_Daemon *daemon;
	struct loop_source *source, *soon_timer;
	unsigned count;
	bool has_resumed; /* server_wake() resumed a call since libmicrohttpd last ran */
};

struct server {
	const struct mhd *mhd;
	struct server_config config;
	struct generation *generations;
	struct loop_source *listen_source, *check_timer;
	struct server_call *calls;
	unsigned count;
	size_t bodies; /* bytes allocated for the bodies of all requests */
	bool is_accept_paused;
	struct tls tls;
	uint64_t certificate_checked_ns;
};

void server_set_accept_paused(struct server *server, bool is_paused);

void server_set_stage(struct server_call *call, enum stage stage);
void server_add_headers(const struct server *server, struct MHD_Response *response);
void server_wake(struct server_call *call);

/* Makes libmicrohttpd's response for a stream of content type `type`. Returns NULL if out of memory. */
struct MHD_Response *server_stream_begin(struct server_call *call, const char *type);
void server_stream_end(struct server_call *call);

/* Callbacks for libmicrohttpd; `data` is a struct generation. */
void server_on_connection(void *data, struct MHD_Connection *at, void **context,
			  enum MHD_ConnectionNotificationCode what);
void *server_on_uri(void *data, const char *uri, struct MHD_Connection *at);
void server_on_request_end(void *data, struct MHD_Connection *at, void **context,
			   enum MHD_RequestTerminationCode why);
enum MHD_Result server_on_request(void *data, struct MHD_Connection *at, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *body_length, void **context);
