#include "http/dashboard/site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "http/bearer_token.h"

/* The page loads and runs only its own files, no inline script or style, and no page may frame it. */
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

struct site {
	struct site_config config;
	struct address address;
	struct server *server;
	/* a token's file could not be read for the last request, and this was logged */
	bool token_failed;
};

static bool is_none(const char *file)
{
	return !file || !strcmp(file, "none");
}

static bool is_unix(const struct site *site)
{
	return site->address.storage.ss_family == AF_UNIX;
}

struct server *site_server(const struct site *site)
{
	return site->server;
}

static struct access_terms terms_of(const struct site *site)
{
	const struct access_settings *settings = &site->config.settings;
	return (struct access_terms){ .token_file = settings->web_token_file,
				      .change_token_file = settings->web_change_token_file,
				      .is_unix = is_unix(site) };
}

static struct access_request request_of(const struct server_request *request)
{
	return (struct access_request){ request->authorization, request->host, request->origin };
}

/* If the result is false, *ret is the answer that refuses the request. */
static bool is_granted(struct site *site, enum access_verdict verdict, const struct error *err,
		       struct server_answer *ret)
{
	static const struct server_answer refusals[] = {
		[ACCESS_NEEDS_TOKEN] = { .status = 401,
					 .line = "a token is needed: send it as Authorization: Bearer TOKEN; to read, the one "
						 "in the file of setting web_token_file, to change something, the one in that "
						 "of web_change_token_file\n",
					 .header = "WWW-Authenticate",
					 .header_value = "Bearer realm=\"allot\"" },
		[ACCESS_WRONG_HOST] = { .status = 403,
					.line = "refused: without a token, open this page by an IP address or as "
						"localhost, not by a host name\n" },
		[ACCESS_WRONG_ORIGIN] = { .status = 403,
					  .line = "refused: a page of another site (header Origin) sent the request\n" },
		[ACCESS_NO_CHANGES] = { .status = 403,
					.line = "nothing can be changed here: the setting "
						"web_change_token_file is none\n" },
		[ACCESS_UNREADABLE] = { .status = 503,
					.line = "the token can't be checked, because its file can't be read: see the log\n" },
	};
	if (verdict == ACCESS_UNREADABLE && !site->token_failed)
		log_warning("page: the token can't be checked: %s; every request is refused",
			    err->text);
	site->token_failed = verdict == ACCESS_UNREADABLE;
	if (verdict == ACCESS_GRANTED)
		return true;
	*ret = refusals[verdict];
	return false;
}

static bool may(struct site *site, enum site_right right, const struct server_request *request,
		struct server_answer *ret)
{
	const struct access_terms terms = terms_of(site);
	const struct access_request asked = request_of(request);
	struct error err = { 0 };
	enum access_verdict verdict = right == SITE_READS ? access_may_read(&terms, &asked, &err)
							  : access_may_change(&terms, &asked, &err);
	return is_granted(site, verdict, &err, ret);
}

void site_answer_no_memory(struct server_answer *ret)
{
	*ret = (struct server_answer){ .status = 500, .line = "out of memory\n" };
}

void site_answer_own(char *text, struct server_answer *ret)
{
	if (text)
		*ret = (struct server_answer){ .status = 200, .own = text, .type = SITE_JSON_TYPE };
	else
		site_answer_no_memory(ret);
}

void site_answer_text(struct json_text *t, struct server_answer *ret)
{
	site_answer_own(json_text_end(t), ret);
}

bool site_begins_stream(const struct server_request *request, struct server_answer *ret)
{
	*ret = (struct server_answer){ .status = 200, .line = "", .type = SITE_EVENTS_TYPE };
	return strcmp(request->method, "HEAD") != 0;
}

void site_answer_stream(int added, struct server_answer *ret)
{
	if (added < 0)
		*ret = (struct server_answer){
			.status = 503,
			.line = "too many browsers show this page at the same time: close one\n"
		};
	else
		*ret = (struct server_answer){ .status = 200,
					       .is_stream = true,
					       .type = SITE_EVENTS_TYPE };
}

/* For /api/rights: what the request's token allows. */
static void answer_rights(struct site *site, const struct server_request *request,
			  struct server_answer *ret)
{
	const struct access_terms terms = terms_of(site);
	const struct access_request asked = { request->authorization, request->host, NULL };
	struct json_text t = { 0 };
	struct error err = { 0 };
	json_text_open(&t, NULL, '{');
	json_text_bool(&t, "read", access_may_read(&terms, &asked, &err) == ACCESS_GRANTED);
	json_text_bool(&t, "change", access_may_change(&terms, &asked, &err) == ACCESS_GRANTED);
	json_text_close(&t, '}');
	site_answer_text(&t, ret);
}

static void answer_method(const char *allow, struct server_answer *ret)
{
	*ret = (struct server_answer){
		.status = 405,
		.line = "this path does not allow the request's method: see the header Allow\n",
		.header = "Allow",
		.header_value = allow
	};
}

static void answer_file(struct site *site, const struct server_request *request,
			struct server_answer *ret)
{
	for (size_t i = 0; i < site->config.file_count; i++) {
		const struct page_file *f = &site->config.files[i];
		if (strcmp(f->path, request->path) != 0)
			continue;
		/* is_last: the server frees `text` after sending, but not the file's bytes, which are constant. */
		struct server_text *text = server_text_of(site->server, f->bytes, f->size, f->type);
		if (text)
			*ret = (struct server_answer){ .status = 200, .text = text, .is_last = true };
		else
			site_answer_no_memory(ret);
		return;
	}
	*ret = (struct server_answer){ .status = 404, .line = "not found: the page is at /\n" };
}

static void handle(void *data, const struct server_request *request, struct server_answer *ret)
{
	struct site *site = data;
	const struct site_route *route = site->config.routes;
	bool is_get = !strcmp(request->method, "GET") || !strcmp(request->method, "HEAD");
	while (route->path && strcmp(route->path, request->path) != 0)
		route++;
	if (route->path && route->right == SITE_CHANGES && strcmp(request->method, "POST") != 0)
		answer_method("POST", ret);
	else if (!is_get && *request->path && (!route->path || route->right == SITE_READS))
		answer_method("GET, HEAD", ret);
	else if (route->path && may(site, route->right, request, ret))
		route->answer(site->config.data, request, ret);
	else if (!strcmp(request->path, "/api/rights"))
		answer_rights(site, request, ret);
	else if (!route->path)
		answer_file(site, request, ret);
}

static void stream_ended(void *data, struct server_call *call)
{
	struct site *site = data;
	site->config.stream_ended(site->config.data, call);
}

static int check_token(const char *key, const char *file, struct error *err)
{
	char token[TOKEN_MAX + 1];
	if (is_none(file))
		return 0;
	int r = token_read(file, token, err);
	return r < 0 ? error_add(err, r, "%s", key) : 0;
}

static const char *readers_of(const struct site *site)
{
	bool is_of_user = is_unix(site) && !site->config.is_open;
	if (is_none(site->config.settings.web_token_file))
		return is_of_user ? "this user and root" : "every user of this machine";
	if (is_of_user)
		return "this user and root, with the token of web_token_file";
	return address_is_local(&site->address)
		       ? "clients on this machine with the token of web_token_file"
		       : "clients with the token of web_token_file, also from other machines";
}

static void log_start(const struct site *site, const char *text, bool has_tls)
{
	const struct access_settings *settings = &site->config.settings;
	const char *changes = site->config.changes;
	if (!changes)
		changes = is_none(settings->web_change_token_file)
				  ? "it changes nothing"
				  : "clients with the token of web_change_token_file may change quotas";
	log_info("%s is served at %s%s%s, for %s; %s", site->config.what,
		 is_unix(site) ? ""
		 : has_tls     ? "https://"
			       : "http://",
		 text, is_unix(site) ? "" : "/", readers_of(site), changes);
	if (!address_is_local(&site->address) && !has_tls)
		log_warning(
			"web_listen: connections from other machines are not encrypted, so others "
			"on the network can read the token: set web_tls_certificate and web_tls_key");
}

static int serve(struct site *site, struct error *err)
{
	char text[ADDRESS_TEXT_MAX];
	const struct access_settings *settings = &site->config.settings;
	bool has_tls = !is_none(settings->web_tls_certificate);
	int fd;
	int r = address_listen(&site->address, site->config.is_open, &fd, err);
	if (r < 0)
		return error_add(err, r, "web_listen");
	address_print(fd, text);
	const struct server_config config = {
		.loop = site->config.loop,
		.listen_fd = fd,
		.certificate_file = has_tls ? settings->web_tls_certificate : NULL,
		.key_file = settings->web_tls_key,
		.body_max = site->config.body_max,
		.handler = handle,
		.stream_ended = stream_ended,
		.data = site,
		.headers = headers,
		.header_count = sizeof(headers) / sizeof(headers[0]),
	};
	r = server_start(&config, &site->server, err);
	if (r < 0) {
		close(fd);
		address_unlink(&site->address);
		return error_add(err, r, "web_listen");
	}
	log_start(site, text, has_tls);
	return 0;
}

int site_open(const struct site_config *config, struct site **ret, struct error *err)
{
	struct address address;
	const struct access_settings *settings = &config->settings;
	*ret = NULL;
	int r = access_check(settings, err);
	if (r >= 0)
		r = address_parse(settings->web_listen, &address, err);
	if (r < 0 || !address.length)
		return r;
	r = access_check_private(settings, &address, config->is_private, err);
	if (r >= 0)
		r = check_token("web_token_file", settings->web_token_file, err);
	if (r >= 0)
		r = check_token("web_change_token_file", settings->web_change_token_file, err);
	if (r < 0)
		return r;
	struct site *site = calloc(1, sizeof(*site));
	if (!site)
		return error_set_errno(err, ENOMEM, "page");
	*site = (struct site){ .config = *config, .address = address };
	r = serve(site, err);
	if (r < 0) {
		free(site);
		return r;
	}
	*ret = site;
	return 0;
}

struct site *site_close(struct site *site)
{
	if (!site)
		return NULL;
	server_stop(site->server);
	address_unlink(&site->address);
	free(site);
	return NULL;
}
