/*
 * Elastic limits: guaranteed time that its owners, the tenants with the guarantees, leave unused is lent to tenants that are
 * held at a hard cap. It is taken back when the owners want it again. Pure policy on plain data: no I/O, no clock.
 *
 *     every period: fill in what the arbiter charged and which tenants waited  ->  lend_decide()
 *                   ->  an effective limit per tenant, for arbiter_set_limit()
 *
 * This rule need not be fast, because the arbiter protects the owners: a tenant that returns has the least virtual time, and so
 * the next turn, whatever limit the others have (docs/internals/lending.md).
 *
 *   Demand    Demand is charged time plus time held at the gate, in percent of the period: the most that the tenant would
 *             have used. It rises at once and decays with time constant fade_ns. A tenant that lies about waiting only keeps
 *             its own guarantee, or gets a larger part of what is lent.
 *   Kept      An owner keeps its demand, at most its guarantee, and reserve_pct of the rest of its guarantee, for a sudden
 *             burst. The reserve also keeps a borrower below 100 %, so that it stays under a lease. Tenants without a guarantee
 *             keep what they use of the unpromised time.
 *   Lent      All other time goes to tenants that may borrow and want more than their cap, in proportion to their guarantees.
 *             None gets more than it asks for, or more than most_pct.
 *   Pace      A limit moves by at most step_pct a period, up or down. Moves of less than LEND_BAND_PCT are left out. A
 *             limit is never below the tenant's own cap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Smaller changes of a limit, in percent of the GPU, are left out, unless they reach the tenant's own cap or most_pct. */
#define LEND_BAND_PCT 2.0
#define LEND_HEADROOM 1.1     /* a borrower gets its demand times this, plus LEND_HEADROOM_PCT */
#define LEND_HEADROOM_PCT 5.0 /* percent of the GPU, so that a growing demand can show */

struct lend_config {
	uint64_t period_ns;
	uint64_t fade_ns;   /* time constant of fading demand */
	double most_pct;    /* highest effective limit */
	double step_pct;    /* largest move of a limit in a period, in percent of the GPU */
	double reserve_pct; /* part of an owner's unused time that is not lent */
};

struct lend_config lend_default_config(void);

enum lend_reason {
	LEND_OFF,      /* borrows nothing: by choice, or because it has no hard cap */
	LEND_UNNEEDED, /* its own cap is enough, or it does not use the lent time */
	LEND_LENT,
	LEND_RECLAIMED, /* the owners want their time back */
};

/* One tenant of a GPU. All fields begin at zero, except those that the caller sets, and are kept between decisions. */
struct lend_tenant {
	/* set by the caller before each decision: */
	double cores_pct; /* guarantee; 0: none */
	double limit_pct;
	bool may_borrow;                /* may be lent time; false without a hard cap */
	bool absent;                    /* paused or stopped: has no demand, even if it waits */
	uint64_t charged_ns, waited_ns; /* totals that never fall */

	/* effective limit: limit_pct at least; at most most_pct, or limit_pct if that is larger */
	double limit_now_pct;
	double spare_pct; /* the part of its guarantee that is lent to others */
	enum lend_reason reason;

	bool known; /* demand_pct and own_demand_pct are set */
	uint64_t charged_before_ns, waited_before_ns;
	double demand_pct;     /* in percent of the period; rises at once, then fades */
	double own_demand_pct; /* like demand_pct, but counts only up to the guarantee */
};

/* Sets limit_now_pct, spare_pct and reason of the tenants of one GPU, dt_ns after the last decision (0: does nothing). */
void lend_decide(const struct lend_config *config, struct lend_tenant *const *tenants, size_t count,
		 uint64_t dt_ns);

/* Sets limit_now_pct back to the tenant's own cap. Call after a change of its share. Keeps the demand. */
void lend_reset(struct lend_tenant *tenant);

/* "off", "unneeded", "lent" or "reclaimed". Stable, for programs. */
const char *lend_reason_name(enum lend_reason reason);
