/*
 * Internals of the arbiter: struct arbiter, struct tenant, and the functions that the files of this folder call in each other.
 * No file outside this folder includes this header. arbiter.h defines the terms, and the states STOP, CLOSING, GO, FREE, PACED.
 *
 *   arbiter.c         the interface: tenants, observations, modes, the step
 *   queries.c         the interface: functions that change nothing
 *   lease_charge.c    the charge: tokens, virtual time, settlement with the tenant's own report
 *   lease_order.c     the next tenant: weights, candidates, virtual time of a tenant that returns
 *   lease_priority.c  which tenant may push ahead of which, and for how long: budgets
 *   quantum.c         the length of a turn, from the measured cost of a hand-over; turn_terms.c: the bounds of that length
 *   patience.c        when an idle holder loses the lease
 *   lease.c           the holder's lease: grant, close, drain, expire
 *   turn_end.c        when the holder's turn is over: by time, tokens, idleness, a sync point of the program
 *   lease_poll.c      the time until the next poll
 *   gang_rank.c       one device's part in gangs, which have their turns on several devices at once
 *   lease_group.c     space groups: a group is one tenant to all files above, and its members are MPS clients (space.h)
 *   sliced.c          programs with short steps (rules/steps.h): all run at once, and a tenant ahead of its share is held
 *   token.c, paced.c   the other policies
 *
 * All times are read from the arbiter's own clock. A step advances this clock by max_step_ns at most, even if the caller's
 * clock jumps. Charges are doubles, because a step's time is divided among tenants, and the parts are not whole nanoseconds. A
 * double is exact up to 2^53 ns, which is 104 days.
 */
#pragma once

#include "base/min.h"
#include "policy/gang/device_gang.h"
#include "policy/lease/arbiter_types.h"
#include "policy/lease/rules/patience.h"
#include "policy/lease/rules/steps.h"
#include "policy/safety/time_policy.h"
#include "policy/space/space.h"

#define NONE (-1)

/*
 * A tenant has nothing to do only if it was without demand and work for longer than this. In a shorter pause, its thread may be
 * preparing the next launch, which will wait at the closed gate: after a short lease, the thread is hardly ahead of the GPU.
 */
#define ARBITER_PAUSE_NS 2000000

/* A tenant's GPU time in the sliding window, which is divided into TOKEN_PARTS equal parts. */
#define TOKEN_PARTS 100
struct token_account {
	double part_ns[TOKEN_PARTS];
	double used_ns;
	/* index of the present part of the window, counted from the clock's start */
	uint64_t part;
	double counted_ns; /* the portion of charged_ns that part_ns already contains */
	uint64_t since;
};

/* A tenant's tokens, and the price of GPU time in tokens (paced.c). */
struct paced_account {
	struct feedback_loop loop;
	uint64_t granted; /* tokens granted in all */
	uint64_t grant;   /* tokens granted for the present period */
	uint64_t began_at;
	uint64_t spent_before; /* tokens spent before the present period */
	double charged_before;
	/* tokens spent, and GPU time charged for them; both decay, and their ratio is the price of GPU time */
	double paid_tokens, paid_for_ns;
};

/*
 * A group is an additional tenant; its members are not in arbiter.active, and their states follow the group's (lease_group.c).
 */
struct group_part {
	uint32_t group; /* the caller's number for the group; 0: none */
	/* index of the tenant that is this member's group; NONE: the tenant is no member */
	int of;
	bool is_group; /* this tenant is a group: it has members and no processes */
	/* for members only: */
	bool is_present; /* had work or demand within free_after_ns, and is not paused */
	uint64_t last_present_at;
	bool was_running; /* had work at the last arbiter_step() */
	/* when all its processes had been stopped; the present time while some process is not stopped */
	uint64_t stopped_at;
	/* limit for the busy time in the next report: the wall time so far, less the busy time accepted so far */
	double wall_ns;
	/* percent: its guarantee, or its part of the GPU time that no guarantee covers */
	double weight;
	uint64_t granted; /* tokens granted in all; a token is 1 ns of reported work */
	uint64_t held_ns; /* time for which its pace (space.h) held it at the gate */
	struct mps_client member;
};

/* Slows a program with short steps (rules/steps.h) down to its share or its cap (sliced.c). */
struct step_pace {
	/* how much longer a usual step must take so that the program does not exceed its share or cap */
	double more_ns;
	double hold_ns; /* delay from the end of a step until the next one may begin */
};

struct step_account {
	double ran_ns;            /* time with work on the GPU since the last sync point */
	double charged_before_ns; /* charged_ns at the last sync point */
	struct step_pace share, cap;
};

struct tenant {
	bool used;
	bool paused;
	uint64_t owner; /* arbiter_set_owner(); 0: none */
	/* began with a debt: removed tenants of its owner had turns beyond their share (debts.c) */
	bool has_inherited_debt;
	struct arbiter_share share;
	enum lease_state state;

	/* set by the caller: */
	struct arbiter_observation seen;
	/* `seen` holds an earlier observation, with which the next observation's counters can be compared */
	bool counters_known;
	bool seen_since_close; /* was observed after its processes could read CLOSING */
	bool launched;         /* launched work since the last arbiter_step() */
	double reported_ns;    /* busy time reported since the last arbiter_step() */

	/* derived from `seen` at each arbiter_step() (lease_order.c): */
	bool demand;
	bool running;        /* has or may have work on the GPU */
	bool arrived;        /* has demand or work now, but had none at the last arbiter_step() */
	bool began;          /* has work now, but had none at the last arbiter_step() */
	bool ran;            /* has work now, or its doorbell just reported the end of its work */
	bool candidate;      /* competes for the lease: has demand and tokens */
	uint64_t present_at; /* time of the latest demand or work */
	uint64_t worked_at;  /* time of the latest work or launch */

	/* place in arbiter.active, the list of active tenants (arbiter.h): */
	bool active;
	int active_index;
	uint64_t active_since;

	bool draining;    /* the end of its work is awaited, until drain_deadline */
	bool overrunning; /* missed its drain deadline, and was seen with work ever since */
	uint64_t drain_deadline;
	uint64_t closing_ns; /* predicted length of its in-flight work at CLOSING */
	uint64_t held_at;    /* time of the latest change to CLOSING or STOP */

	double vtime; /* ns of charge per percent of weight */
	/* ARBITER_SLICED: the tenant's share of GPU time, less the GPU time that it had; bounded (sliced.c) */
	double credit_ns;
	struct step_account step;
	bool comes_first; /* ARBITER_SLICED: lower priorities are held for this tenant */
	/* if it began work while others ran: estimated time at which the hardware begins to serve it */
	uint64_t served_from;
	/* charged_ns when served_from was last set; served_from is set again only after a further time slice was charged */
	double charged_at_wait_ns;
	bool is_over_cap; /* held because it used more than its cap */
	bool is_ahead;    /* held because it had more than its share */
	double tokens_ns;
	uint64_t filled_at;
	double charged_ns, charged_peak_ns, overrun_ns;
	uint64_t waited_ns, leases, expired;

	/* work that began while its state did not permit launches (lease_charge.c): */
	uint64_t disobeyed_at;          /* time of the latest such begin; 0: none */
	double charged_at_disobeyed_ns; /* charged_ns at that time */
	double unauthorized_ns;
	/* Time used beyond the charge, as the driver measures (arbiter_add_reading()). */
	struct time_account unpaid;
	struct time_account inherited; /* the part of `unpaid` with which the tenant began (debts.c) */

	/* budget for pushing ahead of lower priorities (lease_priority.c): */
	double budget_ns;
	uint64_t budget_at;
	/* budget or tokens were overdrawn: may not push ahead until both hold urgent_slice_ns */
	bool budget_spent;
	bool urgent; /* has budget and tokens, and outranks a tenant that wants the GPU */

	struct patience patience; /* for how long its lease is kept while it is idle */
	struct steps steps;
	/* mean over its leases: busy time in which its program was not ahead of the GPU, less BEHIND_SEEN_NS (quantum.c) */
	double behind_ns;
	/* means over its leases: how often its program waited, and the charge */
	double lease_waits, lease_ns;
	/* while alone under a cap, its leases have cap_slice_most_ns (long slices), so that its thread gets ahead of the GPU */
	bool has_long_slices;
	double charged_at_pause_ns; /* charged_ns when it last had nothing to do (lease_order.c) */
	bool has_synced;            /* reached a sync point since the arbiter's last step */
	/* time without work since its latest sync point, while no thread waited at the gate */
	double idle_ns;
	bool ended_step; /* its last turn ended with a step of its program */
	uint64_t step_turns;

	/* the part of the charge that charge_settle() may still correct: */
	double sampled_ns; /* GPU time charged by sampling */
	double wall_ns;    /* longest time that it can have run */
	double claimed_ns; /* busy time that it reports */
	/* time that charge_settle() leaves out: the GPU's change to this tenant when the lease began */
	double uncharged_ns;
	bool overlapped; /* other tenants ran at the same time, so nothing is settled */

	/* turns on several devices at once (gang_rank.c): */
	struct gang_command gang;
	bool gang_over; /* holds the lease, and its turn should end on all devices together */
	bool gang_idle; /* holds the lease, and its turn should end once all ranks are idle */

	struct group_part part;

	struct token_account token;
	struct paced_account paced;
};

/*
 * The debt of an owner's removed tenants. It is stored as times of arbiter.clock, at which a new tenant that uses nothing will
 * have paid for it: turn_until for turns beyond the tenants' share, cap_until for use beyond their caps, certain_until and
 * likely_until for unpaid time (time_policy.h).
 */
struct debt {
	uint64_t owner;
	uint64_t turn_until, cap_until, certain_until, likely_until;
	uint64_t refused_until; /* until then the owner gets no new tenant; see arbiter_refused_ns() */
};
#define DEBTS_MAX 64

enum close_reason { CLOSE_FOR_GOOD, CLOSE_FOR_OTHERS, CLOSE_FOR_URGENT, CLOSE_FOR_GANG };

struct arbiter {
	struct arbiter_config config;
	struct tenant tenant[ARBITER_MAX_TENANTS];
	struct debt debt[DEBTS_MAX];
	int active[ARBITER_MAX_TENANTS];
	int active_count;
	int active_unpromised; /* active tenants without a guarantee */
	int polled_count;      /* tenants that ring no doorbell, so must be polled */
	double promised_pct;
	bool priorities_differ;
	int gang_count; /* tenants with a gang order other than GANG_NONE */
	int member_count;
	int wanting; /* tenants with demand or work at charge_step(); 0 in free run */
	/* usual lengths and depth of turns, or larger values beside a gang */
	struct turn_terms terms;
	uint64_t quantum_ns;
	double handover_ns;

	bool stepped;
	uint64_t trusted_from; /* before this time, libraries may have taken the daemon for lost, and let work pass */
	uint64_t last_now_ns;
	uint64_t clock;
	enum arbiter_mode mode;
	/* a share or a tenant changed, so the states of free run must be set again */
	bool shares_changed;
	double vclock; /* least virtual time of the tenants that compete; never falls */

	int holder;
	int last_holder; /* NONE: unknown */
	enum close_reason close_reason;
	struct arbiter_lease_end last_end;
	bool was_wanted; /* at the last decision, another tenant wanted the lease */
	/*
	 * the holder's first work was seen or, while other tenants want the GPU, start_grace_ns is over: its charge has begun
	 */
	bool started;
	bool worked; /* work was seen under this lease */
	/* granted to a tenant in need (order_in_need()), so the lease lasts min_lease_ns even without tokens */
	bool out_of_turn;
	uint64_t in_need_at; /* when a lease was last granted to a tenant in need */
	uint64_t granted_at;
	/* values of the holder at granted_at: */
	double charged_before;
	uint64_t ramp_before;
	uint64_t behind_before;
	uint64_t waits_before;
	uint64_t busy_before;
	uint64_t start_ns; /* time from granted_at to the first work */
	uint64_t ran_ns;   /* time since `started`, or since the turn was last renewed */
	double vtime_at_start;
	bool wants_sync_point;  /* the holder's next sync point ends its turn */
	bool wanted_sync_point; /* wants_sync_point before the present decision */
	/* the holder pushed ahead within its budget: urgent_turn_is_over() decides when it yields, unless it is idle */
	bool urgent_lease;

	/* tenant that lost the lease to a higher priority and will get back the rest of its turn; or NONE */
	int interrupted;
	uint64_t interrupted_ran_ns;
	double interrupted_vtime_at_start;
};

static inline bool is_capped(const struct tenant *t)
{
	return t->share.limit_pct < 100.0;
}

static inline bool permits_launch(enum lease_state state)
{
	return state == LEASE_GO || state == LEASE_FREE;
}

static inline bool arbiter_must_poll(const struct arbiter *a)
{
	return a->polled_count || a->gang_count;
}

/* Whether `tenant`, a number from outside, is a tenant's. */
static inline bool is_tenant(const struct arbiter *a, int tenant)
{
	return tenant >= 0 && tenant < ARBITER_MAX_TENANTS && a->tenant[tenant].used;
}

/* arbiter.c */

void arbiter_deactivate(struct arbiter *a, struct tenant *t);

/* lease_charge.c */

void charge_fill_tokens(struct arbiter *a, struct tenant *t);
double charge_bucket_ns(const struct arbiter *a, const struct tenant *t);
/* Returns the tokens that a capped tenant needs to get a lease. */
double charge_tokens_needed(const struct arbiter *a, const struct tenant *t);
/*
 * True for a program that launches without waiting for its work, like a training that never reads its loss. It should get few
 * long pauses instead of many short ones, because each pause costs its thread the lead over the GPU.
 */
bool charge_streams(const struct arbiter *a, const struct tenant *t);
/*
 * Returns how far below zero a capped tenant's tokens may fall while it is alone; 0 beside other tenants. A long slice
 * (has_long_slices) can then begin about as far above zero tokens as it ends below zero.
 */
uint64_t charge_alone_debt_ns(const struct arbiter *a, const struct tenant *t);
/* GPU time of a long slice (has_long_slices): cap_slice_most_ns, at most the token bucket, at least cap_slice_ns. */
double charge_long_slice_ns(const struct arbiter *a, const struct tenant *t);
/* The GPU time that a capped tenant saves up in each pause while it is alone. */
uint64_t charge_alone_slice_ns(const struct arbiter *a, const struct tenant *t);
/* The most tokens of a new or absent tenant: enough for a lease beside other tenants, at most a full bucket. */
double charge_tokens_kept(const struct arbiter *a, const struct tenant *t);
/* Charges all active tenants for dt_ns, by the rules of the mode. */
void charge_step(struct arbiter *a, uint64_t dt_ns);
/* Corrects the charge since charge_begin() by the reported busy time. last_dt_ns: the last step's length. */
void charge_settle(struct arbiter *a, struct tenant *t, uint64_t last_dt_ns);
/* If the holder showed no use of its lease, charges it for work that may have run unseen. */
void charge_unused_lease(struct arbiter *a, struct tenant *t);
/* After `steps` more sync points: charges a tenant that is alone under a cap for short pauses after its steps. */
void charge_pauses(struct arbiter *a, struct tenant *t, uint32_t steps);
/* Starts a new account for charge_settle(). */
void charge_begin(struct tenant *t);

/* debts.c */

/* Keeps the debt of a tenant that is about to be removed. */
void debts_note(struct arbiter *a, struct tenant *t);
/* True for a tenant that inherited so much debt that it gets the GPU only while no tenant that owes less is active. */
bool debts_must_wait(const struct arbiter *a, const struct tenant *t);
/* Charges a new tenant with the remaining debt of removed tenants of its owner. */
void debts_take_over(struct arbiter *a, struct tenant *t);
/* Notes a violation of the tenant, so that its owner gets no new tenant for a while. */
void debts_refuse(struct arbiter *a, const struct tenant *t);

/* lease_order.c */

double order_weight(const struct arbiter *a, const struct tenant *t);
/* The factor on guarantees: 1, or less if they sum to more than 100 %. */
double order_scale(const struct arbiter *a);
/* Sets the fields of struct tenant that are derived from `seen`, except `candidate`. */
void order_read_demand(struct arbiter *a);
/* Sets `candidate`, limits how far a returning tenant's virtual time may lag, and advances the virtual clock. */
void order_mark_candidates(struct arbiter *a);
/* True if the tenant may be stuck without a lease, and no tenant in need had one for need_ns (arbiter.h: Need). */
bool order_in_need(const struct arbiter *a, const struct tenant *t);
/*
 * Returns the virtual time at which a quantum that starts at `vtime` ends; the tenant with the first end comes next. If starts
 * were compared, a large tenant that returns from idleness would wait for a quantum of every small tenant with slightly less
 * virtual time.
 */
double order_turn_end(const struct arbiter *a, const struct tenant *t, double vtime);
/* Returns the next candidate other than `except`, or NONE: a tenant in need, or the first by order_turn_end(). */
int order_best(const struct arbiter *a, int except);
/* Ties go to the higher priority, then to the tenant that has waited longer. */
bool order_comes_before(const struct arbiter *a, const struct tenant *t, const struct tenant *other);

/* lease_priority.c */

void priority_begin(struct arbiter *a, struct tenant *t);
void priority_fill(struct arbiter *a, struct tenant *t);
void priority_charge(struct arbiter *a, struct tenant *t, double amount_ns);
/* Sets priorities_differ. Call when a tenant was added, removed, or changed priority. */
void priority_count(struct arbiter *a);
/* True if a tenant of a higher priority, not paused, has ever launched work: it may want the GPU at any moment. */
bool priority_is_outranked(const struct arbiter *a, const struct tenant *t);
/* Sets `urgent`; `demand` must be up to date. */
void priority_mark(struct arbiter *a);
/* Returns the urgent tenant of the highest priority, other than `except`; NONE if its priority would be below `least`. */
int priority_best(const struct arbiter *a, int except, int64_t least);

/* sliced.c */

/* True if all active tenants should run at once, sliced by the hardware. */
bool sliced_is_due(const struct arbiter *a);
/* Resets all credits, holds and step accounts. Call when ARBITER_SLICED begins. */
void sliced_begin(struct arbiter *a);
/* Call at each arbiter_step() in slices: notes steps that ended, and tenants that began work while others ran. */
void sliced_note_begins(struct arbiter *a);
/* The fraction of GPU time that the tenant gets now. Processes that the hardware serves get equal parts. */
double sliced_served_part(const struct arbiter *a, const struct tenant *t);
/* Adds the tenant's share of dt_ns, by weight, to its credit, and subtracts had_ns, the GPU time that it had. */
void sliced_count(struct arbiter *a, struct tenant *t, uint64_t dt_ns, double had_ns);
/* Sets is_ahead, is_over_cap and comes_first. */
void sliced_mark(struct arbiter *a);
/* True if the doorbell must report the tenant's sync points, so that its use is known to the microsecond. */
bool sliced_wants_sync_point(const struct arbiter *a, const struct tenant *t);
/*
 * True if the tenant must wait: it is ahead of its share, above its cap, or a higher priority comes first. Of the tenants that
 * want the GPU, at least one is not held, unless caps hold all.
 */
bool sliced_is_held(const struct arbiter *a, const struct tenant *t);
/* True if only little work may be in flight, because a higher priority may begin work at any time. */
bool sliced_is_bounded(const struct arbiter *a, const struct tenant *t);
uint64_t sliced_next_poll_ns(const struct arbiter *a);

/* quantum.c */

void quantum_init(struct arbiter *a);
/* Sets a->terms and a->quantum_ns. */
void quantum_set(struct arbiter *a);
/* Measures the cost of a hand-over. Call at each grant, before the new holder is set. */
void quantum_learn(struct arbiter *a);
/* Sets a->start_ns when the holder's first work is seen. */
void quantum_watch_start(struct arbiter *a, const struct tenant *holder);

/* lease.c; two functions on polls are in lease_poll.c, lease_is_idle() is in turn_end.c */

void lease_grant(struct arbiter *a, int tenant);
/* Sends CLOSING to a tenant in GO or FREE, whether holder or not. */
void lease_close(struct arbiter *a, struct tenant *t);
/* Sends CLOSING to the holder, and records the reason. */
void lease_close_for(struct arbiter *a, struct tenant *t, enum arbiter_end why);
/* Sets STOP without a drain. A holder loses the lease. */
void lease_hold(struct arbiter *a, struct tenant *t);
/* Ends drains that are done or past their deadline. */
void lease_end_drains(struct arbiter *a, uint64_t dt_ns);
/* Ends, renews or reopens the holder's lease. If there is no holder, grants a lease. */
void lease_decide(struct arbiter *a);
/* For the lease: poll_free_ns at most, or poll_rung_ns if all tenants ring their doorbells. */
uint64_t lease_next_poll_ns(const struct arbiter *a);
/* For drains: poll_drain_ns to poll_lease_ns, or at most poll_rung_ns if the tenants ring their doorbells. */
uint64_t lease_drain_poll_ns(const struct arbiter *a);
bool lease_any_drain(const struct arbiter *a);
/* True if the holder has been idle for longer than its patience, so should lose the lease. */
bool lease_is_idle(const struct arbiter *a, const struct tenant *t);

/* turn_end.c */

/*
 * True if the holder `t` should yield to `other`. Otherwise renews the turn if its time is over. The holder must have tokens
 * and not be outranked.
 */
bool turn_should_yield(struct arbiter *a, struct tenant *t, int other);
/* True if the lease ends now because the tokens are used up. A program with steps may first end its step. */
bool turn_ends_with_tokens(struct arbiter *a, const struct tenant *t, bool contended);
bool turn_tokens_are_used_up(const struct arbiter *a, const struct tenant *t, bool contended);
bool turn_may_be_cut(const struct arbiter *a, const struct tenant *t, const struct tenant *other);
/*
 * Returns the time left in the turn after the in-flight work, while `other` waits; negative if the turn is over. If `other` may
 * cut the turn short (comes_first()), and turns end with steps: the time until min_lease_ns is over.
 */
double turn_left_ns(const struct arbiter *a, const struct tenant *t, int other);
/* The longest step with which a turn may end: step_most_ns; the token bucket if that is more, for a lone capped tenant. */
double turn_step_most_ns(const struct arbiter *a, const struct tenant *t);
/* The length of a step; 0 if unknown, or if turns do not end with steps. */
double turn_step_ns(const struct arbiter *a, const struct tenant *t);
/* The predicted length of the in-flight work, at most the allowed depth if `contended`. */
double turn_predicted_ns(const struct arbiter *a, const struct tenant *t, bool contended);
/* Returns how long a holder may be without work before it counts as idle. */
uint64_t turn_idle_limit_ns(const struct arbiter *a, const struct tenant *t);

/* gang_rank.c: callers skip most of these functions while gang_count is 0 */

/* True if the gang's order keeps the tenant from a lease of its own. */
bool gang_rank_is_held(const struct arbiter *a, const struct tenant *t);
/* True if the device is kept free for a gang, or a gang should have the lease but does not. */
bool gang_rank_is_awaited(const struct arbiter *a);
/* Closes the holder's lease if a gang's order says so. Returns true if nothing else is left to decide about the holder. */
bool gang_rank_decide_on_holder(struct arbiter *a, struct tenant *holder);
/* Returns the tenant for the next lease: a gang, or else `next`, the choice without gangs. NONE if the device is kept free. */
int gang_rank_choose(const struct arbiter *a, int next);
/* Returns how long a gang may be idle on this device while its other ranks work or have just become idle; else 0. */
uint64_t gang_rank_idle_limit_ns(const struct arbiter *a, const struct tenant *t);
/* Widens the bounds of the holder's patience if it is a gang. */
void gang_rank_widen_patience(const struct arbiter *a, const struct tenant *t,
			      struct patience_bounds *bounds);
/* Call when the holder's turn is over. Returns true for a gang, whose turn ends on all devices together. */
bool gang_rank_end_turn(struct tenant *t);
/*
 * Call when the holder has been idle for long enough to lose its lease on this device. Returns true for a gang that is idle on
 * its other devices too: its turn then ends on all devices together.
 */
bool gang_rank_idle(const struct arbiter *a, struct tenant *t);
/*
 * Limits how far the virtual time of a gang that waits for another device falls behind. New tenants start at the least virtual
 * time. If that were the gang's, they would come before all tenants that worked while the gang waited.
 */
void gang_rank_bound_lag(struct arbiter *a);
/* next_ns is the time until the next poll without gangs. */
uint64_t gang_rank_next_poll_ns(const struct arbiter *a, uint64_t next_ns);

/* lease_group.c: while member_count is 0, only is_lessee() and group_of() are called */

/* True if the tenant gets leases itself: any tenant but a group's member. */
static inline bool is_lessee(const struct tenant *t)
{
	return t->used && t->part.of == NONE;
}

/* Returns the tenant under whose lease `tenant` runs: its group or itself. */
static inline int group_of(const struct arbiter *a, int tenant)
{
	return a->tenant[tenant].part.of == NONE ? tenant : a->tenant[tenant].part.of;
}

/* Sets the group's share. Call when a member joined, left, or changed share or priority. */
void group_count(struct arbiter *a, int group);
/* The group is removed with its last member. */
void group_leave(struct arbiter *a, struct tenant *t);
/* Computes each group's observation from its members', and charges the members for dt_ns. */
void group_observe(struct arbiter *a, uint64_t dt_ns);
/* Returns how much work a member may have in flight, measured in the lengths that its library predicts. */
uint64_t group_depth_ns(const struct arbiter *a, const struct tenant *t);
/* Derives members' states from their groups'. Returns the time until the next poll, at most next_ns. */
uint64_t group_decide(struct arbiter *a, uint64_t dt_ns, uint64_t next_ns);

/* token.c, paced.c: for a new tenant, and at each arbiter_step(). The latter return the time until the next poll. */

void token_add(struct arbiter *a, struct tenant *t);
uint64_t token_decide(struct arbiter *a);

void paced_add(struct arbiter *a, struct tenant *t);
uint64_t paced_decide(struct arbiter *a);
