/*
 * Measurements of a policy: a cluster that is filled until nothing fits, and a day of arrivals. Both use only their own clock.
 */
#pragma once

#include "packing/cluster.h"

struct packing_setting {
	bool has_models, has_cpus;
	unsigned scale; /* one of so many nodes */
};

/* Of a class of tasks. */
struct packing_part {
	double asked, got; /* GPUs; of a day: GPU hours */
};

struct packing_result {
	unsigned nodes, cards;
	double packed;    /* of all GPUs: what is allocated at the end; of a day: over its time */
	double at_first;  /* the same when the first task found no room; of a day: 0 */
	double at_demand; /* the same when as much was asked for as there is */
	unsigned tasks, failed /* of a day: that wait at its end */;
	double wait_s; /* of a day: of tasks that were placed or still wait, on average */
	struct packing_part of[PACKING_CLASSES];
	double decision_us, decision_p99_us; /* of this thread */
};

/*
 * Tasks come and never end, until `demand` times as much is asked for as there is; who finds no room is turned away. The same
 * tasks for each policy, by the seed.
 */
struct packing_result packing_fill(const struct packing_policy *policy,
				   const struct packing_setting *setting, double demand,
				   uint64_t seed);

/*
 * Two days, of which the second is measured: so many tasks arrive that the GPUs they want, as long as they want them, are
 * `load` of all. Who finds no room waits, and is tried again each minute in which some task has ended, the oldest first.
 */
struct packing_result packing_day(const struct packing_policy *policy,
				  const struct packing_setting *setting, double load, uint64_t seed);
