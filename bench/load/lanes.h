/* Streams kept a few milliseconds ahead of the GPU, and a count of what the
 * GPU has finished.
 *
 * Long queues would measure the queue: a tenant that is held back would still
 * be credited with everything it had queued before. Short ones let the GPU run
 * dry between two looks of this program. Completion is seen through untimed
 * events, each standing for several launches.
 *
 * One thread launches; another may collect meanwhile, also while a launch is
 * held back: what finishes in that time must not be counted only afterwards.
 */
#pragma once

#include "kernel.h"

#include <pthread.h>

#define LANES_MAX 4096
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
	unsigned depth;       /* launches ahead in each lane */
	unsigned mark_every;  /* launches */
	pthread_mutex_t lock; /* held for everything below a launch itself, never during one */
	uint64_t done_kernels;
	uint64_t first_done_ns; /* when the first was seen done since lanes_await_first, or 0 */
	bool marks_first; /* the next launch is the first since then: it gets a mark of its own */
};

/* Makes `count` (at most LANES_MAX) streams. With use_graph a launch is that of
 * a graph of several kernels, about 2 ms of work. They are kept ahead_s ahead of the
 * GPU, or LANES_AHEAD_S. */
#define LANES_AHEAD_S 0.004
void lanes_open(struct lanes *l, const struct driver *d, const struct kernel *k, unsigned count,
		bool use_graph, double ahead_s);

/* Launches once on the next lane that has room and returns the nanoseconds that
 * the driver call took. Returns 0, having launched nothing, when no lane has
 * room; call lanes_collect and try again. */
uint64_t lanes_launch(struct lanes *l);

/* Counts what has finished since the last call, and returns the kernels done so
 * far; does not wait. Any thread. */
uint64_t lanes_collect(struct lanes *l);

/* Forgets first_done_ns: the next launch's end, once it is seen, sets it anew. All lanes must be done. */
void lanes_await_first(struct lanes *l);

/* first_done_ns, for any thread. */
uint64_t lanes_first_done_ns(struct lanes *l);

/* Launches `count` kernels on the first lane, waits for them and counts them. */
void lanes_burst(struct lanes *l, unsigned count);

/* Waits for everything launched, and counts it. */
void lanes_sync(struct lanes *l);

/* Waits for everything launched and frees it all. */
void lanes_close(struct lanes *l);

/* A sleep short enough that no lane runs dry meanwhile. */
uint64_t lanes_nap_ns(const struct lanes *l);
