/*
 * A small HTTP server on the daemon's event loop, by libmicrohttpd. No client can hold the loop up: sockets
 * never block, a request's line and headers have to fit 16 KiB together, bodies are not taken, there
 * are SERVER_MAX_CONNECTIONS at most, and each has SERVER_DEADLINE_NS for its next request and the answer's
 * way to it; then it is closed. Main thread only.
 */
#ifndef ALLOT_NODE_METRICS_SERVER_H
#define ALLOT_NODE_METRICS_SERVER_H

#include <stddef.h>

#include "base/error.h"
#include "net/loop.h"

#define SERVER_MAX_CONNECTIONS 32
#define SERVER_DEADLINE_NS UINT64_C(5000000000)
#define SERVER_RENEW_NS UINT64_C(1000000000)

struct server;
struct server_text; /* a body that several answers share */

struct server_request {
	const char *method, *path;
	const char *authorization; /* the header; NULL: there is none */
};

struct server_answer {
	unsigned status;
	struct server_text *text; /* the caller's; NULL: the line below */
	const char *line;
	const char *header, *header_value; /* one more; NULL: none */
};

typedef void (*server_handler)(void *data, const struct server_request *request,
			       struct server_answer *ret);

/*
 * Serves the listening socket, which it takes over on success. With both files, PEM, by TLS: they are read anew
 * within SERVER_RENEW_NS of a change, when somebody comes; what can't be used then is said in the log, and the old
 * ones are kept. NULL: without. The names are the caller's, and stay.
 */
int server_start(struct loop *loop, int listen_fd, const char *certificate_file,
		 const char *key_file, server_handler handler, void *data, struct server **ret,
		 struct error *err);
/* Closes every connection. NULL is fine; returns NULL. */
struct server *server_stop(struct server *server);

unsigned server_connections(const struct server *server);

/* Takes `text` over in any case; it may be sent to several. NULL: out of memory. */
struct server_text *server_text_new(struct server *server, char *text, size_t length,
				    const char *type);
/* Answers that are under way keep what they need of it. NULL is fine; returns NULL. */
struct server_text *server_text_free(struct server *server, struct server_text *text);

#endif
