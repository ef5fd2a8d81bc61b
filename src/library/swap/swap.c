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
#include "library/sys/log.h"
#include "library/trace/trace_record.h"

#define PATIENCE_NS (2 * NS_PER_S)         /* until a move that can't begin is given up */
#define RETURN_PATIENCE_NS (10 * NS_PER_S) /* until calls are told that there is no room */
#define NAP_NS (50 * NS_PER_MS)
#define RETRY_NS (20 * NS_PER_MS)
/* Times as long as what was locked took, of a program at work: ahead of any move, and when it is to leave. */
#define AHEAD_PAUSES 19
#define LEAVING_PAUSES 1
#define EXIT_PATIENCE_NS (5 * NS_PER_S)
#define CONTEXTS_MAX 64

static struct sys_lock start_lock, contexts_lock;
static bool is_started;
static _Atomic bool is_leaving, is_in_driver;

static CUcontext contexts[CONTEXTS_MAX]; /* whose work may use the memory */
static uint32_t contexts_count;
static bool has_too_many;

/* What the slot says; the thread's own. */
static struct {
	_Atomic uint32_t state, word, failed;
	_Atomic uint64_t moved_ns;
} own = { .state = SWAP_IN };

/* While work is waited for, which may take for ever: the helper gives it up. */
enum wait { WAIT_NONE, WAIT_WORK, WAIT_GIVEN_UP };
static _Atomic uint32_t wait;
static _Atomic uint64_t wait_since_ns;

static uint64_t copied_ns;       /* of the last move, the copies alone */
static uint64_t return_since_ns; /* 0: no return is under way */

void swap_begin(void *arena, uint64_t arena_bytes)
{
	if (!arena)
		return;
	swap_arena_begin(arena, arena_bytes);
	atomic_fetch_or(&process_state.detours, DETOUR_HOLD);
}

void swap_context_made(CUcontext context)
{
	if (!swap_is_on())
		return;
	swap_context_ends(context);
	WITH_LOCK(&contexts_lock);
	if (contexts_count < CONTEXTS_MAX)
		contexts[contexts_count++] = context;
	else
		has_too_many = true;
}

void swap_context_ends(CUcontext context)
{
	if (!swap_is_on())
		return;
	WITH_LOCK(&contexts_lock);
	for (uint32_t i = contexts_count; i-- > 0;)
		if (contexts[i] == context)
			contexts[i] = contexts[--contexts_count];
}

void swap_context_gone(CUcontext context)
{
	if (!swap_is_on())
		return;
	swap_backing_context_gone(context);
	swap_peers_context_gone(context);
	/* What was locked in it may be so no longer. */
	WITH_LOCK(&contexts_lock);
	swap_arena_unlocked();
}

void swap_move(struct region_slot *slot)
{
	for (int i = 0; i < REGION_MAX_DEVICES; i++) {
		struct backing_figures f = swap_backing_figures(i);
		atomic_store(&slot->swap[i].movable_bytes, f.movable_bytes);
		atomic_store(&slot->swap[i].kept_bytes, f.kept_bytes);
		atomic_store(&slot->swap[i].out_bytes, f.out_bytes);
		atomic_store(&slot->swap[i].wanted_bytes, swap_wanted(i));
	}
	atomic_store(&slot->swap_moved_ns, atomic_load(&own.moved_ns));
	atomic_store(&slot->swap_failed, atomic_load(&own.failed));
	atomic_store(&slot->swap_word, atomic_load(&own.word));
	atomic_store(&slot->swap_state, is_started ? atomic_load(&own.state) : SWAP_NONE);
}

/* Looked up each time: another daemon has other pages, and a move may outlast several. */
static const _Atomic uint32_t *order_word(void)
{
	return &atomic_load(&process_state.control)->swap;
}

static uint64_t arena_ready(void)
{
	return atomic_load(&atomic_load(&process_state.control)->arena_ready_bytes);
}

static void tell(enum swap_state state)
{
	atomic_store(&own.state, (uint32_t)state);
	swap_move(atomic_load(&process_state.slot));
}

/* ---- work ---- */

void swap_watch(uint64_t now_ns)
{
	uint32_t expected = WAIT_WORK;

	/* It may have begun since that was now. */
	if (atomic_load(&wait) != WAIT_WORK || now_ns < atomic_load(&wait_since_ns) + PATIENCE_NS)
		return;
	/* Whoever is held may be what the work waits for. */
	if (atomic_compare_exchange_strong(&wait, &expected, WAIT_GIVEN_UP))
		swap_hold_open(true);
}

/* All work of all contexts has ended, and none can begin. False: given up, the hold is open. */
static bool wait_for_work(void)
{
	CUresult result = has_too_many ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;

	atomic_store(&wait_since_ns, sys_now_ns());
	atomic_store(&wait, WAIT_WORK);
	for (uint32_t i = 0; i < contexts_count && result == CUDA_SUCCESS; i++) {
		result = real.cuCtxSetCurrent(contexts[i]);
		if (result == CUDA_SUCCESS)
			result = real.cuCtxSynchronize();
	}
	bool is_given_up = atomic_exchange(&wait, WAIT_NONE) == WAIT_GIVEN_UP;
	if (!is_given_up && result != CUDA_SUCCESS)
		swap_hold_open(true);
	if (is_given_up || result != CUDA_SUCCESS)
		log_debug("swap: work: %s, error %d", is_given_up ? "does not end" : "failed",
			  (int)result);
	return !is_given_up && result == CUDA_SUCCESS;
}

/* A capture would be broken by waiting, and what it is made of is not known yet: it ends first. */
static bool wait_for_captures(uint64_t until_ns)
{
	while (atomic_load(&process_state.captures)) {
		if (sys_now_ns() > until_ns)
			return false;
		sys_sleep_ns(NS_PER_MS);
	}
	return true;
}

/* Nothing of this process is at work or can begin: the hold is shut. False: it is open. */
static bool come_to_rest(void)
{
	uint64_t until_ns = sys_now_ns() + PATIENCE_NS;

	do {
		if (!wait_for_captures(until_ns) || !swap_hold_shut(PATIENCE_NS)) {
			log_debug("swap: %s", atomic_load(&process_state.captures)
						      ? "a capture does not end"
						      : "a call does not return");
			return false;
		}
		if (!atomic_load(&process_state.captures))
			return wait_for_work();
		swap_hold_open(true);
	} while (sys_now_ns() < until_ns);
	return false;
}

/* ---- moves ---- */

/* Gives each a place; the sum is what the arena must have. */
static uint64_t lay_out(void)
{
	uint64_t sum = 0;
	uint32_t at = 0;

	for (struct backing *b; (b = swap_backing_next(&at));)
		if (swap_copy_is_to_move(b)) {
			b->arena_at = sum;
			sum += b->bytes;
		}
	return sum;
}

/* What the slot says is out: all that moves, or none. */
static void tell_out_bytes(bool is_all)
{
	struct region_slot *slot = atomic_load(&process_state.slot);

	for (int i = 0; i < REGION_MAX_DEVICES; i++)
		atomic_store(&slot->swap[i].out_bytes,
			     is_all ? swap_backing_figures(i).movable_bytes : 0);
}

/*
 * A lost daemon asks for nothing, and nobody else brings memory back meanwhile. When it is there again, or the next one, which
 * may come to the same word, that is asked anew.
 */
static uint32_t heard(uint32_t word)
{
	return atomic_load(&process_state.daemon_lost) ? 0 : word;
}

/* Of a move. A process that ends does not wait for all of it. */
static bool goes_on(void)
{
	return !atomic_load(&is_leaving);
}

/* Nor is all copied for who needs the room no more. */
static bool leaves_on(void)
{
	return goes_on() && swap_order_of(heard(atomic_load(order_word()))) == SWAP_ORDER_OUT;
}

/* A way out came to nothing. Called off it was none, whatever was in its way. */
static void give_up(const char *why)
{
	if (!leaves_on()) {
		log_debug("swap: called off");
		return;
	}
	atomic_fetch_add(&own.failed, 1);
	log_write("swap: %s: memory stays on the GPU", why);
}

/* Its bytes; 0: none was locked. */
static uint64_t lock_next(void)
{
	uint64_t bytes = 0;

	/* The context does not end before it is nobody's current one. */
	WITH_LOCK(&contexts_lock);
	if (contexts_count && real.cuCtxSetCurrent(contexts[0]) == CUDA_SUCCESS)
		bytes = swap_arena_lock_next();
	real.cuCtxSetCurrent(NULL);
	return bytes;
}

static bool is_at_work(void)
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
 * Maps the next part of the arena, or when all is mapped page-locks it, and lets a program at work go on for `pauses` times as
 * long: while it locks, the driver lets no other call of the process in. Mapping is in nobody's way. Its bytes; 0: all is
 * locked that can be.
 */
static uint64_t prepare_next(uint64_t pauses)
{
	uint64_t bytes = swap_arena_map_next();

	if (bytes)
		return bytes;
	uint64_t begin_ns = sys_now_ns();
	bytes = lock_next();
	if (bytes && is_at_work())
		sys_sleep_ns(pauses * (sys_now_ns() - begin_ns));
	return bytes;
}

/*
 * Locks the rest of the arena while the program goes on: copies to unlocked memory take far longer than locking it.
 */
static void prepare_to_leave(void)
{
	uint64_t bytes = 1;

	while (!swap_arena_is_locked(swap_backing_figures(-1).movable_bytes) && leaves_on() &&
	       bytes) {
		bytes = prepare_next(LEAVING_PAUSES);
		atomic_fetch_add(&atomic_load(&process_state.slot)->swap_progress_bytes, bytes);
	}
}

/* The hold is shut. False: all is on the card as before. */
static bool leave_card(void)
{
	uint32_t at = 0;
	uint64_t leaves = lay_out();

	if (!swap_arena_is_ready(leaves)) {
		give_up("the host has too little memory");
		return false;
	}
	uint64_t begin_ns = sys_now_ns();
	if (swap_copy_all(SWAP_COPY_OUT, leaves_on) != CUDA_SUCCESS) {
		give_up("copying failed");
		return false;
	}
	copied_ns = sys_now_ns() - begin_ns;
	/* Said first: others take the bytes as soon as they are free, and would be counted beside them. */
	tell_out_bytes(true);
	/* One that can't be taken away is there still, as it was. */
	for (struct backing *b; (b = swap_backing_next(&at));)
		if (swap_copy_is_to_move(b) && swap_backing_take(b) != CUDA_SUCCESS)
			log_debug("swap: %llu bytes could not be unmapped",
				  (unsigned long long)b->bytes);
	return true;
}

/* An arena that is still being backed with memory is waited for, as long as it grows. The program goes on. */
static void wait_for_arena(void)
{
	uint64_t seen = arena_ready(), since_ns = sys_now_ns();

	while (!swap_arena_is_ready(swap_backing_figures(-1).movable_bytes) && leaves_on() &&
	       sys_now_ns() - since_ns < PATIENCE_NS) {
		sys_sleep_ns(RETRY_NS);
		uint64_t now = arena_ready();
		if (now <= seen)
			continue;
		atomic_fetch_add(&atomic_load(&process_state.slot)->swap_progress_bytes, now - seen);
		seen = now;
		since_ns = sys_now_ns();
	}
}

static void try_leave(uint32_t word)
{
	atomic_store(&atomic_load(&process_state.slot)->swap_copied_mib, 0);
	tell(SWAP_LEAVING);
	wait_for_arena();
	prepare_to_leave();
	uint64_t begin_ns = sys_now_ns(), trace_from = trace_begin();
	bool is_at_rest = leaves_on() && come_to_rest();
	bool is_out = is_at_rest && leave_card();
	real.cuCtxSetCurrent(NULL); /* it may end before the next move */
	if (!is_at_rest)
		give_up("work or a capture does not end");
	else if (!is_out)
		swap_hold_open(true);
	if (is_out)
		atomic_store(&own.moved_ns, sys_now_ns() - begin_ns);
	/* Called off it was not tried. */
	atomic_store(&own.word, is_out || leaves_on() ? word : 0);
	tell(is_out ? SWAP_OUT : SWAP_IN);
	trace_wait(TRACE_SWAP_OUT, 0, trace_from, swap_backing_figures(-1).movable_bytes,
		   is_out ? 0 : ECANCELED);
	if (is_out)
		log_debug("swap: %llu bytes out in %llu us, of which copies %llu",
			  (unsigned long long)swap_backing_figures(-1).out_bytes,
			  (unsigned long long)((sys_now_ns() - begin_ns) / NS_PER_US),
			  (unsigned long long)(copied_ns / NS_PER_US));
}

static void take_all(uint32_t end)
{
	uint32_t at = 0;

	for (struct backing *b; at < end && (b = swap_backing_next(&at));)
		if (swap_copy_is_to_move(b) && b->is_on_card)
			swap_backing_take(b);
}

/*
 * Looked at first: an attempt that can't succeed would take all that is left of the card, again and again,
 * and whatever the driver needs for others meanwhile would fail.
 */
static bool has_room(void)
{
	uint64_t need[REGION_MAX_DEVICES] = { 0 };
	CUcontext context[REGION_MAX_DEVICES] = { NULL };
	uint32_t at = 0;
	size_t free_bytes, total;

	for (struct backing *b; (b = swap_backing_next(&at));)
		if (swap_copy_is_to_move(b) && !b->is_on_card) {
			need[b->index] += b->bytes;
			context[b->index] = b->owner;
		}
	for (int i = 0; i < REGION_MAX_DEVICES && real.cuMemGetInfo_v2; i++) {
		if (!need[i])
			continue;
		if (real.cuCtxSetCurrent(context[i]) != CUDA_SUCCESS)
			return false;
		if (real.cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS && free_bytes < need[i])
			return false;
	}
	return true;
}

/* The hold is shut. False: all is in the arena as before. */
static bool return_to_card(void)
{
	uint32_t at = 0;

	if (!has_room())
		return false;
	/* Said first: what is on the card and said to be out would be counted twice. */
	tell_out_bytes(false);
	for (struct backing *b; (b = swap_backing_next(&at));) {
		if (!swap_copy_is_to_move(b) || b->is_on_card)
			continue;
		if (real.cuCtxSetCurrent(b->owner) != CUDA_SUCCESS ||
		    swap_backing_put(b) != CUDA_SUCCESS) {
			take_all(at);
			return false;
		}
	}
	/* Also of what could not be taken away: it is what it was. */
	uint64_t begin_ns = sys_now_ns();
	CUresult result = swap_copy_all(SWAP_COPY_IN, goes_on);
	copied_ns = sys_now_ns() - begin_ns;
	if (result == CUDA_SUCCESS)
		return true;
	take_all(UINT32_MAX);
	return false;
}

static void try_return(uint32_t word)
{
	uint64_t begin_ns = sys_now_ns(), trace_from = trace_begin();
	bool was_short = atomic_load(&own.state) == SWAP_SHORT;

	if (!return_since_ns)
		return_since_ns = begin_ns;
	/* While it has no room, calls pass that free: they are out first. */
	if (was_short && !swap_hold_shut(PATIENCE_NS))
		return;
	tell(was_short ? SWAP_SHORT : SWAP_RETURNING);
	bool is_back = return_to_card();
	real.cuCtxSetCurrent(NULL);
	if (is_back) {
		atomic_store(&own.moved_ns, sys_now_ns() - begin_ns);
		atomic_store(&own.word, word);
		return_since_ns = 0;
		tell(SWAP_IN);
		swap_hold_open(true);
		trace_wait(TRACE_SWAP_IN, 0, trace_from, swap_backing_figures(-1).movable_bytes, 0);
		log_debug("swap: back in %llu us, of which copies %llu",
			  (unsigned long long)((sys_now_ns() - begin_ns) / NS_PER_US),
			  (unsigned long long)(copied_ns / NS_PER_US));
		return;
	}
	if (was_short || (!atomic_load(&process_state.daemon_lost) &&
			  sys_now_ns() - return_since_ns > RETURN_PATIENCE_NS)) {
		if (!was_short) {
			atomic_fetch_add(&own.failed, 1);
			log_write("swap: the GPU has no room for memory that was moved off: calls that need it "
				  "fail");
		}
		tell(SWAP_SHORT);
		swap_hold_open(false);
	}
}

static bool is_on_card(void)
{
	return atomic_load(&own.state) == SWAP_IN;
}

/* One look at what is asked for; returns how long to sleep at most. */
static uint64_t look(uint32_t word)
{
	word = heard(word);
	enum swap_order order = swap_order_of(word);

	if (order == SWAP_ORDER_OUT && is_on_card() && atomic_load(&own.word) != word)
		try_leave(word);
	else if (order == SWAP_ORDER_IN && !is_on_card())
		try_return(word);
	else
		atomic_store(&own.word, word);
	/* A return that was called off: the hold is shut, or calls fail for now. */
	if (order == SWAP_ORDER_OUT && !is_on_card() &&
	    (atomic_load(&own.state) != SWAP_SHORT || swap_hold_shut(PATIENCE_NS))) {
		return_since_ns = 0;
		atomic_store(&own.state, SWAP_OUT);
	}
	tell((enum swap_state)atomic_load(&own.state));
	return order == SWAP_ORDER_IN && !is_on_card() ? RETRY_NS : NAP_NS;
}

static bool is_likely_to_leave(void)
{
	return atomic_load(&atomic_load(&process_state.control)->swap_is_likely);
}

/*
 * Ahead of any move, and never in the way of one; hardly in that of a program at work. (On an H200 one step of a training took
 * 11 s beside the locking of 29 GiB without pauses; with three times as long ones two tenants lost 15 % until all was locked.)
 */
static void prepare_ahead(uint32_t word)
{
	bool has_locked = false;

	while (is_likely_to_leave() && atomic_load(order_word()) == word && goes_on() &&
	       prepare_next(AHEAD_PAUSES))
		has_locked = true;
	if (has_locked)
		log_debug("swap: the arena is page-locked, as far as it has memory");
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
		if (atomic_load(&is_leaving)) {
			atomic_store(&is_in_driver, false);
			return NULL;
		}
		uint64_t sleep_ns = look(word);
		prepare_ahead(word);
		atomic_store(&is_in_driver, false);
		sys_futex_wait(order_word(), word, sleep_ns, true);
	}
}

void swap_start(void)
{
	if (!swap_is_on())
		return;
	WITH_LOCK(&start_lock);
	if (is_started)
		return;
	is_started = thread_create(swap_main);
	if (!is_started)
		log_write("no thread to move memory: it stays on the GPU");
}

void swap_leave_driver(void)
{
	uint64_t begin_ns = sys_now_ns();

	atomic_store(&is_leaving, true);
	while (atomic_load(&is_in_driver) && sys_now_ns() - begin_ns < EXIT_PATIENCE_NS)
		sys_sleep_ns(100 * NS_PER_US);
	/* Nobody hears orders any more. */
	if (is_started)
		atomic_store(&atomic_load(&process_state.slot)->swap_state, SWAP_NONE);
}

void swap_reset(void)
{
	start_lock = contexts_lock = (struct sys_lock){ 0 };
	is_started = false;
	atomic_store(&is_leaving, false);
	atomic_store(&is_in_driver, false);
	contexts_count = 0;
	has_too_many = false;
	atomic_store(&own.state, SWAP_IN);
	atomic_store(&own.word, 0);
	atomic_store(&own.failed, 0);
	atomic_store(&own.moved_ns, 0);
	atomic_store(&wait, WAIT_NONE);
	return_since_ns = 0;
	swap_room_reset();
	atomic_fetch_and(&process_state.detours, ~(uint32_t)DETOUR_HOLD);
	swap_hold_reset();
	swap_backing_reset();
	swap_peers_reset();
	swap_arena_reset();
}
