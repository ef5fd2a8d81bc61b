/* Decides when a gang's bindings begin: when enough pods for the gang's size have a waiting bind call. */
#include <stdio.h>

#include "scheduler/model/model_gang.h"

static struct gang_rank *member_of(const struct model *m, const char *uid)
{
	const struct model_pod *pod = model_find_pod(m, uid);
	return pod && pod->member && pod->member->gang->size ? pod->member : NULL;
}

void model_set_bind_waiting(struct model *m, const char *uid, bool waits_to_bind)
{
	struct gang_rank *member = member_of(m, uid);
	enum gang_state state = member ? gang_state_of(member) : GANG_ABSENT;
	if (state == GANG_RESERVED || state == GANG_WAITS_TO_BIND)
		member->waits_to_bind = waits_to_bind;
}

enum model_bind_permit model_bind_permit(const struct model *m, const char *uid)
{
	const struct model_pod *pod = model_find_pod(m, uid);
	const struct gang_rank *member = member_of(m, uid);
	if (!pod)
		return MODEL_PERMIT_UNRESERVED;
	const enum gang_state state = member ? gang_state_of(member) : GANG_NEEDS_NO_CARDS;
	/* GANG_BINDING: an earlier binding began, and its result is unknown. */
	if (state == GANG_NEEDS_NO_CARDS || state == GANG_BINDING)
		return MODEL_PERMIT_ALLOW;
	const struct gang_counts counts = gang_counts_of(member->gang);
	if (state != GANG_WAITS_TO_BIND)
		return MODEL_PERMIT_UNRESERVED;
	return gang_may_bind(&counts) ? MODEL_PERMIT_ALLOW : MODEL_PERMIT_WAIT;
}

void model_binding_started(struct model *m, const char *uid)
{
	struct gang_rank *member = member_of(m, uid);
	if (!member || gang_state_of(member) != GANG_WAITS_TO_BIND)
		return;
	member->is_binding = true;
	/* The reservation must last as long as a binding may take. */
	member->pod->reserved.expires_ns = m->now_ns + m->terms.hold_ns;
}

bool model_gang_keeps_reservation(struct model *m, struct gang_rank *member)
{
	member->is_binding = member->waits_to_bind = false;
	const struct gang_counts counts = gang_counts_of(member->gang);
	if (!gang_has_begun(&counts) || !member->pod->reserved.node)
		return false;
	member->pod->reserved.expires_ns = m->now_ns + m->terms.gang_hold_ns;
	return true;
}

int model_bind_permit_text(const struct model *m, const char *uid, char *text, size_t size)
{
	const struct gang_rank *member = member_of(m, uid);
	if (!model_find_pod(m, uid))
		return snprintf(text, size, "the pod no longer exists");
	if (!member)
		return snprintf(text, size, "the pod is in no gang and waits for no other pod");
	const struct gang_counts counts = gang_counts_of(member->gang);
	if (gang_state_of(member) != GANG_WAITS_TO_BIND)
		return snprintf(
			text, size,
			"gang %.63s: its reservation of GPUs has expired: kube-scheduler tries again",
			gang_name(member->gang));
	return snprintf(text, size, "gang %.63s: %u of %u pods are ready to be bound",
			gang_name(member->gang),
			gang_count_committed(&counts) + counts.count[GANG_WAITS_TO_BIND],
			counts.size);
}
