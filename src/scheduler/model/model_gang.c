#include "scheduler/model/model_gang.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler/gang/gang_read.h"

/* kube-scheduler may miss a request to retry, so pods with reserved room and no bind call are retried at this interval. */
#define RETRY_INTERVAL_NS UINT64_C(5000000000)

enum gang_state gang_state_of(const struct gang_rank *member)
{
	const struct model_pod *pod = member->pod;
	if (pod->is_bound)
		return pod->annotated.node || pod->reserved.node ? GANG_BOUND : GANG_NEEDS_NO_CARDS;
	if (member->is_binding)
		return GANG_BINDING;
	if (pod->is_terminating || member->is_gated)
		return GANG_ABSENT;
	if (pod->request && !pod->request->count)
		return GANG_NEEDS_NO_CARDS;
	if (pod->reserved.node)
		return member->waits_to_bind ? GANG_WAITS_TO_BIND : GANG_RESERVED;
	return GANG_PENDING;
}

struct gang_counts gang_counts_of(const struct gang *gang)
{
	struct gang_counts counts = { .size = gang->size };
	for (const struct gang_rank *m = gang->first; m; m = m->next)
		counts.count[gang_state_of(m)]++;
	return counts;
}

static bool is_reserved(enum gang_state state)
{
	return state == GANG_RESERVED || state == GANG_WAITS_TO_BIND;
}

static void retry(struct model *m, struct gang_rank *member)
{
	member->pod->is_requeue_requested = true;
	m->has_requeue_requests = true;
}

static bool was_unschedulable(const struct gang_rank *member)
{
	return member->pod->unschedulable_at > 0;
}

/* Without `is_any`, retries only pods that a filter call rejected: kube-scheduler will try the others soon anyway. */
static void retry_each(struct model *m, const struct gang *gang, enum gang_state state, bool is_any)
{
	for (struct gang_rank *one = gang->first; one; one = one->next)
		if (gang_state_of(one) == state && (is_any || was_unschedulable(one)))
			retry(m, one);
}

static void model_gang_release(struct model *m, struct gang *gang)
{
	for (struct gang_rank *one = gang->first; one; one = one->next)
		if (is_reserved(gang_state_of(one)))
			model_drop_reserved(m, one->pod);
	gang->reserved_until_ns = 0;
}

void model_gang_all_reserved(struct model *m, struct gang *gang, const struct gang_rank *but)
{
	gang->reserved_until_ns = m->now_ns + m->terms.gang_hold_ns;
	gang->retry_at_ns = m->now_ns + RETRY_INTERVAL_NS;
	gang->failed_at = gang->no_room_since_ns = 0;
	model_backfill_end(m, gang);
	for (struct gang_rank *one = gang->first; one; one = one->next) {
		if (!is_reserved(gang_state_of(one)))
			continue;
		one->waits_to_bind = false;
		one->pod->reserved.expires_ns = gang->reserved_until_ns;
		if (one != but && was_unschedulable(one))
			retry(m, one);
	}
}

void model_gang_failed(struct model *m, struct gang_rank *asker, unsigned fits)
{
	struct gang *gang = asker->gang;
	const struct gang_counts counts = gang_counts_of(gang);
	if (!gang_has_begun(&counts))
		model_gang_release(m, gang);
	gang->failed_at = m->capacity_epoch + 1;
	gang->failed_candidates = asker->candidates;
	gang->failed_fits = fits;
}

bool model_gang_would_fail(const struct model *m, const struct gang_rank *asker)
{
	const struct gang *gang = asker->gang;
	return gang->failed_at == m->capacity_epoch + 1 &&
	       gang->failed_candidates == asker->candidates;
}

void model_gang_reserved(struct model *m, struct gang_rank *member)
{
	struct gang *gang = member->gang;
	const struct gang_counts counts = gang_counts_of(gang);
	if (!gang->size || gang_has_begun(&counts))
		return;
	if (!gang->reserved_until_ns)
		gang->reserved_until_ns = m->now_ns + m->terms.gang_hold_ns;
	member->pod->reserved.expires_ns = gang->reserved_until_ns;
}

/*
 * Finds the gang's size again after its pods changed. Drops the gang's reservations if too few pods exist or the sizes that
 * they name differ, unless a pod is bound or being bound.
 */
static void update_size(struct model *m, struct gang *gang)
{
	gang->size = gang->conflicting_size = 0;
	for (const struct gang_rank *one = gang->first; one; one = one->next)
		if (!gang->size)
			gang->size = one->size;
		else if (one->size && one->size != gang->size)
			gang->conflicting_size = one->size;
	for (const struct gang_rank *one = gang->first; one; one = one->next)
		if (gang_state_of(one) == GANG_ABSENT)
			model_drop_reserved(m, one->pod);
	const struct gang_counts counts = gang_counts_of(gang);
	bool is_there = gang->size && gang_count_present(&counts) >= gang->size;
	if ((!is_there || gang->conflicting_size) && !gang_has_begun(&counts))
		model_gang_release(m, gang);
	if (is_there != gang->was_complete)
		gang->failed_at = 0;
	if (is_there && !gang->was_complete)
		retry_each(m, gang, GANG_PENDING, false);
	gang->was_complete = is_there;
}

static struct gang *find_or_make(struct model *m, const char *pod_namespace,
				 const struct gang_annotations *annotations)
{
	char key[GANG_NAME_MAX * 2 + 2];
	size_t at = strlen(pod_namespace) + 1, size = at + strlen(annotations->name) + 1;
	if (size > sizeof(key))
		return NULL;
	memcpy(key, pod_namespace, at);
	key[at - 1] = '/';
	memcpy(key + at, annotations->name, size - at);
	struct gang *gang = string_map_find(&m->gangs, key);
	if (gang)
		return gang;
	gang = calloc(1, sizeof(*gang) + size);
	if (!gang)
		return NULL;
	memcpy(gang->text, key, size);
	gang->name_at = (uint16_t)at;
	gang->by = annotations->by;
	string_map_add(&m->gangs, &gang->entry, gang->text);
	return gang;
}

static int join(struct model *m, struct model_pod *pod, struct gang *gang)
{
	struct gang_rank *member = calloc(1, sizeof(*member)), **at = &gang->first;
	if (!member) {
		if (!gang->first) {
			string_map_remove(&m->gangs, &gang->entry);
			free(gang);
		}
		return -ENOMEM;
	}
	*member = (struct gang_rank){ .gang = gang, .pod = pod };
	while (*at)
		at = &(*at)->next;
	*at = member;
	pod->member = member;
	/* The membership changed, and a new pod may replace one for which no bind call came: forget failures. */
	gang->failed_at = gang->backoff_until_ns = 0;
	gang->failures = 0;
	return 0;
}

void model_gang_leave(struct model *m, struct model_pod *pod)
{
	struct gang_rank *member = pod->member;
	if (!member)
		return;
	struct gang *gang = member->gang;
	struct gang_rank **at = &gang->first;
	while (*at != member)
		at = &(*at)->next;
	*at = member->next;
	pod->member = NULL;
	gang->failed_at = 0;
	free(member->gang_error);
	json_decref(member->candidates);
	free(member);
	if (gang->first) {
		update_size(m, gang);
		return;
	}
	model_backfill_end(m, gang);
	string_map_remove(&m->gangs, &gang->entry);
	free(gang);
}

int model_gang_join(struct model *m, struct model_pod *pod, const struct kube_pod *from,
		    const struct gang_annotations *annotations, const struct error *gang_error,
		    struct error *err)
{
	if (!annotations->name) {
		model_gang_leave(m, pod);
		return 0;
	}
	struct gang *gang = find_or_make(m, pod->pod_namespace, annotations);
	if (pod->member && pod->member->gang != gang)
		model_gang_leave(m, pod);
	if (!gang || (!pod->member && join(m, pod, gang) < 0))
		return error_set_errno(err, ENOMEM, "gang");
	struct gang_rank *member = pod->member;
	free(member->gang_error);
	member->gang_error = gang_error->code ? strdup(gang_error->text) : NULL;
	member->size = annotations->size;
	member->is_gated = gang_is_gated(from->object);
	member->source = request_source(from);
	if (pod->is_bound)
		member->waits_to_bind = member->is_binding = false;
	update_size(m, gang);
	return 0;
}

void gang_set_candidates(struct gang_rank *member, json_t *names)
{
	if (json_equal(member->candidates, names))
		return;
	/* Pods of a gang mostly have the same nodes: share one list. */
	json_t *same = names;
	for (const struct gang_rank *one = member->gang->first; one; one = one->next)
		if (one->candidates && json_equal(one->candidates, names)) {
			same = one->candidates;
			break;
		}
	/*
	 * New candidate nodes permit a new search. But the failed search used its asker's nodes for each pod without a filter
	 * call of its own: if such a pod's first call names the same nodes, a new search would fail too.
	 */
	if (member->candidates || same != member->gang->failed_candidates)
		member->gang->failed_at = 0;
	json_incref(same);
	json_decref(member->candidates);
	member->candidates = same;
}

static void advance_one(void *data, void *thing)
{
	struct model *m = data;
	struct gang *gang = thing;
	if (gang->backoff_until_ns && gang->backoff_until_ns <= m->now_ns) {
		gang->backoff_until_ns = 0;
		retry_each(m, gang, GANG_PENDING, true);
	}
	if (gang->reserved_until_ns && gang->retry_at_ns <= m->now_ns) {
		gang->retry_at_ns = m->now_ns + RETRY_INTERVAL_NS;
		retry_each(m, gang, GANG_RESERVED, true);
	}
	if (!gang->reserved_until_ns || gang->reserved_until_ns > m->now_ns)
		return;
	const struct gang_counts counts = gang_counts_of(gang);
	if (gang_has_begun(&counts)) {
		gang->failures = 0;
		gang->reserved_until_ns = 0; /* each reservation has an expires_ns of its own */
		return;
	}
	model_gang_release(m, gang);
	gang->failures++;
	gang->backoff_until_ns = m->now_ns + gang_backoff_ns(gang->failures, m->terms.gang_hold_ns,
							     gang->entry.hash);
}

void model_gangs_advance(struct model *m)
{
	string_map_each(&m->gangs, advance_one, m);
	model_backfill_advance(m);
}

struct unsized {
	struct model_unsized *ret;
	size_t count, most;
};

static void take_unsized(void *data, void *thing)
{
	struct unsized *u = data;
	struct gang *gang = thing;
	bool is_broken = !*gang_name(gang) || (gang->first && gang->first->gang_error);
	if (gang->size || gang->is_size_reported || is_broken || u->count == u->most)
		return;
	gang->is_size_reported = true;
	u->ret[u->count++] = (struct model_unsized){ gang->text, gang->by };
}

size_t model_take_unsized(struct model *m, struct model_unsized *ret, size_t most)
{
	struct unsized u = { .ret = ret, .most = most };
	string_map_each(&m->gangs, take_unsized, &u);
	return u.count;
}
