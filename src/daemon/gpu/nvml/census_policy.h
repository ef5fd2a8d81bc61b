/*
 * A census is one reading of NVML's figures (census.h); a ledger is what a process's library counts. Rules: when a process
 * holds more than its ledger, what a context costs, and when the next census is due. No clock, no I/O.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/gpu/nvml/gpu.h"

/* A census's readings of one card. */
struct census_card {
	uint64_t begun_ns; /* when reading of this card began */
	bool memory_known, processes_known;
	struct gpu_memory memory;
	size_t process_count;
	struct gpu_process *process;
	/* `use` is valid: how much each process used the card since the previous census (census_enable_use()) */
	bool use_known;
	size_t use_count;
	struct gpu_use *use;
	bool busy_known;
	/* share of time in which the card worked for any process */
	double busy_share;
	uint64_t use_since_us; /* stamp of the latest sample, on the driver's clock */
};

/*
 * A process violates its ledger if it holds this much more. The ledger includes a framework's code, some hundred MiB, as
 * unnamed memory (census_unnamed()).
 */
#define CENSUS_SLACK_BYTES (UINT64_C(512) << 20)
#define CENSUS_SLACK_PART 20 /* the slack is 1/20 of the ledger, if that is more */
/* after this many calls in a row with is_over, census_confirm() returns true */
#define CENSUS_OVER_COUNT 3
/* If a census shows memory beyond a ledger, a further census confirms it after this time (census_unnamed()). */
#define CENSUS_CONFIRM_NS UINT64_C(100000000)

/*
 * Each GPU process adds processor time to a census. So the interval grows until censuses take 1/400 of a core, but not beyond
 * CENSUS_EVERY_MOST_NS or the configured interval, whichever is longer.
 */
#define CENSUS_COST_PART 400
#define CENSUS_EVERY_MOST_NS UINT64_C(5000000000)

/*
 * Periodic censuses pause once ledgers, processes and each card's memory use (health.h) have stayed the same for
 * CENSUS_SAME_COUNT censuses and CENSUS_SAME_INTERVALS intervals. A pause could miss that a process was replaced within a
 * second by one of the same size, so a census comes every CENSUS_PAUSE_MAX_NS. No pause if the configured interval is below
 * one second.
 */
#define CENSUS_SAME_COUNT 3
#define CENSUS_SAME_INTERVALS 3
#define CENSUS_PAUSE_MAX_NS UINT64_C(60000000000)

/* Counts for census_confirm(). All zero: no observation yet. */
struct census_over {
	unsigned count;
	uint64_t since_ns;
};

/* The least memory seen of a process with a context, and the id of the process's tenant. All zero: none yet. */
struct census_least {
	char tenant[16];
	uint64_t bytes;
};

/* The latest censuses in a row with equal readings. */
struct census_stability {
	uint64_t mark;       /* hash of everything that these censuses showed */
	uint64_t ledgers;    /* hash of the ledgers after the last census */
	uint64_t since_ns;   /* time of the first of these censuses */
	uint64_t last_ns;    /* time of the last census */
	unsigned same_count; /* number of these censuses; 0: no census yet */
};

/* Adds a census to `stability`. Starts over with this census if `mark` (hash of its readings) or `ledgers` has changed. */
void census_stability_note(struct census_stability *stability, uint64_t mark, uint64_t ledgers,
			   uint64_t now_ns);

/* True if the next periodic census can be left out. `ledgers`: hash of the present ledgers. Pure. */
bool census_is_stable(const struct census_stability *stability, uint64_t ledgers,
		      uint64_t interval_ns, uint64_t now_ns);

/* True if is_over was true in the last CENSUS_OVER_COUNT calls, and for at least least_ns. Keeps the count in *over. */
bool census_confirm(struct census_over *over, bool is_over, uint64_t now_ns, uint64_t least_ns);

/*
 * Learns the cost of a context (CUDA's own memory of a process) from NVML's figure for a tenant's process. Returns a cost that
 * two tenants' figures confirm, so that one tenant cannot lower it for others; else UINT64_MAX. Keeps the least figure in
 * *least.
 */
uint64_t census_confirmed_context(struct census_least *least, const char *tenant,
				  uint64_t nvml_bytes);

/*
 * Returns a process's unnamed memory, which it holds without an allocation: NVML's figure minus the ledger's peak during the
 * census. The result is at most the previous census's difference or counted_bytes (already charged), whichever is more. So it
 * grows only if two censuses agree. *beyond_before has the previous difference, and gets the present difference.
 */
uint64_t census_unnamed(uint64_t nvml_bytes, uint64_t ledger_most_bytes, uint64_t counted_bytes,
			uint64_t *beyond_before);

/* Returns `asked_ns`, or more if a census takes much processor time (cost_ns). Pure. */
uint64_t census_every_ns(uint64_t asked_ns, uint64_t cost_ns);

/* True if NVML's figure exceeds most_bytes by more than the slack (CENSUS_SLACK_BYTES or CENSUS_SLACK_PART). Pure. */
bool census_is_over(uint64_t nvml_bytes, uint64_t most_bytes);
