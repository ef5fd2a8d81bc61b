/* The data about a tenant's waits for memory, as kept in the tenant and the node. memory_waiters.h decides which wait ends. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/region.h"

enum wait_outcome { WAIT_GRANTED, WAIT_GIVEN_UP, WAIT_LEFT, WAIT_OUTCOMES };

/* Counts of waits, of one tenant or of all. WAIT_LEFT: the tenant stopped asking, or ended. */
struct memory_wait_counts {
	uint64_t begun, ended[WAIT_OUTCOMES];
	uint64_t waited_ns; /* sum over the waits that ended */
};

enum memory_wait_state { MEMORY_WAIT_NONE, MEMORY_WAIT_QUEUED, MEMORY_WAIT_HOLDING };

/* A tenant's grant or place in the queue, as saved in the state file. All zero: it has neither. */
struct memory_wait_past {
	uint64_t granted_bytes[REGION_MAX_DEVICES];
	/* number of the wait (by node->arrivals), and when the wait began (monotonic) */
	uint64_t arrival, since_ns;
};

/* The waits of a tenant with on_full "wait". */
struct memory_wait {
	enum memory_wait_state state;
	/* while QUEUED: number of the wait (node->arrivals), and when it began */
	uint64_t arrival, since_ns;
	uint32_t passes; /* how often another tenant got memory before this one during the wait */
	unsigned place;  /* place in the queue, from 1 */
	bool is_logged;
	/* After a restart, the tenant keeps its earlier place until past_until_ns. */
	struct memory_wait_past past;
	uint64_t past_until_ns;
	uint64_t granted_bytes[REGION_MAX_DEVICES]; /* while HOLDING, else 0 */
};
