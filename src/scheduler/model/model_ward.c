/* The model's ward (ward.h): which nodes lone pods leave to a gang that has waited for long. */
#include "scheduler/gang/ward.h"
#include "scheduler/model/gang_room.h"
#include "scheduler/model/model_gang.h"

static void leave_node(void *data, void *thing)
{
	struct model_node *node = thing;
	node->is_warded = false;
}

void model_ward_end(struct model *m, const struct gang *gang)
{
	if (!gang || m->ward != gang)
		return;
	table_each(&m->nodes, leave_node, NULL);
	m->ward = NULL;
	/* Who was turned away there may go there now. */
	model_note_room(m);
}

void model_ward_consider(struct model *m, struct gang_rank *asker)
{
	struct gang *gang = asker->gang;
	const struct gang_roll roll = gang_roll_of(gang);
	if (!gang->lacks_since_ns)
		gang->lacks_since_ns = m->now_ns ? m->now_ns : 1;
	if (m->ward || !ward_is_due(gang->lacks_since_ns, m->now_ns, m->terms.gang_patience_ns))
		return;
	/* Whether it gets one or not: looked at again after another patience. */
	gang->lacks_since_ns = m->now_ns;
	if (!gang_room_ward(m, gang, asker, gang_missing(&roll)))
		return;
	m->ward = gang;
	m->ward_since_ns = m->now_ns;
}

void model_ward_advance(struct model *m)
{
	if (!m->ward)
		return;
	const struct gang_roll roll = gang_roll_of(m->ward);
	if (gang_judge(&roll) == GANG_JOINTLY && !ward_is_over(m->ward_since_ns, m->now_ns))
		return;
	if (m->ward->lacks_since_ns)
		m->ward->lacks_since_ns = m->now_ns;
	model_ward_end(m, m->ward);
}

bool model_ward_bars(const struct model *m, const struct model_node *node,
		     const struct model_pod *pod)
{
	if (!node->is_warded || (pod && pod->member && pod->member->gang == m->ward))
		return false;
	return !pod || !m->ward->first || pod->priority <= m->ward->first->pod->priority;
}

const char *model_ward_name(const struct model *m)
{
	return m->ward ? gang_name(m->ward) : "";
}
