#include "node/engine/engine_grpc.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define FRAME_HEAD \
	5 /* of a message in gRPC: whether it is compressed, and its length, big end first */
#define CHUNK 16384
/* The statuses that mean something here (grpc.io, "Status codes and their use in gRPC"). */
#define STATUS_OK "0"
#define STATUS_NOT_FOUND "5"
#define STATUS_UNIMPLEMENTED "12"

/* One call under way. */
struct exchange {
	unsigned char *out; /* the framed request */
	size_t out_size, out_sent;
	unsigned char *in;
	size_t in_size, in_room; /* of it, in_room is what may come at most */
	char status[8];          /* of gRPC; "": not told yet */
	int error;               /* negative: what ended it */
	bool is_closed;
};

static void free_session(nghttp2_session **session)
{
	nghttp2_session_del(*session);
}

static ssize_t give_request(nghttp2_session *session, int32_t stream, uint8_t *data, size_t size,
			    uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct exchange *x = user;
	size_t left = x->out_size - x->out_sent;
	size_t n = left < size ? left : size;
	memcpy(data, x->out + x->out_sent, n);
	x->out_sent += n;
	if (x->out_sent == x->out_size)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static int take_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
		     size_t size, void *user)
{
	struct exchange *x = user;
	if (size > x->in_room - x->in_size) {
		x->error = -EMSGSIZE;
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	unsigned char *more = realloc(x->in, x->in_size + size);
	if (!more) {
		x->error = -ENOMEM;
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	x->in = more;
	memcpy(x->in + x->in_size, data, size);
	x->in_size += size;
	return 0;
}

/* The status comes behind the message, or alone in its place. */
static int take_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		       size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
		       void *user)
{
	struct exchange *x = user;
	static const char status[] = "grpc-status";
	if (name_size == sizeof(status) - 1 && !memcmp(name, status, name_size) && value_size > 0 &&
	    value_size < sizeof(x->status)) {
		memcpy(x->status, value, value_size);
		x->status[value_size] = '\0';
	}
	return 0;
}

static int stream_closed(nghttp2_session *session, int32_t stream, uint32_t code, void *user)
{
	struct exchange *x = user;
	x->is_closed = true;
	if (code != NGHTTP2_NO_ERROR && !x->status[0])
		x->error = -EPROTO;
	return 0;
}

static int frame_request(const struct engine_grpc_call *call, struct exchange *x)
{
	size_t n = call->request_size;
	x->out_size = FRAME_HEAD + n;
	x->out = malloc(x->out_size);
	if (!x->out)
		return -ENOMEM;
	const unsigned char head[FRAME_HEAD] = { 0, (unsigned char)(n >> 24),
						 (unsigned char)(n >> 16), (unsigned char)(n >> 8),
						 (unsigned char)n };
	memcpy(x->out, head, FRAME_HEAD);
	memcpy(x->out + FRAME_HEAD, call->request, n);
	return 0;
}

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
			     .value = (uint8_t *)(uintptr_t)value,
			     .namelen = strlen(name),
			     .valuelen = strlen(value) };
}

static int begin(const struct engine_grpc_call *call, struct exchange *x, nghttp2_session **ret)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *session;
	nghttp2_data_provider body = { .read_callback = give_request };
	nghttp2_nv headers[] = {
		header(":method", "POST"),
		header(":scheme", "http"),
		header(":path", call->method),
		header(":authority", "localhost"),
		header("content-type", "application/grpc"),
		header("te", "trailers"),
		header(call->header ? call->header : "", call->header ? call->header_value : ""),
	};
	size_t count = sizeof(headers) / sizeof(headers[0]) - !call->header;
	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_data);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_closed);
	int r = nghttp2_session_client_new(&session, callbacks, x);
	nghttp2_session_callbacks_del(callbacks);
	if (r != 0)
		return -ENOMEM;
	if (nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0) != 0 ||
	    nghttp2_submit_request(session, NULL, headers, count, &body, NULL) < 0) {
		nghttp2_session_del(session);
		return -ENOMEM;
	}
	*ret = session;
	return 0;
}

static int send_waiting(const struct engine_link *link, nghttp2_session *session)
{
	const uint8_t *data;
	ssize_t n;
	while ((n = nghttp2_session_mem_send(session, &data)) > 0) {
		int r = engine_link_write(link, data, (size_t)n);
		if (r < 0)
			return r;
	}
	return n < 0 ? -EPROTO : 0;
}

static int exchange(const struct engine_link *link, nghttp2_session *session, struct exchange *x)
{
	unsigned char chunk[CHUNK];
	while (!x->is_closed) {
		int r = send_waiting(link, session);
		if (r < 0)
			return r;
		ssize_t n = engine_link_read(link, chunk, sizeof(chunk));
		if (n <= 0)
			return n < 0 ? (int)n : -EPROTO;
		n = nghttp2_session_mem_recv(session, chunk, (size_t)n);
		if (x->error < 0 || n < 0)
			return x->error < 0 ? x->error : -EPROTO;
		/* It has seen what is no HTTP/2, and takes the rest without a word. */
		if (!x->is_closed && !nghttp2_session_want_read(session))
			return -EPROTO;
	}
	return x->error;
}

static int read_status(const char *status)
{
	if (!strcmp(status, STATUS_OK))
		return 0;
	if (!strcmp(status, STATUS_NOT_FOUND))
		return -ENOENT;
	return !strcmp(status, STATUS_UNIMPLEMENTED) ? -EOPNOTSUPP : -EPROTO;
}

/* The one message that came: its length must be what is there. */
static int unframe(struct exchange *x, unsigned char **ret, size_t *ret_size)
{
	const unsigned char *p = x->in;
	if (x->in_size < FRAME_HEAD || p[0] != 0)
		return -EPROTO;
	size_t n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
	if (n != x->in_size - FRAME_HEAD)
		return -EPROTO;
	memmove(x->in, x->in + FRAME_HEAD, n);
	*ret = steal_pointer(&x->in);
	*ret_size = n;
	return 0;
}

int engine_grpc_call(const struct engine_link *link, const struct engine_grpc_call *call,
		     unsigned char **ret, size_t *ret_size)
{
	struct exchange x = { .in_room = call->most_bytes + FRAME_HEAD };
	cleanup(free_session) nghttp2_session *session = NULL;
	int r = frame_request(call, &x);
	if (r >= 0)
		r = begin(call, &x, &session);
	if (r >= 0)
		r = exchange(link, session, &x);
	if (r >= 0)
		r = read_status(x.status);
	if (r >= 0)
		r = unframe(&x, ret, ret_size);
	free(x.out);
	free(x.in);
	return r;
}
