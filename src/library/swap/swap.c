#include "library/swap/swap.h"

#include <sys/prctl.h>

#include "library/loader/real.h"
#include "library/memory/ledger.h"
#include "library/memory/swap_hold.h"
#include "library/memory/swap_room.h"
#include "library/state/process_state.h"
#include "library/state/thread.h"
#include "library/swap/swap_arena.h"
#include "library/swap/swap_backing.h"
#include "library/swap/swap_copy.h"
#include "library/swap/swap_peers.h"
#include "library/swap/swap_quiesce.h"
#include "library/sys/locks.h"
#include "library/sys/log.h"
#include "library/trace/trace_record.h"

/* After this, waiting calls fail if memory can't return. */
#define RETURN_PATIENCE_NS (10 * NS_PER_S)
#define NAP_NS (50 * NS_PER_MS)
#define RETRY_NS (20 * NS_PER_MS)
/*
 * The driver stops the program's calls while it page-locks a chunk of the arena. If the program works, the swap thread then
 * pauses for this many times the time that the locking took: AHEAD_PAUSES before a move is ordered, LEAVING_PAUSES during a
 * move.
 */
#define AHEAD_PAUSES 19
#define LEAVING_PAUSES 1
#define EXIT_PATIENCE_NS (5 * NS_PER_S)

static bool is_started;
static _Atomic bool is_exiting, is_in_driver;

/* This process's swap state, which swap_publish() copies to its slot. */
static struct {
	_Atomic uint32_t state, word, failed;
	_Atomic uint64_t moved_ns;
} own = { .state = SWAP_IN };

static uint64_t copied_ns;       /* duration of the last move's copies */
static uint64_t return_since_ns; /* since when memory returns to the GPU; 0 if it does not */

void swap_begin(void *arena, uint64_t arena_bytes)
{
	if (!arena)
		return;
	swap_arena_begin(arena, arena_bytes);
	atomic_fetch_or(&process_state.detours, DETOUR_HOLD);
}

void swap_context_gone(CUcontext context)
{
	if (!swap_is_on())
		return;
	swap_backing_context_gone(context);
	swap_peers_context_gone(context);
	/* The context's end may have unlocked memory that was page-locked in it. */
	WITH_LOCK(&locks.swap_contexts);
	swap_arena_relock();
}

void swap_publish(struct region_slot *slot)
{
	for (int i = 0; i < REGION_MAX_DEVICES; i++) {
		struct backing_figures f = swap_backing_figures(i);
		atomic_store(&slot->swap[i].movable_bytes, f.movable_bytes);
		atomic_store(&slot->swap[i].kept_bytes, f.kept_bytes);
		atomic_store(&slot->swap[i].out_bytes, f.out_bytes);
		atomic_store(&slot->swap[i].wanted_bytes, swap_wanted_bytes(i));
	}
	atomic_store(&slot->swap_moved_ns, atomic_load(&own.moved_ns));
	atomic_store(&slot->swap_failed, atomic_load(&own.failed));
	atomic_store(&slot->swap_word, atomic_load(&own.word));
	atomic_store(&slot->swap_state, is_started ? atomic_load(&own.state) : SWAP_NONE);
}

/* The daemon's order, in the control page. Call for each read: restarted daemons bring new pages, even during a move. */
static const _Atomic uint32_t *order_word(void)
{
	return &atomic_load(&process_state.control)->swap;
}

static uint64_t arena_ready(void)
{
	return atomic_load(&atomic_load(&process_state.control)->arena_ready_bytes);
}

static void set_state(enum swap_state state)
{
	atomic_store(&own.state, (uint32_t)state);
	swap_publish(atomic_load(&process_state.slot));
}

/* Gives each movable backing (swap_backing.h) a position in the arena. Returns the bytes of all. */
static uint64_t assign_arena_offsets(void)
{
	uint64_t sum = 0;
	uint32_t at = 0;

	for (struct backing *b; (b = swap_backing_next(&at));)
		if (!b->is_kept) {
			b->arena_offset = sum;
			sum += b->bytes;
		}
	return sum;
}

static void report_out_bytes(bool is_all)
{
	struct region_slot *slot = atomic_load(&process_state.slot);

	for (int i = 0; i < REGION_MAX_DEVICES; i++)
		atomic_store(&slot->swap[i].out_bytes,
			     is_all ? swap_backing_figures(i).movable_bytes : 0);
}

/*
 * Without a daemon the order is 0 (SWAP_ORDER_IN), because nothing else would bring the memory back. follow_order() stores it
 * in own.word, so a new daemon's order counts as new, even if it equals the lost daemon's last order.
 */
static uint32_t effective_order(uint32_t word)
{
	return atomic_load(&process_state.daemon_lost) ? 0 : word;
}

/* The process's exit must not wait for a move. */
static bool is_running(void)
{
	return !atomic_load(&is_exiting);
}

static bool should_move_out(void)
{
	return is_running() &&
	       swap_order_of(effective_order(atomic_load(order_word()))) == SWAP_ORDER_OUT;
}

static void give_up(const char *why)
{
	if (!should_move_out()) {
		log_debug("swap: memory not moved off the GPU: the order was withdrawn, or the "
			  "process exits");
		return;
	}
	atomic_fetch_add(&own.failed, 1);
	log_write("swap: the memory of this process stays on the GPU: %s", why);
}

static uint64_t lock_next(void)
{
	uint64_t bytes = 0;

	/* The context must not end while it is current here. */
	WITH_LOCK(&locks.swap_contexts);
	if (swap_enter_context())
		bytes = swap_arena_lock_next();
	real.cuCtxSetCurrent(NULL);
	return bytes;
}

static bool is_gpu_busy(void)
{
	uint32_t count = atomic_load(&process_state.control)->device_count;

	for (uint32_t i = 0; i < count; i++) {
		const struct region_slot_device *d = process_slot_device((int)i);
		if (atomic_load(&d->busy) || atomic_load(&d->launching) || atomic_load(&d->waiting))
			return true;
	}
	return false;
}

/*
 * Maps the next chunk of the arena or, if all are mapped, page-locks the next one. If the program works, then pauses `pauses`
 * times as long as the locking took. Returns the chunk's bytes, or 0 if nothing is left to do.
 */
static uint64_t prepare_next(uint64_t pauses)
{
	uint64_t bytes = swap_arena_map_next();

	if (bytes)
		return bytes;
	uint64_t begin_ns = sys_now_ns();
	bytes = lock_next();
	if (bytes && is_gpu_busy())
		sys_sleep_ns(pauses * (sys_now_ns() - begin_ns));
	return bytes;
}

/* Page-locks the remaining chunks while the program runs: copies to unlocked memory take far longer than locking. */
static void lock_arena(void)
{
	uint64_t bytes = 1;

	while (!swap_arena_is_locked(swap_backing_figures(-1).movable_bytes) && should_move_out() &&
	       bytes) {
		bytes = prepare_next(LEAVING_PAUSES);
		atomic_fetch_add(&atomic_load(&process_state.slot)->swap_progress_bytes, bytes);
	}
}

/* Call with the hold (swap_hold.h) closed. Returns false if all movable memory is on the GPU as before. */
static bool move_out(void)
{
	uint32_t at = 0;
	uint64_t leaves = assign_arena_offsets();

	if (!swap_arena_is_ready(leaves)) {
		give_up("the host has too little memory");
		return false;
	}
	uint64_t begin_ns = sys_now_ns();
	if (swap_copy_all(SWAP_COPY_OUT, should_move_out) != CUDA_SUCCESS) {
		give_up("copying failed");
		return false;
	}
	copied_ns = sys_now_ns() - begin_ns;
	/* Report before freeing. Otherwise another tenant's bytes could count on the GPU while these still do. */
	report_out_bytes(true);
	/* Memory that the driver cannot unmap stays on the GPU, unchanged. */
	for (struct backing *b; (b = swap_backing_next(&at));)
		if (!b->is_kept && swap_backing_evict(b) != CUDA_SUCCESS)
			log_debug("swap: %llu bytes stay on the GPU, because the driver could not "
				  "unmap them",
				  (unsigned long long)b->bytes);
	return true;
}

/* Waits until the arena has enough host memory, or gets no more for SWAP_PATIENCE_NS. The program runs meanwhile. */
static void wait_for_arena(void)
{
	uint64_t seen = arena_ready(), since_ns = sys_now_ns();

	while (!swap_arena_is_ready(swap_backing_figures(-1).movable_bytes) && should_move_out() &&
	       sys_now_ns() - since_ns < SWAP_PATIENCE_NS) {
		sys_sleep_ns(RETRY_NS);
		uint64_t now = arena_ready();
		if (now <= seen)
			continue;
		atomic_fetch_add(&atomic_load(&process_state.slot)->swap_progress_bytes, now - seen);
		seen = now;
		since_ns = sys_now_ns();
	}
}

static void try_move_out(uint32_t word)
{
	atomic_store(&atomic_load(&process_state.slot)->swap_copied_mib, 0);
	set_state(SWAP_LEAVING);
	wait_for_arena();
	lock_arena();
	uint64_t begin_ns = sys_now_ns(), trace_from = trace_begin();
	bool is_quiet = should_move_out() && swap_quiesce();
	bool is_out = is_quiet && move_out();
	real.cuCtxSetCurrent(NULL); /* the context may end before the next move */
	if (!is_quiet)
		give_up("its GPU work, a stream capture or a CUDA call did not end in time");
	else if (!is_out)
		swap_hold_open(true);
	if (is_out)
		atomic_store(&own.moved_ns, sys_now_ns() - begin_ns);
	/* If the order was withdrawn, store 0, so that the order is tried if it comes again. */
	atomic_store(&own.word, is_out || should_move_out() ? word : 0);
	set_state(is_out ? SWAP_OUT : SWAP_IN);
	trace_wait(TRACE_SWAP_OUT, 0, trace_from, swap_backing_figures(-1).movable_bytes,
		   is_out ? 0 : ECANCELED);
	if (is_out)
		log_debug("swap: moved %llu bytes off the GPU in %llu us, of which copying took "
			  "%llu us",
			  (unsigned long long)swap_backing_figures(-1).out_bytes,
			  (unsigned long long)((sys_now_ns() - begin_ns) / NS_PER_US),
			  (unsigned long long)(copied_ns / NS_PER_US));
}

static void evict_all(uint32_t end)
{
	uint32_t at = 0;

	for (struct backing *b; at < end && (b = swap_backing_next(&at));)
		if (!b->is_kept && b->is_resident)
			swap_backing_evict(b);
}

/*
 * Returns CUDA_ERROR_OUT_OF_MEMORY if a GPU lacks room for the memory that returns to it. Otherwise each attempt would take all
 * of the GPU's free memory and then give it up, and other tenants' allocations would fail meanwhile.
 */
static CUresult check_room(void)
{
	uint64_t need[REGION_MAX_DEVICES] = { 0 };
	CUcontext context[REGION_MAX_DEVICES] = { NULL };
	uint32_t at = 0;
	size_t free_bytes, total;

	for (struct backing *b; (b = swap_backing_next(&at));)
		if (!b->is_kept && !b->is_resident) {
			need[b->index] += b->bytes;
			context[b->index] = b->owner;
		}
	for (int i = 0; i < REGION_MAX_DEVICES && real.cuMemGetInfo_v2; i++) {
		if (!need[i])
			continue;
		CUresult result = real.cuCtxSetCurrent(context[i]);
		if (result != CUDA_SUCCESS)
			return result;
		if (real.cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS && free_bytes < need[i])
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* Needs the hold (swap_hold.h) closed. On failure all is in the arena: OUT_OF_MEMORY for no room, NOT_READY at exit. */
static CUresult move_in(void)
{
	uint32_t at = 0;
	CUresult result = check_room();

	if (result != CUDA_SUCCESS)
		return result;
	/* Report out_bytes as 0 before allocating. Otherwise memory on the GPU would for a moment also count as swapped out. */
	report_out_bytes(false);
	for (struct backing *b; (b = swap_backing_next(&at));) {
		if (b->is_kept || b->is_resident)
			continue;
		result = real.cuCtxSetCurrent(b->owner);
		if (result == CUDA_SUCCESS)
			result = swap_backing_populate(b);
		if (result != CUDA_SUCCESS) {
			evict_all(at);
			return result;
		}
	}
	/* swap_copy_all() copies even memory that could not be removed from the GPU; the arena has the same data. */
	uint64_t begin_ns = sys_now_ns();
	result = swap_copy_all(SWAP_COPY_IN, is_running);
	copied_ns = sys_now_ns() - begin_ns;
	if (result != CUDA_SUCCESS)
		evict_all(UINT32_MAX);
	return result;
}

/* Exiting stops the copying, which is no failure. */
static void report_failed_return(CUresult result)
{
	if (!is_running())
		return;
	atomic_fetch_add(&own.failed, 1);
	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		log_write("swap: the GPU has no room for the return of this process's memory: CUDA "
			  "calls that need it fail until there is room");
	else
		log_write("swap: the driver could not move this process's memory back to the GPU "
			  "(CUDA error %d): CUDA calls that need it fail until a retry succeeds",
			  (int)result);
}

static void try_move_in(uint32_t word)
{
	uint64_t begin_ns = sys_now_ns(), trace_from = trace_begin();
	bool was_short = atomic_load(&own.state) == SWAP_SHORT;

	if (!return_since_ns)
		return_since_ns = begin_ns;
	/* In state SWAP_SHORT calls that free memory may enter the hold (swap_hold.h), so close it first. */
	if (was_short && !swap_hold_close(SWAP_PATIENCE_NS))
		return;
	set_state(was_short ? SWAP_SHORT : SWAP_RETURNING);
	CUresult result = move_in();
	real.cuCtxSetCurrent(NULL);
	if (result == CUDA_SUCCESS) {
		atomic_store(&own.moved_ns, sys_now_ns() - begin_ns);
		atomic_store(&own.word, word);
		return_since_ns = 0;
		set_state(SWAP_IN);
		swap_hold_open(true);
		trace_wait(TRACE_SWAP_IN, 0, trace_from, swap_backing_figures(-1).movable_bytes, 0);
		log_debug("swap: memory is back on the GPU after %llu us, of which copying took "
			  "%llu us",
			  (unsigned long long)((sys_now_ns() - begin_ns) / NS_PER_US),
			  (unsigned long long)(copied_ns / NS_PER_US));
		return;
	}
	if (was_short || (!atomic_load(&process_state.daemon_lost) &&
			  sys_now_ns() - return_since_ns > RETURN_PATIENCE_NS)) {
		if (!was_short)
			report_failed_return(result);
		set_state(SWAP_SHORT);
		swap_hold_open(false);
	}
}

static bool is_on_gpu(void)
{
	return atomic_load(&own.state) == SWAP_IN;
}

/* Returns the longest time, in ns, to sleep before the next call. */
static uint64_t follow_order(uint32_t word)
{
	word = effective_order(word);
	enum swap_order order = swap_order_of(word);

	if (order == SWAP_ORDER_OUT && is_on_gpu() && atomic_load(&own.word) != word)
		try_move_out(word);
	else if (order == SWAP_ORDER_IN && !is_on_gpu())
		try_move_in(word);
	else
		atomic_store(&own.word, word);
	/* SWAP_ORDER_OUT cancels a return to the GPU. The hold (swap_hold.h) is closed, except in state SWAP_SHORT. */
	if (order == SWAP_ORDER_OUT && !is_on_gpu() &&
	    (atomic_load(&own.state) != SWAP_SHORT || swap_hold_close(SWAP_PATIENCE_NS))) {
		return_since_ns = 0;
		atomic_store(&own.state, SWAP_OUT);
	}
	set_state((enum swap_state)atomic_load(&own.state));
	return order == SWAP_ORDER_IN && !is_on_gpu() ? RETRY_NS : NAP_NS;
}

static bool is_move_out_likely(void)
{
	return atomic_load(&atomic_load(&process_state.control)->swap_is_likely);
}

/*
 * If a move is likely, maps and page-locks chunks before it is ordered. Stops at once when the order changes. Pauses after each
 * chunk (AHEAD_PAUSES), because a training step could otherwise take seconds longer.
 */
static void lock_arena_ahead(uint32_t word)
{
	bool has_locked = false;

	while (is_move_out_likely() && atomic_load(order_word()) == word && is_running() &&
	       prepare_next(AHEAD_PAUSES))
		has_locked = true;
	if (has_locked)
		log_debug("swap: the swap thread mapped or page-locked host memory of the arena, "
			  "ahead of a likely move");
}

static void *swap_main(void *unused)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	prctl(PR_SET_NAME, "allot-swap", 0, 0, 0);
	if (real.cuThreadExchangeStreamCaptureMode)
		real.cuThreadExchangeStreamCaptureMode(&mode);
	ledger_mark_unsure(0);
	for (;;) {
		uint32_t word = atomic_load(order_word());

		atomic_store(&is_in_driver, true);
		if (atomic_load(&is_exiting)) {
			atomic_store(&is_in_driver, false);
			return NULL;
		}
		uint64_t sleep_ns = follow_order(word);
		lock_arena_ahead(word);
		atomic_store(&is_in_driver, false);
		sys_futex_wait(order_word(), word, sleep_ns, true);
	}
}

void swap_start(void)
{
	if (!swap_is_on())
		return;
	WITH_LOCK(&locks.swap_start);
	if (is_started)
		return;
	is_started = thread_create(swap_main);
	if (!is_started)
		log_write("swap: can't start the thread that moves this process's memory, so the "
			  "memory stays on the GPU: check the limit of threads (ulimit -u)");
}

void swap_wait_for_driver(void)
{
	uint64_t begin_ns = sys_now_ns();

	atomic_store(&is_exiting, true);
	while (atomic_load(&is_in_driver) && sys_now_ns() - begin_ns < EXIT_PATIENCE_NS)
		sys_sleep_ns(100 * NS_PER_US);
	/* No thread follows orders any more, so the daemon must not wait for this process. */
	if (is_started)
		atomic_store(&atomic_load(&process_state.slot)->swap_state, SWAP_NONE);
}

void swap_reset(void)
{
	is_started = false;
	atomic_store(&is_exiting, false);
	atomic_store(&is_in_driver, false);
	swap_quiesce_reset();
	atomic_store(&own.state, SWAP_IN);
	atomic_store(&own.word, 0);
	atomic_store(&own.failed, 0);
	atomic_store(&own.moved_ns, 0);
	return_since_ns = 0;
	swap_room_reset();
	atomic_fetch_and(&process_state.detours, ~(uint32_t)DETOUR_HOLD);
	swap_hold_reset();
	swap_backing_reset();
	swap_peers_reset();
	swap_arena_reset();
}
