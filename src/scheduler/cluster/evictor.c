#include "scheduler/cluster/evictor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "kube/client/kube_event.h"
#include "scheduler/cluster/sched_audit.h"
#include "scheduler/cluster/cooldown_writer.h"

#define CHECK_INTERVAL_NS NSEC_PER_SEC
#define PATH_MAX_BYTES 600
#define WHY_MAX 400

struct eviction {
	LIST_ENTRY(eviction) link;
	struct evictor *evictor;
	struct kube_call *call;
	char *pod_namespace, *name, *uid, *node;
	char why[WHY_MAX];
	bool is_preempted;
};

struct evictor {
	struct evictor_terms terms;
	struct alarm check;
	unsigned tokens;
	struct cooldown_writer *cooldown_writer;
	bool is_forbidden; /* the API server forbids evictions, and that was logged */
	struct evictor_counts counts;
	LIST_HEAD(, eviction) under_way;
};

static void forget(struct eviction *e)
{
	LIST_REMOVE(e, link);
	kube_call_drop(e->call);
	free(e->pod_namespace);
	free(e->name);
	free(e->uid);
	free(e->node);
	free(e);
}

static void send_event(const struct eviction *e, bool is_warning, const char *reason,
		       const char *message)
{
	const struct event_about about = { "Pod", e->name, e->uid, e->pod_namespace };
	event_send_as(e->evictor->terms.component, e->evictor->terms.client, &about, is_warning,
		      reason, message, NULL);
}

static void refused(struct evictor *v, const struct eviction *e)
{
	char text[WHY_MAX + 100];
	v->counts.refused++;
	model_eviction_refused(v->terms.model, e->uid);
	snprintf(text, sizeof(text),
		 "%s; it is not evicted, since a PodDisruptionBudget forbids it", e->why);
	log_info("pod %s/%s: %s", e->pod_namespace, e->name, text);
	send_event(e, true, e->is_preempted ? "PreemptionRefused" : "FillerEvictionRefused", text);
}

static void failed(struct evictor *v, const struct eviction *e, const struct error *err)
{
	bool is_logged = err->code == EACCES && v->is_forbidden;
	v->counts.failed++;
	v->is_forbidden |= err->code == EACCES;
	if (err->code == EACCES)
		model_eviction_refused(v->terms.model, e->uid);
	else
		model_eviction_failed(v->terms.model, e->uid);
	log_write(is_logged ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
		  "pod %s/%s can't be evicted: %s%s", e->pod_namespace, e->name, err->text,
		  err->code == EACCES ? " (the role needs 'create' of pods/eviction)" : "");
}

static void answered(void *data, const struct kube_answer *answer)
{
	struct eviction *e = data;
	struct evictor *v = e->evictor;
	const struct sched_audit_pod of = { e->pod_namespace, e->name, e->uid, e->node };
	e->call = NULL;
	sched_audit_evict(v->terms.audit, &of, e->why, answer->err.code ? answer->err.text : NULL);
	if (!answer->err.code) {
		v->counts.evicted++;
		log_info("pod %s/%s is evicted: %s", e->pod_namespace, e->name, e->why);
		send_event(e, false, e->is_preempted ? "Preempted" : "FillerEvicted", e->why);
	} else if (answer->status == HTTP_TOO_MANY_REQUESTS) {
		refused(v, e);
	} else if (answer->status != HTTP_NOT_FOUND && answer->status != HTTP_CONFLICT) {
		failed(v, e, &answer->err);
	}
	forget(e);
}

static char *make_body(const struct eviction *e)
{
	cleanup_json json_t *body = json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:{s:s}}}", "apiVersion",
					      "policy/v1", "kind", "Eviction", "metadata", "name",
					      e->name, "namespace", e->pod_namespace,
					      "deleteOptions", "preconditions", "uid", e->uid);
	return body ? json_dumps(body, JSON_COMPACT) : NULL;
}

static struct eviction *new_eviction(struct evictor *v, const struct model_eviction *of)
{
	struct eviction *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->evictor = v;
	LIST_INSERT_HEAD(&v->under_way, e, link);
	e->pod_namespace = strdup(of->pod_namespace);
	e->name = strdup(of->name);
	e->uid = strdup(of->uid);
	e->node = strdup(of->node);
	e->is_preempted = of->is_preempted;
	if (of->is_preempted)
		snprintf(e->why, sizeof(e->why),
			 "node %.64s: pod %.63s/%.128s of higher priority needs its GPUs there",
			 of->node, of->for_namespace, of->for_pod);
	else if (of->is_displaced)
		snprintf(e->why, sizeof(e->why),
			 "node %.64s: a pod with a guaranteed share needs its GPUs there", of->node);
	else
		snprintf(e->why, sizeof(e->why),
			 "node %.64s: other pods use %u %% of %s, which leaves too little of the %u %% that pods placed by use requested",
			 of->node, of->used_pct, of->card, of->requested_pct);
	return e;
}

/* If memory runs out, the pod stays, and is considered again later. */
static void start_eviction(struct evictor *v, const struct model_eviction *of)
{
	char path[PATH_MAX_BYTES];
	struct eviction *e = new_eviction(v, of);
	if (!e) {
		model_eviction_failed(v->terms.model, of->uid);
		return;
	}
	cleanup_free char *body = e->pod_namespace && e->name && e->uid && e->node ? make_body(e)
										   : NULL;
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s/eviction", of->pod_namespace,
		 of->name);
	const struct kube_request request = {
		.method = "POST", .path = path, .type = KUBE_JSON, .body = body
	};
	if (body)
		e->call = kube_call_start(v->terms.client, &request, NULL, answered, e);
	if (!e->call) {
		model_eviction_failed(v->terms.model, of->uid);
		forget(e);
	}
}

static void check(void *data)
{
	struct evictor *v = data;
	struct model_eviction victims[EVICTOR_AT_ONCE];
	v->tokens += v->tokens < EVICTOR_AT_ONCE;
	if (v->terms.may_act(v->terms.data) && model_check_ready(v->terms.model, NULL) >= 0) {
		/* Wait for EVICTOR_AT_ONCE tokens: to make room for one pod, several pods may have to be evicted together. */
		size_t count = model_take_evictions(v->terms.model, v->terms.patience_ns, victims,
						    v->tokens == EVICTOR_AT_ONCE ? v->tokens : 0);
		v->tokens -= (unsigned)count;
		cooldown_writer_run(v->cooldown_writer);
		for (size_t i = 0; i < count; i++)
			start_eviction(v, &victims[i]);
	}
	alarm_set(kube_client_reactor(v->terms.client), &v->check, CHECK_INTERVAL_NS);
}

int evictor_start(const struct evictor_terms *terms, struct evictor **ret)
{
	struct evictor *v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	*v = (struct evictor){ .terms = *terms, .tokens = EVICTOR_AT_ONCE };
	int r = cooldown_writer_new(terms->client, terms->model, &v->cooldown_writer);
	if (r < 0) {
		free(v);
		return r;
	}
	if (!v->terms.component)
		v->terms.component = "allot-scheduler";
	v->check = (struct alarm){ .handler = check, .data = v };
	LIST_INIT(&v->under_way);
	alarm_set(kube_client_reactor(terms->client), &v->check, CHECK_INTERVAL_NS);
	*ret = v;
	return 0;
}

struct evictor *evictor_stop(struct evictor *v)
{
	if (!v)
		return NULL;
	alarm_clear(kube_client_reactor(v->terms.client), &v->check);
	while (!LIST_EMPTY(&v->under_way))
		forget(LIST_FIRST(&v->under_way));
	cooldown_writer_free(v->cooldown_writer);
	free(v);
	return NULL;
}

struct evictor_counts evictor_counts(const struct evictor *v)
{
	return v ? v->counts : (struct evictor_counts){ 0 };
}
