#include "library/launch/gate.h"

#include "library/launch/fast_path_pass.h"
#include "library/launch/inflight/inflight_overflow.h"
#include "library/launch/pace.h"
#include "library/launch/report.h"
#include "library/launch/step.h"
#include "library/launch/sync_point.h"
#include "library/launch/trace_work.h"
#include "library/memory/swap_hold.h"
#include "library/state/bell.h"
#include "library/state/helper.h"
#include "library/trace/trace_record.h"

/* These sleeps are short, so that a thread soon notices that the daemon is gone. */
#define LEASE_NAP_NS (50 * NS_PER_MS)
#define DEPTH_NAP_NS (500 * NS_PER_US)
/* Bounds of a wait for in-flight work: predictions may be too long, or that work may wait for work that the gate holds back. */
#define DEPTH_PATIENCE_MIN_NS (10 * NS_PER_MS)
#define DEPTH_PATIENCE_MAX_NS (100 * NS_PER_MS)
/* After a stall (is_stalled()), calls pass while less than this is in flight; with more, each waits DEPTH_PATIENCE_MAX_NS. */
#define STALL_DEPTH_NS (1 * NS_PER_S)

/*
 * Even beyond the depth, a second unit of work may pass while one is in flight, or the GPU would idle between long kernels. Not
 * while long_work_ns or more is in flight: the second unit would run past the end of the lease.
 */
#define ITEMS_MIN 2

static bool has_room(const struct inflight_device *f, uint64_t depth_ns, uint64_t long_ns)
{
	int64_t ns = atomic_load_explicit(&f->inflight_ns, memory_order_relaxed) -
		     atomic_load_explicit(&f->stalled_ns, memory_order_relaxed);

	return ns < (int64_t)depth_ns ||
	       (ns < (int64_t)long_ns &&
		atomic_load_explicit(&f->inflight, memory_order_relaxed) < ITEMS_MIN);
}

/* True if another wait for the process's own work would be useless: a wait was given up, and no work has ended since. */
static bool is_stalled(const struct inflight_device *f)
{
	uint64_t at = atomic_load_explicit(&f->stalled_at, memory_order_relaxed);

	return at && at == atomic_load_explicit(&f->completed, memory_order_relaxed) + 1 &&
	       atomic_load_explicit(&f->inflight_ns, memory_order_relaxed) < (int64_t)STALL_DEPTH_NS;
}

static bool may_pass(enum lease_state state, const struct region_control_device *c,
		     const struct inflight_device *f)
{
	/*
	 * Under LEASE_PACED, tokens limit the work, so its bound is that of LEASE_FREE. But tenants that run at the same time
	 * (pace_most_x100() is not 0) share one lease, and must finish soon after that lease ends. So depth_ns bounds their
	 * work.
	 */
	if (likely(state == LEASE_FREE ||
		   (state == LEASE_PACED && !pace_most_x100((int)(f - inflight_devices)))))
		return has_room(f, process_free_depth_ns(c), INT64_MAX) || is_stalled(f);
	if (state == LEASE_GO || state == LEASE_PACED)
		return has_room(f, atomic_load_explicit(&c->depth_ns, memory_order_relaxed),
				atomic_load_explicit(&c->long_work_ns, memory_order_relaxed)) ||
		       is_stalled(f);
	return false;
}

/* The work's length is predicted under LEASE_GO, and if the tenant runs beside others: it pays for that length in tokens. */
static void record_pass(struct gate_pass *pass, struct region_slot_device *d, enum lease_state state)
{
	pass->device = d;
	pass->is_counted_launching = true;
	pass->is_paced = state == LEASE_PACED;
	/* A tenant that runs beside others pays even when alone, under LEASE_GO: this shows its undisturbed speed. */
	pass->pays = (pass->is_paced || state == LEASE_GO) && pace_most_x100(pass->index);
	pass->is_leased = state == LEASE_GO || pass->pays;
}

/* While another process of the tenant has the turn, this process sees LEASE_STOP. */
static enum lease_state process_lease_state(uint32_t word, const struct region_control_device *c)
{
	enum lease_state state = lease_state_of(word);

	return state == LEASE_GO && !process_has_turn(c) ? LEASE_STOP : state;
}

/*
 * A thread's wait for the process's own work. The waiting time restarts at 0 when any work ends, but not when the lease ends. A
 * lease may be shorter than the patience, and then the thread would never give up.
 */
struct depth_wait {
	bool has_begun;
	uint64_t waited_ns; /* sum of sys_futex_nap() results */
	uint64_t completed;
};

/* Under LEASE_FREE the helper thread polls rarely, so make it poll the stream's work now. */
static void request_poll(struct inflight_stream *own)
{
	if (atomic_load_explicit(&own->unmarked, memory_order_relaxed))
		inflight_mark_now(own);
	helper_wake();
}

/* Returns true to give up, because nothing has ended. `own` is the work's stream under LEASE_FREE, otherwise NULL. */
static bool wait_for_depth(struct inflight_device *f, struct region_slot_device *d,
			   struct depth_wait *wait, struct inflight_stream *own)
{
	bool is_first = !wait->has_begun;
	uint64_t completed = atomic_load_explicit(&f->completed, memory_order_relaxed);
	int64_t inflight = atomic_load_explicit(&f->inflight_ns, memory_order_relaxed);
	uint64_t patience = inflight > 0 ? 4 * (uint64_t)inflight : 0;
	uint32_t progress = atomic_load(&f->progress);

	if (patience < DEPTH_PATIENCE_MIN_NS)
		patience = DEPTH_PATIENCE_MIN_NS;
	if (patience > DEPTH_PATIENCE_MAX_NS)
		patience = DEPTH_PATIENCE_MAX_NS;
	if (is_first || wait->completed != completed)
		*wait = (struct depth_wait){ .has_begun = true, .completed = completed };
	atomic_fetch_add(&f->waiters, 1);
	if (own && is_first)
		request_poll(own);
	wait->waited_ns += sys_futex_nap(&f->progress, progress, DEPTH_NAP_NS, false);
	atomic_fetch_sub(&f->waiters, 1);
	/*
	 * While this thread waited for the lease, work may have ended that the helper thread has not seen yet. So sleep
	 * first, and give up only if no work was seen to end meanwhile.
	 */
	if (wait->waited_ns <= patience || atomic_load(&f->completed) != completed)
		return false;
	atomic_store(&f->stalled_at, completed + 1);
	inflight_ignore_stalled(f);
	atomic_fetch_add_explicit(&d->stuck, 1, memory_order_relaxed);
	return true;
}

static uint32_t reason_of(bool is_lost, bool is_held, bool has_depth, uint32_t word)
{
	if (is_held)
		return lease_state_of(word) == LEASE_GO ? TRACE_WAIT_TURN : TRACE_WAIT_LEASE;
	if (!has_depth)
		return TRACE_WAIT_DEPTH;
	return is_lost ? TRACE_WAIT_CAP : TRACE_WAIT_GRANT;
}

/* Records since when a launch waits on an idle device. After STEP_PAUSE_NS without work, a step begins then (step.h). */
static void note_launch_waiting(const struct gate_pass *pass, const struct work *work,
				uint64_t since_ns)
{
	struct inflight_device *f = &inflight_devices[pass->index];
	uint64_t none = 0;

	if (pass->stream && work->kind != WORK_IS_SYNC &&
	    !atomic_load_explicit(&f->shows_busy, memory_order_relaxed))
		atomic_compare_exchange_strong(&f->launch_waiting_since_ns, &none, since_ns);
}

/* Returns with `launching` incremented. */
static __attribute__((noinline)) void wait_at_gate(struct gate_pass *pass, const struct work *work)
{
	struct inflight_device *f = &inflight_devices[pass->index];
	struct depth_wait depth = { 0 };
	uint64_t start = sys_now_ns(), begin = trace_is_on() ? trace_now() : 0;
	bool gave_up = false, is_known = false;
	uint32_t reasons = 0;

	note_launch_waiting(pass, work, start);
	for (;;) {
		/* A new daemon brings new pages, so read both pointers in each round. */
		struct region_slot_device *d = process_slot_device(pass->index);
		const struct region_control_device *c = process_control_device(pass->index);

		atomic_fetch_add(&d->launching, 1);
		uint32_t word = atomic_load(&c->lease);
		uint32_t grant = atomic_load(&c->grant_change);
		enum lease_state state = process_lease_state(word, c);
		bool is_lost = atomic_load(&process_state.daemon_lost);

		if (is_lost)
			state = LEASE_FREE;
		bool is_held = state == LEASE_STOP || state == LEASE_CLOSING;
		bool has_depth = may_pass(state, c, f) || (gave_up && !is_held);
		if (has_depth && (!is_lost || report_local_cap_allows(pass->index)) &&
		    (state != LEASE_PACED || pace_pay(pass->index, work))) {
			record_pass(pass, d, state);
			atomic_fetch_add_explicit(&d->waited_ns, sys_now_ns() - start,
						  memory_order_relaxed);
			if (unlikely(begin))
				trace_wait(TRACE_GATE_WAIT, pass->index, begin, reasons, 0);
			return;
		}
		atomic_fetch_sub(&d->launching, 1);
		reasons |= reason_of(is_lost, is_held, has_depth, word);
		if (is_lost && !report_local_cap_allows(pass->index)) {
			sys_sleep_ns(NS_PER_MS);
			depth.waited_ns += NS_PER_MS;
		} else if (!is_held && !has_depth) {
			gave_up = wait_for_depth(f, d, &depth,
						 state == LEASE_FREE ? pass->stream : NULL);
		} else {
			bool is_first = atomic_fetch_add(&d->waiting, 1) == 0;

			/* Under LEASE_STOP the daemon must learn of a waiting thread. It polls under LEASE_CLOSING. */
			if (is_first && !is_known && state == LEASE_STOP)
				bell_ring(pass->index);
			is_known = true;
			depth.waited_ns += sys_futex_nap(is_held ? &c->lease : &c->grant_change,
							 is_held ? word : grant, LEASE_NAP_NS, true);
			atomic_fetch_sub(&d->waiting, 1);
		}
	}
}

static void pass_under_lease(struct gate_pass *pass, const struct region_control_device *c,
			     const struct work *work)
{
	struct region_slot_device *d = process_slot_device(pass->index);

	atomic_fetch_add(&d->launching, 1);
	enum lease_state state = process_lease_state(atomic_load(&c->lease), c);
	if (likely(may_pass(state, c, &inflight_devices[pass->index]) &&
		   (state != LEASE_PACED || pace_pay(pass->index, work)))) {
		record_pass(pass, d, state);
	} else {
		atomic_fetch_sub(&d->launching, 1);
		wait_at_gate(pass, work);
	}
}

/* The most common case of may_pass(): in free run, with room for more work. Reads few cache lines. */
static inline bool is_free(const struct region_control_device *c, const struct inflight_device *f)
{
	return lease_state_of(atomic_load(&c->lease)) == LEASE_FREE &&
	       atomic_load_explicit(&f->inflight_ns, memory_order_relaxed) <
		       (int64_t)process_free_depth_ns(c);
}

/*
 * Keeps the process's memory on the GPU until leave_detours() (swap_hold.h). If swap is moving memory (SWAP_HOLD_CLOSED), waits
 * a short time and returns false; then the work must pass the gate again. Sets pass->is_refused if the GPU has no room for the
 * memory.
 */
static __attribute__((noinline)) bool enter_hold(struct gate_pass *pass, const struct work *work)
{
	enum swap_pass held = swap_try_enter();

	if (likely(held != SWAP_HOLD_CLOSED)) {
		pass->detours |= held == SWAP_PASSED ? DETOUR_HOLD : 0;
		pass->is_refused = held == SWAP_NO_ROOM;
		return true;
	}
	if (pass->is_counted_launching)
		atomic_fetch_sub(&pass->device->launching, 1);
	note_launch_waiting(pass, work, sys_now_ns());
	swap_wait();
	return false;
}

/* Also begins a trace record. Returns false if the work must pass the gate again (enter_hold()). */
static __attribute__((noinline)) bool enter_detours(struct gate_pass *pass, const struct work *work)
{
	if (swap_is_on() && !enter_hold(pass, work))
		return false;
	if (trace_is_on()) {
		pass->detours |= DETOUR_TRACE;
		pass->trace_begin = trace_now();
	}
	return true;
}

static __attribute__((noinline)) void leave_detours(const struct gate_pass *pass,
						    const struct work *work, CUresult result)
{
	if (pass->detours & DETOUR_TRACE)
		trace_work(work, pass->index, pass->trace_begin, pass->is_leased, result);
	if (pass->detours & DETOUR_HOLD)
		swap_leave();
}

static inline void pass_gate(struct gate_pass *pass, const struct work *work)
{
	const struct region_control_device *c = process_control_device(pass->index);

	if (likely(is_free(c, &inflight_devices[pass->index]) && work->kind != WORK_IS_SYNC)) {
		pass->device = process_slot_device(pass->index);
		pass->is_leased = pass->is_counted_launching = pass->pays = false;
	} else {
		pass_under_lease(pass, c, work);
	}
}

void gate_enter_active(struct gate_pass *pass, const struct work *work)
{
	if (unlikely(atomic_load_explicit(&process_state.captures, memory_order_relaxed)) &&
	    inflight_is_capturing(work))
		/* A captured call runs nothing now. The captured graph passes the gate when it is launched. */
		return;
	pass->stream = inflight_stream_of(work);
	pass->index = pass->stream ? pass->stream->device : process_current_index();
	if (unlikely(pass->index < 0))
		return; /* Without a context the driver will return an error. */

	pass->detours = 0;
	if (pass->stream && unlikely(inflight_is_overflow(pass->stream)))
		inflight_overflow_wait(pass->stream);
	do
		pass_gate(pass, work);
	while (unlikely(atomic_load_explicit(&process_state.detours, memory_order_relaxed)) &&
	       !enter_detours(pass, work));
	if (work->kind == WORK_IS_SYNC)
		pass->stream = NULL;
	if (pass->stream && unlikely(atomic_load_explicit(&inflight_devices[pass->index].has_synced,
							  memory_order_relaxed)))
		sync_point_launch(pass->index);
	if (unlikely(pass->is_leased) && pass->stream) {
		pass->inflight.is_concurrent = pass->is_paced;
		pass->inflight.pays = pass->pays;
		/* No other tenant's work runs under LEASE_GO. Take several samples, to learn the program's own speed soon. */
		pass->inflight.samples_most = pass->pays && !pass->is_paced ? INFLIGHT_SAMPLES : 1;
		inflight_begin(pass->stream, work, &pass->inflight);
	}
}

static void show_busy(struct region_slot_device *slot, int index)
{
	struct inflight_device *f = &inflight_devices[index];

	if (likely(atomic_load_explicit(&f->shows_busy, memory_order_relaxed)))
		return;
	uint64_t now_ns = sys_now_ns(), held_ns = atomic_exchange(&f->launch_waiting_since_ns, 0);
	uint64_t wanted_ns = held_ns ? held_ns : now_ns;

	atomic_store_explicit(&f->busy_since_ns, now_ns, memory_order_relaxed);
	if (wanted_ns > atomic_load(&f->idle_since_ns) + STEP_PAUSE_NS)
		atomic_store_explicit(&f->pause_end_ns, wanted_ns, memory_order_relaxed);
	inflight_show_busy(slot, f, true);
	/* With SYNC_POINT_ENDS_USE the daemon must learn at once that work begins on an idle device. */
	if (atomic_load_explicit(&process_control_device(index)->sync_point_wanted,
				 memory_order_relaxed) == SYNC_POINT_ENDS_USE)
		bell_ring(index);
	helper_wake();
}

static void end_leased(struct gate_pass *pass, const struct work *work, bool is_launched)
{
	inflight_end(pass->stream, work, &pass->inflight, is_launched);
	if (!is_launched)
		return;
	if (pass->pays) {
		uint64_t paid_ns = estimate_paid_ns(pass->inflight.estimate);
		pace_spend(pass->index, paid_ns ? paid_ns : pass->inflight.ns,
			   estimate_is_untried(pass->inflight.estimate));
	}
}

void gate_leave_active(struct gate_pass *pass, const struct work *work, CUresult result)
{
	if (unlikely(pass->detours))
		leave_detours(pass, work, result);
	if (pass->stream && unlikely(pass->is_leased))
		end_leased(pass, work, result == CUDA_SUCCESS);
	else if (pass->stream && result == CUDA_SUCCESS && inflight_count(pass->stream))
		inflight_mark_work(pass->stream, work);
	if (pass->stream)
		show_busy(pass->device, pass->index);
	if (pass->is_counted_launching)
		atomic_fetch_sub(&pass->device->launching, 1);
	else if (pass->stream)
		fast_path_try_open(pass->index);
}

/* A context may have been made without the library's hooks. Its default stream is counted separately from now on. */
static void find_unhooked_context(const struct inflight_stream *only)
{
	CUcontext context = NULL;

	if (real.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context && context != only->context)
		inflight_note_context(context);
}

CUresult fast_path_leave_slowly(struct inflight_stream *s)
{
	if (s == &inflight_streams[INFLIGHT_ONLY_PLACE])
		find_unhooked_context(s);
	if (atomic_load_explicit(&s->unmarked, memory_order_relaxed) >=
	    atomic_load_explicit(&s->mark_every, memory_order_relaxed))
		inflight_mark_now(s);
	show_busy(process_slot_device(s->device), s->device);
	fast_path_try_open(s->device);
	return CUDA_SUCCESS;
}
