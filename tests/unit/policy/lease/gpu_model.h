/*
 * A discrete-event model of a GPU, its tenants and the daemon's polling loop, on virtual time. Tests
 * run the arbiter's policy on it. Every run with the same seed is the same run.
 *
 *   GPU      Runs one context at a time. Contexts that have work at the same moment take turns as the
 *            hardware does it: 2.09 ms each, then a gap of 0.31 ms. If one context has no more work,
 *            the change to another costs switch_ns.
 *            Processes of one space group are one context: those with work run at the same time. A
 *            kernel takes the SMs that its blocks need, up to its process's percentage. If all kernels
 *            together want more SMs than there are, each process gets a share by what it wants, weighed
 *            by `pull`. A process's streams run side by side, and contend as processes do.
 *   tenant   One or more processes. Each has a context, and a thread that launches kernels through a
 *            gate. The gate bounds the work in flight. It holds the thread while the tenant's word (enum
 *            lease_state) is CLOSING or STOP, or is PACED and no tokens are left. The thread wakes some
 *            time after the word has changed. The busy flag falls 25 to 75 us after the last kernel.
 *   daemon   Observes all processes, steps the arbiter, and writes the words. It wakes up a little later
 *            than it asked for.
 *
 * Tests judge by gpu_model_work_ns(): the time that the tenant's finished work would have taken alone.
 */
#pragma once

#include "policy/lease/arbiter.h"
#include "policy/lease/turns.h"

#define US 1000ULL
#define MS 1000000ULL
#define SECOND 1000000000ULL

/* False reports of a process to the daemon. */
enum lie {
	LIE_NONE,
	LIE_IDLE,     /* never busy, never any progress */
	LIE_BUSY,     /* always busy */
	LIE_INFLIGHT, /* an absurd amount in flight */
	LIE_GARBAGE,  /* all numbers random */
};

struct gpu_model_load {
	uint64_t kernel_ns;
	uint64_t kernel_max_ns; /* when set, lengths are uniform in [kernel_ns, kernel_max_ns] */
	uint64_t burst_ns; /* when set: launch this much work, wait for its end, pause think_ns to think_max_ns */
	uint64_t think_ns;
	uint64_t think_max_ns;
	/*
	 * When set: the thread needs launch_ns for each launch. The last tail_part of a burst's work (0 to 1) consists of
	 * kernels of tail_kernel_ns. If those are shorter than launch_ns, the GPU works off what was launched before.
	 */
	uint64_t launch_ns, tail_kernel_ns;
	uint64_t compute_ns; /* the thread needs this from each launch until it is at the gate again */
	double tail_part;
	/*
	 * When set: one of this many bursts is of the other load instead, with that load's kernels, burst, launches and pauses.
	 * The other load's `other` is ignored.
	 */
	unsigned other_every;
	const struct gpu_model_load *other;
	/* When set: before one of this many launches the thread does something else, for gap_ns to gap_max_ns. */
	unsigned gap_every;
	uint64_t gap_ns, gap_max_ns;
	bool never_waits; /* a burst follows the previous one at once, without a wait for its end */
	bool reports_sync_points; /* reports a sync point at the end of each burst, for which it waits */
	bool on_schedule; /* think_ns is from one burst's arrival to the next one's; a late burst starts at once */
	uint64_t start_ns; /* the load begins this long after the model's start */
	uint64_t cost; /* tokens that a launch pays under LEASE_PACED; 0: 132 * 256, for blocks * threads */
	double prediction; /* predicted length of a kernel divided by the true one; 0 means 1 */
	/* In a space group: the part of the card's SMs (0 to 1) that the grid of each kernel fills; 0 means all. */
	double part;
	unsigned streams; /* number of kernels at the same time; 0 means 1 */
	double pull;      /* weight for contended SMs beside other processes; 0 means 1 */
	bool is_silent;   /* rings no doorbell, although gpu_model_config.rings says that all do */
	bool late_report; /* counts the delay of its busy flag as busy time */
	enum lie lie;
};

struct gpu_model_config {
	struct arbiter_config arbiter;
	uint64_t seed;
	uint64_t switch_ns;      /* the GPU's dead time from one context to another */
	uint64_t poll_jitter_ns; /* the daemon wakes up to this late */
	bool is_native;          /* without an arbiter: all run, and the hardware slices */
	bool has_turns;          /* a tenant's processes take turns (policy/lease/turns.h) */
	bool rings; /* tenants ring the doorbell as the library does, and the daemon steps soon after */
	uint64_t stall_every_ns; /* when set: about this often the daemon is kept off the CPU ... */
	uint64_t stall_ns;       /* ... for up to this long */
	/* Speed of all SMs together while the processes of a space group want more than all; 0 means 1. */
	double contended;
};

struct gpu_model;

struct gpu_model_config gpu_model_default_config(void);
/* Never fail: they end the test program when out of memory. */
struct gpu_model *gpu_model_new(const struct gpu_model_config *config);
struct gpu_model *gpu_model_free(struct gpu_model *model);
/* Adds a tenant with one process. Returns its index in the arbiter, by which the functions below name the tenant. */
int gpu_model_add(struct gpu_model *model, struct arbiter_share share,
		  const struct gpu_model_load *load);
/* Adds a process to the tenant, with its own context and thread. */
void gpu_model_add_process(struct gpu_model *model, int tenant, const struct gpu_model_load *load);
/* Kills one of the tenant's processes: the one with the turn, or else the first. The tenant must have at least two. */
void gpu_model_kill_process(struct gpu_model *model, int tenant);
void gpu_model_remove(struct gpu_model *model, int tenant);
/* Applies to all processes of the tenant. */
void gpu_model_set_load(struct gpu_model *model, int tenant, const struct gpu_model_load *load);
void gpu_model_set_share(struct gpu_model *model, int tenant, struct arbiter_share share);
/* Changes only the cap; see arbiter_set_limit(). */
void gpu_model_set_limit(struct gpu_model *model, int tenant, double limit_pct);
/* From now on the tenant belongs to that space group, and may use `percentage` of the SMs. */
void gpu_model_set_group(struct gpu_model *model, int tenant, uint32_t group, double percentage);
/* Stops all processes of the tenant, as SIGSTOP does, or continues them. */
void gpu_model_set_stopped(struct gpu_model *model, int tenant, bool stopped);
void gpu_model_run(struct gpu_model *model, uint64_t duration_ns);

uint64_t gpu_model_now_ns(const struct gpu_model *model);
struct arbiter *gpu_model_arbiter(struct gpu_model *model);
const struct turns *gpu_model_turns(const struct gpu_model *model, int tenant);
/* GPU time of one process's kernels. `process` counts the tenant's processes from 0 as they were added, dead ones too. */
uint64_t gpu_model_process_work_ns(const struct gpu_model *model, int tenant, unsigned process);
/* GPU time spent on the tenant's kernels. */
uint64_t gpu_model_work_ns(const struct gpu_model *model, int tenant);
/* The same, where a kernel on half of the SMs counts half. 0 for the arbiter's index of a space group, which is no tenant. */
uint64_t gpu_model_sm_ns(const struct gpu_model *model, int tenant);
/* Numbers of the tenant's kernels and bursts that are finished. */
uint64_t gpu_model_kernels(const struct gpu_model *model, int tenant);
uint64_t gpu_model_bursts(const struct gpu_model *model, int tenant);
/*
 * The quantile `part` (0.5: the median) of the latencies of bursts, from arrival to end, since the last call of
 * gpu_model_take_latency_ns(). 0 without bursts.
 */
uint64_t gpu_model_latency_ns(struct gpu_model *model, int tenant, double part);
/* As gpu_model_take_latency_ns(), of the bursts of the load's `other`, which the other two functions leave out. */
uint64_t gpu_model_take_other_latency_ns(struct gpu_model *model, int tenant, double part);
/* As gpu_model_latency_ns(), and forgets the bursts. */
uint64_t gpu_model_take_latency_ns(struct gpu_model *model, int tenant, double part);
/* The longest time that one of the tenant's processes was held at the gate, since the last call. */
uint64_t gpu_model_take_longest_wait_ns(struct gpu_model *model, int tenant);
/* How often the tenant's word became CLOSING. */
uint64_t gpu_model_closings(const struct gpu_model *model, int tenant);
uint64_t gpu_model_steps(const struct gpu_model *model);
/* Number of steps that broke an invariant (two leases, a lost lease); prints each one on stderr. */
uint64_t gpu_model_violations(const struct gpu_model *model);

/* splitmix64; the only source of randomness in the tests. */
uint64_t random_next(uint64_t *state);
/* Uniform in [low, high]. */
uint64_t random_between(uint64_t *state, uint64_t low, uint64_t high);
