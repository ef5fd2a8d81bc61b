/* One call: takes the parts of its request as they arrive, and sends its answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "net/grpc_inside.h"
#include "net/grpc_server.h"

struct grpc_message *grpc_message_new(size_t size)
{
	struct grpc_message *m = size <= UINT32_MAX ? malloc(sizeof(*m) + GRPC_HEAD_BYTES + size)
						    : NULL;
	if (!m)
		return NULL;
	m->references = 1;
	m->size = GRPC_HEAD_BYTES + size;
	grpc_head_write(m->data, (uint32_t)size);
	return m;
}

uint8_t *grpc_message_data(struct grpc_message *message)
{
	return message->data + GRPC_HEAD_BYTES;
}

struct grpc_message *grpc_message_unref(struct grpc_message *message)
{
	if (message && --message->references == 0)
		free(message);
	return NULL;
}

static struct grpc_server *server_of(const struct grpc_call *call)
{
	return call->connection->server;
}

struct grpc_call *grpc_call_new(struct grpc_connection *c, int32_t stream)
{
	struct grpc_call *call = calloc(1, sizeof(*call));
	if (!call)
		return NULL;
	call->connection = c;
	call->stream = stream;
	call->arrive_by_ns = clock_now_ns() + c->server->service.limits.arrive_ns;
	grpc_server_due(c->server, call->arrive_by_ns);
	TAILQ_INSERT_TAIL(&c->calls, call, link);
	return call;
}

static void free_request(struct grpc_call *call)
{
	server_of(call)->held_bytes -= call->held_bytes;
	call->held_bytes = 0;
	grpc_inbox_free(&call->in);
}

void grpc_call_free(struct grpc_call *call)
{
	struct grpc_connection *c = call->connection;
	if (c->session)
		nghttp2_session_set_stream_user_data(c->session, call->stream, NULL);
	if (call->gone)
		call->gone(call->gone_data, call);
	free_request(call);
	grpc_message_unref(call->now);
	grpc_message_unref(call->next);
	TAILQ_REMOVE(&c->calls, call, link);
	if (TAILQ_EMPTY(&c->calls))
		c->idle_since_ns = clock_now_ns();
	free(call);
}

/* Writes one or two headers, and returns their number. `number` is space for the status as text. */
static size_t status_headers(const struct grpc_call *call, char number[4], nghttp2_nv *headers)
{
	snprintf(number, 4, "%d", (int)call->status);
	headers[0] = grpc_header("grpc-status", number);
	headers[1] = grpc_header("grpc-message", call->text);
	return call->text[0] ? 2 : 1;
}

static bool has_more(const struct grpc_call *call)
{
	return call->now || call->next;
}

static int submit_trailer(nghttp2_session *session, const struct grpc_call *call)
{
	char number[4];
	nghttp2_nv headers[2];
	size_t count = status_headers(call, number, headers);
	return nghttp2_submit_trailer(session, call->stream, headers, count);
}

static ssize_t give_answer(nghttp2_session *session, int32_t stream, uint8_t *data, size_t size,
			   uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct grpc_call *call = source->ptr;
	size_t n = 0;
	if (!call->now) {
		call->now = steal_pointer(&call->next);
		call->sent = 0;
	}
	if (call->now) {
		size_t left = call->now->size - call->sent;
		n = left < size ? left : size;
		memcpy(data, call->now->data + call->sent, n);
		call->sent += n;
		call->sent_ns = clock_now_ns();
		if (call->sent == call->now->size)
			call->now = grpc_message_unref(call->now);
	}
	if (call->is_over && !has_more(call)) {
		*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (submit_trailer(session, call) != 0)
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	} else if (!n) {
		call->is_deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	return (ssize_t)n;
}

static void reset(struct grpc_call *call, uint32_t code)
{
	nghttp2_submit_rst_stream(call->connection->session, NGHTTP2_FLAG_NONE, call->stream, code);
	grpc_connection_wake(call->connection);
}

/* For a call that ends without a message. */
static void answer_headers(struct grpc_call *call, const char *http_status)
{
	char number[4];
	nghttp2_nv headers[4] = { grpc_header(":status", http_status),
				  grpc_header("content-type", "application/grpc") };
	size_t count = 2 + status_headers(call, number, headers + 2);
	if (nghttp2_submit_response(call->connection->session, call->stream, headers, count,
				    NULL) != 0)
		reset(call, NGHTTP2_INTERNAL_ERROR);
}

/* Makes nghttp2 fetch the call's data: submits the headers the first time, and later resumes the stream. */
static void answer_data(struct grpc_call *call)
{
	nghttp2_session *session = call->connection->session;
	if (call->is_deferred) {
		call->is_deferred = false;
		nghttp2_session_resume_data(session, call->stream);
	}
	if (call->has_headers)
		return;
	const nghttp2_nv headers[] = { grpc_header(":status", "200"),
				       grpc_header("content-type", "application/grpc") };
	nghttp2_data_provider body = { .source.ptr = call, .read_callback = give_answer };
	call->has_headers = true;
	if (nghttp2_submit_response(session, call->stream, headers, 2, &body) != 0)
		reset(call, NGHTTP2_INTERNAL_ERROR);
}

void grpc_call_send(struct grpc_call *call, struct grpc_message *message)
{
	if (call->is_over)
		return;
	if (!has_more(call))
		call->sent_ns = clock_now_ns();
	message->references++;
	grpc_message_unref(call->next);
	call->next = message;
	answer_data(call);
	grpc_server_due(server_of(call), call->sent_ns + server_of(call)->service.limits.stall_ns);
	grpc_connection_wake(call->connection);
}

static void end(struct grpc_call *call, enum grpc_status status, const char *text,
		const char *http_status)
{
	if (call->is_over)
		return;
	call->is_over = true;
	call->gone = NULL;
	call->status = status;
	grpc_text_encode(text ? text : "", call->text);
	/* If the request is complete, its handler may still use it, and grpc_call_arrived() frees it. */
	if (!call->has_arrived)
		free_request(call);
	if (has_more(call) || call->has_headers)
		answer_data(call);
	else
		answer_headers(call, http_status);
	grpc_connection_wake(call->connection);
}

void grpc_call_end(struct grpc_call *call, enum grpc_status status, const char *text)
{
	end(call, status, text, "200");
}

void grpc_call_keep(struct grpc_call *call, void (*gone)(void *data, struct grpc_call *call),
		    void *data)
{
	call->is_kept = true;
	call->gone = gone;
	call->gone_data = data;
}

static void fault(struct grpc_call *call, enum grpc_fault found)
{
	if (found > call->fault)
		call->fault = found;
}

static void take_path(struct grpc_call *call, const uint8_t *value, size_t size)
{
	const struct grpc_service *service = &server_of(call)->service;
	if (call->has_path)
		fault(call, GRPC_FAULT_MALFORMED);
	call->has_path = true;
	for (size_t i = 0; i < service->method_count; i++)
		if (grpc_is_name(value, size, service->methods[i].path))
			call->method = &service->methods[i];
	if (!call->method)
		fault(call, GRPC_FAULT_METHOD);
}

static void take_timeout(struct grpc_call *call, const char *value, size_t size)
{
	uint64_t timeout_ns;
	if (grpc_timeout_parse(value, size, &timeout_ns) < 0) {
		fault(call, GRPC_FAULT_TIMEOUT);
		return;
	}
	call->has_deadline = true;
	call->deadline_ns = clock_now_ns() + timeout_ns;
	grpc_server_due(server_of(call), call->deadline_ns);
}

bool grpc_call_header(struct grpc_call *call, const uint8_t *name, size_t name_size,
		      const uint8_t *value, size_t value_size, bool is_trailer)
{
	/* Count 32 more bytes for each header, as SETTINGS_MAX_HEADER_LIST_SIZE does (RFC 9113, 6.5.2). */
	call->header_bytes += name_size + value_size + 32;
	if (call->header_bytes > GRPC_HEADERS_MOST_BYTES)
		return false;
	if (is_trailer) {
		if (name_size && name[0] == ':')
			fault(call, GRPC_FAULT_MALFORMED);
	} else if (grpc_is_name(name, name_size, ":path")) {
		take_path(call, value, value_size);
	} else if (grpc_is_name(name, name_size, ":method")) {
		if (call->has_post)
			fault(call, GRPC_FAULT_MALFORMED);
		call->has_post = grpc_is_name(value, value_size, "POST");
	} else if (grpc_is_name(name, name_size, "content-type")) {
		call->has_type = grpc_is_content_type((const char *)value, value_size);
	} else if (grpc_is_name(name, name_size, "grpc-timeout")) {
		take_timeout(call, (const char *)value, value_size);
	}
	return true;
}

void grpc_call_headers_end(struct grpc_call *call)
{
	if (!call->has_path)
		fault(call, GRPC_FAULT_MALFORMED);
	else if (!call->has_post || !call->has_type)
		fault(call, GRPC_FAULT_MEDIA);
	switch (call->fault) {
	case GRPC_FAULT_NONE: return;
	case GRPC_FAULT_TIMEOUT:
		grpc_call_end(call, GRPC_INTERNAL, "grpc-timeout: must be 1 to 8 digits and a unit");
		return;
	case GRPC_FAULT_METHOD:
		grpc_call_end(call, GRPC_UNIMPLEMENTED, "this server has no such method");
		return;
	case GRPC_FAULT_MEDIA:
		end(call, GRPC_UNKNOWN,
		    "the request must be a POST with content type application/grpc", "415");
		return;
	case GRPC_FAULT_MALFORMED:
		call->is_over = true;
		reset(call, NGHTTP2_PROTOCOL_ERROR);
		return;
	}
}

static void refuse_message(struct grpc_call *call, int why)
{
	char text[GRPC_TEXT_MAX];
	snprintf(text, sizeof(text), "a message of %zu bytes: must be at most %zu", call->in.size,
		 server_of(call)->service.limits.message_bytes);
	switch (why) {
	case -EMSGSIZE: grpc_call_end(call, GRPC_RESOURCE_EXHAUSTED, text); return;
	case -EOPNOTSUPP:
		grpc_call_end(call, GRPC_UNIMPLEMENTED, "compressed messages are not understood");
		return;
	case -EPROTO: grpc_call_end(call, GRPC_INTERNAL, "more than one message"); return;
	default:
		grpc_call_end(call, GRPC_RESOURCE_EXHAUSTED, "the server is out of memory");
		return;
	}
}

void grpc_call_data(struct grpc_call *call, const uint8_t *data, size_t size)
{
	struct grpc_server *server = server_of(call);
	const struct grpc_limits *limits = &server->service.limits;
	if (call->is_over)
		return;
	if (server->held_bytes + size > limits->held_bytes) {
		grpc_call_end(
			call, GRPC_RESOURCE_EXHAUSTED,
			"the unfinished requests to this server are too large in sum: try again");
		return;
	}
	int r = grpc_inbox_take(&call->in, data, size, limits->message_bytes);
	if (r < 0) {
		refuse_message(call, r);
		return;
	}
	call->held_bytes += size;
	server->held_bytes += size;
}

void grpc_call_arrived(struct grpc_call *call)
{
	struct grpc_server *server = server_of(call);
	call->has_arrived = true;
	if (call->is_over)
		return;
	if (call->fault == GRPC_FAULT_MALFORMED) {
		call->is_over = true;
		reset(call, NGHTTP2_PROTOCOL_ERROR);
		return;
	}
	if (!grpc_inbox_is_complete(&call->in)) {
		grpc_call_end(call, GRPC_INTERNAL,
			      "the request ended before its message was complete");
		return;
	}
	call->method->handler(server->service.data, call, call->in.data, call->in.size);
	if (!call->is_over && !call->is_kept)
		grpc_call_end(call, GRPC_INTERNAL, "internal error: the method gave no answer");
	free_request(call);
}

/* grpc_call_end() does not call `gone`, so this function does. */
static void end_kept(struct grpc_call *call, enum grpc_status status, const char *text)
{
	void (*gone)(void *data, struct grpc_call *call) = call->gone;
	grpc_call_end(call, status, text);
	if (gone)
		gone(call->gone_data, call);
}

void grpc_call_look(struct grpc_call *call, uint64_t now_ns)
{
	uint64_t stalled_ns = call->sent_ns + server_of(call)->service.limits.stall_ns;
	if (has_more(call) && now_ns >= stalled_ns) {
		/* The peer has stalled. In its next turn, the loop closes the stream and calls `gone`. */
		call->sent_ns = now_ns;
		reset(call, NGHTTP2_CANCEL);
	}
	if (has_more(call))
		grpc_server_due(server_of(call), stalled_ns);
	if (call->is_over)
		return;
	if (!call->has_arrived && now_ns >= call->arrive_by_ns)
		end_kept(call, GRPC_DEADLINE_EXCEEDED,
			 "the request did not arrive completely within the server's time limit");
	else if (call->has_deadline && now_ns >= call->deadline_ns)
		end_kept(call, GRPC_DEADLINE_EXCEEDED,
			 "the deadline that the client set (grpc-timeout) has passed");
	if (call->is_over)
		return;
	if (!call->has_arrived)
		grpc_server_due(server_of(call), call->arrive_by_ns);
	if (call->has_deadline)
		grpc_server_due(server_of(call), call->deadline_ns);
}
