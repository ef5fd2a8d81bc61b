#include "scheduler/extender/extender_gang.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/model/gang_room.h"
#include "scheduler/model/model_gang.h"

static void set_answer(struct gang_answer *ret, enum gang_filter_result result,
		       const struct gang *gang, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void set_answer(struct gang_answer *ret, enum gang_filter_result result,
		       const struct gang *gang, const char *format, ...)
{
	va_list args;
	ret->result = result;
	int length = snprintf(ret->text, sizeof(ret->text),
			      "gang%s%.63s: ", *gang_name(gang) ? " " : "", gang_name(gang));
	va_start(args, format);
	vsnprintf(ret->text + length, sizeof(ret->text) - (size_t)length, format, args);
	va_end(args);
}

/* If more room would not help the gang (wrong annotations, or too few pods), writes why and returns true. */
static bool answer_if_invalid(const struct gang_rank *member, const struct gang_counts *counts,
			      struct gang_answer *ret)
{
	const struct gang *gang = member->gang;
	if (member->gang_error)
		set_answer(ret, GANG_FILTER_REJECT, gang, "%s", member->gang_error);
	else if (gang->conflicting_size)
		set_answer(ret, GANG_FILTER_REJECT, gang,
			   "its pods state different numbers of pods, %u and %u: must be the same",
			   gang->size, gang->conflicting_size);
	else if (gang_judge(counts) == GANG_INCOMPLETE)
		set_answer(ret, GANG_FILTER_REJECT, gang,
			   "only %u of its %u pods exist: none is placed before all exist",
			   gang_count_present(counts), counts->size);
	else
		return false;
	return true;
}

static void answer_no_room(const struct gang *gang, const struct gang_counts *counts, size_t fits,
			   struct gang_answer *ret)
{
	set_answer(ret, GANG_FILTER_NO_ROOM, gang,
		   "only %zu of its %u pods have room: all must be placed at once",
		   gang_count_committed(counts) + fits, counts->size);
}

static void answer_backoff(const struct gang *gang, struct gang_answer *ret)
{
	set_answer(
		ret, GANG_FILTER_REJECT, gang,
		"not all its pods were ready to be bound within gang_limit: it is tried again later");
}

static void answer_node(const struct gang_rank *member, struct gang_answer *ret)
{
	ret->node = member->pod->reserved.node->name;
	set_answer(ret, GANG_FILTER_NODE, member->gang, "its GPUs are reserved on node %.253s",
		   ret->node);
}

/* Whether the call names the pod's reserved node, and the pod still fits there. */
static bool still_fits(struct model *m, const struct gang_rank *member, const json_t *names)
{
	const struct model_node *node = member->pod->reserved.node;
	const json_t *name;
	size_t i;
	json_array_foreach(names, i, name)
	{
		if (!strcmp(json_string_value(name) ? json_string_value(name) : "", node->name))
			return gang_room_still_fits(m, member, node);
	}
	return false;
}

/* Searches once for room for all pods of the gang that have no room, or whose reservation may be taken back. */
static void place_together(struct model *m, struct gang_rank *member,
			   const struct gang_counts *counts, struct gang_answer *ret)
{
	struct gang *gang = member->gang;
	if (gang->backoff_until_ns) {
		answer_backoff(gang, ret);
		return;
	}
	if (model_gang_would_fail(m, member)) {
		model_backfill_consider(m, member);
		answer_no_room(gang, counts, gang->failed_fits, ret);
		return;
	}
	size_t fits = gang_room_reserve(m, gang, member, gang_count_to_place(counts));
	if (fits < gang_count_to_place(counts)) {
		model_gang_failed(m, member, (unsigned)fits);
		model_backfill_consider(m, member);
		answer_no_room(gang, counts, fits, ret);
		return;
	}
	model_gang_all_reserved(m, gang, member);
	if (gang_state_of(member) == GANG_RESERVED)
		answer_node(member, ret);
	/* Other pods of the gang got the reservations. This pod exceeds the gang's size and is placed alone. */
	else
		ret->result = GANG_FILTER_ALONE;
}

static void answer(struct model *m, struct gang_rank *member, json_t *names, struct gang_answer *ret)
{
	struct gang_counts counts = gang_counts_of(member->gang);
	enum gang_verdict verdict = gang_judge(&counts);
	enum gang_state state = gang_state_of(member);
	bool has_room = state == GANG_RESERVED || state == GANG_WAITS_TO_BIND;
	gang_set_candidates(member, names);
	if (state == GANG_BINDING) {
		answer_node(member, ret);
		return;
	}
	if (has_room && verdict != GANG_PLACE_TOGETHER) {
		if (still_fits(m, member, names) || gang_room_move(m, member)) {
			answer_node(member, ret);
			return;
		}
		/* The pod no longer fits the reserved node, or the call does not name it, and no other node fits. */
		model_drop_reserved(m, member->pod);
		counts = gang_counts_of(member->gang);
		verdict = gang_judge(&counts);
	}
	if (verdict == GANG_PLACE_TOGETHER)
		place_together(m, member, &counts, ret);
	else
		ret->result = GANG_FILTER_ALONE;
}

void extender_gang_filter(struct model *m, const struct extender_call *call, json_t *names,
			  struct gang_answer *ret)
{
	struct gang_rank *member = call->suspended ? call->suspended->member : NULL;
	*ret = (struct gang_answer){ .result = GANG_FILTER_ALONE };
	if (!member)
		return;
	const struct gang_counts counts = gang_counts_of(member->gang);
	if (answer_if_invalid(member, &counts, ret)) {
		gang_set_candidates(member, names);
		return;
	}
	if (gang_judge(&counts) == GANG_NONE || gang_state_of(member) == GANG_NEEDS_NO_CARDS ||
	    !member->pod->request)
		return;
	/* extender_call_begin() removed the pod's charge, but answer() needs it: restore it until answer() has returned. */
	model_restore_charge(member->pod);
	answer(m, member, names, ret);
	model_suspend_charge(member->pod);
}

int extender_gang_check(struct model *m, const struct model_pod *pod, const char *node,
			struct error *err)
{
	const struct gang_rank *member = pod->member;
	struct gang_answer why;
	if (!member)
		return 0;
	const struct gang_counts counts = gang_counts_of(member->gang);
	if (answer_if_invalid(member, &counts, &why))
		return error_set(err, EAGAIN, "%s", why.text);
	if (gang_judge(&counts) == GANG_PLACE_TOGETHER)
		return error_set(err, EAGAIN,
				 "gang %.63s: this pod can't be bound yet: no GPUs are reserved for "
				 "its gang; kube-scheduler tries again",
				 gang_name(member->gang));
	if (pod->reserved.node && strcmp(pod->reserved.node->name, node) != 0)
		return error_set(err, ESTALE,
				 "gang %.63s: this pod's GPUs are reserved on node %.253s, but "
				 "kube-scheduler chose another node; it tries again",
				 gang_name(member->gang), pod->reserved.node->name);
	return 0;
}

bool extender_gang_why(const struct model_pod *pod, struct gang_answer *ret)
{
	const struct gang_rank *member = pod->member;
	if (!member || pod->is_bound || pod->is_terminating)
		return false;
	const struct gang *gang = member->gang;
	const struct gang_counts counts = gang_counts_of(gang);
	enum gang_state state = gang_state_of(member);
	if (answer_if_invalid(member, &counts, ret))
		return true;
	if (state == GANG_RESERVED || state == GANG_WAITS_TO_BIND)
		set_answer(ret, GANG_FILTER_NO_ROOM, gang, "%u of %u pods are ready to be bound",
			   gang_count_committed(&counts) + counts.count[GANG_WAITS_TO_BIND],
			   counts.size);
	else if (state != GANG_PENDING || gang_judge(&counts) != GANG_PLACE_TOGETHER)
		return false;
	else if (gang->backoff_until_ns)
		answer_backoff(gang, ret);
	else if (gang->failed_at)
		answer_no_room(gang, &counts, gang->failed_fits, ret);
	else
		set_answer(
			ret, GANG_FILTER_NO_ROOM, gang,
			"room for its %u pods is searched when kube-scheduler next tries one of them",
			counts.size);
	return true;
}

bool extender_gang_may_preempt(struct model *m, const struct extender_call *call, int32_t priority)
{
	struct gang_rank *member = call->suspended ? call->suspended->member : NULL;
	struct gang_answer why;
	if (!member)
		return true;
	const struct gang_counts counts = gang_counts_of(member->gang);
	if (answer_if_invalid(member, &counts, &why))
		return false;
	if (gang_judge(&counts) != GANG_PLACE_TOGETHER ||
	    gang_state_of(member) == GANG_NEEDS_NO_CARDS)
		return true;
	if (member->gang->backoff_until_ns)
		return false;
	model_restore_charge(member->pod);
	bool is_room = gang_room_without(m, member->gang, member, gang_count_to_place(&counts),
					 priority);
	model_suspend_charge(member->pod);
	return is_room;
}
