#include "scheduler/cluster/recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "kube/client/kube_event.h"
#include "kube/client/reactor.h"
#include "kube/util/object.h"
#include "scheduler/extender/filter_events.h"
#include "scheduler/util/token_bucket.h"
#include "scheduler/util/string_map.h"

/* how many filter answers may wait for their events to be written; further answers get no event */
#define JOBS_MOST 8
#define WORDS_MOST 8 /* events per pod, one per reason; further reasons get none */

/* A pod's event for one reason. While `name` is not "", the server is assumed to have the event. */
struct pod_event {
	char reason[FILTER_REASON_MAX];
	char name[EVENT_NAME_MAX]; /* "" if the event must be created */
	uint64_t count;
	bool is_used;
};

struct pod {
	struct string_map_entry entry; /* key: uid */
	TAILQ_ENTRY(pod) link;         /* in `order`; the first pod is forgotten first */
	char *uid, *name, *in_namespace;
	struct pod_event failed[WORDS_MOST], placed;
	/* due_ns: earliest time of the next event; step_ns: the pause after the last event, which doubles each time */
	uint64_t due_ns, step_ns;
	uint64_t filtered_since_event; /* filter calls since the last event */
	size_t fit, unfit;             /* numbers of nodes in the last filter call */
	char node[EVENT_NAME_MAX];     /* the node in the last success event; "" if none */
};

/* A filter answer whose events are written after kube-scheduler has received the answer. */
struct job {
	TAILQ_ENTRY(job) link;
	struct filter_answer *answer; /* a reference */
};

struct event_write {
	LIST_ENTRY(event_write) link;
	struct recorder *recorder;
	struct kube_call *call;
	struct pod *pod;
	struct pod_event *pod_event;
};

struct recorder {
	struct kube_client *client;
	const char *component;
	struct string_map pods;
	TAILQ_HEAD(pod_list, pod) order;
	TAILQ_HEAD(, job) jobs;
	LIST_HEAD(, event_write) writes;
	struct alarm work;
	struct token_bucket events, nodes;
	unsigned pod_count, job_count;
	struct recorder_counts counts;
};

static void free_event_write(struct event_write *t)
{
	LIST_REMOVE(t, link);
	kube_call_drop(t->call);
	free(t);
}

static void forget_pod(struct recorder *r, struct pod *p)
{
	for (struct event_write *t = LIST_FIRST(&r->writes), *next; t; t = next) {
		next = LIST_NEXT(t, link);
		if (t->pod == p)
			free_event_write(t);
	}
	string_map_remove(&r->pods, &p->entry);
	TAILQ_REMOVE(&r->order, p, link);
	r->pod_count--;
	free(p->uid);
	free(p->name);
	free(p->in_namespace);
	free(p);
}

static struct pod *make_pod(struct recorder *r, const char *uid, const char *in, const char *name)
{
	struct pod *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->uid = strdup(uid);
	p->name = strdup(name);
	p->in_namespace = strdup(in);
	if (!p->uid || !p->name || !p->in_namespace) {
		free(p->uid);
		free(p->name);
		free(p->in_namespace);
		free(p);
		return NULL;
	}
	string_map_add(&r->pods, &p->entry, p->uid);
	TAILQ_INSERT_TAIL(&r->order, p, link);
	r->pod_count++;
	return p;
}

/* Finds or adds the pod and moves it to the list's end, so that it is forgotten last. NULL if memory runs out. */
static struct pod *find_or_add_pod(struct recorder *r, const char *uid, const char *in,
				   const char *name)
{
	struct pod *p = string_map_find(&r->pods, uid);
	if (!p) {
		if (r->pod_count == RECORDER_PODS_MOST)
			forget_pod(r, TAILQ_FIRST(&r->order));
		return make_pod(r, uid, in, name);
	}
	TAILQ_REMOVE(&r->order, p, link);
	TAILQ_INSERT_TAIL(&r->order, p, link);
	return p;
}

/* After a failure, forgets the event's name, so that the next write creates a new event. */
static void answered(void *data, const struct kube_answer *answer)
{
	struct event_write *t = data;
	t->call = NULL;
	if (answer->err.code)
		*t->pod_event->name = '\0';
	free_event_write(t);
}

static void send_event(struct recorder *r, struct pod *p, struct pod_event *pod_event,
		       uint64_t more, bool is_warning, const char *reason, const char *text)
{
	struct event_write *t = calloc(1, sizeof(*t));
	if (!t)
		return;
	const struct event_about about = { "Pod", p->name, p->uid, p->in_namespace };
	const struct event_text what = { is_warning, reason, text, NULL };
	bool is_new = !*pod_event->name;
	*t = (struct event_write){ .recorder = r, .pod = p, .pod_event = pod_event };
	LIST_INSERT_HEAD(&r->writes, t, link);
	pod_event->count = is_new ? 1 : pod_event->count + more;
	if (is_new)
		event_make_name(&about, pod_event->name);
	t->call = is_new ? event_create(r->component, r->client, &about, &what, pod_event->name,
					answered, t)
			 : event_repeat(r->client, &about, text, pod_event->name, pod_event->count,
					answered, t);
	if (t->call) {
		r->counts.sent++;
		return;
	}
	*pod_event->name = '\0';
	free_event_write(t);
}

/* Finds or adds the pod's event for a reason. NULL if the pod has too many reasons. */
static struct pod_event *pod_event_of(struct pod *p, const char *reason)
{
	struct pod_event *free_one = NULL;
	for (unsigned i = 0; i < WORDS_MOST; i++) {
		struct pod_event *pod_event = &p->failed[i];
		if (pod_event->is_used && !strcmp(pod_event->reason, reason))
			return pod_event;
		if (!pod_event->is_used && !free_one)
			free_one = pod_event;
	}
	if (free_one) {
		free_one->is_used = true;
		snprintf(free_one->reason, sizeof(free_one->reason), "%s", reason);
	}
	return free_one;
}

static const char *text_of(const struct filter_answer *answer, const char *member)
{
	return object_meta_text(json_object_get(answer->args->object, "Pod"), member);
}

static void send_failure_events(struct recorder *r, const struct job *job)
{
	struct filter_event says[FILTER_EVENTS_MAX];
	const char *uid = text_of(job->answer, "uid");
	struct pod *p = uid ? string_map_find(&r->pods, uid) : NULL;
	unsigned count = p ? filter_failure_events(job->answer, says) : 0;
	for (unsigned i = 0; i < count; i++) {
		struct pod_event *pod_event = pod_event_of(p, says[i].reason);
		if (pod_event)
			send_event(r, p, pod_event, p->filtered_since_event, true, FILTER_FAIL,
				   says[i].text);
	}
	if (p)
		p->filtered_since_event = 0;
}

static void drop_job(struct recorder *r, struct job *job)
{
	TAILQ_REMOVE(&r->jobs, job, link);
	r->job_count--;
	filter_answer_put(job->answer);
	free(job);
}

/* Does one job per run of the loop, so that calls are answered between jobs. */
static void work(void *data)
{
	struct recorder *r = data;
	struct job *job = TAILQ_FIRST(&r->jobs);
	if (!job)
		return;
	send_failure_events(r, job);
	drop_job(r, job);
	if (r->job_count)
		alarm_set(kube_client_reactor(r->client), &r->work, 0);
}

static bool add_job(struct recorder *r, struct filter_answer *answer)
{
	struct job *job = r->job_count < JOBS_MOST ? calloc(1, sizeof(*job)) : NULL;
	if (!job)
		return false;
	job->answer = filter_answer_get(answer);
	TAILQ_INSERT_TAIL(&r->jobs, job, link);
	if (r->job_count++ == 0)
		alarm_set(kube_client_reactor(r->client), &r->work, 0);
	return true;
}

/* True if both rate limits permit to report this filter call. If only r->nodes refuses, the token of r->events is lost. */
static bool may_send(struct recorder *r, size_t nodes, uint64_t now_ns)
{
	return !token_bucket_take(&r->events, 1, now_ns) &&
	       !token_bucket_take(&r->nodes, nodes, now_ns);
}

static void record_failure(struct recorder *r, struct pod *p, struct filter_answer *answer)
{
	uint64_t now_ns = clock_now_ns();
	p->filtered_since_event++;
	if (now_ns < p->due_ns || !may_send(r, p->unfit, now_ns) || !add_job(r, answer)) {
		r->counts.suppressed++;
		return;
	}
	p->step_ns = p->step_ns ? p->step_ns * 2 : RECORDER_FIRST_NS;
	if (p->step_ns > RECORDER_INTERVAL_MAX_NS)
		p->step_ns = RECORDER_INTERVAL_MAX_NS;
	p->due_ns = now_ns + p->step_ns;
}

void recorder_record_filter(struct recorder *r, struct filter_answer *answer)
{
	const char *uid = text_of(answer, "uid"), *name = text_of(answer, "name");
	const char *in = text_of(answer, "namespace");
	if (!uid || !name || !in || *answer->error || !answer->args->is_by_names)
		return;
	struct pod *p = find_or_add_pod(r, uid, in, name);
	if (!p)
		return;
	p->fit = answer->fits;
	p->unfit = answer->args->count - answer->fits;
	if (!p->fit)
		record_failure(r, p, answer);
}

void recorder_record_placement(struct recorder *r, const struct decision *d, double score)
{
	char text[FILTER_TEXT_MAX];
	struct pod *p = string_map_find(&r->pods, d->uid);
	/* Kube-scheduler may choose the same node again; report a node only once. */
	if (!p || !strcmp(p->node, d->node))
		return;
	if (token_bucket_take(&r->events, 1, clock_now_ns())) {
		r->counts.suppressed++;
		return;
	}
	snprintf(p->node, sizeof(p->node), "%s", d->node);
	filter_success_text(d->node, score, p->fit, p->unfit, text, sizeof(text));
	send_event(r, p, &p->placed, 1, false, FILTER_SUCCEED, text);
}

struct recorder_counts recorder_counts(const struct recorder *r)
{
	struct recorder_counts counts = r ? r->counts : (struct recorder_counts){ 0 };
	counts.pods = r ? r->pod_count : 0;
	return counts;
}

int recorder_new(struct kube_client *client, const char *component, struct recorder **ret)
{
	struct recorder *r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->client = client;
	r->component = component ? component : "allot-scheduler";
	r->events.per_second = RECORDER_PER_SECOND;
	r->nodes.per_second = RECORDER_NODES;
	r->work = (struct alarm){ .handler = work, .data = r };
	TAILQ_INIT(&r->order);
	TAILQ_INIT(&r->jobs);
	*ret = r;
	return 0;
}

struct recorder *recorder_free(struct recorder *r)
{
	if (!r)
		return NULL;
	while (!TAILQ_EMPTY(&r->jobs))
		drop_job(r, TAILQ_FIRST(&r->jobs));
	while (!TAILQ_EMPTY(&r->order))
		forget_pod(r, TAILQ_FIRST(&r->order));
	alarm_clear(kube_client_reactor(r->client), &r->work);
	string_map_free(&r->pods);
	free(r);
	return NULL;
}
