/*
 * State of a tenant's waits for memory, kept in the tenant and in the node. memory_waiters.h makes
 * the decisions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/region.h"

enum wait_outcome { WAIT_GRANTED, WAIT_GIVEN_UP, WAIT_LEFT, WAIT_OUTCOMES };

/*
 * Counts of waits for memory, of one tenant or of all. WAIT_LEFT: the tenant stopped asking, or
 * ended.
 */
struct admission_counts {
	uint64_t begun, ended[WAIT_OUTCOMES];
	uint64_t waited_ns; /* sum over the waits that ended */
};

enum admission_state { ADMISSION_NONE, ADMISSION_QUEUED, ADMISSION_HOLDING };

/*
 * A tenant's grant, or its place in the queue, as saved in the state file. All zero if the tenant
 * neither had a grant nor waited.
 */
struct admission_past {
	uint64_t granted_bytes[REGION_MAX_DEVICES];
	/* the wait's number (node->arrivals); when the wait began, on the monotonic clock */
	uint64_t arrival, since_ns;
};

/* The waits of a tenant with on_full "wait". */
struct tenant_admission {
	enum admission_state state;
	/* while QUEUED: the wait's number (node->arrivals); when it began */
	uint64_t arrival, since_ns;
	uint32_t passes;
	unsigned place; /* place in the queue, from 1 */
	bool is_logged; /* the wait has been logged */
	/* After a restart, the tenant keeps its earlier place in the queue until past_until_ns. */
	struct admission_past past;
	uint64_t past_until_ns;
	uint64_t granted_bytes[REGION_MAX_DEVICES]; /* while HOLDING; else 0 */
};
