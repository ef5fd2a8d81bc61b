/* The verb filter: which nodes a pod fits, and why it does not fit the others. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "scheduler/extender/extender.h"
#include "scheduler/extender/extender_gang.h"
#include "scheduler/model/model_gang.h"

#define REASON_MAX 320
/* number of cached texts; many nodes have the same reasons */
#define TEXTS_KEPT 64

#define UNREGISTERED "node unregistered"

struct kept_text {
	/* of: number of cards with each reason; lacks: the container wants more cards than the node has */
	unsigned char cards, lacks, of[PLACE_REASON_COUNT];
	bool is_kept;
	uint32_t reason;
};

struct filtering {
	struct model *model;
	const struct extender_call *call;
	struct filter_answer *answer;
	struct gang_answer gang; /* if the pod is in a gang */
	json_t *others;          /* names in the call that the model does not know */
	bool failed;             /* memory ran out */
	struct kept_text kept[TEXTS_KEPT];
};

static const struct filter_verdict fits = { .list = FILTER_FITS }, nowhere = { 0 };

static struct filter_verdict reject(struct filtering *f, enum filter_list list, const char *why)
{
	struct filter_verdict verdict = { .list = list };
	f->failed |= filter_answer_add_reason(f->answer, why, &verdict.reason) < 0;
	return verdict;
}

static struct kept_text count_reasons(const struct inventory *inventory,
				      const struct fit_reasons *reasons)
{
	struct kept_text key;
	/* memcmp() compares the key, so clear the padding too. */
	memset(&key, 0, sizeof(key));
	key.cards = (unsigned char)inventory->count;
	key.lacks = reasons->part->place.count > inventory->count;
	for (unsigned i = 0; i < inventory->count; i++)
		key.of[reasons->reason[i]]++;
	key.is_kept = true;
	return key;
}

static struct filter_verdict reject_with_reasons(struct filtering *f,
						 const struct inventory *inventory,
						 const struct fit_reasons *reasons)
{
	enum filter_list list = fit_is_resolvable(inventory, reasons) ? FILTER_FAILED
								      : FILTER_UNRESOLVABLE;
	struct kept_text key = count_reasons(inventory, reasons);
	unsigned slot = 0;
	for (unsigned i = 0; i < sizeof(key.of); i++)
		slot = slot * 31 + key.of[i];
	struct kept_text *kept = &f->kept[(slot * 31 + key.cards) % TEXTS_KEPT];
	if (memcmp(&key, kept, offsetof(struct kept_text, reason)) != 0) {
		char text[REASON_MAX];
		fit_reasons_text(inventory, reasons, text, sizeof(text));
		key.reason = reject(f, list, text).reason;
		*kept = key;
	}
	return (struct filter_verdict){ .list = list, .reason = kept->reason };
}

static struct filter_verdict judge(struct filtering *f, const struct inventory *inventory)
{
	struct fit_reasons reasons;
	if (!inventory->count)
		return reject(f, FILTER_UNRESOLVABLE, UNREGISTERED);
	return fit_check(&f->model->fit, inventory, &reasons)
		       ? fits
		       : reject_with_reasons(f, inventory, &reasons);
}

static struct filter_verdict judge_known(struct filtering *f, const struct model_node *node)
{
	static const struct inventory none;
	if (node && node->cards_error)
		return reject(f, FILTER_UNRESOLVABLE, node->cards_error);
	struct filter_verdict verdict = judge(f, node ? &node->inventory : &none);
	if (verdict.list != FILTER_FITS || !node)
		return verdict;
	char text[REASON_MAX];
	const struct model_pod *first = model_nominated_pod(f->model, node, f->call->pod->uid,
							    extender_call_priority(f->call));
	if (first)
		snprintf(text, sizeof(text), EXTENDER_NOMINATED, first->pod_namespace,
			 model_pod_name(first));
	else if (model_backfill_bars(f->model, node, f->call->suspended))
		snprintf(text, sizeof(text), EXTENDER_RESERVED, model_backfill_name(f->model));
	else
		return verdict;
	return reject(f, FILTER_FAILED, text);
}

static struct filter_verdict judge_whole(struct filtering *f, const json_t *node)
{
	struct inventory inventory = { 0 };
	struct error err = { 0 };
	int r = inventory_of_object(f->model, node, &inventory, &err);
	if (r < 0 && r != -ENODATA)
		return reject(f, FILTER_UNRESOLVABLE, err.text);
	struct filter_verdict verdict = judge(f, &inventory);
	inventory_free(&inventory);
	fit_clear_caches(&f->model->fit);
	return verdict;
}

/* Judges a node for a gang's pod, which may go to one reserved node, or to none. */
static struct filter_verdict judge_for_gang(struct filtering *f, const struct model_node *node,
					    const char *name)
{
	const struct gang_answer *gang = &f->gang;
	if (gang->result == GANG_FILTER_NODE && !strcmp(name, gang->node))
		return fits;
	/* A node that the pod does not fit keeps its own verdict, which may permit evictions. The gang's verdict never does. */
	if (gang->result == GANG_FILTER_NO_ROOM) {
		struct filter_verdict verdict = judge_known(f, node);
		if (verdict.list != FILTER_FITS)
			return verdict;
	}
	return reject(f, FILTER_UNRESOLVABLE, gang->text);
}

/* A name that comes twice must be answered once. */
static bool is_new(struct filtering *f, struct model_node *node, const char *name)
{
	if (node) {
		bool is = node->filtered_in != f->model->filters;
		node->filtered_in = f->model->filters;
		return is;
	}
	if (json_object_get(f->others, name))
		return false;
	f->failed |= json_object_set_new(f->others, name, json_true()) < 0;
	return true;
}

/* `node` is NULL if the call sent whole nodes, or if the name of candidate i is unknown. */
static struct filter_verdict judge_any(struct filtering *f, size_t i, struct model_node *node)
{
	const struct call_args *args = f->answer->args;
	const char *name = args->name[i].text;
	if (!name || !is_new(f, node, name))
		return nowhere;
	if (f->call->request_error.code)
		return reject(f, FILTER_UNRESOLVABLE, f->call->request_error.text);
	if (!f->call->request.count)
		return fits;
	if (f->gang.result != GANG_FILTER_ALONE)
		return judge_for_gang(f, node, name);
	return args->whole ? judge_whole(f, json_array_get(args->whole, i)) : judge_known(f, node);
}

static void find_nodes(const struct filtering *f, size_t from,
		       struct model_node *ret[STRING_MAP_SOME])
{
	const struct call_args *args = f->answer->args;
	struct string_map_text text[STRING_MAP_SOME];
	void *found[STRING_MAP_SOME] = { 0 };
	unsigned count = 0;
	for (; count < STRING_MAP_SOME && from + count < args->count && !args->whole; count++) {
		const struct call_name *name = &args->name[from + count];
		text[count] = (struct string_map_text){ name->text ? name->text : "", name->length };
	}
	string_map_find_some(&f->model->nodes, text, count, found);
	for (unsigned i = 0; i < STRING_MAP_SOME; i++) {
		struct model_node *node = found[i];
		ret[i] = node && node->exists ? node : NULL;
		if (node)
			inventory_prefetch(&node->inventory);
	}
}

static void judge_all(struct filtering *f)
{
	struct filter_answer *answer = f->answer;
	struct model_node *node[STRING_MAP_SOME];
	f->model->filters++;
	fit_begin(&f->model->fit, &f->call->request);
	model_apply_quota(f->model, f->call->pod->pod_namespace);
	for (size_t i = 0; i < answer->args->count; i++) {
		if (i % STRING_MAP_SOME == 0)
			find_nodes(f, i, node);
		answer->verdict[i] = judge_any(f, i, node[i % STRING_MAP_SOME]);
		answer->fits += answer->verdict[i].list == FILTER_FITS;
	}
}

#define DISPLACE_NODES_MOST 64 /* most nodes that nominate_node() examines */

/* Whether to evict pods of lower priority. Not for a gang's pod: the whole gang needs room, so the verb preempt decides. */
static bool may_preempt(const struct filtering *f)
{
	const json_t *spec = json_object_get(f->call->pod->object, "spec");
	const char *policy = json_string_value(json_object_get(spec, "preemptionPolicy"));
	const struct model_pod *known = model_find_pod(f->model, f->call->pod->uid);
	return known && !known->member && !(policy && !strcmp(policy, "Never"));
}

/*
 * Call when no node fits. Examines nodes with verdict FILTER_FAILED. Of those where evictions make room, nominates for the pod
 * the node whose most important victim has the lowest priority. Does nothing for an opportunistic pod.
 */
static void nominate_node(struct filtering *f)
{
	const struct filter_answer *answer = f->answer;
	const char *uid = f->call->pod->uid, *best = NULL;
	unsigned tried = 0;
	int32_t priority, lowest = INT32_MAX;
	const bool may = may_preempt(f);
	if (f->call->request.is_opportunistic)
		return;
	for (size_t i = 0; i < answer->args->count && tried < DISPLACE_NODES_MOST; i++) {
		const char *name = answer->args->name[i].text;
		if (answer->verdict[i].list != FILTER_FAILED)
			continue;
		tried++;
		if (!model_nomination_cost(f->model, &f->call->request, uid, may, name, &priority) ||
		    (best && priority >= lowest))
			continue;
		best = name;
		lowest = priority;
	}
	/* Evict nothing for a gang's pod if the gang's other pods would still have no room. */
	if (best && extender_gang_may_preempt(f->model, f->call, INT32_MIN))
		model_nominate(f->model, uid, may, best);
}

static int filter_gang(struct filtering *f)
{
	const struct call_args *args = f->answer->args;
	if (!args->is_by_names || !f->call->suspended || !f->call->suspended->member)
		return 0;
	json_t *names = call_args_names(args);
	if (!names)
		return -ENOMEM;
	extender_gang_filter(f->model, f->call, names, &f->gang);
	json_decref(names);
	return 0;
}

static void decide(struct filtering *f)
{
	const struct filter_answer *answer = f->answer;
	if (filter_gang(f) < 0) {
		f->failed = true;
		return;
	}
	judge_all(f);
	if (!answer->args->is_by_names)
		return;
	if (!f->call->request_error.code)
		model_set_unschedulable(f->model, f->call->pod->uid, !answer->fits);
	if (!answer->fits)
		nominate_node(f);
}

struct filter_answer *extender_filter(struct model *m, struct call_args *args)
{
	struct error err = { 0 };
	struct extender_call call = { 0 };
	struct filtering f = {
		.model = m, .call = &call, .answer = filter_answer_new(args), .others = json_object()
	};
	f.failed = !f.answer || !f.others;
	/*
	 * A call that names nodes is about a real pod; an autoscaler's simulation sends whole Node objects instead. The watch
	 * may not have reported a real pod yet, so the model adds it here. Ignore errors: extender_call_begin() reports them.
	 */
	if (!f.failed && args->is_by_names && model_check_ready(m, NULL) >= 0)
		model_update_pod_from_filter(m, json_object_get(args->object, "Pod"), NULL);
	if (!f.failed && extender_call_begin(m, args->object, &call, &err) >= 0) {
		decide(&f);
		extender_call_end(&call);
	}
	json_decref(f.others);
	if (f.failed) {
		filter_answer_put(f.answer);
		return NULL;
	}
	snprintf(f.answer->error, sizeof(f.answer->error), "%s", err.code ? err.text : "");
	text_clean(f.answer->error);
	return f.answer;
}
