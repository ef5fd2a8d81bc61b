#include "http/http_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/symbols.h"
#include "http/server_inside.h"

/*
 * At the limit of connections, a new connection replaces an old one that has been in its stage for at least this time.
 * STAGE_IDLE: a client whose idle connection was closed sooner would connect again at once.
 */
#define IDLE_LEAST_NS (1 * NSEC_PER_SEC)
/* STAGE_NEW: time for a TLS handshake and the first line of a request */
#define SILENT_LEAST_NS (100 * NSEC_PER_MSEC)
/* STAGE_REQUEST: time for the rest of a request */
#define REQUEST_LEAST_NS (2 * NSEC_PER_SEC)
/* for a connection's read buffer, request line and headers; a request whose line and headers do not fit is refused */
#define MEMORY_BYTES ((size_t)16384)

void server_set_accept_paused(struct server *s, bool is_paused)
{
	if (s->is_accept_paused == is_paused)
		return;
	s->is_accept_paused = is_paused;
	if (s->listen_source)
		loop_watch(s->listen_source, is_paused ? 0 : EPOLLIN);
}

static struct generation *generation_end(struct generation *g);

static void free_if_unused(struct generation *g)
{
	struct generation **link = &g->server->generations;
	if (g == *link || g->count)
		return;
	while (*link != g)
		link = &(*link)->next;
	*link = g->next;
	generation_end(g);
}

/* Runs libmicrohttpd, and sets a timer for work that will be due without an event. */
static void run_mhd(struct generation *g)
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
	free_if_unused(g);
}

static void mhd_ready(void *data, uint32_t events)
{
	run_mhd(data);
}

static int generation_begin(struct server *s, struct error *err);

/* Reads replaced certificate files again, for new connections. */
static void reload_certificate(struct server *s)
{
	uint64_t now_ns = clock_now_ns();
	struct error err = { 0 };
	if (!s->tls.certificate || now_ns - s->certificate_checked_ns < SERVER_CERTIFICATE_CHECK_NS)
		return;
	s->certificate_checked_ns = now_ns;
	if (!tls_is_changed(&s->tls))
		return;
	struct tls before = s->tls;
	s->tls.certificate = s->tls.key = s->tls.client_ca = NULL;
	int r = tls_read(&s->tls, &err);
	if (r >= 0)
		r = generation_begin(s, &err);
	if (r >= 0) {
		log_info("TLS: files were read again: '%s', '%s'%s%s", s->tls.certificate_file,
			 s->tls.key_file, s->tls.client_ca_file ? ", and the clients' CA " : "",
			 s->tls.client_ca_file ? s->tls.client_ca_file : "");
		tls_free(&before);
		free_if_unused(s->generations->next);
		return;
	}
	log_error("TLS: the changed files can't be used: %s; the certificate and key that "
		  "were read before stay in use",
		  err.text);
	tls_free(&s->tls);
	/* Keep the new files' state (`seen`), so that an error in them is logged only once. */
	memcpy(before.seen, s->tls.seen, sizeof(before.seen));
	s->tls = before;
}

static bool may_be_closed(const struct server_call *c, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - c->since_ns;
	switch (c->stage) {
	case STAGE_NEW: return since_ns >= SILENT_LEAST_NS;
	case STAGE_IDLE: return since_ns >= IDLE_LEAST_NS;
	case STAGE_REQUEST: return since_ns >= REQUEST_LEAST_NS;
	default: return false;
	}
}

static unsigned connections_of(const struct server *s, const struct server_peer *peer)
{
	unsigned count = 0;
	for (const struct server_call *c = s->calls; c; c = c->next)
		count += !memcmp(&c->peer, peer, sizeof(*peer));
	return count;
}

/*
 * Of the connections that may be closed, chooses one of the peer with the most connections: the one that has been in its stage
 * for the longest. Returns NULL if no connection may be closed.
 */
static struct server_call *choose_victim(const struct server *s, uint64_t now_ns)
{
	struct server_call *first = NULL;
	unsigned most = 0;
	for (struct server_call *c = s->calls; c; c = c->next) {
		if (!may_be_closed(c, now_ns))
			continue;
		unsigned count = connections_of(s, &c->peer);
		if (count > most || (count == most && c->since_ns < first->since_ns)) {
			most = count;
			first = c;
		}
	}
	return first;
}

/*
 * Shuts down the socket of a connection that may be closed. libmicrohttpd then ends that connection, as if its client had left.
 * Returns whether there is now room for a new connection.
 */
static bool make_room(struct server *s)
{
	struct server_call *first = choose_victim(s, clock_now_ns());
	if (first) {
		struct generation *g = first->generation;
		shutdown(first->fd, SHUT_RDWR);
		run_mhd(g);
	}
	return s->count < s->config.connections_max;
}

/* libmicrohttpd could accept by itself, but without the limits per peer. */
static void accept_connection(void *data, uint32_t events)
{
	struct server *s = data;
	struct sockaddr_storage from = { 0 };
	socklen_t length = sizeof(from);
	reload_certificate(s);
	/* The new connection stays in the kernel's queue until check_connections() finds room. */
	if (s->count >= s->config.connections_max && !make_room(s)) {
		server_set_accept_paused(s, true);
		return;
	}
	int fd = accept4(s->config.listen_fd, (struct sockaddr *)&from, &length,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		/*
		 * accept4() may report a longer address than the buffer holds. add_connection() closes the socket if it fails.
		 */
		length = length < sizeof(from) ? length : sizeof(from);
		s->mhd->add_connection(s->generations->daemon, fd, (struct sockaddr *)&from, length);
		run_mhd(s->generations);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		/* Otherwise epoll would call this function again at once. */
		server_set_accept_paused(s, true);
		loop_arm(s->check_timer, SERVER_CHECK_NS, SERVER_CHECK_NS);
	}
}

static bool is_overdue(const struct server *s, const struct server_call *c, uint64_t now_ns)
{
	uint64_t limit_ns = c->stage == STAGE_IDLE ? s->config.idle_ns : SERVER_DEADLINE_NS;
	return c->stage != STAGE_HANDLER && c->stage != STAGE_STREAM &&
	       now_ns - c->since_ns >= limit_ns;
}

/* Timer: shuts down the sockets of overdue connections, and resumes accepting if there is room. */
static void check_connections(void *data, uint32_t events)
{
	struct server *s = data;
	uint64_t now_ns = clock_now_ns();
	for (const struct server_call *c = s->calls; c; c = c->next)
		if (is_overdue(s, c, now_ns))
			shutdown(c->fd, SHUT_RDWR);
	server_set_accept_paused(s, s->count >= s->config.connections_max &&
					    !choose_victim(s, now_ns));
	if (!s->count)
		loop_disarm(s->check_timer);
	for (struct generation *g = s->generations, *next; g; g = next) {
		next = g->next;
		run_mhd(g);
	}
}

static struct server_text *text_of(const struct server *s, struct MHD_Response *response,
				   const char *type)
{
	if (response) {
		s->mhd->add_response_header(response, "Content-Type", type);
		server_add_headers(s, response);
	}
	return (struct server_text *)(void *)response;
}

struct server_text *server_text_new(struct server *s, char *text, size_t length, const char *type)
{
	struct MHD_Response *response = s->mhd->create_response_from_buffer(length, text,
									    MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(text);
	return text_of(s, response, type);
}

struct server_text *server_text_of(struct server *s, const void *bytes, size_t length,
				   const char *type)
{
	return text_of(s,
		       s->mhd->create_response_from_buffer(length, (void *)(uintptr_t)bytes,
							   MHD_RESPMEM_PERSISTENT),
		       type);
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

static int start_daemon(struct generation *g, struct error *err)
{
	const struct server *s = g->server;
	bool has_tls = s->tls.certificate;
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, s->tls.certificate },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, s->tls.key },
		{ s->tls.client_ca ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0,
		  s->tls.client_ca },
		{ MHD_OPTION_END, 0, NULL },
	};
	g->daemon = s->mhd->start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
			(has_tls ? MHD_USE_TLS : 0U),
		0, NULL, NULL, server_on_request, g, MHD_OPTION_CONNECTION_LIMIT,
		s->config.connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT, MEMORY_BYTES,
		MHD_OPTION_URI_LOG_CALLBACK, server_on_uri, g, MHD_OPTION_NOTIFY_CONNECTION,
		server_on_connection, g, MHD_OPTION_NOTIFY_COMPLETED, server_on_request_end, g,
		MHD_OPTION_ARRAY, has_tls ? tls : &tls[3], MHD_OPTION_END);
	if (g->daemon)
		return 0;
	return has_tls ? error_set(err, EINVAL,
				   "libmicrohttpd does not accept the certificate '%s' with "
				   "the key '%s'%s%s: check that these files are valid and "
				   "belong together",
				   s->tls.certificate_file, s->tls.key_file,
				   s->tls.client_ca_file ? ", or the certificate authorities in "
							 : "",
				   s->tls.client_ca_file ? s->tls.client_ca_file : "")
		       : error_set(
				 err, EIO,
				 "libmicrohttpd can't start an HTTP server: memory or file descriptors may be short");
}

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
		r = loop_add_timer(s->config.loop, mhd_ready, g, &g->soon_timer);
		if (r >= 0)
			r = loop_add(s->config.loop, info->epoll_fd, EPOLLIN, mhd_ready, g,
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

/*
 * Stops the generation's libmicrohttpd, which ends its connections and calls their callbacks, and frees the generation.
 * libmicrohttpd requires that suspended connections are resumed first.
 */
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

static int listen_for_connections(struct server *s, struct error *err)
{
	int r = loop_add_timer(s->config.loop, check_connections, s, &s->check_timer);
	if (r >= 0)
		r = loop_add(s->config.loop, s->config.listen_fd, EPOLLIN, accept_connection, s,
			     &s->listen_source);
	return r < 0 ? error_set_errno(err, -r, "HTTP server") : 0;
}

static int load_mhd(const struct mhd **ret, struct error *err)
{
	static struct mhd mhd;
#define ROW(name) SYMBOL_ROW(struct mhd, MHD_, name)
	static const struct symbol_row rows[] = { MHD_FUNCTIONS(ROW) };
#undef ROW
	*ret = &mhd;
	return symbols_load(MHD_LIBRARY, NULL, rows, sizeof(rows) / sizeof(rows[0]), &mhd,
			    "serving HTTP needs libmicrohttpd", err);
}

int server_start(const struct server_config *config, struct server **ret, struct error *err)
{
	struct server *s = calloc(1, sizeof(*s));
	if (!s)
		return error_set_errno(err, ENOMEM, "HTTP server");
	*s = (struct server){ .config = *config,
			      .tls = { .certificate_file = config->certificate_file,
				       .key_file = config->key_file,
				       .client_ca_file = config->client_ca_file } };
	if (!s->config.connections_max)
		s->config.connections_max = SERVER_MAX_CONNECTIONS;
	if (!s->config.idle_ns)
		s->config.idle_ns = SERVER_DEADLINE_NS;
	int r = config->certificate_file ? tls_read(&s->tls, err) : 0;
	if (r >= 0)
		r = load_mhd(&s->mhd, err);
	if (r >= 0)
		r = listen_for_connections(s, err);
	if (r >= 0)
		r = generation_begin(s, err);
	if (r < 0) {
		/* On failure the caller keeps the socket. */
		s->config.listen_fd = -1;
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
	loop_remove(s->check_timer);
	if (s->config.listen_fd >= 0)
		close(s->config.listen_fd);
	tls_free(&s->tls);
	free(s);
	return NULL;
}
