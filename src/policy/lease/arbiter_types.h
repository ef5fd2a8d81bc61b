/*
 * The arbiter's settings, and its input and output per tenant, as plain data. arbiter.h explains the terms.
 */
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

/* For ARBITER_POLICY_FEEDBACK: the source of a tenant's utilization. */
enum arbiter_sensor {
	ARBITER_SENSOR_BUSY, /* from the charge: samples of busy flags, settled by busy_ns */
	/* from arbiter_observation.utilization if known, else from the charge */
	ARBITER_SENSOR_NVML,
};

struct arbiter_config {
	enum arbiter_policy policy;
	uint64_t quantum_ns;     /* longest lease while several tenants compete */
	uint64_t quantum_min_ns; /* shortest lease while several tenants compete */
	/* beside a gang, quantum_ns, quantum_min_ns and depth_ns are at least these */
	struct turn_terms gang_turn;
	/* for the gates: beyond depth_ns, a second work item starts only while less than this is in flight */
	uint64_t long_work_ns;
	double switch_loss;    /* part of the device's time that hand-overs may cost */
	uint64_t min_lease_ns; /* before this, no lease is cut short for a returning tenant */
	uint64_t step_most_ns; /* turns end with steps (steps.h) up to this length; 0: never */
	/* the hardware slices programs with steps up to this length; 0: never */
	uint64_t slice_step_ns;
	uint64_t depth_ns; /* the most by which CLOSING precedes a quantum's end */
	/* a capped tenant that is alone gathers so many tokens before it gets a lease again */
	uint64_t cap_slice_ns;
	/* most tokens that it gathers, if its program never waits for its work */
	uint64_t cap_slice_most_ns;
	uint64_t window_ns; /* how long a waiting tenant may save up its cap: bucket size / limit */
	/* like window_ns, for an idle tenant that does not count as absent */
	uint64_t idle_window_ns;
	uint64_t idle_min_ns; /* shortest idle time after which a holder loses the lease */
	uint64_t idle_ns;     /* longest such idle time */
	/* the one active tenant runs free after others were idle for this long */
	uint64_t free_after_ns;
	uint64_t start_grace_ns; /* longest time from GO to the first work that is not charged */
	/* a holder that waits but launches nothing counts as idle after this */
	uint64_t start_limit_ns;
	uint64_t drain_min_ns; /* a drain's deadline is at least this after CLOSING ... */
	/* ... and at most this; in between, 4 x the predicted in-flight work */
	uint64_t drain_max_ns;
	uint64_t switch_ns; /* the GPU's part of a hand-over, which no tenant is charged for */
	/* how long a busy flag may outlast its work; bounds the charge's correction */
	uint64_t report_lag_ns;
	uint64_t need_ns;          /* a stuck tenant that waits gets min_lease_ns this often */
	uint64_t urgent_window_ns; /* how long a budget may be saved up: bucket size / rate */
	/* most that budget and tokens may be overdrawn; also the least budget for pushing ahead again */
	uint64_t urgent_slice_ns;
	/* rate of a budget as a multiple of the guarantee, if other guarantees leave that much */
	double urgent_margin;
	/* highest rate of a budget, in percent, for a tenant without a guarantee */
	double urgent_default_pct;
	uint64_t debt_max_ns; /* debt beyond this is forgiven */
	uint64_t max_step_ns; /* most time that one step counts */
	/*
	 * Time to the next step: draining, leases, free run, idle. Longer with much work in flight: up to poll_lease_ns
	 * while draining, up to poll_free_ns under leases.
	 */
	uint64_t poll_drain_ns, poll_lease_ns, poll_free_ns, poll_idle_ns;
	/*
	 * The same if all doorbells ring (arbiter_observation.has_doorbell), for draining and leases; poll_idle_ns in free run,
	 * max_step_ns while idle. Such polls find work without a ring.
	 */
	uint64_t poll_rung_ns;
	/* ARBITER_POLICY_TOKEN */
	uint64_t token_quota_ns;  /* length of a token */
	uint64_t token_window_ns; /* time over which use is counted */
	/* ARBITER_POLICY_FEEDBACK */
	struct feedback_config feedback;
	enum arbiter_sensor feedback_sensor;
};

struct arbiter_share {
	/* guarantee, above 0 and at most 100; 0: none, the tenant takes what is left */
	double cores_pct;
	double limit_pct; /* cap, cores_pct to 100; 100: none */
	int priority;     /* a higher one pushes ahead, within its budget; default 0 */
};

/*
 * What was seen of a tenant since the last step, over all processes on this device. Read `launching` before `busy`, which a
 * thread sets before it clears the other. Nothing is trusted: a counter that falls counts as no progress.
 */
struct arbiter_observation {
	bool waiting;   /* a thread is held at the gate */
	bool launching; /* a thread is between the gate and the driver */
	bool busy;
	unsigned working; /* number of processes with `busy` or `launching` */
	bool stopped;     /* every process is stopped or frozen, so cannot use a lease */
	/*
	 * The caller steps at once when the tenant's work or demand begins, its work ends after CLOSING, or its lease was
	 * idle for arbiter_patience_ns(): no polls are needed.
	 */
	bool has_doorbell;
	/* time without work, if the doorbell reported that */
	uint64_t idle_ns;
	uint64_t inflight_ns; /* predicted length of the work in flight */
	uint64_t busy_ns;     /* time with work in flight, as the tenant counts (monotonic) */
	uint64_t launches;    /* number of work items so far (monotonic) */
	/* Part of busy_ns from each lease's start until 1 ms of work, or half of the depth, was in flight. */
	uint64_t ramp_ns;
	/* tokens paid under LEASE_PACED (monotonic); in a space group ns of SM time */
	uint64_t spent;
	uint64_t work_ns; /* space group: predicted work that was paid for (monotonic) */
	/* space group: part of work_ns hardly timed without others (monotonic) */
	uint64_t untried_ns;
	uint32_t sync_points; /* how often the tenant waited for all of its work; wraps around */
	uint64_t gap_ns;      /* time from each sync point to the next launch (monotonic) */
	bool has_utilization;
	double utilization; /* use by another sensor, 0 to 1 of the device */
};

enum arbiter_mode { ARBITER_IDLE, ARBITER_FREE, ARBITER_LEASES, ARBITER_PACED, ARBITER_SLICED };

/* Durations in ns since the tenant was added. */
struct arbiter_account {
	uint64_t charged_ns; /* GPU time charged; never falls */
	uint64_t overrun_ns; /* part of charged_ns that overlapped with another tenant's lease */
	uint64_t waited_ns;  /* time with demand but without the lease */
	uint64_t leases;
	uint64_t step_turns; /* leases that ended with a step of the program (steps.h) */
	uint64_t expired;    /* drains that passed their deadline */
	int64_t tokens_ns;   /* tokens of the cap; negative: debt */
	double weight; /* weight in force: the guarantee, scaled down while too much is promised */
	int64_t budget_ns; /* budget for pushing ahead of lower priorities; negative: overdrawn */
	enum lease_state state;
	bool active;
	bool draining; /* CLOSING was sent, work is in flight; another may have the lease */
};

/* Of a member of a space group (space.h); otherwise is_member is false and speed 1. */
struct arbiter_pace {
	bool is_member;
	bool is_known;
	bool is_held; /* held to its pace now */
	double speed; /* reported work per nanosecond while it runs alone */
	double share; /* part of the GPU that it had while it had work; 0: not measured */
	double pace;  /* part of the GPU that it is held to; 0: none */
	uint64_t reported_work_ns; /* reported work that it began while counted */
	uint64_t held_ns;          /* time for which it was held at the gate */
};

/* Why a lease ended; only displayed. */
enum arbiter_end {
	ARBITER_END_UNKNOWN,
	ARBITER_END_IDLE,     /* the holder was idle for too long, or exited */
	ARBITER_END_TURN,     /* another's turn came */
	ARBITER_END_PRIORITY, /* a higher priority pushed ahead */
	ARBITER_END_CAP,      /* the holder's tokens were used up */
	ARBITER_END_PAUSED,
	ARBITER_END_STOPPED, /* none of the holder's processes could run */
	ARBITER_END_GANG,    /* a turn on several GPUs began or ended */
	ARBITER_END_ALONE,   /* no other tenant has work: the holder goes on without a lease */
	ARBITER_END_SLICED,  /* the holder goes on beside others, sliced by the hardware */
};

struct arbiter_lease_end {
	enum arbiter_end why;
	bool with_step; /* ended with a step of the program that was awaited (steps.h) */
	bool expired;   /* the drain passed its deadline */
};
