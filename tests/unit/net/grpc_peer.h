/*
 * A gRPC client for tests that the test runs step by step. It can send what a correct client would not, such as headers that
 * are missing or a request that never ends.
 */
#pragma once

#include <nghttp2/nghttp2.h>
#include <stdbool.h>

#include "grpc_test_service.h"
#include "net/grpc.h"

struct stream {
	int32_t id;
	char http_status[8], grpc_status[8], grpc_message[128];
	unsigned messages, last; /* complete messages of Watch, and the number in the last one */
	uint8_t data[8192 + GRPC_HEAD_BYTES];
	size_t size;
	bool is_closed;
	uint32_t code;
};

struct peer {
	int fd;
	nghttp2_session *session;
	struct stream stream[8];
	bool has_no_window; /* never enlarges the flow-control window by itself */
	bool is_ended, has_pong, has_settings, has_goaway;
};

/* Connects to the server, and returns the socket. */
int connect_peer(void);
/* Connects a peer. `has_no_window`: its streams begin with a window of 100 bytes. */
struct peer *peer_new(bool has_no_window);
void peer_free(struct peer *p);
/* Sends all pending frames. Ignores errors, because peer_turn() notices the end of the connection. */
void peer_send(struct peer *p);
/* Sends pending frames and receives once. Returns false if nothing came within timeout_ms or the connection has ended. */
bool peer_turn(struct peer *p, int timeout_ms);

/* Runs the peer until the condition holds; fails the test if the connection ends or PATIENCE_NS pass before. */
#define PEER_UNTIL(p, condition) \
	do { \
		uint64_t end_ns_ = clock_now_ns() + PATIENCE_NS; \
		while (!(condition) && !(p)->is_ended && clock_now_ns() < end_ns_) \
			peer_turn(p, 10); \
		assert_true(condition); \
	} while (0)

/* The body of a request; if `data` is NULL, peer_call() makes it an empty message. */
struct body {
	const char *data;
	size_t size, sent;
	bool is_endless; /* the request does not end after the data */
};

/* A header for nghttp2; both strings must stay valid. */
nghttp2_nv header(const char *name, const char *value);
#define ALL_HEADERS 6
/* Writes the headers that a correct call of `method` has. */
void fill_headers(nghttp2_nv headers[ALL_HEADERS], const char *method);
/* Begins a call as stream `at` of the peer. `b` must stay valid until the stream ends. */
struct stream *peer_call(struct peer *p, unsigned at, const nghttp2_nv *headers, size_t count,
			 struct body *b);
/* Calls Watch. `timeout`: the value of grpc-timeout, or NULL. */
struct stream *peer_watch(struct peer *p, unsigned at, struct body *b, const char *timeout);
