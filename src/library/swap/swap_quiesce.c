#include "library/swap/swap_quiesce.h"

#include "library/loader/real.h"
#include "library/memory/swap_hold.h"
#include "library/state/process_state.h"
#include "library/sys/locks.h"
#include "library/sys/log.h"

/* More than known programs make, because each context takes hundreds of MiB. While there are more, no memory moves. */
#define CONTEXTS_MAX 1024

static CUcontext contexts[CONTEXTS_MAX]; /* contexts whose work may use movable memory */
static uint32_t contexts_count;
static uint32_t unlisted_count; /* contexts for which the list had no room */

/* A wait for work to end. The work may never end; then the helper thread gives up the wait. */
enum wait { WAIT_NONE, WAIT_WORK, WAIT_GIVEN_UP };
static _Atomic uint32_t wait;
static _Atomic uint64_t wait_since_ns;

static bool drop(CUcontext context)
{
	for (uint32_t i = contexts_count; i-- > 0;)
		if (contexts[i] == context) {
			contexts[i] = contexts[--contexts_count];
			return true;
		}
	return false;
}

void swap_add_context(CUcontext context)
{
	if (!swap_is_on())
		return;
	WITH_LOCK(&locks.swap_contexts);
	drop(context);
	if (contexts_count < CONTEXTS_MAX)
		contexts[contexts_count++] = context;
	else
		unlisted_count++;
}

bool swap_remove_context(CUcontext context)
{
	if (!swap_is_on())
		return false;
	WITH_LOCK(&locks.swap_contexts);
	if (drop(context))
		return true;
	if (!unlisted_count)
		return false;
	unlisted_count--;
	return true;
}

bool swap_enter_context(void)
{
	return contexts_count && real.cuCtxSetCurrent(contexts[0]) == CUDA_SUCCESS;
}

void swap_check_timeout(uint64_t now_ns)
{
	uint32_t expected = WAIT_WORK;

	/* now_ns may be before wait_since_ns, so do not subtract. */
	if (atomic_load(&wait) != WAIT_WORK ||
	    now_ns < atomic_load(&wait_since_ns) + SWAP_PATIENCE_NS)
		return;
	/* The work may wait for a thread that the hold (swap_hold.h) keeps out. */
	if (atomic_compare_exchange_strong(&wait, &expected, WAIT_GIVEN_UP))
		swap_hold_open(true);
}

/* The hold (swap_hold.h) keeps new work out. Returns false, with the hold open, after a timeout or the driver's error. */
static bool wait_for_work(void)
{
	CUresult result = unlisted_count ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;

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
		log_debug("swap: waiting for this process's GPU work %s (CUDA error %d)",
			  is_given_up ? "took too long" : "failed", (int)result);
	return !is_given_up && result == CUDA_SUCCESS;
}

/* Waits until no stream is captured, because waiting for GPU work would break a capture. Gives up at until_ns. */
static bool wait_for_captures(uint64_t until_ns)
{
	while (atomic_load(&process_state.captures)) {
		if (sys_now_ns() > until_ns)
			return false;
		sys_sleep_ns(NS_PER_MS);
	}
	return true;
}

bool swap_quiesce(void)
{
	uint64_t until_ns = sys_now_ns() + SWAP_PATIENCE_NS;

	do {
		if (!wait_for_captures(until_ns) || !swap_hold_close(SWAP_PATIENCE_NS)) {
			log_debug("swap: memory not moved off the GPU: %s",
				  atomic_load(&process_state.captures)
					  ? "a graph capture does not end"
					  : "a CUDA call does not return");
			return false;
		}
		if (!atomic_load(&process_state.captures))
			return wait_for_work();
		swap_hold_open(true);
	} while (sys_now_ns() < until_ns);
	return false;
}

void swap_quiesce_reset(void)
{
	contexts_count = 0;
	unlisted_count = 0;
	atomic_store(&wait, WAIT_NONE);
}
