/*
 * Writes a traced tenant's tracks (rows of a timeline) from the replies to trace_poll (docs/reference/protocol.md): which
 * tenant had each GPU at which time, and the traced tenant's state, memory and compute. Not thread safe.
 */
#pragma once

#include <jansson.h>

#include "cli/trace/out.h"
#include "cli/trace/tick_map.h"

#define TRACKS_DEVICES 16
#define TRACKS_TENANTS 256 /* most tenants shown on one GPU; further ones are left out */
/* Linux has no pid above 2^22, so no process has these pids. */
#define TRACKS_TENANT_PID 4194305
#define TRACKS_CARD_PID 4194306 /* pid of GPU 0's track; GPU N has this + N */

struct tracks {
	struct out *out;
	char tenant[64];
	uint64_t first_ns; /* when the trace began, on the daemon's clock */
	/* leases of the tenant that began during the trace; time alone on a GPU (kind `free`) does not count */
	uint64_t leases;
	/* leases of any tenant on these GPUs that the daemon forgot before it could report them */
	uint64_t leases_lost;
	char state[32]; /* "" if no reply had a state yet */
	uint64_t state_since_ns;
	unsigned device[TRACKS_DEVICES]; /* the daemon's index of each of the tenant's GPUs */
	size_t device_count;
	struct tracks_card {
		char *tenant[TRACKS_TENANTS]; /* tenant i has line i + 1 of the GPU's track */
		unsigned tenant_count;
		/* the lease that had no end in the last reply, or NULL */
		json_t *going_on;
		uint64_t lease_number; /* number of the last lease that count_lease() looked at */
		uint64_t used_bytes;
		double got_pct;
		bool has_figures;
	} card[TRACKS_DEVICES];
};

void tracks_begin(struct tracks *tracks, struct out *out, const char *tenant, uint64_t first_ns);

/* Adds a reply that came at `now_ns`. A track for which the reply has no value stays as it is. */
void tracks_add(struct tracks *tracks, const json_t *reply, uint64_t now_ns);

/* Ends the present lease and state in the file, and frees the memory. */
void tracks_end(struct tracks *tracks, uint64_t now_ns);
