#include "packing/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned nodes_of(const struct packing_machine *machine, unsigned scale)
{
	return (machine->nodes + scale - 1) / scale;
}

void packing_cluster_make(unsigned scale, bool has_cpus, struct packing_cluster *ret)
{
	struct packing_cluster c = { .has_cpus = has_cpus };
	for (size_t m = 0; m < packing_machine_count; m++)
		c.nodes += nodes_of(&packing_machines[m], scale);
	c.node = calloc(c.nodes, sizeof(*c.node));
	if (!c.node)
		abort();
	unsigned at = 0;
	for (size_t m = 0; m < packing_machine_count; m++) {
		const struct packing_machine *machine = &packing_machines[m];
		for (unsigned i = 0; i < nodes_of(machine, scale); i++) {
			struct packing_node *node = &c.node[at++];
			*node = (struct packing_node){ .model = machine->model,
						       .cards = machine->cards,
						       .cpu_milli = (int)machine->cpu_milli };
			for (unsigned k = 0; k < node->cards; k++)
				node->left_milli[k] = PACKING_WHOLE_MILLI;
			c.cards += node->cards;
		}
	}
	*ret = c;
}

void packing_cluster_free(struct packing_cluster *cluster)
{
	free(cluster->node);
	*cluster = (struct packing_cluster){ 0 };
}

bool packing_has_cpus(const struct packing_cluster *cluster, unsigned node,
		      const struct packing_task *task)
{
	return !cluster->has_cpus || cluster->node[node].cpu_milli >= (int)task->cpu_milli;
}

bool packing_fits(const struct packing_cluster *cluster, unsigned n, const struct packing_task *task)
{
	const struct packing_node *node = &cluster->node[n];
	unsigned serve = 0;
	if (!packing_has_cpus(cluster, n, task) || !(task->models >> node->model & 1))
		return false;
	for (unsigned k = 0; k < node->cards; k++)
		serve += node->left_milli[k] >= (int)task->milli;
	return serve >= task->cards;
}

static void change(struct packing_cluster *cluster, const struct packing_task *task,
		   const struct packing_place *place, int sign)
{
	struct packing_node *node = &cluster->node[place->node];
	node->cpu_milli -= sign * (int)task->cpu_milli;
	node->version++;
	for (unsigned k = 0; k < PACKING_CARDS_MAX; k++)
		if (place->cards >> k & 1) {
			node->left_milli[k] -= sign * (int)task->milli;
			node->tasks[k] += (unsigned)sign;
		}
}

void packing_take(struct packing_cluster *cluster, const struct packing_task *task,
		  const struct packing_place *place)
{
	const struct packing_node *node = &cluster->node[place->node];
	bool fits = packing_fits(cluster, place->node, task) &&
		    (unsigned)__builtin_popcount(place->cards) == task->cards &&
		    !(place->cards >> node->cards);
	for (unsigned k = 0; fits && k < node->cards; k++)
		fits = !(place->cards >> k & 1) || node->left_milli[k] >= (int)task->milli;
	if (!fits) {
		fprintf(stderr,
			"packing: %u cards of %u/1000 on cards %#x of node %u: there is no room\n",
			task->cards, task->milli, place->cards, place->node);
		exit(1);
	}
	change(cluster, task, place, 1);
}

void packing_give_back(struct packing_cluster *cluster, const struct packing_task *task,
		       const struct packing_place *place)
{
	change(cluster, task, place, -1);
}

uint32_t packing_free_cards(const struct packing_node *node, unsigned cards)
{
	uint32_t found = 0;
	for (unsigned k = 0; k < node->cards && cards; k++)
		if (node->left_milli[k] == PACKING_WHOLE_MILLI) {
			found |= UINT32_C(1) << k;
			cards--;
		}
	return found;
}

/* ---- the policies ---- */

const struct packing_policy packing_policies[] = {
	{ "allot-fragmentation", allot_begin, allot_place, allot_ended, allot_end, "fragmentation",
	  "fragmentation" },
	{ "allot-binpack", allot_begin, allot_place, allot_ended, allot_end, "binpack", "binpack" },
	{ "allot-default", allot_begin, allot_place, allot_ended, allot_end, "binpack", "spread" },
	{ "hami-binpack", hami_begin, hami_place, NULL, hami_end, "binpack", "binpack" },
	{ "hami-default", hami_begin, hami_place, NULL, hami_end, "binpack", "spread" },
	{ "fgd", fgd_begin, fgd_place, NULL, fgd_end, NULL, NULL },
	{ "fgd+", fgd_begin, fgd_place, NULL, fgd_end, "binpack", NULL },
	{ "random", any_begin, any_place, NULL, any_end, NULL, NULL },
};
const size_t packing_policy_count = sizeof(packing_policies) / sizeof(packing_policies[0]);

const struct packing_policy *packing_policy_find(const char *name)
{
	for (size_t i = 0; i < packing_policy_count; i++)
		if (!strcmp(packing_policies[i].name, name))
			return &packing_policies[i];
	return NULL;
}
