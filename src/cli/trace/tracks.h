/*
 * What the daemon tells of a traced tenant and its cards, as tracks: who had each card when, what state the tenant was in, and
 * what it had of memory and compute. From the replies to trace_poll (docs/reference/protocol.md). One thread.
 */
#pragma once

#include <jansson.h>

#include "cli/trace/out.h"
#include "cli/trace/tick_map.h"

#define TRACKS_DEVICES 16
#define TRACKS_TENANTS 256 /* on a card; of those beyond nothing is written */
/* No process has such a number: Linux has none above 2^22. */
#define TRACKS_TENANT_PID 4194305
#define TRACKS_CARD_PID 4194306 /* of GPU 0, and so on */

struct tracks {
	struct out *out;
	char tenant[64];
	uint64_t first_ns; /* of the daemon's clock: when the trace began */
	uint64_t leases;   /* the tenant's, begun in the trace */
	uint64_t free_runs;
	char state[32]; /* "": none was told yet */
	uint64_t state_since_ns;
	unsigned device[TRACKS_DEVICES]; /* the cards' indexes */
	size_t device_count;
	struct tracks_card {
		char *tenant[TRACKS_TENANTS]; /* each has a line, from 1 */
		unsigned tenant_count;
		json_t *going_on; /* the lease that was not over when it was told; NULL: none */
		uint64_t lease_number; /* the last that counted */
		uint64_t used_bytes;
		double got_pct;
		bool has_figures;
		uint64_t leases_first, leases_last; /* as the daemon counts them */
	} card[TRACKS_DEVICES];
};

/* Names the tracks. `first_ns`: of the reply to `trace`. */
void tracks_begin(struct tracks *tracks, struct out *out, const char *tenant, uint64_t first_ns);

/* One reply; `now_ns` is its moment. What a reply lacks is left out. */
void tracks_add(struct tracks *tracks, const json_t *reply, uint64_t now_ns);

/* Ends what goes on. */
void tracks_end(struct tracks *tracks, uint64_t now_ns);
