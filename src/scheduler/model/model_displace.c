/*
 * Makes room for pods that fit no node but would without others: opportunistic pods (opportunistic.h), or pods of lower
 * priority. (kube-scheduler's preemption does not know a card's memory and compute.) The filter call chooses the node, because
 * only it knows where the pod may go; victims are chosen some seconds later, if the pod still waits. The room is kept from pods
 * that do not outrank this one, until it is placed or WANT_MOST_NS have passed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler/model/model_gang.h"
#include "scheduler/model/model_inside.h"
#include "scheduler/opportunistic/opportunistic.h"

/* Wait this long before choosing victims: pods that end anyway may make the room. */
#define SETTLE_NS (UINT64_C(5) * 1000000000)

#define WANT_MOST_NS (UINT64_C(120) * 1000000000)

struct wanting {
	const struct model_pod *pod;
	bool may_preempt; /* may evict pods of lower priority, not only opportunistic pods */
};

static bool may_end(const struct model *m, const struct model_pod *pod,
		    const struct wanting *for_whom)
{
	if (!pod->is_bound || pod->kept_ns > m->now_ns)
		return false;
	if (model_is_opportunistic(pod) && !m->keeps_opportunistic)
		return true;
	return for_whom->may_preempt && pod->priority < for_whom->pod->priority;
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
 * Lists the pods that may be evicted, in that order, opportunistic ones first. Discharges those that are leaving already. NULL
 * if memory runs out.
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

/*
 * Evicts in the list's order until there is room. Then spares, from the last to the first, each that is not needed. False if
 * there is no room even without all.
 */
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

/*
 * Whether evictions would make room on the node for m->fit's request, and filter would let the pod in. Free *ret_list in any
 * case.
 */
static bool try_node(struct model *m, const struct model_node *node, const struct wanting *for_whom,
		     struct opportunistic **ret_list, size_t *ret_count)
{
	cleanup_inventory struct inventory inventory = { 0 };
	*ret_list = NULL;
	if (model_kept_for(m, node, for_whom->pod->text, for_whom->pod->priority) ||
	    model_backfill_bars(m, node, for_whom->pod) || !has_any(m, node, for_whom) ||
	    inventory_copy(&node->inventory, &inventory) < 0)
		return false;
	*ret_list = list_victims(m, node, for_whom, &inventory, ret_count);
	return *ret_list && choose(m, &inventory, *ret_list, *ret_count);
}

/* ---- what pods want, as filter calls found ---- */

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
	const struct wanting for_whom = { pod, may_preempt };
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
	/* The pod wants this node already, or room on another node is being made for it. */
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
	const struct model_pod *pod = node->kept_for, *asker = pod ? model_find_pod(m, uid) : NULL;
	if (!pod || pod == asker || priority > pod->priority)
		return NULL;
	/* Room kept for a pod is open to its gang, which is placed together or not at all. */
	if (asker && asker->member && pod->member && asker->member->gang == pod->member->gang)
		return NULL;
	return pod;
}

/* ---- evictions ---- */

/* Closes the cards to opportunistic pods, which would take the room just made. */
static void cooldown_cards(struct model *m, struct model_node *node,
			   const struct inventory_hold *hold)
{
	for (unsigned i = 0; i < node->use.count && i < node->inventory.count; i++)
		if (inventory_hold_borrowed_pct(hold, node->inventory.card[i].uuid) &&
		    node->use.card[i].cooldown_ns <= m->now_ns)
			model_cooldown_card(m, node, i);
}

/* Names up to `most` victims that the pod still needs; the next call names others. */
static size_t displace(struct model *m, struct model_pod *pod, struct model_eviction *ret,
		       size_t most)
{
	struct model_node *node = pod->wants;
	const struct wanting for_whom = { pod, pod->may_preempt };
	cleanup_free struct opportunistic *list = NULL;
	size_t count, named = 0;
	fit_begin(&m->fit, pod->request);
	model_hold_to_quota(m, pod->pod_namespace);
	if (!node->is_there || node->aside || !try_node(m, node, &for_whom, &list, &count))
		return 0;
	for (size_t i = 0; i < count; i++) {
		struct model_pod *victim = list[i].pod;
		if (!list[i].goes)
			continue;
		/*
		 * Keep the room for the pod, unless all victims are opportunistic and named now: only such pods could take it,
		 * and the cards are closed to them.
		 */
		if (!model_is_opportunistic(victim) || named == most || node->kept_for)
			node->kept_for = pod;
		if (named == most)
			break;
		model_name_victim(m, victim, &ret[named]);
		ret[named].for_namespace = pod->pod_namespace;
		ret[named].for_pod = model_pod_name(pod);
		ret[named].is_preempted = !model_is_opportunistic(victim);
		ret[named++].is_displaced = true;
		cooldown_cards(m, node, &victim->charged->hold);
	}
	return named;
}

static bool has_victims(const struct model_pod *pod)
{
	return pod->wants->kept_for == pod;
}

static bool still_wants(const struct model_pod *pod)
{
	return pod->request && !pod->charged && !pod->is_ending;
}

/* A pod that wants room, and its place in the model's list, where the latest pod comes first. */
struct wish {
	struct model_pod *pod;
	size_t place;
};

/* Orders as kube-scheduler's queue does: by priority, and among equals the pod that has waited longest comes first. */
static int compare_wishes(const void *one, const void *other)
{
	const struct wish *a = one, *b = other;
	if (a->pod->priority != b->pod->priority)
		return a->pod->priority > b->pod->priority ? -1 : 1;
	if (a->pod->wants_ns != b->pod->wants_ns)
		return a->pod->wants_ns < b->pod->wants_ns ? -1 : 1;
	return (a->place < b->place) - (a->place > b->place);
}

/* Lists the pods whose victims may be named now, in the order in which they get room. Returns NULL if memory runs out. */
static struct wish *list_wishes(const struct model *m, size_t *ret_count)
{
	size_t count = 0;
	for (const struct model_pod *p = m->open; p; p = p->next_open)
		count += p->wants != NULL;
	struct wish *list = calloc(count + 1, sizeof(*list));
	count = 0;
	for (struct model_pod *p = m->open; list && p; p = p->next_open)
		if (p->wants && m->now_ns - p->wants_ns >= SETTLE_NS) {
			list[count] = (struct wish){ p, count };
			count++;
		}
	if (list)
		qsort(list, count, sizeof(*list), compare_wishes);
	*ret_count = count;
	return list;
}

size_t model_take_displaced(struct model *m, struct model_eviction *ret, size_t most)
{
	size_t count = 0, wishes;
	cleanup_free struct wish *list = list_wishes(m, &wishes);
	for (size_t i = 0; list && i < wishes && count < most; i++) {
		struct model_pod *p = list[i].pod;
		const bool is_over = has_victims(p) && m->now_ns - p->wants_ns >= WANT_MOST_NS;
		/* Name victims also for a pod that has some: more may be needed, or an eviction was refused. */
		if (still_wants(p) && !is_over)
			count += displace(m, p, ret + count, most - count);
		if (!still_wants(p) || is_over || !has_victims(p))
			model_forget_want(m, p);
	}
	return count;
}
