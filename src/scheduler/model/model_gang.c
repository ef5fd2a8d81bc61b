#include "scheduler/model/model_gang.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler/gang/gang_read.h"

/* A retry may be lost, so pods with reserved room and no bind call are retried at this interval. */
#define CALL_AGAIN_NS UINT64_C(5000000000)

/* ---- states of pods and gangs ---- */

enum gang_state gang_state_of(const struct gang_rank *member)
{
	const struct model_pod *pod = member->pod;
	if (pod->is_bound)
		return pod->noted.node || pod->reserved.node ? GANG_BOUND : GANG_EASY;
	if (member->is_going)
		return GANG_GOES;
	if (pod->is_ending || member->is_gated)
		return GANG_ABSENT;
	if (pod->request && !pod->request->count)
		return GANG_EASY;
	if (pod->reserved.node)
		return member->has_come ? GANG_COME : GANG_HELD;
	return GANG_WAITS;
}

struct gang_roll gang_roll_of(const struct gang *gang)
{
	struct gang_roll roll = { .size = gang->size };
	for (const struct gang_rank *m = gang->first; m; m = m->next)
		roll.count[gang_state_of(m)]++;
	return roll;
}

static bool holds(enum gang_state state)
{
	return state == GANG_HELD || state == GANG_COME;
}

/* ---- retries: pods that kube-scheduler should try again ---- */

static void call(struct model *m, struct gang_rank *member)
{
	member->pod->is_called = true;
	m->has_called = true;
}

static bool was_turned_away(const struct gang_rank *member)
{
	return member->pod->turned_away_at > 0;
}

/*
 * Makes kube-scheduler try the pods in `state` again. Without `is_any`, only those that a filter call rejected: others may be
 * tried soon anyway.
 */
static void call_each(struct model *m, const struct gang *gang, enum gang_state state, bool is_any)
{
	for (struct gang_rank *one = gang->first; one; one = one->next)
		if (gang_state_of(one) == state && (is_any || was_turned_away(one)))
			call(m, one);
}

/* ---- reservations ---- */

static void model_gang_release(struct model *m, struct gang *gang)
{
	for (struct gang_rank *one = gang->first; one; one = one->next)
		if (holds(gang_state_of(one)))
			model_drop_reserved(m, one->pod);
	gang->held_until_ns = 0;
}

void model_gang_held(struct model *m, struct gang *gang, const struct gang_rank *but)
{
	gang->held_until_ns = m->now_ns + m->terms.gang_hold_ns;
	gang->call_at_ns = m->now_ns + CALL_AGAIN_NS;
	gang->failed_at = gang->lacks_since_ns = 0;
	model_backfill_end(m, gang);
	for (struct gang_rank *one = gang->first; one; one = one->next) {
		if (!holds(gang_state_of(one)))
			continue;
		one->has_come = false;
		one->pod->reserved.expires_ns = gang->held_until_ns;
		if (one != but && was_turned_away(one))
			call(m, one);
	}
}

void model_gang_failed(struct model *m, struct gang_rank *asker, unsigned fits)
{
	struct gang *gang = asker->gang;
	const struct gang_roll roll = gang_roll_of(gang);
	if (!gang_has_begun(&roll))
		model_gang_release(m, gang);
	gang->failed_at = m->rooms + 1;
	gang->failed_for = asker->asked;
	gang->failed_fits = fits;
}

bool model_gang_still_fails(const struct model *m, const struct gang_rank *asker)
{
	const struct gang *gang = asker->gang;
	return gang->failed_at == m->rooms + 1 && gang->failed_for == asker->asked;
}

void model_gang_reserved(struct model *m, struct gang_rank *member)
{
	struct gang *gang = member->gang;
	const struct gang_roll roll = gang_roll_of(gang);
	if (!gang->size || gang_has_begun(&roll))
		return;
	if (!gang->held_until_ns)
		gang->held_until_ns = m->now_ns + m->terms.gang_hold_ns;
	member->pod->reserved.expires_ns = gang->held_until_ns;
}

/* ---- joining and leaving a gang ---- */

/* Updates the gang's size from what members name, and whether enough are there. */
static void look(struct model *m, struct gang *gang)
{
	gang->size = gang->other_size = 0;
	for (const struct gang_rank *one = gang->first; one; one = one->next)
		if (!gang->size)
			gang->size = one->size;
		else if (one->size && one->size != gang->size)
			gang->other_size = one->size;
	for (const struct gang_rank *one = gang->first; one; one = one->next)
		if (gang_state_of(one) == GANG_ABSENT)
			model_drop_reserved(m, one->pod);
	const struct gang_roll roll = gang_roll_of(gang);
	bool is_there = gang->size && gang_there(&roll) >= gang->size;
	if ((!is_there || gang->other_size) && !gang_has_begun(&roll))
		model_gang_release(m, gang);
	if (is_there != gang->was_there)
		gang->failed_at = 0;
	if (is_there && !gang->was_there)
		call_each(m, gang, GANG_WAITS, false);
	gang->was_there = is_there;
}

static struct gang *find_or_make(struct model *m, const char *pod_namespace,
				 const struct gang_said *said)
{
	char key[GANG_NAME_MAX * 2 + 2];
	size_t at = strlen(pod_namespace) + 1, size = at + strlen(said->name) + 1;
	if (size > sizeof(key))
		return NULL;
	memcpy(key, pod_namespace, at);
	key[at - 1] = '/';
	memcpy(key + at, said->name, size - at);
	struct gang *gang = string_map_find(&m->gangs, key);
	if (gang)
		return gang;
	gang = calloc(1, sizeof(*gang) + size);
	if (!gang)
		return NULL;
	memcpy(gang->text, key, size);
	gang->name_at = (uint16_t)at;
	gang->by = said->by;
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
	/* The gang's members changed, and a new pod may replace one that never came: earlier failures do not count. */
	gang->failed_at = gang->paused_until_ns = 0;
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
	free(member->broken);
	json_decref(member->asked);
	free(member);
	if (gang->first) {
		look(m, gang);
		return;
	}
	model_backfill_end(m, gang);
	string_map_remove(&m->gangs, &gang->entry);
	free(gang);
}

int model_gang_take(struct model *m, struct model_pod *pod, const struct kube_pod *from,
		    const struct gang_said *said, const struct error *broken, struct error *err)
{
	if (!said->name) {
		model_gang_leave(m, pod);
		return 0;
	}
	struct gang *gang = find_or_make(m, pod->pod_namespace, said);
	if (pod->member && pod->member->gang != gang)
		model_gang_leave(m, pod);
	if (!gang || (!pod->member && join(m, pod, gang) < 0))
		return error_set_errno(err, ENOMEM, "gang");
	struct gang_rank *member = pod->member;
	free(member->broken);
	member->broken = broken->code ? strdup(broken->text) : NULL;
	member->size = said->size;
	member->is_gated = gang_is_gated(from->object);
	member->source = request_source(from);
	if (pod->is_bound)
		member->has_come = member->is_going = false;
	look(m, gang);
	return 0;
}

void gang_note_asked(struct gang_rank *member, json_t *names)
{
	if (json_equal(member->asked, names))
		return;
	/* Pods of a gang mostly have the same nodes: share one list. */
	json_t *same = names;
	for (const struct gang_rank *one = member->gang->first; one; one = one->next)
		if (one->asked && json_equal(one->asked, names)) {
			same = one->asked;
			break;
		}
	/*
	 * Other nodes permit a new search. A pod without a filter call was searched with the asking pod's nodes; if its own
	 * first call has the same, the failure stands.
	 */
	if (member->asked || same != member->gang->failed_for)
		member->gang->failed_at = 0;
	json_incref(same);
	json_decref(member->asked);
	member->asked = same;
}

/* ---- expiry of pauses and reservations ---- */

static void advance_one(void *data, void *thing)
{
	struct model *m = data;
	struct gang *gang = thing;
	if (gang->paused_until_ns && gang->paused_until_ns <= m->now_ns) {
		gang->paused_until_ns = 0;
		call_each(m, gang, GANG_WAITS, true);
	}
	if (gang->held_until_ns && gang->call_at_ns <= m->now_ns) {
		gang->call_at_ns = m->now_ns + CALL_AGAIN_NS;
		call_each(m, gang, GANG_HELD, true);
	}
	if (!gang->held_until_ns || gang->held_until_ns > m->now_ns)
		return;
	const struct gang_roll roll = gang_roll_of(gang);
	if (gang_has_begun(&roll)) {
		gang->failures = 0;
		gang->held_until_ns = 0; /* remaining reservations expire by themselves */
		return;
	}
	model_gang_release(m, gang);
	gang->failures++;
	gang->paused_until_ns = m->now_ns + gang_pause_ns(gang->failures, m->terms.gang_hold_ns,
							  gang->entry.hash);
}

void model_gangs_advance(struct model *m)
{
	string_map_each(&m->gangs, advance_one, m);
	model_backfill_advance(m);
}

/* ---- reports to other modules ---- */

struct unsized {
	struct model_unsized *ret;
	size_t count, most;
};

static void take_unsized(void *data, void *thing)
{
	struct unsized *u = data;
	struct gang *gang = thing;
	bool is_broken = !*gang_name(gang) || (gang->first && gang->first->broken);
	if (gang->size || gang->is_told || is_broken || u->count == u->most)
		return;
	gang->is_told = true;
	u->ret[u->count++] = (struct model_unsized){ gang->text, gang->by };
}

size_t model_take_unsized(struct model *m, struct model_unsized *ret, size_t most)
{
	struct unsized u = { .ret = ret, .most = most };
	string_map_each(&m->gangs, take_unsized, &u);
	return u.count;
}
