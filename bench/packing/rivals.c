/*
 * Those that allot is compared with, each by its own definition: HAMi's formulas, fragmentation gradient descent, chance.
 * Nodes and cards that a policy can't tell apart are taken in their order.
 */
#include <stdlib.h>
#include <string.h>

#include "packing/cluster.h"

#define SLOTS 20 /* of a card: more than a trace's parts ever are */

/* ---- HAMi: 10 * (cards in use + time + memory, each of all), before the request for nodes, with it for cards ---- */

static double hami_node(const struct packing_node *node)
{
	double used = 0, milli = 0;
	for (unsigned k = 0; k < node->cards; k++) {
		used += node->tasks[k] > 0;
		milli += PACKING_WHOLE_MILLI - node->left_milli[k];
	}
	return 10 * (used + 2 * milli / PACKING_WHOLE_MILLI) / node->cards;
}

static double hami_card(const struct packing_node *node, unsigned k, const struct packing_task *task)
{
	double milli = PACKING_WHOLE_MILLI - node->left_milli[k] + (double)task->milli;
	return 10 * ((1.0 + node->tasks[k]) / SLOTS + 2 * milli / PACKING_WHOLE_MILLI);
}

static uint32_t hami_cards(const struct packing_node *node, const struct packing_task *task,
			   bool is_spread)
{
	unsigned best = PACKING_CARDS_MAX;
	if (task->cards != 1)
		return packing_free_cards(node, task->cards);
	for (unsigned k = 0; k < node->cards; k++) {
		if (node->left_milli[k] < (int)task->milli)
			continue;
		double score = hami_card(node, k, task);
		if (best == PACKING_CARDS_MAX || (is_spread ? score < hami_card(node, best, task)
							    : score > hami_card(node, best, task)))
			best = k;
	}
	return UINT32_C(1) << best;
}

void *hami_begin(const struct packing_policy *policy, const struct packing_cluster *cluster,
		 const struct packing_histogram *histogram, uint64_t seed)
{
	return (void *)(uintptr_t)policy;
}

bool hami_place(void *data, const struct packing_cluster *cluster, const struct packing_task *task,
		unsigned id, struct packing_place *ret)
{
	const struct packing_policy *policy = data;
	double best = -1;
	for (unsigned n = 0; n < cluster->nodes; n++) {
		const struct packing_node *node = &cluster->node[n];
		if (!packing_fits(cluster, n, task) || hami_node(node) <= best)
			continue;
		best = hami_node(node);
		ret->node = n;
	}
	if (best >= 0)
		ret->cards = hami_cards(&cluster->node[ret->node], task,
					!strcmp(policy->cards, "spread"));
	return best >= 0;
}

void hami_end(void *data)
{
}

/* ---- fragmentation gradient descent ---- */

/*
 * A node's fragmentation is what a task, drawn from the workload histogram, is expected to find on it and can't use: all that is left where
 * it does not fit, else what is left of the cards that have too little for it (sections 3 and 4 of its paper). A task goes
 * where that grows least. What was found of a node holds until the node changes.
 */
struct fgd {
	const struct packing_histogram *histogram;
	size_t typical; /* kinds by how frequent they are, as many as make up nearly all */
	size_t order[1024];
	double part_of_typical, tie;
	struct found {
		uint64_t version;
		double growth;
		uint32_t cards;
	} * found; /* [node * kinds + kind]; version 0: nothing */
};
#define TYPICAL_PART 0.95 /* the authors' simulator leaves the rarest out as well */
/* "fgd+": so much does what is left on the node count beside what it grows by. */
#define FULLER_FIRST 1e-3

static double fragments(const struct fgd *fgd, const struct packing_cluster *one)
{
	const struct packing_node *node = one->node;
	double all = 0, sum = 0;
	for (unsigned k = 0; k < node->cards; k++)
		all += node->left_milli[k];
	for (size_t i = 0; i < fgd->typical; i++) {
		const struct packing_kind *kind = &fgd->histogram->kind[fgd->order[i]];
		double useless = 0;
		if (!kind->task.cards)
			continue;
		if (!packing_fits(one, 0, &kind->task))
			useless = all;
		for (unsigned k = 0; useless < all && k < node->cards; k++)
			if (node->left_milli[k] < (int)kind->task.milli)
				useless += node->left_milli[k];
		sum += kind->part * useless;
	}
	return sum / fgd->part_of_typical;
}

static void try_cards(const struct fgd *fgd, const struct packing_cluster *cluster, unsigned n,
		      const struct packing_task *task, uint32_t cards, struct found *best)
{
	struct packing_node with = cluster->node[n];
	struct packing_cluster one = { .nodes = 1, .has_cpus = cluster->has_cpus, .node = &with };
	double before = fragments(fgd, &one), left = 0;
	packing_take(&one, task, &(struct packing_place){ 0, cards });
	double growth = fragments(fgd, &one) - before;
	for (unsigned k = 0; k < with.cards; k++)
		left += with.left_milli[k];
	growth += fgd->tie * left;
	if (best->cards != UINT32_MAX && growth >= best->growth)
		return;
	best->growth = growth;
	best->cards = cards;
}

static bool is_like_one_before(const struct packing_node *node, unsigned k)
{
	for (unsigned i = 0; i < k; i++)
		if (node->left_milli[i] == node->left_milli[k])
			return true;
	return false;
}

static struct found look(const struct fgd *fgd, const struct packing_cluster *cluster, unsigned n,
			 const struct packing_task *task)
{
	const struct packing_node *node = &cluster->node[n];
	struct found best = { .version = node->version + 1, .cards = UINT32_MAX };
	if (task->cards > 1)
		try_cards(fgd, cluster, n, task, packing_free_cards(node, task->cards), &best);
	for (unsigned k = 0; task->cards == 1 && k < node->cards; k++)
		if (node->left_milli[k] >= (int)task->milli && !is_like_one_before(node, k))
			try_cards(fgd, cluster, n, task, UINT32_C(1) << k, &best);
	return best;
}

bool fgd_place(void *data, const struct packing_cluster *cluster, const struct packing_task *task,
	       unsigned id, struct packing_place *ret)
{
	struct fgd *fgd = data;
	size_t kind = packing_kind_of(fgd->histogram, task);
	const struct found *best = NULL;
	for (unsigned n = 0; n < cluster->nodes; n++) {
		struct found *found = &fgd->found[n * fgd->histogram->count + kind];
		if (!packing_fits(cluster, n, task))
			continue;
		if (found->version != cluster->node[n].version + 1)
			*found = look(fgd, cluster, n, task);
		if (best && found->growth >= best->growth)
			continue;
		best = found;
		*ret = (struct packing_place){ n, found->cards };
	}
	return best != NULL;
}

void *fgd_begin(const struct packing_policy *policy, const struct packing_cluster *cluster,
		const struct packing_histogram *histogram, uint64_t seed)
{
	struct fgd *fgd = calloc(1, sizeof(*fgd));
	if (!fgd || !(fgd->found = calloc(cluster->nodes * histogram->count, sizeof(*fgd->found))))
		abort();
	fgd->histogram = histogram;
	fgd->tie = policy->nodes ? FULLER_FIRST : 0;
	for (size_t i = 0; i < histogram->count; i++) {
		size_t at = i;
		for (; at && histogram->kind[fgd->order[at - 1]].part < histogram->kind[i].part;
		     at--)
			fgd->order[at] = fgd->order[at - 1];
		fgd->order[at] = i;
	}
	while (fgd->part_of_typical < TYPICAL_PART)
		fgd->part_of_typical += histogram->kind[fgd->order[fgd->typical++]].part;
	return fgd;
}

void fgd_end(void *data)
{
	struct fgd *fgd = data;
	free(fgd->found);
	free(fgd);
}

/* ---- chance ---- */

void *any_begin(const struct packing_policy *policy, const struct packing_cluster *cluster,
		const struct packing_histogram *histogram, uint64_t seed)
{
	struct packing_random *random = malloc(sizeof(*random));
	if (!random)
		abort();
	random->state = seed;
	return random;
}

bool any_place(void *data, const struct packing_cluster *cluster, const struct packing_task *task,
	       unsigned id, struct packing_place *ret)
{
	struct packing_random *random = data;
	unsigned fitting = 0;
	for (unsigned n = 0; n < cluster->nodes; n++)
		if (packing_fits(cluster, n, task) && packing_random_next(random) % ++fitting == 0)
			ret->node = n;
	if (fitting)
		ret->cards = hami_cards(&cluster->node[ret->node], task, false);
	return fitting > 0;
}

void any_end(void *data)
{
	free(data);
}
