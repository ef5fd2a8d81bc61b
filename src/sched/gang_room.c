#include "sched/gang_room.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "place/score.h"

/* ---- a node for one ---- */

static bool is_better(const struct request *request, double score, double best)
{
	return request->is_node_spread ? score < best : score > best;
}

/* Has it room for this request? */
static bool suits(struct model *m, const struct model_node *node)
{
	struct fit_reasons reasons;
	return node && !node->aside && node->stock.count &&
	       fit_check(&m->fit, &node->stock, &reasons);
}

/* The one that its policy takes first. NULL: none of these fits. */
static struct model_node *best_of(struct model *m, const struct request *request,
				  const json_t *names)
{
	struct model_node *best = NULL;
	double best_score = 0;
	const json_t *name;
	size_t i;
	fit_begin(&m->fit, request);
	json_array_foreach(names, i, name)
	{
		const char *text = json_string_value(name);
		struct model_node *node = text ? model_find_node(m, text) : NULL;
		if (!suits(m, node))
			continue;
		double score = place_cards_score(node->stock.card, node->stock.count);
		if (!best || is_better(request, score, best_score)) {
			best = node;
			best_score = score;
		}
	}
	return best;
}

/* What it gets of that node's cards. */
static bool hold_of(struct model *m, const struct model_pod *pod, struct model_node *node,
		    struct model_hold *ret)
{
	struct fit_reasons reasons;
	struct kube_shares shares;
	fit_begin(&m->fit, pod->request);
	if (fit_choose(&m->fit, &node->stock, &shares, &reasons) < 0)
		return false;
	int r = model_make_hold(m, pod, node, &shares, ret, NULL);
	shares_free(&shares);
	return r >= 0;
}

/* ---- all of them ---- */

struct seat {
	struct gang_member *member;
	struct model_hold hold; /* owned; charged while it sits */
};

struct seating {
	struct model *model;
	const struct gang_member *asker;
	struct seat *seat; /* owned */
	size_t count;
};

static bool seat_one(void *data, size_t i)
{
	const struct seating *s = data;
	struct seat *seat = &s->seat[i];
	struct model_pod *pod = seat->member->pod;
	const json_t *names = seat->member->asked ? seat->member->asked : s->asker->asked;
	model_lift(pod);
	struct model_node *node = best_of(s->model, pod->request, names);
	if (!node || !hold_of(s->model, pod, node, &seat->hold)) {
		if (!pod->reserved.node)
			model_put_back(pod);
		return false;
	}
	stock_charge(&node->stock, &seat->hold.hold);
	return true;
}

static void unseat_one(void *data, size_t i)
{
	const struct seating *s = data;
	struct seat *seat = &s->seat[i];
	struct model_pod *pod = seat->member->pod;
	stock_discharge(&seat->hold.node->stock, &seat->hold.hold);
	model_drop_hold(s->model, &seat->hold);
	if (!pod->reserved.node)
		model_put_back(pod);
}

static bool takes_part(const struct gang_member *member)
{
	enum gang_state state = gang_state_of(member);
	return (state == GANG_WAITS || state == GANG_HELD || state == GANG_COME) &&
	       member->pod->request && !member->broken;
}

/* What is kept for them is free for all of them; what one's annotations note, of an earlier try, for that one alone. */
static int begin(struct seating *s, const struct gang *gang)
{
	size_t count = 0;
	for (struct gang_member *one = gang->first; one; one = one->next)
		count += takes_part(one);
	s->seat = calloc(count + 1, sizeof(*s->seat));
	if (!s->seat)
		return -1;
	for (struct gang_member *one = gang->first; one; one = one->next)
		if (takes_part(one)) {
			s->seat[s->count++].member = one;
			if (one->pod->reserved.node)
				model_lift(one->pod);
		}
	return 0;
}

static size_t seat_gang(struct seating *s, size_t needed)
{
	const struct gang_trial trial = { seat_one, unseat_one, s };
	cleanup_free struct gang_seat *order = calloc(s->count + 1, sizeof(*order));
	return order ? gang_seat(&trial, s->count, needed, order) : 0;
}

/* Who sits gets it, if it is for good, and nobody else keeps any room; else everybody has what he had. */
static void end(struct seating *s, bool is_kept)
{
	struct model *m = s->model;
	for (size_t i = 0; i < s->count; i++) {
		struct seat *seat = &s->seat[i];
		if (seat->hold.node)
			stock_discharge(&seat->hold.node->stock, &seat->hold.hold);
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
	free(s->seat);
}

size_t gang_room_take(struct model *m, struct gang *gang, const struct gang_member *asker,
		      size_t needed)
{
	struct seating s = { .model = m, .asker = asker };
	if (begin(&s, gang) < 0)
		return 0;
	size_t seated = seat_gang(&s, needed);
	end(&s, seated >= needed);
	return seated;
}

/* ---- what others have ---- */

struct lower {
	int32_t priority;
	struct model_pod **pod; /* lifted; owned */
	size_t count, most;
};

static void lift_lower(void *data, void *thing)
{
	struct lower *l = data;
	struct model_pod *pod = thing;
	if (!pod->is_bound || !pod->charged || pod->priority >= l->priority || l->count == l->most)
		return;
	model_lift(pod);
	l->pod[l->count++] = pod;
}

bool gang_room_without(struct model *m, struct gang *gang, const struct gang_member *asker,
		       size_t needed, int32_t priority)
{
	struct seating s = { .model = m, .asker = asker };
	struct lower l = { .priority = priority, .most = m->pods.count };
	l.pod = calloc(l.most + 1, sizeof(struct model_pod *));
	if (!l.pod || begin(&s, gang) < 0) {
		free(l.pod);
		return false;
	}
	table_each(&m->pods, lift_lower, &l);
	size_t seated = seat_gang(&s, needed);
	end(&s, false);
	while (l.count)
		model_put_back(l.pod[--l.count]);
	free(l.pod);
	return seated >= needed;
}

/* ---- one that has room already ---- */

bool gang_room_suits(struct model *m, const struct gang_member *member,
		     const struct model_node *node)
{
	struct model_pod *pod = member->pod;
	model_lift(pod);
	fit_begin(&m->fit, pod->request);
	bool is_fit = model_find_node(m, node->name) == node && suits(m, node);
	model_put_back(pod);
	return is_fit;
}

bool gang_room_move(struct model *m, struct gang_member *member)
{
	struct model_pod *pod = member->pod;
	struct model_hold hold = { 0 };
	uint64_t expires_ns = pod->reserved.expires_ns;
	model_lift(pod);
	struct model_node *node = best_of(m, pod->request, member->asked);
	bool is_found = node && hold_of(m, pod, node, &hold);
	model_put_back(pod);
	if (!is_found)
		return false;
	model_reserve_hold(m, pod, &hold);
	pod->reserved.expires_ns = expires_ns;
	member->has_come = false;
	return true;
}
