#include "net/grpc_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "net/grpc_inside.h"

#define CHUNK 16384

struct exchange {
	uint8_t *out;
	size_t out_size, out_sent;
	struct grpc_inbox in;
	size_t most_bytes;
	bool has_status;
	enum grpc_status status;
	char text[GRPC_TEXT_MAX];
	int error; /* -errno if an error ended the call */
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
	int r = grpc_inbox_take(&x->in, data, size, x->most_bytes);
	if (r >= 0)
		return 0;
	x->error = r == -EOPNOTSUPP ? -EPROTO : r;
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* The status comes in trailers after the message or, without a message, in headers. */
static int take_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		       size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
		       void *user)
{
	struct exchange *x = user;
	const char *text = (const char *)value;
	if (grpc_is_name(name, name_size, "grpc-status")) {
		x->status = grpc_status_parse(text, value_size);
		x->has_status = true;
	} else if (grpc_is_name(name, name_size, "grpc-message")) {
		grpc_text_decode(text, value_size, x->text);
	}
	return 0;
}

static int stream_closed(nghttp2_session *session, int32_t stream, uint32_t code, void *user)
{
	struct exchange *x = user;
	x->is_closed = true;
	if (!x->has_status)
		x->error = -EPROTO;
	return 0;
}

static int frame_request(const struct grpc_request *request, struct exchange *x)
{
	if (request->size > UINT32_MAX)
		return -EMSGSIZE;
	x->out_size = GRPC_HEAD_BYTES + request->size;
	x->out = malloc(x->out_size);
	if (!x->out)
		return -ENOMEM;
	grpc_head_write(x->out, (uint32_t)request->size);
	if (request->size)
		memcpy(x->out + GRPC_HEAD_BYTES, request->message, request->size);
	return 0;
}

static int begin(const struct grpc_request *request, struct exchange *x, nghttp2_session **ret)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *session;
	nghttp2_data_provider body = { .read_callback = give_request };
	nghttp2_nv headers[] = {
		grpc_header(":method", "POST"),
		grpc_header(":scheme", "http"),
		grpc_header(":path", request->method),
		grpc_header(":authority", "localhost"),
		grpc_header("content-type", "application/grpc"),
		grpc_header("te", "trailers"),
		grpc_header(request->header ? request->header : "",
			    request->header ? request->header_value : ""),
	};
	size_t count = sizeof(headers) / sizeof(headers[0]) - !request->header;
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

static int send_waiting(const struct net_link *link, nghttp2_session *session)
{
	const uint8_t *data;
	ssize_t n;
	while ((n = nghttp2_session_mem_send(session, &data)) > 0) {
		int r = net_link_write(link, data, (size_t)n);
		if (r < 0)
			return r;
	}
	return n < 0 ? -EPROTO : 0;
}

static int exchange(const struct net_link *link, nghttp2_session *session, struct exchange *x)
{
	unsigned char chunk[CHUNK];
	while (!x->is_closed) {
		int r = send_waiting(link, session);
		if (r < 0)
			return r;
		ssize_t n = net_link_read(link, chunk, sizeof(chunk));
		if (n <= 0)
			return n < 0 ? (int)n : -EPROTO;
		n = nghttp2_session_mem_recv(session, chunk, (size_t)n);
		if (x->error < 0 || n < 0)
			return x->error < 0 ? x->error : -EPROTO;
		/* nghttp2 wants no more input before the call is over: the server violated HTTP/2. */
		if (!x->is_closed && !nghttp2_session_want_read(session))
			return -EPROTO;
	}
	return x->error;
}

int grpc_call_unary(const struct net_link *link, const struct grpc_request *request,
		    struct grpc_reply *ret)
{
	struct exchange x = { .most_bytes = request->most_bytes };
	cleanup(free_session) nghttp2_session *session = NULL;
	int r = frame_request(request, &x);
	if (r >= 0)
		r = begin(request, &x, &session);
	if (r >= 0)
		r = exchange(link, session, &x);
	if (r >= 0 && x.status == GRPC_OK && !grpc_inbox_is_complete(&x.in))
		r = -EPROTO;
	if (r >= 0) {
		*ret = (struct grpc_reply){ .status = x.status };
		memcpy(ret->text, x.text, sizeof(ret->text));
		if (x.status == GRPC_OK) {
			ret->message = steal_pointer(&x.in.data);
			ret->size = x.in.size;
		}
	}
	free(x.out);
	grpc_inbox_free(&x.in);
	return r;
}
