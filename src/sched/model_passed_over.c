/*
 * Pods that were told of no room a moment too early. kube-scheduler tries one again on any news of the cluster, such as
 * another pod's end; where that comes to it before it comes here, it is told once more that there is no room, and
 * then tries again only minutes later, unless something else happens.
 */
#include "sched/model_inside.h"

/* It will have tried again by itself, if the news came here first. */
#define ITSELF_NS UINT64_C(2000000000)

void model_note_room(struct model *m)
{
	m->rooms++;
	if (!m->room_ns)
		m->room_ns = m->now_ns;
}

void model_note_room_in(struct model *m, const struct model_space *space)
{
	for (struct model_pod *pod = m->open; pod; pod = pod->next_open)
		if (pod->space == space && pod->turned_away_at) {
			pod->turned_away_at = 1;
			m->room_ns = m->room_ns ? m->room_ns : m->now_ns;
		}
}

void model_note_turned_away(struct model *m, const char *uid, bool is_turned_away)
{
	struct model_pod *pod = model_find_pod(m, uid);
	if (pod)
		pod->turned_away_at = is_turned_away ? m->rooms + 1 : 0;
}

/* Nothing of the cards has come since it was told so. */
static bool is_up_to_date(const struct model *m, const struct model_pod *pod)
{
	return !pod->turned_away_at || pod->turned_away_at > m->rooms;
}

size_t model_take_passed_over(struct model *m, struct model_passed_over *ret, size_t most)
{
	size_t count = 0;
	if (!m->room_ns || m->now_ns - m->room_ns < ITSELF_NS)
		return 0;
	for (struct model_pod *pod = m->open; pod; pod = pod->next_open) {
		if (is_up_to_date(m, pod) || pod->charged || pod->is_ending)
			continue;
		if (count == most)
			return count; /* the others come the next time */
		ret[count++] = (struct model_passed_over){ pod->pod_namespace, model_pod_name(pod) };
		pod->turned_away_at = 0;
	}
	m->room_ns = 0;
	return count;
}
