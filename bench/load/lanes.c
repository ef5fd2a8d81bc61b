#include "lanes.h"

#include "clock.h"

#define GRAPH_S 0.002
#define GRAPH_KERNELS_MAX 32
#define DEPTH_MAX 512 /* the driver blocks a launch at about 1,024 in a stream */

static unsigned clamp(double v, unsigned low, unsigned high)
{
	return v < low ? low : v > high ? high : (unsigned)v;
}

static void make_graph(struct lanes *l)
{
	const struct driver *d = l->driver;
	CUstream s = l->lane[0].stream;
	/* Thread-local: another thread of this process (the interposer's) must not
	 * be able to spoil a benchmark; that case has its own test. */
	DRIVER_DO(d, capture_begin, s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	for (unsigned i = 0; i < l->kernels_per_launch; i++)
		kernel_launch(l->kernel, d, s);
	DRIVER_DO(d, capture_end, s, &l->graph);
	DRIVER_DO(d, graph_instantiate, &l->exec, l->graph, 0);
}

void lanes_open(struct lanes *l, const struct driver *d, const struct kernel *k, unsigned count,
		bool use_graph, double ahead_s)
{
	*l = (struct lanes){ .driver = d, .kernel = k, .count = count, .kernels_per_launch = 1 };
	pthread_mutex_init(&l->lock, NULL);
	for (unsigned i = 0; i < count; i++) {
		DRIVER_DO(d, stream_create, &l->lane[i].stream, DRIVER_STREAM_NON_BLOCKING);
		for (unsigned m = 0; m < LANE_MARKS; m++)
			DRIVER_DO(d, event_create, &l->lane[i].marks[m], CU_EVENT_DISABLE_TIMING);
	}
	if (use_graph) {
		l->kernels_per_launch = clamp(GRAPH_S / k->cost_s, 1, GRAPH_KERNELS_MAX);
		make_graph(l);
	}
	/* Two at least, or the GPU waits while the next launch is on its way. Four
	 * to seven marks in a full lane: LANE_MARKS holds them. */
	l->depth = clamp(ahead_s / (k->cost_s * l->kernels_per_launch * count), 2, DEPTH_MAX);
	l->mark_every = l->depth < 4 ? 1 : l->depth / 4;
}

static void mark(struct lanes *l, struct lane *lane)
{
	if (lane->unmarked == 0)
		return;
	unsigned slot = (lane->head + lane->pending) % LANE_MARKS;
	DRIVER_DO(l->driver, event_record, lane->marks[slot], lane->stream);
	lane->mark_launches[slot] = lane->unmarked;
	lane->unmarked = 0;
	lane->pending++;
}

static struct lane *find_room(struct lanes *l)
{
	for (unsigned i = 0; i < l->count; i++) {
		struct lane *lane = &l->lane[(l->next + i) % l->count];
		if (lane->queued < l->depth && lane->pending < LANE_MARKS) {
			l->next = (l->next + i + 1) % l->count;
			return lane;
		}
	}
	return NULL;
}

uint64_t lanes_launch(struct lanes *l)
{
	pthread_mutex_lock(&l->lock);
	struct lane *lane = find_room(l);
	pthread_mutex_unlock(&l->lock);
	if (lane == NULL)
		return 0;

	uint64_t begin_ns = clock_now_ns();
	if (l->exec != NULL)
		DRIVER_DO(l->driver, graph_launch, l->exec, lane->stream);
	else
		kernel_launch(l->kernel, l->driver, lane->stream);
	uint64_t took_ns = clock_now_ns() - begin_ns;

	pthread_mutex_lock(&l->lock);
	lane->queued++;
	lane->unmarked++;
	/* The last launch of a full lane is always marked, else the end of the
	 * lane would never be seen. */
	if (lane->unmarked >= l->mark_every || lane->queued >= l->depth || l->marks_first)
		mark(l, lane);
	l->marks_first = false;
	pthread_mutex_unlock(&l->lock);
	return took_ns > 0 ? took_ns : 1;
}

static void count_done(struct lanes *l, uint64_t kernels)
{
	l->done_kernels += kernels;
	if (l->first_done_ns == 0 && kernels > 0)
		l->first_done_ns = clock_now_ns();
}

static void retire_oldest(struct lanes *l, struct lane *lane)
{
	unsigned launches = lane->mark_launches[lane->head];
	lane->head = (lane->head + 1) % LANE_MARKS;
	lane->pending--;
	lane->queued -= launches;
	count_done(l, (uint64_t)launches * l->kernels_per_launch);
}

uint64_t lanes_collect(struct lanes *l)
{
	const struct driver *d = l->driver;
	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < l->count; i++) {
		struct lane *lane = &l->lane[i];
		while (lane->pending > 0) {
			CUresult r = d->event_query(lane->marks[lane->head]);
			if (r == CUDA_ERROR_NOT_READY)
				break;
			driver_check(d, r, offsetof(struct driver, event_query));
			retire_oldest(l, lane);
		}
	}
	uint64_t done = l->done_kernels;
	pthread_mutex_unlock(&l->lock);
	return done;
}

void lanes_await_first(struct lanes *l)
{
	pthread_mutex_lock(&l->lock);
	l->first_done_ns = 0;
	l->marks_first = true;
	pthread_mutex_unlock(&l->lock);
}

uint64_t lanes_first_done_ns(struct lanes *l)
{
	pthread_mutex_lock(&l->lock);
	uint64_t at_ns = l->first_done_ns;
	pthread_mutex_unlock(&l->lock);
	return at_ns;
}

void lanes_burst(struct lanes *l, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		kernel_launch(l->kernel, l->driver, l->lane[0].stream);
	DRIVER_DO(l->driver, stream_sync, l->lane[0].stream);
	pthread_mutex_lock(&l->lock);
	count_done(l, count);
	pthread_mutex_unlock(&l->lock);
}

void lanes_sync(struct lanes *l)
{
	for (unsigned i = 0; i < l->count; i++) {
		struct lane *lane = &l->lane[i];
		DRIVER_DO(l->driver, stream_sync, lane->stream);
		pthread_mutex_lock(&l->lock);
		while (lane->pending > 0)
			retire_oldest(l, lane);
		count_done(l, (uint64_t)lane->unmarked * l->kernels_per_launch);
		lane->queued = lane->unmarked = 0;
		pthread_mutex_unlock(&l->lock);
	}
}

uint64_t lanes_nap_ns(const struct lanes *l)
{
	/* An eighth of what is ahead, between 20 and 200 us: below that the sleep
	 * is mostly the system call, above it reports come late. */
	double ahead_s = l->kernel->cost_s * l->kernels_per_launch * l->depth * l->count;
	return clamp(ahead_s / 8 * 1e9, 20000, 200000);
}

void lanes_close(struct lanes *l)
{
	const struct driver *d = l->driver;
	lanes_sync(l);
	if (l->exec != NULL) {
		DRIVER_DO(d, graph_exec_destroy, l->exec);
		DRIVER_DO(d, graph_destroy, l->graph);
	}
	for (unsigned i = 0; i < l->count; i++) {
		for (unsigned m = 0; m < LANE_MARKS; m++)
			DRIVER_DO(d, event_destroy, l->lane[i].marks[m]);
		DRIVER_DO(d, stream_destroy, l->lane[i].stream);
	}
	pthread_mutex_destroy(&l->lock);
	*l = (struct lanes){ 0 };
}
