#include "grpc_peer.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct stream *find_stream(struct peer *p, int32_t id)
{
	for (size_t i = 0; i < 8; i++)
		if (p->stream[i].id == id)
			return &p->stream[i];
	return NULL;
}

static void copy_text(char *field, size_t room, const uint8_t *value, size_t size)
{
	size_t n = size < room - 1 ? size : room - 1;
	memcpy(field, value, n);
	field[n] = '\0';
}

static int peer_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		       size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
		       void *user)
{
	struct stream *s = find_stream(user, frame->hd.stream_id);
	if (s && name_size == 7 && !memcmp(name, ":status", 7))
		copy_text(s->http_status, sizeof(s->http_status), value, value_size);
	if (s && name_size == 11 && !memcmp(name, "grpc-status", 11))
		copy_text(s->grpc_status, sizeof(s->grpc_status), value, value_size);
	if (s && name_size == 12 && !memcmp(name, "grpc-message", 12))
		copy_text(s->grpc_message, sizeof(s->grpc_message), value, value_size);
	return 0;
}

static int peer_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
		     size_t size, void *user)
{
	struct stream *s = find_stream(user, stream);
	for (size_t i = 0; s && i < size; i++) {
		s->data[s->size++] = data[i];
		if (s->size < sizeof(s->data))
			continue;
		memcpy(&s->last, s->data + GRPC_HEAD_BYTES, sizeof(s->last));
		s->messages++;
		s->size = 0;
	}
	return 0;
}

static int peer_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct peer *p = user;
	p->has_pong |= frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK);
	p->has_settings |= frame->hd.type == NGHTTP2_SETTINGS &&
			   (frame->hd.flags & NGHTTP2_FLAG_ACK);
	p->has_goaway |= frame->hd.type == NGHTTP2_GOAWAY;
	return 0;
}

static int peer_closed(nghttp2_session *session, int32_t stream, uint32_t code, void *user)
{
	struct stream *s = find_stream(user, stream);
	if (s) {
		s->is_closed = true;
		s->code = code;
	}
	return 0;
}

int connect_peer(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	strcpy(address.sun_path, server_path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

struct peer *peer_new(bool has_no_window)
{
	struct peer *p = calloc(1, sizeof(*p));
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	nghttp2_settings_entry window = { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 100 };
	p->fd = connect_peer();
	p->has_no_window = has_no_window;
	assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
	assert_int_equal(nghttp2_option_new(&option), 0);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, peer_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, peer_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, peer_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, peer_closed);
	/* Allow headers that no client should send. */
	nghttp2_option_set_no_http_messaging(option, 1);
	nghttp2_option_set_no_auto_window_update(option, has_no_window);
	assert_int_equal(nghttp2_session_client_new2(&p->session, callbacks, p, option), 0);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(p->session, 0, &window, has_no_window);
	return p;
}

void peer_free(struct peer *p)
{
	nghttp2_session_del(p->session);
	close(p->fd);
	free(p);
}

void peer_send(struct peer *p)
{
	const uint8_t *data;
	ssize_t n;
	while ((n = nghttp2_session_mem_send(p->session, &data)) > 0)
		n = send(p->fd, data, (size_t)n, MSG_NOSIGNAL);
}

bool peer_turn(struct peer *p, int timeout_ms)
{
	uint8_t chunk[16384];
	struct pollfd poll_fd = { .fd = p->fd, .events = POLLIN };
	peer_send(p);
	if (p->is_ended || poll(&poll_fd, 1, timeout_ms) <= 0)
		return false;
	ssize_t n = recv(p->fd, chunk, sizeof(chunk), 0);
	if (n <= 0) {
		p->is_ended = true;
		return false;
	}
	assert_int_equal(nghttp2_session_mem_recv(p->session, chunk, (size_t)n), n);
	return true;
}

nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
			     strlen(value), NGHTTP2_NV_FLAG_NONE };
}

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *data, size_t size,
			 uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct body *b = source->ptr;
	size_t n = b->size - b->sent < size ? b->size - b->sent : size;
	memcpy(data, b->data + b->sent, n);
	b->sent += n;
	if (b->sent == b->size && !b->is_endless)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return !n && b->is_endless ? NGHTTP2_ERR_DEFERRED : (ssize_t)n;
}

void fill_headers(nghttp2_nv headers[ALL_HEADERS], const char *method)
{
	headers[0] = header(":method", "POST");
	headers[1] = header(":scheme", "http");
	headers[2] = header(":path", method);
	headers[3] = header(":authority", "localhost");
	headers[4] = header("content-type", "application/grpc");
	headers[5] = header("te", "trailers");
}

struct stream *peer_call(struct peer *p, unsigned at, const nghttp2_nv *headers, size_t count,
			 struct body *b)
{
	nghttp2_data_provider provider = { .source.ptr = b, .read_callback = read_body };
	if (!b->data)
		*b = (struct body){ .data = "\0\0\0\0", .size = 5 };
	p->stream[at] = (struct stream){ .id = nghttp2_submit_request(p->session, NULL, headers,
								      count, &provider, NULL) };
	assert_true(p->stream[at].id > 0);
	return &p->stream[at];
}

struct stream *peer_watch(struct peer *p, unsigned at, struct body *b, const char *timeout)
{
	nghttp2_nv headers[ALL_HEADERS + 1];
	fill_headers(headers, "/test.Test/Watch");
	headers[ALL_HEADERS] = header("grpc-timeout", timeout ? timeout : "");
	return peer_call(p, at, headers, ALL_HEADERS + !!timeout, b);
}
