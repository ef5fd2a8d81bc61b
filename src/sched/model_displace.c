/*
 * Pods that find no room, but would if fillers (filler.h) ended: those go for their sake, whatever the priorities are. Which node
 * that is was found out by a filter's call, which alone knows where the pod may go; who goes is decided some seconds later,
 * if the pod still waits then.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "sched/filler.h"
#include "sched/model_inside.h"

#define SETTLE_NS (UINT64_C(5) * 1000000000) /* what others are about to give back may do */

static bool has_fillers(const struct model_node *node)
{
	for (unsigned i = 0; i < node->stock.count; i++)
		if (node->stock.use[i].borrowed_pct)
			return true;
	return false;
}

static void drop_stock(struct stock *stock)
{
	stock_free(stock);
}
#define cleanup_stock cleanup(drop_stock)

static bool fits(struct model *m, const struct stock *stock)
{
	struct fit_reasons reasons;
	return fit_check(&m->fit, stock, &reasons);
}

/* All that could go, in the order in which they should; who goes already is gone from the stock. NULL: no memory. */
static struct filler *list_fillers(const struct model *m, const struct model_node *node,
				   struct stock *stock, size_t *ret_count)
{
	size_t pods = 0, count = 0;
	for (const struct model_pod *p = node->pods; p; p = p->next)
		pods++;
	struct filler *list = calloc(pods + 1, sizeof(*list));
	for (struct model_pod *p = node->pods; list && p; p = p->next) {
		if (!model_is_filler(p))
			continue;
		if (model_is_going(m, p))
			stock_discharge(stock, &p->charged->hold);
		else if (p->is_bound && p->kept_ns <= m->now_ns)
			list[count++] = (struct filler){ .priority = p->priority,
							 .since_s = p->since_s,
							 .pod = p };
	}
	*ret_count = count;
	if (list)
		filler_sort(list, count);
	return list;
}

static const struct stock_hold *hold_of(const struct filler *one)
{
	const struct model_pod *pod = one->pod;
	return &pod->charged->hold;
}

/* One after the other goes until there is room; then who is not needed for it is spared, the highest first. */
static bool choose(struct model *m, struct stock *stock, struct filler *list, size_t count)
{
	size_t gone = 0;
	while (!fits(m, stock)) {
		if (gone == count)
			return false;
		list[gone].goes = true;
		stock_discharge(stock, hold_of(&list[gone++]));
	}
	for (size_t i = gone; i-- > 0;) {
		stock_charge(stock, hold_of(&list[i]));
		list[i].goes = !fits(m, stock);
		if (list[i].goes)
			stock_discharge(stock, hold_of(&list[i]));
	}
	return true;
}

/* Would there be room for what m->fit is about? *ret_list is to be freed. */
static bool try_node(struct model *m, const struct model_node *node, struct filler **ret_list,
		     size_t *ret_count)
{
	cleanup_stock struct stock stock = { 0 };
	*ret_list = NULL;
	if (!has_fillers(node) || stock_copy(&node->stock, &stock) < 0)
		return false;
	*ret_list = list_fillers(m, node, &stock, ret_count);
	return *ret_list && choose(m, &stock, *ret_list, *ret_count);
}

/* ---- a filter's call ---- */

void model_forget_want(struct model *m, struct model_pod *pod)
{
	if (pod->wants)
		model_node_give(m, pod->wants);
	pod->wants = NULL;
}

bool model_want(struct model *m, const struct request *request, const char *uid, const char *name)
{
	struct model_pod *pod = model_find_pod(m, uid);
	struct model_node *node = model_find_node(m, name);
	cleanup_free struct filler *list = NULL;
	size_t count;
	if (!pod || !pod->at_open || !node || node->aside)
		return false;
	fit_begin(&m->fit, request);
	model_hold_to_quota(m, pod->pod_namespace);
	if (!try_node(m, node, &list, &count))
		return false;
	if (pod->wants != node) {
		model_forget_want(m, pod);
		pod->wants = model_node_take(m, node->name);
		pod->wants_ns = m->now_ns;
	}
	return true;
}

/* ---- the evictions ---- */

/* So that no other filler takes what was made free. */
static void shut_cards(struct model *m, struct model_node *node, const struct stock_hold *hold)
{
	for (unsigned i = 0; i < node->use.count && i < node->stock.count; i++)
		if (stock_hold_borrowed_pct(hold, node->stock.card[i].uuid) &&
		    node->use.card[i].shut_ns <= m->now_ns)
			model_shut_card(m, node, i);
}

static size_t displace(struct model *m, struct model_pod *pod, struct model_eviction *ret,
		       size_t most)
{
	struct model_node *node = pod->wants;
	cleanup_free struct filler *list = NULL;
	size_t count, named = 0;
	fit_begin(&m->fit, pod->request);
	model_hold_to_quota(m, pod->pod_namespace);
	if (!node->is_there || node->aside || !try_node(m, node, &list, &count))
		return 0;
	for (size_t i = 0; i < count && named < most; i++) {
		struct model_pod *filler = list[i].pod;
		if (!list[i].goes)
			continue;
		model_name_victim(m, filler, &ret[named]);
		ret[named++].is_displaced = true;
		shut_cards(m, node, &filler->charged->hold);
	}
	return named;
}

size_t model_take_displaced(struct model *m, struct model_eviction *ret, size_t most)
{
	size_t count = 0;
	for (struct model_pod *p = m->open; p && count < most; p = p->next_open) {
		if (!p->wants || m->now_ns - p->wants_ns < SETTLE_NS)
			continue;
		if (p->request && !p->charged && !p->is_ending)
			count += displace(m, p, ret + count, most - count);
		model_forget_want(m, p);
	}
	return count;
}
