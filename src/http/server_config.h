/* The parameters for starting an HTTP server (http_server.h): its socket, certificates, limits and handlers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"

#define SERVER_MAX_CONNECTIONS 32
#define SERVER_DEADLINE_NS UINT64_C(5000000000)
#define SERVER_CERTIFICATE_CHECK_NS UINT64_C(1000000000)

struct server_answer;
struct server_call;
struct server_request;

struct server_header {
	const char *name, *value;
};

typedef void (*server_handler)(void *data, const struct server_request *request,
			       struct server_answer *ret);

struct server_config {
	struct loop *loop;
	/* The server takes ownership on success. */
	int listen_fd;
	/*
	 * PEM files; NULL: no TLS. When a client connects, but at most once in SERVER_CERTIFICATE_CHECK_NS, changed files are
	 * read again. If the new files are unusable, the server logs that and keeps the old contents. A connection that was
	 * open before still uses the old certificate; the server closes it after its next answer that is
	 * neither a file of a page nor metrics. The names must stay valid.
	 */
	const char *certificate_file, *key_file;
	/*
	 * PEM file of the CAs for clients' certificates; NULL: clients are not asked for certificates. Clients may still send
	 * none: the handler gets the TLS session and verifies the client. The file is read again after a change, like
	 * certificate_file.
	 */
	const char *client_ca_file;
	unsigned connections_max; /* 0 means SERVER_MAX_CONNECTIONS */
	/*
	 * longest time between an answer and the next request; 0: SERVER_DEADLINE_NS. While connections_max connections are
	 * open, idle ones are closed sooner, to make room for new ones.
	 */
	uint64_t idle_ns;
	/*
	 * Largest body of a request. A longer body is read, dropped and answered with 413. With 0, a request with a body is
	 * answered before its body is read. The bodies of all requests together may take SERVER_BODIES times this size; beyond
	 * that, a request gets 503.
	 */
	size_t body_max;
	server_handler handler;
	/* Called when a stream has ended; its call must not be used again. NULL if no handler begins streams. */
	void (*stream_ended)(void *data, struct server_call *call);
	void *data;
	/* Added to every answer; constant, and owned by the caller. NULL if none. */
	const struct server_header *headers;
	size_t header_count;
};
#define SERVER_BODIES 8
