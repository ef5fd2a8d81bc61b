/*
 * Declarations that the parts of the model (gpu_model.h) share:
 *
 *   gpu_model.c           tenants and processes come and go; the run; answers
 *   gpu_model_process.c   a process: its thread at the gate, its work in flight
 *   gpu_model_card.c      the GPU: whose kernel runs
 *   gpu_model_daemon.c    the daemon: observes, steps, writes the words, checks what always holds
 */
#pragma once

#include "gpu_model.h"

#define QUEUE 4096 /* kernels in flight, a power of two */
#define NEVER UINT64_MAX
#define BEGIN_NS (1000 * SECOND) /* the clock's value when the model is made */
#define LATENCIES 4096 /* most latencies that are kept of a tenant; later ones are dropped */
#define PROCESSES_MAX (2 * ARBITER_MAX_TENANTS)
#define STREAMS_MAX 16
#define MEMBERS_MAX 32 /* most processes of a tenant, dead ones included */

enum thread_state {
	THREAD_OFF,
	THREAD_THINKS,
	THREAD_AT_GATE,  /* reads the word at thread_at */
	THREAD_LAUNCHES, /* its launch returns at thread_at */
	THREAD_HELD,     /* held by the word */
	THREAD_WAKES,    /* has seen GO, and goes on at thread_at */
	THREAD_FULL,     /* held by the bound on its own work in flight */
	THREAD_JOINS,    /* waits for the end of its burst */
};

struct model_tenant {
	bool used, stopped;
	bool has_lied; /* a process of it has reported falsely at some time */
	int index;     /* index in the arbiter */
	struct arbiter_share share;
	enum lease_state word;
	uint64_t leases; /* how often the word became GO, or another process got the turn */
	struct turns turns;
	struct turns_process member[MEMBERS_MAX];
	double slot_work_ns[MEMBERS_MAX]; /* GPU time of the process with that slot */
	unsigned members, slots; /* processes that it has; processes ever added (next slot) */
	uint32_t group;          /* the group with which it shares space; 0: none */
	double percentage;
	/* Sums over all its processes. */
	uint64_t spent;        /* tokens, under LEASE_PACED */
	uint64_t paid_work_ns; /* in a space group: predicted length of the work that was paid for */
	double sm_ns, work_ns;
	uint64_t kernels, bursts, closings;
	uint64_t longest_wait_ns;
	uint64_t latency_ns[LATENCIES];
	unsigned latency_count;
	uint64_t other_latency_ns[LATENCIES];
	unsigned other_count;
};

/* One thread and one context on the GPU. */
struct model_process {
	bool used;
	struct model_tenant *tenant;
	unsigned slot, member; /* its place among the tenant's processes */
	struct gpu_model_load load;
	enum thread_state thread;
	uint64_t thread_at;
	uint64_t burst_left_ns;
	unsigned bursts;     /* since its load began */
	uint64_t arrival_ns; /* when the present burst arrived */
	uint64_t held_since_ns;

	uint64_t queue[QUEUE];       /* kernel lengths in ns; the first run_count kernels run ... */
	double left_ns[STREAMS_MAX]; /* ... and have this much left */
	unsigned head, tail, run_count;
	double speed; /* in a space group: speed of each kernel, as a part of its speed alone */
	uint64_t inflight_ns; /* predicted */
	uint64_t next_kernel_ns;
	bool pays; /* the launch under way pays tokens */
	uint64_t launches;
	uint32_t sync_points;
	uint64_t burst_ended_at; /* when its last burst ended; 0: it has launched since then */
	uint64_t gate_ns;        /* time at the gate since burst_ended_at */
	uint64_t gap_ns; /* time from the end of a burst to the next launch, without gate_ns */

	bool busy;
	uint64_t busy_since_ns, busy_done_ns, busy_shown_ns;
	uint64_t flag_falls_at;
	uint64_t worked_at; /* when its busy flag last fell */
	uint64_t report_idle_at, reported_idle_ns;
	/* A ramp: the time from a new lease until half of the allowed depth, or 1 ms of work, is in flight. */
	uint64_t ramp_ns, ramp_since; /* sum of all ramps; when the present one began, 0: none */
	uint64_t lease;               /* tenant->leases at the latest ramp */
	/* Time under leases in which as little is in flight as in a ramp; since when that is so now, 0: it is not. */
	uint64_t behind_ns, behind_since;
};

struct gpu_model {
	struct gpu_model_config config;
	struct arbiter *arbiter;
	uint64_t random;
	uint64_t now;
	uint64_t poll_at;
	struct model_tenant *tenant[ARBITER_MAX_TENANTS];
	int tenants; /* highest index in use + 1 */
	struct model_process *process[PROCESSES_MAX];
	int processes; /* highest place in use + 1 */

	int context;        /* on the GPU: the place of its process; -1 at first */
	uint64_t gap_until; /* the GPU is switching */
	uint64_t slice_ends;

	uint64_t steps, violations;
	uint64_t lost_since; /* number of the step since which no held tenant got the lease; 0: none waits */
	uint64_t idle_since; /* sliced: some tenant is held and no tenant works since then; 0: unknown */
	int last_holder; /* the arbiter's index of the last tenant with a lease */
};

/* Processes. */
void process_begin_load(struct gpu_model *m, struct model_process *p);
bool process_is_let_through(const struct gpu_model *m, const struct model_process *p);
unsigned process_queued(const struct model_process *p);
/* Time of the thread's next step of its own; NEVER: another event must come first. */
uint64_t process_thread_at(const struct model_process *p);
void process_run_thread(struct gpu_model *m, struct model_process *p);
/* The GPU has finished one of the running kernels. */
void process_end_kernel(struct gpu_model *m, struct model_process *p, unsigned which);
void process_flag_falls(struct gpu_model *m, struct model_process *p);
void process_report_idle(struct gpu_model *m, struct model_process *p);
/* Ends the process's ramp (ramp_since), if one is under way. */
void process_end_ramp(struct gpu_model *m, struct model_process *p);
/* Counts behind_ns until now. Call when the lease or the work in flight has changed. */
void process_watch_behind(struct gpu_model *m, struct model_process *p);

/* The part of the GPU's SMs that each of its kernels uses. */
double process_part(const struct model_process *p);

/* The GPU. */
void card_schedule(struct gpu_model *m);
uint64_t card_event_at(const struct gpu_model *m);
/* Advances the time to `to`, which is no later than the next event. */
void card_advance(struct gpu_model *m, uint64_t to);

/* The daemon wakes up. */
void daemon_poll(struct gpu_model *m);
