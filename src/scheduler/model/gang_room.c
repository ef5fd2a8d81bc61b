#include "scheduler/model/gang_room.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/placement/score.h"
#include "scheduler/gang/backfill_reservation.h"

static void begin_fit(struct model *m, const struct model_pod *pod)
{
	fit_begin(&m->fit, pod->request);
	model_apply_quota(m, pod->pod_namespace);
}

/* Results of checking each node. A gang's pods are mostly alike, so for the next pod only the used node is checked again. */
struct scan {
	bool is_known;
	uint64_t source;     /* digest of the checked pod's request (request_source()) */
	const json_t *names; /* the nodes that were checked, by name */
	struct node_fit {
		struct model_node *node; /* NULL if no node has this name */
		double score;
		bool is_fit;
	} * of; /* one entry per name; owned */
	size_t count, most;
};

static void check_node(struct model *m, struct node_fit *of)
{
	struct fit_reasons reasons;
	const struct inventory *inventory = of->node ? &of->node->inventory : NULL;
	of->is_fit = inventory && !of->node->cards_error && inventory->count &&
		     fit_check(&m->fit, inventory, &reasons);
	of->score = of->is_fit ? place_cards_score(inventory->card, inventory->count) : 0;
}

static int check_nodes(struct model *m, struct scan *scan, const json_t *names)
{
	size_t i, count = json_array_size(names);
	const json_t *name;
	if (count > scan->most) {
		struct node_fit *more = realloc(scan->of, count * sizeof(*more));
		if (!more)
			return -1;
		scan->of = more;
		scan->most = count;
	}
	json_array_foreach(names, i, name)
	{
		const char *text = json_string_value(name);
		scan->of[i].node = text ? model_find_node(m, text) : NULL;
		check_node(m, &scan->of[i]);
	}
	scan->count = count;
	return 0;
}

/* Returns the node that the pod's policy ranks first. NULL if every node is too full, or kept for other pods. */
static struct node_fit *best_of(struct model *m, struct scan *scan, const struct gang_rank *member,
				const json_t *names)
{
	const struct request *request = member->pod->request;
	struct node_fit *best = NULL;
	bool is_known = scan->is_known && scan->names == names && scan->source == member->source;
	begin_fit(m, member->pod);
	scan->is_known = is_known || check_nodes(m, scan, names) >= 0;
	scan->source = member->source;
	scan->names = names;
	for (size_t i = 0; scan->is_known && i < scan->count; i++) {
		struct node_fit *one = &scan->of[i];
		double ahead = best ? one->score - best->score : 0;
		if (one->is_fit && !model_backfill_bars(m, one->node, member->pod) &&
		    !model_nominated_pod(m, one->node, member->pod->text, member->pod->priority) &&
		    (!best || (request->node_policy == REQUEST_NODES_SPREAD ? ahead < 0 : ahead > 0)))
			best = one;
	}
	return best;
}

static bool choose_cards(struct model *m, const struct model_pod *pod, struct model_node *node,
			 struct model_allocation *ret)
{
	struct fit_reasons reasons;
	struct kube_shares shares;
	begin_fit(m, pod);
	if (fit_choose(&m->fit, &node->inventory, &shares, &reasons) < 0)
		return false;
	int r = model_make_allocation(m, pod, node, &shares, ret, NULL);
	shares_free(&shares);
	return r >= 0;
}

struct placement {
	struct gang_rank *member;
	struct model_allocation allocation; /* owned; charged while the pod is placed */
};

struct gang_search {
	struct model *model;
	const struct gang_rank *asker; /* pod of the current filter or preempt call */
	struct placement *placement;   /* one for each pod that needs room; owned */
	size_t count;
	struct scan scan;
};

/* Charges the namespace too, because the quota must have room for all of the gang's pods together. */
static void charge(struct model_pod *pod, const struct model_allocation *allocation)
{
	const struct quota_amounts has = inventory_shares_sum(&allocation->shares);
	inventory_charge(&allocation->node->inventory, &allocation->shares);
	quota_add(&pod->name_space->used, &has);
}

static void discharge(struct model_pod *pod, const struct model_allocation *allocation)
{
	const struct quota_amounts had = inventory_shares_sum(&allocation->shares);
	inventory_discharge(&allocation->node->inventory, &allocation->shares);
	quota_subtract(&pod->name_space->used, &had);
}

static const json_t *candidates_of(const struct gang_search *s, size_t i)
{
	const struct gang_rank *member = s->placement[i].member;
	return member->candidates ? member->candidates : s->asker->candidates;
}

static bool place_one(void *data, size_t i)
{
	struct gang_search *s = data;
	struct placement *placement = &s->placement[i];
	struct model_pod *pod = placement->member->pod;
	if (pod->charged)
		/* Removing the pod's charge changes its node, so the cached results are invalid. */
		s->scan.is_known = false;
	model_suspend_charge(pod);
	struct node_fit *best = best_of(s->model, &s->scan, placement->member, candidates_of(s, i));
	if (!best || !choose_cards(s->model, pod, best->node, &placement->allocation)) {
		if (!pod->reserved.node)
			model_restore_charge(pod);
		s->scan.is_known &= !pod->charged;
		return false;
	}
	charge(pod, &placement->allocation);
	begin_fit(s->model, pod);
	check_node(s->model, best);
	return true;
}

static void unplace_one(void *data, size_t i)
{
	struct gang_search *s = data;
	struct placement *placement = &s->placement[i];
	struct model_pod *pod = placement->member->pod;
	discharge(pod, &placement->allocation);
	model_free_allocation(s->model, &placement->allocation);
	if (!pod->reserved.node)
		model_restore_charge(pod);
	s->scan.is_known = false;
}

static bool is_like(void *data, size_t i, size_t k)
{
	const struct gang_search *s = data;
	const struct gang_rank *a = s->placement[i].member, *b = s->placement[k].member;
	/* A charged pod differs from all others: only this pod can use the room for which it is charged. */
	return !a->pod->charged && !b->pod->charged && candidates_of(s, i) == candidates_of(s, k) &&
	       a->source == b->source;
}

static bool needs_room(const struct gang_rank *member)
{
	enum gang_state state = gang_state_of(member);
	return (state == GANG_PENDING || state == GANG_RESERVED || state == GANG_WAITS_TO_BIND) &&
	       member->pod->request && !member->gang_error;
}

/*
 * Lists the pods that need room, and suspends the charges of their reservations, so that any of them may use that room. Shares
 * in annotations, from an earlier attempt, stay charged: only their own pod may use that room. Returns -1 if out of memory.
 */
static int gang_search_begin(struct gang_search *s, const struct gang *gang)
{
	size_t count = 0;
	for (struct gang_rank *one = gang->first; one; one = one->next)
		count += needs_room(one);
	s->placement = calloc(count + 1, sizeof(*s->placement));
	if (!s->placement)
		return -1;
	for (struct gang_rank *one = gang->first; one; one = one->next)
		if (needs_room(one)) {
			s->placement[s->count++].member = one;
			if (one->pod->reserved.node)
				model_suspend_charge(one->pod);
		}
	return 0;
}

static size_t place_gang(struct gang_search *s, size_t needed)
{
	const struct gang_trial trial = { place_one, unplace_one, is_like, s };
	cleanup_free struct gang_slot *order = calloc(s->count + 1, sizeof(*order));
	return order ? gang_place(&trial, s->count, needed, order) : 0;
}

/* If `is_kept`, placements become reservations, and a pod without one loses its reservation. Else all get theirs back. */
static void gang_search_end(struct gang_search *s, bool is_kept)
{
	struct model *m = s->model;
	for (size_t i = 0; i < s->count; i++) {
		struct placement *placement = &s->placement[i];
		if (placement->allocation.node)
			discharge(placement->member->pod, &placement->allocation);
	}
	for (size_t i = 0; i < s->count; i++) {
		struct placement *placement = &s->placement[i];
		if (is_kept && placement->allocation.node)
			model_reserve_allocation(m, placement->member->pod, &placement->allocation);
		else if (is_kept)
			model_drop_reserved(m, placement->member->pod);
		else
			model_restore_charge(placement->member->pod);
		model_free_allocation(m, &placement->allocation);
	}
	free(s->scan.of);
	free(s->placement);
}

size_t gang_room_reserve(struct model *m, struct gang *gang, const struct gang_rank *asker,
			 size_t needed)
{
	struct gang_search s = { .model = m, .asker = asker };
	if (gang_search_begin(&s, gang) < 0)
		return 0;
	size_t placed = place_gang(&s, needed);
	gang_search_end(&s, placed >= needed);
	return placed;
}

struct removal {
	int32_t priority;        /* remove only pods below this priority */
	bool with_opportunistic; /* also remove opportunistic pods, whatever their priority */
	bool is_lone;            /* remove only pods outside gangs */
	/* not 0: remove instead the pods that Kubernetes ends from now_s to ended_by_s (s since 1970) */
	int64_t now_s, ended_by_s;
	/* The removed pods, linked through `next`, which is unused while a pod is not charged to a node. */
	struct model_pod *removed;
};

static bool may_remove(const struct removal *l, const struct model_pod *pod)
{
	int64_t ends_s = pod->since_s + pod->lifetime_s;
	if (!pod->is_bound)
		return false;
	if (l->ended_by_s)
		return pod->since_s > 0 && pod->lifetime_s && ends_s >= l->now_s &&
		       ends_s <= l->ended_by_s;
	if (l->is_lone && pod->member)
		return false;
	return pod->priority < l->priority || (l->with_opportunistic && model_is_opportunistic(pod));
}

static void remove_pods(struct removal *l, struct model_node *node)
{
	struct model_pod *next;
	for (struct model_pod *pod = node->pods; pod; pod = next) {
		next = pod->next;
		if (!may_remove(l, pod))
			continue;
		model_suspend_charge(pod);
		pod->next = l->removed;
		l->removed = pod;
	}
}

/* On all candidate nodes of the gang's pods, discharges the pods that may_remove() accepts. The caller charges them again. */
static void remove_pods_of_candidates(struct gang_search *s, struct removal *l)
{
	const json_t *last = NULL, *name;
	size_t k;
	for (size_t i = 0; i < s->count; i++) {
		const json_t *names = candidates_of(s, i);
		/* Most members share one list of nodes: the pods on these nodes were removed for an earlier member. */
		if (names == last)
			continue;
		json_array_foreach(names, k, name)
		{
			const char *text = json_string_value(name);
			struct model_node *node = text ? model_find_node(s->model, text) : NULL;
			if (node)
				remove_pods(l, node);
		}
		last = names;
	}
}

static size_t place_without(struct model *m, struct gang *gang, const struct gang_rank *asker,
			    size_t needed, struct removal l, bool is_reservation)
{
	struct gang_search s = { .model = m, .asker = asker };
	if (gang_search_begin(&s, gang) < 0)
		return 0;
	remove_pods_of_candidates(&s, &l);
	size_t placed = place_gang(&s, needed);
	for (size_t i = 0; is_reservation && placed >= needed && i < s.count; i++)
		if (s.placement[i].allocation.node)
			s.placement[i].allocation.node->is_reserved = true;
	gang_search_end(&s, false);
	for (struct model_pod *pod = l.removed, *next; pod; pod = next) {
		next = pod->next;
		model_restore_charge(pod);
	}
	return placed;
}

bool gang_room_without(struct model *m, struct gang *gang, const struct gang_rank *asker,
		       size_t needed, int32_t priority)
{
	const struct request *request = asker->pod->request;
	const struct removal removal = {
		.priority = priority, .with_opportunistic = request && !request->is_opportunistic
	};
	return place_without(m, gang, asker, needed, removal, false) >= needed;
}

/* Returns the time by which pods' deadlines make room for the gang, in s since 1970; 0: not within RESERVATION_MOST_S. */
static int64_t find_room_by_s(struct model *m, struct gang *gang, const struct gang_rank *asker,
			      size_t needed)
{
	int64_t first_s = m->wall_s, last_s = m->wall_s + RESERVATION_MOST_S;
	struct removal removal = { .now_s = m->wall_s, .ended_by_s = last_s };
	if (!m->wall_s || place_without(m, gang, asker, needed, removal, false) < needed)
		return 0;
	while (first_s < last_s) {
		removal.ended_by_s = first_s + (last_s - first_s) / 2;
		if (place_without(m, gang, asker, needed, removal, false) >= needed)
			last_s = removal.ended_by_s;
		else
			first_s = removal.ended_by_s + 1;
	}
	return last_s;
}

bool gang_room_reservation(struct model *m, struct gang *gang, const struct gang_rank *asker,
			   size_t needed, int64_t *ret_room_by_s)
{
	int64_t room_by_s = find_room_by_s(m, gang, asker, needed);
	const struct removal by_deadline = { .now_s = m->wall_s, .ended_by_s = room_by_s };
	int32_t own = asker->pod->priority;
	const struct removal removal = { .priority = own < INT32_MAX ? own + 1 : own,
					 .is_lone = true };
	*ret_room_by_s = room_by_s;
	return place_without(m, gang, asker, needed, room_by_s ? by_deadline : removal, true) >=
	       needed;
}

bool gang_room_still_fits(struct model *m, const struct gang_rank *member,
			  const struct model_node *node)
{
	struct model_pod *pod = member->pod;
	struct node_fit of = { .node = model_find_node(m, node->name) };
	model_suspend_charge(pod);
	begin_fit(m, pod);
	check_node(m, &of);
	model_restore_charge(pod);
	return of.is_fit;
}

bool gang_room_move(struct model *m, struct gang_rank *member)
{
	struct model_pod *pod = member->pod;
	struct model_allocation allocation = { 0 };
	struct scan scan = { 0 };
	uint64_t expires_ns = pod->reserved.expires_ns;
	model_suspend_charge(pod);
	const struct node_fit *best = best_of(m, &scan, member, member->candidates);
	bool is_found = best && choose_cards(m, pod, best->node, &allocation);
	model_restore_charge(pod);
	free(scan.of);
	if (!is_found)
		return false;
	model_reserve_allocation(m, pod, &allocation);
	pod->reserved.expires_ns = expires_ns;
	member->waits_to_bind = false;
	return true;
}
