/*
 * An arbitration is a thread that shares one card between tenants. It reads every tenant's slots,
 * lets the arbiter decide (policy/lease/arbiter.h), writes the lease words and wakes the affected
 * processes. It also increments the regions' heartbeats, samples what each tenant got, and
 * periodically adapts the limits of tenants that may borrow (policy/lease/rules/elastic.h).
 *
 * A lessee is one tenant on one card. All calls are thread safe, and none waits for more than one
 * step. Without a lessee the thread sleeps. While no lessee works and all of them ring their
 * doorbells, it wakes once a second.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/region.h"
#include "base/error.h"
#include "daemon/arbitrate/gang.h"
#include "daemon/arbitrate/lease_spans.h"
#include "daemon/arbitrate/step_window.h"
#include "daemon/gpu/nvml/gpu.h"
#include "policy/lease/arbiter.h"
#include "policy/lease/rules/elastic.h"

#define ARBITRATION_PULSE_NS UINT64_C(50000000) /* interval of heartbeats and window samples */
#define ARBITRATION_SLEEP_NS \
	UINT64_C(1000000000) /* the same interval while no lessee has anything to do */

struct arbitration;
struct lessee;

/* The present state of a lessee. */
struct lessee_figures {
	struct arbiter_account account;
	struct arbiter_pace pace;
	enum arbiter_mode mode;
	double got_1s_pct, got_60s_pct;
	bool waiting;        /* threads wait at its gates */
	bool busy;           /* it has work in flight */
	bool stopped;        /* none of its processes can run */
	bool in_gang;        /* gets its turns on this and other cards at the same time */
	uint64_t gang_turns; /* number of such turns, on all its cards together */
	/* charge for one step of its program (policy/lease/rules/steps.h); 0: unknown */
	uint64_t step_ns;
	struct step_figures steps;
	/* turns of its processes on this card (policy/lease/turns.h) */
	uint64_t turns, turns_given_up;
	/* From the elastic policy: */
	double limit_now_pct; /* its own limit plus what others lend to it */
	double spare_pct;     /* the part of its guarantee that it leaves to others */
	enum elastic_reason elastic_reason;
	uint64_t lends, reclaims; /* how often its limit was raised and lowered */
};

/* Figures of one card. */
struct arbitration_figures {
	/* Time charged in the last second to all lessees, including removed ones; at most 100. */
	double busy_pct;
	uint64_t charged_ns;  /* of all present and past lessees */
	uint64_t quantum_ns;  /* in force */
	uint64_t handover_ns; /* measured cost of one handover of the card */
	/* how often the other sensor began to miss a lessee: arbitration_set_use() */
	uint64_t unnamed;
};

/* Starts the thread. */
int arbitration_start(struct arbitration **ret, const struct arbiter_config *config,
		      struct error *err);
/*
 * Sets a callback. The thread calls tell(data) at most 20 times a second while a process has
 * measured memory that no census has seen, and once when a process has requested memory. The
 * callback must not block.
 */
typedef void (*arbitration_fresh)(void *data);
void arbitration_set_fresh(struct arbitration *a, arbitration_fresh tell, void *data);
/* Sets how limits are adapted. Until then the policy's defaults apply. */
void arbitration_set_elastic(struct arbitration *a, const struct elastic_config *config);
/* Sets whether a tenant's processes take turns within its leases. The default is no. */
void arbitration_set_turns(struct arbitration *a, bool has_turns);
/*
 * Sets the gangs, shared with the other cards' arbitrations, and this card's number. Call before
 * any lessee is added. `gangs` may be NULL; else it must outlive the arbitration.
 */
void arbitration_set_gangs(struct arbitration *a, struct gangs *gangs, unsigned card);
/*
 * Whether the arbitration is idle: for at least a second no lessee was charged and no limit was
 * lent.
 */
bool arbitration_is_resting(struct arbitration *a);
/* Stops the thread. Every lessee must have been removed. NULL is allowed; returns NULL. */
struct arbitration *arbitration_stop(struct arbitration *a);
/*
 * Sets the use of the card by process as another sensor (sensor.h) measured it. It holds until the
 * next call. If no process of a lessee is in the list, the lessee's charge is used instead. A
 * lessee that worked during ARBITRATION_UNNAMED calls but was in none of their lists is logged,
 * once per card.
 */
#define ARBITRATION_UNNAMED 30
void arbitration_set_use(struct arbitration *a, const struct gpu_use *list, size_t count);
struct arbitration_figures arbitration_figures(struct arbitration *a);
/*
 * Starts or stops recording which tenant has the card. Callers are counted, and without any the
 * records are dropped and recording costs nothing. On -ENOMEM nothing is recorded, but the caller
 * still counts.
 */
int arbitration_watch_spans(struct arbitration *a, bool is_watched);
/* Like lease_spans_since(). Returns none while nothing is recorded. */
size_t arbitration_spans(struct arbitration *a, uint64_t since, uint64_t now_ns,
			 struct lease_span ret[LEASE_SPANS_MAX], uint64_t *ret_since);

/*
 * Adds a lessee. `device` is the card's index in the region. Both maps must outlive the lessee.
 * Returns -ENOSPC if the arbiter is full, -EINVAL if the share is out of range.
 */
int lessee_add(struct arbitration *a, struct region_control *control, struct region_report *report,
	       unsigned device, struct arbiter_share share, struct lessee **ret, struct error *err);
/* NULL is allowed; returns NULL. The lease word keeps its value. */
struct lessee *lessee_remove(struct lessee *lessee);
int lessee_set_share(struct lessee *lessee, struct arbiter_share share);
void lessee_set_paused(struct lessee *lessee, bool paused);
/*
 * Sets whether the lessee may borrow beyond its limit; the default is no. When disabled, its limit
 * is in force again at once.
 */
void lessee_set_elastic(struct lessee *lessee, bool may_borrow);

/*
 * Sets the tenant's number as a possible gang (gang.h). A negative number, the default, means that
 * it is no gang.
 */
void lessee_set_gang(struct lessee *lessee, int gang);

/*
 * Makes the lessee run on the card at the same time as the others of the group, for good. part_pct
 * is its contexts' share of the SMs: arbiter_set_space_group(). Returns -EINVAL under a policy
 * other than leases, -ENOSPC if there is no room.
 */
int lessee_set_space_group(struct lessee *lessee, uint32_t group, double part_pct);

/* Call when a process gets a slot, and before the slot of a process is zeroed. */
int lessee_add_process(struct lessee *lessee, unsigned slot, int pid);
void lessee_remove_process(struct lessee *lessee, unsigned slot);

/* The lessee's present state. */
struct lessee_figures lessee_figures(struct lessee *lessee);
