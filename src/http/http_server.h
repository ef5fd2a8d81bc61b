/*
 * A small HTTP server on an event loop, by libmicrohttpd. Main thread only. No client can block the loop: sockets are
 * non-blocking, a request's line and headers must fit into 16 KiB, and bodies and connections are limited (server_config.h). A
 * connection is closed if a request does not arrive, or its answer is not read by the client, within SERVER_DEADLINE_NS. At the
 * limit of connections, a new connection replaces an idle or slow connection of the peer that has the most connections.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "http/server_config.h"

struct server;
struct server_text; /* a body shared by several answers */
struct server_call; /* a request that can be answered later */
struct server_part; /* part of a stream of events; several streams can send it */

/* For clients behind a proxy that does not pass the Authorization header on, such as the Kubernetes API server. */
#define SERVER_PROXIED_AUTHORIZATION "X-Allot-Authorization"

struct server_request {
	const char *method, *path;
	/* Headers; NULL if missing. `authorization` may come from SERVER_PROXIED_AUTHORIZATION. */
	const char *authorization, *host, *origin;
	const char *body; /* valid until the handler returns; NUL-terminated; NULL if none */
	size_t body_size;
	struct server_call *call;
	void *tls; /* the gnutls_session_t, valid until the handler returns; NULL without TLS */
	/* for the handler: the time at which it identified this connection's client; 0 at first; NULL without TLS */
	uint64_t *authorized_ns;
};

/* The body is the first of text, own and line that is not NULL. */
struct server_answer {
	unsigned status;
	struct server_text *text;          /* owned by the caller, unless is_last */
	char *own;                         /* from malloc(), owned by the server */
	const char *line;                  /* a short body, which is copied */
	const char *type;                  /* content type of own and line; NULL: plain text */
	const char *header, *header_value; /* one additional header; NULL: none */
	/* the server takes ownership of `text` */
	bool is_last;
	bool is_later; /* server_call_answer() will answer; set only by a handler */
	/*
	 * The answer is a stream of content type `type`, whose parts server_stream_send() sends. The stream ends when its
	 * reader closes it or does not take a part within SERVER_DEADLINE_NS; then config.stream_ended is called. Set only by a
	 * handler.
	 */
	bool is_stream;
};

/* The decoded value of an argument in the URL, "" if it has no value, NULL if missing. Valid until the handler returns. */
const char *server_request_argument(const struct server_request *request, const char *name);

int server_start(const struct server_config *config, struct server **ret, struct error *err);
/* Closes every connection. After this, server_call_answer() must not be called. NULL is allowed; returns NULL. */
struct server *server_stop(struct server *server);

unsigned server_connections(const struct server *server);

/*
 * Answers a call whose handler returned is_later. `answer` must have `own` or `line`, not `text`. May be called once, inside or
 * outside of a handler, or never.
 */
void server_call_answer(struct server_call *call, const struct server_answer *answer);

/*
 * Makes a part with space for `size` bytes, which the caller fills in before sending. Returns NULL if out of memory. The caller
 * frees its reference after sending; streams that still send the part keep theirs.
 */
struct server_part *server_part_new(size_t size);
char *server_part_bytes(struct server_part *part);
struct server_part *server_part_free(struct server_part *part); /* NULL is allowed; returns NULL */
/* Parts are not queued: returns -EAGAIN while the previous part is not sent completely. */
int server_stream_send(struct server_call *call, struct server_part *part);
bool server_stream_is_ready(const struct server_call *call);

/* Makes a body from constant bytes. Returns NULL if out of memory. */
struct server_text *server_text_of(struct server *server, const void *bytes, size_t length,
				   const char *type);
/* Makes a body for one or several answers. Takes ownership of `text` even on failure. Returns NULL if out of memory. */
struct server_text *server_text_new(struct server *server, char *text, size_t length,
				    const char *type);
/* Frees the caller's reference; answers that are being sent keep theirs. NULL is allowed; returns NULL. */
struct server_text *server_text_free(struct server *server, struct server_text *text);
