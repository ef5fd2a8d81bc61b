/*
 * A small HTTP server on an event loop, by libmicrohttpd. No client can hold the loop up: sockets never block,
 * a request's line and headers have to fit 16 KiB together, bodies have a limit (0: none are taken), and so has the
 * number of connections. Each has SERVER_DEADLINE_NS for a request to come, and again for the answer's way to it;
 * then it is closed. When all places are taken, the address with the most connections loses one that does nothing.
 * Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "http/server_terms.h"

struct server;
struct server_text; /* a body that several answers share */
struct server_call; /* a request that is answered later */
struct server_part; /* of a stream; several streams may be sent it */

/* A proxy that authorizes its clients, as the Kubernetes API server, keeps their Authorization to itself. */
#define SERVER_PROXIED_AUTHORIZATION "X-Allot-Authorization"

struct server_request {
	const char *method, *path;
	/* Headers; NULL: there is none. The first may come as SERVER_PROXIED_AUTHORIZATION as well. */
	const char *authorization, *host, *origin;
	const char *body; /* the handler's until it returns; a NUL stands behind it; NULL: none */
	size_t body_size;
	struct server_call *call; /* for server_call_answer() */
	void *tls; /* the connection's gnutls_session_t, until the handler returns; NULL: without */
	/* The handler's, kept as long as the connection: when it has found out who that is. 0 at first. NULL without TLS. */
	uint64_t *known_ns;
};

/* One of text, own and line, in this order. */
struct server_answer {
	unsigned status;
	struct server_text *text;          /* the caller's */
	char *own;                         /* by malloc(); the server's from then on */
	const char *line;                  /* is copied */
	const char *type;                  /* of own and line; NULL: plain text */
	const char *header, *header_value; /* one more; NULL: none */
	bool is_last;                      /* `text` is the server's from then on */
	bool is_later; /* not yet: server_call_answer() has the rest. From a handler alone. */
	/*
	 * A stream of `type`, whose parts server_stream_send() has. It lasts until its reader closes it, or does not take
	 * a part within SERVER_DEADLINE_NS; then terms.stream_ended is called. From a handler alone.
	 */
	bool is_stream;
};

/* What the request's address names behind '?', decoded; "": without a value; NULL: it does not. Until the handler returns. */
const char *server_request_argument(const struct server_request *request, const char *name);

int server_start(const struct server_terms *terms, struct server **ret, struct error *err);
/* Closes every connection; calls that wait are gone: nobody may answer them any more. NULL is fine; returns NULL. */
struct server *server_stop(struct server *server);

unsigned server_connections(const struct server *server);

/* The answer of a handler that said is_later: once, from any place, or never. */
void server_call_answer(struct server_call *call, const struct server_answer *answer);

/*
 * A part of streams, of which `size` bytes are to be written by the caller before it is sent. NULL: out of memory. Who
 * made it gives it back when it has been sent; streams that still take it keep it.
 */
struct server_part *server_part_new(size_t size);
char *server_part_bytes(struct server_part *part);
struct server_part *server_part_free(struct server_part *part); /* NULL is fine; returns NULL */
/*
 * Sends a stream its next part, and never keeps one for later: -EAGAIN while the one before has not been taken
 * whole.
 */
int server_stream_send(struct server_call *call, struct server_part *part);
/* Whether it would be taken now: what is told to nobody need not be made. */
bool server_stream_is_ready(const struct server_call *call);

/* Bytes that are constant. NULL: out of memory. */
struct server_text *server_text_of(struct server *server, const void *bytes, size_t length,
				   const char *type);
/* Takes `text` over in any case; it may be sent to several. NULL: out of memory. */
struct server_text *server_text_new(struct server *server, char *text, size_t length,
				    const char *type);
/* Answers that are under way keep what they need of it. NULL is fine; returns NULL. */
struct server_text *server_text_free(struct server *server, struct server_text *text);
