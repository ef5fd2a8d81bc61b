/*
 * Elastic limits: guaranteed time that its owners leave unused is lent to tenants that are held at a hard cap, and taken
 * back when it is wanted again. Pure policy on plain data: no I/O, no clock.
 *
 *     every period: fill in what the arbiter charged and which tenants waited  ->  elastic_decide()
 *                   ->  an effective limit per tenant, for arbiter_set_limit()
 *
 * Owners are guarded by the arbiter, not by this: a tenant that comes back has the least virtual time, and so the next turn,
 * whatever limit the others have. So nothing here needs to be fast (docs/internals/lending.md).
 *
 *   Demand    Charged time and time held at the gate, in percent of the period: the most that the tenant would have used. It
 *             rises at once and fades by fade_ns. A tenant that lies about waiting keeps its own guarantee, or gets
 *             a larger part of what is lent.
 *   Kept      An owner keeps its demand, at most its guarantee, and reserve_pct of what is left, for a sudden burst. The
 *             reserve also keeps a borrower below 100 %, and so under a lease. Tenants without a guarantee keep what
 *             they use of the unpromised time.
 *   Lent      All else goes to tenants that may borrow and want more than their cap, by their guarantees; none gets more
 *             than it asks for, nor more than most_pct.
 *   Pace      A limit moves by step_pct a period at most, either way, and not for less than ELASTIC_BAND_PCT. It is
 *             never below the tenant's own cap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELASTIC_BAND_PCT 2.0     /* smaller changes are left out, except the last to a goal */
#define ELASTIC_HEADROOM 1.1     /* a borrower is lent this much more than it uses ... */
#define ELASTIC_HEADROOM_PCT 5.0 /* ... and this, so that its growth shows */

struct elastic_config {
	uint64_t period_ns; /* between decisions */
	uint64_t fade_ns;   /* in which demand fades to 1/e */
	double most_pct;    /* the highest effective limit */
	double step_pct;    /* the most that a limit moves in a period */
	double reserve_pct; /* the part of an owner's unused time that is not lent */
};

/* 100 ms, 300 ms, 100, 30 points, 10 %. */
struct elastic_config elastic_default_config(void);

/* Why a limit is what it is. */
enum elastic_reason {
	ELASTIC_OFF,       /* borrows nothing, by its own choice or for want of a hard cap */
	ELASTIC_UNNEEDED,  /* its own cap is enough, or it no longer uses what was lent */
	ELASTIC_LENT,      /* others leave time unused */
	ELASTIC_RECLAIMED, /* the owners want the time back */
};

/* One tenant of a card. Zero but for what the caller fills in, then kept from decision to decision. */
struct elastic_tenant {
	/* Set by the caller before each decision. */
	double cores_pct;               /* guarantee; 0: none */
	double limit_pct;               /* its own cap */
	bool may_borrow;                /* for a tenant with a hard cap */
	bool absent;                    /* paused or stopped: what it waits for does not count */
	uint64_t charged_ns, waited_ns; /* totals, which never decrease */

	/* The decision. */
	double limit_now_pct; /* limit_pct <= .. <= most_pct, or limit_pct when that is more */
	double spare_pct;     /* the part of its guarantee that is lent to others */
	enum elastic_reason reason;

	/* For the next one. */
	bool known; /* the fields below are set */
	uint64_t charged_before_ns, waited_before_ns;
	double demand_pct;     /* rises at once, fades */
	double own_demand_pct; /* the same, up to its guarantee */
};

/*
 * Decides for `count` tenants of one card, dt_ns (above 0) after the last decision. A tenant that is
 * new to it begins at its own cap.
 */
void elastic_decide(const struct elastic_config *config, struct elastic_tenant *const *tenants,
		    size_t count, uint64_t dt_ns);

/* Back to its own cap, after a change of share: what was lent is forgotten, its demand is not. */
void elastic_reset(struct elastic_tenant *tenant);

/* "off", "unneeded", "lent", "reclaimed": stable, for people and programs. */
const char *elastic_reason_name(enum elastic_reason reason);
