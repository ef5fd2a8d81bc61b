/*
 * The verb preempt. kube-scheduler names nodes and, for each, victims: pods whose end would make room. The answer keeps these
 * victims, which may be needed for resources such as host memory that only kube-scheduler checks. If they free too little of
 * the GPUs (cards), the answer adds as few further pods as needed: opportunistic pods first, then those of lower priority, the
 * lowest first. If the namespace's quota is used up, only pods of that namespace help.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/extender/extender.h"
#include "scheduler/extender/extender_gang.h"
#include "scheduler/model/model_gang.h"

/* kube-scheduler sends a victim as a uid or as a whole Pod object. */
static const char *uid_of(const json_t *victim)
{
	const char *uid = json_string_value(json_object_get(victim, "UID"));
	const json_t *meta = json_object_get(victim, "metadata");
	return uid ? uid : json_string_value(json_object_get(meta, "uid"));
}

struct victims {
	const struct model_node *node;
	struct inventory inventory;               /* without the ending pods */
	const struct model_namespace *name_space; /* of the waiting pod; NULL if it has no quota */
	struct quota_amounts used;                /* of the namespace, without the ending pods */
	struct model_pod **more;                  /* other pods on the node that may end; owned */
	bool *is_spared;                          /* for each of `more`: it need not end; owned */
	size_t more_count;
	json_t *list; /* victims in the answer */
};

static bool add_to_answer(json_t *list, const char *uid)
{
	json_t *one = json_object();
	json_object_set_new(one, "UID", json_string(uid));
	return json_array_append_new(list, one) == 0;
}

static bool is_named(const json_t *victims, const char *uid)
{
	json_t *one;
	size_t i;
	json_array_foreach(victims, i, one)
	{
		const char *named = uid_of(one);
		if (named && !strcmp(named, uid))
			return true;
	}
	return false;
}

/* end() and spare() try out in v->inventory and v->used what happens if a pod ends or is spared. */

static void end(struct victims *v, const struct model_pod *pod)
{
	inventory_discharge(&v->inventory, &pod->charged->shares);
	if (pod->name_space != v->name_space)
		return;
	const struct quota_amounts had = inventory_shares_sum(&pod->charged->shares);
	quota_subtract(&v->used, &had);
}

static void spare(struct victims *v, const struct model_pod *pod)
{
	inventory_charge(&v->inventory, &pod->charged->shares);
	if (pod->name_space != v->name_space)
		return;
	const struct quota_amounts has = inventory_shares_sum(&pod->charged->shares);
	quota_add(&v->used, &has);
}

/* Opportunistic pods are evicted first, whatever their priority; then lower priorities. */
static bool is_before(const struct model_pod *a, const struct model_pod *b)
{
	bool a_fills = model_is_opportunistic(a), b_fills = model_is_opportunistic(b);
	return a_fills != b_fills ? a_fills : a->priority < b->priority;
}

/* Sorts in the order of eviction. Of equal pods, the one charged last comes first, as in the node's list of pods. */
static void sort_by_priority(struct model_pod **pod, size_t count)
{
	for (size_t i = 1; i < count; i++)
		for (size_t k = i; k && is_before(pod[k], pod[k - 1]); k--) {
			struct model_pod *other = pod[k];
			pod[k] = pod[k - 1];
			pod[k - 1] = other;
		}
}

/*
 * Discharges from v->inventory the pods that kube-scheduler named. Collects in v->more the other pods that may end: those of
 * lower priority, and opportunistic pods unless the waiting pod is opportunistic too.
 */
static int discharge_named(const json_t *named, int32_t priority, bool is_opportunistic,
			   struct victims *v)
{
	size_t count = 0;
	for (const struct model_pod *p = v->node->pods; p; p = p->next)
		count++;
	v->more = calloc(count + 1, sizeof(struct model_pod *));
	v->is_spared = calloc(count + 1, sizeof(*v->is_spared));
	if (!v->more || !v->is_spared)
		return -ENOMEM;
	for (struct model_pod *p = v->node->pods; p; p = p->next)
		if (is_named(named, p->text))
			end(v, p);
		else if (p->is_bound && (p->priority < priority ||
					 (!is_opportunistic && model_is_opportunistic(p))))
			v->more[v->more_count++] = p;
	sort_by_priority(v->more, v->more_count);
	return 0;
}

static bool fits(struct model *m, const struct extender_call *call, const struct victims *v)
{
	struct fit_reasons reasons;
	if (v->name_space)
		fit_set_quota(&m->fit, &v->name_space->limits, &v->used);
	return !call->request_error.code && fit_check(&m->fit, &v->inventory, &reasons);
}

/*
 * Discharges further pods from v->inventory until the waiting pod fits. Then spares, from the last to the first, each of them
 * that need not end. Returns false if the waiting pod would not fit even without all of them.
 */
static bool add_victims(struct model *m, const struct extender_call *call, struct victims *v)
{
	size_t ended = 0;
	while (!fits(m, call, v)) {
		if (ended == v->more_count)
			return false;
		end(v, v->more[ended++]);
	}
	for (size_t i = ended; i-- > 0;) {
		spare(v, v->more[i]);
		v->is_spared[i] = fits(m, call, v);
		if (!v->is_spared[i])
			end(v, v->more[i]);
	}
	v->more_count = ended;
	return true;
}

static bool answer_named(json_t *list, const json_t *named)
{
	bool is_whole = true;
	json_t *one;
	size_t i;
	json_array_foreach(named, i, one)
	{
		const char *uid = uid_of(one);
		is_whole &= !uid || add_to_answer(list, uid);
	}
	return is_whole;
}

/* Whether evictions would make room for the pod on the node; if so, the victims are in v->list. */
static bool try_node(struct model *m, const struct extender_call *call, const json_t *named,
		     struct victims *v)
{
	/* The pod requests no GPU, so any node that kube-scheduler found will do. */
	if (!call->request_error.code && !call->request.count)
		return answer_named(v->list, named);
	/* Evict nothing from a node that the verb filter would reject for the pod even if its GPUs were free. */
	if (!v->node || v->node->cards_error ||
	    model_nominated_pod(m, v->node, call->pod->uid, extender_call_priority(call)) ||
	    model_backfill_bars(m, v->node, call->suspended) ||
	    inventory_copy(&v->node->inventory, &v->inventory) < 0 ||
	    discharge_named(named, extender_call_priority(call), call->request.is_opportunistic,
			    v) < 0 ||
	    !add_victims(m, call, v))
		return false;
	bool is_whole = answer_named(v->list, named);
	for (size_t k = 0; k < v->more_count; k++)
		is_whole &= v->is_spared[k] || add_to_answer(v->list, v->more[k]->text);
	return is_whole;
}

static void answer_for(struct model *m, const struct extender_call *call, const char *name,
		       const json_t *victims, json_t *answer)
{
	struct victims v = { .node = model_find_node(m, name),
			     .name_space = model_find_limited(m, call->pod->pod_namespace),
			     .list = json_array() };
	if (v.name_space)
		v.used = v.name_space->used;
	const json_t *named = json_object_get(victims, "Pods");
	json_t *violations = json_object_get(victims, "NumPDBViolations");
	if (try_node(m, call, named, &v)) {
		json_t *one = json_object();
		json_object_set(one, "Pods", v.list);
		json_object_set_new(one, "NumPDBViolations",
				    json_integer(json_integer_value(violations)));
		json_object_set_new(answer, name, one);
	}
	inventory_free(&v.inventory);
	free(v.more);
	free(v.is_spared);
	json_decref(v.list);
}

static const json_t *victims_of(const json_t *args)
{
	const json_t *meta = json_object_get(args, "NodeNameToMetaVictims");
	return json_object_size(meta) ? meta : json_object_get(args, "NodeNameToVictims");
}

json_t *extender_preempt(struct model *m, const json_t *args)
{
	json_t *victims = (json_t *)(uintptr_t)victims_of(args), *one;
	json_t *all = json_object(), *answer = json_object();
	const char *name;
	struct extender_call call;
	if (all && extender_call_begin(m, args, &call, NULL) >= 0) {
		/* Evict nothing if the gang's other pods would still have no room. */
		if (!extender_gang_may_preempt(m, &call, extender_call_priority(&call)))
			victims = NULL;
		fit_begin(&m->fit, &call.request);
		json_object_foreach(victims, name, one) answer_for(m, &call, name, one, all);
		extender_call_end(&call);
	}
	if (json_object_set_new(answer, "NodeNameToMetaVictims", all) < 0) {
		json_decref(answer);
		return NULL;
	}
	return answer;
}
