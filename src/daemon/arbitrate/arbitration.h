/*
 * An arbitration is a thread that divides one GPU's time among tenants. A lessee is one tenant on one GPU. In each step, the
 * thread reads the tenants' slots (abi/shm/region.h), lets the arbiter decide which tenant has the lease
 * (policy/lease/arbiter.h), publishes the decision in the region, and wakes waiting processes. In some steps (ticks), it also
 * increments the regions' heartbeats, samples the GPU time of each tenant, and adapts the limits of tenants that may borrow
 * (policy/lease/rules/lend.h).
 *
 * All calls are thread safe, and wait at most for one step of the thread. The thread sleeps while there is no lessee. It wakes
 * only once a second while no tenant works and every tenant can be trusted to ring its doorbell (doorbell.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/region.h"
#include "base/error.h"
#include "daemon/arbitrate/gang_board.h"
#include "daemon/arbitrate/lease_spans.h"
#include "daemon/arbitrate/step_window.h"
#include "daemon/gpu/nvml/gpu.h"
#include "policy/lease/arbiter.h"
#include "policy/lease/rules/lend.h"

#define ARBITRATION_TICK_NS UINT64_C(50000000) /* interval of heartbeats and samples */
/* Interval of heartbeats while no tenant has anything to do. */
#define ARBITRATION_SLEEP_NS UINT64_C(1000000000)

struct arbitration;
struct lessee;

struct lessee_figures {
	struct arbiter_account account;
	struct arbiter_pace pace;
	enum arbiter_mode mode;
	double got_1s_pct, got_60s_pct;
	double wanted_60s_pct; /* the time for which it worked or waited to work */
	/* largest percentages charged in any 150 ms, and in any 600 ms, of the last second */
	double peak_150ms_pct, peak_600ms_pct;
	/* the part of got_1s_pct for work that the lessee was not allowed to begin (arbiter.h: Obedience) */
	double unauthorized_1s_pct;
	bool waiting; /* threads of the lessee wait until they may launch work */
	bool busy;
	bool stopped;        /* none of its processes can run */
	bool in_gang;        /* turns are coordinated with the tenant's other GPUs */
	uint64_t gang_turns; /* turns taken on all its GPUs at the same time */
	/* GPU time charged for one step of the program (policy/lease/rules/steps.h); 0: unknown. */
	uint64_t step_ns;
	struct step_figures steps;
	/* Turns of processes within leases, and how often all processes ran together instead (policy/lease/turns.h). */
	uint64_t turns, turns_given_up;
	/* The elastic policy's decisions: */
	double limit_now_pct; /* its own limit plus what others lend to it */
	double spare_pct;     /* part of its guarantee that is left to others */
	enum lend_reason lend_reason;
	uint64_t lends, reclaims; /* how often the limit was raised, and lowered */
};

struct arbitration_figures {
	/* Percent of the last second that was charged to all tenants, removed ones too; at most 100. */
	double busy_pct;
	uint64_t charged_ns; /* charged to present and past tenants */
	uint64_t quantum_ns;
	uint64_t handover_ns;
	/* How often a tenant worked, but was missing in ARBITRATION_UNLISTED lists in a row (arbitration_set_use()). */
	uint64_t unlisted;
};

int arbitration_start(struct arbitration **ret, const struct arbiter_config *config,
		      struct error *err);
/*
 * The thread calls on_memory(data), which must not block: once when a process requests memory, and at most 20 times a second
 * while a process reports memory (fresh_bytes in region.h) that no census has seen yet.
 */
typedef void (*arbitration_on_memory)(void *data);
void arbitration_set_on_memory(struct arbitration *a, arbitration_on_memory on_memory, void *data);
/* Sets how the limits of tenants that may borrow are adapted (lend.h). The policy's defaults apply until then. */
void arbitration_set_elastic(struct arbitration *a, const struct lend_config *config);
/* Sets whether a tenant's processes take turns within its leases; the default is no. */
void arbitration_set_turns(struct arbitration *a, bool has_turns);
/* Sets the board that all GPUs share. It may be NULL, or must outlive the arbitration. Call before adding a lessee. */
void arbitration_set_gangs(struct arbitration *a, struct gangs *gangs, unsigned card);
/*
 * True if the last tick found all tenants idle: no charge for about a second, no demand and no lent limit. False while a tenant
 * must be polled or lease spans (lease_spans.h) are recorded.
 */
bool arbitration_is_sleeping(struct arbitration *a);
/* Every lessee must have been removed. NULL is allowed; returns NULL. */
struct arbitration *arbitration_stop(struct arbitration *a);
/*
 * Sets each process's use of the GPU as NVML measured it (gpu/sensor.h), until the next call. For a tenant with no process in
 * the list, its own charged time is used. If ARBITRATION_UNLISTED lists in a row lack a tenant that worked, that is logged,
 * once per GPU.
 */
#define ARBITRATION_UNLISTED 30
void arbitration_set_use(struct arbitration *a, const struct gpu_use *list, size_t count);
struct arbitration_figures arbitration_figures(struct arbitration *a);
/* Starts or stops recording. Every start needs a stop, even one that returned -ENOMEM. The last stop drops the records. */
int arbitration_watch_spans(struct arbitration *a, bool is_watched);
/* Like lease_spans_since(); none while nothing is recorded. */
size_t arbitration_spans(struct arbitration *a, uint64_t since, uint64_t now_ns,
			 struct lease_span ret[LEASE_SPANS_MAX], uint64_t *ret_since);

/*
 * Adds a tenant. `device` is the GPU's index in the region. `control` and `report` must outlive the lessee. For `owner`, see
 * arbiter_set_owner(). Returns -ENOSPC if the arbiter is full, -EINVAL if the share is out of range.
 */
int lessee_add(struct arbitration *a, struct region_control *control, struct region_report *report,
	       unsigned device, struct arbiter_share share, uint64_t owner, struct lessee **ret,
	       struct error *err);
/* The tenant's lease in the region stays as last published. NULL is allowed; returns NULL. */
struct lessee *lessee_remove(struct lessee *lessee);
/* Sets the tenant's name for records and logs, until then the region's tenant_name. */
void lessee_rename(struct lessee *lessee, const char *tenant);
int lessee_set_share(struct lessee *lessee, struct arbiter_share share);
void lessee_set_paused(struct lessee *lessee, bool paused);
/* Whether the tenant may borrow GPU time beyond its limit; the default is no. With false, the limit applies at once. */
void lessee_set_elastic(struct lessee *lessee, bool may_borrow);

/* The tenant's number on the board of gangs (gang_board.h); negative (the default): not on the board. */
void lessee_set_gang(struct lessee *lessee, int gang);

/*
 * Puts the tenant into a space group, whose members run at the same time; 0 is no group. part_pct is the percentage of the SMs
 * that the tenant's processes can use (arbiter_set_space_group()). Returns -EINVAL if the policy has no leases, -ENOSPC if the
 * arbiter has no room for another group.
 */
int lessee_set_space_group(struct lessee *lessee, uint32_t group, double part_pct);

/* Call the first when the process gets the slot, the second before the slot is zeroed. The first returns 0 or -ENOMEM. */
int lessee_add_process(struct lessee *lessee, unsigned slot, int pid);
void lessee_remove_process(struct lessee *lessee, unsigned slot);

struct lessee_figures lessee_figures(struct lessee *lessee);
/* See arbiter_add_reading(). *ret is the lessee's unpaid time after this reading. */
bool lessee_add_reading(struct lessee *lessee, const struct time_reading *reading,
			struct time_account *ret);
/* See arbiter_refused_ns(). */
uint64_t lessee_refused_ns(struct lessee *lessee);
