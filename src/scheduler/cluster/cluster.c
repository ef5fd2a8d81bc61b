#include "scheduler/cluster/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/client/patch.h"
#include "kube/hami/annotations.h"
#include "kube/util/sanitize.h"
#include "kube/util/timestamp.h"
#include "policy/placement/score.h"
#include "scheduler/bind/gather_gang.h"
#include "scheduler/cluster/evictor.h"
#include "scheduler/cluster/kube_lease.h"
#include "scheduler/cluster/leader.h"
#include "scheduler/extender/extender.h"
#include "scheduler/model/model_inside.h"

#define ADVANCE_NS NSEC_PER_SEC
#define REQUEUE_MAX 32       /* limit of waiting pods that are annotated per second */
#define UNSIZED_MOST 32      /* limit of gangs without a size that are logged per second */
#define REQUEUE_PATH_MAX 600 /* a namespace's name has at most 63 bytes, a pod's name 253 */

struct cluster {
	struct cluster_terms terms;
	struct kube_access access;
	struct kube_client *client;
	struct loop_source *source;
	struct alarm advance;
	struct model *model;
	struct feed *feed;
	struct binder *binder;
	struct evictor *evictor; /* NULL until start_parts() has made it */
	struct gather *gather;
	struct recorder *recorder;     /* NULL if filter calls cause no events */
	struct leader *leader;         /* NULL if there is no other replica */
	struct kube_lease *kube_lease; /* NULL unless each replica has its own kube-scheduler */
	char identity[LEADER_IDENTITY_MAX];
	uint64_t started_ns;
	bool is_ending;
	LIST_HEAD(, bind_call) bind_call;
};

/* A binding under way: the caller's `done`, and the pod whose reservation may be released. */
struct bind_call {
	struct cluster *cluster;
	bind_done done;
	void *data;
	char *uid;
	LIST_ENTRY(bind_call) link;
};

static void free_bind_call(struct bind_call *bind_call)
{
	LIST_REMOVE(bind_call, link);
	free(bind_call->uid);
	free(bind_call);
}

static bool may_act(void *data)
{
	return cluster_leads(data);
}

static void node_changed(void *data, const json_t *node)
{
	struct cluster *c = data;
	binder_node_changed(c->binder, node);
}

static void ready(void *data)
{
	const struct cluster *c = data;
	struct model_counts counts = model_counts(c->model);
	log_info("read %zu nodes with %zu GPUs and %zu pods on them, in %.1f s", counts.nodes,
		 counts.cards, counts.pods,
		 (double)(clock_now_ns() - c->started_ns) / (double)NSEC_PER_SEC);
}

static void leader_changed(void *data, bool is_leader)
{
	struct cluster *c = data;
	if (is_leader) {
		log_info("this replica of allot-scheduler is the leader now, as %s", c->identity);
		return;
	}
	log_info("this replica of allot-scheduler is no longer the leader");
	gather_cancel(c->gather);
	binder_cancel(c->binder);
}

static void released(void *data)
{
	struct cluster *c = data;
	if (c->terms.ended)
		c->terms.ended(c->terms.data);
}

static void requeue_answered(void *data, const struct kube_answer *answer)
{
	/* Failure is harmless: the pod is gone, or kube-scheduler tries it again later anyway. */
	if (answer->err.code)
		log_debug("a pod that waits for GPUs could not be annotated: %s", answer->err.text);
}

/* Annotates the pod, because any change of a pod makes kube-scheduler try it again. */
static void requeue_pod(struct cluster *c, const struct model_requeue_pod *pod)
{
	char path[REQUEUE_PATH_MAX], now[TIMESTAMP_MAX];
	const struct patch_pair since = { KUBE_LIVE_DOMAIN "/" KUBE_ROOM_SINCE, now };
	timestamp_format_rfc3339((int64_t)time(NULL), now);
	cleanup_free char *body = patch_metadata(&since, 1, NULL, 0, NULL);
	const struct kube_request request = {
		.method = "PATCH", .path = path, .type = KUBE_MERGE_PATCH, .body = body
	};
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", pod->pod_namespace, pod->name);
	log_debug("pod %s/%s: there may be free GPUs for it now", pod->pod_namespace, pod->name);
	if (body)
		kube_call_start(c->client, &request, NULL, requeue_answered, NULL);
}

static void warn_unsized(struct cluster *c)
{
	struct model_unsized groups[UNSIZED_MOST];
	size_t n = feed_is_ready(c->feed) ? model_take_unsized(c->model, groups, UNSIZED_MOST) : 0;
	while (n-- > 0)
		log_warning(
			"pods of group %s (%s) lack the annotation " KUBE_LIVE_DOMAIN
			"/" KUBE_GANG_SIZE
			", so they are placed one by one, not as a gang: add the annotation, with the number of pods",
			groups[n].group, groups[n].by);
}

static void advance(void *data)
{
	struct cluster *c = data;
	struct model_requeue_pod pods[REQUEUE_MAX];
	model_advance(c->model, clock_now_ns());
	model_set_wall(c->model, (int64_t)time(NULL));
	gather_advance(c->gather, clock_now_ns());
	warn_unsized(c);
	if (cluster_check_leads(c, NULL) >= 0)
		for (size_t n = model_take_requeue(c->model, pods, REQUEUE_MAX); n-- > 0;)
			requeue_pod(c, &pods[n]);
	alarm_set(kube_client_reactor(c->client), &c->advance, ADVANCE_NS);
}

static void client_ready(void *data, uint32_t events)
{
	struct cluster *c = data;
	kube_client_process(c->client);
}

struct kube_client *cluster_client(struct cluster *c)
{
	return c->client;
}

struct model *cluster_model(struct cluster *c)
{
	return c->model;
}

struct evictor_counts cluster_evictor_counts(const struct cluster *c)
{
	return evictor_counts(c->evictor);
}

bool cluster_leads(const struct cluster *c)
{
	return !c->is_ending && (!c->leader || leader_may_act(c->leader));
}

bool cluster_is_serving(const struct cluster *c)
{
	return cluster_leads(c) && (!c->kube_lease || kube_lease_is_ours(c->kube_lease));
}

int cluster_check_ready(const struct cluster *c, struct error *err)
{
	if (feed_is_ready(c->feed))
		return 0;
	return error_set(err, EAGAIN, "nodes and pods are still being read: try again in a moment");
}

int cluster_check_leads(const struct cluster *c, struct error *err)
{
	int r = cluster_check_ready(c, err);
	if (r < 0 || cluster_leads(c))
		return r;
	const char *holder = c->leader ? leader_holder(c->leader) : "";
	error_set(err, EAGAIN, "this replica of allot-scheduler does not lead: %s%.200s",
		  *holder ? "the leader is " : "no replica leads now; try again in a few seconds",
		  holder);
	return error_sanitize(err, -EAGAIN);
}

/* After an unknown result, the reservation stays until the watch reports the pod or the reservation expires. */
static void binding_done(void *data, const struct error *err)
{
	struct bind_call *bind_call = data;
	bind_done done = bind_call->done;
	void *of = bind_call->data;
	if (err->code && err->code != ETIMEDOUT && err->code != ECANCELED)
		model_release(bind_call->cluster->model, bind_call->uid);
	free_bind_call(bind_call);
	done(of, err);
}

static int start_bind(void *of, const struct decision *decision, bind_done done, void *data)
{
	struct cluster *c = of;
	struct bind_call *bind_call = calloc(1, sizeof(*bind_call));
	if (!bind_call)
		return -ENOMEM;
	*bind_call = (struct bind_call){
		.cluster = c, .done = done, .data = data, .uid = strdup(decision->uid)
	};
	LIST_INSERT_HEAD(&c->bind_call, bind_call, link);
	int r = bind_call->uid ? bind_start(c->binder, decision, binding_done, bind_call) : -ENOMEM;
	if (r < 0)
		free_bind_call(bind_call);
	return r;
}

/* Returns HAMi's score of the requested node. Call before the pod is charged there, which changes the score. */
static double score_of(const struct cluster *c, const json_t *args)
{
	const char *name = json_string_value(json_object_get(args, "Node"));
	const struct model_node *node = name ? model_find_node(c->model, name) : NULL;
	return node ? place_cards_score(node->inventory.card, node->inventory.count) : 0;
}

int cluster_bind(struct cluster *c, const json_t *args, bind_done done, void *data,
		 struct error *err)
{
	cleanup_decision struct decision decision = { 0 };
	const char *uid = json_string_value(json_object_get(args, "PodUID"));
	int r = cluster_check_leads(c, err);
	if (r < 0)
		return r;
	/* A second decision would replace the reservation that the binding under way uses. */
	if (uid && bind_is_in_progress(c->binder, uid))
		return error_set(err, EALREADY, "the pod is already being bound");
	uint64_t now_ns = clock_now_ns();
	double score = score_of(c, args);
	r = extender_decide(c->model, args, now_ns, &decision, err);
	if (r < 0)
		return r;
	if (c->recorder)
		recorder_record_placement(c->recorder, &decision, score);
	r = gather_bind(c->gather, &decision, now_ns, done, data);
	return r < 0 ? error_set_errno(err, -r, "binding") : 0;
}

/* A call with whole Node objects is an autoscaler's simulation, so it causes no events. */
void cluster_record_filter(struct cluster *c, struct filter_answer *answer)
{
	const struct call_args *args = answer->args;
	const json_t *meta = json_object_get(json_object_get(args->object, "Pod"), "metadata");
	const char *uid = json_string_value(json_object_get(meta, "uid"));
	if (c->recorder && uid && args->is_by_names && model_find_pod(c->model, uid))
		recorder_record_filter(c->recorder, answer);
}

struct recorder_counts cluster_recorder_counts(const struct cluster *c)
{
	return recorder_counts(c->recorder);
}

bool cluster_bind_get_status(const struct cluster *c, const char *uid, struct bind_status *ret)
{
	return bind_get_status(c->binder, uid, ret);
}

static int start_leader(struct cluster *c)
{
	const struct leader_terms terms = {
		.client = c->client,
		.in_namespace = c->terms.lease_namespace,
		.name = c->terms.lease_name,
		.election = { .identity = c->identity },
		.changed = leader_changed,
		.released = released,
		.data = c,
	};
	leader_make_identity(c->identity);
	return c->terms.lease_name ? leader_start(&terms, &c->leader) : 0;
}

static int start_parts(struct cluster *c)
{
	const struct bind_terms bind = { .client = c->client,
					 .component = c->terms.component,
					 .limit_ns = c->terms.bind_limit_ns,
					 .lock_expiry_s = c->terms.lock_expiry_s,
					 .may_act = may_act,
					 .data = c };
	int r = model_new(&c->terms.model, &c->model);
	if (r >= 0)
		r = binder_new(&bind, &c->binder);
	const struct gather_terms gather = {
		.model = c->model, .wait_ns = c->terms.gang_wait_ns, .start = start_bind, .data = c
	};
	if (r >= 0)
		r = gather_new(&gather, &c->gather);
	if (r >= 0 && c->terms.has_filter_events)
		r = recorder_new(c->client, c->terms.component, &c->recorder);
	const struct feed_terms feed = { .client = c->client,
					 .model = c->model,
					 .ready = ready,
					 .node = node_changed,
					 .data = c };
	if (r >= 0)
		r = feed_start(&feed, &c->feed);
	if (r >= 0)
		r = start_leader(c);
	if (r >= 0 && c->terms.kube_lease_name)
		r = kube_lease_start(c->client, c->terms.kube_lease_namespace,
				     c->terms.kube_lease_name, &c->kube_lease);
	const bool has_opportunistic = c->terms.model.request.places_by_use;
	const struct evictor_terms evict = {
		.client = c->client,
		.model = c->model,
		.component = c->terms.component,
		.patience_ns = has_opportunistic ? c->terms.opportunistic_patience_ns : 0,
		.audit = c->terms.audit,
		.may_act = may_act,
		.data = c
	};
	if (r >= 0)
		r = evictor_start(&evict, &c->evictor);
	if (r >= 0)
		advance(c);
	return r;
}

int cluster_start(const struct cluster_terms *terms, struct cluster **ret, struct error *err)
{
	struct cluster *c = calloc(1, sizeof(*c));
	if (!c)
		return error_set_errno(err, ENOMEM, "cluster");
	*c = (struct cluster){ .terms = *terms, .started_ns = clock_now_ns() };
	c->advance = (struct alarm){ .handler = advance, .data = c };
	int r = access_by_setting(c->terms.kube_api, &c->access, err);
	if (r >= 0)
		r = kube_client_new(&c->access, &c->client, err);
	if (r < 0) {
		cluster_stop(c);
		return r;
	}
	r = start_parts(c);
	if (r >= 0)
		r = loop_add(terms->loop, kube_client_fd(c->client), EPOLLIN, client_ready, c,
			     &c->source);
	if (r < 0) {
		cluster_stop(c);
		return error_set_errno(err, -r, "cluster");
	}
	*ret = c;
	return 0;
}

void cluster_end(struct cluster *c)
{
	if (c->is_ending)
		return;
	c->is_ending = true;
	gather_cancel(c->gather);
	binder_cancel(c->binder);
	if (c->leader)
		leader_release(c->leader);
	else
		released(c);
}

struct cluster *cluster_stop(struct cluster *c)
{
	if (!c)
		return NULL;
	leader_free(c->leader);
	kube_lease_stop(c->kube_lease);
	evictor_stop(c->evictor);
	gather_free(c->gather);
	recorder_free(c->recorder);
	binder_free(c->binder);
	while (!LIST_EMPTY(&c->bind_call))
		free_bind_call(LIST_FIRST(&c->bind_call));
	feed_stop(c->feed);
	if (c->client)
		alarm_clear(kube_client_reactor(c->client), &c->advance);
	loop_remove(c->source);
	kube_client_free(c->client);
	model_free(c->model);
	access_free(&c->access);
	free(c);
	return NULL;
}
