#include "node/page/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "node/page/access.h"
#include "node/page/change.h"
#include "node/page/events.h"
#include "node/page/files.h"
#include "node/page/state.h"
#include "node/session.h"
#include "web/server.h"
#include "web/token.h"

#define BODY_MAX 8192
#define JSON_TYPE "application/json"
#define STATE_GOOD_NS (100 * NSEC_PER_MSEC) /* whoever asks how often */

/*
 * The page needs nothing from elsewhere, and runs nothing that is not its own: no script or style in its text, no frame
 * around it.
 */
static const struct server_header headers[] = {
	{ "Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; "
				     "frame-ancestors 'none'; object-src 'none'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "X-Frame-Options", "DENY" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cache-Control", "no-store" },
};

struct page {
	struct node *node;
	struct address address;
	struct server *server;
	struct events *events;
	struct server_text *state; /* of /api/state; NULL: none */
	uint64_t state_ns;
	bool token_failed; /* said so */
};

int page_check(const struct config *config, struct error *err)
{
	return access_check(config, err);
}

/* ---- what is answered ---- */

static void answer_no_memory(struct server_answer *ret)
{
	*ret = (struct server_answer){ .status = 500, .line = "out of memory\n" };
}

static void answer_json(char *text, struct server_answer *ret)
{
	if (text)
		*ret = (struct server_answer){ .status = 200, .own = text, .type = JSON_TYPE };
	else
		answer_no_memory(ret);
}

static struct access_terms terms_of(const struct page *p)
{
	const struct config *config = &p->node->config;
	return (struct access_terms){ .token_file = config->web_token_file,
				      .change_token_file = config->web_change_token_file,
				      .is_unix = p->address.storage.ss_family == AF_UNIX };
}

static void answer_rights(struct page *p, const struct server_request *request,
			  struct server_answer *ret)
{
	const struct access_terms terms = terms_of(p);
	const struct access_request asked = { request->authorization, request->host, NULL };
	struct json_text t = { 0 };
	struct error err = { 0 };
	json_text_open(&t, NULL, '{');
	json_text_bool(&t, "read", access_may_read(&terms, &asked, &err) == ACCESS_GRANTED);
	json_text_bool(&t, "change", access_may_change(&terms, &asked, &err) == ACCESS_GRANTED);
	json_text_close(&t, '}');
	answer_json(json_text_end(&t), ret);
}

static void answer_state(struct page *p, const struct server_request *request,
			 struct server_answer *ret)
{
	struct json_text t = { 0 };
	struct page_told told = { 0 };
	if (!p->state || clock_now_ns() - p->state_ns >= STATE_GOOD_NS) {
		p->state = server_text_free(p->server, p->state);
		page_state_write(p->node, &told, &t);
		size_t length = t.used;
		char *text = json_text_end(&t);
		if (text)
			p->state = server_text_new(p->server, text, length, JSON_TYPE);
		p->state_ns = clock_now_ns();
	}
	if (p->state)
		*ret = (struct server_answer){ .status = 200, .text = p->state };
	else
		answer_no_memory(ret);
}

static void answer_history(struct page *p, const struct server_request *request,
			   struct server_answer *ret)
{
	const struct history *history = events_history(p->events);
	struct json_text t = { 0 };
	json_text_open(&t, NULL, '{');
	json_text_whole(&t, "version", 1);
	if (history)
		history_write(history, clock_now_ns(), &t);
	else
		json_text_raw(&t, NULL, "\"every_s\":5,\"ages_s\":[],\"tenants\":[]");
	json_text_close(&t, '}');
	answer_json(json_text_end(&t), ret);
}

static void answer_topology(struct page *p, const struct server_request *request,
			    struct server_answer *ret)
{
	struct session session = { .node = p->node };
	cleanup_json json_t *reply = json_object();
	struct error err = { 0 };
	if (!reply || request_topology(&session, NULL, reply, &err) < 0)
		answer_no_memory(ret);
	else
		answer_json(json_dumps(reply, JSON_COMPACT), ret);
}

static void answer_events(struct page *p, const struct server_request *request,
			  struct server_answer *ret)
{
	if (!strcmp(request->method, "HEAD"))
		*ret = (struct server_answer){ .status = 200,
					       .line = "",
					       .type = "text/event-stream" };
	else if (events_add(p->events, request->call) < 0)
		*ret = (struct server_answer){ .status = 503,
					       .line = "too many look at the page; close one\n" };
	else
		*ret = (struct server_answer){ .status = 200,
					       .is_stream = true,
					       .type = "text/event-stream" };
}

static const struct {
	const char *path;
	void (*answer)(struct page *p, const struct server_request *request,
		       struct server_answer *ret);
	bool is_open;
} paths[] = {
	{ "/api/rights", answer_rights, true },    { "/api/state", answer_state, false },
	{ "/api/history", answer_history, false }, { "/api/topology", answer_topology, false },
	{ "/events", answer_events, false },
};

/* ---- who may ask ---- */

/* False: *ret says why not. */
static bool is_granted(struct page *p, enum access_verdict verdict, const struct error *err,
		       struct server_answer *ret)
{
	static const struct server_answer refusals[] = {
		[ACCESS_NEEDS_TOKEN] = { .status = 401,
					 .line = "a token is needed\n",
					 .header = "WWW-Authenticate",
					 .header_value = "Bearer realm=\"allot\"" },
		[ACCESS_WRONG_HOST] = { .status = 403, .line = "must be asked for by an address, or as localhost\n" },
		[ACCESS_WRONG_ORIGIN] = { .status = 403, .line = "another site asks\n" },
		[ACCESS_NO_CHANGES] = { .status = 403,
					.line = "nothing can be changed here: the setting "
						"web_change_token_file is none\n" },
		[ACCESS_UNREADABLE] = { .status = 503, .line = "the token can't be checked\n" },
	};
	if (verdict == ACCESS_UNREADABLE && !p->token_failed)
		log_warning("page: %s", err->text);
	p->token_failed = verdict == ACCESS_UNREADABLE;
	if (verdict == ACCESS_GRANTED)
		return true;
	*ret = refusals[verdict];
	return false;
}

static void answer_change(struct page *p, const struct server_request *request,
			  struct server_answer *ret)
{
	const struct access_terms terms = terms_of(p);
	const struct access_request asked = { request->authorization, request->host,
					      request->origin };
	struct error err = { 0 };
	if (!is_granted(p, access_may_change(&terms, &asked, &err), &err, ret))
		return;
	char *reply = change_make(p->node, request->path, request->body, request->body_size,
				  &ret->status);
	if (reply) {
		ret->own = reply;
		ret->type = JSON_TYPE;
	} else {
		answer_no_memory(ret);
	}
}

static void answer_method(const char *allow, struct server_answer *ret)
{
	*ret = (struct server_answer){ .status = 405,
				       .line = "not by this method\n",
				       .header = "Allow",
				       .header_value = allow };
}

static bool answer_file(struct page *p, const char *path, struct server_answer *ret)
{
	for (size_t i = 0; i < page_file_count; i++) {
		const struct page_file *f = &page_files[i];
		if (strcmp(f->path, path) != 0)
			continue;
		/* Given back when it has been sent: its bytes are the program's. */
		struct server_text *text = server_text_of(p->server, f->bytes, f->size, f->type);
		if (text)
			*ret = (struct server_answer){ .status = 200, .text = text, .is_last = true };
		else
			answer_no_memory(ret);
		return true;
	}
	return false;
}

static void handle(void *data, const struct server_request *request, struct server_answer *ret)
{
	struct page *p = data;
	bool is_get = !strcmp(request->method, "GET") || !strcmp(request->method, "HEAD");
	if (change_is_path(request->path)) {
		if (!strcmp(request->method, "POST"))
			answer_change(p, request, ret);
		else
			answer_method("POST", ret);
		return;
	}
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const struct access_terms terms = terms_of(p);
		const struct access_request asked = { request->authorization, request->host, NULL };
		struct error err = { 0 };
		if (strcmp(paths[i].path, request->path) != 0)
			continue;
		if (!is_get)
			answer_method("GET, HEAD", ret);
		else if (paths[i].is_open ||
			 is_granted(p, access_may_read(&terms, &asked, &err), &err, ret))
			paths[i].answer(p, request, ret);
		return;
	}
	if (!is_get && *request->path)
		answer_method("GET, HEAD", ret);
	else if (!answer_file(p, request->path, ret))
		*ret = (struct server_answer){ .status = 404, .line = "there is /\n" };
}

static void stream_ended(void *data, struct server_call *call)
{
	struct page *p = data;
	events_remove(p->events, call);
}

/* ---- start and end ---- */

static int check_token(const char *key, const char *file, struct error *err)
{
	char token[TOKEN_MAX + 1];
	if (!strcmp(file, "none"))
		return 0;
	int r = token_read(file, token, err);
	return r < 0 ? error_add(err, r, "%s", key) : 0;
}

/* Who may see it, for the log. */
static void log_start(const struct page *p, const char *text, bool has_tls)
{
	const struct config *config = &p->node->config;
	bool has_token = strcmp(config->web_token_file, "none") != 0;
	bool is_local = address_is_local(&p->address);
	bool is_unix = p->address.storage.ss_family == AF_UNIX;
	log_info("the page is served at %s%s%s, to %s; %s",
		 is_unix   ? ""
		 : has_tls ? "https://"
			   : "http://",
		 text, is_unix ? "" : "/",
		 has_token ? is_local ? "those on this machine who name the token"
				      : "those, also on other machines, who name the token"
			   : "everyone on this machine",
		 strcmp(config->web_change_token_file, "none")
			 ? "with the other token it changes quotas"
			 : "it changes nothing");
	if (!is_local && !has_tls)
		log_warning("web_listen: without web_tls_certificate the token can be read on its "
			    "way from other machines");
}

static int serve(struct page *p, struct error *err)
{
	char text[ADDRESS_TEXT_MAX];
	const struct config *config = &p->node->config;
	bool has_tls = strcmp(config->web_tls_certificate, "none") != 0;
	int fd;
	int r = address_listen(&p->address, !p->node->is_private, &fd, err);
	if (r < 0)
		return error_add(err, r, "web_listen");
	address_print(fd, text);
	const struct server_terms terms = {
		.loop = p->node->loop,
		.listen_fd = fd,
		.certificate_file = has_tls ? config->web_tls_certificate : NULL,
		.key_file = config->web_tls_key,
		.body_max = BODY_MAX,
		.handler = handle,
		.stream_ended = stream_ended,
		.data = p,
		.headers = headers,
		.header_count = sizeof(headers) / sizeof(headers[0]),
	};
	r = server_start(&terms, &p->server, err);
	if (r < 0) {
		close(fd);
		address_forget(&p->address);
		return error_add(err, r, "web_listen");
	}
	log_start(p, text, has_tls);
	return 0;
}

int page_start(struct node *node, struct page **ret, struct error *err)
{
	struct address address;
	const struct config *config = &node->config;
	int r = page_check(config, err);
	if (r >= 0)
		r = address_parse(config->web_listen, &address, err);
	if (r < 0 || !address.length)
		return r;
	r = access_check_private(config, &address, node->is_private, err);
	if (r >= 0)
		r = check_token("web_token_file", config->web_token_file, err);
	if (r >= 0)
		r = check_token("web_change_token_file", config->web_change_token_file, err);
	if (r < 0)
		return r;
	struct page *p = calloc(1, sizeof(*p));
	if (!p)
		return error_set_errno(err, ENOMEM, "page");
	*p = (struct page){ .node = node, .address = address };
	r = events_new(node, &p->events, err);
	if (r >= 0)
		r = serve(p, err);
	if (r < 0) {
		events_free(p->events);
		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct page *page_stop(struct page *p)
{
	if (!p)
		return NULL;
	server_text_free(p->server, p->state);
	server_stop(p->server);
	events_free(p->events);
	address_forget(&p->address);
	free(p);
	return NULL;
}
