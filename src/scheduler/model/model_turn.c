/* Decides when a gang's bindings begin: once bind calls for as many pods as its size wait. */
#include <stdio.h>

#include "scheduler/model/model_gang.h"

static struct gang_rank *member_of(const struct model *m, const char *uid)
{
	const struct model_pod *pod = model_find_pod(m, uid);
	return pod && pod->member && pod->member->gang->size ? pod->member : NULL;
}

void model_come(struct model *m, const char *uid, bool has_come)
{
	struct gang_rank *member = member_of(m, uid);
	enum gang_state state = member ? gang_state_of(member) : GANG_ABSENT;
	if (state == GANG_HELD || state == GANG_COME)
		member->has_come = has_come;
}

enum model_turn model_turn(const struct model *m, const char *uid)
{
	const struct model_pod *pod = model_find_pod(m, uid);
	const struct gang_rank *member = member_of(m, uid);
	if (!pod)
		return MODEL_TURN_LOST;
	const enum gang_state state = member ? gang_state_of(member) : GANG_EASY;
	/* GANG_GOES: an earlier binding began, with unknown result. */
	if (state == GANG_EASY || state == GANG_GOES)
		return MODEL_TURN_GO;
	const struct gang_roll roll = gang_roll_of(member->gang);
	if (state != GANG_COME)
		return MODEL_TURN_LOST;
	return gang_may_begin(&roll) ? MODEL_TURN_GO : MODEL_TURN_WAIT;
}

void model_go(struct model *m, const char *uid)
{
	struct gang_rank *member = member_of(m, uid);
	if (!member || gang_state_of(member) != GANG_COME)
		return;
	member->is_going = true;
	/* The reservation must last as long as a binding may take. */
	member->pod->reserved.expires_ns = m->now_ns + m->terms.hold_ns;
}

bool model_gang_keeps(struct model *m, struct gang_rank *member)
{
	member->is_going = member->has_come = false;
	const struct gang_roll roll = gang_roll_of(member->gang);
	if (!gang_has_begun(&roll) || !member->pod->reserved.node)
		return false;
	member->pod->reserved.expires_ns = m->now_ns + m->terms.gang_hold_ns;
	return true;
}

int model_turn_text(const struct model *m, const char *uid, char *text, size_t size)
{
	const struct gang_rank *member = member_of(m, uid);
	if (!model_find_pod(m, uid))
		return snprintf(text, size, "the pod no longer exists");
	if (!member)
		return snprintf(text, size, "the pod is in no gang and waits for no other pod");
	const struct gang_roll roll = gang_roll_of(member->gang);
	if (gang_state_of(member) != GANG_COME)
		return snprintf(text, size, "gang %.63s: its reservation of GPUs has expired",
				gang_name(member->gang));
	return snprintf(text, size, "gang %.63s: %u of %u pods are ready to be bound",
			gang_name(member->gang), gang_settled(&roll) + roll.count[GANG_COME],
			roll.size);
}
