/* Streams kept a few milliseconds ahead of the GPU, and a count of what the
 * GPU has finished.
 *
 * Long queues would measure the queue: a tenant that is held back would still
 * be credited with everything it had queued before. Short ones let the GPU run
 * dry between two looks of this program. Completion is seen through untimed
 * events, each standing for several launches.
 */
#ifndef ALLOT_LOAD_LANES_H
#define ALLOT_LOAD_LANES_H

#include "kernel.h"

#define LANES_MAX 64
#define LANE_MARKS 8

struct lane {
	CUstream stream;
	CUevent marks[LANE_MARKS];          /* a ring; head is the oldest pending */
	unsigned mark_launches[LANE_MARKS]; /* launches that each mark stands for */
	unsigned head, pending;
	unsigned queued;   /* launches not yet seen done */
	unsigned unmarked; /* the newest of them, which no mark stands for yet */
};

struct lanes {
	const struct driver *driver;
	const struct kernel *kernel;
	struct lane lane[LANES_MAX];
	unsigned count;
	unsigned next; /* round robin */
	CUgraph graph; /* NULL: plain launches */
	CUgraphExec exec;
	unsigned kernels_per_launch;
	unsigned depth;      /* launches ahead in each lane */
	unsigned mark_every; /* launches */
	uint64_t done_kernels;
};

/* Makes `count` (at most LANES_MAX) streams. With use_graph a launch is that of
 * a graph of several kernels, about 2 ms of work. */
void lanes_open(struct lanes *l, const struct driver *d, const struct kernel *k, unsigned count,
		bool use_graph);

/* Launches once on the next lane that has room and returns the nanoseconds that
 * the driver call took. Returns 0, having launched nothing, when no lane has
 * room; call lanes_collect and try again. */
uint64_t lanes_launch(struct lanes *l);

/* Counts what has finished since the last call; does not wait. */
void lanes_collect(struct lanes *l);

/* Waits for everything launched, and counts it. */
void lanes_sync(struct lanes *l);

/* Waits for everything launched and frees it all. */
void lanes_close(struct lanes *l);

/* A sleep short enough that no lane runs dry meanwhile. */
uint64_t lanes_nap_ns(const struct lanes *l);

#endif
