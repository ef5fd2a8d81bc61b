/*
 * Tokens: under LEASE_PACED each unit of work pays tokens before it passes the gate. The tenant's processes add to one sum of
 * spent tokens in the report; the daemon grants tokens in the control page (abi/shm/region.h).
 *
 * Grid and block alone determine the cost (Lu et al., Algorithm 2: docs/reference/seeds.md). The daemon measures how much
 * device time a token stands for.
 *
 *   kernel        its threads (blocks x threads per block)
 *   copy, memset  one per 16 bytes, as a kernel in which each thread moves 16 bytes
 *   graph         as 2^20 threads, because its content is not examined
 *
 * For a tenant that runs at the same time as others, under MPS, tokens are nanoseconds of predicted length. Such a tenant pays
 * after its work was handed to the driver. Until it has paid, depth_ns limits how much work passes. Thread safe.
 */
#pragma once

#include "library/launch/inflight/work.h"
#include "library/state/process_state.h"

#define PACE_BYTES_OF_TOKEN 16
#define PACE_GRAPH (UINT64_C(1) << 20)
/* Keeps the sums far from overflow. */
#define PACE_MOST (UINT64_C(1) << 50)

static inline uint64_t pace_cost(const struct work *work)
{
	uint64_t cost = 0;

	switch (work->kind) {
	case WORK_IS_KERNEL:
		if (__builtin_mul_overflow(work->blocks, work->threads, &cost))
			cost = PACE_MOST;
		break;
	case WORK_IS_GRAPH: cost = PACE_GRAPH; break;
	case WORK_IS_COPY:
	case WORK_IS_SYNC: cost = work->blocks / PACE_BYTES_OF_TOKEN; break;
	}
	if (cost < 1)
		return 1;
	return cost < PACE_MOST ? cost : PACE_MOST;
}

/* Both counters may wrap, so compares their difference. */
static inline bool pace_has_tokens(int index, const _Atomic uint64_t *spent)
{
	uint64_t granted = atomic_load(&process_control_device(index)->granted);

	return (int64_t)(granted - atomic_load(spent)) > 0;
}

/* The tenant's largest part of the GPU, in percent * 100. 0 if it does not run at the same time as others (under MPS). */
static inline uint32_t pace_most_x100(int index)
{
	const struct region_control *c = atomic_load_explicit(&process_state.control,
							      memory_order_acquire);

	return atomic_load_explicit(&c->space_pct_x100[index], memory_order_relaxed);
}

/* Pays the predicted length of work in tokens. is_untried is the result of estimate_is_untried(). */
void pace_spend(int index, uint64_t ns, bool is_untried);

/*
 * Returns false if no granted tokens are left, so the work must wait. Otherwise pays, unless tokens are nanoseconds
 * (pace_spend()). Threads that pay at the same moment may all pass with the same last tokens; then the tenant owes the
 * difference.
 */
static inline bool pace_pay(int index, const struct work *work)
{
	struct region_report *report = atomic_load_explicit(&process_state.report,
							    memory_order_acquire);
	_Atomic uint64_t *spent = &report->spent[index].tokens;

	if (!pace_has_tokens(index, spent))
		return false;
	if (!pace_most_x100(index))
		atomic_fetch_add(spent, pace_cost(work));
	return true;
}
