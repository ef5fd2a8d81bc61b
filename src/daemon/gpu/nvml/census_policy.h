/*
 * A reading of NVML and what it means: when a process holds more than it should, what a context costs, and when the next
 * reading is due. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/gpu/nvml/gpu.h"

/* One card as read. */
struct census_card {
	uint64_t begun_ns; /* when its reading began */
	bool memory_known, processes_known;
	struct gpu_memory memory;
	size_t process_count;
	struct gpu_process *process;
	/* Only when asked for (census_want_use()): samples since the reading before. */
	bool use_known;
	size_t use_count;
	struct gpu_use *use;
	bool busy_known;
	double busy_share;     /* of the card's time, by whomever */
	uint64_t use_since_us; /* the latest sample that was read, by the driver's clock */
};

/*
 * A process may hold this much more than its ledger before it counts as a violation (the code of a
 * framework is some hundred MiB, and is charged as unnamed) ...
 */
#define CENSUS_SLACK_BYTES (UINT64_C(512) << 20)
#define CENSUS_SLACK_PART 20 /* ... or a 20th of its ledger, whichever is more, ... */
#define CENSUS_OVER_COUNT 3  /* ... in so many censuses in a row, over two intervals at least */
/* What one census shows beyond the ledger counts when a second confirms it: that comes so soon. */
#define CENSUS_CONFIRM_NS UINT64_C(100000000)

/*
 * A reading takes processor time for each GPU process (11 ms with 50 of them on an H200): so that it is no
 * more than a 400th of a core, readings that nothing calls for come more seldom than asked. (At a 200th, with 50
 * watched containers and one at work, the daemon took 0.56 to 0.66 % of a core on an H200.)
 */
#define CENSUS_COST_PART 400
#define CENSUS_EVERY_MOST_NS UINT64_C(5000000000)

/*
 * Where nothing changes, none is read that nobody asks for: neither a ledger, nor which processes there are, nor,
 * by what health.h asks the driver each second, what a card has in use. That holds once so many readings in a row
 * were the same, over so many intervals; something that takes another's place with the same size, within that
 * second, is found by the reading that comes all the same. Who has an interval shorter than that second gets it.
 */
#define CENSUS_SAME_LOOKS 3
#define CENSUS_SAME_INTERVALS 3
#define CENSUS_REST_NS UINT64_C(60000000000)

/* Looks in a row that showed the same of something: see census_confirm(). All zero: none yet. */
struct census_over {
	unsigned count;
	uint64_t since_ns;
};

/* The least that NVML has shown for a process with a context, and for whose. All zero: nothing yet. */
struct census_least {
	char tenant[16]; /* its id */
	uint64_t bytes;
};

/* What the last readings have in common. */
struct census_rest {
	uint64_t mark;       /* of all that they showed */
	uint64_t ledgers;    /* of the ledgers, after the last */
	uint64_t since_ns;   /* when the first of them was */
	uint64_t last_ns;    /* the last */
	unsigned same_count; /* 0: there was none yet */
};

/* A reading is complete: is it as those before? Pure. */
void census_rest_note(struct census_rest *rest, uint64_t mark, uint64_t ledgers, uint64_t now_ns);

/* Whether the next one can wait, as far as that goes: `ledgers` as of now. Pure. */
bool census_rest_holds(const struct census_rest *rest, uint64_t ledgers, uint64_t interval_ns,
		       uint64_t now_ns);

/*
 * A look at something: is it over, or settled, as the looks before it showed, CENSUS_OVER_COUNT in a row and over
 * least_ns? One that does not show it begins anew. Pure.
 */
bool census_confirm(struct census_over *over, bool is_over, uint64_t now_ns, uint64_t least_ns);

/*
 * Takes NVML's figure for one whole process of a tenant and returns the cost of a context that two tenants agree on, so
 * that none can lower it for others. UINT64_MAX: no other tenant has shown a figure yet. Pure.
 */
uint64_t census_agreed_context(struct census_least *least, const char *tenant, uint64_t nvml_bytes);

/*
 * What a process holds that no call named: NVML's figure beyond the most that its ledger said during the
 * look, as far as the look before showed so much as well, or as is counted already. Pure; *beyond_before
 * is replaced by what this look showed.
 */
uint64_t census_unnamed(uint64_t nvml_bytes, uint64_t ledger_most_bytes, uint64_t counted_bytes,
			uint64_t *beyond_before);

/* How often to read unasked, when the last reading took so much processor time. Pure. */
uint64_t census_every_ns(uint64_t asked_ns, uint64_t cost_ns);

/* True when NVML's figure is more than what is right explains: a ledger or a quota. Pure. */
bool census_is_over(uint64_t nvml_bytes, uint64_t most_bytes);
