/*
 * Rules for readings of NVML: when a process holds more than it should, what a context costs, and
 * when the next reading is due. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/gpu/nvml/gpu.h"

/* One card's reading. */
struct census_card {
	uint64_t begun_ns; /* start of this reading */
	bool memory_known, processes_known;
	struct gpu_memory memory;
	size_t process_count;
	struct gpu_process *process;
	/* Only if requested (census_want_use()): samples since the previous reading. */
	bool use_known;
	size_t use_count;
	struct gpu_use *use;
	bool busy_known;
	double busy_share;     /* share of time in which the card worked, for any process */
	uint64_t use_since_us; /* stamp of the latest sample read, on the driver's clock */
};

/*
 * A process violates its ledger if it holds this much more than the ledger says. (A framework's
 * code takes some hundred MiB and is charged as unnamed memory.)
 */
#define CENSUS_SLACK_BYTES (UINT64_C(512) << 20)
#define CENSUS_SLACK_PART 20 /* or this fraction of its ledger (1/20), if that is more */
#define CENSUS_OVER_COUNT 3  /* in so many censuses in a row, over at least two intervals */
/* A single census with memory beyond the ledger is confirmed by a second census this soon. */
#define CENSUS_CONFIRM_NS UINT64_C(100000000)

/*
 * Each GPU process adds processor time to a reading (11 ms with 50 processes on an H200). Readings
 * without a reason become rarer, so that they take at most 1/400 of a core. (With 1/200, 50 watched
 * containers and one at work, the daemon took 0.56 to 0.66 % of a core on an H200.)
 */
#define CENSUS_COST_PART 400
#define CENSUS_EVERY_MOST_NS UINT64_C(5000000000)

/*
 * While nothing changes, no periodic census is made. Nothing has changed if the ledgers, the set of
 * processes and each card's memory use (which health.h asks for each second) stayed the same over
 * CENSUS_SAME_LOOKS readings and CENSUS_SAME_INTERVALS intervals. A process may replace another of
 * the same size within one second. The census that is still made every CENSUS_REST_NS finds it. A
 * configured interval below one second is always kept.
 */
#define CENSUS_SAME_LOOKS 3
#define CENSUS_SAME_INTERVALS 3
#define CENSUS_REST_NS UINT64_C(60000000000)

/*
 * Counts observations in a row that showed the same condition: see census_confirm(). All zero: none
 * yet.
 */
struct census_over {
	unsigned count;
	uint64_t since_ns;
};

/*
 * The least memory that NVML has shown for a process with a context, and its tenant. All zero: none
 * yet.
 */
struct census_least {
	char tenant[16]; /* the tenant's id */
	uint64_t bytes;
};

/* What the last equal readings have in common. */
struct census_rest {
	uint64_t mark;       /* hash of all that they showed */
	uint64_t ledgers;    /* hash of the ledgers after the last reading */
	uint64_t since_ns;   /* time of the first of them */
	uint64_t last_ns;    /* time of the last of them */
	unsigned same_count; /* number of equal readings; 0: no reading yet */
};

/* Records a complete reading and whether it equals the previous ones. Pure. */
void census_rest_note(struct census_rest *rest, uint64_t mark, uint64_t ledgers, uint64_t now_ns);

/*
 * Whether, by this rule, the next reading can wait. `ledgers` is the present hash of the ledgers.
 * Pure.
 */
bool census_rest_holds(const struct census_rest *rest, uint64_t ledgers, uint64_t interval_ns,
		       uint64_t now_ns);

/*
 * Records one observation. Returns true if the condition has held CENSUS_OVER_COUNT times in a row
 * and for at least least_ns. An observation without the condition restarts the count. Pure.
 */
bool census_confirm(struct census_over *over, bool is_over, uint64_t now_ns, uint64_t least_ns);

/*
 * Takes NVML's figure for one complete process of a tenant. Returns the cost of a context that two
 * tenants confirm, so that one tenant alone cannot lower it for others. Returns UINT64_MAX until a
 * second tenant has shown a figure. Pure.
 */
uint64_t census_agreed_context(struct census_least *least, const char *tenant, uint64_t nvml_bytes);

/*
 * Memory that a process holds but no call allocated: NVML's figure minus the highest ledger value
 * during the reading. At most what the previous reading showed or what is already counted,
 * whichever is more. Replaces *beyond_before by what this reading showed. Pure.
 */
uint64_t census_unnamed(uint64_t nvml_bytes, uint64_t ledger_most_bytes, uint64_t counted_bytes,
			uint64_t *beyond_before);

/* The interval of periodic readings, given the processor time of the last reading. Pure. */
uint64_t census_every_ns(uint64_t asked_ns, uint64_t cost_ns);

/*
 * Whether NVML's figure exceeds the permitted amount (a ledger or a quota) by more than the slack.
 * Pure.
 */
bool census_is_over(uint64_t nvml_bytes, uint64_t most_bytes);
