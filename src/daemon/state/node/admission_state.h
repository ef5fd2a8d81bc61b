/*
 * What the daemon keeps of a tenant's waits for memory: admission.h decides, this is its state in a tenant and in the node.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/region.h"

enum wait_outcome { WAIT_GRANTED, WAIT_GIVEN_UP, WAIT_LEFT, WAIT_OUTCOMES };

/* Waits for memory that there were, of a tenant or of all. WAIT_LEFT: nobody asks any more. */
struct admission_counts {
	uint64_t begun, ended[WAIT_OUTCOMES];
	uint64_t waited_ns; /* of those that ended */
};

enum admission_state { ADMISSION_NONE, ADMISSION_QUEUED, ADMISSION_HOLDING };

/* What the state file keeps of it. All 0: it neither held nor waited. */
struct admission_past {
	uint64_t granted_bytes[REGION_MAX_DEVICES];
	uint64_t arrival, since_ns; /* on the monotonic clock */
};

/* Of a tenant that waits. */
struct tenant_admission {
	enum admission_state state;
	uint64_t arrival, since_ns; /* of QUEUED */
	uint32_t passes;
	unsigned place; /* in the order of waiting, from 1 */
	bool is_logged; /* that it waits */
	/* After a restart: its place is kept for one that waited, until then. */
	struct admission_past past;
	uint64_t past_until_ns;
	uint64_t granted_bytes[REGION_MAX_DEVICES]; /* HOLDING; else 0 */
};
