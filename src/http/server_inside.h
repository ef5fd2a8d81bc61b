/* Between the parts of the HTTP server: server.c has who is let in, the loop and certificates, server_call.c connections and
 * their requests, server_stream.c answers that go on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "http/mhd.h"
#include "http/server_terms.h"
#include "http/tls.h"

#define SERVER_LOOK_NS (250 * NSEC_PER_MSEC) /* for those whose time is over */

/* What a connection does; each has an end, but the handler's turn and a stream that waits for its next part. */
enum stage { STAGE_NEW, STAGE_REQUEST, STAGE_HANDLER, STAGE_ANSWER, STAGE_STREAM, STAGE_IDLE };

/* The address of a connection's peer, without its port; of IPv6 the /64 network. All zero: a unix socket. */
struct server_peer {
	uint8_t bytes[8];
	uint8_t is_v6;
};

/* A connection, which has one request at a time: so it is the call, too. */
struct server_call {
	struct server_call *next;
	struct generation *generation;
	struct MHD_Connection *at; /* of the request */
	int fd;                    /* libmicrohttpd's */
	struct server_peer peer;
	enum stage stage;
	uint64_t since_ns;
	char *body;
	size_t size, room;
	unsigned refused;            /* status for what came so far; 0: it is fine */
	bool is_begun, is_suspended; /* the request */
	struct MHD_Response *answer; /* that came later */
	unsigned status;
	bool is_stream;
	struct server_part *part; /* being taken; NULL: none */
	size_t part_taken;
	uint64_t known_ns; /* the handler's */
};

/* What serves with one certificate. The first of the server's takes who comes; others end with their last connection. */
struct generation {
	struct generation *next;
	struct server *server;
	struct MHD_Daemon *daemon;
	struct loop_source *source, *soon_timer;
	unsigned count;
	bool has_resumed; /* a call was answered since libmicrohttpd ran */
};

struct server {
	const struct mhd *mhd;
	struct server_terms terms;
	struct generation *generations;
	struct loop_source *listen_source, *look_timer;
	struct server_call *calls;
	unsigned count;
	size_t bodies; /* bytes of all requests */
	bool is_deaf;  /* nobody is let in for now */
	struct tls tls;
	uint64_t renewed_ns; /* the files were looked at */
};

/* false: somebody may be let in again. */
void server_set_deaf(struct server *server, bool is_deaf);

void server_set_stage(struct server_call *call, enum stage stage);
/* Adds those of every answer. */
void server_add_headers(const struct server *server, struct MHD_Response *response);
/* libmicrohttpd goes on with a call that was suspended. */
void server_wake(struct server_call *call);

/* The answer that a stream is; NULL: out of memory. */
struct MHD_Response *server_stream_begin(struct server_call *call, const char *type);
/* The call's stream is over. */
void server_stream_end(struct server_call *call);

/* What libmicrohttpd calls; `data` is the generation. */
void server_connection_told(void *data, struct MHD_Connection *at, void **context,
			    enum MHD_ConnectionNotificationCode what);
void *server_request_began(void *data, const char *uri, struct MHD_Connection *at);
void server_request_ended(void *data, struct MHD_Connection *at, void **context,
			  enum MHD_RequestTerminationCode why);
enum MHD_Result server_request_came(void *data, struct MHD_Connection *at, const char *url,
				    const char *method, const char *version, const char *body,
				    size_t *body_length, void **context);
