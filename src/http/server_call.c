#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "http/http_server.h"
#include "http/server_inside.h"

#define BODY_FIRST ((size_t)16384)
#define LINE_TYPE "text/plain; charset=utf-8"

void server_set_stage(struct server_call *c, enum stage stage)
{
	c->stage = stage;
	c->since_ns = clock_now_ns();
}

static struct server_call *call_of(const struct server *s, struct MHD_Connection *at)
{
	const union MHD_ConnectionInfo *info = s->mhd->get_connection_info(
		at, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info->socket_context;
}

static struct server_peer peer_of(int fd)
{
	struct sockaddr_storage from = { 0 };
	socklen_t length = sizeof(from);
	struct server_peer peer = { 0 };
	if (getpeername(fd, (struct sockaddr *)&from, &length) < 0)
		return peer;
	if (from.ss_family == AF_INET) {
		memcpy(peer.bytes, &((const struct sockaddr_in *)(const void *)&from)->sin_addr, 4);
	} else if (from.ss_family == AF_INET6) {
		const struct in6_addr *v6 =
			&((const struct sockaddr_in6 *)(const void *)&from)->sin6_addr;
		bool is_mapped = IN6_IS_ADDR_V4MAPPED(v6);
		memcpy(peer.bytes, v6->s6_addr + (is_mapped ? 12 : 0), is_mapped ? 4 : 8);
		peer.is_v6 = !is_mapped;
	}
	return peer;
}

static void connection_began(struct generation *g, struct MHD_Connection *at, void **ret_context)
{
	struct server *s = g->server;
	const union MHD_ConnectionInfo *info = s->mhd->get_connection_info(
		at, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct server_call *c = calloc(1, sizeof(*c));
	if (!c) {
		/* There is no memory to track the connection: close it. */
		shutdown(info->connect_fd, SHUT_RDWR);
		return;
	}
	*c = (struct server_call){ .next = s->calls,
				   .generation = g,
				   .fd = info->connect_fd,
				   .peer = peer_of(info->connect_fd) };
	server_set_stage(c, STAGE_NEW);
	s->calls = c;
	g->count++;
	if (s->count++ == 0)
		loop_arm(s->check_timer, SERVER_CHECK_NS, SERVER_CHECK_NS);
	*ret_context = c;
}

static void forget_request(struct server *s, struct server_call *c)
{
	if (c->is_stream)
		server_stream_end(c);
	s->bodies -= c->room;
	free(c->body);
	c->body = NULL;
	c->size = c->room = 0;
	c->refused = 0;
	c->has_headers = c->is_suspended = false;
	if (c->answer)
		s->mhd->destroy_response(c->answer);
	c->answer = NULL;
}

static void connection_ended(struct server_call *c)
{
	struct generation *g = c->generation;
	struct server *s = g->server;
	struct server_call **link = &s->calls;
	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	forget_request(s, c);
	free(c);
	server_set_accept_paused(s, false);
	g->count--;
	if (--s->count == 0)
		loop_disarm(s->check_timer);
}

void server_on_connection(void *data, struct MHD_Connection *at, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		connection_began(data, at, context);
	else if (*context)
		connection_ended(*context);
}

/* The first line of a request has arrived. The deadline for the rest starts now. */
void *server_on_uri(void *data, const char *uri, struct MHD_Connection *at)
{
	const struct generation *g = data;
	struct server_call *c = call_of(g->server, at);
	if (c)
		server_set_stage(c, STAGE_REQUEST);
	return NULL;
}

/* An answer was sent, or its connection has ended. The deadline for the next request starts now. */
void server_on_request_end(void *data, struct MHD_Connection *at, void **context,
			   enum MHD_RequestTerminationCode why)
{
	const struct generation *g = data;
	struct server_call *c = call_of(g->server, at);
	if (!c)
		return;
	forget_request(g->server, c);
	server_set_stage(c, STAGE_IDLE);
}

void server_add_headers(const struct server *s, struct MHD_Response *response)
{
	for (size_t i = 0; i < s->config.header_count; i++)
		s->mhd->add_response_header(response, s->config.headers[i].name,
					    s->config.headers[i].value);
}

void server_wake(struct server_call *c)
{
	c->is_suspended = false;
	c->generation->server->mhd->resume_connection(c->at);
	/* No event would make libmicrohttpd continue the resumed call, so a timer runs libmicrohttpd soon. */
	c->generation->has_resumed = true;
	loop_arm(c->generation->soon_timer, 0, 0);
}

static struct MHD_Response *make_response(const struct server *s, const struct generation *g,
					  const struct server_answer *answer)
{
	const char *line = answer->own ? answer->own : answer->line;
	/* `line` may be valid only until the handler is called again, so it is copied. */
	struct MHD_Response *response = s->mhd->create_response_from_buffer(
		strlen(line), (void *)(uintptr_t)line,
		answer->own ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_MUST_COPY);
	if (!response) {
		free(answer->own);
		return NULL;
	}
	s->mhd->add_response_header(response, "Content-Type",
				    answer->type ? answer->type : LINE_TYPE);
	if (answer->header)
		s->mhd->add_response_header(response, answer->header, answer->header_value);
	server_add_headers(s, response);
	/* The connection has the old certificate. Close it, so that the client reconnects and gets the new one. */
	if (g != s->generations)
		s->mhd->add_response_header(response, "Connection", "close");
	return response;
}

static enum MHD_Result send_answer(const struct server *s, struct server_call *c,
				   struct MHD_Connection *at, const struct server_answer *answer)
{
	struct MHD_Response *response = (struct MHD_Response *)(void *)answer->text;
	if (answer->is_stream)
		response = server_stream_begin(c, answer->type);
	else if (!response)
		response = make_response(s, c->generation, answer);
	if (!response)
		return MHD_NO;
	server_set_stage(c, STAGE_ANSWER);
	enum MHD_Result r = s->mhd->queue_response(at, answer->status, response);
	if (!answer->text || answer->is_last)
		s->mhd->destroy_response(response);
	return r;
}

void server_call_answer(struct server_call *c, const struct server_answer *answer)
{
	const struct server *s = c->generation->server;
	static const struct server_answer no_memory = { .status = 500, .line = "out of memory\n" };
	c->status = answer->status;
	c->answer = make_response(s, c->generation, answer);
	if (!c->answer) {
		c->status = no_memory.status;
		c->answer = make_response(s, c->generation, &no_memory);
	}
	if (c->is_suspended)
		server_wake(c);
}

static enum MHD_Result send_kept(const struct server *s, struct server_call *c)
{
	server_set_stage(c, STAGE_ANSWER);
	return s->mhd->queue_response(c->at, c->status, c->answer);
}

static const char *header_of(const struct server *s, const struct server_call *c, const char *name)
{
	return s->mhd->lookup_connection_value(c->at, MHD_HEADER_KIND, name);
}

static const char *authorization_of(const struct server *s, const struct server_call *c)
{
	const char *own = header_of(s, c, "Authorization");
	return own ? own : header_of(s, c, SERVER_PROXIED_AUTHORIZATION);
}

const char *server_request_argument(const struct server_request *request, const char *name)
{
	const struct server_call *c = request->call;
	const struct mhd *mhd = c->generation->server->mhd;
	return mhd->lookup_connection_value(c->at, MHD_GET_ARGUMENT_KIND, name);
}

static void *tls_of(const struct server *s, const struct server_call *c)
{
	if (!s->tls.certificate)
		return NULL;
	const union MHD_ConnectionInfo *info = s->mhd->get_connection_info(
		c->at, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	return info ? info->tls_session : NULL;
}

static enum MHD_Result ask_handler(struct server *s, struct server_call *c, const char *url,
				   const char *method)
{
	static const struct server_answer too_large = { .status = 413,
							.line = "the body is too large\n" };
	static const struct server_answer too_much = {
		.status = 503, .line = "too many large requests at a time; try again\n"
	};
	struct server_answer answer = { 0 };
	if (c->refused)
		return send_answer(s, c, c->at, c->refused == 413 ? &too_large : &too_much);
	const struct server_request request = {
		.method = method,
		.path = url,
		.authorization = authorization_of(s, c),
		.host = header_of(s, c, "Host"),
		.origin = header_of(s, c, "Origin"),
		.body = c->body,
		.body_size = c->size,
		.call = c,
		.tls = tls_of(s, c),
		.authorized_ns = s->tls.certificate ? &c->authorized_ns : NULL,
	};
	server_set_stage(c, STAGE_HANDLER);
	s->config.handler(s->config.data, &request, &answer);
	if (!answer.is_later)
		return send_answer(s, c, c->at, &answer);
	if (c->answer)
		return send_kept(s, c);
	c->is_suspended = true;
	s->mhd->suspend_connection(c->at);
	return MHD_YES;
}

/*
 * Stores a part of the body. A rejected body is still read, because the client reads the answer only after sending everything.
 */
static void take_body(struct server *s, struct server_call *c, const char *part, size_t size)
{
	if (!c->refused && size > s->config.body_max - c->size)
		c->refused = 413;
	if (!c->refused && c->size + size + 1 > c->room) {
		size_t room = c->room ? c->room : BODY_FIRST;
		while (room < c->size + size + 1)
			room *= 2;
		char *body = s->bodies - c->room + room > SERVER_BODIES * s->config.body_max
				     ? NULL
				     : realloc(c->body, room);
		if (body) {
			s->bodies += room - c->room;
			c->body = body;
			c->room = room;
		} else {
			c->refused = 503;
		}
	}
	if (c->refused) {
		s->bodies -= c->room;
		free(c->body);
		c->body = NULL;
		c->size = c->room = 0;
		return;
	}
	memcpy(c->body + c->size, part, size);
	c->size += size;
	c->body[c->size] = '\0';
}

/*
 * libmicrohttpd calls this when the headers, a part of the body, or the body's end (*body_length is 0) has arrived, and after
 * server_call_answer(). With body_max 0, GET and HEAD are answered after their headers. Any other request is answered before
 * its body is read, and its connection then ends.
 */
enum MHD_Result server_on_request(void *data, struct MHD_Connection *at, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *body_length, void **context)
{
	const struct generation *g = data;
	struct server *s = g->server;
	struct server_call *c = call_of(s, at);
	bool is_plain = !strcmp(method, "GET") || !strcmp(method, "HEAD");
	if (!c)
		return MHD_NO;
	c->at = at;
	if (c->answer)
		return send_kept(s, c);
	if (!c->has_headers && (is_plain || s->config.body_max)) {
		c->has_headers = true;
		return MHD_YES;
	}
	if (*body_length && (is_plain || !s->config.body_max))
		return MHD_NO;
	if (*body_length) {
		take_body(s, c, body, *body_length);
		*body_length = 0;
		return MHD_YES;
	}
	return ask_handler(s, c, url, method);
}
