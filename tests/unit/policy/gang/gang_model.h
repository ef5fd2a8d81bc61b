/*
 * A model of several GPUs, each with its own arbiter and polling loop, on virtual time in ticks of
 * 10 us. A tenant has a rank (a process) on one or more of the GPUs. Each GPU behaves as in
 * policy/lease/gpu_model.h: one context at a time, the hardware's slices, switches, a gate with bounded
 * work in flight.
 *
 * In addition there are collectives, as NCCL has them: a kernel on each of the tenant's GPUs. It begins
 * on a GPU when the rank there reaches it, and spins until it has begun on all. Then it runs
 * collective_ns on each. The length of the next collective on a GPU is predicted from the last ones
 * there, spinning included. Ranks run on their own, as processes do: only collectives keep them together.
 */
#pragma once

#include "policy/gang/device_gang.h"
#include "policy/lease/arbiter.h"
#include "../lease/gpu_model.h" /* units of time, chance */

#define GANG_MODEL_DEVICES 4
#define GANG_MODEL_TENANTS 16

/* The load of each rank: again and again a round of `kernels` kernels of kernel_ns and a collective. */
struct gang_model_load {
	unsigned devices;   /* bit d: has a rank on device d */
	uint64_t kernel_ns; /* 0: launches nothing */
	uint64_t kernel_max_ns; /* when set, lengths are uniform from kernel_ns to this, drawn for each rank */
	unsigned kernels;       /* before each collective, at least 1 */
	uint64_t collective_ns; /* from its start on all GPUs; 0: no collectives */
	unsigned sync_every; /* when set: after this many rounds the thread waits for its work, ... */
	uint64_t think_ns;   /* ... and then does this long something else, */
	uint64_t think_max_ns; /* or up to this long */
	unsigned only; /* when set: only the ranks on these devices launch, without collectives */
	uint64_t launch_ns; /* the thread's time for a launch; 0: nearly none */
	unsigned stall_every; /* when set: once in this many launches the thread does something else, ... */
	uint64_t stall_max_ns; /* ... for up to this long */
	bool overlaps; /* a collective runs beside later launches, as on a stream of its own */
	bool reports_sync_points; /* reports its waits for its work, and how long it works without a lead (rank.has_lead) */
};

struct gang_model_config {
	struct arbiter_config arbiter;
	bool is_off; /* no gangs: the arbiters know nothing of each other */
	uint64_t seed;
	unsigned devices;
	uint64_t switch_ns;
	uint64_t poll_jitter_ns;
};

struct gang_model;

struct gang_model_config gang_model_default_config(void);
struct gang_model *gang_model_new(const struct gang_model_config *config);
struct gang_model *gang_model_free(struct gang_model *model);
/* Adds a tenant, with the same share on all its devices. Returns its number. */
int gang_model_add(struct gang_model *model, struct arbiter_share share,
		   const struct gang_model_load *load);
void gang_model_remove(struct gang_model *model, int tenant);
/* `devices` of the load must stay the same. */
void gang_model_set_load(struct gang_model *model, int tenant, const struct gang_model_load *load);
void gang_model_set_stopped(struct gang_model *model, int tenant, bool stopped);
void gang_model_run(struct gang_model *model, uint64_t duration_ns);

/* Time in which the tenant's kernels did work on a device, and in which a collective only spun there. */
uint64_t gang_model_work_ns(const struct gang_model *model, int tenant, unsigned device);
uint64_t gang_model_spin_ns(const struct gang_model *model, int tenant, unsigned device);
uint64_t gang_model_collectives(const struct gang_model *model, int tenant);
/* The longest time of a collective since the last call, from its beginning on the first GPU to its end on the last. */
uint64_t gang_model_take_longest_collective_ns(struct gang_model *model, int tenant);
/*
 * The quantile `part` of the times of all collectives since the last call of this function or the one above. For a load without
 * collectives, of the times from the end of a pause to the end of the next wait for the work.
 */
uint64_t gang_model_take_collective_ns(struct gang_model *model, int tenant, double part);
/* The longest time, since the last call, without progress on a device of a tenant that had work. */
uint64_t gang_model_take_longest_wait_ns(struct gang_model *model, int tenant);
struct arbiter *gang_model_arbiter(struct gang_model *model, unsigned device);
int gang_model_index(const struct gang_model *model, int tenant, unsigned device);
const struct gang_board *gang_model_board(const struct gang_model *model);
int gang_model_gang(const struct gang_model *model, int tenant);
/* Steps that broke a rule: two leases on a device, or a gang's GO beside another gang's. */
uint64_t gang_model_violations(const struct gang_model *model);
