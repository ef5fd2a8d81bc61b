/*
 * Several GPUs, each with an arbiter and a polling loop of its own, and tenants with a rank on one or
 * more of them, on virtual time in ticks of 10 us. What gpu_model.h says of one GPU holds for each here
 * (one context at a time, the hardware's slices, switches, a gate with bounded work in flight); beyond
 * that there are collectives: kernels that begin on each of the tenant's GPUs when the rank there comes
 * to them, and spin there until they have begun on all; then all take as long. How long the next takes is
 * predicted from the last ones on that GPU, the spinning included.
 *
 * Ranks run on their own, as processes do: nothing but collectives keeps them together.
 */
#pragma once

#include "policy/gang/device_gang.h"
#include "policy/lease/arbiter.h"
#include "../lease/gpu_model.h" /* units of time, chance */

#define GANG_MODEL_DEVICES 4
#define GANG_MODEL_TENANTS 16

/* The load of a rank: `kernels` of kernel_ns, a collective, and again. */
struct gang_model_load {
	unsigned devices;       /* a bit each */
	uint64_t kernel_ns;     /* 0: nothing at all */
	uint64_t kernel_max_ns; /* when set, lengths are uniform in between, for each rank by itself */
	unsigned kernels;       /* before each collective, at least 1 */
	uint64_t collective_ns; /* from its start on all GPUs; 0: no collectives */
	unsigned sync_every; /* when set: after this many rounds the thread waits for its work, ... */
	uint64_t think_ns;   /* ... and then does this long something else, */
	uint64_t think_max_ns; /* or up to this long */
	unsigned only;         /* when set: the devices that it makes use of, without collectives */
	uint64_t launch_ns;    /* the thread's time for a launch; 0: nearly none */
	unsigned stall_every; /* when set: once in this many launches the thread does something else, ... */
	uint64_t stall_max_ns; /* ... for up to this long */
	bool overlaps; /* a collective runs beside later launches, as on a stream of its own */
	bool reports_sync_points; /* of waits for its work, and of how long it is without a lead */
};

struct gang_model_config {
	struct arbiter_config arbiter;
	bool is_off; /* arbiters that know nothing of each other */
	uint64_t seed;
	unsigned devices;
	uint64_t switch_ns;
	uint64_t poll_jitter_ns;
};

struct gang_model;

struct gang_model_config gang_model_default_config(void);
struct gang_model *gang_model_new(const struct gang_model_config *config);
struct gang_model *gang_model_free(struct gang_model *model);
/* Returns the tenant's number; the share is the same on all its devices. */
int gang_model_add(struct gang_model *model, struct arbiter_share share,
		   const struct gang_model_load *load);
void gang_model_remove(struct gang_model *model, int tenant);
/* The devices must stay the same. */
void gang_model_set_load(struct gang_model *model, int tenant, const struct gang_model_load *load);
void gang_model_set_stopped(struct gang_model *model, int tenant, bool stopped);
void gang_model_run(struct gang_model *model, uint64_t duration_ns);

/* GPU time that did work on a device; that a collective only waited there for its like. */
uint64_t gang_model_work_ns(const struct gang_model *model, int tenant, unsigned device);
uint64_t gang_model_spin_ns(const struct gang_model *model, int tenant, unsigned device);
uint64_t gang_model_collectives(const struct gang_model *model, int tenant);
/* The longest that one took from its first beginning to its last end, since the last call. */
uint64_t gang_model_take_longest_collective_ns(struct gang_model *model, int tenant);
/* The quantile `part` of these times; without collectives, of the time between its waits for its work. */
uint64_t gang_model_take_collective_ns(struct gang_model *model, int tenant, double part);
/* The longest time, since the last call, without progress on a device of a tenant that had work. */
uint64_t gang_model_take_longest_wait_ns(struct gang_model *model, int tenant);
struct arbiter *gang_model_arbiter(struct gang_model *model, unsigned device);
int gang_model_index(const struct gang_model *model, int tenant, unsigned device);
const struct gang_board *gang_model_board(const struct gang_model *model);
int gang_model_gang(const struct gang_model *model, int tenant);
/* Steps that broke a rule: two leases on a device, or a gang's GO beside another gang's. */
uint64_t gang_model_violations(const struct gang_model *model);
