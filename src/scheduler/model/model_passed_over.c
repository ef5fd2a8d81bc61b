/*
 * Finds pods that were rejected a moment too early, so that kube-scheduler tries them again. It does so by itself after
 * changes, such as another pod's end. But if it learns of the change before the model does, the pod is rejected once more, and
 * the next try comes only minutes later.
 */
#include "scheduler/model/model_gang.h"

/* After a change, first leave kube-scheduler this long to try by itself. */
#define ITSELF_NS UINT64_C(2000000000)

void model_note_room(struct model *m)
{
	m->rooms++;
	if (!m->room_ns)
		m->room_ns = m->now_ns;
}

void model_note_room_in(struct model *m, const struct model_space *space)
{
	for (struct model_pod *pod = m->open; pod; pod = pod->next_open) {
		if (pod->space == space && pod->member)
			pod->member->gang->failed_at = 0;
		if (pod->space == space && pod->turned_away_at) {
			pod->turned_away_at = 1;
			m->room_ns = m->room_ns ? m->room_ns : m->now_ns;
		}
	}
}

void model_note_turned_away(struct model *m, const char *uid, bool is_turned_away)
{
	struct model_pod *pod = model_find_pod(m, uid);
	if (pod)
		pod->turned_away_at = is_turned_away ? m->rooms + 1 : 0;
}

/* Whether no room was freed since the pod was rejected. */
static bool is_up_to_date(const struct model *m, const struct model_pod *pod)
{
	return !pod->turned_away_at || pod->turned_away_at > m->rooms;
}

static bool is_passed_over(const struct model *m, const struct model_pod *pod, bool is_late)
{
	if (pod->is_ending)
		return false;
	return pod->is_called || (is_late && !is_up_to_date(m, pod) && !pod->charged);
}

size_t model_take_passed_over(struct model *m, struct model_passed_over *ret, size_t most)
{
	bool is_late = m->room_ns && m->now_ns - m->room_ns >= ITSELF_NS;
	size_t count = 0;
	if (!is_late && !m->has_called)
		return 0;
	for (struct model_pod *pod = m->open; pod; pod = pod->next_open) {
		if (!is_passed_over(m, pod, is_late))
			continue;
		if (count == most)
			return count; /* the next call returns the others */
		ret[count++] = (struct model_passed_over){ pod->pod_namespace, model_pod_name(pod) };
		pod->turned_away_at = 0;
		pod->is_called = false;
	}
	m->has_called = false;
	if (is_late)
		m->room_ns = 0;
	return count;
}
