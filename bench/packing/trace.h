/*
 * A cluster and the tasks that come to it, drawn from what was published of one: "cluster-trace-gpu-v2023" of
 * github.com/alibaba/clusterdata, the cluster of "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
 * Gradient Descent" (USENIX ATC 2023). What is kept here are counts: nodes of each kind, tasks of each size, tasks of each
 * size that name models of GPUs (its list with 33 % of them), and quantiles of how long tasks ran. Nothing else of the trace is.
 *
 * Assumed, as the trace does not say it: what a task asks of a GPU it asks of its time and of its memory alike; sizes and
 * models are independent within a class; the memory of a node's own is never what is missing; G2 and G3, whose names are
 * withheld, have 80 GiB.
 *
 * The same seed draws the same tasks. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKING_CARDS_MAX 8
#define PACKING_WHOLE_MILLI 1000

struct packing_model {
	const char *name;
	unsigned memory_mib;
};
#define PACKING_MODELS 7
#define PACKING_ANY_MODEL ((1u << PACKING_MODELS) - 1)
extern const struct packing_model packing_models[PACKING_MODELS];

/* Nodes that are alike. */
struct packing_machine {
	unsigned model, cards, cpu_milli, nodes;
};
extern const struct packing_machine packing_machines[];
extern const size_t packing_machine_count;

enum packing_class {
	PACKING_NO_CARD,
	PACKING_PART,
	PACKING_ONE,
	PACKING_TWO,
	PACKING_FOUR,
	PACKING_EIGHT,
	PACKING_CLASSES
};
extern const char *const packing_class_names[PACKING_CLASSES];

struct packing_task {
	enum packing_class class;
	unsigned cards, milli; /* of each card */
	unsigned cpu_milli;
	uint32_t models; /* bit i: packing_models[i] will do */
};

/* One kind of task, and its part of all. */
struct packing_kind {
	struct packing_task task;
	double part;
};

/* The distributions of the trace. */
struct packing_histogram {
	size_t count;
	struct packing_kind kind[1024];
};

/* Of GPU tasks, that name models as the trace has it, or none does; that want CPUs beside, or none. */
void packing_histogram_make(bool has_models, bool has_cpus, struct packing_histogram *ret);

struct packing_random {
	uint64_t state;
};
uint64_t packing_random_next(struct packing_random *random);
double packing_random_part(struct packing_random *random); /* 0 to 1 */

/* Which kind of the workload histogram a task is that was drawn from it. */
static inline size_t packing_kind_of(const struct packing_histogram *histogram,
				     const struct packing_task *task)
{
	return (size_t)((const char *)task - (const char *)histogram->kind) /
	       sizeof(histogram->kind[0]);
}

const struct packing_task *packing_draw(const struct packing_histogram *histogram,
					struct packing_random *random);
/* How long it runs, a day at most; and the mean of that over many. */
double packing_draw_s(enum packing_class class, struct packing_random *random);
double packing_mean_s(enum packing_class class);
