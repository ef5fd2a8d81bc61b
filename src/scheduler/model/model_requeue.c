/*
 * Finds pods that kube-scheduler should try again. It also retries by itself after a change, such as the end of a pod. But if
 * it learns of the change before the model does, the model rejects the pod once more, and the next try comes only minutes
 * later.
 */
#include "scheduler/model/model_gang.h"

/* After a change, first leave kube-scheduler this long to try by itself. */
#define OWN_RETRY_NS UINT64_C(2000000000)

void model_capacity_freed(struct model *m)
{
	m->capacity_epoch++;
	if (!m->capacity_freed_ns)
		m->capacity_freed_ns = m->now_ns;
}

void model_quota_freed(struct model *m, const struct model_namespace *name_space)
{
	for (struct model_pod *pod = m->pending; pod; pod = pod->next_pending) {
		if (pod->name_space == name_space && pod->member)
			pod->member->gang->failed_at = 0;
		if (pod->name_space == name_space && pod->unschedulable_at) {
			pod->unschedulable_at = 1;
			m->capacity_freed_ns = m->capacity_freed_ns ? m->capacity_freed_ns
								    : m->now_ns;
		}
	}
}

void model_set_unschedulable(struct model *m, const char *uid, bool is_unschedulable)
{
	struct model_pod *pod = model_find_pod(m, uid);
	if (pod)
		pod->unschedulable_at = is_unschedulable ? m->capacity_epoch + 1 : 0;
}

/* False if room became free after a filter call rejected the pod, so that it may fit now. True if no call rejected it. */
static bool is_rejection_current(const struct model *m, const struct model_pod *pod)
{
	return !pod->unschedulable_at || pod->unschedulable_at > m->capacity_epoch;
}

static bool is_requeue_due(const struct model *m, const struct model_pod *pod, bool is_late)
{
	if (pod->is_terminating)
		return false;
	return pod->is_requeue_requested ||
	       (is_late && !is_rejection_current(m, pod) && !pod->charged);
}

size_t model_take_requeue(struct model *m, struct model_requeue_pod *ret, size_t most)
{
	bool is_late = m->capacity_freed_ns && m->now_ns - m->capacity_freed_ns >= OWN_RETRY_NS;
	size_t count = 0;
	if (!is_late && !m->has_requeue_requests)
		return 0;
	for (struct model_pod *pod = m->pending; pod; pod = pod->next_pending) {
		if (!is_requeue_due(m, pod, is_late))
			continue;
		if (count == most)
			/* The caller's array is full; the next call returns the other pods. */
			return count;
		ret[count++] = (struct model_requeue_pod){ pod->pod_namespace, model_pod_name(pod) };
		pod->unschedulable_at = 0;
		pod->is_requeue_requested = false;
	}
	m->has_requeue_requests = false;
	if (is_late)
		m->capacity_freed_ns = 0;
	return count;
}
