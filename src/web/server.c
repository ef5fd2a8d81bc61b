#include "web/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "web/mhd.h"
#include "web/tls.h"

#define LOOK_NS (250 * NSEC_PER_MSEC)    /* for those whose time is over */
#define IDLE_LEAST_NS (1 * NSEC_PER_SEC) /* whoever was idle for less comes again at once */
#define MEMORY_BYTES ((size_t)16384)     /* of a connection: request, headers and what is read */
#define BODY_FIRST ((size_t)16384)
#define LINE_TYPE "text/plain; charset=utf-8"

/* What a connection does; each but the handler's turn has an end. */
enum stage { STAGE_NEW, STAGE_REQUEST, STAGE_HANDLER, STAGE_ANSWER, STAGE_IDLE };

/* A connection, which has one request at a time: so it is the call, too. */
struct server_call {
	struct server_call *next;
	struct generation *generation;
	struct MHD_Connection *at; /* of the request */
	int fd;                    /* libmicrohttpd's */
	enum stage stage;
	uint64_t since_ns;
	char *body;
	size_t size, room;
	unsigned refused;            /* status for what came so far; 0: it is fine */
	bool is_begun, is_suspended; /* the request */
	struct MHD_Response *answer; /* that came later */
	unsigned status;
};

/* What serves with one certificate. The first of the server's takes who comes; others end with their last connection. */
struct generation {
	struct generation *next;
	struct server *server;
	struct MHD_Daemon *daemon;
	struct loop_source *source, *soon_timer;
	unsigned count;
	bool has_resumed; /* a call was answered since libmicrohttpd ran */
};

struct server {
	const struct mhd *mhd;
	struct server_terms terms;
	struct generation *generations;
	struct loop_source *listen_source, *look_timer;
	struct server_call *calls;
	unsigned count;
	size_t bodies; /* bytes of all requests */
	bool is_deaf;  /* nobody is let in for now */
	struct tls tls;
	uint64_t renewed_ns; /* the files were looked at */
};

/* ---- connections ---- */

static void set_deaf(struct server *s, bool is_deaf)
{
	if (s->is_deaf == is_deaf)
		return;
	s->is_deaf = is_deaf;
	if (s->listen_source)
		loop_watch(s->listen_source, is_deaf ? 0 : EPOLLIN);
}

static void set_stage(struct server_call *c, enum stage stage)
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

static void connection_began(struct generation *g, struct MHD_Connection *at, void **ret_context)
{
	struct server *s = g->server;
	const union MHD_ConnectionInfo *info = s->mhd->get_connection_info(
		at, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct server_call *c = calloc(1, sizeof(*c));
	if (!c) {
		/* Nobody could see to its end. */
		shutdown(info->connect_fd, SHUT_RDWR);
		return;
	}
	*c = (struct server_call){ .next = s->calls, .generation = g, .fd = info->connect_fd };
	set_stage(c, STAGE_NEW);
	s->calls = c;
	g->count++;
	if (s->count++ == 0)
		loop_arm(s->look_timer, LOOK_NS, LOOK_NS);
	if (s->count >= s->terms.connections_max)
		set_deaf(s, true);
	*ret_context = c;
}

static void forget_request(struct server *s, struct server_call *c)
{
	s->bodies -= c->room;
	free(c->body);
	c->body = NULL;
	c->size = c->room = 0;
	c->refused = 0;
	c->is_begun = c->is_suspended = false;
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
	set_deaf(s, false);
	g->count--;
	if (--s->count == 0)
		loop_disarm(s->look_timer);
}

static void connection_told(void *data, struct MHD_Connection *at, void **context,
			    enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		connection_began(data, at, context);
	else if (*context)
		connection_ended(*context);
}

/* The first line of a request is there: its time begins. */
static void *request_began(void *data, const char *uri, struct MHD_Connection *at)
{
	const struct generation *g = data;
	struct server_call *c = call_of(g->server, at);
	if (c)
		set_stage(c, STAGE_REQUEST);
	return NULL;
}

/* An answer has gone out: the time for the next begins. */
static void request_ended(void *data, struct MHD_Connection *at, void **context,
			  enum MHD_RequestTerminationCode why)
{
	const struct generation *g = data;
	struct server_call *c = call_of(g->server, at);
	if (!c)
		return;
	forget_request(g->server, c);
	set_stage(c, STAGE_IDLE);
}

/* ---- answers ---- */

static struct MHD_Response *make_response(const struct server *s, const struct generation *g,
					  const struct server_answer *answer)
{
	const char *line = answer->own ? answer->own : answer->line;
	/* Copied: a line may be the handler's only until it is asked again. */
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
	/* Who came with the old certificate comes again with the new one. */
	if (g != s->generations)
		s->mhd->add_response_header(response, "Connection", "close");
	return response;
}

static enum MHD_Result send_answer(const struct server *s, struct server_call *c,
				   struct MHD_Connection *at, const struct server_answer *answer)
{
	struct MHD_Response *response = (struct MHD_Response *)(void *)answer->text;
	if (!response)
		response = make_response(s, c->generation, answer);
	if (!response)
		return MHD_NO;
	set_stage(c, STAGE_ANSWER);
	enum MHD_Result r = s->mhd->queue_response(at, answer->status, response);
	if (!answer->text)
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
	if (c->is_suspended) {
		c->is_suspended = false;
		s->mhd->resume_connection(c->at);
		/* It is seen to when libmicrohttpd runs next; no event of its own would bring that about. */
		c->generation->has_resumed = true;
		loop_arm(c->generation->soon_timer, 0, 0);
	}
}

static enum MHD_Result send_kept(const struct server *s, struct server_call *c)
{
	set_stage(c, STAGE_ANSWER);
	return s->mhd->queue_response(c->at, c->status, c->answer);
}

/* ---- requests ---- */

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
		.authorization = s->mhd->lookup_connection_value(c->at, MHD_HEADER_KIND,
								 "Authorization"),
		.body = c->body,
		.body_size = c->size,
		.call = c,
	};
	set_stage(c, STAGE_HANDLER);
	s->terms.handler(s->terms.data, &request, &answer);
	if (!answer.is_later)
		return send_answer(s, c, c->at, &answer);
	if (c->answer)
		return send_kept(s, c);
	c->is_suspended = true;
	s->mhd->suspend_connection(c->at);
	return MHD_YES;
}

/* What is refused is read all the same, so that its sender gets to read why. */
static void take_body(struct server *s, struct server_call *c, const char *part, size_t size)
{
	if (!c->refused && size > s->terms.body_max - c->size)
		c->refused = 413;
	if (!c->refused && c->size + size + 1 > c->room) {
		size_t room = c->room ? c->room : BODY_FIRST;
		while (room < c->size + size + 1)
			room *= 2;
		char *body = s->bodies - c->room + room > SERVER_BODIES * s->terms.body_max
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
 * Called when the headers are there, for each part of a body, and once more when all is. Where bodies are not taken, what has
 * no business with one is answered then; another is answered at once, and its body left unread, so the connection
 * ends with it. Called again when a later answer is there.
 */
static enum MHD_Result request_came(void *data, struct MHD_Connection *at, const char *url,
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
	if (!c->is_begun && (is_plain || s->terms.body_max)) {
		c->is_begun = true;
		return MHD_YES;
	}
	if (*body_length && (is_plain || !s->terms.body_max))
		return MHD_NO;
	if (*body_length) {
		take_body(s, c, body, *body_length);
		*body_length = 0;
		return MHD_YES;
	}
	return ask_handler(s, c, url, method);
}

/* ---- the loop ---- */

static struct generation *generation_end(struct generation *g);

static void drop_if_done(struct generation *g)
{
	struct generation **link = &g->server->generations;
	if (g == *link || g->count)
		return;
	while (*link != g)
		link = &(*link)->next;
	*link = g->next;
	generation_end(g);
}

/* Lets libmicrohttpd do what there is to do; some of it may be due without another event. */
static void turn(struct generation *g)
{
	const struct mhd *mhd = g->server->mhd;
	MHD_UNSIGNED_LONG_LONG ms;
	do {
		g->has_resumed = false;
		mhd->run(g->daemon);
	} while (g->has_resumed);
	if (mhd->get_timeout(g->daemon, &ms) == MHD_YES)
		loop_arm(g->soon_timer, ms * NSEC_PER_MSEC, 0);
	else
		loop_disarm(g->soon_timer);
	drop_if_done(g);
}

static void mhd_ready(void *data, uint32_t events)
{
	turn(data);
}

static int generation_begin(struct server *s, struct error *err);

/* Files that were replaced: who comes from now on gets the new ones. */
static void renew(struct server *s)
{
	uint64_t now_ns = clock_now_ns();
	struct error err = { 0 };
	if (!s->tls.certificate || now_ns - s->renewed_ns < SERVER_RENEW_NS)
		return;
	s->renewed_ns = now_ns;
	if (!tls_is_changed(&s->tls))
		return;
	struct tls before = s->tls;
	s->tls.certificate = s->tls.key = NULL;
	int r = tls_read(&s->tls, &err);
	if (r >= 0)
		r = generation_begin(s, &err);
	if (r >= 0) {
		log_info("TLS: '%s' and '%s' are read anew", s->tls.certificate_file,
			 s->tls.key_file);
		tls_free(&before);
		drop_if_done(s->generations->next);
		return;
	}
	log_error("TLS: %s: going on with what was read before", err.text);
	tls_free(&s->tls);
	memcpy(before.seen, s->tls.seen, sizeof(before.seen)); /* said once */
	s->tls = before;
}

/* We accept, not libmicrohttpd: so it is known who is too many before it is let in. */
static void somebody_comes(void *data, uint32_t events)
{
	struct server *s = data;
	struct sockaddr_storage from = { 0 };
	socklen_t length = sizeof(from);
	renew(s);
	int fd = accept4(s->terms.listen_fd, (struct sockaddr *)&from, &length,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		/* The name of a unix socket may be longer than is told. It closes the socket on failure. */
		length = length < sizeof(from) ? length : sizeof(from);
		s->mhd->add_connection(s->generations->daemon, fd, (struct sockaddr *)&from, length);
		turn(s->generations);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		/* It would be called again at once. */
		set_deaf(s, true);
		loop_arm(s->look_timer, LOOK_NS, LOOK_NS);
	}
}

static bool is_overdue(const struct server *s, const struct server_call *c, uint64_t now_ns)
{
	uint64_t limit_ns = c->stage == STAGE_IDLE ? s->terms.idle_ns : SERVER_DEADLINE_NS;
	return c->stage != STAGE_HANDLER && now_ns - c->since_ns >= limit_ns;
}

/* Others wait to be let in, and nobody may keep its place by doing nothing. */
static void make_room(const struct server *s, uint64_t now_ns)
{
	const struct server_call *longest = NULL;
	for (const struct server_call *c = s->calls; c; c = c->next)
		if (c->stage == STAGE_IDLE && now_ns - c->since_ns >= IDLE_LEAST_NS &&
		    (!longest || c->since_ns < longest->since_ns))
			longest = c;
	if (longest)
		shutdown(longest->fd, SHUT_RDWR);
}

/* Seen from inside as if the client had closed it. */
static void look(void *data, uint32_t events)
{
	struct server *s = data;
	uint64_t now_ns = clock_now_ns();
	for (const struct server_call *c = s->calls; c; c = c->next)
		if (is_overdue(s, c, now_ns))
			shutdown(c->fd, SHUT_RDWR);
	if (s->count >= s->terms.connections_max)
		make_room(s, now_ns);
	set_deaf(s, s->count >= s->terms.connections_max);
	if (!s->count)
		loop_disarm(s->look_timer);
	for (struct generation *g = s->generations, *next; g; g = next) {
		next = g->next;
		turn(g);
	}
}

/* ---- texts ---- */

struct server_text *server_text_new(struct server *s, char *text, size_t length, const char *type)
{
	struct MHD_Response *response = s->mhd->create_response_from_buffer(length, text,
									    MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(text);
		return NULL;
	}
	s->mhd->add_response_header(response, "Content-Type", type);
	return (struct server_text *)(void *)response;
}

struct server_text *server_text_free(struct server *s, struct server_text *text)
{
	if (text)
		s->mhd->destroy_response((struct MHD_Response *)(void *)text);
	return NULL;
}

unsigned server_connections(const struct server *s)
{
	return s->count;
}

/* ---- start and end ---- */

static int start_daemon(struct generation *g, struct error *err)
{
	const struct server *s = g->server;
	bool has_tls = s->tls.certificate;
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, s->tls.certificate },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, s->tls.key },
		{ MHD_OPTION_END, 0, NULL },
	};
	g->daemon = s->mhd->start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
			(has_tls ? MHD_USE_TLS : 0U),
		0, NULL, NULL, request_came, g, MHD_OPTION_CONNECTION_LIMIT,
		s->terms.connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT, MEMORY_BYTES,
		MHD_OPTION_URI_LOG_CALLBACK, request_began, g, MHD_OPTION_NOTIFY_CONNECTION,
		connection_told, g, MHD_OPTION_NOTIFY_COMPLETED, request_ended, g, MHD_OPTION_ARRAY,
		has_tls ? tls : &tls[2], MHD_OPTION_END);
	if (g->daemon)
		return 0;
	return has_tls ? error_set(err, EINVAL,
				   "'%s' and '%s': libmicrohttpd takes them for no certificate and "
				   "its key",
				   s->tls.certificate_file, s->tls.key_file)
		       : error_set(err, EIO, "libmicrohttpd does not start");
}

/* The new one is the server's first. */
static int generation_begin(struct server *s, struct error *err)
{
	struct generation *g = calloc(1, sizeof(*g));
	if (!g)
		return error_set_errno(err, ENOMEM, "HTTP server");
	g->server = s;
	int r = start_daemon(g, err);
	if (r >= 0) {
		const union MHD_DaemonInfo *info = s->mhd->get_daemon_info(g->daemon,
									   MHD_DAEMON_INFO_EPOLL_FD);
		r = loop_add_timer(s->terms.loop, mhd_ready, g, &g->soon_timer);
		if (r >= 0)
			r = loop_add(s->terms.loop, info->epoll_fd, EPOLLIN, mhd_ready, g,
				     &g->source);
		if (r < 0)
			error_set_errno(err, -r, "HTTP server");
	}
	if (r < 0) {
		generation_end(g);
		return r;
	}
	g->next = s->generations;
	s->generations = g;
	return 0;
}

/* Tells of each connection's end. Who waits for a handler is let go before, as libmicrohttpd demands. */
static struct generation *generation_end(struct generation *g)
{
	const struct mhd *mhd = g->server->mhd;
	g->source = loop_remove(g->source);
	for (struct server_call *c = g->server->calls; c; c = c->next)
		if (c->generation == g && c->is_suspended)
			mhd->resume_connection(c->at);
	if (g->daemon)
		mhd->stop_daemon(g->daemon);
	loop_remove(g->soon_timer);
	free(g);
	return NULL;
}

static int watch(struct server *s, struct error *err)
{
	int r = loop_add_timer(s->terms.loop, look, s, &s->look_timer);
	if (r >= 0)
		r = loop_add(s->terms.loop, s->terms.listen_fd, EPOLLIN, somebody_comes, s,
			     &s->listen_source);
	return r < 0 ? error_set_errno(err, -r, "HTTP server") : 0;
}

int server_start(const struct server_terms *terms, struct server **ret, struct error *err)
{
	struct server *s = calloc(1, sizeof(*s));
	if (!s)
		return error_set_errno(err, ENOMEM, "HTTP server");
	*s = (struct server){ .terms = *terms,
			      .tls = { .certificate_file = terms->certificate_file,
				       .key_file = terms->key_file } };
	if (!s->terms.connections_max)
		s->terms.connections_max = SERVER_MAX_CONNECTIONS;
	if (!s->terms.idle_ns)
		s->terms.idle_ns = SERVER_DEADLINE_NS;
	int r = terms->certificate_file ? tls_read(&s->tls, err) : 0;
	if (r >= 0)
		r = mhd_load(&s->mhd, err);
	if (r >= 0)
		r = watch(s, err);
	if (r >= 0)
		r = generation_begin(s, err);
	if (r < 0) {
		s->terms.listen_fd = -1; /* still the caller's */
		server_stop(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct server *server_stop(struct server *s)
{
	if (!s)
		return NULL;
	s->listen_source = loop_remove(s->listen_source);
	while (s->generations) {
		struct generation *g = s->generations;
		s->generations = g->next;
		generation_end(g);
	}
	loop_remove(s->look_timer);
	if (s->terms.listen_fd >= 0)
		close(s->terms.listen_fd);
	tls_free(&s->tls);
	free(s);
	return NULL;
}
