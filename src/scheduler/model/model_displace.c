/*
 * Pods that find no room, but would if others ended: opportunistic pods (opportunistic.h) whatever the priorities are, and pods of lower priority.
 * kube-scheduler's own preemption counts what kubelets count, and knows nothing of the memory and the time of a card. Which node
 * that is was found out by a filter's call, which alone knows where the pod may go; who goes is decided some seconds later, if
 * the pod still waits then. Until it sits there, or WANT_MOST_NS later, nobody who does not outrank it takes what was freed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler/model/model_inside.h"
#include "scheduler/opportunistic/opportunistic.h"

#define SETTLE_NS (UINT64_C(5) * 1000000000) /* what others are about to give back may do */

#define WANT_MOST_NS (UINT64_C(120) * 1000000000)

/* For whose sake others may end. */
struct wanting {
	int32_t priority;
	bool may_preempt; /* pods of lower priority, not opportunistic pods alone */
};

static bool may_end(const struct model *m, const struct model_pod *pod,
		    const struct wanting *for_whom)
{
	if (!pod->is_bound || pod->kept_ns > m->now_ns)
		return false;
	if (model_is_opportunistic(pod) && !m->keeps_opportunistic)
		return true;
	return for_whom->may_preempt && pod->priority < for_whom->priority;
}

static bool has_any(const struct model *m, const struct model_node *node,
		    const struct wanting *for_whom)
{
	const struct model_pod *p = node->pods;
	while (p && !may_end(m, p, for_whom))
		p = p->next;
	return p;
}

static void drop_inventory(struct inventory *inventory)
{
	inventory_free(inventory);
}
#define cleanup_inventory cleanup(drop_inventory)

static bool fits(struct model *m, const struct inventory *inventory)
{
	struct fit_reasons reasons;
	return fit_check(&m->fit, inventory, &reasons);
}

/*
 * All that could go, in the order in which they should, opportunistic pods first; who goes already is gone from the inventory. NULL: no
 * memory.
 */
static struct opportunistic *list_victims(const struct model *m, const struct model_node *node,
					  const struct wanting *for_whom,
					  struct inventory *inventory, size_t *ret_count)
{
	size_t pods = 0, count = 0;
	for (const struct model_pod *p = node->pods; p; p = p->next)
		pods++;
	struct opportunistic *list = calloc(pods + 1, sizeof(*list));
	for (struct model_pod *p = node->pods; list && p; p = p->next)
		if (model_is_going(m, p))
			inventory_discharge(inventory, &p->charged->hold);
		else if (may_end(m, p, for_whom))
			list[count++] = (struct opportunistic){
				.priority = model_is_opportunistic(p) ? INT32_MIN : p->priority,
				.since_s = p->since_s,
				.pod = p
			};
	*ret_count = count;
	if (list)
		opportunistic_sort(list, count);
	return list;
}

static const struct inventory_hold *hold_of(const struct opportunistic *one)
{
	const struct model_pod *pod = one->pod;
	return &pod->charged->hold;
}

/* One after the other goes until there is room; then who is not needed for it is spared, the highest first. */
static bool choose(struct model *m, struct inventory *inventory, struct opportunistic *list,
		   size_t count)
{
	size_t gone = 0;
	while (!fits(m, inventory)) {
		if (gone == count)
			return false;
		list[gone].goes = true;
		inventory_discharge(inventory, hold_of(&list[gone++]));
	}
	for (size_t i = gone; i-- > 0;) {
		inventory_charge(inventory, hold_of(&list[i]));
		list[i].goes = !fits(m, inventory);
		if (list[i].goes)
			inventory_discharge(inventory, hold_of(&list[i]));
	}
	return true;
}

/* Would there be room for what m->fit is about? *ret_list is to be freed. */
static bool try_node(struct model *m, const struct model_node *node, const struct wanting *for_whom,
		     struct opportunistic **ret_list, size_t *ret_count)
{
	cleanup_inventory struct inventory inventory = { 0 };
	*ret_list = NULL;
	if (!has_any(m, node, for_whom) || inventory_copy(&node->inventory, &inventory) < 0)
		return false;
	*ret_list = list_victims(m, node, for_whom, &inventory, ret_count);
	return *ret_list && choose(m, &inventory, *ret_list, *ret_count);
}

/* ---- a filter's call ---- */

void model_forget_want(struct model *m, struct model_pod *pod)
{
	if (!pod->wants)
		return;
	if (pod->wants->kept_for == pod) {
		pod->wants->kept_for = NULL;
		model_note_room(m);
	}
	model_node_give(m, pod->wants);
	pod->wants = NULL;
}

bool model_want_costs(struct model *m, const struct request *request, const char *uid,
		      bool may_preempt, const char *name, int32_t *ret_priority)
{
	const struct model_pod *pod = model_find_pod(m, uid);
	const struct model_node *node = model_find_node(m, name);
	cleanup_free struct opportunistic *list = NULL;
	size_t count;
	if (!pod || !pod->at_open || !node || node->aside)
		return false;
	const struct wanting for_whom = { pod->priority, may_preempt };
	fit_begin(&m->fit, request);
	model_hold_to_quota(m, pod->pod_namespace);
	if (!try_node(m, node, &for_whom, &list, &count))
		return false;
	*ret_priority = INT32_MIN;
	for (size_t i = 0; i < count; i++)
		if (list[i].goes && list[i].priority > *ret_priority)
			*ret_priority = list[i].priority;
	return true;
}

void model_want(struct model *m, const char *uid, bool may_preempt, const char *name)
{
	struct model_pod *pod = model_find_pod(m, uid);
	struct model_node *node = model_find_node(m, name);
	/* Others end for its sake already. */
	if (!pod || !node || pod->wants == node || (pod->wants && pod->wants->kept_for == pod))
		return;
	model_forget_want(m, pod);
	pod->wants = model_node_take(m, node->name);
	pod->wants_ns = m->now_ns;
	pod->may_preempt = may_preempt;
}

const struct model_pod *model_kept_for(const struct model *m, const struct model_node *node,
				       const char *uid, int32_t priority)
{
	const struct model_pod *pod = node->kept_for;
	return pod && strcmp(pod->text, uid) != 0 && priority <= pod->priority ? pod : NULL;
}

/* ---- the evictions ---- */

/* So that no other opportunistic pod takes what was made free. */
static void cooldown_cards(struct model *m, struct model_node *node,
			   const struct inventory_hold *hold)
{
	for (unsigned i = 0; i < node->use.count && i < node->inventory.count; i++)
		if (inventory_hold_borrowed_pct(hold, node->inventory.card[i].uuid) &&
		    node->use.card[i].cooldown_ns <= m->now_ns)
			model_cooldown_card(m, node, i);
}

static size_t displace(struct model *m, struct model_pod *pod, struct model_eviction *ret,
		       size_t most)
{
	struct model_node *node = pod->wants;
	const struct wanting for_whom = { pod->priority, pod->may_preempt };
	cleanup_free struct opportunistic *list = NULL;
	size_t count, named = 0;
	fit_begin(&m->fit, pod->request);
	model_hold_to_quota(m, pod->pod_namespace);
	if (!node->is_there || node->aside || !try_node(m, node, &for_whom, &list, &count))
		return 0;
	for (size_t i = 0; i < count && named < most; i++) {
		struct model_pod *victim = list[i].pod;
		if (!list[i].goes)
			continue;
		model_name_victim(m, victim, &ret[named]);
		ret[named].for_namespace = pod->pod_namespace;
		ret[named].for_pod = model_pod_name(pod);
		ret[named].is_preempted = !model_is_opportunistic(victim);
		ret[named++].is_displaced = true;
		cooldown_cards(m, node, &victim->charged->hold);
		/* Opportunistic pods' place nobody needs to be kept from but opportunistic pods, to whom their cards are shut. */
		if (!model_is_opportunistic(victim) && !node->kept_for)
			node->kept_for = pod;
	}
	return named;
}

/* Its victims were named, and it is to get their place. */
static bool has_victims(const struct model_pod *pod)
{
	return pod->wants->kept_for == pod;
}

static bool still_wants(const struct model_pod *pod)
{
	return pod->request && !pod->charged && !pod->is_ending;
}

size_t model_take_displaced(struct model *m, struct model_eviction *ret, size_t most)
{
	size_t count = 0;
	for (struct model_pod *p = m->open; p && count < most; p = p->next_open) {
		if (!p->wants)
			continue;
		const uint64_t since_ns = m->now_ns - p->wants_ns;
		if (has_victims(p)) {
			if (!still_wants(p) || since_ns >= WANT_MOST_NS)
				model_forget_want(m, p);
			continue;
		}
		if (since_ns < SETTLE_NS)
			continue;
		if (still_wants(p))
			count += displace(m, p, ret + count, most - count);
		if (!has_victims(p))
			model_forget_want(m, p);
	}
	return count;
}
