#include "daemon/export/page/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/api/request_handlers.h"
#include "daemon/api/session.h"
#include "daemon/export/page/web_change.h"
#include "daemon/export/page/events.h"
#include "daemon/export/page/state.h"
#include "http/dashboard/site.h"

#define API "/api/"
#define BODY_MAX 8192
#define STATE_GOOD_NS (100 * NSEC_PER_MSEC) /* a state is reused for this long */

struct page {
	struct node *node;
	struct site *site;
	struct events *events;
	struct server_text *state; /* the last answer to /api/state; NULL: none */
	uint64_t state_ns;
};

static struct access_settings settings_of(const struct config *config)
{
	return (struct access_settings){
		.web_listen = config->web_listen,
		.web_token_file = config->web_token_file,
		.web_tls_certificate = config->web_tls_certificate,
		.web_tls_key = config->web_tls_key,
		.web_change_token_file = config->web_change_token_file,
	};
}

int page_check(const struct config *config, struct error *err)
{
	const struct access_settings settings = settings_of(config);
	return access_check(&settings, err);
}

static void answer_state(void *data, const struct server_request *request, struct server_answer *ret)
{
	struct page *p = data;
	struct state_text s = { 0 };
	struct page_sent sent = { 0 };
	if (!p->state || clock_now_ns() - p->state_ns >= STATE_GOOD_NS) {
		p->state = server_text_free(site_server(p->site), p->state);
		page_state_write(p->node, &sent, &s);
		size_t length = s.json.used;
		char *text = json_text_end(&s.json);
		state_text_free(&s);
		if (text)
			p->state = server_text_new(site_server(p->site), text, length,
						   SITE_JSON_TYPE);
		p->state_ns = clock_now_ns();
	}
	if (p->state)
		*ret = (struct server_answer){ .status = 200, .text = p->state };
	else
		site_answer_no_memory(ret);
}

static void answer_history(void *data, const struct server_request *request,
			   struct server_answer *ret)
{
	struct page *p = data;
	const struct history *history = events_history(p->events);
	struct json_text t = { 0 };
	json_text_open(&t, NULL, '{');
	json_text_whole(&t, "version", 1);
	if (history)
		history_write(history, clock_now_ns(), &t);
	else
		json_text_raw(&t, NULL, "\"every_s\":5,\"ages_s\":[],\"tenants\":[]");
	json_text_close(&t, '}');
	site_answer_text(&t, ret);
}

static void answer_topology(void *data, const struct server_request *request,
			    struct server_answer *ret)
{
	struct page *p = data;
	struct session session = { .node = p->node };
	cleanup_json json_t *reply = json_object();
	struct error err = { 0 };
	char *text = reply && request_topology(&session, NULL, reply, &err) >= 0
			     ? json_dumps(reply, JSON_COMPACT)
			     : NULL;
	site_answer_own(text, ret);
}

static void answer_events(void *data, const struct server_request *request,
			  struct server_answer *ret)
{
	struct page *p = data;
	if (site_begins_stream(request, ret))
		site_answer_stream(events_add(p->events, request->call), ret);
}

static void answer_change(void *data, const struct server_request *request,
			  struct server_answer *ret)
{
	struct page *p = data;
	unsigned status;
	site_answer_own(change_make(p->node, request->path + strlen(API), request->body,
				    request->body_size, &status),
			ret);
	if (ret->own)
		ret->status = status;
}

static const struct site_route routes[] = {
	{ API "state", SITE_READS, answer_state },
	{ API "history", SITE_READS, answer_history },
	{ API "topology", SITE_READS, answer_topology },
	{ "/events", SITE_READS, answer_events },
	{ API "set", SITE_CHANGES, answer_change },
	{ API "pause", SITE_CHANGES, answer_change },
	{ API "resume", SITE_CHANGES, answer_change },
	{ API "unqueue", SITE_CHANGES, answer_change },
	{ NULL },
};

static void stream_ended(void *data, struct server_call *call)
{
	struct page *p = data;
	events_remove(p->events, call);
}

int page_start(struct node *node, struct page **ret, struct error *err)
{
	if (!strcmp(node->config.web_listen, "off"))
		return page_check(&node->config, err);
	struct page *p = calloc(1, sizeof(*p));
	if (!p)
		return error_set_errno(err, ENOMEM, "can't start the web page (web_listen)");
	*p = (struct page){ .node = node };
	const struct site_config terms = {
		.loop = node->loop,
		.settings = settings_of(&node->config),
		.files = page_files,
		.file_count = page_file_count,
		.is_open = !node->is_private,
		.is_private = node->is_private,
		.body_max = BODY_MAX,
		.what = "the page",
		.routes = routes,
		.stream_ended = stream_ended,
		.data = p,
	};
	int r = events_new(node, &p->events, err);
	if (r >= 0)
		r = site_open(&terms, &p->site, err);
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
	server_text_free(site_server(p->site), p->state);
	site_close(p->site);
	events_free(p->events);
	free(p);
	return NULL;
}
