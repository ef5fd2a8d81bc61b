/* The model's backfill reservation (backfill_reservation.h), which keeps nodes for a gang that has waited long. */
#include "scheduler/gang/backfill_reservation.h"
#include "scheduler/model/gang_room.h"
#include "scheduler/model/model_gang.h"

static void leave_node(void *data, void *thing)
{
	struct model_node *node = thing;
	node->is_reserved = false;
}

void model_backfill_end(struct model *m, const struct gang *gang)
{
	if (!gang || m->reservation != gang)
		return;
	string_map_each(&m->nodes, leave_node, NULL);
	m->reservation = NULL;
	/* Pods that were rejected on these nodes may fit now. */
	model_capacity_freed(m);
}

void model_backfill_consider(struct model *m, struct gang_rank *asker)
{
	struct gang *gang = asker->gang;
	const struct gang_counts counts = gang_counts_of(gang);
	if (!gang->no_room_since_ns)
		gang->no_room_since_ns = m->now_ns ? m->now_ns : 1;
	if (m->reservation ||
	    !reservation_is_due(gang->no_room_since_ns, m->now_ns, m->terms.gang_patience_ns))
		return;
	/* Whether or not nodes are found, the gang is considered again only after gang_patience_ns. */
	gang->no_room_since_ns = m->now_ns;
	if (!gang_room_reservation(m, gang, asker, gang_count_to_place(&counts), &m->room_by_s))
		return;
	m->reservation = gang;
	m->reserved_since_ns = m->now_ns;
}

void model_backfill_advance(struct model *m)
{
	if (!m->reservation)
		return;
	const struct gang_counts counts = gang_counts_of(m->reservation);
	if (gang_judge(&counts) == GANG_PLACE_TOGETHER &&
	    !reservation_is_over(m->reserved_since_ns, m->now_ns))
		return;
	if (m->reservation->no_room_since_ns)
		m->reservation->no_room_since_ns = m->now_ns;
	model_backfill_end(m, m->reservation);
}

/* Whether Kubernetes would end the pod, if it began now, by the time at which the gang has room. */
static bool ends_in_time(const struct model *m, const struct model_pod *pod)
{
	return !pod->member && pod->lifetime_s && m->wall_s &&
	       m->wall_s + pod->lifetime_s <= m->room_by_s;
}

bool model_backfill_bars(const struct model *m, const struct model_node *node,
			 const struct model_pod *pod)
{
	if (!node->is_reserved || (pod && pod->member && pod->member->gang == m->reservation))
		return false;
	return !pod || !m->reservation->first ||
	       (pod->priority <= m->reservation->first->pod->priority && !ends_in_time(m, pod));
}

const char *model_backfill_name(const struct model *m)
{
	return m->reservation ? gang_name(m->reservation) : "";
}
