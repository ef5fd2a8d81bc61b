/*
 * What the daemon keeps of a tenant's waits for memory: admission.h decides, this is its state in a tenant and in the node.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/region.h"

enum wait_outcome { WAIT_GRANTED, WAIT_GIVEN_UP, WAIT_LEFT, WAIT_OUTCOMES };

/* Waits for memory so far, of one tenant or of all. WAIT_LEFT: it no longer asks, or ended. */
struct admission_counts {
	uint64_t begun, ended[WAIT_OUTCOMES];
	uint64_t waited_ns; /* sum of the waits that ended */
};

enum admission_state { ADMISSION_NONE, ADMISSION_QUEUED, ADMISSION_HOLDING };

/* Saved in the state file. All 0: the tenant neither held memory nor waited. */
struct admission_past {
	uint64_t granted_bytes[REGION_MAX_DEVICES];
	uint64_t arrival, since_ns; /* on the monotonic clock */
};

/* A tenant with on_full = wait. */
struct tenant_admission {
	enum admission_state state;
	uint64_t arrival, since_ns; /* while QUEUED */
	uint32_t passes;
	unsigned place; /* in the order of waiting, from 1 */
	bool is_logged; /* the log says that it waits */
	/* After a restart, its place from before is kept until past_until_ns. */
	struct admission_past past;
	uint64_t past_until_ns;
	uint64_t granted_bytes[REGION_MAX_DEVICES]; /* while HOLDING; else 0 */
};
