/* The arbiter's settings, and its input and output per tenant. arbiter.h explains the terms and states. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/region.h"
#include "policy/lease/rules/feedback.h"
#include "policy/lease/rules/turn_terms.h"

#define ARBITER_MAX_TENANTS 256

enum arbiter_policy {
	ARBITER_POLICY_LEASE,
	ARBITER_POLICY_FEEDBACK,
	ARBITER_POLICY_TOKEN,
};

/* ARBITER_POLICY_FEEDBACK: the source of a tenant's utilization. */
enum arbiter_sensor {
	ARBITER_SENSOR_BUSY, /* from the charge: samples of busy flags, settled by busy_ns */
	/* from arbiter_observation.utilization if known, else from the charge */
	ARBITER_SENSOR_NVML,
};

struct arbiter_config {
	enum arbiter_policy policy;
	uint64_t quantum_ns;     /* longest lease while several tenants compete */
	uint64_t quantum_min_ns; /* shortest lease while several tenants compete */
	/* beside a gang: lower bounds of quantum_ns, quantum_min_ns and depth_ns */
	struct turn_terms gang_turn;
	/* if a single work item fills depth_ns, a second one may still begin while less work than this is in flight */
	uint64_t long_work_ns;
	double switch_loss;    /* part of the device's time that hand-overs may cost */
	uint64_t min_lease_ns; /* a younger lease is not cut short for a returning tenant */
	/* turns end with steps (rules/steps.h) of up to this length; 0: turns never do */
	uint64_t step_most_ns;
	/* programs whose steps are no longer than this are sliced by the hardware; 0: none are */
	uint64_t slice_step_ns;
	/* usual bound on the work in flight under a lease; also the most by which CLOSING precedes a quantum's end */
	uint64_t depth_ns;
	/* a capped tenant that is alone gathers this many tokens before it gets a lease again */
	uint64_t cap_slice_ns;
	/* like cap_slice_ns, for a program that never waits for its work; at most its token bucket's size */
	uint64_t cap_slice_most_ns;
	/* time for which a waiting tenant may save up tokens: the bucket's size is this x its limit */
	uint64_t window_ns;
	/* like window_ns, for a tenant that has been idle for less than free_after_ns; more if a lease needs more */
	uint64_t idle_window_ns;
	uint64_t idle_min_ns; /* bounds of the idle time after which a holder loses the lease */
	uint64_t idle_ns;
	/* the only active tenant runs free once the other tenants were idle for this long */
	uint64_t free_after_ns;
	/*
	 * while others want the GPU, a lease is charged from its first work on, or from this long after its grant if that is
	 * earlier
	 */
	uint64_t start_grace_ns;
	/* a holder whose thread is held at the gate, but which launches nothing, counts as idle after this time */
	uint64_t start_limit_ns;
	/* bounds of the time from CLOSING to a drain's deadline, which usually is 4 x the predicted in-flight work */
	uint64_t drain_min_ns;
	uint64_t drain_max_ns;
	uint64_t switch_ns; /* the GPU's part of a hand-over, which no tenant is charged for */
	/* longest time that a busy flag may stay set after its work ended; bounds the charge's correction */
	uint64_t report_lag_ns;
	uint64_t need_ns; /* a tenant in need (arbiter.h) gets min_lease_ns this often */
	/* time for which a tenant may save up budget: the budget's size is this x its rate */
	uint64_t urgent_window_ns;
	/*
	 * the most by which a budget (arbiter.h: Priority) and the tokens may be overdrawn; also the amount that both must hold
	 * before the tenant may push ahead again
	 */
	uint64_t urgent_slice_ns;
	/* a budget's rate is the guarantee times this, if other guarantees leave that much */
	double urgent_margin;
	/* highest rate of a budget, in percent, for a tenant without a guarantee */
	double urgent_default_pct;
	uint64_t debt_max_ns; /* debt beyond this is forgiven */
	uint64_t max_step_ns; /* the most time that one arbiter_step() counts */
	/*
	 * Time to the next step while draining, under leases, in free run, and idle. With much work in flight the time is
	 * longer: up to poll_lease_ns while draining, up to poll_free_ns under leases.
	 */
	uint64_t poll_drain_ns, poll_lease_ns, poll_free_ns, poll_idle_ns;
	/*
	 * Longest time to the next step if all tenants ring their doorbells, while draining and under leases. In free run the
	 * time is then poll_idle_ns; while idle, max_step_ns. Such a step finds work that rang no doorbell.
	 */
	uint64_t poll_rung_ns;
	uint64_t token_quota_ns;  /* ARBITER_POLICY_TOKEN: length of a token */
	uint64_t token_window_ns; /* ARBITER_POLICY_TOKEN: time over which use is counted */
	struct feedback_config feedback;
	enum arbiter_sensor feedback_sensor;
};

struct arbiter_share {
	/* guarantee, at most 100; 0: none, so the tenant shares the time that no guarantee covers */
	double cores_pct;
	double limit_pct; /* cap, cores_pct to 100; 100: none */
	int priority;     /* a higher priority pushes ahead, within its budget; default 0 */
};

/*
 * One observation of a tenant, summed over its processes on this device. Values that are marked monotonic are totals. Read
 * `launching` before `busy`: a thread sets `busy` before it clears `launching`. No value is trusted: a counter that falls
 * counts as no progress.
 */
struct arbiter_observation {
	bool waiting;   /* a thread is held at the gate */
	bool launching; /* a thread is between the gate and the driver */
	bool busy;
	unsigned working; /* processes with `busy` or `launching` */
	bool stopped;     /* every process is stopped or frozen, so cannot use a lease */
	/*
	 * The tenant's doorbells make the caller step at once when its work or demand begins, its work ends after CLOSING, or
	 * its lease was idle for arbiter_patience_ns(). So no polls are needed.
	 */
	bool has_doorbell;
	/* time without work, if a doorbell reported the end of work */
	uint64_t idle_ns;
	uint64_t inflight_ns; /* predicted length of the work in flight */
	uint64_t busy_ns;     /* time with work in flight, as the tenant counts (monotonic) */
	uint64_t launches;    /* work items so far (monotonic) */
	/* Portion of busy_ns from each lease's start until 1 ms of work, or half of the depth, was in flight. */
	uint64_t ramp_ns;
	/* Portion of busy_ns in which the program was not ahead of the GPU (monotonic). */
	uint64_t behind_ns;
	/* tokens paid under LEASE_PACED (monotonic); in a space group, a token is 1 ns of predicted work */
	uint64_t spent;
	uint64_t work_ns; /* space group: predicted work that was paid for (monotonic) */
	/*
	 * Space group: the part of work_ns for kernels that were timed fewer than three times without another tenant's work on
	 * the device (monotonic). The predicted length of these kernels is a guess or an upper bound.
	 */
	uint64_t untried_ns;
	uint32_t sync_points; /* how often the tenant waited for all of its work; wraps around */
	uint64_t gap_ns;      /* time from each sync point to the next launch (monotonic) */
	/* how often the program waited for work: at sync points, or for events while more work was in flight (monotonic) */
	uint64_t waits;
	bool has_utilization;
	/* the tenant's use of the device as another sensor measured it, 0 to 1 */
	double utilization;
};

enum arbiter_mode { ARBITER_IDLE, ARBITER_FREE, ARBITER_LEASES, ARBITER_PACED, ARBITER_SLICED };

/* Durations are in ns and counts are totals, both since the tenant was added. */
struct arbiter_account {
	uint64_t charged_ns; /* never falls */
	/* portion of charged_ns for work that ran without a lease, or past its drain's deadline */
	uint64_t overrun_ns;
	/* portion of charged_ns for work that began without permission to launch (arbiter.h: Obedience); never falls */
	uint64_t unauthorized_ns;
	uint64_t waited_ns; /* time for which a thread was held at the gate for want of a lease */
	uint64_t leases;
	uint64_t step_turns; /* leases that ended with a step of the program (steps.h) */
	uint64_t expired;    /* drains that passed their deadline */
	int64_t tokens_ns;   /* tokens of the cap; negative: debt */
	/* the guarantee, scaled down while all guarantees sum to more than 100 % */
	double weight;
	int64_t budget_ns; /* budget for pushing ahead of lower priorities; negative: overdrawn */
	enum lease_state state;
	bool active;
	/* CLOSING was sent and work is still in flight; another tenant may have the lease by now */
	bool draining;
};

/* Speed and pace of a member of a space group (space.h). For any other tenant, is_member is false and speed is 1. */
struct arbiter_pace {
	bool is_member;
	bool is_known;
	bool is_held; /* its pace (space.h) limits it now */
	double speed; /* reported work per nanosecond while no other member runs */
	/* part of the GPU that it had while it had work or was held; 0: not measured */
	double share;
	double pace;               /* part of the GPU to which it is limited now; 0: no limit */
	uint64_t reported_work_ns; /* predicted length of the work that it began and paid for */
	uint64_t held_ns;          /* time for which it was held at the gate */
};

/* For display only. */
enum arbiter_end {
	ARBITER_END_UNKNOWN,
	ARBITER_END_IDLE, /* the holder was idle for too long, or exited */
	ARBITER_END_TURN,
	ARBITER_END_PRIORITY,
	ARBITER_END_CAP,
	ARBITER_END_PAUSED,
	ARBITER_END_STOPPED, /* none of the holder's processes could run */
	ARBITER_END_GANG,    /* a turn on several GPUs began or ended */
	ARBITER_END_ALONE,   /* no other tenant has work: the holder continues in free run */
	ARBITER_END_SLICED,  /* slices began: the holder continues beside other tenants */
};

struct arbiter_lease_end {
	enum arbiter_end why;
	/* ended with a step of the program, for which the arbiter had waited (rules/steps.h) */
	bool with_step;
	bool expired; /* the drain passed its deadline */
};
