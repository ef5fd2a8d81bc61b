/*
 * The arbiter's settings, and its input and output for a tenant. All are plain data, shared by the interface (arbiter.h) and
 * its implementation (arbiter_inside.h). arbiter.h explains the terms.
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

/* ARBITER_POLICY_FEEDBACK: where a tenant's utilization is taken from. */
enum arbiter_sensor {
	ARBITER_SENSOR_BUSY, /* from the charge: samples of the busy flags, settled by busy_ns */
	ARBITER_SENSOR_NVML, /* from arbiter_observation.utilization if known, else from the charge */
};

struct arbiter_config {
	enum arbiter_policy policy;
	uint64_t quantum_ns;     /* greatest length of a lease under contention */
	uint64_t quantum_min_ns; /* least length of a lease under contention; see Quantum */
	/* while any tenant is a gang, quantum_ns, quantum_min_ns and depth_ns are at least these */
	struct turn_terms gang_turn;
	/* for the launch gates: a second work item beyond depth_ns starts only while less than this is in flight */
	uint64_t long_work_ns;
	double switch_loss;    /* the part of device time that hand-overs may cost */
	uint64_t min_lease_ns; /* a lease is not cut short for a returning tenant before this */
	uint64_t step_most_ns; /* turns end with steps (steps.h) up to this length; 0 if never */
	uint64_t slice_step_ns; /* the hardware slices programs with steps up to this length; 0 if never */
	uint64_t depth_ns; /* the most by which CLOSING precedes the end of the quantum */
	uint64_t cap_slice_ns; /* tokens that a capped tenant, alone, gathers before it gets a lease again */
	uint64_t cap_slice_most_ns; /* the most tokens that it gathers if its program never waits for its work */
	uint64_t window_ns; /* time over which a waiting tenant may save up its cap: bucket size / limit */
	uint64_t idle_window_ns; /* like window_ns, for an idle tenant that does not count as absent yet */
	uint64_t idle_min_ns; /* lower bound of the idle time after which a holder loses the lease */
	uint64_t idle_ns;     /* upper bound of that idle time; see Idleness */
	uint64_t free_after_ns; /* once all others are idle for this long, the one active tenant runs free */
	uint64_t start_grace_ns; /* the most time from GO to first work that is not charged */
	uint64_t start_limit_ns; /* a holder that waits, but launches nothing, counts as idle after this */
	uint64_t drain_min_ns; /* drain deadline: at least this after CLOSING */
	uint64_t drain_max_ns; /* drain deadline: at most this after CLOSING; in between 4 x the predicted in-flight work */
	uint64_t switch_ns; /* the GPU's part of a hand-over, which is not charged to the next holder */
	/* how long a tenant's busy flag may stay set after its work has ended; bounds the correction of the charge */
	uint64_t report_lag_ns;
	uint64_t need_ns; /* a stuck tenant that waits gets min_lease_ns at least this often */
	uint64_t urgent_window_ns; /* time over which a budget may be saved up: bucket size / rate */
	/* the most by which budget and tokens may be overdrawn, and the least needed to push ahead again */
	uint64_t urgent_slice_ns;
	double urgent_margin; /* a budget's rate as a multiple of the guarantee, if the other guarantees leave that much */
	double urgent_default_pct; /* the highest rate, in percent, of a budget for a tenant without a guarantee */
	uint64_t debt_max_ns; /* debt beyond this is forgiven */
	uint64_t max_step_ns; /* the most time that one step counts */
	/*
	 * Time until the caller should step again: while draining, under leases, in free run, all idle. With much work in flight
	 * it is longer: up to poll_lease_ns while draining, up to poll_free_ns under leases.
	 */
	uint64_t poll_drain_ns, poll_lease_ns, poll_free_ns, poll_idle_ns;
	/*
	 * The same if every tenant rings its doorbell (arbiter_observation.rings): poll_rung_ns while draining and under leases,
	 * poll_idle_ns in free run, max_step_ns while all are idle. These polls find a tenant that works without ringing.
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
	/* guaranteed share, above 0 and at most 100; 0 if nothing is promised and the tenant takes what is left */
	double cores_pct;
	double limit_pct; /* cap, at least cores_pct and at most 100; 100 if there is no cap */
	int priority; /* a higher priority pushes ahead of a lower one, within its budget; 0 is the default */
};

/*
 * What the caller has seen of one tenant since the last step, over all its processes on this device. Read a slot's `launching`
 * before its `busy`: a thread sets busy before it clears launching. Nothing here is trusted; counters that go backwards count
 * as no progress.
 */
struct arbiter_observation {
	bool waiting;     /* a thread is held at the gate */
	bool launching;   /* a thread is between the gate and the driver */
	bool busy;        /* work is in flight */
	unsigned working; /* number of processes for which busy or launching is true */
	bool stopped;     /* every process is stopped or frozen, so the tenant can't use a lease */
	/*
	 * The caller steps at once when the tenant's work or demand begins, when its work ends after CLOSING, and when its
	 * lease has been idle for arbiter_patience_ns(). So no poll is needed because of this tenant.
	 */
	bool rings;
	/* how long the tenant says it has been without work, if its doorbell reported that */
	uint64_t idle_ns;
	uint64_t inflight_ns; /* predicted length of the work in flight */
	uint64_t busy_ns;  /* time with work in flight, counted by the tenant itself (monotonic) */
	uint64_t launches; /* number of work items so far (monotonic) */
	/* The part of busy_ns from the start of each lease until 1 ms of work, or half of the depth, was in flight. */
	uint64_t ramp_ns;
	uint64_t spent; /* tokens paid so far under LEASE_PACED (monotonic); for a space group in ns of SM time */
	uint64_t work_ns; /* space group: predicted length of the work paid for (monotonic) */
	uint64_t untried_ns; /* space group: the part of work_ns that was hardly timed while no other tenant ran (monotonic) */
	uint32_t sync_points; /* how often the tenant has waited for all of its work; wraps around */
	uint64_t thread_ns;   /* CPU time of its thread between sync points (monotonic) */
	bool has_utilization;
	double utilization; /* from another sensor: 0 to 1 of the device */
};

enum arbiter_mode { ARBITER_IDLE, ARBITER_FREE, ARBITER_LEASES, ARBITER_PACED, ARBITER_SLICED };

/* One tenant's account. Durations are nanoseconds since the tenant was added. */
struct arbiter_account {
	uint64_t charged_ns; /* GPU time charged; never goes down */
	uint64_t overrun_ns; /* the part of charged_ns that ran past a lease, and so overlapped with another tenant's lease */
	uint64_t waited_ns;  /* time with demand but without the lease */
	uint64_t leases;     /* number of leases granted */
	uint64_t step_turns; /* number of leases that ended with a step of the program (steps.h) */
	uint64_t expired;    /* number of drains that passed their deadline */
	int64_t tokens_ns;   /* tokens of the cap; negative if in debt */
	double weight; /* weight in force: the guarantee, scaled down while too much is promised */
	int64_t budget_ns; /* budget for pushing ahead of lower priorities; negative if overdrawn */
	enum lease_state state;
	bool active;
	bool draining; /* CLOSING was sent and work is still in flight, whether or not the lease has gone to another tenant */
};

/* What is measured of a member of a space group (space.h). For a tenant in no group, is_member is false and speed is 1. */
struct arbiter_pace {
	bool is_member;
	bool is_known;    /* `speed` is valid */
	bool is_held;     /* held to its pace now */
	double speed;     /* reported work per nanosecond while it runs alone */
	double share;     /* part of the GPU that it had while it had work; 0 if not measured */
	double pace;      /* part of the GPU that it is held to; 0 if not held */
	uint64_t told_ns; /* total reported work that it began while counted */
	uint64_t held_ns; /* total time held at the gate */
};

/* Why a lease ended. For display only. */
enum arbiter_end {
	ARBITER_END_UNKNOWN,
	ARBITER_END_IDLE,     /* the holder was idle for too long, or exited */
	ARBITER_END_TURN,     /* another tenant's turn came */
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
	bool with_step; /* the lease ended with a step of the program, which had been waited for (steps.h) */
	bool expired; /* the drain passed its deadline */
};
