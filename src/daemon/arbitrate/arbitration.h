/*
 * An arbitration is the thread that shares one card. It reads every tenant's slots, lets the arbiter decide
 * (policy/lease/arbiter.h), writes the lease words and wakes the processes that they concern. It also counts up the
 * heartbeats of the regions, samples what each tenant got, and each period adapts the limits of tenants that may borrow
 * (policy/lease/rules/elastic.h).
 *
 * A lessee is one tenant on one card. All calls are thread safe; none waits for more than a step. Without a lessee the thread
 * sleeps. While no lessee works, and all of them ring, it wakes once a second.
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

#define ARBITRATION_PULSE_NS UINT64_C(50000000)   /* heartbeat and window samples */
#define ARBITRATION_SLEEP_NS UINT64_C(1000000000) /* the same where no lessee has anything to do */

struct arbitration;
struct lessee;

/* What is known of a lessee now. */
struct lessee_figures {
	struct arbiter_account account;
	struct arbiter_pace pace;
	enum arbiter_mode mode;
	double got_1s_pct, got_60s_pct;
	bool waiting;        /* threads are held at its gates */
	bool busy;           /* work of it is in flight */
	bool stopped;        /* none of its processes can run */
	bool in_gang;        /* takes its turns here and on other cards at the same time */
	uint64_t gang_turns; /* that it has had so, on all its cards together */
	uint64_t step_ns; /* what a step of its program is charged (policy/lease/rules/steps.h); 0: not known */
	struct step_figures steps;
	uint64_t turns, turns_given_up; /* of its processes, on this card (policy/lease/turns.h) */
	/* Of the elastic policy. */
	double limit_now_pct; /* its own limit and what it is lent */
	double spare_pct;     /* of its guarantee, what it leaves to others */
	enum elastic_reason elastic_reason;
	uint64_t lends, reclaims; /* times that the limit was raised, lowered */
};

/* Of a card. */
struct arbitration_figures {
	double busy_pct; /* charged time of all lessees, also of those removed, in the last second; at most 100 */
	uint64_t charged_ns;  /* of all that there ever were */
	uint64_t quantum_ns;  /* in force */
	uint64_t handover_ns; /* what one costs, by what was measured */
	uint64_t unnamed; /* times that the other sensor began to miss a lessee: arbitration_set_use() */
};

/* Starts the thread. */
int arbitration_start(struct arbitration **ret, const struct arbiter_config *config,
		      struct error *err);
/*
 * Calls tell(data), in the thread and so without waiting, while a process has measured memory that no
 * census has seen, 20 times a second at most; and once when one has asked for memory.
 */
typedef void (*arbitration_fresh)(void *data);
void arbitration_set_fresh(struct arbitration *a, arbitration_fresh tell, void *data);
/* How limits are adapted; the policy's defaults until then. */
void arbitration_set_elastic(struct arbitration *a, const struct elastic_config *config);
/* Whether a tenant's processes take turns within its leases: not until then. */
void arbitration_set_turns(struct arbitration *a, bool has_turns);
/*
 * What it shares with the other cards, of which it is that one; before any lessee comes. NULL: nothing.
 * `gangs` must outlive the arbitration.
 */
void arbitration_set_gangs(struct arbitration *a, struct gangs *gangs, unsigned card);
/* Whether it rests: no lessee was charged anything for a second at least, nor has any limit been lent. */
bool arbitration_is_resting(struct arbitration *a);
/* Stops it; every lessee must have been removed. NULL is fine; returns NULL. */
struct arbitration *arbitration_stop(struct arbitration *a);
/*
 * What another sensor says of the processes' use of the card (sensor.h): holds until the next call. A
 * lessee none of whose processes is in the list is measured by its charge again; when one was at
 * work in so many calls and named in none, it is logged once a card.
 */
#define ARBITRATION_UNNAMED 30
void arbitration_set_use(struct arbitration *a, const struct gpu_use *list, size_t count);
struct arbitration_figures arbitration_figures(struct arbitration *a);
/*
 * From now on notes which tenant has the card when, or stops; each caller for itself. Without a caller it costs nothing, and
 * what was noted is forgotten. -ENOMEM: nothing may be noted; the caller counts all the same.
 */
int arbitration_watch_spans(struct arbitration *a, bool is_watched);
/* As lease_spans_since(); none while nothing is noted. */
size_t arbitration_spans(struct arbitration *a, uint64_t since, uint64_t now_ns,
			 struct lease_span ret[LEASE_SPANS_MAX], uint64_t *ret_since);

/*
 * `device` is the card's place in the region. Both maps must outlive the lessee. -ENOSPC when the
 * arbiter is full, -EINVAL for a share out of range.
 */
int lessee_add(struct arbitration *a, struct region_control *control, struct region_report *report,
	       unsigned device, struct arbiter_share share, struct lessee **ret, struct error *err);
/* NULL is fine; returns NULL. The lease word stays as it is. */
struct lessee *lessee_remove(struct lessee *lessee);
int lessee_set_share(struct lessee *lessee, struct arbiter_share share);
void lessee_set_paused(struct lessee *lessee, bool paused);
/* Whether it may be lent more than its limit: not at first. Without, it is back at that at once. */
void lessee_set_elastic(struct lessee *lessee, bool may_borrow);

/* The tenant's number among those that may be gangs (gang.h); negative, and at first: it is none. */
void lessee_set_gang(struct lessee *lessee, int gang);

/*
 * The group with which it has the card at the same time, and what its contexts may have of the card's SMs, for good:
 * arbiter_set_space_group(). -EINVAL under another policy than leases, -ENOSPC.
 */
int lessee_set_space_group(struct lessee *lessee, uint32_t group, double part_pct);

/* A process took, or gives back, a slot. Remove before the slot is zeroed. */
int lessee_add_process(struct lessee *lessee, unsigned slot, int pid);
void lessee_remove_process(struct lessee *lessee, unsigned slot);

struct lessee_figures lessee_figures(struct lessee *lessee);
