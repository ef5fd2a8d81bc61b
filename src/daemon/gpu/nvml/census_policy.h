/*
 * Rules for the census (census.h): when a process holds more than it should, what a context costs,
 * and when the next census is due. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/gpu/nvml/gpu.h"

/* The data that one census read from NVML about one card. */
struct census_card {
	uint64_t begun_ns; /* when reading of this card began */
	bool memory_known, processes_known;
	struct gpu_memory memory;
	size_t process_count;
	struct gpu_process *process;
	/*
	 * Samples of the processes' use of the card since the previous census; read only if census_want_use() asked for them.
	 */
	bool use_known;
	size_t use_count;
	struct gpu_use *use;
	bool busy_known;
	/* share of time in which the card worked, whichever process it worked for */
	double busy_share;
	uint64_t use_since_us; /* stamp of the latest sample read, on the driver's clock */
};

/*
 * A process violates its ledger if it holds this much more than the ledger says. (A framework's
 * code takes some hundred MiB and is charged as unnamed memory.)
 */
#define CENSUS_SLACK_BYTES (UINT64_C(512) << 20)
#define CENSUS_SLACK_PART 20 /* or this fraction of its ledger (1/20), if that is more */
/* the process must hold that much more in this many censuses in a row, and for at least two intervals */
#define CENSUS_OVER_COUNT 3
/* If one census finds memory beyond the ledger, a second census this much later confirms it. */
#define CENSUS_CONFIRM_NS UINT64_C(100000000)

/*
 * Each GPU process adds processor time to a census (11 ms with 50 processes on an H200). So the interval of periodic censuses
 * grows with their cost: they take at most 1/400 of a core. But it never exceeds CENSUS_EVERY_MOST_NS or the configured
 * interval, whichever is longer. (With 1/200, the daemon took 0.56 to 0.66 % of a core on an H200 with 50 watched containers,
 * of which one was at work.)
 */
#define CENSUS_COST_PART 400
#define CENSUS_EVERY_MOST_NS UINT64_C(5000000000)

/*
 * While nothing changes, no periodic census is made. Nothing has changed if the ledgers, the set of processes and each card's
 * memory use (which health.h asks for each second) stayed the same over CENSUS_SAME_LOOKS censuses and CENSUS_SAME_INTERVALS
 * intervals. This test misses a process that replaces another of the same size within one second. So one census is made every
 * CENSUS_REST_NS in any case. If the configured interval is below one second, the periodic censuses never pause.
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

/* The latest censuses in a row that all read the same. */
struct census_rest {
	uint64_t mark;       /* hash of everything that they showed */
	uint64_t ledgers;    /* hash of the ledgers after the last of these censuses */
	uint64_t since_ns;   /* time of the first of these censuses */
	uint64_t last_ns;    /* time of the last of these censuses */
	unsigned same_count; /* number of these censuses; 0: no census yet */
};

/*
 * Records a complete census: adds it to the censuses in `rest` if it read the same as they did; if not, it becomes the only one
 * there. Pure.
 */
void census_rest_note(struct census_rest *rest, uint64_t mark, uint64_t ledgers, uint64_t now_ns);

/*
 * Returns true if the next periodic census can be left out because nothing changes (see CENSUS_SAME_LOOKS). `ledgers` is a hash
 * of the ledgers as they are now. Pure.
 */
bool census_rest_holds(const struct census_rest *rest, uint64_t ledgers, uint64_t interval_ns,
		       uint64_t now_ns);

/*
 * Records one observation. Returns true if the condition has held CENSUS_OVER_COUNT times in a row
 * and for at least least_ns. An observation without the condition restarts the count. Pure.
 */
bool census_confirm(struct census_over *over, bool is_over, uint64_t now_ns, uint64_t least_ns);

/*
 * Learns the cost of a context from NVML's figure for a process of a tenant. Returns the cost that
 * two tenants confirm, so that one tenant alone cannot lower it for others; UINT64_MAX if no second
 * tenant confirms it. Pure.
 */
uint64_t census_agreed_context(struct census_least *least, const char *tenant, uint64_t nvml_bytes);

/*
 * Returns the memory that a process holds but no call allocated: NVML's figure minus the highest ledger value during the
 * census. The result grows only if two censuses confirm it. So it is at most *beyond_before (what the previous census showed)
 * or counted_bytes (what is charged to the process already), whichever is more. Sets *beyond_before to what this census showed.
 * Pure.
 */
uint64_t census_unnamed(uint64_t nvml_bytes, uint64_t ledger_most_bytes, uint64_t counted_bytes,
			uint64_t *beyond_before);

/*
 * Returns the interval of periodic censuses: `asked_ns`, or more if a census costs much processor
 * time (cost_ns). Pure.
 */
uint64_t census_every_ns(uint64_t asked_ns, uint64_t cost_ns);

/* Returns true if NVML's figure exceeds most_bytes (what a ledger or a quota permits) by more than the slack. Pure. */
bool census_is_over(uint64_t nvml_bytes, uint64_t most_bytes);
