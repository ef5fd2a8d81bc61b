#include "node/metrics/server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/metrics/mhd.h"
#include "node/metrics/tls.h"

#define LOOK_NS (250 * NSEC_PER_MSEC) /* for those whose time is over */
#define MEMORY_BYTES ((size_t)16384)  /* of a connection: request, headers and what is read */
#define LINE_TYPE "text/plain; charset=utf-8"

struct connection {
	struct connection *next;
	struct server *server;
	int fd; /* libmicrohttpd's */
	uint64_t since_ns;
};

struct server {
	const struct mhd *mhd;
	struct MHD_Daemon *daemon;
	struct loop *loop;
	int listen_fd;
	server_handler handler;
	void *data;
	struct loop_source *listen_source, *mhd_source, *soon_timer, *look_timer;
	struct connection *connections;
	unsigned count;
	bool is_deaf; /* nobody is let in for now */
	struct tls tls;
	uint64_t renewed_ns; /* the files were looked at */
};

/* ---- connections ---- */

static void set_deaf(struct server *s, bool is_deaf)
{
	if (s->is_deaf == is_deaf)
		return;
	s->is_deaf = is_deaf;
	loop_watch(s->listen_source, is_deaf ? 0 : EPOLLIN);
}

static void connection_began(struct server *s, struct MHD_Connection *at, void **ret_context)
{
	const union MHD_ConnectionInfo *info = s->mhd->get_connection_info(
		at, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct connection *c = calloc(1, sizeof(*c));
	if (!c) {
		/* Nobody could see to its end. */
		shutdown(info->connect_fd, SHUT_RDWR);
		return;
	}
	*c = (struct connection){ .next = s->connections,
				  .server = s,
				  .fd = info->connect_fd,
				  .since_ns = clock_now_ns() };
	s->connections = c;
	if (s->count++ == 0)
		loop_arm(s->look_timer, LOOK_NS, LOOK_NS);
	if (s->count >= SERVER_MAX_CONNECTIONS)
		set_deaf(s, true);
	*ret_context = c;
}

static void connection_ended(struct connection *c)
{
	struct server *s = c->server;
	struct connection **link = &s->connections;
	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	free(c);
	set_deaf(s, false);
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

/* An answer has gone out: the time for the next begins. */
static void request_ended(void *data, struct MHD_Connection *at, void **context,
			  enum MHD_RequestTerminationCode why)
{
	const struct server *s = data;
	const union MHD_ConnectionInfo *info = s->mhd->get_connection_info(
		at, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *c = info->socket_context;
	if (c)
		c->since_ns = clock_now_ns();
}

/* ---- requests ---- */

static enum MHD_Result send_answer(const struct server *s, struct MHD_Connection *at,
				   const struct server_answer *answer)
{
	struct MHD_Response *response = (struct MHD_Response *)(void *)answer->text;
	if (!response) {
		/* Copied: a line may be the handler's only until it is asked again. */
		response = s->mhd->create_response_from_buffer(strlen(answer->line),
							       (void *)(uintptr_t)answer->line,
							       MHD_RESPMEM_MUST_COPY);
		if (!response)
			return MHD_NO;
		s->mhd->add_response_header(response, "Content-Type", LINE_TYPE);
		if (answer->header)
			s->mhd->add_response_header(response, answer->header, answer->header_value);
	}
	enum MHD_Result r = s->mhd->queue_response(at, answer->status, response);
	if (!answer->text)
		s->mhd->destroy_response(response);
	return r;
}

/*
 * Called when the headers are there, and once more when all is. What has no business with a body is
 * answered then; another is answered at once, and its body left unread, so the connection ends with it.
 */
static enum MHD_Result request_came(void *data, struct MHD_Connection *at, const char *url,
				    const char *method, const char *version, const char *body,
				    size_t *body_length, void **context)
{
	static char has_headers;
	const struct server *s = data;
	bool is_plain = !strcmp(method, "GET") || !strcmp(method, "HEAD");
	struct server_request request = { .method = method, .path = url };
	struct server_answer answer = { 0 };
	if (is_plain && !*context) {
		*context = &has_headers;
		return MHD_YES;
	}
	if (*body_length)
		return MHD_NO;
	request.authorization = s->mhd->lookup_connection_value(at, MHD_HEADER_KIND,
								"Authorization");
	s->handler(s->data, &request, &answer);
	return send_answer(s, at, &answer);
}

/* ---- the loop ---- */

/* Lets libmicrohttpd do what there is to do; some of it may be due without another event. */
static void turn(struct server *s)
{
	MHD_UNSIGNED_LONG_LONG ms;
	if (!s->daemon)
		return;
	s->mhd->run(s->daemon);
	if (s->mhd->get_timeout(s->daemon, &ms) == MHD_YES)
		loop_arm(s->soon_timer, ms * NSEC_PER_MSEC, 0);
	else
		loop_disarm(s->soon_timer);
}

static void mhd_ready(void *data, uint32_t events)
{
	turn(data);
}

static int begin(struct server *s, struct error *err);
static void end(struct server *s);

/* Files that were replaced. Who is connected is let go: it asks again. */
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
	if (r >= 0) {
		end(s);
		r = begin(s, &err);
		if (r >= 0)
			log_info("TLS: '%s' and '%s' are read anew", s->tls.certificate_file,
				 s->tls.key_file);
	}
	if (r >= 0) {
		tls_free(&before);
		return;
	}
	log_error("TLS: %s: going on with what was read before", err.text);
	tls_free(&s->tls);
	memcpy(before.seen, s->tls.seen, sizeof(before.seen)); /* said once */
	s->tls = before;
	if (!s->daemon && begin(s, &err) < 0)
		log_error("TLS: %s", err.text);
}

/* We accept, not libmicrohttpd: so it is known who is too many before it is let in. */
static void somebody_comes(void *data, uint32_t events)
{
	struct server *s = data;
	struct sockaddr_storage from = { 0 };
	socklen_t length = sizeof(from);
	renew(s);
	int fd = accept4(s->listen_fd, (struct sockaddr *)&from, &length,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0 && !s->daemon) {
		close(fd);
	} else if (fd >= 0) {
		/* The name of a unix socket may be longer than is told. It closes the socket on failure. */
		length = length < sizeof(from) ? length : sizeof(from);
		s->mhd->add_connection(s->daemon, fd, (struct sockaddr *)&from, length);
		turn(s);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		/* It would be called again at once. */
		set_deaf(s, true);
		loop_arm(s->look_timer, LOOK_NS, LOOK_NS);
	}
}

/* Seen from inside as if the client had closed it. */
static void look(void *data, uint32_t events)
{
	struct server *s = data;
	uint64_t now_ns = clock_now_ns();
	for (const struct connection *c = s->connections; c; c = c->next)
		if (now_ns - c->since_ns >= SERVER_DEADLINE_NS)
			shutdown(c->fd, SHUT_RDWR);
	set_deaf(s, s->count >= SERVER_MAX_CONNECTIONS);
	if (!s->count)
		loop_disarm(s->look_timer);
	turn(s);
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

static int begin(struct server *s, struct error *err)
{
	bool has_tls = s->tls.certificate;
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, s->tls.certificate },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, s->tls.key },
		{ MHD_OPTION_END, 0, NULL },
	};
	s->daemon = s->mhd->start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | (has_tls ? MHD_USE_TLS : 0U), 0, NULL,
		NULL, request_came, s, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)SERVER_MAX_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, MEMORY_BYTES,
		MHD_OPTION_NOTIFY_CONNECTION, connection_told, s, MHD_OPTION_NOTIFY_COMPLETED,
		request_ended, s, MHD_OPTION_ARRAY, has_tls ? tls : &tls[2], MHD_OPTION_END);
	if (!s->daemon)
		return has_tls ? error_set(err, EINVAL,
					   "'%s' and '%s': libmicrohttpd takes them for no "
					   "certificate and its key",
					   s->tls.certificate_file, s->tls.key_file)
			       : error_set(err, EIO, "libmicrohttpd does not start");
	const union MHD_DaemonInfo *info = s->mhd->get_daemon_info(s->daemon,
								   MHD_DAEMON_INFO_EPOLL_FD);
	int r = loop_add(s->loop, info->epoll_fd, EPOLLIN, mhd_ready, s, &s->mhd_source);
	if (r < 0) {
		end(s);
		return error_set_errno(err, -r, "HTTP server");
	}
	return 0;
}

/* Tells of each connection's end, which may still set a timer. */
static void end(struct server *s)
{
	s->mhd_source = loop_remove(s->mhd_source);
	if (s->daemon)
		s->mhd->stop_daemon(s->daemon);
	s->daemon = NULL;
}

static int watch(struct server *s, struct error *err)
{
	int r = loop_add_timer(s->loop, mhd_ready, s, &s->soon_timer);
	if (r >= 0)
		r = loop_add_timer(s->loop, look, s, &s->look_timer);
	if (r >= 0)
		r = loop_add(s->loop, s->listen_fd, EPOLLIN, somebody_comes, s, &s->listen_source);
	return r < 0 ? error_set_errno(err, -r, "HTTP server") : 0;
}

int server_start(struct loop *loop, int listen_fd, const char *certificate_file,
		 const char *key_file, server_handler handler, void *data, struct server **ret,
		 struct error *err)
{
	struct server *s = calloc(1, sizeof(*s));
	if (!s)
		return error_set_errno(err, ENOMEM, "HTTP server");
	*s = (struct server){ .loop = loop,
			      .listen_fd = listen_fd,
			      .handler = handler,
			      .data = data,
			      .tls = { .certificate_file = certificate_file, .key_file = key_file } };
	int r = certificate_file ? tls_read(&s->tls, err) : 0;
	if (r >= 0)
		r = mhd_load(&s->mhd, err);
	if (r >= 0)
		r = watch(s, err);
	if (r >= 0)
		r = begin(s, err);
	if (r < 0) {
		s->listen_fd = -1; /* still the caller's */
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
	end(s);
	loop_remove(s->soon_timer);
	loop_remove(s->look_timer);
	if (s->listen_fd >= 0)
		close(s->listen_fd);
	tls_free(&s->tls);
	free(s);
	return NULL;
}
