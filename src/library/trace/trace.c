#include "library/trace/trace.h"

#include <sys/mman.h>

#include "library/loader/fast_path.h"
#include "library/sys/config.h"
#include "library/sys/exchange.h"
#include "library/sys/locks.h"
#include "library/sys/log.h"
#include "library/trace/trace_record.h"

#define ANSWER_NS (500 * NS_PER_MS) /* how long a request for a ring waits for the daemon */
#define RETRY_NS (50 * NS_PER_MS)   /* time between two requests, if the daemon does not answer */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* The last value of region_control.trace that was carried out or given up. */
static _Atomic uint32_t order;
/* When a ring was last requested, if the daemon did not answer or was too busy; else 0. */
static uint64_t tried_ns;

/*
 * Where each trace's ring is mapped; between two traces, pages of zeros. A thread that still records when a trace ends writes
 * into those zeros, or into the next ring, whose reader ignores the entry.
 */
static struct trace_ring *place;

static bool map(int fd)
{
	int flags = place ? MAP_FIXED : 0;
	void *at = mmap(place, sizeof(*place), PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);

	if (at == MAP_FAILED)
		return false;
	place = at;
	madvise(place, sizeof(*place), MADV_DONTDUMP);
	/* Without this, one launch in 64 waits for a page fault, until every page was written. Old kernels ignore it. */
	madvise(place, offsetof(struct trace_ring, name), MADV_POPULATE_WRITE);
	return true;
}

static void map_zeros(void)
{
	if (place)
		mmap(place, sizeof(*place), PROT_READ | PROT_WRITE,
		     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Returns 0; a positive errno if asking again is of no use; a negative one if the daemon did not answer or was too busy. */
static int request_ring(uint32_t word)
{
	struct trace_request request = { .magic = TRACE_MAGIC,
					 .version = TRACE_VERSION,
					 .order = word };
	struct trace_reply reply = { 0 };
	int fds[EXCHANGE_FDS_MAX];
	struct exchange_saved saved = exchange_begin();
	int error = exchange(config_socket(), ANSWER_NS, &request, sizeof(request), -1, &reply,
			     sizeof(reply), fds);

	if (!error && (reply.magic != TRACE_MAGIC || reply.version != TRACE_VERSION))
		error = EPROTO;
	else if (!error && reply.status)
		/* EAGAIN: the daemon had too many requests at once. */
		error = reply.status == EAGAIN ? -EAGAIN : reply.status > 0 ? reply.status : EPROTO;
	else if (!error && (fds[0] < 0 || !map(fds[0]) || !trace_ring_is_valid(place)))
		error = ENOMEM;
	for (int i = 0; i < EXCHANGE_FDS_MAX; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	exchange_end(saved);
	return error;
}

static void record_use(int index)
{
	uint64_t now = trace_now();

	trace_put((struct trace_event){ .begin = now,
					.end = now,
					.kind = TRACE_USED,
					.device = (uint8_t)index,
					.amount = atomic_load(
						&process_slot_device(index)->used_bytes) },
		  true);
}

static void begin(uint32_t word)
{
	trace_sink_begin(place, trace_clock_of(word));
	atomic_fetch_or(&process_state.detours, DETOUR_TRACE);
	process_update_has_one_device();
	fast_path_close(FAST_PATH_ALL);
	for (uint32_t i = 0; i < atomic_load(&process_state.control)->device_count; i++)
		record_use((int)i);
	log_debug("traced from here on");
}

static void end(void)
{
	if (!trace_is_on())
		return;
	atomic_fetch_and(&process_state.detours, ~(uint32_t)DETOUR_TRACE);
	process_update_has_one_device();
	fast_path_close(FAST_PATH_ALL);
	map_zeros();
	log_debug("traced no longer");
}

/* Obeys region_control.trace (`word`): ends the trace, and begins a new one if it names a clock. Needs locks.trace_poll. */
static void apply_order(uint32_t word)
{
	int error = 0;

	end();
	if (trace_clock_of(word) != TRACE_NO_CLOCK) {
		if (tried_ns && sys_now_ns() - tried_ns < RETRY_NS)
			return;
		error = request_ring(word);
		tried_ns = error < 0 ? sys_now_ns() : 0;
		if (error)
			log_debug("this process is not traced: the daemon gave it no trace ring "
				  "(errno %d)",
				  error < 0 ? -error : error);
		else
			begin(word);
	}
	if (error >= 0)
		atomic_store(&order, word);
}

void trace_poll(void)
{
	const _Atomic uint32_t *wanted = &atomic_load(&process_state.control)->trace;

	if (likely(atomic_load_explicit(wanted, memory_order_relaxed) ==
		   atomic_load_explicit(&order, memory_order_relaxed)) ||
	    !sys_trylock(&locks.trace_poll))
		return;
	uint32_t word = atomic_load(wanted);
	if (word != atomic_load(&order))
		apply_order(word);
	sys_unlock(&locks.trace_poll);
}

void trace_reset(void)
{
	atomic_fetch_and(&process_state.detours, ~(uint32_t)DETOUR_TRACE);
	atomic_store(&order, 0);
	tried_ns = 0;
	biased_reset(&trace_sink.numbering);
	/* The ring is the parent's, which still records into it. */
	map_zeros();
	atomic_store(&trace_sink.owner_id, 0);
	atomic_fetch_add(&trace_sink.generation, 1);
}
