#include "scheduler/extender/extender_gang.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/model/gang_room.h"
#include "scheduler/model/model_gang.h"

/* ---- answers and their texts ---- */

static void say(struct gang_answer *ret, enum gang_word word, const struct gang *gang,
		const char *format, ...) __attribute__((format(printf, 4, 5)));

static void say(struct gang_answer *ret, enum gang_word word, const struct gang *gang,
		const char *format, ...)
{
	va_list args;
	ret->word = word;
	int length = snprintf(ret->text, sizeof(ret->text),
			      "gang%s%.63s: ", *gang_name(gang) ? " " : "", gang_name(gang));
	va_start(args, format);
	vsnprintf(ret->text + length, sizeof(ret->text) - (size_t)length, format, args);
	va_end(args);
}

/* Writes why the gang cannot be placed, however much room there is. False if nothing is wrong. */
static bool say_wrong(const struct gang_rank *member, const struct gang_roll *roll,
		      struct gang_answer *ret)
{
	const struct gang *gang = member->gang;
	if (member->broken)
		say(ret, GANG_NOT_SO, gang, "%s", member->broken);
	else if (gang->other_size)
		say(ret, GANG_NOT_SO, gang,
		    "its pods state different sizes, %u and %u: must be the same", gang->size,
		    gang->other_size);
	else if (gang_judge(roll) == GANG_INCOMPLETE)
		say(ret, GANG_NOT_SO, gang, "%u of %u pods are there", gang_there(roll), roll->size);
	else
		return false;
	return true;
}

static void say_room(const struct gang *gang, const struct gang_roll *roll, size_t fits,
		     struct gang_answer *ret)
{
	say(ret, GANG_NOT_NOW, gang, "room for %zu of %u", gang_settled(roll) + fits, roll->size);
}

static void say_paused(const struct gang *gang, struct gang_answer *ret)
{
	say(ret, GANG_NOT_SO, gang,
	    "its pods were not all ready to be bound in time: other pods go first");
}

static void say_node(const struct gang_rank *member, struct gang_answer *ret)
{
	ret->node = member->pod->reserved.node->name;
	say(ret, GANG_AT_NODE, member->gang, "its GPUs are reserved on node %.253s", ret->node);
}

/* ---- filter ---- */

/* Whether the call names the node of the pod's reservation, and the pod still fits there. */
static bool stays(struct model *m, const struct gang_rank *member, const json_t *names)
{
	const struct model_node *node = member->pod->reserved.node;
	const json_t *name;
	size_t i;
	json_array_foreach(names, i, name)
	{
		if (!strcmp(json_string_value(name) ? json_string_value(name) : "", node->name))
			return gang_room_suits(m, member, node);
	}
	return false;
}

/* Searches room, together, for all pods that have none or whose reservation may be taken back. */
static void place_jointly(struct model *m, struct gang_rank *member, const struct gang_roll *roll,
			  struct gang_answer *ret)
{
	struct gang *gang = member->gang;
	if (gang->paused_until_ns) {
		say_paused(gang, ret);
		return;
	}
	if (model_gang_still_fails(m, member)) {
		model_backfill_consider(m, member);
		say_room(gang, roll, gang->failed_fits, ret);
		return;
	}
	size_t fits = gang_room_take(m, gang, member, gang_missing(roll));
	if (fits < gang_missing(roll)) {
		model_gang_failed(m, member, (unsigned)fits);
		model_backfill_consider(m, member);
		say_room(gang, roll, fits, ret);
		return;
	}
	model_gang_held(m, gang, member);
	if (gang_state_of(member) == GANG_HELD)
		say_node(member, ret);
	/* The reservations went to other pods of the gang: this pod is beyond its size and is placed alone. */
	else
		ret->word = GANG_AS_ANY;
}

static void answer(struct model *m, struct gang_rank *member, json_t *names, struct gang_answer *ret)
{
	struct gang_roll roll = gang_roll_of(member->gang);
	enum gang_verdict verdict = gang_judge(&roll);
	enum gang_state state = gang_state_of(member);
	bool has_room = state == GANG_HELD || state == GANG_COME;
	gang_note_asked(member, names);
	if (state == GANG_GOES) {
		say_node(member, ret);
		return;
	}
	if (has_room && verdict != GANG_JOINTLY) {
		if (stays(m, member, names) || gang_room_move(m, member)) {
			say_node(member, ret);
			return;
		}
		/* The pod no longer fits the reserved node, or the call does not name it, and no other node fits. */
		model_drop_reserved(m, member->pod);
		roll = gang_roll_of(member->gang);
		verdict = gang_judge(&roll);
	}
	if (verdict == GANG_JOINTLY)
		place_jointly(m, member, &roll, ret);
	else
		ret->word = GANG_AS_ANY;
}

void extender_gang_filter(struct model *m, const struct ask *ask, json_t *names,
			  struct gang_answer *ret)
{
	struct gang_rank *member = ask->lifted ? ask->lifted->member : NULL;
	*ret = (struct gang_answer){ .word = GANG_AS_ANY };
	if (!member)
		return;
	const struct gang_roll roll = gang_roll_of(member->gang);
	if (say_wrong(member, &roll, ret)) {
		gang_note_asked(member, names);
		return;
	}
	if (gang_judge(&roll) == GANG_LONE || gang_state_of(member) == GANG_EASY ||
	    !member->pod->request)
		return;
	/* answer() itself lifts the pod and puts it back, so undo ask_begin()'s lift meanwhile. */
	model_put_back(member->pod);
	answer(m, member, names, ret);
	model_lift(member->pod);
}

/* ---- bind ---- */

int extender_gang_check(struct model *m, const struct model_pod *pod, const char *node,
			struct error *err)
{
	const struct gang_rank *member = pod->member;
	struct gang_answer why;
	if (!member)
		return 0;
	const struct gang_roll roll = gang_roll_of(member->gang);
	if (say_wrong(member, &roll, &why))
		return error_set(err, EAGAIN, "%s", why.text);
	if (gang_judge(&roll) == GANG_JOINTLY)
		return error_set(err, EAGAIN, "gang %.63s: no GPUs are reserved for it yet",
				 gang_name(member->gang));
	if (pod->reserved.node && strcmp(pod->reserved.node->name, node) != 0)
		return error_set(err, ESTALE, "gang %.63s: its GPUs are reserved on node %.253s",
				 gang_name(member->gang), pod->reserved.node->name);
	return 0;
}

/* ---- explanations ---- */

bool extender_gang_why(const struct model_pod *pod, struct gang_answer *ret)
{
	const struct gang_rank *member = pod->member;
	if (!member || pod->is_bound || pod->is_ending)
		return false;
	const struct gang *gang = member->gang;
	const struct gang_roll roll = gang_roll_of(gang);
	enum gang_state state = gang_state_of(member);
	if (say_wrong(member, &roll, ret))
		return true;
	if (state == GANG_HELD || state == GANG_COME)
		say(ret, GANG_NOT_NOW, gang, "%u of %u pods are ready to be bound",
		    gang_settled(&roll) + roll.count[GANG_COME], roll.size);
	else if (state != GANG_WAITS || gang_judge(&roll) != GANG_JOINTLY)
		return false;
	else if (gang->paused_until_ns)
		say_paused(gang, ret);
	else if (gang->failed_at)
		say_room(gang, &roll, gang->failed_fits, ret);
	else
		say(ret, GANG_NOT_NOW, gang, "room for all %u is to be looked for", roll.size);
	return true;
}

/* ---- preempt ---- */

bool extender_gang_may_preempt(struct model *m, const struct ask *ask, int32_t priority)
{
	struct gang_rank *member = ask->lifted ? ask->lifted->member : NULL;
	struct gang_answer why;
	if (!member)
		return true;
	const struct gang_roll roll = gang_roll_of(member->gang);
	if (say_wrong(member, &roll, &why))
		return false;
	if (gang_judge(&roll) != GANG_JOINTLY || gang_state_of(member) == GANG_EASY)
		return true;
	if (member->gang->paused_until_ns)
		return false;
	model_put_back(member->pod);
	bool is_room = gang_room_without(m, member->gang, member, gang_missing(&roll), priority);
	model_lift(member->pod);
	return is_room;
}
