#include "scheduler/routes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "scheduler/explain/explain.h"
#include "scheduler/extender/extender.h"

#define JSON_TYPE "application/json"

static void answer_line(struct server_answer *ret, unsigned status, const char *line)
{
	*ret = (struct server_answer){ .status = status, .line = line };
}

/* Takes ownership of the JSON text. NULL: memory ran out. */
static void answer_text(struct server_answer *ret, unsigned status, char *text)
{
	if (text)
		*ret = (struct server_answer){ .status = status, .own = text, .type = JSON_TYPE };
	else
		answer_line(ret, 500, "out of memory\n");
}

/* Takes ownership of the object. NULL: memory ran out. */
static void answer_json(struct server_answer *ret, unsigned status, json_t *object)
{
	answer_text(ret, status, object ? json_dumps(object, JSON_COMPACT | JSON_ENCODE_ANY) : NULL);
	json_decref(object);
}

/* Answers in the format of kube-scheduler's extenders. */
static void answer_error(struct server_answer *ret, unsigned status, const char *text)
{
	char clean[ERROR_TEXT_MAX];
	snprintf(clean, sizeof(clean), "%s", text);
	text_clean(clean);
	answer_json(ret, status, json_pack("{s:s}", "Error", clean));
}

static void count_answer(struct scheduler *s, enum metrics_verb verb, unsigned status)
{
	struct metrics_figures *f = &s->metrics.verb[verb];
	if (status >= 500)
		f->failed++;
	else if (status >= 400)
		f->refused++;
	else
		f->good++;
}

static void count_review(struct scheduler *s, const json_t *request, const json_t *response)
{
	const json_t *why = json_object_get(response, "status");
	const json_t *object = json_object_get(request, "object");
	const char *name = json_string_or(json_object_get(object, "metadata"), "name",
					  "(to be named)");
	const char *of = json_string_or(request, "namespace", "");
	if (json_object_get(response, "patch"))
		s->metrics.changed++;
	if (json_is_true(json_object_get(response, "allowed")))
		return;
	s->metrics.denied++;
	log_info_of(log_key(of), "pod %.63s/%.253s is denied: %s", of, name,
		    json_string_value(json_object_get(why, "message")));
}

bool routes_quota(void *data, const char *name, struct webhook_quota *ret)
{
	const struct scheduler *s = data;
	struct model_quota_view view;
	if (!s->cluster || !model_find_quota(cluster_model(s->cluster), name, &view))
		return false;
	*ret = (struct webhook_quota){ view.limits, view.used };
	return true;
}

/* Takes ownership of `answer`. If `answer` is NULL, answers with *err. */
static void answer_review(struct scheduler *s, const json_t *review, json_t *answer,
			  const struct error *err, struct server_answer *ret)
{
	if (!answer) {
		answer_error(ret, err->code == ENOMEM ? 500 : 400, err->text);
		return;
	}
	count_review(s, json_object_get(review, "request"), json_object_get(answer, "response"));
	answer_json(ret, 200, answer);
}

/* A webhook review whose answer waits for the API server. */
struct pending_review {
	struct scheduler *scheduler;
	struct call_args *args;
	struct server_call *call;
};

static void reviewed(void *data, json_t *json)
{
	struct pending_review *p = data;
	struct error none = { .code = ENOMEM, .text = "out of memory" };
	struct server_answer answer;
	answer_review(p->scheduler, p->args->object, json, &none, &answer);
	count_answer(p->scheduler, VERB_WEBHOOK, answer.status);
	server_call_answer(p->call, &answer);
	call_args_put(p->args);
	free(p);
}

static int review_with_claims(struct scheduler *s, struct call_args *args, struct server_call *call,
			      json_t **ret, struct error *err)
{
	struct pending_review *p = malloc(sizeof(*p));
	if (!p)
		return error_set_errno(err, ENOMEM, "AdmissionReview");
	*p = (struct pending_review){ s, call_args_get(args), call };
	int r = claim_reviews_start(s->claim_reviews, args->object, reviewed, p, ret, err);
	if (r > 0)
		return r;
	call_args_put(p->args);
	free(p);
	return r;
}

static void do_webhook(struct scheduler *s, struct call_args *args, struct server_call *call,
		       struct server_answer *ret)
{
	struct error err = { 0 };
	json_t *answer = NULL;
	if (!s->claim_reviews)
		answer = webhook_review(&s->webhook, args->object, NULL, &err);
	else if (review_with_claims(s, args, call, &answer, &err) > 0) {
		ret->is_later = true;
		return;
	}
	answer_review(s, args->object, answer, &err, ret);
}

static int check_cluster(const struct scheduler *s, struct error *err)
{
	if (s->cluster)
		return cluster_check_ready(s->cluster, err);
	return error_set(
		err, ENODATA,
		"allot-scheduler does not know the cluster's nodes, because its setting kube_api is off: set it to in-cluster or to a kubeconfig");
}

static void do_filter(struct scheduler *s, struct call_args *args, struct server_call *call,
		      struct server_answer *ret)
{
	struct error err = { 0 };
	if (check_cluster(s, &err) < 0) {
		answer_error(ret, 200, err.text);
		return;
	}
	struct filter_answer *answer = extender_filter(cluster_model(s->cluster), args);
	if (answer)
		cluster_record_filter(s->cluster, answer);
	answer_text(ret, 200, answer ? filter_answer_text(answer) : NULL);
	filter_answer_put(answer);
}

static void do_preempt(struct scheduler *s, struct call_args *args, struct server_call *call,
		       struct server_answer *ret)
{
	struct error err = { 0 };
	if (check_cluster(s, &err) < 0) {
		answer_error(ret, 200, err.text);
		return;
	}
	json_t *answer = extender_preempt(cluster_model(s->cluster), args->object);
	sched_audit_preempt(s->audit, cluster_model(s->cluster), args->object, answer);
	answer_json(ret, 200, answer);
}

/* The format of the answer has no place for an error, so the HTTP status reports errors. */
static void do_prioritize(struct scheduler *s, struct call_args *args, struct server_call *call,
			  struct server_answer *ret)
{
	struct error err = { 0 };
	if (check_cluster(s, &err) < 0)
		answer_error(ret, 503, err.text);
	else
		answer_text(ret, 200, extender_prioritize(cluster_model(s->cluster), args));
}

static void binding_done(void *data, const struct error *err)
{
	struct server_answer answer;
	answer_error(&answer, 200, err->code ? err->text : "");
	server_call_answer(data, &answer);
}

static void do_bind(struct scheduler *s, struct call_args *args, struct server_call *call,
		    struct server_answer *ret)
{
	struct error err = { 0 };
	bind_done done = binding_done;
	void *data = call;
	sched_audit_bind(s->audit, args->object, &done, &data);
	int r = check_cluster(s, &err);
	if (r >= 0)
		r = cluster_bind(s->cluster, args->object, done, data, &err);
	if (r >= 0) {
		/* This status is counted now, because binding_done() answers with it in any case. */
		*ret = (struct server_answer){ .status = 200, .is_later = true };
		return;
	}
	sched_audit_forget(s->audit, data);
	sched_audit_refuse(s->audit, args->object, &err);
	answer_error(ret, 200, err.text);
}

/* Adds whether this replica serves kube-scheduler ("leads"), and what the binder knows about the pod's waiting binding. */
static void add_binding(const struct scheduler *s, json_t *to)
{
	const char *uid = json_string_value(json_object_get(to, "uid"));
	struct bind_status view;
	json_object_set_new(to, "leads", json_boolean(cluster_is_serving(s->cluster)));
	if (!uid || !cluster_bind_get_status(s->cluster, uid, &view))
		return;
	json_t *binding = json_pack("{s:s,s:i,s:I}", "node", view.node, "pods_before",
				    (int)view.before, "given_up_in_s",
				    (json_int_t)(view.left_ns / NSEC_PER_SEC));
	if (view.lock)
		json_object_set_new(binding, "lock", json_string(view.lock));
	json_object_set_new(to, "binding", binding);
}

static unsigned status_of(int r)
{
	return r == -ENOENT ? 404 : r == -ENOMEM ? 500 : 503;
}

#define EXPLAIN_LEAST 100 /* the rate limit counts at least this many nodes per explanation */

/* Explanations need a rate limit: by default anyone may request them, and they run on the thread that places pods. */
static bool may_explain(struct scheduler *s, const struct explain_query *what,
			struct server_answer *ret)
{
	size_t nodes = what->node ? 1 : model_counts(cluster_model(s->cluster)).nodes;
	uint64_t wait_ns = token_bucket_take(
		&s->explaining, nodes < EXPLAIN_LEAST ? EXPLAIN_LEAST : nodes, clock_now_ns());
	if (!wait_ns)
		return true;
	snprintf(s->retry_after, sizeof(s->retry_after), "%" PRIu64,
		 (wait_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC);
	struct error err;
	error_set(&err, EAGAIN,
		  "too many explanations per second (setting explain_limit): try again in %s s",
		  s->retry_after);
	answer_error(ret, 429, err.text);
	ret->header = "Retry-After";
	ret->header_value = s->retry_after;
	return false;
}

/* args->object has the path's parts: namespace, pod and perhaps a node. */
static void do_explain(struct scheduler *s, struct call_args *args, struct server_call *call,
		       struct server_answer *ret)
{
	const json_t *part = args->object;
	const struct explain_query ask = { json_string_value(json_array_get(part, 0)),
					   json_string_value(json_array_get(part, 1)),
					   json_string_value(json_array_get(part, 2)) };
	struct error err = { 0 };
	json_t *answer = NULL;
	if (!ask.pod || json_array_size(part) > 3) {
		answer_error(ret, 400,
			     "must be /explain/NAMESPACE/POD or /explain/NAMESPACE/POD/NODE");
		return;
	}
	int r = check_cluster(s, &err);
	if (r >= 0 && !may_explain(s, &ask, ret))
		return;
	if (r >= 0)
		r = explain_pod(cluster_model(s->cluster), &ask, &answer, &err);
	if (r < 0) {
		answer_error(ret, status_of(r), err.text);
		return;
	}
	add_binding(s, answer);
	answer_json(ret, 200, answer);
}

static void do_health(struct scheduler *s, struct call_args *args, struct server_call *call,
		      struct server_answer *ret)
{
	answer_line(ret, 200, "ok\n");
}

/* A replica that does not lead is ready too: it answers all calls but bind. */
static void do_ready(struct scheduler *s, struct call_args *args, struct server_call *call,
		     struct server_answer *ret)
{
	struct error err = { 0 };
	if (s->cluster && cluster_check_ready(s->cluster, &err) < 0)
		answer_line(ret, 503, "not ready: nodes and pods are not all known yet\n");
	else
		answer_line(ret, 200, "ready\n");
}

/* Readiness check for a Service that must reach only the leading replica, which binds pods. */
static void do_leads(struct scheduler *s, struct call_args *args, struct server_call *call,
		     struct server_answer *ret)
{
	struct error err = { 0 };
	if (!s->cluster || cluster_check_leads(s->cluster, &err) < 0)
		answer_line(ret, 503, "does not lead\n");
	else
		answer_line(ret, 200, "leads\n");
}

static void do_metrics(struct scheduler *s, struct call_args *args, struct server_call *call,
		       struct server_answer *ret)
{
	char *page = metrics_page(&s->metrics, &s->config, s->audit, s->cluster);
	if (page)
		*ret = (struct server_answer){ .status = 200, .own = page, .type = METRICS_TYPE };
	else
		answer_line(ret, 500, "out of memory\n");
}

#define NO_VERB (-1)

/*
 * `args` of a handler: for a POST, the posted arguments. If the row's path ends with '/', args->object lists the further parts
 * of the request's path. Otherwise `args` is NULL. To keep `args`, a handler takes a reference.
 */
static const struct route {
	const char *path; /* if it ends with '/', longer paths match too */
	bool is_post;
	int verb; /* enum metrics_verb or NO_VERB */
	enum authorize_verb authorizer;
	void (*handle)(struct scheduler *s, struct call_args *args, struct server_call *call,
		       struct server_answer *ret);
} routes[] = {
	{ "/webhook", true, VERB_WEBHOOK, AUTHORIZE_WEBHOOK, do_webhook },
	{ "/filter", true, VERB_FILTER, AUTHORIZE_FILTER, do_filter },
	{ "/prioritize", true, VERB_PRIORITIZE, AUTHORIZE_PRIORITIZE, do_prioritize },
	{ "/preempt", true, VERB_PREEMPT, AUTHORIZE_PREEMPT, do_preempt },
	{ "/bind", true, VERB_BIND, AUTHORIZE_BIND, do_bind },
	{ "/explain/", false, NO_VERB, AUTHORIZE_EXPLAIN, do_explain },
	{ "/healthz", false, NO_VERB, AUTHORIZE_OPEN, do_health },
	{ "/readyz", false, NO_VERB, AUTHORIZE_OPEN, do_ready },
	{ "/leaderz", false, NO_VERB, AUTHORIZE_OPEN, do_leads },
	{ "/metrics", false, NO_VERB, AUTHORIZE_METRICS, do_metrics },
};

/* `status` is 0 if the answer comes later and is counted then. */
static void count(struct scheduler *s, const struct route *route, unsigned status, uint64_t spent_ns)
{
	if (route->verb == NO_VERB)
		return;
	s->metrics.verb[route->verb].spent_ns += spent_ns;
	if (status)
		count_answer(s, (enum metrics_verb)route->verb, status);
}

static struct call_args *read_body(const struct server_request *request, struct server_answer *ret)
{
	struct call_args *args = NULL;
	struct error why;
	int r = call_args_read(request->body ? request->body : "", request->body_size, &args, &why);
	if (r >= 0)
		return args;
	error_add(&why, r, "%s: the body of the request is not JSON", request->path);
	answer_error(ret, r == -ENOMEM ? 500 : 400, why.text);
	return NULL;
}

static bool has_parts(const struct route *route)
{
	return route->path[strlen(route->path) - 1] == '/';
}

static bool is_route(const struct route *route, const char *path)
{
	return has_parts(route) ? !strncmp(route->path, path, strlen(route->path))
				: !strcmp(route->path, path);
}

static struct call_args *read_parts(const struct route *route, const char *path)
{
	json_t *parts = json_array();
	for (const char *from = path + strlen(route->path); *from;) {
		size_t length = strcspn(from, "/");
		json_array_append_new(parts, json_stringn(from, length));
		from += length + (from[length] == '/');
	}
	return call_args_of(parts);
}

static void refuse(struct server_answer *ret, unsigned status, const struct error *why)
{
	answer_error(ret, status, why->text);
	if (status != 401)
		return;
	ret->header = "WWW-Authenticate";
	ret->header_value = "Bearer realm=\"allot-scheduler\"";
}

static void dispatch(struct scheduler *s, const struct route *route,
		     const struct server_request *request, struct server_answer *ret)
{
	uint64_t before_ns = clock_now_ns();
	struct error err = { 0 };
	unsigned refused = authorize(&s->authorizer, route->authorizer, request, &err);
	if (refused) {
		refuse(ret, refused, &err);
		count(s, route, refused, clock_now_ns() - before_ns);
		return;
	}
	struct call_args *args = route->is_post     ? read_body(request, ret)
				 : has_parts(route) ? read_parts(route, request->path)
						    : NULL;
	if (args || !(route->is_post || has_parts(route)))
		route->handle(s, args, request->call, ret);
	else if (!route->is_post)
		answer_line(ret, 500, "out of memory\n");
	call_args_put(args);
	count(s, route, ret->status, clock_now_ns() - before_ns);
}

void routes_handle(void *data, const struct server_request *request, struct server_answer *ret)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		const struct route *route = &routes[i];
		bool is_get = !strcmp(request->method, "GET") || !strcmp(request->method, "HEAD");
		if (!is_route(route, request->path))
			continue;
		if (route->is_post ? !strcmp(request->method, "POST") : is_get)
			dispatch(data, route, request, ret);
		else
			*ret = (struct server_answer){
				.status = 405,
				.line = route->is_post ? "must be POST\n" : "must be GET or HEAD\n",
				.header = "Allow",
				.header_value = route->is_post ? "POST" : "GET, HEAD"
			};
		return;
	}
	answer_line(ret, 404,
		    "no such path: there is /webhook, /filter, /prioritize, /preempt, /bind, /explain/, "
		    "/healthz, /readyz, /leaderz and /metrics\n");
}
