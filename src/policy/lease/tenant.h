/*
 * The arbiter's inside: struct arbiter and struct tenant, and what the files of this folder ask of each other. Nothing
 * outside includes it. arbiter.h defines the nouns.
 *
 *   arbiter.c     the interface: tenants, observations, modes, the step
 *   answers.c     the interface: what it tells
 *   charge.c      what a tenant pays: tokens, virtual time, settling with its own report
 *   order.c       the next tenant: weights, candidates, virtual time on return
 *   priority.c    which tenant may push ahead of which, and for how long: budgets
 *   quantum.c     the length of a turn: the measured cost of a hand-over; turn_terms.c: its bounds
 *   patience.c    when an idle holder loses the lease
 *   lease.c       the holder's lease: grant, close, drain, expire
 *   turn_end.c    when the holder's turn is over: by time, tokens, idleness, steps
 *   lease_poll.c  how soon to look again
 *   member.c      the device's part in gangs, which have their turns on several devices at once
 *   group.c       tenants that share space: one tenant to all of the above, MPS clients to space.h
 *   sliced.c      programs with short steps: all run at once, and a tenant that is ahead of its share is held
 *   token.c, paced.c   the other policies
 *
 * Times are of the arbiter's own clock, which counts what steps count: a jump of the caller's clock moves it by
 * max_step_ns at most. Charges are doubles: shares of a step are fractions of a nanosecond, and 2^53 ns is 104 days.
 */
#pragma once

#include "policy/gang/gang.h"
#include "policy/lease/arbiter_types.h"
#include "policy/lease/rules/patience.h"
#include "policy/lease/rules/steps.h"
#include "policy/space/space.h"

#define NONE (-1)

/* ARBITER_POLICY_TOKEN: what a tenant used of the sliding window, by parts of it. */
#define TOKEN_PARTS 100
struct token_account {
	double part_ns[TOKEN_PARTS];
	double used_ns;    /* their sum */
	uint64_t part;     /* the present one, counted from the start of the arbiter's clock */
	double counted_ns; /* of charged_ns */
	uint64_t since;    /* when the tenant came */
};

/* ARBITER_POLICY_FEEDBACK: a tenant gets tokens for each period. */
struct paced_account {
	struct feedback_loop loop;
	uint64_t granted;      /* tokens in all */
	uint64_t grant;        /* tokens of the last period */
	uint64_t began_at;     /* when the period began */
	uint64_t spent_before; /* tokens and charge at its begin */
	double charged_before;
	/* The price of a token: tokens spent, and GPU time charged for them. Both fade. */
	double paid_tokens, paid_for_ns;
};

/*
 * Sharing space; see group.c. A group is a tenant of its own, which takes part in everything; its members
 * are none of the active, and have their states from it.
 */
struct group_part {
	uint32_t group; /* 0: takes its turns alone */
	int of;         /* a member's: the tenant that is its group; NONE: no member */
	bool is_group;  /* has no processes, but members */
	/* A member's: */
	bool is_there; /* had work or demand within free_after_ns, at there_at last */
	uint64_t there_at;
	bool was_running;    /* at the last look */
	uint64_t stopped_at; /* since when it has been stopped; else the present */
	double wall_ns;      /* not charged for yet: what its own word is good for at most */
	double weight;       /* percent: its guarantee, or its part of what all guarantees leave */
	uint64_t granted;    /* told work in ns, as tokens */
	uint64_t held_ns;    /* ever, by its pace */
	struct mps_client member;
};

/* How a program with short steps keeps to a part of the GPU's time; see sliced.c. */
struct step_pace {
	double more_ns; /* by so much a usual step is too short, for what it is charged */
	double hold_ns; /* from the end of this step until the next may begin */
};

struct step_account {
	double ran_ns;            /* with work on the GPU, since the last sync point */
	double charged_before_ns; /* the charge until that */
	struct step_pace share, cap;
};

struct tenant {
	bool used;
	bool paused;
	struct arbiter_share share;
	enum lease_state state;

	/* Observed. */
	struct arbiter_observation seen;
	bool counters_known;   /* seen.busy_ns and .launches are a base for differences */
	bool seen_since_close; /* observed after its CLOSING could be read */
	bool launched;         /* new work since the last step */
	double reported_ns;    /* own busy time since the last step */

	/* Derived at each step; see order.c. */
	bool demand;         /* would use a lease */
	bool running;        /* has, or may have, work on the GPU */
	bool came;           /* it has demand or work, and had none at the last step */
	bool began;          /* it runs, and did not at the last step */
	bool ran;            /* it runs, or did until it rang for its end just now */
	bool candidate;      /* has demand and tokens: competes */
	uint64_t present_at; /* last had demand or work */
	uint64_t worked_at;  /* last busy or launching */

	/* In the list of active tenants. */
	bool active;
	int active_index;
	uint64_t active_since;

	/* Past CLOSING. */
	bool draining;    /* its end, or its deadline, is awaited */
	bool overrunning; /* missed the deadline and has not been seen idle since */
	uint64_t drain_deadline;
	uint64_t closing_ns; /* its work in flight at CLOSING, as predicted */
	uint64_t held_at;    /* when its word last went from letting through to holding */

	/* The account. */
	double vtime; /* ns of charge per percent of weight */
	double credit_ns; /* while the hardware slices: GPU time still due to it; negative: it had more */
	struct step_account step;
	bool comes_first; /* before those of a lower priority */
	uint64_t served_from; /* it began to run while others did, and waits until then for its first time slice */
	double charged_at_wait_ns; /* when it last had such a wait: there is one for each slice that it was charged */
	bool is_over_cap; /* held for its cap */
	bool is_ahead;    /* held for having had more than its share */
	double tokens_ns;
	uint64_t filled_at; /* when tokens were last filled */
	double charged_ns, charged_peak_ns, overrun_ns;
	uint64_t waited_ns, leases, expired;

	/* Pushing ahead of lower priorities; see priority.c. */
	double budget_ns;   /* negative: overdrawn */
	uint64_t budget_at; /* when the budget was last filled */
	bool budget_spent;  /* it or the tokens overdrawn: no more until a slice is there again */
	bool urgent;        /* outranks one that wants the GPU, and has budget and tokens */

	struct patience patience; /* with its rests */
	struct steps steps;
	bool has_synced;     /* since the last step of the arbiter */
	bool ended_step;     /* its last turn ended with a step */
	uint64_t step_turns; /* turns that did */

	/* Not yet settled: see charge_settle(). */
	double sampled_ns; /* charged by samples */
	double wall_ns;    /* the longest that it can have run */
	double claimed_ns; /* as the tenant reports it */
	bool switched;     /* began with a change of tenants on the GPU */
	bool overlapped;   /* others ran at the same time: nothing to settle */

	/* Its turns on several devices at once; see member.c. */
	struct gang_word gang;
	bool gang_over; /* has the lease, and should give it up: on all devices */
	bool gang_idle; /* the same, if it rests on all */

	struct group_part part;

	/* Of the other policies. */
	struct token_account token;
	struct paced_account paced;
};

enum close_reason { CLOSE_FOR_GOOD, CLOSE_FOR_OTHERS, CLOSE_FOR_URGENT, CLOSE_FOR_GANG };

struct arbiter {
	struct arbiter_config config;
	struct tenant tenant[ARBITER_MAX_TENANTS];
	int active[ARBITER_MAX_TENANTS];
	int active_count;
	int active_unpromised;  /* active tenants without a guarantee */
	int silent;             /* tenants that don't ring: looks are needed for them */
	double promised_pct;    /* sum of all guarantees */
	bool priorities_differ; /* no tenant outranks another otherwise */
	int gang_count;         /* tenants under a gang's word */
	int member_count;       /* tenants that share space with others */
	int wanting;            /* how many wanted the time that is charged for */
	struct turn_terms terms; /* in force: of turns, while no tenant has more or less for itself */
	uint64_t quantum_ns;     /* in force */
	double handover_ns;      /* what one costs, by those seen so far */

	bool stepped;
	uint64_t last_now_ns;
	uint64_t clock;
	enum arbiter_mode mode;
	bool shares_changed; /* states in free run are to be set anew */
	double vclock;       /* least virtual time of those that compete; never goes down */

	/* The lease. */
	int holder;
	int last_holder; /* the holder before it; NONE when that is unknown */
	enum close_reason close_reason;
	struct arbiter_lease_end last_end; /* what it is for is told; see arbiter_last_end() */
	bool was_wanted;                   /* at the last look another could have had it */
	bool started;                      /* first work under it seen, or its grace over */
	bool worked;                       /* work under it seen */
	bool out_of_turn; /* given for order_in_need(): min_lease_ns, whatever the account says */
	uint64_t granted_at;
	double charged_before; /* the holder, at granted_at */
	uint64_t ramp_before;  /* and its seen.ramp_ns ... */
	uint64_t busy_before;  /* ... and .busy_ns */
	uint64_t start_ns;     /* from granted_at to its first work */
	uint64_t ran_ns;       /* since started, or since it was renewed */
	double vtime_at_start;
	bool wants_sync_point;  /* the holder's next sync point ends its turn ... */
	bool wanted_sync_point; /* ... and would have by what was decided before */
	bool urgent_lease;      /* pushed for, and within its budget: only its like end it */

	/* The tenant that lost the lease to a higher priority and gets it back, for what is left of its turn; or NONE. */
	int interrupted;
	uint64_t interrupted_ran_ns;
	double interrupted_vtime_at_start;
};

static inline bool is_capped(const struct tenant *t)
{
	return t->share.limit_pct < 100.0;
}

static inline bool lets_through(enum lease_state state)
{
	return state == LEASE_GO || state == LEASE_FREE;
}

/* Some tenant does what no bell rings for: gangs wait for events on other devices. */
static inline bool arbiter_must_look(const struct arbiter *a)
{
	return a->silent || a->gang_count;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* arbiter.c */

/* Takes it off the list of the active, if it is there. */
void arbiter_deactivate(struct arbiter *a, struct tenant *t);

/* charge.c */

/* Fills the bucket up to the present. */
void charge_fill_tokens(struct arbiter *a, struct tenant *t);
/* Tokens at which a capped tenant may get a lease. */
double charge_tokens_needed(const struct arbiter *a, const struct tenant *t);
/* Tokens that a new tenant has at most: enough for a lease, whatever others are there. */
double charge_tokens_kept(const struct arbiter *a, const struct tenant *t);
/* Charges all active tenants for the dt_ns that end now, by the mode in force during them. */
void charge_step(struct arbiter *a, uint64_t dt_ns);
/* Corrects the unsettled charge by the tenant's own report; last_dt_ns: the last step's length. */
void charge_settle(struct arbiter *a, struct tenant *t, uint64_t last_dt_ns);
/* A lease of which the holder shows no use at all: it pays for what it may have run unseen. */
void charge_unused_lease(struct arbiter *a, struct tenant *t);
/* Begins a new period to settle. */
void charge_begin(struct tenant *t);

/* order.c */

double order_weight(const struct arbiter *a, const struct tenant *t);
/* What becomes of each percent promised: less than 1 while more than 100 are. */
double order_scale(const struct arbiter *a);
/* Works out demand and running of all active tenants from what was seen. */
void order_read_demand(struct arbiter *a);
/* Works out which tenants compete; moves virtual times of those that come back, and the virtual clock. */
void order_mark_candidates(struct arbiter *a);
/* Whether it may be stuck for want of a lease, and has been without one for need_ns; see Need. */
bool order_in_need(const struct arbiter *a, const struct tenant *t);
/*
 * The virtual time at which a quantum from `vtime` on will end, which decides the order. By the beginnings of turns, a tenant
 * with a large share that came back would wait for the turn of each small one that is a moment behind it.
 */
double order_turn_end(const struct arbiter *a, const struct tenant *t, double vtime);
/*
 * The candidate that comes next, other than `except`: one in need, else the one whose turn would end
 * first in virtual time. NONE when there is none.
 */
int order_best(const struct arbiter *a, int except);
/* Ties go to the higher priority, then to the one that has waited longest since it was held. */
bool order_comes_before(const struct arbiter *a, const struct tenant *t, const struct tenant *other);

/* priority.c */

/* A tenant's first budget. */
void priority_begin(struct arbiter *a, struct tenant *t);
/* Fills the budget up to the present. */
void priority_fill(struct arbiter *a, struct tenant *t);
void priority_charge(struct arbiter *a, struct tenant *t, double amount_ns);
/* To be called when a tenant came, went or changed its priority. */
void priority_count(struct arbiter *a);
/* Whether a tenant outranks it that has worked already, and may come back at any moment. */
bool priority_is_outranked(const struct arbiter *a, const struct tenant *t);
/* Works out which of the active tenants may push ahead; needs demand. */
void priority_mark(struct arbiter *a);
/* The urgent tenant of the highest priority, `least` or above, other than `except`; or NONE. */
int priority_best(const struct arbiter *a, int except, int64_t least);

/* sliced.c */

/* Whether all active tenants run at once, and the hardware gives each its time slices. */
bool sliced_is_due(const struct arbiter *a);
/* To be called when that begins. */
void sliced_begin(struct arbiter *a);
/* To be called at each step, in any mode: notes who begins to run while others do, and waits for the hardware to come to it. */
void sliced_note_begins(struct arbiter *a);
/* Its part of the GPU's time now, 0 to 1: each process that the hardware serves gets as much as any other. */
double sliced_served_part(const struct arbiter *a, const struct tenant *t);
/* Counts what it was due of the dt_ns that end now, and the GPU time that it had. */
void sliced_count(struct arbiter *a, struct tenant *t, uint64_t dt_ns, double had_ns);
/* Works out which tenants are ahead of their share, or above their cap. */
void sliced_mark(struct arbiter *a);
/* Whether its rests are to be rung for: so what it used is known to the microsecond, and not to the next look. */
bool sliced_wants_sync_point(const struct arbiter *a, const struct tenant *t);
/*
 * Whether a tenant has to wait: it is ahead or above its cap, or one of a higher priority comes first. Of those that want the GPU
 * one never has to, but for a cap.
 */
bool sliced_is_held(const struct arbiter *a, const struct tenant *t);
/* Whether it may have little in flight only: one of a higher priority may come first at any time. */
bool sliced_is_bounded(const struct arbiter *a, const struct tenant *t);
uint64_t sliced_next_look_ns(const struct arbiter *a);

/* quantum.c */

void quantum_init(struct arbiter *a);
/* Works out the terms of turns, and the quantum, for the tenants that are active. */
void quantum_set(struct arbiter *a);
/* To be called at each grant, before it: learns from the lease that ended. */
void quantum_learn(struct arbiter *a);
/* To be called when the holder is first seen at work. */
void quantum_watch_start(struct arbiter *a, const struct tenant *holder);

/* lease.c */

void lease_grant(struct arbiter *a, int tenant);
/* Sends CLOSING to a tenant that is let through, holder or not. */
void lease_close(struct arbiter *a, struct tenant *t);
/* The same of the holder, which is told why. */
void lease_close_for(struct arbiter *a, struct tenant *t, enum arbiter_end why);
/* Holds a tenant without a drain. */
void lease_hold(struct arbiter *a, struct tenant *t);
/* Ends the drains that are over or past their deadline. */
void lease_end_drains(struct arbiter *a, uint64_t dt_ns);
/* Ends, renews or reopens the holder's lease; grants one when no one has it. */
void lease_decide(struct arbiter *a);
/* Time until the holder's lease should be looked at again, at most poll_free_ns, or poll_rung_ns. */
uint64_t lease_next_look_ns(const struct arbiter *a);
/* Time until the drains should be looked at again: poll_drain_ns to poll_lease_ns, or poll_rung_ns. */
uint64_t lease_drain_look_ns(const struct arbiter *a);
bool lease_any_drain(const struct arbiter *a);
/* Whether the holder has been idle for so long that it gives way. */
bool lease_is_idle(const struct arbiter *a, const struct tenant *t);

/* turn_end.c */

/* Whether the holder, which may go on otherwise, should give way to `other`; its turn is renewed if not. */
bool turn_should_yield(struct arbiter *a, struct tenant *t, int other);
/* Whether the holder's lease ends with its tokens now; with a step of its program, where it works in steps. */
bool turn_ends_with_tokens(struct arbiter *a, const struct tenant *t, bool contended);
/* True when the tokens will be gone once the work in flight is done. */
bool turn_tokens_are_used_up(const struct arbiter *a, const struct tenant *t, bool contended);
/* Whether `other` takes the lease from the holder in the middle of a step. */
bool turn_may_be_cut(const struct arbiter *a, const struct tenant *t, const struct tenant *other);
/* What is left of the holder's turn, beside `other`, once the work in flight is done; less than 0: it is over. */
double turn_left_ns(const struct arbiter *a, const struct tenant *t, int other);
/* The length of its program's steps; 0: none is known, or turns don't end with them. */
double turn_step_ns(const struct arbiter *a, const struct tenant *t);
/* Of the work in flight; contended, no more than the depth. */
double turn_predicted_ns(const struct arbiter *a, const struct tenant *t, bool contended);
/* A holder without work for so long counts as idle. */
uint64_t turn_idle_limit_ns(const struct arbiter *a, const struct tenant *t);

/* member.c; of these, only the first may be called while no tenant is under a gang's word. */

/* Whether a gang's word keeps it from a lease of its own. */
bool member_is_held(const struct arbiter *a, const struct tenant *t);
/* Whether a gang's turn on this device has come, and it has not got it, or has not left it. */
bool member_is_awaited(const struct arbiter *a);
/* Closes the holder when a gang's word says so; true: nothing else is to be decided on it. */
bool member_decide_on_holder(struct arbiter *a, struct tenant *holder);
/* The tenant that comes next, where the order would choose `next`; NONE: the device is kept free. */
int member_choose(const struct arbiter *a, int next);
/* So long it may rest at least while it has work under its leases of other devices, or had until a moment ago. */
uint64_t member_idle_limit_ns(const struct arbiter *a, const struct tenant *t);
/* The bounds of the patience with it, where it is a gang. */
void member_widen_patience(const struct arbiter *a, const struct tenant *t,
			   struct patience_bounds *bounds);
/* The holder's turn is over: true when that is ended on all devices together. */
bool member_end_turn(struct tenant *t);
/* The holder has rested for long enough: true when that is for all devices together to end its turn. */
bool member_idle(const struct arbiter *a, struct tenant *t);
/*
 * A tenant that waits for its turn on another device falls behind on this one without end: a new tenant would start from
 * there, ahead of all that have worked since.
 */
void member_bound_lag(struct arbiter *a);
/* When to look again, where that is next_ns otherwise. */
uint64_t member_next_look_ns(const struct arbiter *a, uint64_t next_ns);

/* group.c; of these only the first two may be called while there is no member. */

/* A tenant that takes its turns itself, or a group: no member. */
static inline bool is_lessee(const struct tenant *t)
{
	return t->used && t->part.of == NONE;
}

/* The tenant whose lease it is that this one runs under: its group, or itself. */
static inline int group_of(const struct arbiter *a, int tenant)
{
	return a->tenant[tenant].part.of == NONE ? tenant : a->tenant[tenant].part.of;
}

/* To be called when a member went, or its share or priority changed. */
void group_count(struct arbiter *a, int group);
/* Leaves its group, which goes with its last member. */
void group_leave(struct arbiter *a, struct tenant *t);
/* What the groups show, of what was seen of their members; the members are charged for the dt_ns that end now. */
void group_observe(struct arbiter *a, uint64_t dt_ns);
/* How much this member may have in flight, as its library tells of it. */
uint64_t group_depth_ns(const struct arbiter *a, const struct tenant *t);
/* The members' states, by those of their groups. Returns when to look again, where that is next_ns otherwise. */
uint64_t group_decide(struct arbiter *a, uint64_t dt_ns, uint64_t next_ns);

/* token.c, paced.c: a tenant came; the policy's part of a step, which returns how soon to look again. */

void token_add(struct arbiter *a, struct tenant *t);
uint64_t token_decide(struct arbiter *a);

void paced_add(struct arbiter *a, struct tenant *t);
uint64_t paced_decide(struct arbiter *a);
