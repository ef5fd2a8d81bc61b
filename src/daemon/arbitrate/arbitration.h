/*
 * An arbitration is a thread that divides one card's time among tenants. It reads every tenant's
 * slots, lets the arbiter decide (policy/lease/arbiter.h), writes the lease words and wakes the
 * affected processes. It also increments the regions' heartbeats, samples what each tenant got, and
 * periodically adapts the limits of tenants that may borrow (policy/lease/rules/lend.h).
 *
 * A lessee is one tenant on one card. All calls are thread safe, and none waits for longer than one
 * step of the thread. Without a lessee the thread sleeps. While no lessee works and all of them
 * ring their doorbells, it wakes once a second.
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

#define ARBITRATION_PULSE_NS UINT64_C(50000000) /* interval of heartbeats and window samples */
#define ARBITRATION_SLEEP_NS \
	UINT64_C(1000000000) /* interval of heartbeats while no lessee has anything to do */

struct arbitration;
struct lessee;

/* The present state of a lessee. */
struct lessee_figures {
	struct arbiter_account account;
	struct arbiter_pace pace;
	enum arbiter_mode mode;
	double got_1s_pct, got_60s_pct;
	bool waiting;        /* threads of the lessee wait at its gates */
	bool busy;           /* the lessee has work in flight */
	bool stopped;        /* none of the lessee's processes can run */
	bool in_gang;        /* the lessee's turns on this and other cards are at the same time */
	uint64_t gang_turns; /* number of the lessee's turns as a gang, on all its cards together */
	/*
	 * GPU time charged for one step of the lessee's program (policy/lease/rules/steps.h); 0:
	 * unknown
	 */
	uint64_t step_ns;
	struct step_figures steps;
	/*
	 * how many turns within the leases the lessee's processes took; how many were given up
	 * (policy/lease/turns.h)
	 */
	uint64_t turns, turns_given_up;
	/* the following are from the elastic policy */
	double limit_now_pct; /* the lessee's own limit plus what others lend to it */
	double spare_pct;     /* the part of the lessee's guarantee that it leaves to others */
	enum elastic_reason elastic_reason;
	uint64_t lends, reclaims; /* how often the lessee's limit was raised; lowered */
};

/* Figures of one card. */
struct arbitration_figures {
	/*
	 * percent of the last second that was charged to all lessees, including removed ones; at
	 * most 100
	 */
	double busy_pct;
	uint64_t charged_ns;  /* time charged to all present and past lessees */
	uint64_t quantum_ns;  /* the quantum in force */
	uint64_t handover_ns; /* measured cost of one handover of the card */
	/*
	 * how many times a lessee went missing from the other sensor's list: arbitration_set_use()
	 */
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
/* Sets the configuration by which limits are adapted. Until then the policy's defaults apply. */
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
 * Sets each process's use of the card, as another sensor (sensor.h) measured it. It holds until the
 * next call. For a lessee none of whose processes is in the list, its own charge is used instead. A
 * lessee that worked during ARBITRATION_UNNAMED calls without being in their lists is logged, once
 * per card.
 */
#define ARBITRATION_UNNAMED 30
void arbitration_set_use(struct arbitration *a, const struct gpu_use *list, size_t count);
struct arbitration_figures arbitration_figures(struct arbitration *a);
/*
 * Starts or stops recording which tenant has the card when. Each start needs a stop: the last stop
 * ends the recording and drops the records. On -ENOMEM nothing is recorded, but that start needs
 * its stop too.
 */
int arbitration_watch_spans(struct arbitration *a, bool is_watched);
/* Returns recorded spans, like lease_spans_since(). Returns none while nothing is recorded. */
size_t arbitration_spans(struct arbitration *a, uint64_t since, uint64_t now_ns,
			 struct lease_span ret[LEASE_SPANS_MAX], uint64_t *ret_since);

/*
 * Adds a lessee. `device` is the card's index in the region. `control` and `report` must outlive
 * the lessee. Returns -ENOSPC if the arbiter is full, -EINVAL if the share is out of range.
 */
int lessee_add(struct arbitration *a, struct region_control *control, struct region_report *report,
	       unsigned device, struct arbiter_share share, struct lessee **ret, struct error *err);
/*
 * Removes the lessee and frees it. The lease word in the region keeps its value. NULL is allowed;
 * returns NULL.
 */
struct lessee *lessee_remove(struct lessee *lessee);
/*
 * Sets the tenant's name for records and logs. Until the first call it is the name in the region.
 */
void lessee_rename(struct lessee *lessee, const char *tenant);
int lessee_set_share(struct lessee *lessee, struct arbiter_share share);
void lessee_set_paused(struct lessee *lessee, bool paused);
/*
 * Sets whether the lessee may borrow beyond its limit; the default is no. With false, its own limit
 * is in force again at once.
 */
void lessee_set_elastic(struct lessee *lessee, bool may_borrow);

/*
 * Sets the tenant's number as a possible gang (gang_board.h). A negative number, the default, means
 * that it is no gang.
 */
void lessee_set_gang(struct lessee *lessee, int gang);

/*
 * Makes the lessee run on the card at the same time as the other members of a space group, for
 * good. part_pct is its contexts' share of the SMs: arbiter_set_space_group(). Returns -EINVAL
 * under a policy other than leases, -ENOSPC if there is no room.
 */
int lessee_set_space_group(struct lessee *lessee, uint32_t group, double part_pct);

/*
 * Call lessee_add_process() when a process gets a slot, and lessee_remove_process() before a
 * process's slot is zeroed.
 */
int lessee_add_process(struct lessee *lessee, unsigned slot, int pid);
void lessee_remove_process(struct lessee *lessee, unsigned slot);

/* Returns the lessee's present state. */
struct lessee_figures lessee_figures(struct lessee *lessee);
