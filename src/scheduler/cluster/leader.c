#include "scheduler/cluster/leader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/client/watch.h"

#define PATH_MAX_BYTES 640

struct leader {
	struct leader_terms terms;
	struct election election;
	struct kube_watch *watch;
	struct kube_call *call;  /* NULL if no call is under way */
	enum election_step step; /* the step of `call` */
	uint64_t began_ns;
	struct alarm check, give_up;
	/* version of the lease that the watch reported during `call`, to be compared with the call's result; "" if none */
	char passed_over[LEASE_VERSION_MAX];
	bool was_leader; /* the state that the last call of `changed` reported */
	bool is_named;   /* the watch's latest list contains the lease */
	bool is_unread;  /* the lease is malformed, which was logged */
	bool fails;      /* the watch fails, which was logged */
	bool is_releasing;
};

static void run_step(struct leader *l);

/* This clock counts while the machine sleeps, because a lease may expire meanwhile. */
static uint64_t now_ns(void)
{
	return clock_read_ns(CLOCK_BOOTTIME);
}

void leader_make_identity(char text[LEADER_IDENTITY_MAX])
{
	char host[65] = "";
	uint64_t random = 0;
	if (gethostname(host, sizeof(host) - 1) < 0)
		host[0] = '\0';
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = clock_read_ns(CLOCK_REALTIME) ^ (uint64_t)getpid();
	snprintf(text, LEADER_IDENTITY_MAX, "%s_%016llx", host[0] ? host : "allot-scheduler",
		 (unsigned long long)random);
}

static void observe(struct leader *l, const json_t *object)
{
	struct lease lease;
	struct error err;
	if (!object || lease_read(object, &lease, &err) >= 0) {
		l->is_unread = false;
		election_observe(&l->election, object ? &lease : NULL, now_ns());
	} else {
		/* A replica does not overwrite a malformed lease: an operator must repair or delete it. */
		if (!l->is_unread)
			log_warning("lease %s/%s: %s; delete this lease, so that a leader can be "
				    "elected",
				    l->terms.in_namespace, l->terms.name, err.text);
		l->is_unread = true;
		election_write_failed(&l->election, false, now_ns());
		election_invalidate(&l->election);
	}
}

/* Versions of an object are increasing numbers. Any other text counts as newer if it differs. */
static bool is_newer(const char *version, const char *than)
{
	size_t length = strlen(version), other = strlen(than);
	bool is_number = length && strspn(version, "0123456789") == length &&
			 strspn(than, "0123456789") == other;
	if (!is_number)
		return strcmp(version, than) != 0;
	return length != other ? length > other : strcmp(version, than) > 0;
}

/* Handles a lease that the watch reports. The watch may be late, so versions older than the known one are ignored. */
static void observe_event(struct leader *l, const json_t *object, bool is_there)
{
	const json_t *meta = json_object_get(object, "metadata");
	const char *version = json_string_value(json_object_get(meta, "resourceVersion"));
	if (!version || !is_newer(version, l->election.seen.version))
		return;
	if (l->call) {
		snprintf(l->passed_over, sizeof(l->passed_over), "%s", version);
		return;
	}
	observe(l, is_there ? object : NULL);
	run_step(l);
}

static void watch_list_begun(void *data)
{
	struct leader *l = data;
	l->is_named = false;
}

static void watch_changed(void *data, json_t *object)
{
	struct leader *l = data;
	l->is_named = true;
	observe_event(l, object, true);
}

static void watch_deleted(void *data, json_t *object)
{
	observe_event(data, object, false);
}

/* If the lease was seen but is missing in the watch's list, reads the lease itself: the list may be older than the lease. */
static void watch_synced(void *data)
{
	struct leader *l = data;
	if (l->is_named || !l->election.exists || l->call)
		return;
	election_invalidate(&l->election);
	run_step(l);
}

static void watch_failed(void *data, const struct error *err)
{
	struct leader *l = data;
	if (err && !l->fails)
		log_debug("lease %s/%s: %s", l->terms.in_namespace, l->terms.name, err->text);
	l->fails = err != NULL;
}

static void handle_answer(struct leader *l, const struct kube_answer *answer)
{
	struct lease lease;
	bool is_conflict = answer->status == 409;
	if (l->step == ELECTION_READ && (answer->status == 404 || !answer->err.code)) {
		observe(l, answer->err.code ? NULL : answer->object);
		return;
	}
	if (!answer->err.code && lease_read(answer->object, &lease, NULL) >= 0) {
		election_write_succeeded(&l->election, l->step, &lease, l->began_ns, now_ns());
		return;
	}
	/* 404 is not logged: the lease was deleted, and the next read will show that. */
	if (answer->err.code && !is_conflict && answer->status != 404)
		log_debug("lease %s/%s: %s", l->terms.in_namespace, l->terms.name, answer->err.text);
	election_write_failed(&l->election, is_conflict || answer->status == 404, now_ns());
}

static void answered(void *data, const struct kube_answer *answer)
{
	struct leader *l = data;
	l->call = NULL;
	handle_answer(l, answer);
	if (l->passed_over[0] && is_newer(l->passed_over, l->election.seen.version))
		election_invalidate(&l->election);
	l->passed_over[0] = '\0';
	run_step(l);
}

static void start_call(struct leader *l, enum election_step step)
{
	const char *in = l->terms.in_namespace, *name = l->terms.name;
	struct lease lease;
	cleanup_free char *body = NULL;
	char path[PATH_MAX_BYTES];
	bool is_create = step == ELECTION_CREATE;
	bool is_read = step == ELECTION_READ;
	snprintf(path, sizeof(path), "/apis/coordination.k8s.io/v1/namespaces/%s/leases%s%s", in,
		 is_create ? "" : "/", is_create ? "" : name);
	election_make_lease(&l->election, step, clock_read_ns(CLOCK_REALTIME), &lease);
	if (!is_read)
		body = is_create ? lease_body(in, name, &lease) : lease_patch(&lease);
	struct kube_request request = {
		.method = is_read     ? "GET"
			  : is_create ? "POST"
				      : "PATCH",
		.path = path,
		.type = is_read     ? NULL
			: is_create ? KUBE_JSON
				    : KUBE_MERGE_PATCH,
		.body = body,
		/* leaves time to repeat a renewal before the deadline */
		.timeout_ns = l->election.terms.deadline_ns / 3,
	};
	l->step = step;
	l->began_ns = now_ns();
	if (is_read || body)
		l->call = kube_call_start(l->terms.client, &request, NULL, answered, l);
	if (!l->call)
		election_write_failed(&l->election, false, now_ns());
}

static void report_change(struct leader *l)
{
	bool is_leader = election_may_act(&l->election, now_ns());
	if (is_leader == l->was_leader)
		return;
	l->was_leader = is_leader;
	l->terms.changed(l->terms.data, is_leader);
}

static void end_release(void *data)
{
	struct leader *l = data;
	struct reactor *reactor = kube_client_reactor(l->terms.client);
	l->is_releasing = false;
	l->call = kube_call_drop(l->call);
	l->watch = kube_watch_stop(l->watch);
	alarm_clear(reactor, &l->check);
	alarm_clear(reactor, &l->give_up);
	if (l->terms.released)
		l->terms.released(l->terms.data);
}

static void set_check(struct leader *l, uint64_t when_ns)
{
	uint64_t at_ns = now_ns();
	alarm_set(kube_client_reactor(l->terms.client), &l->check,
		  when_ns > at_ns ? when_ns - at_ns : 0);
}

static void run_step(struct leader *l)
{
	struct election *e = &l->election;
	uint64_t when_ns = 0;
	enum election_step step = ELECTION_WAIT;
	if (!l->call)
		step = election_next(e, now_ns(), &when_ns);
	report_change(l);
	if (step == ELECTION_OVER) {
		/* Use an alarm, because end_release() frees the watch and the call, whose callback may be running now. */
		if (l->is_releasing)
			alarm_set(kube_client_reactor(l->terms.client), &l->give_up, 0);
		return;
	}
	if (step != ELECTION_WAIT)
		start_call(l, step);
	/* Even while a call is under way, wake up at the deadline, when a leader must stop. */
	if (step != ELECTION_WAIT || l->call) {
		uint64_t end_ns = e->renewed_ns + e->terms.deadline_ns;
		when_ns = now_ns() + e->terms.retry_ns;
		when_ns = l->was_leader && end_ns < when_ns ? end_ns : when_ns;
	}
	set_check(l, when_ns);
}

static void check(void *data)
{
	run_step(data);
}

int leader_start(const struct leader_terms *terms, struct leader **ret)
{
	static const struct watch_handlers handlers = { .list_begun = watch_list_begun,
							.object = watch_changed,
							.deleted = watch_deleted,
							.synced = watch_synced,
							.failed = watch_failed };
	char collection[PATH_MAX_BYTES], selector[PATH_MAX_BYTES];
	struct leader *l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->terms = *terms;
	l->check = (struct alarm){ .handler = check, .data = l };
	l->give_up = (struct alarm){ .handler = end_release, .data = l };
	election_init(&l->election, &terms->election);
	snprintf(collection, sizeof(collection),
		 "/apis/coordination.k8s.io/v1/namespaces/%s/leases", terms->in_namespace);
	snprintf(selector, sizeof(selector), "fieldSelector=metadata.name%%3D%s", terms->name);
	l->watch = kube_watch_start(terms->client, collection, selector, &handlers, l);
	if (!l->watch) {
		leader_free(l);
		return -ENOMEM;
	}
	set_check(l, 0);
	*ret = l;
	return 0;
}

struct leader *leader_free(struct leader *l)
{
	if (!l)
		return NULL;
	kube_call_drop(l->call);
	kube_watch_stop(l->watch);
	alarm_clear(kube_client_reactor(l->terms.client), &l->check);
	alarm_clear(kube_client_reactor(l->terms.client), &l->give_up);
	free(l);
	return NULL;
}

bool leader_may_act(const struct leader *l)
{
	return election_may_act(&l->election, now_ns());
}

void leader_release(struct leader *l)
{
	if (l->is_releasing)
		return;
	l->is_releasing = true;
	election_stop(&l->election);
	report_change(l);
	alarm_set(kube_client_reactor(l->terms.client), &l->give_up, LEADER_RELEASE_LIMIT_NS);
	/* run_step() waits for a renewal under way: the release must name the version that the renewal creates. */
	set_check(l, 0);
}

const char *leader_holder(const struct leader *l)
{
	return l->election.seen.holder;
}
