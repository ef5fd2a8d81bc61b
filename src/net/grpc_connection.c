/* One peer of the gRPC server: sends and receives bytes, and speaks HTTP/2 by nghttp2. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "net/grpc_inside.h"

#define CHUNK 16384
#define CHUNKS_A_TURN 4
/* most unsent answers to a peer's PINGs and SETTINGS; beyond it the connection is closed */
#define ACKS_MOST 256

static struct grpc_call *find_call(nghttp2_session *session, int32_t stream)
{
	return nghttp2_session_get_stream_user_data(session, stream);
}

static int headers_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct grpc_connection *c = user;
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	struct grpc_call *call = grpc_call_new(c, frame->hd.stream_id);
	if (!call)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
	return 0;
}

static int take_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		       size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
		       void *user)
{
	struct grpc_call *call = find_call(session, frame->hd.stream_id);
	if (frame->hd.type != NGHTTP2_HEADERS || !call)
		return 0;
	bool is_trailer = frame->headers.cat != NGHTTP2_HCAT_REQUEST;
	return grpc_call_header(call, name, name_size, value, value_size, is_trailer)
		       ? 0
		       : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int take_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
		     size_t size, void *user)
{
	struct grpc_call *call = find_call(session, stream);
	if (call)
		grpc_call_data(call, data, size);
	return 0;
}

static int frame_came(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct grpc_connection *c = user;
	if (frame->hd.type == NGHTTP2_SETTINGS)
		c->has_begun = true;
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	struct grpc_call *call = find_call(session, frame->hd.stream_id);
	if (call && frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		grpc_call_headers_end(call);
	if (call && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		grpc_call_arrived(call);
	return 0;
}

/* If an answer is complete before its request, the rest of the request is not needed (RFC 9113, 8.1): reset the stream. */
static int frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct grpc_call *call;
	if (frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	call = find_call(session, frame->hd.stream_id);
	if (call && !call->has_arrived)
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
					  NGHTTP2_NO_ERROR);
	return 0;
}

static int stream_closed(nghttp2_session *session, int32_t stream, uint32_t code, void *user)
{
	struct grpc_call *call = find_call(session, stream);
	if (call)
		grpc_call_free(call);
	return 0;
}

static int make_session(struct grpc_connection *c)
{
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *option = NULL;
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, c->server->service.limits.calls },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_HEADERS_MOST_BYTES },
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
	};
	int r = nghttp2_session_callbacks_new(&callbacks);
	if (r == 0)
		r = nghttp2_option_new(&option);
	if (r == 0) {
		nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, headers_begin);
		nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_data);
		nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_came);
		nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, frame_sent);
		nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_closed);
		/* nghttp2's own checks are too strict (grpc_server.h). grpc_call_header() checks what matters. */
		nghttp2_option_set_no_http_messaging(option, 1);
		nghttp2_option_set_max_outbound_ack(option, ACKS_MOST);
		r = nghttp2_session_server_new2(&c->session, callbacks, c, option);
	}
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	if (r == 0)
		r = nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings,
					    sizeof(settings) / sizeof(settings[0]));
	return r == 0 ? 0 : -ENOMEM;
}

static int send_waiting(struct grpc_connection *c)
{
	for (;;) {
		if (!c->out_size) {
			ssize_t n = nghttp2_session_mem_send(c->session, &c->out);
			if (n <= 0)
				return (int)n;
			c->out_size = (size_t)n;
			c->out_since_ns = clock_now_ns();
		}
		ssize_t n = send(c->fd, c->out, c->out_size, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			grpc_server_due(c->server,
					c->out_since_ns + c->server->service.limits.stall_ns);
			return 0;
		}
		if (n < 0)
			return -errno;
		c->out += n;
		c->out_size -= (size_t)n;
		c->out_since_ns = clock_now_ns();
	}
}

static int take_waiting(struct grpc_connection *c)
{
	static uint8_t chunk[CHUNK]; /* static: only the loop's thread uses it */
	for (unsigned i = 0; i < CHUNKS_A_TURN; i++) {
		ssize_t n = recv(c->fd, chunk, sizeof(chunk), 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		ssize_t taken = nghttp2_session_mem_recv(c->session, chunk, (size_t)n);
		if (taken < 0)
			return -EPROTO;
		if ((size_t)n < sizeof(chunk))
			return 0;
	}
	return 0;
}

static void watch(struct grpc_connection *c, uint32_t events)
{
	if (c->watched != events)
		loop_watch(c->source, events);
	c->watched = events;
}

/* Backpressure: does not read from the peer while our output to that peer is blocked. */
static void ready(void *data, uint32_t events)
{
	struct grpc_connection *c = data;
	int r = events & EPOLLERR ? -EPIPE : 0;
	if (r >= 0 && (events & (EPOLLIN | EPOLLHUP)) && !c->out_size)
		r = take_waiting(c);
	if (r >= 0)
		r = send_waiting(c);
	/* The session is over once both sides have sent GOAWAY, or if the peer did not speak HTTP/2. */
	bool is_over = !nghttp2_session_want_read(c->session) &&
		       !nghttp2_session_want_write(c->session) && !c->out_size;
	if (r < 0 || is_over || (c->out_size && (events & EPOLLHUP)))
		grpc_connection_free(c);
	else
		watch(c, c->out_size ? EPOLLOUT : EPOLLIN);
}

void grpc_connection_wake(struct grpc_connection *c)
{
	watch(c, c->watched | EPOLLOUT);
}

int grpc_connection_new(struct grpc_server *server, int fd)
{
	uint64_t now_ns = clock_now_ns();
	struct grpc_connection *c = calloc(1, sizeof(*c));
	if (!c) {
		close_fd(&fd);
		return -ENOMEM;
	}
	*c = (struct grpc_connection){ .server = server,
				       .fd = fd,
				       .watched = EPOLLIN | EPOLLOUT,
				       .begin_by_ns = now_ns + server->service.limits.arrive_ns,
				       .idle_since_ns = now_ns };
	TAILQ_INIT(&c->calls);
	TAILQ_INSERT_TAIL(&server->connections, c, link);
	server->connection_count++;
	int r = make_session(c);
	if (r >= 0)
		r = loop_add(server->loop, fd, c->watched, ready, c, &c->source);
	if (r < 0)
		grpc_connection_free(c);
	else
		grpc_server_due(server, c->begin_by_ns);
	return r;
}

void grpc_connection_free(struct grpc_connection *c)
{
	struct grpc_call *call;
	loop_remove(c->source);
	if (c->session && c->has_begun) {
		/* Sends GOAWAY, and data of calls, as far as the socket takes them now. */
		nghttp2_session_terminate_session(c->session, NGHTTP2_NO_ERROR);
		send_waiting(c);
	}
	while ((call = TAILQ_FIRST(&c->calls)))
		grpc_call_free(call);
	nghttp2_session_del(c->session);
	close_fd(&c->fd);
	TAILQ_REMOVE(&c->server->connections, c, link);
	c->server->connection_count--;
	free(c);
}

void grpc_connection_look(struct grpc_connection *c, uint64_t now_ns)
{
	struct grpc_call *call;
	uint64_t stalled_ns = c->out_since_ns + c->server->service.limits.stall_ns;
	if ((!c->has_begun && now_ns >= c->begin_by_ns) || (c->out_size && now_ns >= stalled_ns)) {
		grpc_connection_free(c);
		return;
	}
	if (!c->has_begun)
		grpc_server_due(c->server, c->begin_by_ns);
	if (c->out_size)
		grpc_server_due(c->server, stalled_ns);
	TAILQ_FOREACH(call, &c->calls, link)
		grpc_call_look(call, now_ns);
}
