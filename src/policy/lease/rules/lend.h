/*
 * Elastic limits: guaranteed time that its owners leave unused is lent to tenants that are held at a hard cap, and taken back
 * when the owners want it again. Pure policy on plain data: no I/O, no clock.
 *
 *     every period: fill in what the arbiter charged and which tenants waited  ->  elastic_decide()
 *                   ->  an effective limit per tenant, for arbiter_set_limit()
 *
 * The arbiter protects the owners, not this rule: a tenant that returns has the least virtual time, and so the next turn,
 * whatever limit the others have. So this rule need not be fast (docs/internals/lending.md).
 *
 *   Demand    Demand is charged time plus time held at the gate, in percent of the period: the most that the tenant would
 *             have used. It rises at once and fades with time constant fade_ns. A tenant that lies about waiting keeps its
 *             own guarantee, or gets a larger part of what is lent.
 *   Kept      An owner keeps its demand, at most its guarantee, and reserve_pct of the rest, for a sudden burst. The
 *             reserve also keeps a borrower below 100 %, and so under a lease. Tenants without a guarantee keep what
 *             they use of the unpromised time.
 *   Lent      All other time goes to tenants that may borrow and want more than their cap, in proportion to their guarantees.
 *             None gets more than it asks for, or more than most_pct.
 *   Pace      A limit moves by at most step_pct a period, up or down. Moves of less than ELASTIC_BAND_PCT are left out. A
 *             limit is never below the tenant's own cap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELASTIC_BAND_PCT \
	2.0 /* smaller changes of a limit are left out, except those that reach the own cap or most_pct */
#define ELASTIC_HEADROOM 1.1     /* a borrower is lent its demand times this ... */
#define ELASTIC_HEADROOM_PCT 5.0 /* ... plus this, so that growth of its demand shows */

struct elastic_config {
	uint64_t period_ns; /* time between decisions */
	uint64_t fade_ns;   /* time constant with which demand fades */
	double most_pct;    /* the highest effective limit */
	double step_pct;    /* the most that a limit moves in a period, in percent of the GPU */
	double reserve_pct; /* the part of an owner's unused time that is not lent */
};

/* Returns period 100 ms, fade 300 ms, limit 100 %, step 30 %, reserve 10 %. */
struct elastic_config elastic_default_config(void);

/* Why a limit is what it is. */
enum elastic_reason {
	ELASTIC_OFF,       /* borrows nothing: it chose so, or has no hard cap */
	ELASTIC_UNNEEDED,  /* its own cap is enough, or it no longer uses what was lent */
	ELASTIC_LENT,      /* others leave time unused */
	ELASTIC_RECLAIMED, /* the owners want the time back */
};

/* One tenant of a GPU. All fields begin at zero, except those that the caller sets, and are kept from decision to decision. */
struct elastic_tenant {
	/* Set by the caller before each decision. */
	double cores_pct;               /* guarantee; 0 if none */
	double limit_pct;               /* its own cap */
	bool may_borrow;                /* only for a tenant with a hard cap */
	bool absent;                    /* paused or stopped: its waiting time does not count */
	uint64_t charged_ns, waited_ns; /* totals, which never decrease */

	/* The result of the decision. */
	double limit_now_pct; /* at least limit_pct; at most the larger of most_pct and limit_pct */
	double spare_pct;     /* the part of its guarantee that is lent to others */
	enum elastic_reason reason;

	/* State for the next decision. */
	bool known; /* the fields below are set */
	uint64_t charged_before_ns, waited_before_ns;
	double demand_pct;     /* percent of the period: rises at once, then fades */
	double own_demand_pct; /* like demand_pct, but counts demand up to the guarantee only */
};

/*
 * Decides for `count` tenants of one GPU. dt_ns is the time since the last decision; nothing happens if it is 0. A new tenant
 * begins at its own cap.
 */
void elastic_decide(const struct elastic_config *config, struct elastic_tenant *const *tenants,
		    size_t count, uint64_t dt_ns);

/* Sets the limit back to the tenant's own cap, after a change of share. The tenant's demand is kept. */
void elastic_reset(struct elastic_tenant *tenant);

/* Returns "off", "unneeded", "lent" or "reclaimed". These names are stable, for people and programs. */
const char *elastic_reason_name(enum elastic_reason reason);
