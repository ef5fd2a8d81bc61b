/*
 * Internals of the arbiter: struct arbiter, struct tenant, and the functions that the files of this folder call in each other.
 * No file outside this folder includes this header. arbiter.h defines the terms.
 *
 *   arbiter.c         the interface: tenants, observations, modes, the step
 *   queries.c         the interface: functions that change nothing
 *   lease_charge.c    what a tenant pays: tokens, virtual time, settlement with the tenant's own report
 *   lease_order.c     the next tenant: weights, candidates, virtual time of a tenant that returns
 *   lease_priority.c  which tenant may push ahead of which, and for how long: budgets
 *   quantum.c         the length of a turn, from the measured cost of a hand-over; turn_terms.c: the bounds of that length
 *   patience.c        when an idle holder loses the lease
 *   lease.c           the holder's lease: grant, close, drain, expire
 *   turn_end.c        when the holder's turn is over: by time, tokens, idleness, steps
 *   lease_poll.c      the time until the next poll
 *   member.c          one device's part in gangs, which have their turns on several devices at once
 *   lease_group.c     space groups: a group is one tenant to all of the above, and its members are MPS clients (space.h)
 *   sliced.c          programs with short steps: all run at once, and a tenant that is ahead of its share is held
 *   token.c, paced.c   the other policies
 *
 * All times are read from the arbiter's own clock. A step advances this clock by max_step_ns at most, even if the caller's
 * clock jumps. Charges are doubles, because parts of a step are fractions of a nanosecond; a double is exact up to 2^53 ns,
 * which is 104 days.
 */
#pragma once

#include "policy/gang/device_gang.h"
#include "policy/lease/arbiter_types.h"
#include "policy/lease/rules/patience.h"
#include "policy/lease/rules/steps.h"
#include "policy/space/space.h"

#define NONE (-1)

/* ARBITER_POLICY_TOKEN: what a tenant used in the sliding window, counted in parts of the window. */
#define TOKEN_PARTS 100
struct token_account {
	double part_ns[TOKEN_PARTS];
	double used_ns; /* sum of part_ns */
	uint64_t part; /* index of the present part, counted from the start of the arbiter's clock */
	double counted_ns; /* the part of charged_ns that part_ns already contains */
	uint64_t since;    /* time at which the tenant was added */
};

/* State for ARBITER_POLICY_FEEDBACK: a tenant gets tokens for each period. */
struct paced_account {
	struct feedback_loop loop;
	uint64_t granted;      /* total tokens granted */
	uint64_t grant;        /* tokens of the last period */
	uint64_t began_at;     /* start of the present period */
	uint64_t spent_before; /* tokens spent before the present period */
	double charged_before;
	/* Price of a token: tokens spent, and the GPU time charged for them. Both fade. */
	double paid_tokens, paid_for_ns;
};

/*
 * Space groups (lease_group.c). The arbiter treats a group as one more tenant. Its members are never in arbiter.active, and get
 * their states from the group.
 */
struct group_part {
	uint32_t group; /* the caller's number of the group; 0 if the tenant is in none */
	int of; /* index of the tenant that is this member's group; NONE if this tenant is no member */
	bool is_group; /* this tenant is a group: it has members, but no processes */
	/* The fields below are used by members only. */
	bool is_there; /* had work or demand within the last free_after_ns */
	uint64_t there_at;
	bool was_running; /* had work at the last arbiter_step() */
	uint64_t stopped_at; /* time since which all its processes are stopped; the present time if they are not */
	double wall_ns; /* wall time that is not charged yet: upper bound of the busy time that the tenant may report */
	double weight; /* percent: its guarantee; without one, its part of the time that no member is guaranteed */
	uint64_t granted; /* total tokens granted; a token is 1 ns of reported work */
	uint64_t held_ns; /* total time for which its pace held it at the gate */
	struct mps_client member;
};

/* How a program with short steps is kept to a part of the GPU's time; see sliced.c. */
struct step_pace {
	double more_ns; /* how much longer a usual step, with its charge, would have to last to keep to that part */
	double hold_ns; /* delay from the end of the latest step until the next one may begin */
};

struct step_account {
	double ran_ns;            /* time with work on the GPU since the last sync point */
	double charged_before_ns; /* charged_ns at the last sync point */
	struct step_pace share, cap;
};

struct tenant {
	bool used;
	bool paused;
	struct arbiter_share share;
	enum lease_state state;

	/* Observed by the caller. */
	struct arbiter_observation seen;
	bool counters_known; /* seen.busy_ns and seen.launches are valid as a base for differences */
	bool seen_since_close; /* observed at least once since CLOSING became readable */
	bool launched;         /* launched work since the last arbiter_step() */
	double reported_ns; /* busy time that the tenant itself reported since the last arbiter_step() */

	/* Derived at each arbiter_step(); see lease_order.c. */
	bool demand;    /* would use a lease if it had one */
	bool running;   /* has, or may have, work on the GPU */
	bool came;      /* has demand or work now, and had neither at the last arbiter_step() */
	bool began;     /* runs now, and did not at the last arbiter_step() */
	bool ran;       /* runs now, or ran until its doorbell just reported the end of its work */
	bool candidate; /* competes for the lease: has demand and tokens */
	uint64_t present_at; /* time of the latest demand or work */
	uint64_t worked_at;  /* time of the latest work or launch */

	/* Place in the list of active tenants. */
	bool active;
	int active_index;
	uint64_t active_since;

	/* State after CLOSING. */
	bool draining; /* the arbiter waits for the end of its work, until drain_deadline at most */
	bool overrunning; /* missed its drain deadline, and has not been seen idle since */
	uint64_t drain_deadline;
	uint64_t closing_ns; /* predicted length of its in-flight work when CLOSING was sent */
	uint64_t held_at;    /* when its state last changed to CLOSING or to STOP */

	/* The account of its GPU time. */
	double vtime; /* virtual time: ns of charge per percent of weight */
	double credit_ns; /* ARBITER_SLICED: GPU time still due to the tenant; negative if it had more than its due */
	struct step_account step;
	bool comes_first; /* ARBITER_SLICED: tenants of a lower priority are held for it */
	uint64_t served_from; /* if it began while others ran: when the hardware is expected to give it its first time slice */
	/* charged_ns when it last began to wait for served_from; it waits once for each time slice charged */
	double charged_at_wait_ns;
	bool is_over_cap; /* held because it used more than its cap */
	bool is_ahead;    /* held because it had more than its share */
	double tokens_ns;
	uint64_t filled_at; /* time of the latest charge_fill_tokens() */
	double charged_ns, charged_peak_ns, overrun_ns;
	uint64_t waited_ns, leases, expired;

	/* The budget for pushing ahead of lower priorities; see lease_priority.c. */
	double budget_ns;   /* negative if overdrawn */
	uint64_t budget_at; /* when the budget was last filled */
	/* budget or tokens were overdrawn: it may not push ahead until both hold a slice (urgent_slice_ns) again */
	bool budget_spent;
	bool urgent; /* outranks another tenant that wants the GPU, and has budget and tokens */

	struct patience patience; /* how long the lease is kept for it while it is idle */
	struct steps steps;
	double ramp_ns; /* mean time from a lease's begin until its thread was ahead of the GPU, less RAMP_SEEN_NS */
	double charged_at_rest_ns; /* charged_ns at the last poll that saw neither work nor a thread at the gate */
	bool has_synced;     /* reached a sync point since the last step of the arbiter */
	bool ended_step;     /* its last turn ended with a step of its program */
	uint64_t step_turns; /* number of turns that ended with a step */

	/* Charge that is not settled yet; see charge_settle(). */
	double sampled_ns; /* GPU time charged by sampling */
	double wall_ns;    /* the longest time that it can have run */
	double claimed_ns; /* busy time that it reports */
	bool switched; /* settlement leaves out switch_ns, because the lease began with a change of tenants */
	bool overlapped; /* other tenants ran at the same time, so nothing is settled */

	/* Turns on several devices at once; see member.c. */
	struct gang_word gang;
	bool gang_over; /* it has the lease, and its turn should end on all devices together */
	bool gang_idle; /* it has the lease; its turn should end on all devices together if it is idle on all */

	struct group_part part;

	/* State of the other policies. */
	struct token_account token;
	struct paced_account paced;
};

enum close_reason { CLOSE_FOR_GOOD, CLOSE_FOR_OTHERS, CLOSE_FOR_URGENT, CLOSE_FOR_GANG };

struct arbiter {
	struct arbiter_config config;
	struct tenant tenant[ARBITER_MAX_TENANTS];
	int active[ARBITER_MAX_TENANTS];
	int active_count;
	int active_unpromised;  /* number of active tenants without a guarantee */
	int silent;             /* number of tenants that ring no doorbell, and so must be polled */
	double promised_pct;    /* sum of all guarantees */
	bool priorities_differ; /* false if all tenants have the same priority */
	int gang_count;         /* number of tenants with a gang order other than GANG_NONE */
	int member_count;       /* number of members of space groups */
	int wanting; /* how many tenants wanted the GPU during the step that is charged */
	struct turn_terms terms; /* the turns' terms in force: the usual ones, or those beside a gang */
	uint64_t quantum_ns;     /* the quantum in force */
	double handover_ns;      /* measured cost of a hand-over */

	bool stepped;
	uint64_t last_now_ns;
	uint64_t clock;
	enum arbiter_mode mode;
	bool shares_changed; /* a share changed, so the states of free run must be set again */
	double vclock;       /* least virtual time of the tenants that compete; never goes down */

	/* The lease. */
	int holder;
	int last_holder; /* the previous holder; NONE if unknown */
	enum close_reason close_reason;
	struct arbiter_lease_end last_end; /* reported by arbiter_last_end() */
	bool was_wanted;  /* at the latest decision, another tenant could have had the lease */
	bool started;     /* the first work under the lease was seen, or start_grace_ns is over */
	bool worked;      /* work under the lease was seen */
	bool out_of_turn; /* granted because of order_in_need(), so it lasts min_lease_ns, whatever the holder's account says */
	uint64_t granted_at;
	double charged_before; /* the holder's charged_ns at granted_at */
	uint64_t ramp_before;  /* the holder's seen.ramp_ns at granted_at */
	uint64_t busy_before;  /* the holder's seen.busy_ns at granted_at */
	uint64_t start_ns;     /* time from granted_at to the first work */
	uint64_t ran_ns;       /* time since `started`, or since the turn was renewed */
	double vtime_at_start;
	bool wants_sync_point;  /* the holder's next sync point ends its turn */
	bool wanted_sync_point; /* value of wants_sync_point before the present decision */
	/* the holder pushed ahead within its budget: only a tenant of the same or a higher priority ends the lease */
	bool urgent_lease;

	/* The tenant that lost the lease to a higher priority and will get the rest of its turn back; NONE if there is none. */
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

/* Whether polling is needed: some tenant rings no doorbell, or a gang waits for events on other devices. */
static inline bool arbiter_must_look(const struct arbiter *a)
{
	return a->silent || a->gang_count;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* arbiter.c */

/* Takes a tenant off the list of active tenants, if it is there. */
void arbiter_deactivate(struct arbiter *a, struct tenant *t);

/* lease_charge.c */

/* Adds the tokens that the tenant's bucket gained up to a->clock. */
void charge_fill_tokens(struct arbiter *a, struct tenant *t);
/* Returns the tokens at which a capped tenant may get a lease. */
double charge_tokens_needed(const struct arbiter *a, const struct tenant *t);
/* Returns the GPU time that a capped tenant gathers, while it is alone, before it gets a lease again. */
uint64_t charge_alone_slice_ns(const struct arbiter *a, const struct tenant *t);
/* Returns the most tokens that a new tenant may have: enough for a lease, whatever other tenants there are. */
double charge_tokens_kept(const struct arbiter *a, const struct tenant *t);
/* Charges all active tenants for the last dt_ns, by the rules of the present mode. */
void charge_step(struct arbiter *a, uint64_t dt_ns);
/* Corrects the unsettled charge by the tenant's own report. last_dt_ns is the length of the last step. */
void charge_settle(struct arbiter *a, struct tenant *t, uint64_t last_dt_ns);
/* Charges a holder that showed no use of its lease for what it may have run unseen. */
void charge_unused_lease(struct arbiter *a, struct tenant *t);
/* Sets the tenant's unsettled charge to nothing. */
void charge_begin(struct tenant *t);

/* lease_order.c */

double order_weight(const struct arbiter *a, const struct tenant *t);
/* Returns the factor on each guarantee: 1, or less if all guarantees sum to more than 100 percent. */
double order_scale(const struct arbiter *a);
/* Sets `demand` and `running` of all active tenants from what was observed. */
void order_read_demand(struct arbiter *a);
/*
 * Sets `candidate` of all active tenants, limits how far behind a returning tenant's virtual time is, and advances the virtual
 * clock.
 */
void order_mark_candidates(struct arbiter *a);
/* Whether the tenant may be stuck for want of a lease and has had none for need_ns; see Need in arbiter.h. */
bool order_in_need(const struct arbiter *a, const struct tenant *t);
/*
 * Returns the virtual time at which a quantum that begins at `vtime` would end. The tenant whose quantum would end first comes
 * next. Ordered by the beginning instead, a tenant with a large share that was idle would first wait for a quantum of each
 * tenant with a small share whose virtual time is slightly less.
 */
double order_turn_end(const struct arbiter *a, const struct tenant *t, double vtime);
/*
 * Returns the candidate that comes next, other than `except`: a tenant in need, else the one whose turn would end first in
 * virtual time. Returns NONE if there is none.
 */
int order_best(const struct arbiter *a, int except);
/* Whether `t` comes before `other`. Ties go to the higher priority, then to the tenant that has been held longer. */
bool order_comes_before(const struct arbiter *a, const struct tenant *t, const struct tenant *other);

/* lease_priority.c */

/* Sets a new tenant's first budget. */
void priority_begin(struct arbiter *a, struct tenant *t);
/* Adds what the tenant's budget gained up to a->clock. */
void priority_fill(struct arbiter *a, struct tenant *t);
void priority_charge(struct arbiter *a, struct tenant *t, double amount_ns);
/* Sets priorities_differ. Call when a tenant was added or removed, or changed its priority. */
void priority_count(struct arbiter *a);
/* Whether some tenant of a higher priority has ever worked, and so may return at any moment. */
bool priority_is_outranked(const struct arbiter *a, const struct tenant *t);
/* Sets `urgent` of the active tenants, whose `demand` must be up to date. */
void priority_mark(struct arbiter *a);
/* Returns the urgent tenant of the highest priority, at least `least`, other than `except`; NONE if there is none. */
int priority_best(const struct arbiter *a, int except, int64_t least);

/* sliced.c */

/* Whether all active tenants should run at once, with the hardware giving each its time slices. */
bool sliced_is_due(const struct arbiter *a);
/* Resets the tenants' credit and pauses. Call when ARBITER_SLICED begins. */
void sliced_begin(struct arbiter *a);
/*
 * Call at each arbiter_step() under ARBITER_SLICED. Records which programs ended a step. Also records which tenants began to
 * run while others ran: those wait for their first time slice.
 */
void sliced_note_begins(struct arbiter *a);
/*
 * Returns the part of the GPU's time that the tenant gets now, 0 to 1. All processes that the hardware serves get equal parts.
 */
double sliced_served_part(const struct arbiter *a, const struct tenant *t);
/* Adds to the tenant's credit its due part of the last dt_ns, less had_ns, the GPU time that it had. */
void sliced_count(struct arbiter *a, struct tenant *t, uint64_t dt_ns, double had_ns);
/* Sets is_ahead, is_over_cap and comes_first of the active tenants. */
void sliced_mark(struct arbiter *a);
/* Whether the tenant's sync points must be reported by doorbell, so that its use is known to the microsecond. */
bool sliced_wants_sync_point(const struct arbiter *a, const struct tenant *t);
/*
 * Whether a tenant has to wait: it is ahead of its share or above its cap, or a tenant of a higher priority comes first. Caps
 * aside, at least one of the tenants that want the GPU never has to wait.
 */
bool sliced_is_held(const struct arbiter *a, const struct tenant *t);
/* Whether the tenant may have only little work in flight, because a tenant of a higher priority may come first at any time. */
bool sliced_is_bounded(const struct arbiter *a, const struct tenant *t);
uint64_t sliced_next_look_ns(const struct arbiter *a);

/* quantum.c */

void quantum_init(struct arbiter *a);
/* Sets a->terms and a->quantum_ns for the present active tenants. */
void quantum_set(struct arbiter *a);
/* Call at each grant, before the new holder is set. Learns the cost of a hand-over from the lease that ended. */
void quantum_learn(struct arbiter *a);
/* Sets a->start_ns. Call when the holder is first seen at work. */
void quantum_watch_start(struct arbiter *a, const struct tenant *holder);

/* lease.c */

void lease_grant(struct arbiter *a, int tenant);
/* Sends CLOSING to a tenant in GO or FREE, whether it is the holder or not. */
void lease_close(struct arbiter *a, struct tenant *t);
/* Sends CLOSING to the holder and records the reason. */
void lease_close_for(struct arbiter *a, struct tenant *t, enum arbiter_end why);
/* Sets a tenant to STOP without a drain. If it is the holder, it loses the lease. */
void lease_hold(struct arbiter *a, struct tenant *t);
/* Ends the drains that are done or past their deadline. */
void lease_end_drains(struct arbiter *a, uint64_t dt_ns);
/* Ends, renews or reopens the holder's lease; grants a lease if there is no holder. */
void lease_decide(struct arbiter *a);
/* Returns the time until the next poll for the holder's lease: at most poll_free_ns, or poll_rung_ns if tenants ring. */
uint64_t lease_next_look_ns(const struct arbiter *a);
/* Returns the time until the next poll for the drains: poll_drain_ns to poll_lease_ns, or poll_rung_ns if tenants ring. */
uint64_t lease_drain_look_ns(const struct arbiter *a);
bool lease_any_drain(const struct arbiter *a);
/* Whether the holder has been idle for so long that it should lose the lease. */
bool lease_is_idle(const struct arbiter *a, const struct tenant *t);

/* turn_end.c */

/*
 * Whether the holder, which has tokens and is not outranked, should yield to `other`. If not, a turn whose time is over is
 * renewed.
 */
bool turn_should_yield(struct arbiter *a, struct tenant *t, int other);
/*
 * Whether the holder's lease ends now for want of tokens. If the program works in steps, such a lease ends at the end of a
 * step.
 */
bool turn_ends_with_tokens(struct arbiter *a, const struct tenant *t, bool contended);
/* Whether the tokens will be gone once the in-flight work is done. */
bool turn_tokens_are_used_up(const struct arbiter *a, const struct tenant *t, bool contended);
/* Whether `other` takes the lease from the holder in the middle of a step. */
bool turn_may_be_cut(const struct arbiter *a, const struct tenant *t, const struct tenant *other);
/*
 * Returns what will be left of the holder's turn, with `other` waiting, once the in-flight work is done; negative if the turn
 * is over.
 */
double turn_left_ns(const struct arbiter *a, const struct tenant *t, int other);
/* Returns the length of the program's steps; 0 if it is unknown, or if turns do not end with steps. */
double turn_step_ns(const struct arbiter *a, const struct tenant *t);
/* Returns the predicted length of the in-flight work, and at most the allowed depth if `contended`. */
double turn_predicted_ns(const struct arbiter *a, const struct tenant *t, bool contended);
/* Returns how long a holder may be without work until it counts as idle. */
uint64_t turn_idle_limit_ns(const struct arbiter *a, const struct tenant *t);

/* member.c: callers skip most of these functions while gang_count is 0, because they would decide nothing. */

/* Whether the gang's order keeps the tenant from a lease of its own. */
bool member_is_held(const struct arbiter *a, const struct tenant *t);
/* Whether the device is kept free for a gang, or a gang that should have the lease does not have it yet. */
bool member_is_awaited(const struct arbiter *a);
/* Closes the holder's lease if a gang's order says so. Returns true if nothing else is to be decided about the holder. */
bool member_decide_on_holder(struct arbiter *a, struct tenant *holder);
/* Returns the tenant that gets the next lease, where the rules without gangs choose `next`; NONE if the device is kept free. */
int member_choose(const struct arbiter *a, int next);
/*
 * Returns for how long at least a gang may be idle on this device while its ranks on other devices work, or have only just
 * become idle.
 */
uint64_t member_idle_limit_ns(const struct arbiter *a, const struct tenant *t);
/* Widens the bounds of the holder's patience if the tenant is a gang. */
void member_widen_patience(const struct arbiter *a, const struct tenant *t,
			   struct patience_bounds *bounds);
/* Call when the holder's turn is over. Returns true if the holder is a gang, whose turn ends on all devices together. */
bool member_end_turn(struct tenant *t);
/*
 * Call when the holder has been idle for long enough to lose the lease. Returns true if it is a gang that is idle on all its
 * devices, so that they end its turn together.
 */
bool member_idle(const struct arbiter *a, struct tenant *t);
/*
 * Limits how far the virtual time of a gang that waits for its turn on another device falls behind on this one. A new tenant
 * starts at the least virtual time, and so would come before all tenants that have worked since.
 */
void member_bound_lag(struct arbiter *a);
/* Returns the time until the next poll; next_ns is that time without gangs. */
uint64_t member_next_look_ns(const struct arbiter *a, uint64_t next_ns);

/* lease_group.c: all but is_lessee() and group_of() may be called only while member_count is above 0. */

/* Whether the tenant takes its turns itself. A group does; a member of a group does not. */
static inline bool is_lessee(const struct tenant *t)
{
	return t->used && t->part.of == NONE;
}

/* Returns the tenant whose lease this one runs under: its group, or itself. */
static inline int group_of(const struct arbiter *a, int tenant)
{
	return a->tenant[tenant].part.of == NONE ? tenant : a->tenant[tenant].part.of;
}

/* Sets the group's share from its members. Call when a member joined or left, or its share or priority changed. */
void group_count(struct arbiter *a, int group);
/* Takes a member out of its group. A group is removed with its last member. */
void group_leave(struct arbiter *a, struct tenant *t);
/* Fills in each group's observation from its members' observations, and charges the members for the last dt_ns. */
void group_observe(struct arbiter *a, uint64_t dt_ns);
/* Returns how much work the member may have in flight, in ns as its library predicts work. */
uint64_t group_depth_ns(const struct arbiter *a, const struct tenant *t);
/* Sets the members' states from those of their groups. Returns the time until the next poll, next_ns at most. */
uint64_t group_decide(struct arbiter *a, uint64_t dt_ns, uint64_t next_ns);

/*
 * token.c, paced.c: call x_add() when a tenant is added; x_decide() is the policy's part of a step and returns the time until
 * the next poll.
 */

void token_add(struct arbiter *a, struct tenant *t);
uint64_t token_decide(struct arbiter *a);

void paced_add(struct arbiter *a, struct tenant *t);
uint64_t paced_decide(struct arbiter *a);
