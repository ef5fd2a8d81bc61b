/*
 * Makes room for a pod that fits no node: evicts opportunistic pods (opportunistic.h) and pods of lower priority.
 * (kube-scheduler's preemption does not know a card's memory and compute.) The filter call nominates a node, because only that
 * call names the nodes that the pod may use. Victims are chosen some seconds later, if the pod still waits. The room is kept
 * from pods that do not outrank the nominated pod, until that pod is placed or NOMINATION_MAX_NS have passed since the first
 * eviction.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler/model/model_gang.h"
#include "scheduler/model/model_inside.h"
#include "scheduler/opportunistic/opportunistic.h"

/* Wait this long before choosing victims: pods that end anyway may make the room. */
#define SETTLE_NS (UINT64_C(5) * 1000000000)

#define NOMINATION_MAX_NS (UINT64_C(120) * 1000000000)

struct nomination {
	const struct model_pod *pod;
	bool may_preempt; /* may evict pods of lower priority, not only opportunistic pods */
};

static bool may_evict(const struct model *m, const struct model_pod *pod,
		      const struct nomination *nomination)
{
	if (!pod->is_bound || pod->spared_until_ns > m->now_ns)
		return false;
	if (model_is_opportunistic(pod) && !m->keeps_opportunistic)
		return true;
	return nomination->may_preempt && pod->priority < nomination->pod->priority;
}

static bool has_any(const struct model *m, const struct model_node *node,
		    const struct nomination *nomination)
{
	const struct model_pod *p = node->pods;
	while (p && !may_evict(m, p, nomination))
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

/* Lists pods in the order of eviction, opportunistic ones first. Discharges pods that already leave. NULL: out of memory. */
static struct opportunistic *list_victims(const struct model *m, const struct model_node *node,
					  const struct nomination *nomination,
					  struct inventory *inventory, size_t *ret_count)
{
	size_t pods = 0, count = 0;
	for (const struct model_pod *p = node->pods; p; p = p->next)
		pods++;
	struct opportunistic *list = calloc(pods + 1, sizeof(*list));
	for (struct model_pod *p = node->pods; list && p; p = p->next)
		if (model_is_leaving(m, p))
			inventory_discharge(inventory, &p->charged->shares);
		else if (may_evict(m, p, nomination))
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

static const struct inventory_shares *shares_of_pod(const struct opportunistic *one)
{
	const struct model_pod *pod = one->pod;
	return &pod->charged->shares;
}

/* Marks victims in the list's order until the request fits, then spares each that is not needed. False if it never fits. */
static bool choose(struct model *m, struct inventory *inventory, struct opportunistic *list,
		   size_t count)
{
	size_t gone = 0;
	while (!fits(m, inventory)) {
		if (gone == count)
			return false;
		list[gone].is_victim = true;
		inventory_discharge(inventory, shares_of_pod(&list[gone++]));
	}
	for (size_t i = gone; i-- > 0;) {
		inventory_charge(inventory, shares_of_pod(&list[i]));
		list[i].is_victim = !fits(m, inventory);
		if (list[i].is_victim)
			inventory_discharge(inventory, shares_of_pod(&list[i]));
	}
	return true;
}

/* True if evictions make room on the node. False if it is kept for a pod or gang of higher rank. Always free *ret_list. */
static bool try_node(struct model *m, const struct model_node *node,
		     const struct nomination *nomination, struct opportunistic **ret_list,
		     size_t *ret_count)
{
	cleanup_inventory struct inventory inventory = { 0 };
	*ret_list = NULL;
	if (model_nominated_pod(m, node, nomination->pod->text, nomination->pod->priority) ||
	    model_backfill_bars(m, node, nomination->pod) || !has_any(m, node, nomination) ||
	    inventory_copy(&node->inventory, &inventory) < 0)
		return false;
	*ret_list = list_victims(m, node, nomination, &inventory, ret_count);
	return *ret_list && choose(m, &inventory, *ret_list, *ret_count);
}

void model_clear_nomination(struct model *m, struct model_pod *pod)
{
	if (!pod->nominated_node)
		return;
	if (pod->nominated_node->nominated_pod == pod) {
		pod->nominated_node->nominated_pod = NULL;
		model_capacity_freed(m);
	}
	model_node_put(m, pod->nominated_node);
	pod->nominated_node = NULL;
}

bool model_nomination_cost(struct model *m, const struct request *request, const char *uid,
			   bool may_preempt, const char *name, int32_t *ret_priority)
{
	const struct model_pod *pod = model_find_pod(m, uid);
	const struct model_node *node = model_find_node(m, name);
	cleanup_free struct opportunistic *list = NULL;
	size_t count;
	if (!pod || !pod->at_pending || !node || node->cards_error)
		return false;
	const struct nomination nomination = { pod, may_preempt };
	fit_begin(&m->fit, request);
	model_apply_quota(m, pod->pod_namespace);
	if (!try_node(m, node, &nomination, &list, &count))
		return false;
	*ret_priority = INT32_MIN;
	for (size_t i = 0; i < count; i++)
		if (list[i].is_victim && list[i].priority > *ret_priority)
			*ret_priority = list[i].priority;
	return true;
}

void model_nominate(struct model *m, const char *uid, bool may_preempt, const char *name)
{
	struct model_pod *pod = model_find_pod(m, uid);
	struct model_node *node = model_find_node(m, name);
	/* Nothing to do: the pod is nominated for this node already, or victims on another node were chosen for it. */
	if (!pod || !node || pod->nominated_node == node ||
	    (pod->nominated_node && pod->nominated_node->nominated_pod == pod))
		return;
	model_clear_nomination(m, pod);
	pod->nominated_node = model_node_get(m, node->name);
	pod->nominated_ns = m->now_ns;
	pod->may_preempt = may_preempt;
}

const struct model_pod *model_nominated_pod(const struct model *m, const struct model_node *node,
					    const char *uid, int32_t priority)
{
	const struct model_pod *pod = node->nominated_pod,
			       *asker = pod ? model_find_pod(m, uid) : NULL;
	if (!pod || pod == asker || priority > pod->priority)
		return NULL;
	/* Room kept for a gang's pod is open to the whole gang, which is placed together or not at all. */
	if (asker && asker->member && pod->member && asker->member->gang == pod->member->gang)
		return NULL;
	return pod;
}

/* Begins cooldowns (cooldown.h), else other opportunistic pods would take the room that the evicted pod borrowed. */
static void cooldown_cards(struct model *m, struct model_node *node,
			   const struct inventory_shares *allocation)
{
	for (unsigned i = 0; i < node->use.count && i < node->inventory.count; i++)
		if (inventory_shares_borrowed_pct(allocation, node->inventory.card[i].uuid) &&
		    node->use.card[i].cooldown_ns <= m->now_ns)
			model_cooldown_card(m, node, i);
}

/*
 * Names up to `most` victims to evict for the pod, and returns their number; the next call names further ones. But if this call
 * of model_take_displaced() has named victims for another pod (!is_first) and `most` is too few, names none and sets
 * *ret_waits, so that the next call can name all at once.
 */
static size_t displace(struct model *m, struct model_pod *pod, struct model_eviction *ret,
		       size_t most, bool is_first, bool *ret_waits)
{
	struct model_node *node = pod->nominated_node;
	const struct nomination nomination = { pod, pod->may_preempt };
	cleanup_free struct opportunistic *list = NULL;
	size_t count, needed = 0, named = 0;
	fit_begin(&m->fit, pod->request);
	model_apply_quota(m, pod->pod_namespace);
	if (!node->exists || node->cards_error || !try_node(m, node, &nomination, &list, &count))
		return 0;
	for (size_t i = 0; i < count; i++)
		needed += list[i].is_victim;
	*ret_waits = !is_first && needed > most;
	for (size_t i = 0; i < count && !*ret_waits; i++) {
		struct model_pod *victim = list[i].pod;
		if (!list[i].is_victim)
			continue;
		/*
		 * Keep the room for the pod. This is not needed if all victims are opportunistic and were named in this call:
		 * only opportunistic pods could take their room, and the cards are closed to them.
		 */
		if ((!model_is_opportunistic(victim) || named == most || node->nominated_pod) &&
		    node->nominated_pod != pod) {
			node->nominated_pod = pod;
			pod->room_kept_ns = m->now_ns;
		}
		if (named == most)
			break;
		model_start_eviction(m, victim, &ret[named]);
		ret[named].for_namespace = pod->pod_namespace;
		ret[named].for_pod = model_pod_name(pod);
		ret[named].is_preempted = !model_is_opportunistic(victim);
		ret[named++].is_displaced = true;
		cooldown_cards(m, node, &victim->charged->shares);
	}
	return named;
}

static bool has_victims(const struct model_pod *pod)
{
	return pod->nominated_node->nominated_pod == pod;
}

static bool needs_nomination(const struct model_pod *pod)
{
	return pod->request && !pod->charged && !pod->is_terminating;
}

/* A pod that wants room, and its place in the model's list, where the latest pod comes first. */
struct nominee {
	struct model_pod *pod;
	size_t place;
};

/* Orders as kube-scheduler's queue does: by priority, and among equals the pod that has waited longest comes first. */
static int compare_nominees(const void *one, const void *other)
{
	const struct nominee *a = one, *b = other;
	if (a->pod->priority != b->pod->priority)
		return a->pod->priority > b->pod->priority ? -1 : 1;
	if (a->pod->nominated_ns != b->pod->nominated_ns)
		return a->pod->nominated_ns < b->pod->nominated_ns ? -1 : 1;
	return (a->place < b->place) - (a->place > b->place);
}

/* Lists the pods that were nominated at least SETTLE_NS ago, in the order in which they get room. NULL: out of memory. */
static struct nominee *list_nominees(const struct model *m, size_t *ret_count)
{
	size_t count = 0;
	for (const struct model_pod *p = m->pending; p; p = p->next_pending)
		count += p->nominated_node != NULL;
	struct nominee *list = calloc(count + 1, sizeof(*list));
	count = 0;
	for (struct model_pod *p = m->pending; list && p; p = p->next_pending)
		if (p->nominated_node && m->now_ns - p->nominated_ns >= SETTLE_NS) {
			list[count] = (struct nominee){ p, count };
			count++;
		}
	if (list)
		qsort(list, count, sizeof(*list), compare_nominees);
	*ret_count = count;
	return list;
}

size_t model_take_displaced(struct model *m, struct model_eviction *ret, size_t most)
{
	size_t count = 0, nominees;
	bool waits = false;
	cleanup_free struct nominee *list = list_nominees(m, &nominees);
	for (size_t i = 0; list && i < nominees && count < most && !waits; i++) {
		struct model_pod *p = list[i].pod;
		const bool is_over = has_victims(p) &&
				     m->now_ns - p->room_kept_ns >= NOMINATION_MAX_NS;
		/* A pod that has victims may need more of them, because an eviction was refused or other pods took the room. */
		if (needs_nomination(p) && !is_over)
			count += displace(m, p, ret + count, most - count, !count, &waits);
		if (!needs_nomination(p) || is_over || (!has_victims(p) && !waits))
			model_clear_nomination(m, p);
	}
	return count;
}
