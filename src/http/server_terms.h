/* Terms that an HTTP server (server.h) is started with: its socket, certificates, limits and handlers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"

#define SERVER_MAX_CONNECTIONS 32
#define SERVER_DEADLINE_NS UINT64_C(5000000000)
#define SERVER_RENEW_NS UINT64_C(1000000000)

struct server_answer;
struct server_call;
struct server_request;

struct server_header {
	const char *name, *value;
};

typedef void (*server_handler)(void *data, const struct server_request *request,
			       struct server_answer *ret);

struct server_terms {
	struct loop *loop;
	/* A listening socket, which the server takes over on success. */
	int listen_fd;
	/*
	 * PEM files. The server reads both again within SERVER_RENEW_NS of a change, at the next connection. If it can't use
	 * the new ones, it logs that and keeps the old ones. A connection keeps its certificate until its next answer. NULL:
	 * no TLS. The names are the caller's and must stay valid.
	 */
	const char *certificate_file, *key_file;
	/*
	 * PEM file of the CA certificates for clients. The server asks each client for a certificate, but lets in those
	 * without: the handler has the session and verifies it. Read again as the others. NULL: it does not ask.
	 */
	const char *client_ca_file;
	unsigned connections_max; /* 0: SERVER_MAX_CONNECTIONS */
	/* Between an answer and the next request; 0: SERVER_DEADLINE_NS. Less where all connections are taken. */
	uint64_t idle_ns;
	/*
	 * Most bytes of a request's body: a longer one is read, dropped and answered with 413. 0: no bodies; a request with
	 * one is answered before the body is read. All requests together may hold SERVER_BODIES times that, else 503.
	 */
	size_t body_max;
	server_handler handler;
	/* A stream has ended; its call must not be used again. NULL if no handler begins streams. */
	void (*stream_ended)(void *data, struct server_call *call);
	void *data;
	/* Of every answer; the caller's, constant. NULL: none. */
	const struct server_header *headers;
	size_t header_count;
};
#define SERVER_BODIES 8
