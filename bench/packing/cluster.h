/*
 * The cluster as it truly is, and who decides about it: a policy is told of tasks that come and go, and places each. What it says
 * is judged here; who gives a card twice is found out.
 */
#pragma once

#include "packing/trace.h"

struct packing_node {
	unsigned model, cards;
	int cpu_milli; /* left */
	int left_milli[PACKING_CARDS_MAX];
	unsigned tasks[PACKING_CARDS_MAX];
	uint64_t version; /* another after each change */
};

struct packing_cluster {
	unsigned nodes, cards;
	bool has_cpus;             /* they are counted */
	struct packing_node *node; /* owned */
};

struct packing_place {
	unsigned node;
	uint32_t cards; /* bit i: card i */
};

/* One of `scale` nodes of each kind, empty. Exits without memory, as all here does. */
void packing_cluster_make(unsigned scale, bool has_cpus, struct packing_cluster *ret);
void packing_cluster_free(struct packing_cluster *cluster);

/* CPUs and model apart from cards: what kube-scheduler looks at before it asks an extender. */
bool packing_has_cpus(const struct packing_cluster *cluster, unsigned node,
		      const struct packing_task *task);
bool packing_fits(const struct packing_cluster *cluster, unsigned node,
		  const struct packing_task *task);
/* Exits with what is wrong where it does not fit there. */
void packing_take(struct packing_cluster *cluster, const struct packing_task *task,
		  const struct packing_place *place);
void packing_give_back(struct packing_cluster *cluster, const struct packing_task *task,
		       const struct packing_place *place);
/* Of a task that asks for whole cards: the first that are free; of none: none. */
uint32_t packing_free_cards(const struct packing_node *node, unsigned cards);

struct packing_policy {
	const char *name;
	void *(*begin)(const struct packing_policy *policy, const struct packing_cluster *cluster,
		       const struct packing_histogram *histogram, uint64_t seed);
	/* false: nowhere. */
	bool (*place)(void *data, const struct packing_cluster *cluster,
		      const struct packing_task *task, unsigned id, struct packing_place *ret);
	/* It has ended, or will not be asked about again; NULL: nobody has to know. */
	void (*ended)(void *data, unsigned id);
	void (*end)(void *data);
	const char *nodes, *cards; /* of allot's own: its policies */
};

/*
 * "allot" is the scheduler's own code in this process, from JSON to JSON, by the policy that is named; "hami" HAMi's formulas
 * (policy/placement/score.h has them too), "fgd" fragmentation gradient descent, told the workload histogram beforehand, as
 * in its paper, "fgd+" the same with the fuller node where both are nearly as good, "random" any node that fits.
 */
extern const struct packing_policy packing_policies[];
extern const size_t packing_policy_count;
/* NULL: none of that name. */
const struct packing_policy *packing_policy_find(const char *name);

/* Of packing_policies alone. */
#define PACKING_SIGNATURES(kind) \
	void *kind##_begin(const struct packing_policy *policy, \
			   const struct packing_cluster *cluster, \
			   const struct packing_histogram *histogram, uint64_t seed); \
	bool kind##_place(void *data, const struct packing_cluster *cluster, \
			  const struct packing_task *task, unsigned id, struct packing_place *ret); \
	void kind##_end(void *data)
PACKING_SIGNATURES(allot);
PACKING_SIGNATURES(hami);
PACKING_SIGNATURES(fgd);
PACKING_SIGNATURES(any);
void allot_ended(void *data, unsigned id);
