#include "scheduler/model/gang_room.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/placement/score.h"

/* ---- the best node for one pod ---- */

static void begin_fit(struct model *m, const struct model_pod *pod)
{
	fit_begin(&m->fit, pod->request);
	model_hold_to_quota(m, pod->pod_namespace);
}

/*
 * What checking each node gave, for the next pod. A gang's pods are mostly alike and each placement changes one node, so the
 * next pod usually checks one node again.
 */
struct scan {
	bool is_known;
	uint64_t source;     /* request_source() of the checked pod */
	const json_t *names; /* the nodes that were checked, by name */
	struct scanned {
		struct model_node *node; /* NULL if no node has this name */
		double score;
		bool is_fit;
	} * of; /* one entry per name; owned */
	size_t count, most;
};

static void look_at(struct model *m, struct scanned *of)
{
	struct fit_reasons reasons;
	const struct inventory *inventory = of->node ? &of->node->inventory : NULL;
	of->is_fit = inventory && !of->node->aside && inventory->count &&
		     fit_check(&m->fit, inventory, &reasons);
	of->score = of->is_fit ? place_cards_score(inventory->card, inventory->count) : 0;
}

static int look_at_all(struct model *m, struct scan *scan, const json_t *names)
{
	size_t i, count = json_array_size(names);
	const json_t *name;
	if (count > scan->most) {
		struct scanned *more = realloc(scan->of, count * sizeof(*more));
		if (!more)
			return -1;
		scan->of = more;
		scan->most = count;
	}
	json_array_foreach(names, i, name)
	{
		const char *text = json_string_value(name);
		scan->of[i].node = text ? model_find_node(m, text) : NULL;
		look_at(m, &scan->of[i]);
	}
	scan->count = count;
	return 0;
}

/* Returns the node that the pod's policy ranks first, or NULL if none fits. */
static struct scanned *best_of(struct model *m, struct scan *scan, const struct gang_rank *member,
			       const json_t *names)
{
	const struct request *request = member->pod->request;
	struct scanned *best = NULL;
	bool is_known = scan->is_known && scan->names == names && scan->source == member->source;
	begin_fit(m, member->pod);
	scan->is_known = is_known || look_at_all(m, scan, names) >= 0;
	scan->source = member->source;
	scan->names = names;
	for (size_t i = 0; scan->is_known && i < scan->count; i++) {
		struct scanned *one = &scan->of[i];
		double ahead = best ? one->score - best->score : 0;
		if (one->is_fit && !model_backfill_bars(m, one->node, member->pod) &&
		    !model_kept_for(m, one->node, member->pod->text, member->pod->priority) &&
		    (!best || (request->nodes == REQUEST_NODES_SPREAD ? ahead < 0 : ahead > 0)))
			best = one;
	}
	return best;
}

/* Chooses the pod's cards on the node. False if they do not suffice or memory runs out. */
static bool hold_of(struct model *m, const struct model_pod *pod, struct model_node *node,
		    struct model_hold *ret)
{
	struct fit_reasons reasons;
	struct kube_shares shares;
	begin_fit(m, pod);
	if (fit_choose(&m->fit, &node->inventory, &shares, &reasons) < 0)
		return false;
	int r = model_make_hold(m, pod, node, &shares, ret, NULL);
	shares_free(&shares);
	return r >= 0;
}

/* ---- seats for all pods of a gang ---- */

struct seat {
	struct gang_rank *member;
	struct model_hold hold; /* owned; charged while the pod has the seat */
};

struct seating {
	struct model *model;
	const struct gang_rank *asker;
	struct seat *seat; /* owned */
	size_t count;
	struct scan scan;
};

/* Charges the namespace too: its quota must have room for all of the gang's pods together. */
static void charge(struct model_pod *pod, const struct model_hold *hold)
{
	const struct quota_amounts has = inventory_hold_sum(&hold->hold);
	inventory_charge(&hold->node->inventory, &hold->hold);
	quota_add(&pod->space->used, &has);
}

static void discharge(struct model_pod *pod, const struct model_hold *hold)
{
	const struct quota_amounts had = inventory_hold_sum(&hold->hold);
	inventory_discharge(&hold->node->inventory, &hold->hold);
	quota_subtract(&pod->space->used, &had);
}

static const json_t *names_of(const struct seating *s, size_t i)
{
	const struct gang_rank *member = s->seat[i].member;
	return member->asked ? member->asked : s->asker->asked;
}

static bool seat_one(void *data, size_t i)
{
	struct seating *s = data;
	struct seat *seat = &s->seat[i];
	struct model_pod *pod = seat->member->pod;
	if (pod->charged)
		s->scan.is_known = false; /* lifting the pod changes its node's charge */
	model_lift(pod);
	struct scanned *best = best_of(s->model, &s->scan, seat->member, names_of(s, i));
	if (!best || !hold_of(s->model, pod, best->node, &seat->hold)) {
		if (!pod->reserved.node)
			model_put_back(pod);
		s->scan.is_known &= !pod->charged;
		return false;
	}
	charge(pod, &seat->hold);
	begin_fit(s->model, pod);
	look_at(s->model, best);
	return true;
}

static void unseat_one(void *data, size_t i)
{
	struct seating *s = data;
	struct seat *seat = &s->seat[i];
	struct model_pod *pod = seat->member->pod;
	discharge(pod, &seat->hold);
	model_drop_hold(s->model, &seat->hold);
	if (!pod->reserved.node)
		model_put_back(pod);
	s->scan.is_known = false;
}

static bool is_like(void *data, size_t i, size_t k)
{
	const struct seating *s = data;
	const struct gang_rank *a = s->seat[i].member, *b = s->seat[k].member;
	/* Only this pod may use the room that its earlier attempt charges, so the pod is like no other. */
	return !a->pod->charged && !b->pod->charged && names_of(s, i) == names_of(s, k) &&
	       a->source == b->source;
}

static bool takes_part(const struct gang_rank *member)
{
	enum gang_state state = gang_state_of(member);
	return (state == GANG_WAITS || state == GANG_HELD || state == GANG_COME) &&
	       member->pod->request && !member->broken;
}

/*
 * Removes the reservations of all the gang's pods, so that any of them may use the room. Shares in a pod's annotations, from an
 * earlier attempt, are free only for that pod.
 */
static int begin(struct seating *s, const struct gang *gang)
{
	size_t count = 0;
	for (struct gang_rank *one = gang->first; one; one = one->next)
		count += takes_part(one);
	s->seat = calloc(count + 1, sizeof(*s->seat));
	if (!s->seat)
		return -1;
	for (struct gang_rank *one = gang->first; one; one = one->next)
		if (takes_part(one)) {
			s->seat[s->count++].member = one;
			if (one->pod->reserved.node)
				model_lift(one->pod);
		}
	return 0;
}

static size_t seat_gang(struct seating *s, size_t needed)
{
	const struct gang_trial trial = { seat_one, unseat_one, is_like, s };
	cleanup_free struct gang_seat *order = calloc(s->count + 1, sizeof(*order));
	return order ? gang_seat(&trial, s->count, needed, order) : 0;
}

/*
 * Ends the search. `is_kept`: each pod's seat becomes its reservation, and pods without one lose theirs. Otherwise all get back
 * what they had.
 */
static void end(struct seating *s, bool is_kept)
{
	struct model *m = s->model;
	for (size_t i = 0; i < s->count; i++) {
		struct seat *seat = &s->seat[i];
		if (seat->hold.node)
			discharge(seat->member->pod, &seat->hold);
	}
	for (size_t i = 0; i < s->count; i++) {
		struct seat *seat = &s->seat[i];
		if (is_kept && seat->hold.node)
			model_reserve_hold(m, seat->member->pod, &seat->hold);
		else if (is_kept)
			model_drop_reserved(m, seat->member->pod);
		else
			model_put_back(seat->member->pod);
		model_drop_hold(m, &seat->hold);
	}
	free(s->scan.of);
	free(s->seat);
}

size_t gang_room_take(struct model *m, struct gang *gang, const struct gang_rank *asker,
		      size_t needed)
{
	struct seating s = { .model = m, .asker = asker };
	if (begin(&s, gang) < 0)
		return 0;
	size_t seated = seat_gang(&s, needed);
	end(&s, seated >= needed);
	return seated;
}

/* ---- room that other pods have ---- */

struct lower {
	int32_t priority;        /* only pods below this priority are lifted */
	bool with_opportunistic; /* and opportunistic pods, whatever their priority */
	bool is_lone;            /* only pods outside gangs */
	/* Linked through `next`, which is unused while a pod is not charged to a node. */
	struct model_pod *lifted;
};

static bool may_lift(const struct lower *l, const struct model_pod *pod)
{
	if (!pod->is_bound || (l->is_lone && pod->member))
		return false;
	return pod->priority < l->priority || (l->with_opportunistic && model_is_opportunistic(pod));
}

static void lift_lower(struct lower *l, struct model_node *node)
{
	struct model_pod *next;
	for (struct model_pod *pod = node->pods; pod; pod = next) {
		next = pod->next;
		if (!may_lift(l, pod))
			continue;
		model_lift(pod);
		pod->next = l->lifted;
		l->lifted = pod;
	}
}

/* Lifts only pods on the gang's candidate nodes; pods on other nodes are not in the way. */
static void lift_all_lower(struct seating *s, struct lower *l)
{
	const json_t *last = NULL, *name;
	size_t k;
	for (size_t i = 0; i < s->count; i++) {
		const json_t *names = names_of(s, i);
		/* The pods of a gang mostly have the same nodes; the pods on these nodes were lifted already. */
		if (names == last)
			continue;
		json_array_foreach(names, k, name)
		{
			const char *text = json_string_value(name);
			struct model_node *node = text ? model_find_node(s->model, text) : NULL;
			if (node)
				lift_lower(l, node);
		}
		last = names;
	}
}

static size_t seat_without(struct model *m, struct gang *gang, const struct gang_rank *asker,
			   size_t needed, struct lower l, bool is_reservation)
{
	struct seating s = { .model = m, .asker = asker };
	if (begin(&s, gang) < 0)
		return 0;
	lift_all_lower(&s, &l);
	size_t seated = seat_gang(&s, needed);
	for (size_t i = 0; is_reservation && seated >= needed && i < s.count; i++)
		if (s.seat[i].hold.node)
			s.seat[i].hold.node->is_reserved = true;
	end(&s, false);
	for (struct model_pod *pod = l.lifted, *next; pod; pod = next) {
		next = pod->next;
		model_put_back(pod);
	}
	return seated;
}

bool gang_room_without(struct model *m, struct gang *gang, const struct gang_rank *asker,
		       size_t needed, int32_t priority)
{
	const struct request *request = asker->pod->request;
	const struct lower lower = { .priority = priority,
				     .with_opportunistic = request && !request->is_opportunistic };
	return seat_without(m, gang, asker, needed, lower, false) >= needed;
}

bool gang_room_reservation(struct model *m, struct gang *gang, const struct gang_rank *asker,
			   size_t needed)
{
	int32_t own = asker->pod->priority;
	const struct lower lower = { .priority = own < INT32_MAX ? own + 1 : own, .is_lone = true };
	return seat_without(m, gang, asker, needed, lower, true) >= needed;
}

/* ---- a pod with a reservation ---- */

bool gang_room_suits(struct model *m, const struct gang_rank *member, const struct model_node *node)
{
	struct model_pod *pod = member->pod;
	struct scanned of = { .node = model_find_node(m, node->name) };
	model_lift(pod);
	begin_fit(m, pod);
	look_at(m, &of);
	model_put_back(pod);
	return of.is_fit;
}

bool gang_room_move(struct model *m, struct gang_rank *member)
{
	struct model_pod *pod = member->pod;
	struct model_hold hold = { 0 };
	struct scan scan = { 0 };
	uint64_t expires_ns = pod->reserved.expires_ns;
	model_lift(pod);
	const struct scanned *best = best_of(m, &scan, member, member->asked);
	bool is_found = best && hold_of(m, pod, best->node, &hold);
	model_put_back(pod);
	free(scan.of);
	if (!is_found)
		return false;
	model_reserve_hold(m, pod, &hold);
	pod->reserved.expires_ns = expires_ns;
	member->has_come = false;
	return true;
}
