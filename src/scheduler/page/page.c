#include "scheduler/page/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/dashboard/site.h"
#include "scheduler/page/events.h"
#include "scheduler/page/state.h"

struct cluster_page {
	struct scheduler *scheduler;
	struct site *site;
	struct events *events;
	char refusal[ERROR_TEXT_MAX + 1];
};

static struct access_settings settings_of(const struct config *config)
{
	return (struct access_settings){
		.web_listen = config->web_listen,
		.web_token_file = config->web_token_file,
		.web_tls_certificate = config->web_tls_certificate,
		.web_tls_key = config->web_tls_key,
	};
}

static int check_url(const char *url, struct error *err)
{
	if (!strcmp(url, "none"))
		return 0;
	bool is_http = !strncmp(url, "http://", strlen("http://")) ||
		       !strncmp(url, "https://", strlen("https://"));
	if (is_http && strstr(url, PAGE_URL_NODE) && !strpbrk(url, " \"'<>"))
		return 0;
	return error_set(err, EINVAL,
			 "web_node_url: '%.100s': must be none, or a URL such as http://" PAGE_URL_NODE
			 ":9401/, where " PAGE_URL_NODE " stands for the node's name",
			 url);
}

int cluster_page_check(const struct config *config, struct error *err)
{
	const struct access_settings settings = settings_of(config);
	int r = access_check(&settings, err);
	if (r >= 0)
		r = check_url(config->web_node_url, err);
	if (r >= 0 && strcmp(config->web_listen, "off") != 0 && !strcmp(config->kube_api, "off"))
		r = error_set(err, EINVAL,
			      "web_listen: '%.60s': needs kube_api, since the page shows the cluster",
			      config->web_listen);
	return r;
}

static const char *argument(const void *request, const char *name)
{
	return server_request_argument(request, name);
}

static bool read_view(struct cluster_page *p, const struct server_request *request,
		      struct view *view, struct server_answer *ret)
{
	struct error err = { 0 };
	if (view_read(argument, request, view, &err) >= 0)
		return true;
	snprintf(p->refusal, sizeof(p->refusal), "%s\n", err.text);
	*ret = (struct server_answer){ .status = 400, .line = p->refusal };
	return false;
}

static void answer_state(void *data, const struct server_request *request, struct server_answer *ret)
{
	struct cluster_page *p = data;
	struct view view;
	if (read_view(p, request, &view, ret))
		site_answer_own(events_state(p->events, &view), ret);
}

static void answer_history(void *data, const struct server_request *request,
			   struct server_answer *ret)
{
	struct cluster_page *p = data;
	site_answer_own(events_history(p->events), ret);
}

static void answer_events(void *data, const struct server_request *request,
			  struct server_answer *ret)
{
	struct cluster_page *p = data;
	struct view view;
	if (!read_view(p, request, &view, ret))
		return;
	if (site_begins_stream(request, ret))
		site_answer_stream(events_add(p->events, request->call, &view), ret);
}

static const struct site_route routes[] = {
	{ "/api/state", SITE_READS, answer_state },
	{ "/api/history", SITE_READS, answer_history },
	{ "/events", SITE_READS, answer_events },
	{ NULL },
};

static void stream_ended(void *data, struct server_call *call)
{
	struct cluster_page *p = data;
	events_remove(p->events, call);
}

int cluster_page_start(struct scheduler *s, struct cluster_page **ret, struct error *err)
{
	*ret = NULL;
	if (!s->cluster || !strcmp(s->config.web_listen, "off"))
		return 0;
	struct cluster_page *p = calloc(1, sizeof(*p));
	if (!p)
		return error_set_errno(err, ENOMEM, "page");
	p->scheduler = s;
	const struct site_config terms = {
		.loop = s->loop,
		.settings = settings_of(&s->config),
		.files = page_files,
		.file_count = page_file_count,
		.what = "the cluster's page",
		.changes = "it changes nothing",
		.routes = routes,
		.stream_ended = stream_ended,
		.data = p,
	};
	int r = events_new(s, &p->events, err);
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

struct cluster_page *cluster_page_stop(struct cluster_page *p)
{
	if (!p)
		return NULL;
	site_close(p->site);
	events_free(p->events);
	free(p);
	return NULL;
}
