/*
 * The arbiter's settings, its input and its output for a tenant: plain data, which the interface (arbiter.h) and the files
 * behind it (tenant.h) share. arbiter.h explains the terms.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/region.h" /* enum lease_state */
#include "policy/lease/rules/feedback.h"
#include "policy/lease/rules/turn_terms.h"

#define ARBITER_MAX_TENANTS 256

enum arbiter_policy {
	ARBITER_POLICY_LEASE,
	ARBITER_POLICY_FEEDBACK,
	ARBITER_POLICY_TOKEN,
};

/* Under ARBITER_POLICY_FEEDBACK: whose word on a tenant's utilization is taken. */
enum arbiter_sensor {
	ARBITER_SENSOR_BUSY, /* the charge: samples of the busy flags, settled by busy_ns */
	ARBITER_SENSOR_NVML, /* arbiter_observation.utilization, where it is known */
};

struct arbiter_config {
	enum arbiter_policy policy;
	uint64_t quantum_ns;     /* length of a lease under contention, at most ... */
	uint64_t quantum_min_ns; /* ... and at least; see Quantum */
	struct turn_terms gang_turn; /* of both and of depth_ns, while a gang is there, where that is more */
	uint64_t long_work_ns; /* for the gates: no second item is begun behind one this long */
	double switch_loss;    /* the part of the device's time that hand-overs may cost */
	uint64_t min_lease_ns; /* a lease is not cut short for a returning tenant before this */
	uint64_t step_most_ns; /* turns end with steps (steps.h) up to so long; 0: never */
	uint64_t slice_step_ns; /* programs with steps up to so long are sliced by the hardware; 0: none */
	uint64_t depth_ns;     /* the most by which CLOSING is sent ahead of the quantum's end */
	uint64_t cap_slice_ns; /* tokens a capped tenant, alone, gathers before it gets a lease again */
	uint64_t window_ns;      /* over which a cap may be filled up: bucket size / limit */
	uint64_t idle_window_ns; /* the same by an idle tenant, until it counts as absent */
	uint64_t idle_min_ns;    /* a holder gives way when idle for so long at the earliest ... */
	uint64_t idle_ns;        /* ... and at the latest; see Idleness */
	uint64_t free_after_ns;  /* others this long idle before the one active tenant runs free */
	uint64_t start_grace_ns; /* GO to first work that is not charged, at most */
	uint64_t start_limit_ns; /* a holder that waits, but launches nothing, counts as idle after this */
	uint64_t drain_min_ns;  /* drain deadline: at least this after CLOSING ... */
	uint64_t drain_max_ns;  /* ... at most this; between: 4 x predicted work in flight */
	uint64_t switch_ns;     /* the GPU's part of a hand-over: not charged to the next holder */
	uint64_t report_lag_ns; /* how late a tenant's busy flag may fall: bound of the correction */
	uint64_t need_ns; /* a stuck tenant that waits gets min_lease_ns at least this often */
	uint64_t urgent_window_ns; /* over which a budget may be saved up: bucket size / rate */
	uint64_t urgent_slice_ns; /* the most that budget and tokens may be overdrawn, and the least needed to begin again */
	double urgent_margin; /* a budget's rate, in parts of the guarantee, if others leave that much */
	double urgent_default_pct; /* the highest rate of a budget for a tenant without a guarantee */
	uint64_t debt_max_ns;      /* charge beyond this much debt is forgiven */
	uint64_t max_step_ns;      /* the most time that one step counts */
	/*
	 * How soon the caller should step again: while draining, under leases, in free run, all idle. With
	 * much work in flight it is later: draining up to poll_lease_ns, under leases up to poll_free_ns.
	 */
	uint64_t poll_drain_ns, poll_lease_ns, poll_free_ns, poll_idle_ns;
	/*
	 * The same where every tenant rings when something happens (arbiter_observation.rings): this
	 * often while draining and under leases, each poll_idle_ns in free run, each max_step_ns while
	 * all are idle. These looks find a tenant that works without ringing.
	 */
	uint64_t poll_rung_ns;
	/* ARBITER_POLICY_TOKEN */
	uint64_t token_quota_ns;  /* length of a token */
	uint64_t token_window_ns; /* over which use is counted */
	/* ARBITER_POLICY_FEEDBACK */
	struct feedback_config feedback;
	enum arbiter_sensor feedback_sensor;
};

struct arbiter_share {
	double cores_pct; /* guaranteed share, 0 < .. <= 100; 0: none promised, takes what is left */
	double limit_pct; /* cap, cores_pct <= .. <= 100; 100: none */
	int priority;     /* higher pushes ahead of lower, within its budget; 0 is the usual */
};

/*
 * One tenant as the caller has seen it since the last step, over all its processes on this device.
 * Read a slot's `launching` before its `busy`: a thread sets busy before it lowers launching. Nothing
 * in here is trusted; counters that go backwards count as no progress.
 */
struct arbiter_observation {
	bool waiting;     /* a thread is held at the gate */
	bool launching;   /* a thread is between the gate and the driver */
	bool busy;        /* work is in flight */
	unsigned working; /* processes of which that is true, or of launching */
	bool stopped;     /* every process is stopped or frozen: can't make use of a lease */
	/*
	 * The caller steps at once when its work or demand begins, when its work ends after CLOSING, and
	 * when a lease of it has been idle for arbiter_patience_ns(): there is no need to ask for looks on
	 * their account.
	 */
	bool rings;
	/* The tenant's word on how long it has been without work, where it rang for that. */
	uint64_t idle_ns;
	uint64_t inflight_ns; /* predicted length of the work in flight */
	uint64_t busy_ns;  /* time with work in flight, counted by the tenant itself (monotonic) */
	uint64_t launches; /* work items so far (monotonic) */
	/* Of busy_ns, what it took after the start of each lease until half of the depth was in flight. */
	uint64_t ramp_ns;
	uint64_t spent; /* tokens paid so far under LEASE_PACED (monotonic); of a space group: ns of SM-time */
	uint64_t work_ns; /* of a space group: predicted length of the work paid for (monotonic) */
	uint64_t untried_ns;  /* of that, what was hardly timed while no other ran (monotonic) */
	uint32_t sync_points; /* times that it has waited for all of its work; counts without end */
	uint64_t thread_ns;   /* what its thread did on the CPU between those (monotonic) */
	bool has_utilization;
	double utilization; /* another sensor's word, 0 to 1 of the device */
};

enum arbiter_mode { ARBITER_IDLE, ARBITER_FREE, ARBITER_LEASES, ARBITER_PACED, ARBITER_SLICED };

/* One tenant's account. Durations in nanoseconds since the tenant was added. */
struct arbiter_account {
	uint64_t charged_ns; /* GPU time charged; never goes down */
	uint64_t overrun_ns; /* the part of it that ran past a lease: overlap with another's */
	uint64_t waited_ns;  /* time with demand, but without the lease */
	uint64_t leases;     /* leases given */
	uint64_t step_turns; /* of these, that ended with a step of the program (steps.h) */
	uint64_t expired;    /* drains that passed their deadline */
	int64_t tokens_ns;   /* of the cap; negative: debt */
	double weight;       /* in force now: the guarantee, scaled while too much is promised */
	int64_t budget_ns;   /* for pushing ahead of lower priorities; negative: overdrawn */
	enum lease_state state;
	bool active;
	bool draining; /* past CLOSING with work still in flight, the lease gone on or not */
};

/* What is measured of a member of a space group (space.h). A tenant in no group has is_member false and a speed of 1. */
struct arbiter_pace {
	bool is_member;
	bool is_known;    /* its speed */
	bool is_held;     /* now, to its pace */
	double speed;     /* told in a nanosecond in which it runs alone */
	double share;     /* of the card, while it had work; 0: not measured */
	double pace;      /* of the card; 0: none */
	uint64_t told_ns; /* of all that it began while it was counted */
	uint64_t held_ns; /* ever, at the gate */
};

/* Why a lease ended. For display only. */
enum arbiter_end {
	ARBITER_END_UNKNOWN,
	ARBITER_END_IDLE,     /* it was idle for too long, or ended */
	ARBITER_END_TURN,     /* another tenant's turn came */
	ARBITER_END_PRIORITY, /* a higher priority pushed ahead */
	ARBITER_END_CAP,      /* its tokens were used up */
	ARBITER_END_PAUSED,
	ARBITER_END_STOPPED, /* none of its processes could run */
	ARBITER_END_GANG,    /* a turn on several GPUs began, or ended with it */
	ARBITER_END_ALONE,   /* no other tenant has work: it goes on without a lease */
	ARBITER_END_SLICED,  /* it goes on beside others, sliced by the hardware */
};

struct arbiter_lease_end {
	enum arbiter_end why;
	bool with_step; /* a step of its program ended then, which it had waited for (steps.h) */
	bool expired;   /* its drain passed the deadline */
};
