/*
 * Elastic limits: guaranteed time that its owners leave unused is lent to tenants that are held at a hard cap, and taken back
 * when the owners want it again. Pure policy on plain data: no I/O, no clock.
 *
 *     every period: fill in what the arbiter charged and which tenants waited  ->  elastic_decide()
 *                   ->  an effective limit per tenant, for arbiter_set_limit()
 *
 * This rule need not be fast, because the arbiter protects the owners: a tenant that returns has the least virtual time, and so
 * the next turn, whatever limit the others have (docs/internals/lending.md).
 *
 *   Demand    Demand is charged time plus time held at the gate, in percent of the period: the most that the tenant would
 *             have used. It rises at once and decays with time constant fade_ns. A tenant that lies about waiting only keeps
 *             its own guarantee, or gets a larger part of what is lent.
 *   Kept      An owner keeps its demand, at most its guarantee, and reserve_pct of the rest, for a sudden burst. The
 *             reserve also keeps a borrower below 100 %, so that it stays under a lease. Tenants without a guarantee keep
 *             what they use of the unpromised time.
 *   Lent      All other time goes to tenants that may borrow and want more than their cap, in proportion to their guarantees.
 *             None gets more than it asks for, or more than most_pct.
 *   Pace      A limit moves by at most step_pct a period, up or down. Moves of less than ELASTIC_BAND_PCT are left out. A
 *             limit is never below the tenant's own cap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Smaller changes of a limit are left out, except those that reach the own cap or most_pct. */
#define ELASTIC_BAND_PCT 2.0
#define ELASTIC_HEADROOM 1.1     /* a borrower is lent its demand times this ... */
#define ELASTIC_HEADROOM_PCT 5.0 /* ... plus this, so that growing demand can show */

struct elastic_config {
	uint64_t period_ns;
	uint64_t fade_ns;   /* time constant of fading demand */
	double most_pct;    /* highest effective limit */
	double step_pct;    /* most that a limit moves in a period, percent of the GPU */
	double reserve_pct; /* part of an owner's unused time that is not lent */
};

/* Period 100 ms, fade 300 ms, limit 100 %, step 30 %, reserve 10 %. */
struct elastic_config elastic_default_config(void);

enum elastic_reason {
	ELASTIC_OFF,      /* borrows nothing: by choice, or without a hard cap */
	ELASTIC_UNNEEDED, /* its own cap is enough, or it does not use what it was lent */
	ELASTIC_LENT,
	ELASTIC_RECLAIMED, /* the owners want their time back */
};

/* One tenant of a GPU. Initialize all fields to zero except those that the caller sets, and keep them between decisions. */
struct elastic_tenant {
	/* set by the caller before each decision: */
	double cores_pct; /* guarantee; 0: none */
	double limit_pct;
	bool may_borrow;                /* only with a hard cap */
	bool absent;                    /* paused or stopped: waiting does not count */
	uint64_t charged_ns, waited_ns; /* totals that never fall */

	double limit_now_pct; /* at least limit_pct; at most most_pct, or limit_pct if larger */
	double spare_pct;     /* the part of its guarantee that is lent to others */
	enum elastic_reason reason;

	bool known; /* demand_pct and own_demand_pct are set */
	uint64_t charged_before_ns, waited_before_ns;
	double demand_pct;     /* in percent of the period; rises at once, then fades */
	double own_demand_pct; /* like demand_pct, but counts only up to the guarantee */
};

/*
 * Decides the limits of `count` tenants of one GPU, dt_ns after the last decision. Does nothing if dt_ns is 0. New tenants
 * start at their own cap.
 */
void elastic_decide(const struct elastic_config *config, struct elastic_tenant *const *tenants,
		    size_t count, uint64_t dt_ns);

/* Sets the limit back to the tenant's own cap. Call after a change of its share. Keeps the demand. */
void elastic_reset(struct elastic_tenant *tenant);

/* "off", "unneeded", "lent" or "reclaimed". Stable, for programs. */
const char *elastic_reason_name(enum elastic_reason reason);
