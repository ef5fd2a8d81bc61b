/*
 * A GPU, its tenants and the daemon's polling loop, on virtual time: what the arbiter's policy is
 * tried against. Discrete events; every run with the same seed is the same run.
 *
 *   GPU      runs one context at a time; contexts with work at the same moment take turns as the
 *            hardware does it (2.09 ms, then a gap of 0.31 ms: facts/gpu.md); changing to another
 *            context costs switch_ns
 *            Processes of one space group are one context: those with work run at the same time. A kernel
 *            takes the SMs that its blocks need, up to its client's percentage, and half of them when
 *            half are left: contended ones are shared out by what each wants, weighed by `pull`. A process's
 *            streams run side by side, and contend as processes do
 *   tenant   processes, one at first, each a context and a thread that launches kernels through a gate:
 *            bounded work in flight, waits in CLOSING and STOP, and while PACED and out of tokens; wakes
 *            some time after; its busy flag falls 25 to 75 us late
 *   daemon   observes all, steps, writes the words; wakes up a little later than it asked for
 *
 * The truth is gpu_model_work_ns(): the time that the GPU spent on a tenant's kernels, had they been alone.
 */
#pragma once

#include "policy/lease/arbiter.h"
#include "policy/lease/turns.h"

#define US 1000ULL
#define MS 1000000ULL
#define SECOND 1000000000ULL

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
	uint64_t burst_ns;      /* when set: this much work, wait for its end, then think */
	uint64_t think_ns;
	uint64_t think_max_ns;
	/*
	 * When set: the thread takes so long for a launch, and the last part of a burst (0 to 1, by its work) is of
	 * kernels this long. With short ones there, it lives on the lead that it has gained before.
	 */
	uint64_t launch_ns, tail_kernel_ns;
	double tail_part;
	/*
	 * When set: each so many bursts one is of this load instead: its kernels, burst, launches and rests. The other's other
	 * is not looked at.
	 */
	unsigned other_every;
	const struct gpu_model_load *other;
	unsigned gap_every; /* when set: each so many launches the thread does something else first, for so long */
	uint64_t gap_ns, gap_max_ns;
	bool never_waits;       /* a burst follows the one before without a wait for its end */
	bool tells_sync_points; /* of a burst's end, which it waits for */
	bool on_schedule; /* think_ns is from one burst's arrival to the next's; a late one follows at once */
	uint64_t start_ns; /* begins then */
	uint64_t cost;     /* tokens that a launch pays where it is paced; 0: those of 132 blocks */
	double prediction; /* of lengths, as a factor; 0 means 1 */
	/* In a space group: the part of the card's SMs that its grid fills; 0 means all. */
	double part;
	unsigned streams; /* so many kernels at the same time; 0 means 1 */
	double pull; /* of contended SMs, beside others: blocks are not served alike; 0 means 1 */
	bool is_silent;   /* is taken to ring (gpu_model_config.rings), but does not */
	bool late_report; /* counts the delay of its busy flag as busy time */
	enum lie lie;
};

struct gpu_model_config {
	struct arbiter_config arbiter;
	uint64_t seed;
	uint64_t switch_ns;      /* the GPU's dead time from one context to another */
	uint64_t poll_jitter_ns; /* the daemon wakes up to this late */
	bool is_native;          /* nobody arbitrates: all go, the hardware slices */
	bool has_turns;          /* a tenant's processes take turns (policy/lease/turns.h) */
	bool rings;              /* tenants ring, as the daemon's do: it steps soon after */
	uint64_t stall_every_ns; /* when set: about this often it is kept off the CPU ... */
	uint64_t stall_ns;       /* ... for up to this long */
	double contended; /* what the SMs do together while several kernels want them; 0 means 1 */
};

struct gpu_model;

struct gpu_model_config gpu_model_default_config(void);
/* Never fail: they end the test program when out of memory. */
struct gpu_model *gpu_model_new(const struct gpu_model_config *config);
struct gpu_model *gpu_model_free(struct gpu_model *model);
/* Returns the arbiter's index. */
int gpu_model_add(struct gpu_model *model, struct arbiter_share share,
		  const struct gpu_model_load *load);
/* One more process of the tenant's, with a context and a thread of its own. */
void gpu_model_add_process(struct gpu_model *model, int tenant, const struct gpu_model_load *load);
/* One of them is killed: that whose turn it is, or else the first. The tenant must have two at least. */
void gpu_model_kill_process(struct gpu_model *model, int tenant);
void gpu_model_remove(struct gpu_model *model, int tenant);
/* Of all its processes. */
void gpu_model_set_load(struct gpu_model *model, int tenant, const struct gpu_model_load *load);
void gpu_model_set_share(struct gpu_model *model, int tenant, struct arbiter_share share);
/* The cap alone; see arbiter_set_limit(). */
void gpu_model_set_limit(struct gpu_model *model, int tenant, double limit_pct);
/* It shares space with that group from now on, by a context of so many percent. */
void gpu_model_set_group(struct gpu_model *model, int tenant, uint32_t group, double percentage);
/* SIGSTOP and SIGCONT. */
void gpu_model_set_stopped(struct gpu_model *model, int tenant, bool stopped);
void gpu_model_run(struct gpu_model *model, uint64_t duration_ns);

uint64_t gpu_model_now_ns(const struct gpu_model *model);
struct arbiter *gpu_model_arbiter(struct gpu_model *model);
const struct turns *gpu_model_turns(const struct gpu_model *model, int tenant);
/* GPU time spent on the kernels of one of a tenant's processes, in the order in which they were added. */
uint64_t gpu_model_process_work_ns(const struct gpu_model *model, int tenant, unsigned process);
/* GPU time spent on the tenant's kernels; kernels finished; bursts finished. */
uint64_t gpu_model_work_ns(const struct gpu_model *model, int tenant);
/* The same by SM-time: ns of the whole card. 0 of an index that is a group's own. */
uint64_t gpu_model_sm_ns(const struct gpu_model *model, int tenant);
uint64_t gpu_model_kernels(const struct gpu_model *model, int tenant);
uint64_t gpu_model_bursts(const struct gpu_model *model, int tenant);
/*
 * How long the bursts took that ended since the last call, from their arrival: this part of them took no
 * longer (0.5: the median).
 */
/* The same, and they are kept. */
uint64_t gpu_model_latency_ns(struct gpu_model *model, int tenant, double part);
/* Of the bursts of its load's other alone. */
uint64_t gpu_model_take_other_latency_ns(struct gpu_model *model, int tenant, double part);
uint64_t gpu_model_take_latency_ns(struct gpu_model *model, int tenant, double part);
/* The longest time spent held at the gate since the last call. */
uint64_t gpu_model_take_longest_wait_ns(struct gpu_model *model, int tenant);
/* Times that the tenant's word became CLOSING. */
uint64_t gpu_model_closings(const struct gpu_model *model, int tenant);
uint64_t gpu_model_steps(const struct gpu_model *model);
/* Steps that broke a rule that always holds (two leases, a lost lease); says which on stderr. */
uint64_t gpu_model_violations(const struct gpu_model *model);

/* splitmix64; the tests' only source of chance. */
uint64_t random_next(uint64_t *state);
/* Uniform in [low, high]. */
uint64_t random_between(uint64_t *state, uint64_t low, uint64_t high);
