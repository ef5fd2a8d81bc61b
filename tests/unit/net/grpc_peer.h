/* ---- a peer of any kind ---- */
#pragma once

#include <nghttp2/nghttp2.h>
#include <stdbool.h>

#include "grpc_test_service.h"
#include "net/grpc.h"

struct stream {
	int32_t id;
	char http_status[8], grpc_status[8], grpc_message[128];
	unsigned messages, last; /* whole ones of Watch, and its number */
	uint8_t data[8192 + GRPC_HEAD_BYTES];
	size_t size;
	bool is_closed;
	uint32_t code;
};

struct peer {
	int fd;
	nghttp2_session *session;
	struct stream stream[8];
	bool is_blind; /* gives no room for data */
	bool is_ended, has_pong, has_settings, has_goaway;
};

int connect_peer(void);
struct peer *peer_new(bool is_blind);
void peer_free(struct peer *p);
/* Whether anybody listens is seen when it reads. */
void peer_send(struct peer *p);
/* One step; false when nothing came for a while. */
bool peer_turn(struct peer *p, int timeout_ms);

#define PEER_UNTIL(p, condition) \
	do { \
		uint64_t end_ns_ = clock_now_ns() + PATIENCE_NS; \
		while (!(condition) && !(p)->is_ended && clock_now_ns() < end_ns_) \
			peer_turn(p, 10); \
		assert_true(condition); \
	} while (0)

/* The body of a request: an empty message, or what is there. */
struct body {
	const char *data;
	size_t size, sent;
	bool is_endless; /* never ends */
};

nghttp2_nv nv(const char *name, const char *value);
#define ALL_HEADERS 6
void usual_headers(nghttp2_nv headers[ALL_HEADERS], const char *method);
/* `b` lives as long as the stream. */
struct stream *peer_call(struct peer *p, unsigned at, const nghttp2_nv *headers, size_t count,
			 struct body *b);
struct stream *begin_watch(struct peer *p, unsigned at, struct body *b, const char *timeout);
